// One state, four writing rules: pairs of a key and a value are read once; what does the state answer after each?
//
// The model (anywidget's contract) holds `names` (of K keys), `keys` (n, numbers of keys), `values` (n, from -3 to 3), `rule`
// (sum, decay, gate or delta), `gamma` (of the decay) and `marker` (the pair, from 0, before which the gate closes);
// optionally `task` and `goal` ({ rule, within }: by this rule, all answers so near to the newest values). Keys are
// orthogonal. It is given `result`: { answers } (n, K), what the state answers after each pair; null where it holds nothing.

import { ARROWS, choice, colour, drag, frame, make, minus, plain } from "./shared.js";

const [LEFT, EACH, MIDDLE, UNIT, MOST] = [26, 26, 104, 28, 3];
const STEP = 0.25; // of values
const DASHES = ["none", "7 3", "2 3"];
const RULES = { sum: "sum", decay: "decay", gate: "gate", delta: "delta" };

export function answers({ names, keys, values, rule, gamma, marker }) {
  let S = names.map(() => 0);
  let z = names.map(() => Number(rule === "delta")); // which is not an average
  return keys.map((key, at) => {
    if (rule === "delta") S[key] += values[at] - S[key];
    else {
      const keep = { sum: 1, decay: gamma, gate: Number(at !== marker) }[rule];
      S = S.map((old, other) => keep * old + (other === key ? values[at] : 0));
      z = z.map((old, other) => keep * old + Number(other === key));
    }
    return S.map((sum, other) => (z[other] ? sum / z[other] : null));
  });
}

