// What is drawn from: temperature, top-k and top-p on the next words of several texts at once.
//
// The model (anywidget's contract) holds `texts` (each { begins, words (n), counts (n), the likeliest first }; without a
// change a word's probability is its share of the counts), `temperature`, `k` and `p`; optionally `task` and `goal`
// ({ keep }, so many words in each text). It is given `result`: { chances, drawn, kept }: for each text the
// probabilities (n) by temperature alone and of what is drawn, and how many words may be drawn.

import { colour, frame, html, make, plain, powers } from "./shared.js";

const [ROW, LEFT, FAR, HEAD] = [21, 62, 150, 24];

const shares = (numbers) => {
  const sum = numbers.reduce((one, other) => one + other, 0);
  return numbers.map((number) => number / sum);
};

export function sample(counts, { temperature, k, p }) {
  const most = counts[0];
  const chances = shares(counts.map((count) => (count / most) ** (1 / temperature)));
  let drawn = shares(chances.map((chance, at) => (at < k ? chance : 0)));
  let before = 0;
  drawn = drawn.map((chance) => {
    const reached = before >= p - 1e-9; // by those before
    before += chance;
    return reached ? 0 : chance;
  });
  return { chances, drawn: shares(drawn), kept: drawn.filter(Boolean).length };
}

function render({ model, el }) {
  const texts = model.get("texts");
  const drawings = texts.map(({ begins, words }) => {
    const svg = make("svg", { viewBox: `0 0 ${LEFT + FAR + 40} ${HEAD + ROW * words.length}`, role: "img" });
    svg.append(make("text", { x: LEFT, y: 12, "font-weight": 700 }, `${begins} …`));
    const rows = words.map((word, at) => {
      const y = HEAD + ROW * at;
      const bar = make("rect", { x: LEFT, y: y + 2, height: ROW - 5, fill: colour(0), "fill-opacity": 0.75 });
      const outline = make("rect", { x: LEFT, y: y + 2, height: ROW - 5, fill: "none", stroke: "currentColor" });
      outline.setAttribute("stroke-dasharray", "3 2");
      const number = make("text", { y: y + ROW / 2 + 3 });
      const name = make("text", { x: LEFT - 6, y: y + ROW / 2 + 3, "text-anchor": "end" }, word);
      svg.append(bar, outline, number, name);
      return (chance, drawn) => {
        bar.setAttribute("width", FAR * drawn);
        outline.setAttribute("width", FAR * chance);
        number.setAttribute("x", LEFT + FAR * Math.max(chance, drawn) + 5);
        number.textContent = drawn ? drawn.toFixed(2) : "cut";
      };
    });
    return { svg, rows };
  });
  const n = Math.max(...texts.map(({ words }) => words.length));

  frame({
    model,
    el,
    names: ["texts", "temperature", "k", "p"],
    parts: [html("div", { className: "side-by-side" }, ...drawings.map(({ svg }) => svg))],
    hint: "Dashed: the probability after the temperature. Filled: what is drawn from, after top-k and then top-p have cut.",
    controls: [
      powers(model, "temperature", "temperature", { min: -1, max: 0.7, step: 0.02 }, (at) => at.toFixed(2)),
      plain(model, "k", "top-k", { min: 1, max: n, step: 1 }),
      plain(model, "p", "top-p", { min: 0.05, max: 1, step: 0.05 }, (p) => p.toFixed(2)),
    ],
    draw(now) {
      const found = now.texts.map(({ counts }) => sample(counts, now));
      const said = found.map(({ chances, drawn, kept }, which) => {
        drawings[which].rows.forEach((draw, at) => draw(chances[at], drawn[at]));
        const { begins, words } = texts[which];
        const first = `“${words[0]}” with ${drawn[0].toFixed(2)}`;
        const told = `After “${begins}” ${kept} of ${words.length} words may be drawn, ${first}.`;
        drawings[which].svg.setAttribute("aria-label", told);
        return told;
      });
      const each = (name) => found.map((one) => one[name]);
      const result = { chances: each("chances"), drawn: each("drawn"), kept: each("kept") };
      return { result, said: said.join(" "), done: String(result.kept) === String(model.get("goal")?.keep) };
    },
  });
}

export default { render };
