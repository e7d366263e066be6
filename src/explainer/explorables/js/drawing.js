// Drawing: every function returns SVG text. Ink is currentColor, so a still follows the page it is put in. Colours
// are the roles of palette.PALETTE: key, value, query, context, training; ink, slate, stone for all else.

import { add, scale, subtract } from "./algebra.js";
import { fixed } from "./numbers.js";

export const WIDTH = 320;
export const SMALL = { "font-size": 11 };
export const colour = (role) => ({ class: `explorable-${role}` });

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

export function tag(name, attributes, ...children) {
  const written = Object.entries(attributes)
    .map(([key, value]) => ` ${key}="${escape(typeof value === "number" ? +value.toFixed(2) : value)}"`)
    .join("");
  return `<${name}${written}>${children.flat(Infinity).join("")}</${name}>`;
}

export const group = (attributes, ...children) => tag("g", attributes, ...children);
export const words = (x, y, text, more) => tag("text", { x, y, fill: "currentColor", ...more }, escape(text));
export const line = (x1, y1, x2, y2, more) => tag("line", { x1, y1, x2, y2, stroke: "currentColor", ...more });
export const path = (d, more) => tag("path", { d, fill: "none", stroke: "currentColor", ...more });
export const rect = (x, y, width, height, more) => tag("rect", { x, y, width, height, fill: "currentColor", ...more });

// The path through points of the page
export const through = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
// A line of a table: what it is, and the number at the right edge
export const entry = (x, y, text, number) =>
  words(x, y, text, { "font-size": 12 }) + words(WIDTH, y, number, { "text-anchor": "end", "font-weight": 600 });

const PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };

export const badge = (x, y, text, r = 9) =>
  tag("circle", { cx: x, cy: y, r, ...PAPER }) +
  group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", "font-size": 11 }));

// The outlines of markers around (0, 0)
export const DIAMOND = "M0-6L6 0L0 6L-6 0Z", SQUARE = "M-4-4h8v8h-8Z";
export const marker = (outline, x, y, solid) => group({ transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 }));

export const diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);

export function arrow(x1, y1, x2, y2, more) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return "";
  const head = Math.min(8, length), [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
  const [bx, by] = [x2 - head * u, y2 - head * v], w = head * 0.45;
  const tip = `M${x2} ${y2}L${bx - w * v} ${by + w * u}L${bx + w * v} ${by - w * u}Z`;
  return group({ ...more }, line(x1, y1, bx, by, { "stroke-width": 2 }), path(tip, { fill: "currentColor", stroke: "none" }));
}

// A bar that grows from `start` to `end`: full when positive, hollow when negative, so that no sign needs a colour.
export function bar(start, end, y, height) {
  const [x, width] = [Math.min(start, end), Math.max(1, Math.abs(end - start))];
  return rect(x, y, width, height, { stroke: "currentColor", "stroke-width": 1.5, "fill-opacity": end < start ? 0.08 : 0.75 });
}

// A vector of two numbers as a column in brackets, 45 wide, its middle at height y
export function column(x, y, [a, b]) {
  const right = { "text-anchor": "end", "font-size": 12 };
  const bracket = (at, turn) => path(`M${at + turn} ${y - 16}H${at}V${y + 16}H${at + turn}`, { "stroke-opacity": 0.7 });
  return bracket(x, 4) + words(x + 39, y - 3, fixed(a), right) + words(x + 39, y + 13, fixed(b), right) + bracket(x + 45, -4);
}

// A matrix of two rows and two columns. The fill shows the size, full from 1 on; the number carries the sign.
export function heatMap(x, y, W, width = 50, role = "slate") {
  const cell = (v, left, top) => [
    group(colour(role), rect(left, top, width, 20, { "fill-opacity": 0.42 * Math.min(1, Math.abs(v)) })),
    words(left + width - 7, top + 14, fixed(v), { "text-anchor": "end", "font-size": 12 }),
  ];
  const edge = path(`M${x} ${y - 20}h${2 * width}v40h-${2 * width}Z`, { "stroke-opacity": 0.7 });
  return [W.map((row, r) => row.map((v, c) => cell(v, x + width * c, y - 20 + 20 * r))), edge];
}

export function plane({ left, top, width, height, x: [x0, x1], y: [y0, y1] }) {
  const X = (x) => left + ((x - x0) / (x1 - x0)) * width, Y = (y) => top + ((y1 - y) / (y1 - y0)) * height;
  const invert = (px, py) => [x0 + ((px - left) / width) * (x1 - x0), y1 - ((py - top) / height) * (y1 - y0)];
  // A nested svg clips what leaves the plane without an id that two instances would share.
  const inside = (...children) =>
    tag("svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" }, ...children);
  return { X, Y, invert, inside, left, top, width, height, x: [x0, x1], y: [y0, y1] };
}

// The plane of vectors that base.py admits, and its ticks
const SPAN = [-2, 2];
export const LIMIT = SPAN[1], TICKS = [-2, -1, 0, 1, 2];
export const PLANE = /* @__PURE__ */ plane({ left: 26, top: 40, width: 284, height: 236, x: SPAN, y: SPAN });

export function axes({ X, Y, left, top, width, height }, ticks, [xName, yName]) {
  const grid = (at) => ({ "stroke-opacity": at === 0 ? 0.6 : 0.15 });
  return [
    ticks.map((t) => line(X(t), top, X(t), top + height, grid(t)) + line(left, Y(t), left + width, Y(t), grid(t))),
    ticks.map((t) => words(X(t), top + height + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL })),
    ticks.map((t) => words(left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL })),
    words(left + width, top + height + 28, xName, { "text-anchor": "end", ...SMALL }),
    words(left - 18, top - 8, yName, SMALL),
  ].join("");
}

// Where a line must end to stay outside the mark at its tip
export function shortOf(from, to, gap = 10) {
  const away = subtract(from, to), length = Math.hypot(...away);
  return length > gap ? add(to, scale(gap / length, away)) : from;
}

export const panel = (title, height, ...body) => ({ title, height, body: body.flat(Infinity).join("") });

const heading = ({ title }) => words(0, 14, title, { "font-weight": 600 });
const FONT = { "font-family": "inherit", "font-size": 13 };

export function panelSvg(p) {
  return tag("svg", { viewBox: `0 0 ${WIDTH} ${p.height}`, role: "img", "aria-label": p.title, ...FONT }, heading(p), p.body);
}

// The whole picture as one SVG, two panels abreast.
export function compose(panels, alt) {
  const gap = 28, placed = [];
  let y = 0;
  for (let i = 0; i < panels.length; i += 2) {
    const row = panels.slice(i, i + 2);
    row.forEach((p, j) => placed.push(group({ transform: `translate(${j * (WIDTH + gap)} ${y})` }, heading(p), p.body)));
    y += Math.max(...row.map((p) => p.height)) + gap / 2;
  }
  const width = 2 * WIDTH + gap, height = y - gap / 2;
  const size = { width, height, viewBox: `0 0 ${width} ${height}`, style: "max-width:100%;height:auto" };
  return tag("svg", { xmlns: "http://www.w3.org/2000/svg", ...size, role: "img", "aria-label": alt, ...FONT, "font-family": "sans-serif" }, placed);
}
