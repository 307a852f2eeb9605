// Clock hands of a head with rotary positions: the places of a query and a key turn their pairs, the score follows.
//
// The model (anywidget's contract) holds `query` and `key` (angles of their pairs before turning, of length 1), `places`
// (of the query and of the key) and `base`; optionally `task`, done when other places give the score of the beginning.
// It is given `result`: { speeds, differences, score }.

const SVG = "http://www.w3.org/2000/svg";
const FAR = 60; // the last place on the sliders
const RADIUS = 34;

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

export function rotary({ query, key, places, base }) {
  const speeds = query.map((_, pair) => base ** (-pair / query.length));
  const differences = speeds.map((speed, pair) => query[pair] - key[pair] + speed * (places[0] - places[1]));
  return { speeds, differences, score: differences.reduce((sum, angle) => sum + Math.cos(angle), 0) };
}

function render({ model, el }) {
  const settings = () => ({
    query: model.get("query"),
    key: model.get("key"),
    places: model.get("places"),
    base: model.get("base"),
  });
  const start = structuredClone(settings());
  const pairs = start.query.length;
  const svg = make("svg", { viewBox: `0 0 ${90 * pairs} 132`, role: "img" });
  const dials = start.query.map((_, pair) => {
    const [x, y] = [90 * pair + 45, 44];
    const hand = (ink, dash) => svg.appendChild(make("path", { stroke: ink, "stroke-width": 3, "stroke-dasharray": dash }));
    svg.append(make("circle", { cx: x, cy: y, r: RADIUS + 4, fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 }));
    const hands = [hand("var(--figure-1)", "none"), hand("var(--figure-2)", "5 3")];
    const words = ["speed", "share"].map((_, row) => make("text", { x, y: 100 + 16 * row, "text-anchor": "middle" }));
    svg.append(...words);
    return ({ speeds, differences }, angles) => {
      hands.forEach((path, which) => {
        const angle = angles[which] + speeds[pair] * model.get("places")[which];
        path.setAttribute("d", `M${x} ${y}L${x + RADIUS * Math.cos(angle)} ${y - RADIUS * Math.sin(angle)}`);
      });
      words[0].textContent = `speed ${speeds[pair].toPrecision(2)}`;
      words[1].textContent = `cos ${Math.cos(differences[pair]).toFixed(2)}`.replace("-", "−");
    };
  });

  const slider = (label, range, read, write) => {
    const input = html("input", { type: "range", ...range });
    input.setAttribute("aria-label", label);
    const shown = html("span");
    input.addEventListener("input", () => write(input.valueAsNumber));
    const draw = () => {
      const [at, words] = read();
      input.value = at;
      input.setAttribute("aria-valuetext", words);
      shown.textContent = `${label} ${words}`;
    };
    return [html("div", { className: "control" }, shown, input), draw];
  };
  const place = (which) => [
    () => [model.get("places")[which], `${model.get("places")[which]}`],
    (to) => model.set("places", model.get("places").map((old, other) => (other === which ? to : old))),
  ];
  const whole = { min: 0, max: FAR, step: 1 };
  const controls = [
    slider("query at place", whole, ...place(0)),
    slider("key at place", whole, ...place(1)),
    slider(
      "base",
      { min: 1, max: 6, step: 0.1 },
      () => [Math.log10(model.get("base")), Math.round(model.get("base")).toLocaleString("en")],
      (to) => model.set("base", 10 ** to),
    ),
  ];
  const both = html("button", { type: "button", textContent: "Move both by 7 places" });
  both.addEventListener("click", () => {
    const [query, key] = model.get("places");
    const by = Math.max(query, key) + 7 > FAR ? -7 * Math.floor(Math.min(query, key) / 7) : 7; // and back to the beginning
    model.set("places", [query + by, key + by]);
  });
  const reset = html("button", { type: "button", textContent: "As at first" });
  reset.addEventListener("click", () => {
    for (const name of ["places", "base"]) model.set(name, structuredClone(start[name]));
  });
  const score = html("p");
  score.setAttribute("role", "status");
  const task = model.get("task") ? [html("p", { className: "task", textContent: model.get("task") })] : [];
  const key = html("p", { textContent: "Solid: the query's pairs. Dashed: the key's. Four pairs, from fast to slow." });
  const buttons = html("div", { className: "control" }, both, reset);
  el.replaceChildren(svg, key, ...controls.map(([control]) => control), buttons, score, ...task);

  function update() {
    const now = settings();
    const result = rotary(now);
    model.set("result", result);
    dials.forEach((draw, pair) => draw(result, [now.query[pair], now.key[pair]]));
    for (const [, draw] of controls) draw();
    const [query, keyPlace] = now.places;
    const apart = query - keyPlace;
    const text = `score ${result.score.toFixed(3)} at places ${query} and ${keyPlace}, a difference of ${apart}`;
    score.textContent = text.replaceAll("-", "−");
    svg.setAttribute("aria-label", `${pairs} clock faces, each with a hand of the query and one of the key; ${text}`);
    const elsewhere = now.places.some((at, which) => at !== start.places[which]);
    if (elsewhere && Math.abs(result.score - rotary(start).score) < 1e-9) task[0]?.classList.add("done");
  }
  for (const name of ["query", "key", "places", "base"]) model.on(`change:${name}`, update);
  update();
}

export default { render };
