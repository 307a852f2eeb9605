// Tables that sort: each heading becomes a button; empty cells stay last. Without this script the tables still read well.
"use strict";
const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
function valueOf(row, column) {
  const cell = row.cells[column];
  return cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim();
}
function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const x = Number(a), y = Number(b);
  return sign * (Number.isNaN(x) || Number.isNaN(y) ? order.compare(a, b) : x - y);
}
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
      rows.sort((a, b) => compare(a[0], b[0], up ? 1 : -1));
      body.append(...rows.map((pair) => pair[1]));
    });
  });
}
const finder = document.getElementById("find");
if (finder) {
  finder.closest("[hidden]").hidden = false;
  finder.addEventListener("input", () => {
    const wanted = finder.value.trim().toLowerCase();
    let shown = 0;
    for (const row of document.querySelectorAll("#students-table tbody tr")) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    document.getElementById("found").textContent = wanted ? `${shown} found` : "";
  });
}
