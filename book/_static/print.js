// On paper: light colours, whatever the screen shows; what is folded stands open, and is folded again afterwards; and
// the title has its chapter's number. Style sheets cannot do this alone.
(() => {
  const root = document.documentElement;
  let onScreen = null;
  let opened = [];
  window.addEventListener("beforeprint", () => {
    onScreen ??= root.dataset.theme;
    root.dataset.theme = "light";
    for (const fold of document.querySelectorAll(".bd-content details.fold:not([open])")) {
      fold.open = true;
      opened.push(fold);
    }
  });
  window.addEventListener("afterprint", () => {
    if (onScreen !== null) root.dataset.theme = onScreen;
    onScreen = null;
    for (const fold of opened) fold.open = false;
    opened = [];
  });
  window.addEventListener("DOMContentLoaded", () => {
    const number = document.querySelector(".bd-article h1 > .section-number");
    const title = document.querySelector("#jb-print-docs-body > h1");
    if (number && title) title.prepend(number.cloneNode(true));
  });
})();
