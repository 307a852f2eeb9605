// Paper is white: print in the light colours, whatever the screen shows. Style sheets cannot do this alone, because
// the theme and the code's colours hang on an attribute of the page.
(() => {
  const root = document.documentElement;
  let onScreen = null;
  window.addEventListener("beforeprint", () => {
    onScreen = root.dataset.theme;
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    if (onScreen !== null) root.dataset.theme = onScreen;
    onScreen = null;
  });
})();
