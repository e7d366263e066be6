(() => {
// Draws `.xp-plotly` figures with the plotly.js beside this file, when they come near the viewport.
const BASE = new URL(".", document.currentScript.src);
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

// The figure that a page holds, in the colours of its scheme, which `div.colours` keeps by their names
function figureOf(div) {
  div.colours = new Map();
  const put = (_, name) => { div.colours.set(name, variable(name)); return variable(name); };
  return JSON.parse(div.querySelector("script").textContent.replace(/var\((--xp-\w+)\)/g, put));
}

// What is drawn in the colours of another scheme, at once: a printer does not wait
function repaint(target) {
  const { colours } = target.parentElement, rgb = (hex) => `rgb(${[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(", ")})`;
  const other = new Map([...colours].map(([name, was]) => [rgb(was), rgb(variable(name))]));
  for (const name of colours.keys()) colours.set(name, variable(name));
  for (const node of target.querySelectorAll("[style]"))
    node.setAttribute("style", node.getAttribute("style").replace(/rgb\(\d+, \d+, \d+\)/g, (colour) => other.get(colour) ?? colour));
}

// A text in lines of at most n characters, where its words allow it
const inLines = (text, n) => text.split(" ").reduce((lines, word) => {
  const longer = `${lines.at(-1)} ${word}`;
  return lines.length && longer.length <= n ? [...lines.slice(0, -1), longer] : [...lines, word];
}, []).join("<br>");

// Names below an axis where one of theirs has more letters than its place: in one line and turned, of numbers every second
const upright = (names, room) => !names.some((name) => name.split("<br>").some((line) => line.length > 1.3 * room / names.length)) ? {}
  : names.every((name) => /^[\d.⁻¹²³⁰-⁹]+$/.test(name)) ? { ticktext: names.map((name, i) => (i % 2 ? "" : name)) } : { ticktext: names.map((name) => name.replaceAll("<br>", " ")), tickangle: 90, automargin: true, tickfont: { size: 12 } };

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
    ...(name[0] === "x" && axis.domain?.[1] < 1 && { domain: [axis.domain[0], axis.domain[1] - 0.07] }), // its last number is not the next one's first
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

// Left, top, right and bottom of a part in the pixels of its figure, which a slide magnifies
function boxIn(target, part) {
  const edge = target.getBoundingClientRect(), its = part.getBoundingClientRect(), scale = target.offsetWidth / edge.width || 1;
  return [its.left - edge.left, its.top - edge.top, its.right - edge.left, its.bottom - edge.top].map((at) => at * scale);
}

// A legend's place is a share of the height of the plots, which the legend itself takes room from
async function legendBelow(library, target) {
  for (let pass = 0; pass < 2; pass += 1) {
    const { t, h } = target._fullLayout._size;
    const room = [...target.querySelectorAll("[class^='x'][class$='tick'] text, [class^='g-x'][class$='title']")].map((text) => boxIn(target, text)[3] - t - h + 8);
    await library.relayout(target, { "legend.y": -Math.max(...room) / h, "legend.yanchor": "top" });
  }
}

// Whether a legend begins where the title of the lowest axis stands
const meets = ({ legend, _size: size }) => legend.orientation === "h" && legend.y < 0 && -legend.y * size.h < AXIS_ROOM;

// Names beside what they name, in place of a legend: each at the first place where it covers nothing and is nearest to its own.
// Curves have theirs at their ends first. Where one finds none, the legend stays; that of bars always does.
async function named(library, target) {
  const { data, _fullData: traces, _fullLayout: { showlegend, margin: { r }, annotations } } = target;
  const legend = traces.filter((trace) => trace.visible === true && trace.showlegend && trace.name);
  if (!showlegend || !legend.length || traces.some((trace) => trace.type !== "scatter")) return false;
  if (traces.length === 1) return Boolean(await library.relayout(target, { showlegend: false })); // its caption names it
  const curves = legend.every(({ mode }) => mode.includes("lines")), letters = curves || target.clientWidth < NARROW ? 24 : 40;
  const pen = document.createElement("canvas").getContext("2d"), texts = legend.map(({ name }) => inLines(name.replaceAll("<br>", " "), letters).split("<br>"));
  pen.font = `13px ${target._fullLayout.font.family}`;
  const sizes = texts.map((lines) => [Math.max(...lines.map((line) => pen.measureText(line).width)) + 2, 15 * lines.length]), widest = Math.max(...sizes.map(([w]) => w));
  const wide = Math.max(r, widest + 10);
  const margins = wide > (curves || target.clientWidth >= NARROW ? 0.34 : 0) * target.clientWidth ? [r] : curves ? [wide, r] : [r, wide];
  for (const right of margins) {
    await library.relayout(target, { showlegend: false, "margin.r": right });
    const found = free(target, legend, sizes, right > r), { l, t, w, h } = target._fullLayout._size;
    if (!found || (right > r && found.every(([x], i) => x + sizes[i][0] <= l + w))) continue; // a margin that no name stands in is empty
    const names = found.map(([x, y], i) => ({ x: (x - l) / w, y: 1 - (y - t) / h, text: texts[i].join("<br>"), align: "left", xref: "paper", yref: "paper", xanchor: "left", yanchor: "top",
      showarrow: false, borderpad: 0, font: { size: 13, color: (legend[i].mode === "lines" ? legend[i].line : legend[i].marker).color } }));
    await library.relayout(target, { annotations: [...(target.layout.annotations ?? []), ...names] });
    return true;
  }
  await library.relayout(target, { showlegend: true, "margin.r": r });
  return false;
}

// The upper left corner of a name of each size for each trace, in pixels; null where one has no place. Without `room` on their right
// only the end of a curve has its name beyond the plots.
function free(target, legend, sizes, room) {
  const { _fullLayout: full, _fullData: traces } = target, taken = [], inked = new Map();
  const dots = !full.xaxis.ticktext && !legend.some(({ mode }) => mode.includes("lines")); // in rows, where all that is level reads as a name
  const axesOf = (trace) => ["x", "y"].map((letter) => full[trace[`${letter}axis`].replace(letter, `${letter}axis`)]);
  const pointsOf = (trace) => {
    const [x, y] = axesOf(trace);
    return trace.x.map((at, i) => [x._offset + x.d2p(at), y._offset + y.d2p(trace.y[i]), i]).filter((point) => point.every(Number.isFinite));
  };
  const box = (x0, y0, x1, y1, pad = 2) => [Math.min(x0, x1) - pad, Math.min(y0, y1) - pad, Math.max(x0, x1) + pad, Math.max(y0, y1) + pad];
  const spread = (trace, i) => { // where the error bars of a point end
    const [x, y] = axesOf(trace), { error_x: ex, error_y: ey } = trace, length = (bars, side) => (bars?.visible && (bars[side] ?? bars.array)?.[i]) || 0;
    return [x.d2p(trace.x[i] - length(ex, "arrayminus")) + x._offset, x.d2p(trace.x[i] + length(ex, "array")) + x._offset,
      y.d2p(trace.y[i] + length(ey, "array")) + y._offset, y.d2p(trace.y[i] - length(ey, "arrayminus")) + y._offset];
  };
  for (const trace of traces.filter(({ visible }) => visible === true)) {
    const points = pointsOf(trace), marks = trace.mode.includes("markers"), ink = points.map(([px, py]) => box(px, py, px, py));
    for (const [px, py, i] of points) if (marks) {
      const [x0, x1, y0, y1] = spread(trace, i);
      taken.push(box(px, py, px, py, 5), box(x0, py, x1, py), box(px, y0, px, y1));
      if (dots) ink.push(box(x0, py, x1, py), box(px, y0, px, y1));
    }
    if (trace.mode.includes("lines") && trace.line.width) points.slice(1).forEach(([x1, y1], i) => {
      const [x0, y0] = points[i], n = Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 4);
      for (let k = 0; k <= n; k += 1) ink.push(box(x0 + (k / n || 0) * (x1 - x0), y0 + (k / n || 0) * (y1 - y0), x0 + (k / n || 0) * (x1 - x0), y0 + (k / n || 0) * (y1 - y0)));
    });
    if (marks || trace.line.width) inked.set(trace, ink); // not the edges of a band
    if (trace.mode.includes("lines") && trace.line.width) taken.push(...ink);
  }
  for (const node of target.querySelectorAll(".annotation-text-g, [class$='tick'] text, [class^='g-'][class$='title'], .shapelayer path")) {
    const ends = boxIn(target, node), [left, top, right, bottom] = ends, line = node.localName === "path";
    if (!line || Math.min(right - left, bottom - top) < 4) taken.push(line ? box(...ends, 4) : ends); // of shapes, the lines
  }
  const meets = (a, boxes) => a[0] < 0 || a[1] < 0 || a[2] > full.width || a[3] > full.height || boxes.some((b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]);
  const away = (a, boxes) => Math.min(...boxes.map((b) => Math.hypot((dots ? 0.2 : 1) * Math.max(0, b[0] - a[2], a[0] - b[2]), Math.max(0, b[1] - a[3], a[1] - b[3]))));
  const placed = (panel) => { // all names in one panel, or with none given each where it can
    const places = [], near = [...taken];
    for (const [k, trace] of legend.entries()) {
      const place = placeOf(trace, sizes[k], panel, near);
      if (!place) return null;
      places.push(place);
      near.push(box(place[0], place[1], place[0] + sizes[k][0], place[1] + sizes[k][1], 3));
    }
    return places;
  };
  const placeOf = (trace, [w, h], panel, near) => {
    const lines = trace.mode.includes("lines"), its = traces.filter((other) => other.index === trace.index || (trace.legendgroup && other.legendgroup === trace.legendgroup));
    const around = its.filter(({ xaxis }) => !panel || xaxis === panel).flatMap((each) => {
      const points = pointsOf(each), [x, y] = axesOf(each), edge = x._offset + x._length, last = edge === full._size.l + full._size.w ? full.width : edge;
      return (lines ? points.reverse() : points).flatMap(([px, py, i], nth) => {
        const [x0, x1, y0, y1] = each.mode.includes("markers") ? spread(each, i) : [px, px, py, py];
        const beside = lines && !nth ? [0, -8, 8, -16, 16] : [0]; // of a curve, what ends close to another may move a little
        return [...beside.map((by) => [x1 + 8, py - h / 2 + by]), [px + 4, y0 - h - 5], [px - w / 2, y0 - h - 6], [px + 4, y1 + 5], [px - w / 2, y1 + 6], [px - w - 4, y0 - h - 5], [px - w - 4, y1 + 5], [x0 - w - 8, py - h / 2]]
          .filter(([a, b]) => a > x._offset + 4 && a + w <= (lines && nth && !room ? edge : last) && b + h < y._offset + y._length);
      });
    });
    const [own, others] = [true, false].map((mine) => [...inked].flatMap(([trace, boxes]) => (its.includes(trace) === mine ? boxes : [])));
    const clear = (least) => ([a, b]) => { const at = [a, b, a + w, b + h], middle = dots ? [a, b + h / 2 - 3, a + w, b + h / 2 + 3] : at; return !meets(at, near) && away(middle, others) > Math.max(away(middle, own) + 2, least); };
    return (lines && around.find(clear(25))) || around.find(clear(0)); // a name between two curves is neither's
  };
  return [...new Set(traces.map(({ xaxis }) => xaxis)), null].reduce((found, panel) => found ?? placed(panel), null);
}

// The figure for the width that it has now
async function arrange(library, div, target) {
  const { data, layout: given, frames } = figureOf(div), width = div.clientWidth, narrow = width < NARROW;
  const fit = narrow && { ...fitted(given, width), legend: { orientation: "h", y: -0.25, yanchor: "top" } };
  const above = (given.annotations ?? []).some(({ yref, y }) => !/^y\d*$/.test(yref) && y >= 1);
  const titles = Math.max(2, ...(fit && fit.annotations || given.annotations || []).map(({ text, yshift }) => text.split("<br>").length + (yshift > 0))); // lines above the plots
  const margin = { t: above ? 6 + 15 * titles : 10, ...given.margin };
  const layout = { autosize: true, uirevision: "kept", ...given, height: Math.min(given.height ?? 450, parseFloat(getComputedStyle(div).maxHeight) || Infinity), margin, ...fit, width: undefined };
  layout.template.layout.font.family = variable("--pst-font-family-base") || "sans-serif";
  if (narrow) for (const trace of data) trace.name &&= inLines(trace.name, Math.floor((width - 50) / 7.3)); // 50: its mark in the legend
  await library.react(target, { data, layout, frames: frames ?? [], config: { displaylogo: false, displayModeBar: false } });
  await whole(library, target);
  if (await named(library, target)) return;
  const below = async () => { const full = target._fullLayout; if (full.showlegend && (narrow || meets(full))) await legendBelow(library, target); };
  await below();
  for (let pass = 0; pass < 2 && above && !narrow && target._fullLayout.showlegend && target._fullLayout.legend.y > 1; pass += 1) // above the titles of panels
    await library.relayout(target, { "legend.y": 1 + 30 / target._fullLayout._size.h });
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
  const colour = () => drawn.forEach((target) => { repaint(target); arrange(window.Plotly, target.parentElement, target); });
  addEventListener("beforeprint", () => { figures.forEach(attempt); drawn.forEach(repaint); }); // print.js has made the page light
  new MutationObserver(() => requestAnimationFrame(colour)).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}
document.readyState === "loading" ? addEventListener("DOMContentLoaded", start) : start();
})();
