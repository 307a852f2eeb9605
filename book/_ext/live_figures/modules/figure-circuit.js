// The induction circuit: a head that copies each token's predecessor, and one that looks at who came after its own sign.
//
// The model (anywidget's contract) holds `names` (the signs), `text` (of signs) and `heads`: for each layer 1, or 0 where
// its head adds nothing; optionally `task` and `goal` (the guess that it wants after the text, to within 0.01). It is given
// `result`, of begin and the text: { first, second } (T + 1, T + 1), the weights of both layers, { before } (T + 1, 5),
// what layer 1 has written, and { guess } (T + 1, n), of each token.

import { button, colour, frame, html, make, softmax, table, writing } from "./shared.js";

const G = 8; // of the chapter's matrices
const MOST = 8; // signs
const CELL = 32;

// `tokens` are the numbers of the signs; begin is the first, and has the number `begin`.
export function induce(tokens, begin, heads) {
  // causal weights of a score (query, key)
  const map = (score) =>
    tokens.map((_, query) => softmax(tokens.map((_, key) => (key > query ? -Infinity : score(query, key)))));
  // what the tokens' signs make on average, times 0 where a head is off
  const copied = (weights, signs, on) =>
    weights.map((line) =>
      Array.from({ length: signs }, (_, sign) => on * line.reduce((sum, share, at) => sum + share * (tokens[at] === sign), 0)),
    );
  const first = map((query, key) => 2 * G * (key === query - 1));
  const before = copied(first, begin + 1, heads[0]);
  const second = map((query, key) => {
    const fallback = tokens[query] !== begin && tokens[key] === begin;
    return 2 * G * before[key][tokens[query]] + G * fallback;
  });
  return { first, before, second, guess: copied(second, begin, heads[1]) };
}

function render({ model, el }) {
  const names = model.get("names");
  const maps = [0, 1].map(() => make("svg", { role: "img" }));
  const answer = make("svg", { role: "img" });
  const layers = maps.map((_, layer) => {
    const turn = () => model.set("heads", model.get("heads").map((on, at) => (at === layer ? 1 - on : on)));
    const made = button(`head of layer ${layer + 1}`, turn);
    made.draw = () => made.setAttribute("aria-pressed", Boolean(model.get("heads")[layer]));
    return made;
  });
  const number = (weight) => (weight < 0.005 ? "" : weight.toFixed(2));
  const fill = (cells, weights, ink = 1) =>
    cells.forEach((line, row) =>
      line.forEach((cell, at) => cell.setAttribute("fill-opacity", ink * (0.03 + 0.5 * weights[row][at]))),
    );

  frame({
    model,
    el,
    names: ["text", "heads"],
    parts: [html("div", { className: "side-by-side" }, ...maps, answer)],
    hint:
      "Write a text, and switch heads off: their maps turn pale, and they add nothing. b is the begin token. " +
      "Under the map of layer 2: the sign before each, as layer 1 wrote it.",
    buttons: layers,
    controls: [writing(model, names, MOST)],
    draw({ text, heads }) {
      const tokens = [names.length, ...[...text].map((sign) => names.indexOf(sign))];
      const result = induce(tokens, names.length, heads);
      const signs = [...names, "b"];
      const shown = tokens.map((token) => signs[token]);
      // the sign before each token, as far as layer 1 has written it
      const before = result.before.map((line) => signs[line.findIndex((share) => share > 0.5)] ?? "–");
      [result.first, result.second].forEach((weights, layer) => {
        const title = `layer ${layer + 1}${heads[layer] ? " looks at" : ", off"}`;
        const numbers = weights.map((line) => line.map(number));
        const svg = maps[layer];
        fill(table(svg, { rows: shown, columns: shown, title, ink: colour(layer), cell: CELL, numbers }), weights, heads[layer] || 0.2);
        svg.setAttribute("opacity", heads[layer] ? 1 : 0.75);
        const under = CELL * shown.length;
        svg.setAttribute("viewBox", `-46 -20 ${under + 50} ${under + 58}`); // room for the line below
        const lines = shown.map((sign, row) => `${sign}: ${weights[row].slice(0, row + 1).map((w) => w.toFixed(2)).join(" ")}`);
        let label = `weights of layer ${layer + 1}${heads[layer] ? "" : ", which is off"}, a row for each query. ${lines.join("; ")}`;
        if (layer) {
          svg.append(make("text", { x: -5, y: under + 32, "text-anchor": "end" }, "before"));
          before.forEach((sign, at) =>
            svg.append(make("text", { x: CELL * (at + 0.5), y: under + 32, "text-anchor": "middle" }, sign)),
          );
          label += `. What layer 1 wrote of the sign before: ${before.join(" ")}`;
        }
        svg.setAttribute("aria-label", label);
      });
      const last = result.guess.at(-1);
      const found = names.map((sign, at) => [sign, last[at]]).filter(([, share]) => share >= 0.005);
      const guessed = found.map(([sign, share]) => `“${sign}” with ${share.toFixed(2)}`).join(", ");
      fill(
        table(answer, { rows: [""], columns: names, title: "guess of the next sign", ink: colour(2), cell: CELL, numbers: [last.map(number)] }),
        [last],
      );
      answer.setAttribute("viewBox", `-46 -20 ${CELL * names.length + 92} ${CELL + 44}`);
      answer.setAttribute("aria-label", `the guess after the text ${text}: ${guessed || "none"}`);
      const why = !heads[1]
        ? "layer 2 is off and hands nothing over"
        : !heads[0]
          ? "layer 1 is off, so no token knows who came before it, and layer 2 looks at begin"
          : `nothing has followed “${text.at(-1)}” so far, so layer 2 looks at begin`;
      const said = guessed ? `After “${text}” the guess is ${guessed}.` : `After “${text}” there is no guess: ${why}.`;
      return { result, said, done: model.get("goal")?.every((share, at) => Math.abs(share - last[at]) < 0.01) };
    },
  });
}

export default { render };
