// Mixing matrices: which token hears which in five kinds of layers, and how many free numbers that takes.
//
// The model (anywidget's contract) holds `kind` (of KINDS), `length` (T, at most 12) and `tokens` (a whole number: which
// random tokens); optionally `task` and `goal` ({ length, most }: all pairs of at least so many tokens, with at most so
// many free numbers). It is given `result`: { table } (T, T), of the recurrence its slopes, { numbers }, how many are free,
// and { pairs }, the entries that are not zero. The layers are the chapter's, with random numbers of variance 1.

import { button, choice, colour, frame, make, minus, plain, random, softmax, table } from "./shared.js";

const MOST = 12; // tokens
const [WIDTH, KEEP, STEP] = [4, 0.7, 1e-4]; // of the chapter
const CELL = 34;

const draws = (next) => (rows, columns, by) =>
  Array.from({ length: rows }, () => Array.from({ length: columns }, () => by * Math.sqrt(3) * (2 * next() - 1)));
const dot = (one, other) => one.reduce((sum, entry, at) => sum + entry * other[at], 0);
const times = (row, matrix) => matrix[0].map((_, column) => row.reduce((sum, entry, at) => sum + entry * matrix[at][column], 0));

const drawn = draws(random(1));
const PLACE = drawn(MOST, MOST, 1);
const [NEAR] = drawn(1, 3, 1 / Math.sqrt(3));
const [W_Q, W_K] = [1, 2].map(() => drawn(WIDTH, WIDTH, 1.5 / Math.sqrt(WIDTH)));
const [W_IN, W_STATE] = [1, 2].map(() => drawn(WIDTH, WIDTH, 1 / Math.sqrt(WIDTH)));

function recurrence(X) {
  let state = Array(WIDTH).fill(0);
  return X.map((token) => {
    const [new_, old] = [times(token, W_IN), times(state, W_STATE)];
    return (state = new_.map((entry, at) => Math.tanh(entry + old[at])));
  });
}

// Largest change of each output per unit change of each token, as the chapter measures it.
function slopes(X) {
  const before = recurrence(X);
  const moved = X.map((_, token) => {
    const after = recurrence(X.map((row, at) => (at === token ? row.map((entry) => entry + STEP) : row)));
    return after.map((row, at) => Math.max(...row.map((entry, i) => Math.abs(entry - before[at][i]))) / STEP);
  });
  return X.map((_, row) => moved.map((line) => line[row]));
}

function attention(X) {
  const [queries, keys] = [W_Q, W_K].map((matrix) => X.map((row) => times(row, matrix)));
  return queries.map((query) => softmax(keys.map((key) => dot(query, key) / Math.sqrt(WIDTH))));
}

const byAge = (entry) => (X) => X.map((_, row) => X.map((_, column) => entry(row - column)));
const same = "Other tokens, the same matrix.";
const KINDS = {
  mlp_mixer: {
    name: "MLP-Mixer",
    make: (X) => X.map((_, row) => X.map((_, column) => PLACE[row][column] / Math.sqrt(X.length))),
    numbers: (length) => length ** 2,
    said: `one for each pair of places. ${same}`,
  },
  convolution: {
    name: "convolution",
    make: byAge((age) => NEAR[1 - age] ?? 0),
    numbers: () => NEAR.length,
    said: `one for each distance, whatever the length. ${same}`,
  },
  state_space: {
    name: "state space",
    make: byAge((age) => (age < 0 ? 0 : KEEP ** age)),
    numbers: () => 1,
    said: `the share kept, whatever the length. ${same}`,
  },
  recurrence: {
    name: "recurrence",
    make: slopes,
    numbers: () => 2 * WIDTH ** 2,
    said: "in two matrices, whatever the length. These are slopes: other tokens, other slopes.",
  },
  attention: {
    name: "attention",
    make: attention,
    numbers: () => 2 * WIDTH ** 2,
    said: "in W_Q and W_K, whatever the length. Other tokens, another matrix.",
  },
};

function render({ model, el }) {
  const svg = make("svg", { role: "img" });

  frame({
    model,
    el,
    names: ["kind", "length", "tokens"],
    parts: [svg],
    hint: "Rows are outputs, columns inputs: blue is positive, orange negative, × is zero. Tokens have 4 features.",
    buttons: [
      ...choice(model, "kind", Object.fromEntries(Object.entries(KINDS).map(([kind, { name }]) => [name, kind]))),
      button("Other tokens", () => model.set("tokens", model.get("tokens") + 1)),
    ],
    controls: [plain(model, "length", "tokens", { min: 2, max: MOST, step: 1 })],
    draw({ kind, length, tokens }) {
      const { name, make, numbers: free, said: how } = KINDS[kind];
      const matrix = make(draws(random(100 + tokens))(length, WIDTH, 1));
      const pairs = matrix.flat().filter((entry) => entry !== 0).length;
      const result = { table: matrix, numbers: free(length), pairs };
      const places = matrix.map((_, at) => `${at + 1}`);
      const numbers = matrix.map((line) => line.map((entry) => (entry === 0 ? "×" : minus(entry.toFixed(2).replace("0.", ".")))));
      const title = kind === "recurrence" ? `${name}: slopes` : name;
      const cells = table(svg, { rows: places, columns: places, title, ink: colour(0), cell: CELL, numbers });
      const left = -24 - (CELL * (MOST - length)) / 2; // cells as large for few tokens, in the middle
      svg.setAttribute("viewBox", `${left} -20 ${CELL * MOST + 28} ${CELL * MOST + 42}`);
      const largest = Math.max(...matrix.flat().map(Math.abs));
      matrix.forEach((line, row) =>
        line.forEach((entry, column) => {
          const cell = cells[row][column];
          cell.setAttribute("fill", colour(entry < 0 ? 1 : 0));
          cell.setAttribute("fill-opacity", (0.55 * Math.abs(entry)) / largest);
          if (!entry) cell.setAttribute("stroke-opacity", 0.15);
        }),
      );
      const count = `${result.numbers} free number${result.numbers > 1 ? "s" : ""}`;
      const said = `${name}, ${length} tokens: ${pairs} of ${length ** 2} pairs by ${count}, ${how}`;
      svg.setAttribute("aria-label", `a table of ${length} by ${length} entries. ${said} Its last row: ${numbers.at(-1).join(" ")}`);
      const goal = model.get("goal");
      const all = pairs === length ** 2;
      return { result, said, done: goal && all && length >= goal.length && result.numbers <= goal.most };
    },
  });
}

export default { render };
