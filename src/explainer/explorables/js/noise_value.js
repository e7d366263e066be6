// What the similarity of two unrelated changes is when vectors are divided by their lengths before they are subtracted.

import { dot, mean } from "./algebra.js";
import { DIAMOND, SMALL, SQUARE, WIDTH, arrow, colour, entry, group, line, marker, panel, path, plane, tag, through, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed } from "./numbers.js";
import { normal, uniforms } from "./random.js";
import { remember } from "./remember.js";

const PAIRS = 64;

function normalVector(uniform, dimension) {
  const g = new Float64Array(dimension);
  for (let j = 0; j < dimension; j++) g[j] = normal(uniform);
  return g;
}

// For each pair of random directions (e_I, e_F): their cosines with z, the first axis, and with each other.
// These three numbers decide everything below, for changes of any length.
const drawn = remember(["dimension", "seed"], ({ dimension, seed }) => {
  const uniform = uniforms(seed);
  return Array.from({ length: PAIRS }, () => {
    const [g, f] = [normalVector(uniform, dimension), normalVector(uniform, dimension)];
    const [lengthG, lengthF] = [Math.sqrt(dot(g, g)), Math.sqrt(dot(f, f))];
    return { icl: g[0] / lengthG, ft: f[0] / lengthF, both: dot(g, f) / (lengthG * lengthF) };
  });
});

// |z + r| for |z| = 1, |r| = ratio, and c the cosine of z and r
const lengthOf = (ratio, c) => Math.sqrt(1 + 2 * ratio * c + ratio * ratio);

// |d| of d = u - z, u = (z + r) / |z + r|
function changeLength(ratio, c) {
  const n = lengthOf(ratio, c), along = (1 + ratio * c) / n - 1, across = ratio * Math.sqrt(Math.max(0, 1 - c * c)) / n;
  return Math.hypot(along, across);
}

// cos(d_I, d_F), from the inner products of z, r_I and r_F
export function normalised(ratio, { icl, ft, both }) {
  const [n, m] = [lengthOf(ratio, icl), lengthOf(ratio, ft)], [a, b] = [(1 + ratio * icl) / n, (1 + ratio * ft) / m];
  const u = (1 + ratio * (icl + ft) + ratio * ratio * both) / (n * m);
  return (u - a - b + 1) / (changeLength(ratio, icl) * changeLength(ratio, ft));
}

// The change is at a right angle to z, as almost all are in many dimensions.
export const manyDimensions = (ratio) => (1 - 1 / Math.sqrt(1 + ratio * ratio)) / 2;

// (E|d|)^2 / 4 over random directions: the density of the angle between r and z is proportional to sin^(dimension - 2).
const STEPS = 400;
export function expected(ratio, dimension) {
  let [sum, total] = [0, 0];
  for (let i = 0; i < STEPS; i++) {
    const angle = ((i + 0.5) * Math.PI) / STEPS, weight = Math.sin(angle) ** (dimension - 2);
    sum += weight * changeLength(ratio, Math.cos(angle));
    total += weight;
  }
  return (sum / total) ** 2 / 4;
}

export const simulated = remember(["ratio", "dimension", "seed"], (state) => {
  const pairs = drawn(state), { ratio } = state;
  const each = pairs.map((pair) => ({ normalised: normalised(ratio, pair), raw: pair.both }));
  return {
    each,
    normalised: mean(each.map((pair) => pair.normalised)), raw: mean(each.map((pair) => pair.raw)),
    closed: mean(pairs.map(({ icl, ft }) => changeLength(ratio, icl) * changeLength(ratio, ft) / 4)),
  };
});

function describe(state) {
  const { normalised: value, raw, closed } = simulated(state);
  return `Two unrelated changes of one vector, each ${fixed(state.ratio)} times as long as it, in ${state.dimension} dimensions. ` +
    `Normalised SimAOU: ${fixed(closed, 3)} by the formula, ${fixed(value, 3)} in ${PAIRS} simulated pairs (seed ${state.seed}). ` +
    `Not normalised: ${fixed(raw, 3)}.`;
}

