(() => {
// Draws `.xp-plotly` figures with the plotly.js beside this file, when they come near the viewport.
const BASE = new URL(".", document.currentScript.src);
// Okabe and Ito's colours, the text's own colour first: told apart without colour vision, readable on light and dark.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999"];
let library;

function plotly() {
  return (library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("plotly.min.js", BASE).href;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("plotly.js did not load"));
    document.head.append(script);
  }));
}

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const NARROW = 500, AXIS_ROOM = 75, LEAST = 150; // pixels: a phone's column; tick labels and title of the lowest axis; the height of the plots

function template(narrow) {
  const text = variable("--pst-color-text-base") || "#222", line = variable("--pst-color-border") || "#ccc";
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, fixedrange: true }; // no zoom: a finger scrolls the page, and nobody gets lost
  if (narrow) axis.title = { font: { size: 12 } };
  const scene = { ...axis, backgroundcolor: "rgba(0,0,0,0)" };
  return { layout: {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: COLOURS, dragmode: false,
    font: { color: text, family: variable("--pst-font-family-base") || "sans-serif", size: 14 },
    xaxis: axis, yaxis: axis, scene: { xaxis: scene, yaxis: scene, zaxis: scene },
    hoverlabel: { font: { family: "sans-serif" } }, shapedefaults: { line: { color: text } },
  } };
}

// A text in lines of at most n characters, where its words allow it
const inLines = (text, n) => text.split(" ").reduce((lines, word) => {
  const longer = `${lines.at(-1)} ${word}`;
  return lines.length && longer.length <= n ? [...lines.slice(0, -1), longer] : [...lines, word];
}, []).join("<br>");

// Names below an axis, in one line and turned where one of theirs has more letters than its place
const upright = (names, room) => names.some((name) => name.split("<br>").some((line) => line.length > 1.3 * room / names.length))
  ? { ticktext: names.map((name) => name.replaceAll("<br>", " ")), tickangle: 90, automargin: true, tickfont: { size: 12 } } : {};

// Names of rows, titles of axes and titles of panels side by side, which a phone has no room for in one line
function fitted(layout, width) {
  const axes = Object.entries(layout).filter(([name]) => /^[xy]axis\d*$/.test(name));
  const columns = new Set(axes.filter(([name]) => name[0] === "x").map(([, axis]) => axis.domain?.[0] ?? 0)).size;
  const room = Math.floor(width / columns / 11);
  const titles = columns > 1 && layout.annotations?.map((one) => one.showarrow === false && one.xref === "paper"
    ? { ...one, text: inLines(one.text, room), font: { ...one.font, size: 12 } } : one);
  return Object.fromEntries([...(titles ? [["annotations", titles]] : []), ...axes.map(([name, axis]) => [name, {
    ...axis,
    ...(name[0] === "y" && axis.ticktext && { ticktext: axis.ticktext.map((text) => inLines(text, 18)), tickfont: { size: 12 } }),
    ...(name[0] === "x" && axis.ticktext && upright(axis.ticktext, room)),
    ...(name[0] === "x" && axis.domain?.[1] < 1 && { domain: [axis.domain[0], axis.domain[1] - 0.05] }), // its last number is not the next one's first
    ...(name[0] === "y" && axis.type === "log" && !axis.tickvals && { nticks: 4 }),
    ...(name[0] === "x" && columns > 1 && !axis.tickvals && { nticks: 4, tickfont: { size: 11 } }),
    ...(name[0] === "x" && axis.title?.text && { title: { ...axis.title, text: inLines(axis.title.text, room) } }),
  }])]);
}

// Names of rows in several lines need rows as high, and below a long legend curves need room; whether the figure had to grow
async function apart(library, target) {
  const { layout, _fullLayout: full } = target;
  const lacks = Object.entries(layout).filter(([name, axis]) => /^yaxis\d*$/.test(name) && full[name] && axis.ticktext?.length).map(([name, axis]) => {
    const [low, high] = full[name].domain, lines = Math.max(...axis.ticktext.map((text) => text.split("<br>").length));
    return axis.ticktext.length * (15 * lines + 4) / (high - low) - full._size.h;
  });
  const most = Math.max(0, LEAST - full._size.h, ...lacks);
  if (most) await library.relayout(target, { height: full.height + most });
  return most > 0;
}

