// A lookup to take hold of: a query and its keys in the plane, the weights, and the average of the values.
//
// The model (anywidget's contract) holds `names` (K), `keys` (K, 2), `query` (2), `values` (K) and `temperature`, by which
// the scaled scores are divided; optionally `task` (a sentence) and `goal` ({ below } or { above } for the output).
// It is given `result`: { scores, weights, output }.

import { ARROWS, colour, drag, frame, make, powers, softmax } from "./shared.js";

const STEP = 0.1; // of an arrow key; ten times as much with Shift
const UNIT = 62; // pixels of a unit in the plane
const ORIGIN = [180, 105];
const REACH = [2.6, 1.5]; // how far handles go, in units

export function lookup({ query, keys, values, temperature }) {
  const scores = keys.map((key) => (key[0] * query[0] + key[1] * query[1]) / Math.sqrt(query.length));
  const weights = softmax(scores.map((score) => score / temperature));
  return { scores, weights, output: weights.reduce((total, weight, place) => total + weight * values[place], 0) };
}

function render({ model, el }) {
  const names = model.get("names");
  const values = model.get("values");
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const across = (value) => 40 + (280 * (value - low)) / span;
  const rows = names.map((_, place) => 240 + 20 * place);
  const axis = rows.at(-1) + 50;

  const svg = make("svg", { viewBox: `0 0 360 ${axis + 26}`, role: "group", "aria-label": "query, keys, weights and values" });
  const plane = svg.appendChild(make("g"));
  plane.append(make("path", { d: `M20 ${ORIGIN[1]}H340M${ORIGIN[0]} 10V200`, stroke: "currentColor", "stroke-opacity": 0.25 }));

  // -- what can be taken hold of: the query, then the keys

  function handle(label, ink, read, write) {
    const line = make("path", { stroke: ink, "stroke-width": label === "query" ? 3.5 : 2, fill: "none" });
    const grip = make("circle", { r: 7, fill: ink, class: "grip" });
    const words = make("text", { "text-anchor": "middle", "aria-hidden": "true" }, label);
    const area = make("circle", { r: 22, fill: "transparent" }); // for fingers
    const group = make("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": label }, line, grip, words, area);
    const move = ([x, y]) => {
      const within = (value, most) => Math.max(-most, Math.min(most, Math.round(value * 100) / 100));
      write([within(x, REACH[0]), within(y, REACH[1])]);
    };
    drag(svg, group, (x, y) => move([(x - ORIGIN[0]) / UNIT, (ORIGIN[1] - y) / UNIT]));
    group.addEventListener("keydown", (event) => {
      if (!ARROWS[event.key]) return;
      event.preventDefault();
      event.stopPropagation();
      const [across, down] = ARROWS[event.key];
      const [x, y] = read();
      const far = event.shiftKey ? 10 * STEP : STEP;
      move([x + far * across, y - far * down]);
    });
    const draw = () => {
      const [x, y] = read();
      const tip = [ORIGIN[0] + UNIT * x, ORIGIN[1] - UNIT * y];
      line.setAttribute("d", `M${ORIGIN}L${tip}`);
      for (const circle of [grip, area]) {
        circle.setAttribute("cx", tip[0]);
        circle.setAttribute("cy", tip[1]);
      }
      words.setAttribute("x", tip[0]);
      words.setAttribute("y", tip[1] + (y < 0 || label === "query" ? 22 : -12));
      group.setAttribute("aria-valuenow", x);
      group.setAttribute("aria-valuemin", -REACH[0]);
      group.setAttribute("aria-valuemax", REACH[0]);
      group.setAttribute("aria-valuetext", `${x} to the right, ${y} up`);
    };
    plane.append(group);
    return draw;
  }

  const handles = names.map((name, place) =>
    handle(
      `key: ${name}`,
      colour(place),
      () => model.get("keys")[place],
      (to) => model.set("keys", model.get("keys").map((key, other) => (other === place ? to : key))),
    ),
  );
  handles.push(handle("query", "currentColor", () => model.get("query"), (to) => model.set("query", to)));

  // -- weights and values

  const bars = names.map((name, place) => {
    const bar = make("rect", { x: 80, y: rows[place] - 7, height: 14, fill: colour(place) });
    const number = make("text", { y: rows[place] + 4 });
    svg.append(make("text", { x: 74, y: rows[place] + 4, "text-anchor": "end" }, name), bar, number);
    return (weight) => {
      bar.setAttribute("width", 220 * weight);
      number.setAttribute("x", 86 + 220 * weight);
      number.textContent = weight.toFixed(2);
    };
  });
  svg.append(make("path", { d: `M40 ${axis}H320`, stroke: "currentColor", "stroke-opacity": 0.4 }));
  names.forEach((name, place) => {
    const x = across(values[place]);
    svg.append(make("circle", { cx: x, cy: axis, r: 4.5, fill: colour(place) }));
    svg.append(make("text", { x, y: axis - 12, "text-anchor": "middle" }, `${name}: ${values[place]}`));
  });
  const mark = svg.appendChild(make("path", { fill: "currentColor" }));
  const output = svg.appendChild(make("text", { "text-anchor": "middle", "font-weight": 700 }));

  frame({
    model,
    el,
    names: ["query", "keys", "temperature"],
    parts: [svg],
    hint: "Drag the round ends, or move them with the arrow keys.",
    controls: [powers(model, "temperature", "temperature", { min: -1, max: 1, step: 0.05 }, (at) => at.toFixed(2))],
    draw({ query, keys, temperature }) {
      const result = lookup({ query, keys, values, temperature });
      for (const draw of handles) draw();
      bars.forEach((draw, place) => draw(result.weights[place]));
      const x = across(result.output);
      mark.setAttribute("d", `M${x} ${axis - 7}l7 7l-7 7l-7-7z`);
      output.setAttribute("x", x);
      output.setAttribute("y", axis + 20);
      output.textContent = `output ${result.output.toFixed(2)}`;
      const best = result.weights.indexOf(Math.max(...result.weights));
      const said =
        `${names[best]} gets most, ${result.weights[best].toFixed(2)} of the weight; the output is ` +
        `${result.output.toFixed(2)}.`;
      const { below = Infinity, above = -Infinity } = model.get("goal") ?? {};
      return { result, said, done: result.output < below && result.output > above };
    },
  });
}

export default { render };
