async () => {
  // Sets the formulas of the printed book, and makes smaller what is wider than its page.
  for (const math of document.querySelectorAll("math")) {
    const latex = math.getAttribute("alttext"), block = math.getAttribute("display") === "block";
    math.replaceWith(block ? `\\[${latex}\\]` : `\\(${latex}\\)`);
  }
  await MathJax.startup.promise;
  await MathJax.typesetPromise();
  await document.fonts.ready;
  const box = (element) => element.parentElement.closest("p, li, dt, dd, h1, h2, h3, div, section");
  const width = (element) => { // of what is inside a box that is as wide as its place
    const range = document.createRange();
    range.selectNodeContents(element);
    return range.getBoundingClientRect().width;
  };
  const tooWide = (element) => width(element) > box(element).getBoundingClientRect().width + 1;
  for (const element of document.querySelectorAll(".chapter mjx-container, .chapter table")) {
    if (element.parentElement.closest("td, th")) continue; // the table is measured
    const size = parseFloat(getComputedStyle(element).fontSize);
    for (let share = 1; tooWide(element) && share > 0.5; share -= 0.03) element.style.fontSize = `${share * size}px`;
  }
  for (const image of document.querySelectorAll(".chapter img")) image.style.width = `${0.74 * image.naturalWidth}px`; // words as small as captions
  for (const chapter of document.querySelectorAll(".chapter")) { // a picture that opens a chapter stays on its first page
    const first = chapter.querySelector("img");
    if (first && first.getBoundingClientRect().top - chapter.getBoundingClientRect().top < 300) first.classList.add("opening");
  }
  for (const element of document.querySelectorAll("pre, table")) if (element.getBoundingClientRect().height > 500) element.classList.add("long");
  const edge = document.body.getBoundingClientRect().right + 2;
  return [...document.querySelectorAll(".chapter *")].filter((element) => !element.closest("mjx-assistive-mml") && element.getBoundingClientRect().right > edge)
    .map((element) => `${element.closest(".chapter").className}: ${element.textContent.slice(0, 60)}`);
}
