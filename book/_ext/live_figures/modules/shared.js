// What the figures share. The build writes it into each of them, so that on the site every figure is one module.

export const COLOURS = 5;
export const colour = (place) => `var(--figure-${(place % COLOURS) + 1})`;
export const minus = (text) => `${text}`.replaceAll("-", "−");
export const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }; // across, down

// mulberry32: the same random numbers everywhere
export function random(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function softmax(scores) {
  const top = Math.max(...scores);
  const shares = scores.map((score) => Math.exp(score - top));
  const sum = shares.reduce((one, other) => one + other, 0);
  return shares.map((share) => share / sum);
}

export function make(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function html(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

export function button(label, press) {
  const made = html("button", { type: "button", textContent: label });
  made.addEventListener("click", press);
  return made;
}

// One button for each of `values`, by its label; the value that `name` has is pressed.
export function choice(model, name, values) {
  return Object.entries(values).map(([label, value]) => {
    const made = button(label, () => model.set(name, value));
    made.draw = () => made.setAttribute("aria-pressed", model.get(name) === value);
    return made;
  });
}

// `read` and `write` turn what the model holds into the slider's number and back; `words` say the slider's number.
export function slider(label, range, read, write, words = String) {
  const input = html("input", { type: "range", ...range });
  input.setAttribute("aria-label", label);
  input.addEventListener("input", () => write(input.valueAsNumber));
  const shown = html("span");
  const draw = () => {
    const at = read();
    input.value = at;
    input.setAttribute("aria-valuetext", words(at));
    shown.textContent = `${label} ${words(at)}`;
  };
  return Object.assign(html("div", { className: "control" }, shown, input), { draw, input });
}

// The slider of a number that the model holds under `name`.
export const plain = (model, name, label, range, words) =>
  slider(label, range, () => model.get(name), (to) => model.set(name, to), words);

// The same on a scale of powers of ten.
export const powers = (model, name, label, range, words) => {
  const read = () => Math.log10(model.get(name));
  return slider(label, range, read, (to) => model.set(name, 10 ** to), (at) => words(10 ** at));
};

// A text of one's own, made of at most `most` of `signs`, that the model holds under "text": typed, or built by buttons.
export function writing(model, signs, most) {
  const text = html("input", { type: "text", maxLength: most, size: most, spellcheck: false, autocomplete: "off" });
  const known = (typed) => [...typed].filter((sign) => signs.includes(sign)).slice(-most).join("");
  text.addEventListener("input", () => known(text.value) && model.set("text", known(text.value)));
  const add = signs.map((sign) => {
    const made = button(sign, () => model.set("text", known(model.get("text") + sign)));
    made.setAttribute("aria-label", `${sign} behind the text`);
    return made;
  });
  const draw = () => {
    if (text.value !== model.get("text")) text.value = model.get("text");
  };
  return Object.assign(html("div", { className: "control" }, html("label", {}, "your text ", text), ...add), { draw });
}

// Puts a figure into `el`. `names` are what a reader changes; `draw(settings, start)` shows them and gives `result` for
// the model, `said`, a sentence, and `done`, whether the task is. Buttons and controls may have a `draw` of their own.
export function frame({ model, el, names, parts, hint, buttons = [], controls = [], draw }) {
  const settings = () => structuredClone(Object.fromEntries(names.map((name) => [name, model.get(name)])));
  const start = settings();
  const again = button("As at first", () => {
    for (const [name, value] of Object.entries(structuredClone(start))) model.set(name, value);
  });
  // where there are no buttons, it stands beside the last slider
  if (buttons.length) buttons = [...buttons, again];
  else controls.at(-1).append(again);
  const status = html("p");
  status.setAttribute("role", "status");
  const task = model.get("task") ? [html("p", { className: "task", textContent: model.get("task") })] : [];
  el.replaceChildren(
    ...parts,
    ...(hint ? [html("p", { textContent: hint })] : []),
    ...(buttons.length ? [html("div", { className: "control" }, ...buttons)] : []),
    ...controls,
    status,
    ...task,
  );
  const update = () => {
    const { result, said, done } = draw(settings(), start);
    model.set("result", result);
    for (const part of [...buttons, ...controls]) part.draw?.();
    if (done) task[0]?.classList.add("done");
    status.textContent = done && task.length ? `${said} The task is done.` : said;
  };
  for (const name of names) model.on(`change:${name}`, update);
  update();
}

// Makes `element` follow a pull: `move` is given the place in the units of `svg`.
export function drag(svg, element, move) {
  element.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    element.focus();
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    move(x, y);
  });
}

// Draws a table into `svg`, with names beside the rows and below the columns; gives its cells, row by row. What has a
// number in it is made with `numbers`.
export function table(svg, { rows, columns, title, ink, cell = 26, numbers }) {
  const [width, height] = [cell * columns.length, cell * rows.length];
  const [longest, under] = [rows, columns].map((names) => 8 + 6.5 * Math.max(...names.map((name) => name.length)));
  svg.setAttribute("viewBox", `${-longest - 4} -20 ${width + longest + 8} ${height + 26 + under}`);
  const words = (text, x, y, more) => make("text", { x, y, ...more }, text);
  const upright = under < 22; // two characters
  svg.replaceChildren(
    words(title, width / 2, -7, { "text-anchor": "middle" }),
    ...rows.map((name, at) => words(name, -5, cell * (at + 0.5) + 4, { "text-anchor": "end" })),
    ...columns.map((name, at) =>
      upright
        ? words(name, cell * (at + 0.5), height + 14, { "text-anchor": "middle" })
        : words(name, -height - 6, cell * (at + 0.5) + 4, { "text-anchor": "end", transform: "rotate(-90)" }),
    ),
  );
  return rows.map((_, row) =>
    columns.map((_, column) => {
      const [x, y, side] = [cell * column + 1, cell * row + 1, cell - 2];
      const ground = { x, y, width: side, height: side, rx: 3, stroke: "currentColor", "stroke-opacity": 0.5 };
      const made = svg.appendChild(make("rect", { ...ground, fill: ink }));
      const middle = [x + side / 2, y + side / 2 + 4];
      if (numbers) svg.append(words(numbers[row][column], ...middle, { "text-anchor": "middle" }));
      return made;
    }),
  );
}

// Lets a table of zeros and ones, `name` in the model, be painted by pointer and keyboard: one stop of the tab key.
export function paintable(model, name, svg, cells, label) {
  const toggle = (row, column, to) => {
    const changed = (old, at, by) => (at === row && by === column ? to : old);
    model.set(name, model.get(name).map((line, at) => line.map((old, by) => changed(old, at, by))));
  };
  const other = (row, column) => 1 - model.get(name)[row][column];
  let painting = null;
  cells.forEach((line, row) =>
    line.forEach((cell, column) => {
      cell.setAttribute("role", "checkbox");
      cell.setAttribute("aria-label", label(row, column));
      cell.setAttribute("class", "handle cell");
      cell.setAttribute("tabindex", row + column ? -1 : 0);
      cell.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        cell.focus();
        painting = other(row, column);
        toggle(row, column, painting);
      });
      cell.addEventListener("keydown", (event) => {
        const [across, down] = ARROWS[event.key] ?? [0, 0];
        if (event.key === " ") toggle(row, column, other(row, column));
        else if (!across && !down) return;
        event.preventDefault();
        event.stopPropagation();
        cells[row + down]?.[column + across]?.focus();
      });
      cell.addEventListener("focus", () => {
        for (const one of cells.flat()) one.setAttribute("tabindex", one === cell ? 0 : -1);
      });
    }),
  );
  // a pull paints: a finger keeps its first target, so the cell under it is looked up
  svg.addEventListener("pointermove", (event) => {
    if (painting === null) return;
    const under = document.elementFromPoint(event.clientX, event.clientY);
    cells.forEach((line, row) => {
      const column = line.indexOf(under);
      if (column >= 0 && model.get(name)[row][column] !== painting) toggle(row, column, painting);
    });
  });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (painting = null));
  return () =>
    cells.forEach((line, row) =>
      line.forEach((cell, column) => {
        const on = model.get(name)[row][column];
        cell.setAttribute("fill-opacity", on ? 0.85 : 0.05);
        cell.setAttribute("aria-checked", Boolean(on));
      }),
    );
}
