// What the search shows of a page: its text, without menus and buttons, and with formulas as they are read.
addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // only the search page has it
  const LETTERS = {
    alpha: "α", beta: "β", gamma: "γ", delta: "δ", varepsilon: "ε", epsilon: "ε", eta: "η", theta: "θ", lambda: "λ",
    mu: "μ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", varphi: "φ", omega: "ω", cdot: "·", times: "×", sum: "∑",
    sqrt: "√", le: "≤", ge: "≥", approx: "≈", ne: "≠", neq: "≠", to: "→", leftarrow: "←", infty: "∞", top: "ᵀ",
    partial: "∂", odot: "⊙", ldots: "…", dots: "…", pm: "±", in: "∈", prod: "∏", ell: "ℓ",
  };
  const UNREAD = /^(q?quad|text|operatorname|math\w+|left|right|displaystyle|[bB]ig+[lr]?)$/;
  const named = (_, name) => LETTERS[name] ?? (UNREAD.test(name) ? " " : name);
  const fraction = (_, over, under) => `(${over})/(${under})`.replace(/[{}]/g, "");
  function readable(tex) {
    let text = tex.replace(/\\(begin|end)\{\w+\}|\\\\|\\[()[\]]|&/g, " ");
    for (let before = ""; before !== text; ) {
      before = text; // from the innermost braces outwards
      text = text
        .replace(/\\[dt]?frac\s*(\{[^{}]*\}|\w)\s*(\{[^{}]*\}|\w)/g, fraction)
        .replace(/([_^]|\\sqrt\s*|\\(?:text|operatorname|math\w+)\s*)\{([^{}]*)\}/g, "$1 $2");
    }
    return text
      .replace(/\((\w+|\S)\)\/\((\w+|\S)\)/g, "$1/$2")
      .replace(/\\([a-zA-Z]+)/g, named)
      .replace(/([_^√]) +/g, "$1")
      .replace(/\\.|[{}$]/g, " ")
      .replace(/\s+/g, " ")
      .trim();
  }

  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector("article.bd-article") ?? page.querySelector("[role=main]");
    if (!article) return "";
    const unread =
      "script, style, .headerlink, .eqno, .live-bar, .live-hint, .live-need, .live-figure, details.hide, .quiz-bar, " +
      ".visually-hidden";
    article.querySelectorAll(unread).forEach((part) => part.remove());
    article.querySelectorAll(".math").forEach((formula) => {
      if (!formula.querySelector(".math")) formula.textContent = ` ${readable(formula.textContent)} `;
    });
    // without this the last word of a paragraph and the first of the next become one
    const blocks = "p, li, dt, dd, h1, h2, h3, h4, td, th, pre, legend, label";
    article.querySelectorAll(blocks).forEach((part) => part.append(" "));
    const wanted = (anchor && article.querySelector(anchor)) || article;
    return wanted.textContent.replace(/\s+/g, " ");
  };
});
