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
  const scaled = (chapter, share) => { // 0.74: words are as small as captions
    for (const image of chapter.querySelectorAll("img")) image.style.width = `${share * image.naturalWidth}px`;
  };
  for (const chapter of document.querySelectorAll(".chapter")) scaled(chapter, 0.74);
  for (const code of document.querySelectorAll(".chapter pre")) { // 80 columns fit
    const columns = Math.max(...code.textContent.split("\n").map((line) => line.length));
    if (columns > 80 && columns <= 100) code.style.fontSize = `${7.5 * 80 / columns}pt`;
  }
  for (const element of document.querySelectorAll("pre, table")) if (element.getBoundingClientRect().height > 500) element.classList.add("long");
  for (const paragraph of document.querySelectorAll(".chapter p")) {
    const lines = paragraph.getBoundingClientRect().height / parseFloat(getComputedStyle(paragraph).lineHeight);
    if (lines < 3.5) paragraph.classList.add("whole"); // Chromium leaves one line of three behind
    const [line] = paragraph.getClientRects(), formulas = [...paragraph.querySelectorAll("mjx-container")];
    if (formulas.some((formula) => formula.getBoundingClientRect().width > 0.3 * line?.width)) paragraph.classList.add("loose");
  }
  // In columns as high as pages a chapter breaks as it will in print. A figure that would leave much of a page empty becomes
  // a little smaller or goes behind the next paragraphs, as floating figures do, and few last lines have no page of their own.
  const page = 763; // pixels: 202 mm
  for (const chapter of document.querySelectorAll(".chapter")) {
    chapter.classList.add("measured");
    const end = (element) => [...element.getClientRects()].at(-1), top = chapter.getBoundingClientRect().top;
    const figures = [...chapter.querySelectorAll("figure")];
    for (const figure of figures) {
      const block = figure.closest("section > *"), image = figure.querySelector("img"), least = figure === figures[0] ? 0.6 : 0.8;
      for (let tries = 4; tries > 0; tries--) {
        const [before, after] = [block.previousElementSibling, block.nextElementSibling];
        if (!before || end(before).left === block.getClientRects()[0].left) break;
        const left = top + page - end(before).bottom, high = image?.getBoundingClientRect().height ?? 0;
        const room = left - (figure.getBoundingClientRect().height - high) - 24;
        if (image && room > least * high) { image.style.maxHeight = `${room}px`; break; }
        if (left < 0.2 * page || !after?.matches("p") || /[:：]\s*$/.test(before.textContent)) break;
        block.before(after);
      }
    }
    const last = [...chapter.querySelectorAll("p, li, pre, tr, figcaption")].at(-1), column = end(last).left;
    const tighter = (step) => { chapter.style.setProperty("--step", step); scaled(chapter, 0.74 - 0.01 * step); };
    if (end(last).bottom - top < 0.2 * page) {
      for (let step = 1; step < 5 && end(last).left === column; step++) tighter(step);
      if (end(last).left === column) tighter(0);
    }
    chapter.classList.remove("measured");
  }
  const edge = document.body.getBoundingClientRect().right + 2;
  const wide = [...document.querySelectorAll(".chapter *")].filter((element) => !element.closest("mjx-assistive-mml") && element.getBoundingClientRect().right > edge)
    .map((element) => `${element.closest(".chapter").className}: ${element.textContent.slice(0, 60)}`);
  return document.documentElement.scrollWidth > edge ? [...wide, "something unseen"] : wide; // the browser would shrink every page
}
