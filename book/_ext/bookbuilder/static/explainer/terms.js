(() => {
// A term is a link to the glossary. Hover, focus or a touch shows its definition in place; Escape takes it away.
const source = new URL("glossary.json", document.currentScript.src);
const box = Object.assign(document.createElement("span"), {id: "xp-definition", className: "xp-definition", hidden: true});
box.setAttribute("role", "tooltip");
let definitions, wanted = null, leaving, touched = false;

function place() {
  if (box.hidden) return;
  const line = wanted.getClientRects()[0];
  const below = line.bottom + box.offsetHeight + 12 < innerHeight;
  box.style.left = `${Math.max(8, Math.min(line.left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${below ? line.bottom + 6 : Math.max(8, line.top - box.offsetHeight - 6)}px`;
}

async function show(term) {
  clearTimeout(leaving);
  if (wanted === term) return;
  hide();
  wanted = term;
  definitions ??= fetch(source).then((answer) => answer.json()).catch(() => ({}));
  const words = (await definitions)[term.hash.replace("#term-", "")];
  if (wanted !== term || !words) return;
  box.textContent = words;
  term.after(box);
  box.hidden = false;
  term.setAttribute("aria-describedby", box.id);
  place();
}

function hide() {
  clearTimeout(leaving);
  wanted?.removeAttribute("aria-describedby");
  wanted = null;
  box.hidden = true;
}

const termOf = (event) => event.target.closest?.("a.xp-term");
const inside = (event) => termOf(event) || box.contains(event.target);
addEventListener("pointerover", (event) => {
  if (event.pointerType !== "mouse") return;
  if (termOf(event)) show(termOf(event));
  else if (box.contains(event.target)) clearTimeout(leaving);
  else if (wanted && wanted !== document.activeElement) {
    clearTimeout(leaving);
    leaving = setTimeout(hide, 300);
  }
});
addEventListener("pointerdown", (event) => {
  touched = event.pointerType !== "mouse" && termOf(event) && termOf(event) !== wanted;
  if (!inside(event)) hide();
});
addEventListener("click", (event) => {
  if (!termOf(event) || !touched) return;
  event.preventDefault(); // the first touch shows the definition, the second follows the link
  touched = false;
  show(termOf(event));
});
addEventListener("focusin", (event) => { if (termOf(event)) show(termOf(event)); });
addEventListener("focusout", (event) => { if (termOf(event) && !touched) hide(); });
addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
addEventListener("scroll", place, {passive: true});
addEventListener("resize", place);
})();
