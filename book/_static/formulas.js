// A formula that is wider than its column is made smaller, down to the size at which it can still be read; one that is
// wider still scrolls, and only then is it a stop of the tab key.
(() => {
  const SMALLEST = 0.75;
  const room = (formula) => {
    if (formula.hasAttribute("display")) return formula.clientWidth;
    let box = formula.parentElement;
    while (getComputedStyle(box).display.startsWith("inline")) box = box.parentElement;
    return box.clientWidth;
  };

  function fit() {
    const formulas = [...document.querySelectorAll(".bd-content mjx-container")];
    for (const formula of formulas) {
      formula.dataset.size ??= parseFloat(formula.style.fontSize) || 100;
      formula.style.fontSize = `${formula.dataset.size}%`;
      formula.classList.remove("scrolls");
      formula.removeAttribute("tabindex");
    }
    const sizes = formulas.map((formula) => [formula, room(formula), formula.firstElementChild.getBoundingClientRect().width]);
    for (const [formula, has, needs] of sizes) {
      if (!has || needs <= has + 1) continue; // nothing has a width while it is folded away
      const scale = Math.max(SMALLEST, (0.995 * has) / needs);
      formula.style.fontSize = `${scale * formula.dataset.size}%`;
      if (needs * scale > has) {
        formula.classList.add("scrolls");
        formula.tabIndex = 0;
      }
    }
  }

  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    fit();
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth !== width) fit();
      width = innerWidth;
    });
    document.addEventListener("toggle", fit, true); // a fold was opened
  });
})();
