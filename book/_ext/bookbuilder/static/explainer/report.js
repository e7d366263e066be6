(() => {
// A report of an error names the section that is on the screen. It stands behind the colon of "Section:".
function section() {
  const above = [...document.querySelectorAll(".bd-article :is(h1, h2, h3)")].filter((heading) => heading.getBoundingClientRect().top < innerHeight / 4);
  return above.at(-1)?.innerText.replace(/\s*#$/, "") ?? "";
}

function fill(report) {
  const mark = report.dataset.section, named = (text) => text.replace(new RegExp(`${mark}.*`), () => `${mark} ${section()}`);
  if (report.tagName === "DETAILS") {
    const lines = report.querySelector("pre");
    lines.textContent = named(lines.textContent);
    return;
  }
  const address = new URL(report.href);
  for (const [name, value] of address.searchParams) if (value.includes(mark)) address.searchParams.set(name, named(value));
  report.href = address;
}

for (const event of ["click", "auxclick"])
  addEventListener(event, ({ target }) => { const report = target.closest?.(".xp-report"); if (report) fill(report); });
})();
