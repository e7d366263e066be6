async ({ name, known, base, figures, tables, words }) => {
  // Turns an open page of the site into a chapter of a book without scripts: formulas as MathML, figures as pictures with
  // numbers, folds unfolded, solutions apart. Links to pages of the book become `#page.section`.
  const page = known[name], site = location.href.slice(0, location.href.lastIndexOf(`${name}.html`));
  const article = document.querySelector("article.bd-article > section");
  const all = (selector) => [...article.querySelectorAll(selector)];
  const made = (tag, className, ...children) => {
    const element = Object.assign(document.createElement(tag), { className });
    element.append(...children);
    return element;
  };
  const origin = (element) => {
    const badge = element.querySelector(".xp-badge"), more = badge?.querySelector(".xp-badge-more");
    badge?.remove();
    const [kind, details] = [badge?.firstChild.textContent, more?.textContent];
    return badge ? [" ", made("small", "origin", details ? `${kind}: ${details}` : `${kind}.`)] : [];
  };

  // Plotly's figures are drawn when the page is printed.
  dispatchEvent(new Event("beforeprint"));
  for (const begin = Date.now(); !all(".xp-plotly").every((figure) => figure.dataset.ready);) {
    if (Date.now() - begin > 300_000) throw new Error(`A figure of ${name} was not drawn in five minutes.`);
    await new Promise((wake) => setTimeout(wake, 50));
  }

  // What a reader of paper does not need.
  const gone = "script, style, .headerlink, .xp-minutes, .xp-data, .xp-code, .toctree-wrapper, .tag_hide-cell, details.hide, .copybtn";
  all(gone).forEach((element) => element.remove());

  // Formulas: MathML as MathJax makes it for screen readers, with its LaTeX beside it.
  await window.MathJax?.startup?.promise;
  for (const { typesetRoot, math: latex, display } of window.MathJax?.startup?.document?.math ?? []) {
    const math = typesetRoot.querySelector("mjx-assistive-mml > math");
    if (!article.contains(typesetRoot)) continue;
    math.setAttribute("alttext", latex.trim());
    if (display) math.setAttribute("display", "block");
    typesetRoot.replaceWith(math);
  }

  // Figures: each drawing is a file with a white ground, each has a number.
  const pictures = {};
  const picture = (svg, alt) => {
    svg.querySelectorAll("path:not([d])").forEach((path) => path.remove());
    for (const element of svg.querySelectorAll("svg, g, defs")) // words that are no text of a drawing
      for (const node of [...element.childNodes]) if (node.nodeType === Node.TEXT_NODE) node.remove();
    const file = `images/${page}-${Object.keys(pictures).length + 1}.svg`;
    pictures[file] = new XMLSerializer().serializeToString(svg);
    return Object.assign(new Image(), { src: file, alt });
  };
  const inline = (svg) => {
    const alt = svg.getAttribute("aria-label");
    for (const attribute of ["aria-label", "role", "style", "font-family"]) svg.removeAttribute(attribute);
    return picture(svg, alt);
  };
  for (const figure of all(".xp-plotly")) {
    const plot = figure.querySelector(".js-plotly-plot"), { width, height } = plot._fullLayout;
    const url = await Plotly.toImage(plot, { format: "svg", width, height });
    const svg = new DOMParser().parseFromString(decodeURIComponent(url.slice(url.indexOf(",") + 1)), "image/svg+xml").documentElement;
    figure.replaceWith(picture(svg, figure.getAttribute("aria-label")));
  }
  for (const widget of all(".xp-widget")) {
    const figure = widget.querySelector("figure"), caption = figure.querySelector("figcaption"), below = widget.nextElementSibling;
    const [question] = caption.textContent.split(words.scripted);
    const place = base ? Object.assign(made("a", "", words.interactive), { href: `${base}${name}.html` }) : words.interactive;
    caption.replaceChildren(`${question.trim()} `, place);
    if (below?.matches(".xp-origin")) { caption.append(...origin(below)); below.remove(); }
    widget.replaceWith(figure);
  }
  for (const figure of all("figure")) {
    figure.querySelectorAll("svg").forEach((svg) => svg.parentElement.closest("svg") ?? svg.replaceWith(inline(svg)));
    const caption = figure.querySelector("figcaption"), table = figure.classList.contains("xp-table");
    const number = table ? ++tables : ++figures;
    figure.id = `${table ? "table" : "figure"}-${number}`;
    const below = origin(caption);
    for (const sample of caption.querySelectorAll(".xp-sample")) {
      sample.replaceWith(" ", made("small", "sample", ...sample.querySelector("p").childNodes));
    }
    caption.append(...below);
    caption.prepend(made("strong", "number", `${table ? words.table : words.figure} ${number}. `));
  }
  all(".xp-badge").forEach((badge) => badge.closest("p")?.replaceWith(made("p", "", ...origin(badge.closest("p")))));

  // Exercises: their solutions go to the end, and a link to them stands in their place.
  const solutions = [], boxes = all(".xp-box").filter((box) => box.firstElementChild.textContent.startsWith(words.exercise));
  for (const fold of all("details").filter((each) => each.querySelector("summary").textContent.trim() === words.solution)) {
    const box = boxes.filter((each) => each.compareDocumentPosition(fold) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
    const number = solutions.length + 1, title = box.firstElementChild.textContent;
    box.id = `exercise-${number}`;
    fold.querySelector("summary").remove();
    const body = made("section", "solution", ...fold.childNodes);
    body.id = `solution-${number}`;
    body.prepend(made("h3", "", Object.assign(made("a", "to-exercise", title), { href: `#${page}.exercise-${number}` })));
    box.append(made("p", "way", Object.assign(made("a", "to-solution", words.solution), { href: `#${page}.solution-${number}` })));
    fold.remove();
    solutions.push(body);
  }

  // Other folds stand open. The inner ones first.
  for (const fold of all("details").reverse()) {
    const title = fold.querySelector("summary"), spare = fold.classList.contains("xp-spare");
    const open = made(fold.closest("figure, p") ? "span" : "div", `fold ${fold.className}`.trim(), made(spare ? "h2" : "p", "fold-title", ...title.childNodes));
    title.remove();
    open.append(...fold.childNodes);
    fold.replaceWith(open);
  }

  // Links, names and attributes, in the chapter and in its solutions.
  article.id = "";
  for (const root of [article, ...solutions]) {
    for (const link of root.querySelectorAll("a[href]")) {
      const way = link.getAttribute("href"), inside = link.href.startsWith(site);
      if (way.startsWith(`#${page}.`) || (!inside && /^https?:/.test(link.href))) continue;
      const [, to, place] = link.href.slice(site.length).match(/^(.*?)(?:\.html)?(?:#(.*))?$/);
      if (inside && known[to]) {
        link.setAttribute("href", `#${known[to]}${place ? `.${decodeURIComponent(place)}` : ""}`);
        if (!place && !link.classList.contains("xp-term")) link.classList.add("to-page");
      } else if (inside && base && link.href.includes(".html")) link.setAttribute("href", `${base}${link.href.slice(site.length)}`);
      else link.replaceWith(...link.childNodes);
    }
    for (const image of root.querySelectorAll("img"))
      if (!pictures[image.getAttribute("src")]) {
        const file = `images/${page}-${image.src.split("/").at(-1)}`;
        pictures[file] = { from: decodeURIComponent(image.src.slice(site.length)) };
        image.setAttribute("src", file);
      }
    for (const element of [root, ...root.querySelectorAll("*")]) {
      for (const attribute of [...element.attributes])
        if (/^(data-|aria-|on)|^(tabindex|role|style|translate|title)$/.test(attribute.name)) element.removeAttribute(attribute.name);
      if (element.id) element.id = `${page}.${element.id}`;
      else element.removeAttribute("id");
      if (!element.getAttribute("class")) element.removeAttribute("class");
    }
  }
  article.id = page;
  const text = (element) => new XMLSerializer().serializeToString(element);
  const outline = all("h2").filter((head) => head.parentElement.id).map((head) => [head.parentElement.id, head.textContent.trim()]);
  const title = article.querySelector("h1").textContent.trim();
  return { page, title, body: text(article), solutions: solutions.map(text), outline, pictures, figures, tables };
}
