// Follow a number through split, heads and merge: cut and moved as it should be, and by a bare reshape.
//
// The model (anywidget's contract) holds `tokens` (T), `heads` (h), `width` (of a head), `entry` (row and column of the
// chosen number, from 0) and `back` ("right": axes moved back and put side by side; "reshape": a bare reshape);
// optionally `task`, done with a number of another token than the first that both splits put into the same place.
// It is given `result`: { right, wrong }, each the head, row and column after a split, and { merged } (2, 2), the rows
// and columns after the merge.

import { ARROWS, choice, colour, frame, make } from "./shared.js";

const [CELL, FIRST, GAP] = [20, 28, 10]; // FIRST: cells to choose, for fingers

export function follow({ tokens, heads, width, entry, back }) {
  const [row, column] = entry;
  const right = [Math.floor(column / width), row, column % width];
  const flat = row * heads * width + column;
  const wrong = [Math.floor(flat / (tokens * width)), Math.floor(flat / width) % tokens, flat % width];
  const merge = ([head, row, column]) => {
    if (back === "right") return [row, head * width + column];
    const flat = (head * tokens + row) * width + column;
    return [Math.floor(flat / (heads * width)), flat % (heads * width)];
  };
  return { right, wrong, merged: [merge(right), merge(wrong)] };
}

function render({ model, el }) {
  const { tokens, heads, width } = Object.fromEntries(["tokens", "heads", "width"].map((name) => [name, model.get(name)]));
  const d = heads * width;
  const [group, high] = [heads * width * CELL + (heads - 1) * GAP, tokens * CELL];
  const [far, second] = [2 * group + 40, group + 40];
  const [split, merged] = [tokens * FIRST + 42, tokens * FIRST + high + 70];
  const svg = make("svg", { viewBox: `-2 -20 ${far + 4} ${merged + high + 24}`, role: "group" });
  const label = (text, x, y) => svg.append(make("text", { x, y: y - 7, "text-anchor": "middle" }, text));
  const everywhere = (place) => [...Array(tokens).keys()].flatMap((t) => [...Array(d).keys()].map((c) => place([t, c])));
  // a cell with the number of the token that the entry belongs to
  const square = (side = CELL) => {
    const ground = make("rect", { width: side - 2, height: side - 2, rx: 2, stroke: "currentColor" });
    const text = make("text", { "text-anchor": "middle" });
    const cell = make("g", {}, ground, text);
    const draw = (token, x, y, chosen) => {
      ground.setAttribute("x", x + 1);
      ground.setAttribute("y", y + 1);
      ground.setAttribute("fill", colour(token));
      ground.setAttribute("fill-opacity", chosen ? 0.65 : 0.15);
      ground.setAttribute("stroke-width", chosen ? 3 : 0.5);
      text.setAttribute("x", x + side / 2);
      text.setAttribute("y", y + side / 2 + 4);
      text.setAttribute("font-weight", chosen ? 700 : 400);
      text.textContent = token;
    };
    return { cell, draw };
  };
  const start = (far - d * FIRST) / 2;
  label("before: a row for each token", far / 2, 0);
  const cells = [...Array(tokens).keys()].map((t) =>
    [...Array(d).keys()].map((c) => {
      const made = square(FIRST);
      made.cell.setAttribute("class", "handle cell");
      made.cell.setAttribute("role", "button");
      made.cell.setAttribute("aria-label", `token ${t}, column ${c + 1}`);
      made.cell.addEventListener("click", () => model.set("entry", [t, c]));
      made.cell.addEventListener("keydown", (event) => {
        const [across, down] = ARROWS[event.key] ?? [0, 0];
        if (!across && !down && event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        const to = cells[t + down]?.[c + across];
        if (!to) return;
        model.set("entry", [t + down, c + across]);
        to.cell.focus();
      });
      svg.append(made.cell);
      return made;
    }),
  );
  const sides = [
    { left: 0, title: "right: cut, then move" },
    { left: second, title: "wrong: a bare reshape" },
  ].map(({ left, title }) => {
    label(title, left + group / 2, split - 13);
    for (let head = 0; head < heads; head += 1) {
      label(`head ${head + 1}`, left + head * (width * CELL + GAP) + (width * CELL) / 2, split);
    }
    label("merged", left + group / 2, merged);
    const kinds = ["split", "merged"].map(() => everywhere((entry) => ({ entry, ...square() })));
    for (const { cell } of kinds.flat()) svg.append(cell);
    return { left, kinds };
  });

  function draw({ entry, back }) {
    const is = ([t, c]) => t === entry[0] && c === entry[1];
    cells.forEach((line, t) =>
      line.forEach(({ cell, draw }, c) => {
        draw(t, start + c * FIRST, t * FIRST, is([t, c]));
        cell.setAttribute("tabindex", is([t, c]) ? 0 : -1);
        cell.setAttribute("aria-pressed", is([t, c]));
      }),
    );
    sides.forEach(({ left, kinds }, side) => {
      const within = left + (group - d * CELL) / 2;
      for (const { entry: at, draw } of kinds[0]) {
        const [head, row, column] = follow({ tokens, heads, width, entry: at, back })[side ? "wrong" : "right"];
        draw(at[0], left + head * (width * CELL + GAP) + column * CELL, split + row * CELL, is(at));
      }
      for (const { entry: at, draw } of kinds[1]) {
        const [row, column] = follow({ tokens, heads, width, entry: at, back }).merged[side];
        draw(at[0], within + column * CELL, merged + row * CELL, is(at));
      }
    });
  }

  frame({
    model,
    el,
    names: ["tokens", "heads", "width", "entry", "back"],
    parts: [svg],
    hint: "Choose a number above: it says which token it belongs to. A head takes its rows for tokens.",
    buttons: ["merge", ...choice(model, "back", { "axes back, side by side": "right", "bare reshape": "reshape" })],
    draw(now) {
      const result = follow(now);
      draw(now);
      const { right, wrong, merged } = result;
      const [row, column] = now.entry;
      const home = merged.map(([r, c]) => r === row && c === column);
      const after = ([head, at]) => `head ${head + 1} as token ${at}`;
      const ends = ([r, c], at) => (home[at] ? "back where it was" : `at token ${r}, column ${c + 1}`);
      const said =
        `Token ${row}, column ${column + 1}: split right, it is in ${after(right)}, and after the merge ` +
        `${ends(merged[0], 0)}; by the bare reshape in ${after(wrong)}, and after the merge ${ends(merged[1], 1)}.`;
      svg.setAttribute("aria-label", `a table of ${tokens} tokens, its two splits into ${heads} heads, and their merges. ${said}`);
      return { result, said, done: row > 0 && String(right) === String(wrong) };
    },
  });
}

export default { render };