const HEIGHT = 372, RADIUS = 78;
const note = { "font-size": 12 };

// The circle of unit length, seen in the plane of z and one change.
const CIRCLE = plane({ left: 0, top: 26, width: WIDTH, height: 250, x: [-WIDTH / 2 / RADIUS, WIDTH / 2 / RADIUS], y: [-1.45, 250 / RADIUS - 1.45] });

function circlePanel(state) {
  const { X, Y, inside, top, height } = CIRCLE, { ratio } = state, value = manyDimensions(ratio);
  const angle = Math.atan(ratio), [x, y] = [Math.sin(angle), Math.cos(angle)];
  const at = (a, b) => [X(a), Y(b)];
  const dots = (name, side, role) => group({ ...colour(role), "fill-opacity": 0.45 }, drawn(state).map((pair) => {
    const c = pair[name], n = lengthOf(ratio, c), across = side * ratio * Math.sqrt(Math.max(0, 1 - c * c)) / n;
    return tag("circle", { cx: X(across), cy: Y((1 + ratio * c) / n), r: 2.4, fill: "currentColor" });
  }));
  const change = (side, role) => group(colour(role),
    line(...at(0, 0), ...at(side * x * 9, y * 9), { "stroke-dasharray": "2 4", "stroke-opacity": 0.7 }),
    arrow(...at(0, 1), ...at(side * Math.min(ratio, 12), 1), { "stroke-opacity": 0.5 }),
    arrow(...at(0, 1), ...at(side * x, y), {}));
  return panel("At unit length, all changes point inwards", HEIGHT,
    inside(
      tag("circle", { cx: X(0), cy: Y(0), r: RADIUS, fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }),
      arrow(...at(0, 0), ...at(0, 1), {}), dots("icl", 1, "context"), dots("ft", -1, "training"),
      change(1, "context"), change(-1, "training"),
      group(colour("ink"), arrow(...at(0, 1), ...at(0, y), {}), line(...at(-x, y), ...at(x, y), { "stroke-dasharray": "5 3" }))),
    words(X(0) - 5, Y(1) - 7, "z", { "text-anchor": "end" }),
    group(colour("context"), words(WIDTH, top + 14, "r (ICL)", { "text-anchor": "end", ...SMALL }), words(X(x) + 9, Y(y) + 13, "u", {})),
    group(colour("training"), words(0, top + 14, "r (FT)", SMALL), words(X(-x) - 9, Y(y) + 13, "u", { "text-anchor": "end" })),
    y < 0.8 ? group(colour("ink"), words(X(0) + 6, Y((1 + y) / 2) + 4, fixed(1 - y), { class: "explorable-halo", ...SMALL })) : "",
    ratio > 0.6 ? [[1, "context"], [-1, "training"]].map(([side, role]) => group(colour(role), words(X((side * x * 2) / 3) + side * 8, Y((1 + 2 * y) / 3) - 3, "d", { class: "explorable-halo", "text-anchor": "middle" }))) : "",
    words(0, top + height + 20, "In space, left and right are at right angles. Only the", note),
    words(0, top + height + 36, "inward part, along z, is common to both changes.", note),
    words(0, top + height + 52, `Its square is ${fixed(value, 3)} of the square of the whole`, note),
    words(0, top + height + 68, "change, and that is the similarity of the two.", note),
    words(0, top + height + 88, `Dots: ${PAIRS} simulated changes on either side.`, note));
}

// The axis of the ratio counts powers of 3, so that sqrt(3) has a place half way from 1 to 3.
const CHART = plane({ left: 40, top: 44, width: 272, height: 218, x: [-2.25, 2.25], y: [-0.2, 0.6] });
const log3 = (ratio) => Math.log(ratio) / Math.log(3);
const GRID = Array.from({ length: 37 }, (_, i) => -2.25 + i / 8);
const curve = remember(["dimension"], ({ dimension }) => GRID.map((x) => expected(3 ** x, dimension)));

