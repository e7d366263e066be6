(() => {
// Paper is white: a page that is read in the dark is printed as in the light.
const page = document.documentElement;
let dark = false;
addEventListener("beforeprint", () => {
  if (page.dataset.theme === "dark") [dark, page.dataset.theme] = [true, "light"];
});
addEventListener("afterprint", () => {
  if (dark) [dark, page.dataset.theme] = [false, "dark"];
});
})();
