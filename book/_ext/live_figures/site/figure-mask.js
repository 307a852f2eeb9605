// Paint a mask: who may look at whom, and from whom a token has heard after some layers.
//
// The model (anywidget's contract) holds `names` (T), `mask` (T, T) of 0 and 1, rows are queries, and `layers`; optionally
// `task`, done when the last token hears from the first in no more layers than it needs, with at most `most` entries
// in a row. It is given `result`: { reach } (T, T) of 0 and 1, what a token has heard of (it keeps what it has).

const SVG = "http://www.w3.org/2000/svg";
const CELL = 26;

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

function grid(names, title, ink) {
  const tokens = [...names.keys()];
  const size = CELL * names.length;
  const svg = make("svg", { viewBox: `-52 -18 ${size + 56} ${size + 66}` });
  svg.append(make("text", { x: size / 2, y: -6, "text-anchor": "middle" }, title));
  tokens.forEach((at) => {
    const middle = CELL * at + CELL / 2;
    svg.append(make("text", { x: -5, y: middle + 4, "text-anchor": "end" }, names[at]));
    svg.append(make("text", { x: -size - 6, y: middle + 4, "text-anchor": "end", transform: "rotate(-90)" }, names[at]));
  });
  const cells = tokens.map((row) =>
    tokens.map((column) =>
      svg.appendChild(
        make("rect", {
          x: CELL * column + 1,
          y: CELL * row + 1,
          width: CELL - 2,
          height: CELL - 2,
          rx: 3,
          fill: ink,
          stroke: "currentColor",
          "stroke-opacity": 0.5,
        }),
      ),
    ),
  );
  return { svg, cells };
}

function render({ model, el }) {
  const names = model.get("names");
  const start = structuredClone({ mask: model.get("mask"), layers: model.get("layers") });
  const left = grid(names, "may look at", "var(--figure-1)");
  const right = grid(names, "has heard of", "var(--figure-2)");
  right.svg.setAttribute("role", "img");
  left.svg.setAttribute("role", "group");
  left.svg.setAttribute("aria-label", "the mask: rows look at columns; arrow keys move, Space paints");

  const toggle = (row, column, to = 1 - model.get("mask")[row][column]) =>
    model.set(
      "mask",
      model.get("mask").map((line, at) => (at === row ? line.map((old, other) => (other === column ? to : old)) : line)),
    );
  let painting = null;
  left.cells.forEach((line, row) =>
    line.forEach((cell, column) => {
      cell.setAttribute("role", "checkbox");
      cell.setAttribute("aria-label", `${names[row]} may look at ${names[column]}`);
      cell.setAttribute("class", "handle cell");
      cell.setAttribute("tabindex", row + column ? -1 : 0);
      cell.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        cell.focus();
        painting = 1 - model.get("mask")[row][column];
        toggle(row, column, painting);
      });
      cell.addEventListener("keydown", (event) => {
        const way = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
        if (event.key === " ") toggle(row, column);
        else if (!way) return;
        event.preventDefault();
        if (way) left.cells[row + way[0]]?.[column + way[1]]?.focus();
      });
      cell.addEventListener("focus", () => {
        for (const other of left.cells.flat()) other.setAttribute("tabindex", other === cell ? 0 : -1); // one stop for all
      });
    }),
  );
  // a pull paints: a finger keeps its first target, so the cell under it is looked up
  left.svg.addEventListener("pointermove", (event) => {
    if (painting === null) return;
    const under = document.elementFromPoint(event.clientX, event.clientY);
    left.cells.forEach((line, row) => {
      const column = line.indexOf(under);
      if (column >= 0 && model.get("mask")[row][column] !== painting) toggle(row, column, painting);
    });
  });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (painting = null));

  const buttons = Object.entries(PRESETS).map(([name, rule]) => {
    const button = html("button", { type: "button", textContent: name });
    button.addEventListener("click", () => model.set("mask", names.map((_, row) => names.map((_, column) => rule(row, column)))));
    return button;
  });
  const reset = html("button", { type: "button", textContent: "As at first" });
  reset.addEventListener("click", () => {
    for (const [name, value] of Object.entries(structuredClone(start))) model.set(name, value);
  });
  const layers = html("input", { type: "range", min: 1, max: names.length - 1, step: 1 });
  layers.setAttribute("aria-label", "layers");
  layers.addEventListener("input", () => model.set("layers", layers.valueAsNumber));
  const shown = html("span");
  const said = html("p");
  said.setAttribute("role", "status");
  const task = model.get("task") ? [html("p", { className: "task", textContent: model.get("task") })] : [];
  el.replaceChildren(
    html("div", { className: "side-by-side" }, left.svg, right.svg),
    html("p", { textContent: "Paint on the left. In each layer a token hears what those it looks at have heard, and keeps what it has." }),
    html("div", { className: "control" }, ...buttons, reset),
    html("div", { className: "control" }, shown, layers),
    said,
    ...task,
  );

  function update() {
    const mask = model.get("mask");
    const depth = model.get("layers");
    const reach = heard(mask, depth);
    model.set("result", { reach });
    left.cells.forEach((line, row) =>
      line.forEach((cell, column) => {
        cell.setAttribute("fill-opacity", mask[row][column] ? 0.85 : 0.05);
        cell.setAttribute("aria-checked", Boolean(mask[row][column]));
        right.cells[row][column].setAttribute("fill-opacity", reach[row][column] ? 0.85 : 0.05);
      }),
    );
    layers.value = depth;
    layers.setAttribute("aria-valuetext", `${depth}`);
    shown.textContent = `layers ${depth}`;
    const last = names.length - 1;
    const count = reach[last].reduce((sum, one) => sum + one, 0);
    said.textContent =
      `After ${depth} layer${depth > 1 ? "s" : ""} “${names[last]}” has heard of ${count} of ${names.length} tokens` +
      `${reach[last][0] ? `, also of “${names[0]}”.` : `, but not of “${names[0]}”.`}`;
    right.svg.setAttribute("aria-label", `a map of who has heard of whom. ${said.textContent}`);
    const narrow = mask.every((line) => line.reduce((sum, one) => sum + one, 0) <= (model.get("most") ?? names.length));
    if (reach[last][0] && narrow) task[0]?.classList.add("done");
  }
  for (const name of ["mask", "layers"]) model.on(`change:${name}`, update);
  update();
}

export default { render };