const quantile = (a, share) => [...a].sort((p, q) => p - q)[Math.round(share * (a.length - 1))];

function chartPanel(state) {
  const { X, Y, inside, left, top, width, height } = CHART, { each, ...means } = simulated(state), here = X(log3(state.ratio));
  const line_ = (values) => through(GRID.map((x, i) => [X(x), Y(values[i])]));
  const spread = (name, shift) => {
    const all = each.map((pair) => pair[name]), [low, high] = [quantile(all, 0.05), quantile(all, 0.95)];
    return line(here + shift, Y(low), here + shift, Y(high), { "stroke-width": 3, "stroke-opacity": 0.45 });
  };
  const row = (i, role, mark, text, value, solid) => {
    const y = top + height + 50 + 19 * i;
    return group(colour(role), marker(mark, 6, y - 4, solid)) + entry(18, y, text, fixed(value, 3));
  };
  const grid = { "stroke-opacity": 0.15 }, mid = { "text-anchor": "middle", ...SMALL };
  return panel("What unrelated changes score", HEIGHT,
    [-2, -1, 0, 1, 2].map((t) => line(X(t), top, X(t), top + height, grid) + words(X(t), top + height + 14, t < 0 ? `1/${3 ** -t}` : 3 ** t, mid)),
    [-0.2, 0, 0.2, 0.4, 0.6].map((t) => line(left, Y(t), left + width, Y(t), t ? grid : { "stroke-opacity": 0.6 }) + words(left - 5, Y(t) + 4, fixed(t, 1), { "text-anchor": "end", ...SMALL })),
    words(left + width, top + height + 28, "length of the change / length of z", { "text-anchor": "end", ...SMALL }),
    words(0, top - 10, "similarity", SMALL),
    line(here, top, here, top + height, { "stroke-width": 1.5, "stroke-opacity": 0.6 }),
    line(left, Y(0.25), X(0.5), Y(0.25), { "stroke-dasharray": "2 3" }), line(X(0.5), Y(0.25), X(0.5), top + height, { "stroke-dasharray": "2 3" }),
    words(left + 4, Y(0.25) - 5, "1/4, where \u2016r\u2016\u00b2 = 3\u2016z\u2016\u00b2", SMALL),
    inside(
      path(line_(GRID.map((x) => manyDimensions(3 ** x))), { "stroke-dasharray": "1 4", "stroke-width": 2 }),
      group(colour("ink"), path(line_(curve(state)), { "stroke-width": 2 }), spread("normalised", -3)),
      group(colour("slate"), spread("raw", 3))),
    group(colour("ink"), marker(DIAMOND, here, Y(means.normalised), true)),
    group(colour("slate"), marker(SQUARE, here, Y(means.raw))),
    row(0, "ink", "M-6 0H6", "normalised, by the formula |d||d| / 4", means.closed),
    row(1, "ink", DIAMOND, `normalised, mean of ${PAIRS} pairs`, means.normalised, true),
    row(2, "slate", SQUARE, "not normalised, mean of the same pairs", means.raw));
}

export default explorable({
  question: "How similar are two changes that have nothing to do with each other?",
  hint: "Solid curve: expectation in this many dimensions; dotted: in infinitely many. Bars at the two markers: 5 % to 95 % of the simulated pairs. " +
    "Both changes are random directions, drawn from a seed, and equally long.",
  traits: ["ratio", "dimension", "seed"],
  sliders: [
    slider("ratio", "length of change", [-4, 4, 0.25], fixed, (x) => 3 ** (x / 2), (ratio) => 2 * log3(ratio)),
    slider("dimension", "dimensions", [1, 10, 1], String, (x) => 2 ** x, Math.log2),
  ],
  panels: (state) => [circlePanel(state), chartPanel(state)],
  describe,
});
