// Paint a mask: who may look at whom, and from whom a token has heard after some layers.
//
// The model (anywidget's contract) holds `names` (T), `mask` (T, T) of 0 and 1, rows are queries, and `layers`; optionally
// `task`, done when the last token hears from the first in no more layers than it needs, with at most `most` entries
// in a row. It is given `result`: { reach } (T, T) of 0 and 1, what a token has heard of (it keeps what it has).

import { button, frame, html, make, paintable, plain, table } from "./shared.js";

export function heard(mask, layers) {
  const tokens = [...mask.keys()];
  let reach = tokens.map((row) => tokens.map((column) => Number(row === column)));
  for (let layer = 0; layer < layers; layer += 1) {
    reach = tokens.map((row) =>
      tokens.map((column) => Number(reach[row][column] || tokens.some((by) => mask[row][by] && reach[by][column]))),
    );
  }
  return reach;
}

const PRESETS = {
  all: () => 1,
  causal: (row, column) => Number(column <= row),
  "window of two": (row, column) => Number(column === row || column === row - 1),
  "prefix of three": (row, column) => Number(column <= row || column < 3),
};

function render({ model, el }) {
  const names = model.get("names");
  const most = model.get("most") ?? names.length;
  const last = names.length - 1;
  const left = make("svg", { role: "group" });
  left.setAttribute("aria-label", "the mask: rows look at columns; arrow keys move, Space paints");
  const right = make("svg", { role: "img" });
  const sides = { rows: names, columns: names };
  const cells = table(left, { ...sides, title: "may look at", ink: "var(--figure-1)" });
  const reached = table(right, { ...sides, title: "has heard of", ink: "var(--figure-2)" });
  const paint = paintable(model, "mask", left, cells, (row, column) => `${names[row]} may look at ${names[column]}`);
  const ruled = (rule) => names.map((_, row) => names.map((_, column) => rule(row, column)));
  const preset = ([name, rule]) => button(name, () => model.set("mask", ruled(rule)));

  frame({
    model,
    el,
    names: ["mask", "layers"],
    parts: [html("div", { className: "side-by-side" }, left, right)],
    hint: "Paint on the left. In each layer a token hears what those it looks at have heard, and keeps what it has.",
    buttons: Object.entries(PRESETS).map(preset),
    controls: [plain(model, "layers", "layers", { min: 1, max: last, step: 1 })],
    draw({ mask, layers }) {
      const reach = heard(mask, layers);
      paint();
      reach.forEach((line, row) =>
        line.forEach((on, column) => reached[row][column].setAttribute("fill-opacity", on ? 0.85 : 0.05)),
      );
      const sum = (line) => line.reduce((total, one) => total + one, 0);
      const said =
        `After ${layers} layer${layers > 1 ? "s" : ""} “${names[last]}” has heard of ${sum(reach[last])} of ` +
        `${names.length} tokens${reach[last][0] ? `, also of “${names[0]}”.` : `, but not of “${names[0]}”.`}`;
      right.setAttribute("aria-label", `a map of who has heard of whom. ${said}`);
      return { result: { reach }, said, done: reach[last][0] && mask.every((line) => sum(line) <= most) };
    },
  });
}

export default { render };
