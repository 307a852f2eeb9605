// What is kept: the cache of keys and values while a text is written, with heads that share them.
//
// The model (anywidget's contract) holds `heads` (of queries), `groups` (of keys and values, a divisor of `heads`),
// `width` of a head and `tokens` written so far; optionally `task` and `goal` ({ least tokens, most
// numbers }). It is given `result`: { kept, projected, without }: numbers in the cache, tokens multiplied by the
// matrices of keys and of values so far, and how many that were without a cache.

import { button, choice, frame, make, plain } from "./shared.js";

const FAR = 8; // tokens
const [LEFT, SIDE, GAP] = [70, 22, 4];

export function counted({ groups, width, tokens }) {
  return { kept: 2 * groups * tokens * width, projected: 2 * tokens, without: tokens * (tokens + 1) };
}

function render({ model, el }) {
  const heads = model.get("heads");
  const high = heads * (2 * SIDE + 3 * GAP);
  const svg = make("svg", { viewBox: `-8 0 ${LEFT + FAR * (SIDE + GAP) + 50} ${high + 24}`, role: "img" });
  const kinds = [...Array(heads).keys()]
    .map((one) => heads - one)
    .filter((groups) => heads % groups === 0)
    .map((groups) => [`${groups === heads ? "MHA" : groups === 1 ? "MQA" : "GQA"}: ${groups}`, groups]);
  const next = button("Write a token", () => model.set("tokens", Math.min(FAR, model.get("tokens") + 1)));

  function draw({ groups, tokens: written }) {
    const each = high / groups;
    const parts = [...Array(heads).keys()].map((head) => {
      const group = Math.floor((head * groups) / heads);
      const [y, to] = [(head + 0.5) * (high / heads), (group + 0.5) * each];
      return make("g", {}, ...[
        make("path", { d: `M38 ${y}L${LEFT - 6} ${to}`, stroke: "currentColor", "stroke-opacity": 0.5 }),
        make("text", { x: 34, y: y + 4, "text-anchor": "end" }, `head ${head + 1}`),
      ]);
    });
    for (let group = 0; group < groups; group += 1) {
      const middle = (group + 0.5) * each;
      for (let token = 0; token < written; token += 1) {
        ["K", "V"].forEach((letter, row) => {
          const x = LEFT + token * (SIDE + GAP);
          const y = middle - SIDE - GAP / 2 + row * (SIDE + GAP);
          const fresh = token === written - 1;
          parts.push(
            make("rect", {
              x,
              y,
              width: SIDE,
              height: SIDE,
              rx: 3,
              fill: `var(--figure-${row ? 4 : 1})`,
              "fill-opacity": fresh ? 0.6 : 0.25,
              stroke: "currentColor",
              "stroke-width": fresh ? 2 : 0.5,
            }),
            make("text", { x: x + SIDE / 2, y: y + SIDE / 2 + 4, "text-anchor": "middle" }, letter),
          );
        });
      }
    }
    for (let token = 0; token < written; token += 1) {
      const x = LEFT + token * (SIDE + GAP) + SIDE / 2;
      parts.push(make("text", { x, y: high + 14, "text-anchor": "middle" }, `${token + 1}`));
    }
    parts.push(make("text", { x: LEFT + FAR * (SIDE + GAP) + 2, y: high + 14 }, "token"));
    svg.replaceChildren(...parts);
  }

  frame({
    model,
    el,
    names: ["heads", "groups", "width", "tokens"],
    parts: [svg],
    buttons: ["heads of keys and values", ...choice(model, "groups", Object.fromEntries(kinds)), next],
    controls: [plain(model, "tokens", "tokens written", { min: 1, max: FAR, step: 1 })],
    draw(now) {
      draw(now);
      const result = counted(now);
      const said =
        `The cache holds ${result.kept} numbers. ${result.projected} projections so far; ` +
        `without the cache ${result.without}.`;
      svg.setAttribute(
        "aria-label",
        `${now.heads} heads of queries on the left share ${now.groups} of keys and values; ` +
          `${now.tokens} tokens are kept. ${said}`,
      );
      const { least = Infinity, most = 0 } = model.get("goal") ?? {};
      return { result, said, done: now.tokens >= least && result.kept <= most };
    },
  });
}

export default { render };