function render({ model, el }) {
  const names = model.get("names");
  const n = model.get("keys").length;
  const across = (at) => LEFT + EACH * (at + 0.5);
  const down = (value) => MIDDLE - UNIT * value;
  const far = across(n - 1) + 14;
  const svg = make("svg", { viewBox: `0 0 ${far + 58} ${2 * MIDDLE + 14}`, role: "group" });
  const label = (text, x, y, more) => make("text", { x, y, ...more }, text);
  svg.append(
    make("path", { d: `M${LEFT} ${MIDDLE}H${far}`, stroke: "currentColor", "stroke-opacity": 0.3 }),
    ...[-MOST, 0, MOST].map((value) => label(minus(value), LEFT - 6, down(value) + 4, { "text-anchor": "end" })),
    label("pairs, in the order in which they are read", (LEFT + far) / 2, 2 * MIDDLE + 8, { "text-anchor": "middle" }),
  );
  const gate = svg.appendChild(make("g"));
  const lines = names.map((_, key) =>
    svg.appendChild(make("path", { fill: "none", stroke: colour(key), "stroke-dasharray": DASHES[key], "stroke-width": 2 })),
  );
  const ends = names.map((_, key) => svg.appendChild(make("text", { x: far + 5, style: `fill: ${colour(key)}` })));

  const dots = model.get("keys").map((key, at) => {
    const ground = { cx: across(at), r: 8.5, fill: "var(--pst-color-background)", stroke: colour(key), class: "grip" };
    const [dot, letter] = [make("circle", ground), label(names[key], across(at), 0, { "text-anchor": "middle" })];
    const area = make("rect", { x: across(at) - 15, width: 30, height: 40, fill: "transparent" }); // for fingers
    const group = make("g", { class: "handle", role: "slider", tabindex: at ? -1 : 0 }, dot, letter, area);
    group.setAttribute("aria-label", `value of pair ${at + 1}, key ${names[key]}`);
    group.setAttribute("aria-valuemin", -MOST);
    group.setAttribute("aria-valuemax", MOST);
    const move = (to) => {
      const value = Math.max(-MOST, Math.min(MOST, STEP * Math.round(to / STEP)));
      model.set("values", model.get("values").map((old, other) => (other === at ? value : old)));
    };
    drag(svg, group, (_, y) => move((MIDDLE - y) / UNIT));
    group.addEventListener("keydown", (event) => {
      if (!ARROWS[event.key]) return;
      event.preventDefault();
      event.stopPropagation();
      const [aside, lower] = ARROWS[event.key];
      if (lower) move(model.get("values")[at] - lower * (event.shiftKey ? 4 : 1) * STEP);
      dots[at + aside]?.group.focus();
    });
    group.addEventListener("focus", () => dots.forEach((other) => other.group.setAttribute("tabindex", -1)));
    group.addEventListener("focus", () => group.setAttribute("tabindex", 0)); // one stop for all
    svg.append(group);
    const draw = (value, newest) => {
      const y = down(value);
      dot.setAttribute("cy", y);
      dot.setAttribute("stroke-width", newest ? 3.5 : 1.5);
      letter.setAttribute("y", y + 4);
      area.setAttribute("y", y - 20);
      group.setAttribute("aria-valuenow", value);
    };
    return { group, draw };
  });

  const decay = plain(model, "gamma", "decay γ", { min: 0.05, max: 1, step: 0.05 }, (gamma) => gamma.toFixed(2));
  const closes = { min: 1, max: n - 1, step: 1 };
  const marker = plain(model, "marker", "gate closes before pair", closes, (at) => `${at + 1}`);

  frame({
    model,
    el,
    names: ["names", "keys", "values", "rule", "gamma", "marker"],
    parts: [svg],
    hint:
      "Circles: the values that are written; lines: what the state answers for each key. " +
      "Pull the circles up and down.",
    buttons: choice(model, "rule", RULES),
    controls: [decay, marker],
    draw(now) {
      const said = answers(now);
      const last = said.at(-1);
      decay.input.disabled = now.rule !== "decay";
      marker.input.disabled = now.rule !== "gate";
      const newest = names.map((_, key) => now.keys.lastIndexOf(key));
      dots.forEach(({ draw }, at) => draw(now.values[at], newest[now.keys[at]] === at));
      lines.forEach((line, key) => {
        const steps = said.map((state, at) => {
          const [now, before] = [state[key], at ? said[at - 1][key] : null];
          if (now === null) return before === null ? "" : `H${across(at) - EACH / 2}`; // to where the gate closes
          return before === null ? `M${across(at)} ${down(now)}` : `H${across(at)}V${down(now)}`;
        });
        line.setAttribute("d", steps.join("") + (last[key] === null ? "" : `H${far}`));
      });
      // names at the ends of the lines, pushed apart where lines meet
      let free = 0;
      for (const key of names.map((_, key) => key).sort((one, other) => last[other] - last[one])) {
        free = Math.max(free, down(last[key] ?? -MOST) + 4);
        ends[key].setAttribute("y", free);
        ends[key].textContent = `${names[key]} ${last[key] === null ? "none" : minus(last[key].toFixed(2))}`;
        free += 13;
      }
      const x = across(now.marker) - EACH / 2;
      gate.replaceChildren(
        ...(now.rule === "gate"
          ? [
              make("path", { d: `M${x} 14V${2 * MIDDLE - 12}`, stroke: "currentColor", "stroke-dasharray": "1 4" }),
              label("the gate closes", x, 9, { "text-anchor": "middle" }),
            ]
          : []),
      );
      const told = names.map((name, key) => {
        const answer = last[key] === null ? "nothing" : last[key].toFixed(2);
        return `${name} ${answer} (newest ${now.values[newest[key]]})`;
      });
      const words = minus(`${now.rule}: after all pairs the state answers ${told.join(", ")}.`);
      svg.setAttribute("aria-label", `values of ${n} pairs and what the state answers. ${words}`);
      const { rule, within = 0 } = model.get("goal") ?? {};
      const near = last.every((answer, key) => answer !== null && Math.abs(answer - now.values[newest[key]]) <= within);
      return { result: { answers: said }, said: words, done: now.rule === rule && near };
    },
  });
}

export default { render };
