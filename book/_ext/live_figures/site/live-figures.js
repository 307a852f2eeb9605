// Puts a page's live figures in the place of their printed drawings when they come into sight.
(() => {
  "use strict";
  const here = document.currentScript.src;

  // What anywidget gives a module: values by name, and who wants to hear of changes.
  class Model {
    constructor(start) {
      this.values = start;
      this.heard = new Map();
    }
    get(name) {
      return this.values[name];
    }
    set(name, value) {
      this.values[name] = value;
      for (const hear of this.heard.get(`change:${name}`) ?? []) hear();
    }
    on(event, hear) {
      this.heard.set(event, [...(this.heard.get(event) ?? []), hear]);
    }
    save_changes() {
      // a page has no kernel that would want to know
    }
  }

  async function show(el) {
    const { default: figure } = await import(new URL(el.dataset.module, here).href);
    el.model = new Model(JSON.parse(el.dataset.start));
    figure.render({ model: el.model, el });
    el.hidden = false;
    const drawing = el.previousElementSibling;
    if (drawing.matches(".tag_remove-input")) drawing.classList.add("has-live-figure"); // it is for paper now
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        const el = document.querySelector(`.live-figure[data-place="${target.dataset.figure}"]`);
        // without the module the drawing stays
        show(el).catch((error) => console.warn(`Live figure: ${error.message}`));
      }
    },
    { rootMargin: "300px" },
  );
  document.querySelectorAll(".live-figure").forEach((el, place) => {
    el.dataset.place = place;
    const inSight = el.hidden ? el.previousElementSibling : el; // what is hidden is never seen
    inSight.dataset.figure = place;
    seen.observe(inSight);
  });
})();
