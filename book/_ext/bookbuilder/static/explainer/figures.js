(() => {
// What a reader takes away of a figure as it stands: its address, a picture, and a line that embeds it.
const { done, source, page, ...tools } = JSON.parse(document.getElementById("xp-figures").textContent);
const HERE = location.href.split(/[?#]/)[0], SVG = "http://www.w3.org/2000/svg", PAD = 16;
const textOf = (part) => part?.textContent.replace(/\s+/g, " ").trim() ?? "";

// The query that opens an explorable in its state
function query(figure) {
  const changed = figure.querySelector(".xp-widget")?.explorable?.changed() ?? [];
  return changed.length ? `?${figure.id.slice(4)}=${encodeURIComponent(JSON.stringify(Object.fromEntries(changed)))}` : "";
}

// A copy of an SVG whose colours and letters are its own: no classes, no variables of the page
const KEPT = ["color", "fill", "stroke", "font-family", "font-size", "font-weight", "font-style", "text-anchor", "stroke-width", "stroke-dasharray",
  "stroke-linecap", "stroke-linejoin", "fill-opacity", "stroke-opacity", "paint-order", "visibility"];
function resolved(node, above) {
  const copy = node.cloneNode(false), its = getComputedStyle(node);
  for (const name of ["class", "style", "tabindex"]) copy.removeAttribute(name);
  for (const name of KEPT) {
    const value = its.getPropertyValue(name);
    if (above?.getPropertyValue(name) === value) copy.removeAttribute(name);
    else if (value) copy.setAttribute(name, value);
  }
  if (its.opacity !== "1") copy.setAttribute("opacity", its.opacity);
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(child.cloneNode());
    else if (child.nodeType === Node.ELEMENT_NODE && child.localName !== "style" && getComputedStyle(child).display !== "none") copy.append(resolved(child, its));
  }
  return copy;
}

// The drawing of a figure as an SVG with a size
async function drawing(figure) {
  for (let k = 0; k < 50 && figure.querySelector(".xp-plotly:not([data-ready])"); k += 1) await new Promise((later) => setTimeout(later, 100)); // who is quicker than the plot
  const plot = figure.querySelector(".js-plotly-plot"), holder = figure.querySelector(".xp-widget");
  if (plot) {
    const [width, height] = [plot.clientWidth, plot.clientHeight], url = await window.Plotly.toImage(plot, { format: "svg", width, height });
    return { svg: new DOMParser().parseFromString(decodeURIComponent(url.slice(url.indexOf(",") + 1)), "image/svg+xml").documentElement, width, height };
  }
  const stage = Object.assign(document.createElement("div"), { className: "explorable", style: "position:absolute;visibility:hidden", innerHTML: holder?.explorable?.still() ?? "" });
  if (stage.innerHTML) holder.append(stage);
  await new Promise((later) => setTimeout(later)); // other languages have put their words into it
  const shown = stage.firstChild ?? figure.querySelector("svg"), { width, height } = shown.viewBox.baseVal;
  const svg = resolved(shown);
  for (const part of [svg, ...svg.querySelectorAll("*")]) if (stage.firstChild) part.removeAttribute("visibility");
  stage.remove();
  return { svg, width, height };
}

// Lines of a text in a font that fit into a width; a Chinese one ends after any character
function lines(text, font, width) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  return text.match(/[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+\s*|\s+/g).reduce((all, word) => {
    if (all.length && pen.measureText(all.at(-1) + word.trimEnd()).width <= width) all.push(all.pop() + word);
    else all.push(word);
    return all;
  }, []);
}

// What a reader has chosen of an explorable, and what it is now
const chosen = (figure) => [...figure.querySelectorAll(".explorable-controls label:has(span):not(.explorable-panel *)")].map((label) =>
  `${textOf(label.firstChild)}: ${label.querySelector("select")?.selectedOptions[0]?.text ?? (textOf(label.lastChild) || label.lastChild.value)}`).join("; ");

// The parts of a caption, and what it is about: its title, or the question of an explorable
function captionOf(figure) {
  const caption = figure.querySelector("figcaption").cloneNode(true), take = (part) => { const found = caption.querySelector(part); found?.remove(); return found; };
  const [number, sample, more] = [".xp-number", ".xp-sample", ".xp-badge-more"].map(take).map((part) => textOf(part?.querySelector("p") ?? part));
  const origin = [textOf(take(".xp-badge")), more].filter(Boolean).join(": ");
  return { number, sample, origin, caption: textOf(caption), about: textOf(caption.querySelector(".xp-title") ?? caption) };
}

// The picture with what it needs elsewhere: number, caption, state, how it was measured, where its numbers come from, source, licence
async function picture(figure) {
  const { svg, width: w, height: h } = await drawing(figure), { number, sample, origin, caption } = captionOf(figure);
  const site = document.querySelector('link[rel="canonical"]')?.href ?? (location.protocol === "file:" ? "" : HERE);
  const style = getComputedStyle(document.body), family = style.fontFamily, width = Math.max(w, 420), root = document.createElementNS(SVG, "svg");
  const make = (name, attributes, ...inside) => {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    node.append(...inside);
    return node;
  };
  let y = h + PAD;
  const paragraph = (text, size, bold = "") => lines(bold + text, `${size}px ${family}`, width - (bold ? PAD : 0)).map((line, i) => {
    const head = bold && !i ? bold : "";
    y += i ? 1.4 * size : 1.8 * size;
    return make("text", { x: PAD, y, "font-size": size }, ...(head ? [make("tspan", { "font-weight": 600 }, head)] : []), line.slice(head.length).trimEnd());
  });
  const text = [[`  ${caption}`, 14, number], [chosen(figure), 12], [[sample, origin].filter(Boolean).join(" "), 11],
    [`${source.book}${site && ` ${site}#${figure.id}`} · ${source.text}`, 11]].filter(([words]) => words).map((one) => paragraph(...one));
  const size = { width: width + 2 * PAD, height: Math.ceil(y + PAD) };
  for (const [name, value] of Object.entries({ x: PAD + (width - w) / 2, y: PAD, width: w, height: h })) svg.setAttribute(name, value);
  root.append(make("rect", { width: "100%", height: "100%", fill: style.backgroundColor }), svg, make("g", { fill: style.color, "font-family": family }, ...text.flat()));
  for (const [name, value] of Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}` })) root.setAttribute(name, value);
  return { text: new XMLSerializer().serializeToString(root), ...size };
}

function save(content, ending, figure) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(content), download: `${page.is}-${figure.id.slice(4)}.${ending}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function pixels({ text, width, height }) {
  const image = new Image(), canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((answer) => canvas.toBlob(answer));
}

const quoted = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const TAKE = {
  link: (figure) => `${HERE}${query(figure)}#${figure.id}`,
  svg: async (figure) => save(new Blob([(await picture(figure)).text], { type: "image/svg+xml" }), "svg", figure),
  png: async (figure) => save(await pixels(await picture(figure)), "png", figure),
  embed: (figure) => {
    const address = new URL(`${page.folder}${figure.dataset.alone}.html`, HERE).href + query(figure);
    const { number, about } = captionOf(figure), title = `${number}: ${about}`;
    return `<iframe src="${quoted(address)}" title="${quoted(title)}" loading="lazy" style="width:100%;height:min(${figure.clientHeight + 32}px,85vh);border:0"></iframe>`;
  },
};

// The clipboard, or the text itself where it is refused
async function copy(text, row, title) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = Object.assign(document.createElement("input"), { readOnly: true, value: text, title, className: "xp-copy", onblur: () => field.remove() });
    row.append(field);
    field.select();
    return false;
  }
}

for (const figure of document.querySelectorAll("figure[id^='fig-']")) {
  const row = Object.assign(document.createElement("div"), { className: "xp-tools" }), status = document.createElement("span");
  status.setAttribute("role", "status");
  for (const [name, { label, title }] of Object.entries(tools)) {
    if (name !== "link" && !figure.dataset.alone) continue;
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: label, title });
    button.setAttribute("aria-label", `${label}, ${textOf(figure.querySelector(".xp-number"))}`);
    button.addEventListener("click", async () => {
      status.textContent = "";
      const text = await TAKE[name](figure);
      if (!text || !await copy(text, row, title)) return;
      status.textContent = done.text;
      setTimeout(() => { status.textContent = ""; }, 3000);
    });
    row.append(button);
  }
  row.append(status);
  figure.querySelector("figcaption").after(row);
}
// What is above a linked figure gets its height late
const linked = location.hash.startsWith("#fig-") && document.getElementById(location.hash.slice(1));
if (linked) addEventListener("load", () => Promise.resolve(window.MathJax?.startup?.promise).then(() => linked.scrollIntoView({ behavior: "instant" })));
})();
