// Design a head: a table of who asks for whom, times a scale, tried on a text of one's own and on all short texts.
//
// The model (anywidget's contract) holds `names` (n signs), `wish` (n, n) of 0 and 1, rows are queries, `scale`, and
// `text` (of signs); optionally `task` and `goal` ({ wish, least, most }: this table, with at least so much in the weakest
// row, at a scale of at most so much). It is given `result`: { weights } (T, T) and, over all texts of up to four signs,
// { weakest }, the least weight that a row with something to find puts on it (null where no row has), and { lost }, the
// number of rows without.

import { colour, frame, html, make, paintable, plain, softmax, table, writing } from "./shared.js";

const LONGEST = 4; // of the texts that are all tried
const MOST = 8; // signs in the reader's own

export function weigh(text, wish, scale) {
  return text.map((query) => softmax(text.map((key) => scale * wish[query][key])));
}

export function tried(wish, scale) {
  let found = { weakest: null, lost: 0, where: null };
  const more = (text) => {
    weigh(text, wish, scale).forEach((line, row) => {
      const right = text.map((key) => wish[text[row]][key]);
      const weight = line.reduce((sum, share, at) => sum + right[at] * share, 0);
      if (!right.includes(1)) found.lost += 1;
      else if (found.weakest === null || weight < found.weakest) {
        found = { ...found, weakest: weight, where: { text, row } };
      }
    });
  };
  const grow = (text) => {
    if (text.length) more(text);
    if (text.length < LONGEST) wish.forEach((_, sign) => grow([...text, sign]));
  };
  grow([]);
  return found;
}

function render({ model, el }) {
  const names = model.get("names");
  const signs = (text) => [...text].map((sign) => names.indexOf(sign));
  const left = make("svg", { role: "group", "aria-label": "who asks for whom; arrow keys move, Space paints" });
  const right = make("svg", { role: "img" });
  const cells = table(left, { rows: names, columns: names, title: "asks for", ink: colour(0), cell: 32 });
  const paint = paintable(model, "wish", left, cells, (row, column) => `${names[row]} asks for ${names[column]}`);
  frame({
    model,
    el,
    names: ["wish", "scale", "text"],
    parts: [html("div", { className: "side-by-side" }, left, right)],
    hint: "Paint on the left which sign asks for which. The scores are the scale times this table.",
    controls: [writing(model, names, MOST), plain(model, "scale", "scale", { min: 0, max: 12, step: 0.1 }, (scale) => scale.toFixed(1))],
    draw({ wish, scale, text }, start) {
      const weights = weigh(signs(text), wish, scale);
      const { weakest, lost, where } = tried(wish, scale);
      paint();
      const numbers = weights.map((line) => line.map((weight) => weight.toFixed(2)));
      const sides = { rows: [...text], columns: [...text] };
      table(right, { ...sides, title: "looks at", ink: colour(1), cell: 32, numbers }).forEach((line, row) =>
        line.forEach((cell, at) => cell.setAttribute("fill-opacity", 0.03 + 0.5 * weights[row][at])),
      );
      const whole = `Of all texts of up to ${LONGEST} signs`;
      const said =
        (where === null
          ? `${whole} no row finds what it asks for`
          : `${whole} the weakest row puts ${weakest.toFixed(3)} on what it asks for ` +
            `(“${names[where.text[where.row]]}” in “${where.text.map((sign) => names[sign]).join("")}”)`) +
        (lost ? `; ${lost} rows find nothing and look at all evenly.` : "; every row finds something.");
      const lines = [...text].map((sign, row) => `${sign}: ${numbers[row].join(" ")}`);
      right.setAttribute("aria-label", `weights of the text ${text}, a row for each query. ${lines.join("; ")}`);
      const goal = model.get("goal") ?? {};
      const done = String(wish) === String(goal.wish) && weakest >= goal.least && scale <= goal.most;
      return { result: { weights, weakest, lost }, said, done };
    },
  });
}

export default { render };
