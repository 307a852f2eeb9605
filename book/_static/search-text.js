// What the search shows of a page: its text, without menus and buttons, and with formulas as they are read.
addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // only the search page has it
  const LETTERS = {
    alpha: "α", beta: "β", gamma: "γ", delta: "δ", varepsilon: "ε", epsilon: "ε", eta: "η", theta: "θ", lambda: "λ",
    mu: "μ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", varphi: "φ", omega: "ω", cdot: "·", times: "×", sum: "∑",
    sqrt: "√", le: "≤", ge: "≥", approx: "≈", ne: "≠", neq: "≠", to: "→", leftarrow: "←", infty: "∞", top: "ᵀ",
    partial: "∂", odot: "⊙", ldots: "…", dots: "…", pm: "±", in: "∈", prod: "∏", ell: "ℓ",
  };
  const SPACES = new Set(["quad", "qquad"]);
  const readable = (tex) =>
    tex
      .replace(/\\begin\{\w+\}|\\end\{\w+\}|\\[()[\]]|&/g, " ")
      .replace(/\\\\/g, " ")
      .replace(/\\[dt]?frac\s*(\{[^{}]*\}|\w)\s*(\{[^{}]*\}|\w)/g, "$1/$2")
      .replace(/\\([a-zA-Z]+)/g, (_, name) => LETTERS[name] ?? (SPACES.has(name) ? " " : /^(text|operatorname|mathbf|left|right|displaystyle|bigl?|bigr|Bigl?|Bigr)$/.test(name) ? "" : name))
      .replace(/\\(.)/g, " ")
      .replace(/[{}$]/g, "")
      .replace(/\s+/g, " ")
      .trim();

  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector("article.bd-article") ?? page.querySelector("[role=main]");
    if (!article) return "";
    const unread = "script, style, .headerlink, .eqno, .live-bar, .live-hint, .live-need, details.hide, .quiz-bar, .visually-hidden";
    article.querySelectorAll(unread).forEach((part) => part.remove());
    article.querySelectorAll(".math").forEach((formula) => {
      if (!formula.querySelector(".math")) formula.textContent = ` ${readable(formula.textContent)} `;
    });
    // without this the last word of a paragraph and the first of the next become one
    article.querySelectorAll("p, li, dt, dd, h1, h2, h3, h4, td, th, pre, legend, label").forEach((part) => part.append(" "));
    const wanted = (anchor && article.querySelector(anchor)) || article;
    return wanted.textContent.replace(/\s+/g, " ");
  };
});
