// Clock hands of a head with rotary positions: the places of a query and a key turn their pairs, the score follows.
//
// The model (anywidget's contract) holds `query` and `key` (angles of their pairs before turning, of length 1), `places`
// (of the query and of the key) and `base`; optionally `task`, done when other places give the score of the beginning.
// It is given `result`: { speeds, differences, score }.

import { button, colour, frame, make, minus, powers, slider } from "./shared.js";

const FAR = 60; // the last place on the sliders
const RADIUS = 34;

export function rotary({ query, key, places, base }) {
  const speeds = query.map((_, pair) => base ** (-pair / query.length));
  const differences = speeds.map((speed, pair) => query[pair] - key[pair] + speed * (places[0] - places[1]));
  return { speeds, differences, score: differences.reduce((sum, angle) => sum + Math.cos(angle), 0) };
}

function render({ model, el }) {
  const pairs = model.get("query").length;
  const svg = make("svg", { viewBox: `0 0 ${90 * pairs} 132`, role: "img" });
  const dials = [...Array(pairs).keys()].map((pair) => {
    const [x, y] = [90 * pair + 45, 44];
    const hand = (ink, dash) => svg.appendChild(make("path", { stroke: ink, "stroke-width": 3, "stroke-dasharray": dash }));
    svg.append(make("circle", { cx: x, cy: y, r: RADIUS + 4, fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 }));
    const hands = [hand(colour(0), "none"), hand(colour(1), "5 3")];
    const words = ["speed", "share"].map((_, row) => make("text", { x, y: 100 + 16 * row, "text-anchor": "middle" }));
    svg.append(...words);
    return ({ query, key, places }, { speeds, differences }) => {
      hands.forEach((path, which) => {
        const angle = [query, key][which][pair] + speeds[pair] * places[which];
        path.setAttribute("d", `M${x} ${y}L${x + RADIUS * Math.cos(angle)} ${y - RADIUS * Math.sin(angle)}`);
      });
      words[0].textContent = `speed ${speeds[pair].toPrecision(2)}`;
      words[1].textContent = minus(`cos ${Math.cos(differences[pair]).toFixed(2)}`);
    };
  });
  const place = (label, which) =>
    slider(
      label,
      { min: 0, max: FAR, step: 1 },
      () => model.get("places")[which],
      (to) => model.set("places", model.get("places").map((old, other) => (other === which ? to : old))),
    );
  const both = button("Move both by 7 places", () => {
    const [query, key] = model.get("places");
    const by = Math.max(query, key) + 7 > FAR ? -7 * Math.floor(Math.min(query, key) / 7) : 7; // and back to the beginning
    model.set("places", [query + by, key + by]);
  });

  frame({
    model,
    el,
    names: ["query", "key", "places", "base"],
    parts: [svg],
    hint: "Solid: the query's pairs. Dashed: the key's. Four pairs, from fast to slow.",
    buttons: [both],
    controls: [
      place("query at place", 0),
      place("key at place", 1),
      powers(model, "base", "base", { min: 1, max: 6, step: 0.1 }, (base) => Math.round(base).toLocaleString("en")),
    ],
    draw(now, start) {
      const result = rotary(now);
      for (const draw of dials) draw(now, result);
      const [query, key] = now.places;
      const apart = `at places ${query} and ${key}, a difference of ${query - key}.`;
      const said = minus(`score ${result.score.toFixed(3)} ${apart}`);
      svg.setAttribute("aria-label", `${pairs} clock faces, each with a hand of the query and one of the key; ${said}`);
      const elsewhere = now.places.some((at, which) => at !== start.places[which]);
      return { result, said, done: elsewhere && Math.abs(result.score - rotary(start).score) < 1e-9 };
    },
  });
}

export default { render };
