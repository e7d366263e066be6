(() => {
// A display equation that is wider than the page scrolls, so the keyboard must reach it.
function reach() {
  for (const equation of document.querySelectorAll("mjx-container[display]")) {
    if (equation.scrollWidth > equation.clientWidth) equation.tabIndex = 0;
    else equation.removeAttribute("tabindex");
  }
}

const waiting = new ResizeObserver(reach);
addEventListener("load", () => window.MathJax?.startup?.promise?.then(() => waiting.observe(document.body)));
})();
