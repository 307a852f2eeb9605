// A lookup to take hold of: a query and its keys in the plane, the weights, and the average of the values.
//
// The model (anywidget's contract) holds `names` (K), `keys` (K, 2), `query` (2), `values` (K) and `temperature`, by which
// the scaled scores are divided; optionally `task` (a sentence) and `goal` ({ below } or { above } for the output).
// It is given `result`: { scores, weights, output }.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 5;
const STEP = 0.1; // of an arrow key; ten times as much with Shift
const UNIT = 62; // pixels of a unit in the plane
const ORIGIN = [180, 105];
const REACH = [2.6, 1.5]; // how far handles go, in units
const colour = (place) => `var(--figure-${(place % COLOURS) + 1})`;

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

export function lookup({ query, keys, values, temperature }) {
  const scores = keys.map((key) => (key[0] * query[0] + key[1] * query[1]) / Math.sqrt(query.length));
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp((score - most) / temperature));
  const sum = powers.reduce((one, other) => one + other, 0);
  const weights = powers.map((power) => power / sum);
  return { scores, weights, output: weights.reduce((total, weight, place) => total + weight * values[place], 0) };
}

function render({ model, el }) {
  const names = model.get("names");
  const values = model.get("values");
  const start = structuredClone({ query: model.get("query"), keys: model.get("keys"), temperature: model.get("temperature") });
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
    const at = ({ clientX, clientY }) => {
      const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [(x - ORIGIN[0]) / UNIT, (ORIGIN[1] - y) / UNIT];
    };
    group.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      group.focus();
      group.setPointerCapture(event.pointerId);
    });
    group.addEventListener("pointermove", (event) => group.hasPointerCapture(event.pointerId) && move(at(event)));
    group.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!way) return;
      event.preventDefault();
      event.stopPropagation();
      const [x, y] = read();
      const far = event.shiftKey ? 10 * STEP : STEP;
      move([x + far * way[0], y + far * way[1]]);
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

  // -- controls and words

  const slider = html("input", { type: "range", min: -1, max: 1, step: 0.05 });
  slider.setAttribute("aria-label", "temperature");
  const shown = html("span");
  const reset = html("button", { type: "button", textContent: "As at first" });
  const said = html("p", { className: "visually-hidden" });
  said.setAttribute("role", "status");
  const task = model.get("task") ? [html("p", { className: "task", textContent: model.get("task") })] : [];
  slider.addEventListener("input", () => model.set("temperature", 10 ** slider.valueAsNumber));
  reset.addEventListener("click", () => {
    for (const [name, value] of Object.entries(structuredClone(start))) model.set(name, value);
  });
  const hint = html("p", { textContent: "Drag the round ends, or move them with the arrow keys." });
  el.replaceChildren(svg, html("div", { className: "control" }, shown, slider, reset), ...task, hint, said);

  let telling = 0;
  function update() {
    const temperature = model.get("temperature");
    const result = lookup({ query: model.get("query"), keys: model.get("keys"), values, temperature });
    model.set("result", result);
    for (const draw of handles) draw();
    bars.forEach((draw, place) => draw(result.weights[place]));
    const x = across(result.output);
    mark.setAttribute("d", `M${x} ${axis - 7}l7 7l-7 7l-7-7z`);
    output.setAttribute("x", x);
    output.setAttribute("y", axis + 20);
    output.textContent = `output ${result.output.toFixed(2)}`;
    slider.value = Math.log10(temperature);
    slider.setAttribute("aria-valuetext", temperature.toFixed(2));
    shown.textContent = `temperature ${temperature.toFixed(2)}`;
    const { below = Infinity, above = -Infinity } = model.get("goal") ?? {};
    if (result.output < below && result.output > above) task[0]?.classList.add("done");
    clearTimeout(telling); // a sentence when the hand rests, not one for each pixel
    telling = setTimeout(() => {
      const best = result.weights.indexOf(Math.max(...result.weights));
      const done = task[0]?.classList.contains("done") ? " The task is done." : "";
      said.textContent =
        `${names[best]} gets most, ${result.weights[best].toFixed(2)} of the weight; the output is ` +
        `${result.output.toFixed(2)}.${done}`;
    }, 400);
  }
  for (const name of ["query", "keys", "temperature"]) model.on(`change:${name}`, update);
  update();
}

export default { render };
