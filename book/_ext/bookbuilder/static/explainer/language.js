// The way to the other language opens here and keeps the place on the page.
for (const link of document.querySelectorAll(".btn-xp-language")) {
  link.removeAttribute("target");
  link.addEventListener("click", () => { link.hash = location.hash; });
}
