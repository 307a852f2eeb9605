// What the root is for: scores and weights of one query over the width of its keys.
//
// The model (anywidget's contract) holds `width` (a power of two up to 1024), `keys` (how many), `root` (1: scores are
// divided by the root of the width; 0: they are not) and `draw` (a whole number: which random entries); optionally `task`
// and `goal` ({ width, keys, most }: at these the largest weight is at most so large). Entries have mean 0 and variance 1.
// It is given `result`: { scores, weights } (keys) and { largest } (2, 11), the largest weight without and with the root
// at the widths 1, 2, 4, ..., 1024.

import { button, choice, colour, frame, make, minus, plain, random, slider, softmax } from "./shared.js";

const MOST = 64; // keys
const POWERS = 10;
const WIDTHS = [...Array(POWERS + 1).keys()].map((power) => 2 ** power);
const [WIDE, HIGH, LEFT] = [296, 100, 40];
const FAR = 200; // where the scores' axis ends

// q · k for the first 1, 2, 4, ... entries of a query and of MOST keys: (11, MOST)
function products(draw) {
  const next = random(draw);
  const vector = () => Float64Array.from({ length: WIDTHS.at(-1) }, () => Math.sqrt(3) * (2 * next() - 1));
  const query = vector();
  const rows = Array.from({ length: MOST }, () => {
    const key = vector();
    let sum = 0;
    const sums = key.map((entry, at) => (sum += entry * query[at]));
    return WIDTHS.map((width) => sums[width - 1]);
  });
  return WIDTHS.map((_, power) => rows.map((row) => row[power]));
}

function render({ model, el }) {
  let known = {};
  const words = (text, x, y, anchor = "end") => make("text", { x, y, "text-anchor": anchor }, text);
  const panel = (title) => {
    const svg = make("svg", { viewBox: `0 -18 ${LEFT + WIDE + 8} ${HIGH + 44}`, role: "img" });
    svg.append(words(title, LEFT, -7, "start"));
    return svg;
  };
  const line = (d, more) => make("path", { d, fill: "none", stroke: "currentColor", ...more });
  const level = (y, name) => [line(`M${LEFT} ${y}H${LEFT + WIDE}`, { "stroke-opacity": 0.25 }), words(name, LEFT - 5, y + 4)];
  const share = (weight) => HIGH * (1 - weight);
  const size = (score) => (HIGH / 2) * (1 - Math.asinh(score) / Math.asinh(FAR));
  const [above, middle, below] = ["score of each key", "weight of each key", "largest weight over the width"].map(panel);
  above.append(...[-100, -10, 0, 10, 100].flatMap((score) => level(size(score), minus(score))));
  for (const svg of [middle, below]) svg.append(...[0, 0.5, 1].flatMap((weight) => level(share(weight), `${weight}`)));
  const across = (power) => LEFT + 12 + ((WIDE - 24) * power) / POWERS;
  below.append(...[0, 2, 4, 6, 8, 10].map((power) => words(`${2 ** power}`, across(power), HIGH + 15, "middle")));
  const [plainly, rooted] = [colour(1), colour(0)];
  const lines = [
    below.appendChild(line("", { stroke: plainly, "stroke-width": 2, "stroke-dasharray": "6 3" })),
    below.appendChild(line("", { stroke: rooted, "stroke-width": 2 })),
  ];
  const dot = below.appendChild(make("circle", { r: 5, stroke: "currentColor", "stroke-width": 1.5 }));
  const bars = [above, middle].map((svg) => svg.appendChild(make("g")));

  function draw({ width, keys, root }, { scores, weights, largest }) {
    const each = WIDE / keys;
    const bar = (at, top, height) =>
      make("rect", { x: LEFT + each * (at + 0.15), y: top, width: 0.7 * each, height, fill: root ? rooted : plainly });
    bars[0].replaceChildren(
      ...scores.map((score, at) => bar(at, Math.min(size(score), HIGH / 2), Math.abs(size(score) - HIGH / 2))),
    );
    bars[1].replaceChildren(...weights.map((weight, at) => bar(at, share(weight), HIGH * weight)));
    const power = Math.log2(width);
    lines.forEach((path, which) => {
      const points = largest[which].map((weight, at) => `${across(at)} ${share(weight)}`);
      path.setAttribute("d", `M${points.join("L")}`);
    });
    dot.setAttribute("cx", across(power));
    dot.setAttribute("cy", share(largest[root][power]));
    dot.setAttribute("fill", root ? rooted : plainly);
  }

  const width = slider(
    "width",
    { min: 0, max: POWERS, step: 1 },
    () => Math.log2(model.get("width")),
    (power) => model.set("width", 2 ** power),
    (power) => `${2 ** power}`,
  );
  frame({
    model,
    el,
    names: ["width", "keys", "root", "draw"],
    parts: [above, middle, below],
    hint: "Solid: with the root. Dashed: without. The axis of the scores is drawn together towards its ends.",
    buttons: [
      ...choice(model, "root", { "without the root": 0, "with the root": 1 }),
      button("New vectors", () => model.set("draw", model.get("draw") + 1)),
    ],
    controls: [width, plain(model, "keys", "keys", { min: 2, max: MOST, step: 1 })],
    draw(now) {
      if (known.draw !== now.draw) known = { draw: now.draw, all: products(now.draw) };
      const of = (power, root) => {
        const by = root ? Math.sqrt(WIDTHS[power]) : 1;
        return known.all[power].slice(0, now.keys).map((product) => product / by);
      };
      const scores = of(Math.log2(now.width), now.root);
      const weights = softmax(scores);
      const largest = [0, 1].map((root) => WIDTHS.map((_, power) => Math.max(...softmax(of(power, root)))));
      const result = { scores, weights, largest };
      draw(now, result);
      const top = Math.max(...weights);
      const typical = Math.sqrt(scores.reduce((sum, score) => sum + score ** 2, 0) / now.keys);
      const setting = `Width ${now.width}, ${now.keys} keys, ${now.root ? "with" : "without"} the root`;
      const said = `${setting}: scores of a size of ${typical.toFixed(1)}, the largest weight is ${top.toFixed(2)}.`;
      above.setAttribute("aria-label", `the scores of ${now.keys} keys as bars. ${said}`);
      middle.setAttribute("aria-label", `their weights as bars. ${said}`);
      const ends = largest.map((line) => line.at(-1).toFixed(2));
      below.setAttribute("aria-label", `the largest weight over widths to 1024: there ${ends[0]} without, ${ends[1]} with the root`);
      const { width: at, keys: many, most } = model.get("goal") ?? {};
      return { result, said, done: now.width === at && now.keys === many && top <= most };
    },
  });
}

export default { render };
