// The cube of groups: which numbers of a batch are standardised together.
//
// The model (anywidget's contract) holds `values` (B, T, d), `scheme` (a key of SCHEMES) and `chosen` (a number's sequence,
// time and feature); optionally `task`, done with a scheme whose groups reach across sequences and not along time.
// It is given `result`: { count, mean, spread } of the chosen number's group; the spread divides by the count.

import { ARROWS, choice, frame, html, make } from "./shared.js";

const CELL = 24;

// two numbers with the same label share their statistics
const SCHEMES = {
  "batch norm": ([, , f]) => f,
  "batch norm per step": ([, t, f]) => `${t} ${f}`,
  "instance norm": ([b, , f]) => `${b} ${f}`,
  "group norm": ([b, , f], d) => `${b} ${Math.floor(f / (d / 2))}`,
  "layer norm": ([b, t]) => `${b} ${t}`,
};

export function group({ values, scheme, chosen }) {
  const d = values[0][0].length;
  const wanted = SCHEMES[scheme](chosen, d);
  const places = values.flatMap((one, b) => one.flatMap((line, t) => line.map((_, f) => [b, t, f])));
  const members = places.filter((place) => SCHEMES[scheme](place, d) === wanted);
  const numbers = members.map(([b, t, f]) => values[b][t][f]);
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const variance = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0) / numbers.length;
  return { members, count: numbers.length, mean, spread: Math.sqrt(variance) };
}

function render({ model, el }) {
  const values = model.get("values");
  const [T, d] = [values[0].length, values[0][0].length];
  const cells = new Map();
  const drawings = values.map((one, b) => {
    const svg = make("svg", { viewBox: `-4 -20 ${CELL * d + 8} ${CELL * T + 24}`, role: "group" });
    svg.setAttribute("aria-label", `sequence ${b + 1}: rows are times, columns are features`);
    svg.append(make("text", { x: (CELL * d) / 2, y: -7, "text-anchor": "middle" }, `sequence ${b + 1}`));
    one.forEach((line, t) =>
      line.forEach((number, f) => {
        const [x, y] = [CELL * f, CELL * t];
        const ground = make("rect", { x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2, rx: 3, stroke: "currentColor" });
        const text = make("text", { x: x + CELL / 2, y: y + CELL / 2 + 4, "text-anchor": "middle" }, `${number}`);
        const cell = make("g", { class: "handle cell", role: "button" }, ground, text);
        const go = (to) => model.set("chosen", to);
        cell.addEventListener("click", () => go([b, t, f]));
        cell.addEventListener("keydown", (event) => {
          const [across, down] = ARROWS[event.key] ?? [0, 0];
          if (!across && !down && event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          const to = event.shiftKey ? [b + across, t + down, f] : [b, t + down, f + across];
          if (!cells.has(to.join())) return;
          go(to);
          cells.get(to.join()).cell.focus();
        });
        svg.append(cell);
        cells.set([b, t, f].join(), { cell, ground });
      }),
    );
    return svg;
  });

  function light(members, chosen) {
    const inside = new Set(members.map((place) => place.join()));
    for (const [place, { cell, ground }] of cells) {
      const here = place === chosen.join();
      const [b, t, f] = place.split(",").map(Number);
      ground.setAttribute("fill", `var(--figure-${inside.has(place) ? 2 : 1})`);
      ground.setAttribute("fill-opacity", inside.has(place) ? 0.4 : 0.08);
      ground.setAttribute("stroke-width", here ? 3 : 0.5);
      cell.setAttribute("tabindex", here ? 0 : -1);
      cell.setAttribute("aria-pressed", here);
      cell.setAttribute(
        "aria-label",
        `${values[b][t][f]}, sequence ${b + 1}, time ${t + 1}, feature ${f + 1}${inside.has(place) ? ", in the group" : ""}`,
      );
    }
  }

  frame({
    model,
    el,
    names: ["scheme", "chosen"],
    parts: [html("div", { className: "side-by-side three" }, ...drawings)],
    hint:
      "Choose a number: its group lights up. Rows are times, columns features; " +
      "with Shift, arrow keys change the sequence.",
    buttons: choice(model, "scheme", Object.fromEntries(Object.keys(SCHEMES).map((name) => [name, name]))),
    draw({ scheme, chosen }) {
      const { members, ...result } = group({ values, scheme, chosen });
      light(members, chosen);
      const reaches = (axis) => members.some((place) => place[axis] !== chosen[axis]);
      const said =
        `${scheme}: ${result.count} numbers with mean ${result.mean.toFixed(2)} and ` +
        `spread ${result.spread.toFixed(2)}. The group ${reaches(0) ? "reaches across sequences" : "stays in its sequence"} and ` +
        `${reaches(1) ? "reaches along time" : "stays in its time step"}.`;
      return { result, said, done: reaches(0) && !reaches(1) };
    },
  });
}

export default { render };
