(() => {
// Paper is white: a page that is read in the dark is printed as in the light. On a screen with a contrast theme, which forces
// some colours and leaves those of drawings, the page is as light or dark as that theme.
const its = document.documentElement.dataset;
const forced = matchMedia("(forced-colors: active)"), night = matchMedia("(prefers-color-scheme: dark)");
let dark, printing;
function follow() {
  const theme = night.matches ? "dark" : "light";
  if (forced.matches && !printing && its.theme !== theme) its.theme = theme;
}
addEventListener("beforeprint", () => { [printing, dark, its.theme] = [true, dark || its.theme === "dark", "light"]; });
addEventListener("afterprint", () => { printing = false; if (dark) [dark, its.theme] = [false, "dark"]; });
for (const query of [forced, night]) query.addEventListener("change", follow);
new MutationObserver(follow).observe(document.documentElement, { attributeFilter: ["data-theme"] });
follow();
})();
