// The decoder's step: where a trained model listens while it writes a letter, and the context that it gets of it.
//
// The model (anywidget's contract) holds `letters` (T_y), the names of what is written, `chances` (T_y) that the
// trained model gives them, its `energies` (T_y, T_x), its `annotations` (T_x, m), the `level` of the sound in dB
// (T_x), the `seconds` of a moment, `step` (from 0) and `factor` of the energies (1: as trained, 0: all weights are
// equal); optionally `task`, done with equal weights. It is given `result`: { weights (T_x), context (m), when }, the
// weights' mean time in seconds.

import { button, colour, frame, make, minus, plain, softmax } from "./shared.js";

const [LEFT, WIDE, SIDE] = [60, 212, 56]; // of the panels over time, and of the context beside them
const MOST = 3; // times the energies
const ROW = 6;

export function attend({ energies, annotations, seconds, step, factor }) {
  const weights = softmax(energies[step].map((energy) => factor * energy));
  const mean = (of) => weights.reduce((sum, weight, at) => sum + weight * of(at), 0);
  const context = annotations[0].map((_, entry) => mean((at) => annotations[at][entry]));
  return { weights, context, when: seconds * mean((at) => at + 0.5) };
}

function render({ model, el }) {
  const [letters, chances, energies, annotations, level, seconds] = [
    "letters", "chances", "energies", "annotations", "level", "seconds",
  ].map((name) => model.get(name));
  const [moments, entries] = [level.length, annotations[0].length];
  const each = WIDE / moments;
  const [sound, scores, weights, notes] = [22, 74, 170, 242]; // where panels begin
  const bottom = notes + ROW * entries;
  const panels = [[sound, sound + 30], [scores, scores + 72], [weights, weights + 44], [notes, bottom]];
  const viewBox = `0 -2 ${LEFT + WIDE + SIDE + 18} ${bottom + 22}`;
  // no larger, so that it stands on one screen with its sliders
  const svg = make("svg", { viewBox, role: "img", style: "margin: auto; max-width: 28rem" });
  const words = (text, x, y, anchor = "end") => svg.appendChild(make("text", { x, y, "text-anchor": anchor }, text));
  const line = (d, more) => svg.appendChild(make("path", { d, stroke: "currentColor", ...more }));
  const bars = (fill) =>
    level.map((_, at) => svg.appendChild(make("rect", { x: LEFT + each * (at + 0.1), width: 0.8 * each, fill })));
  const size = (bar, one, other) => {
    bar.setAttribute("y", Math.min(one, other));
    bar.setAttribute("height", Math.abs(one - other));
  };

  const written = svg.appendChild(make("text", { x: LEFT, y: 12, style: "font-family: monospace" }));
  const signs = letters.map((letter) => written.appendChild(make("tspan", { dx: letter === "end" ? 6 : 0 }, letter)));
  const [quiet, loud] = [Math.min(...level), Math.max(...level)];
  bars("currentColor").forEach((bar, at) => {
    const half = 1 + (13 * (level[at] - quiet)) / (loud - quiet || 1);
    size(bar, sound + 15 - half, sound + 15 + half);
    bar.setAttribute("fill-opacity", 0.5);
  });
  const reach = MOST * Math.max(...energies.flat().map(Math.abs));
  const energy = (value) => scores + 36 * (1 - Math.asinh(value) / Math.asinh(reach));
  const share = (weight) => weights + 44 * (1 - weight);
  const tens = [10, 100].filter((ten) => ten <= reach);
  for (const value of [...tens, 0, ...tens.map((ten) => -ten)]) {
    line(`M${LEFT} ${energy(value)}h${WIDE}`, { "stroke-opacity": 0.25 });
    words(minus(value), LEFT - 4, energy(value) + 4);
  }
  for (const value of [0, 1]) {
    line(`M${LEFT} ${share(value)}h${WIDE}`, { "stroke-opacity": 0.25 });
    words(`${value}`, LEFT - 4, share(value) + 4);
  }
  words("writes", LEFT - 6, 12);
  words("sound", LEFT - 6, sound + 19);
  words("energies", LEFT, scores - 7, "start");
  words("weights", LEFT, weights - 7, "start");
  words("annotations", LEFT, notes - 7, "start");
  const [energyBars, weightBars] = [bars(colour(3)), bars(colour(0))];
  annotations.forEach((numbers, at) =>
    numbers.forEach((number, entry) => {
      const place = { x: LEFT + each * at, y: notes + ROW * entry, width: each, height: ROW };
      svg.append(make("rect", { ...place, fill: colour(number > 0 ? 1 : 0), "fill-opacity": Math.abs(number) }));
    }),
  );
  const middle = LEFT + WIDE + 12 + SIDE / 2;
  words("context", middle, notes - 7, "middle");
  line(`M${middle} ${notes}V${bottom}`, { "stroke-opacity": 0.5 });
  const context = annotations[0].map((_, entry) =>
    svg.appendChild(make("rect", { y: notes + ROW * entry + 1, height: ROW - 2 })),
  );
  for (let half = 0; half * 0.5 <= moments * seconds; half += 1) {
    words(`${half / 2}`, LEFT + (each * half * 0.5) / seconds, bottom + 14, "middle");
  }
  words("seconds", LEFT - 6, bottom + 14);
  const cursor = line("", { "stroke-dasharray": "4 3", "stroke-width": 1.5 });

  function draw({ step, factor }, { weights: shares, context: read, when }) {
    signs.forEach((sign, at) => {
      sign.setAttribute("fill-opacity", at > step ? 0.7 : 1);
      sign.setAttribute("font-weight", at === step ? 700 : 400);
      sign.setAttribute("text-decoration", at === step ? "underline" : "none");
    });
    energyBars.forEach((bar, at) => size(bar, energy(0), energy(factor * energies[step][at])));
    weightBars.forEach((bar, at) => size(bar, share(0), share(shares[at])));
    context.forEach((bar, entry) => {
      const to = middle + (read[entry] * SIDE) / 2;
      bar.setAttribute("x", Math.min(middle, to));
      bar.setAttribute("width", Math.abs(middle - to));
      bar.setAttribute("fill", colour(read[entry] > 0 ? 1 : 0));
    });
    const x = LEFT + (each * when) / seconds;
    cursor.setAttribute("d", panels.map(([from, to]) => `M${x} ${from}V${to}`).join(""));
  }

  const named = (step) => ({ "␣": "a space", end: "the end" })[letters[step]] ?? `“${letters[step]}”`;
  const controls = [
    plain(model, "step", "step", { min: 0, max: letters.length - 1, step: 1 }, (step) => `${step + 1}: ${named(step)}`),
    plain(model, "factor", "energies times", { min: 0, max: MOST, step: 0.1 }, (factor) => factor.toFixed(1)),
  ];
  for (const control of controls) control.firstChild.style.minWidth = "9.5em"; // no word moves a slider under the hand
  const next = button("Next letter", () => model.set("step", (model.get("step") + 1) % letters.length));
  frame({
    model,
    el,
    names: ["step", "factor"],
    parts: [svg],
    hint:
      `Dashed: the mean time of the weights. Of each annotation ${entries} numbers are drawn, orange above zero, ` +
      "blue below; the context is their mean by the weights. The axis of the energies is compressed towards its ends.",
    buttons: [next],
    controls,
    draw(now) {
      const result = attend({ energies, annotations, seconds, ...now });
      draw(now, result);
      const top = Math.max(...result.weights);
      const at = (seconds * (result.weights.indexOf(top) + 0.5)).toFixed(2);
      const heard = now.factor
        ? `the largest weight, ${top.toFixed(2)}, is at ${at} s, the mean time is ${result.when.toFixed(2)} s`
        : `all weights are ${top.toFixed(2)}, and the context is the plain mean`;
      const likely = chances[now.step].toFixed(2);
      const chance = now.factor === 1 ? ` The model gives this letter a probability of ${likely}.` : "";
      const said = `Step ${now.step + 1} of ${letters.length}, ${named(now.step)}: ${heard}.${chance}`;
      svg.setAttribute("aria-label", `a sound with energies, weights, annotations over time, and the context. ${said}`);
      return { result, said, done: now.factor === 0 };
    },
  });
}

export default { render };
