(() => {
// Paper is white: a page that is read in the dark is printed as in the light.
const its = document.documentElement.dataset;
let dark;
addEventListener("beforeprint", () => { [dark, its.theme] = [dark || its.theme === "dark", "light"]; });
addEventListener("afterprint", () => { if (dark) [dark, its.theme] = [false, "dark"]; });
})();
