// What is kept: the cache of keys and values while a text is written, with heads that share them.
//
// The model (anywidget's contract) holds `heads` (of queries), `groups` (of keys and values, a divisor of `heads`),
// `width` of a head and `tokens` written so far; optionally `task` and `goal` ({ least tokens, most
// numbers }). It is given `result`: { kept, projected, without }: numbers in the cache, tokens multiplied by the
// matrices of keys and of values so far, and how many that were without a cache.

const SVG = "http://www.w3.org/2000/svg";
const FAR = 8; // tokens
const [LEFT, SIDE, GAP] = [70, 22, 4];

function make(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function html(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

export function counted({ groups, width, tokens }) {
  return { kept: 2 * groups * tokens * width, projected: 2 * tokens, without: tokens * (tokens + 1) };
}

function render({ model, el }) {
  const settings = () => Object.fromEntries(["heads", "groups", "width", "tokens"].map((name) => [name, model.get(name)]));
  const start = settings();
  const { heads } = start;
  const high = heads * (2 * SIDE + 3 * GAP);
  const svg = make("svg", { viewBox: `0 0 ${LEFT + FAR * (SIDE + GAP) + 70} ${high + 24}`, role: "img" });
  const choices = [...Array(heads).keys()].map((one) => one + 1).filter((groups) => heads % groups === 0);

  const kinds = choices.reverse().map((groups) => {
    const name = groups === heads ? "MHA" : groups === 1 ? "MQA" : "GQA";
    const button = html("button", { type: "button", textContent: `${name}: ${groups}` });
    button.addEventListener("click", () => model.set("groups", groups));
    return [groups, button];
  });
  const tokens = html("input", { type: "range", min: 1, max: FAR, step: 1 });
  tokens.setAttribute("aria-label", "tokens written");
  tokens.addEventListener("input", () => model.set("tokens", tokens.valueAsNumber));
  const shown = html("span");
  const next = html("button", { type: "button", textContent: "Write a token" });
  next.addEventListener("click", () => model.set("tokens", Math.min(FAR, model.get("tokens") + 1)));
  const reset = html("button", { type: "button", textContent: "As at first" });
  reset.addEventListener("click", () => {
    for (const [name, value] of Object.entries(start)) model.set(name, value);
  });
  const said = html("p");
  said.setAttribute("role", "status");
  const task = model.get("task") ? [html("p", { className: "task", textContent: model.get("task") })] : [];
  el.replaceChildren(
    svg,
    html("div", { className: "control" }, "heads of keys and values", ...kinds.map(([, button]) => button)),
    html("div", { className: "control" }, shown, tokens, next, reset),
    said,
    ...task,
  );

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

  function update() {
    const now = settings();
    const result = counted(now);
    model.set("result", result);
    draw(now);
    for (const [groups, button] of kinds) button.setAttribute("aria-pressed", groups === now.groups);
    tokens.value = now.tokens;
    tokens.setAttribute("aria-valuetext", `${now.tokens}`);
    shown.textContent = `tokens written ${now.tokens}`;
    said.textContent =
      `The cache holds ${result.kept} numbers. ${result.projected} projections so far; without the cache ${result.without}.`;
    svg.setAttribute(
      "aria-label",
      `${now.heads} heads of queries on the left share ${now.groups} of keys and values; ${now.tokens} tokens are kept. ` +
        said.textContent,
    );
    const { least = Infinity, most = 0 } = model.get("goal") ?? {};
    if (now.tokens >= least && result.kept <= most) task[0]?.classList.add("done");
  }
  for (const name of ["groups", "width", "tokens"]) model.on(`change:${name}`, update);
  update();
}

export default { render };