// A title of an axis or a panel that would leave the figure has several lines
async function whole(library, target) {
  const edge = target.getBoundingClientRect(), patch = {}, { annotations, ...full } = target._fullLayout;
  const wrap = (name, node, text, size = 12) => { // in the letters of a phone
    const box = node?.getBoundingClientRect(), middle = box && (box.left + box.right) / 2, room = 2 * Math.min(middle - edge.left, edge.right - middle);
    if (!(box?.width > room + 1)) return;
    const longest = Math.max(...text.split("<br>").map((line) => line.length));
    Object.assign(patch, { [`${name}.font.size`]: 12, [`${name}.text`]: inLines(text.replaceAll("<br>", " "), Math.floor(longest * room / box.width * size / 12)) });
  };
  for (const name of Object.keys(full).filter((name) => /^xaxis\d*$/.test(name)))
    wrap(`${name}.title`, target.querySelector(`.g-${full[name]._id}title`), full[name].title.text ?? "", full[name].title.font.size);
  annotations.forEach(({ xref, text, font }, i) => xref === "paper" && wrap(`annotations[${i}]`, target.querySelector(`.annotation[data-index="${i}"]`), text, font.size));
  if (Object.keys(patch).length) await library.relayout(target, patch);
}

const drawn = new Set();

// A legend's place is a share of the height of the plots, which the legend itself takes room from
async function legendBelow(library, target) {
  for (let pass = 0; pass < 2; pass += 1) {
    const { t, h } = target._fullLayout._size, foot = target.getBoundingClientRect().top + t + h;
    const room = [...target.querySelectorAll("[class^='g-x'][class$='title']")].map((title) => title.getBoundingClientRect().bottom - foot + 8);
    await library.relayout(target, { "legend.y": -Math.max(AXIS_ROOM, ...room) / h, "legend.yanchor": "top" });
  }
}

// Whether a legend begins where the title of the lowest axis stands
const meets = ({ legend, _size: size }) => legend.orientation === "h" && legend.y < 0 && -legend.y * size.h < AXIS_ROOM;

// The figure for the width that it has now
async function arrange(library, div, target) {
  const { data, layout: given, frames } = JSON.parse(div.querySelector("script").textContent), width = div.clientWidth, narrow = width < NARROW;
  const fit = narrow && { ...fitted(given, width), legend: { orientation: "h", y: -0.25, yanchor: "top" } };
  const titles = Math.max(2, ...(fit && fit.annotations || []).map(({ text }) => text.split("<br>").length)); // lines above the plots
  const margin = { l: 55, r: 15, t: 10 + 15 * titles, b: 50, ...given.margin };
  const layout = { autosize: true, uirevision: "kept", ...given, margin, ...fit, width: undefined, template: template(narrow) };
  if (narrow) for (const trace of data) trace.name &&= inLines(trace.name, Math.floor((width - 50) / 7.3)); // 50: its mark in the legend
  await library.react(target, { data, layout, frames: frames ?? [], config: { displaylogo: false, displayModeBar: false } });
  await whole(library, target);
  const below = async () => { const full = target._fullLayout; if (full.showlegend && (narrow || meets(full))) await legendBelow(library, target); };
  await below();
  if (narrow && await apart(library, target)) await below();
}

async function draw(div) {
  if (div.dataset.drawing) return;
  div.dataset.drawing = "1";
  const library = await plotly(), target = document.createElement("div");
  let width = div.clientWidth, waiting;
  div.append(target);
  await arrange(library, div, target);
  div.querySelector(".xp-wait")?.remove();
  div.dataset.ready = "1";
  drawn.add(target);
  new ResizeObserver(() => { // a phone is turned, a window made smaller
    if ([0, width].includes(div.clientWidth)) return;
    clearTimeout(waiting);
    [width, waiting] = [div.clientWidth, setTimeout(() => arrange(library, div, target), 100)];
  }).observe(div);
}

function attempt(div) {
  draw(div).catch((error) => { console.error(error); }); // the text alternative and the table stay
}

function start() {
  const figures = document.querySelectorAll(".xp-plotly");
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { observer.unobserve(entry.target); attempt(entry.target); }
  }, { rootMargin: "600px" });
  figures.forEach((figure) => observer.observe(figure));
  const colour = () => drawn.forEach((target) => window.Plotly.update(target, {}, { template: template(target.clientWidth < NARROW) }));
  addEventListener("beforeprint", () => { figures.forEach(attempt); colour(); }); // print.js has made the page light
  new MutationObserver(() => requestAnimationFrame(colour)).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}
document.readyState === "loading" ? addEventListener("DOMContentLoaded", start) : start();
})();
