"use strict";
const main = document.querySelector("main");
const { place, number, version, key: graded, most, unmarked } = main.dataset;
const at = (id) => document.getElementById(id);
const boxes = [...document.querySelectorAll("[name=given]")];
const given = () => boxes.filter((box) => box.checked);
const sum = () => given().reduce((total, box) => total + Number(box.dataset.points), 0);
const byRubric = () => boxes.length > 0 && at("points").value !== "" && Math.abs(Number(at("points").value) - sum()) < 1e-9;
const key = `undo ${place}`;
const undos = JSON.parse(sessionStorage.getItem(key) || "[]");

function say() {
  const differs = boxes.length && at("points").value !== "" && !byRubric();
  at("by-hand").textContent = differs ? "Not the sum of the ticked points: the student's page will not name them." : "";
}

function points(value) {
  at("points").value = Math.min(value, Number(most));
  say();
}

for (const box of boxes) box.addEventListener("change", () => points(sum()));
at("points").addEventListener("input", say);
say();
for (const button of document.querySelectorAll(".reuse button")) {
  button.addEventListener("click", () => {
    const old = at("comment").value.trim();
    at("comment").value = old ? `${old}\n\n${button.textContent}` : button.textContent;
  });
}

async function ask(what) {
  at("problem").textContent = "";
  try {
    const reply = await fetch(place, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what),
    });
    const said = await reply.json();
    if (reply.ok) return said;
    at("problem").textContent = said.problem;
  } catch {
    at("problem").textContent = "Nothing was saved: the command `mark` does not answer.";
  }
  return null;
}

function go(to, said) {
  sessionStorage.setItem("said", said);
  location.assign(`${place}/${to}`);
}

async function save() {
  if (at("points").value === "") {
    at("problem").textContent = "Give points first.";
    return;
  }
  const mark = {
    number: Number(number), version, key: graded, points: Number(at("points").value), comment: at("comment").value,
    given: byRubric() ? given().map((box) => Number(box.value)) : null,
  };
  const said = await ask(mark);
  if (!said) return;
  sessionStorage.setItem(key, JSON.stringify([...undos, said.undo]));
  go(unmarked || number, `Answer ${number} is saved.`);
}

async function undo() {
  if (!undos.length) {
    at("problem").textContent = "There is nothing to undo.";
    return;
  }
  const said = await ask({ undo: undos.at(-1) });
  sessionStorage.setItem(key, JSON.stringify(undos.slice(0, -1)));
  if (said) go(said.number, `Answer ${said.number} is as it was before.`);
}

function all(on) {
  for (const box of boxes) box.checked = on;
  points(on ? Number(most) : 0);
}

at("said").textContent = sessionStorage.getItem("said") || "";
sessionStorage.removeItem("said");
at("form").addEventListener("submit", (event) => { event.preventDefault(); save(); });
at("undo").addEventListener("click", undo);

const follow = (id) => () => at(id)?.click();
const keys = {
  f: () => all(true), z: () => all(false), c: () => at("comment").focus(), s: save, u: undo,
  j: follow("next"), k: follow("previous"), n: follow("unmarked"),
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); save(); return; }
  if (event.key === "Escape") document.activeElement.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("textarea, input[type=number]")) return;
  if (/^[0-9]$/.test(event.key)) {
    event.preventDefault();
    if (boxes.length) boxes[Number(event.key) - 1]?.click();
    else if (Number(event.key) <= Number(most)) points(Number(event.key));
  } else if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});
