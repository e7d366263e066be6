// The weight of a pair in the fast weights over its age, for one retention and one momentum.

import { sum } from "./algebra.js";
import { SMALL, WIDTH, colour, diamond, entry, group, line, panel, path, plane, rect, through, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed, whole } from "./numbers.js";

export const AGES = 60;

// w_n = sum_j alpha^(n-j) mu^j = (alpha^(n+1) - mu^(n+1)) / (alpha - mu), without the division: w_n = alpha w_(n-1) + mu^n.
export function weights({ retention, momentum }, n = AGES) {
  const w = [];
  for (let age = 0, rolled = 1, last = 0; age < n; age++, rolled *= momentum) w.push(last = retention * last + rolled);
  return w;
}

// The age of the pair that counts most, and how many of the newest pairs have half of the weight of all that are drawn
export function summary(state) {
  const w = weights(state), total = sum(w);
  let half = 0, seen = 0;
  while (seen < total / 2) seen += w[half++];
  return { peak: w.indexOf(Math.max(...w)), half };
}

const near = (w, most) => w > most * (1 - 1e-9);

function describe(state) {
  const w = weights(state), { peak, half } = summary(state), most = w[peak];
  const last = AGES - 1, level = w.every((each) => near(each, most));
  const who = level ? "All pairs count the same"
    : peak === 0 ? "The newest pair counts most"
    : near(w[last], most) ? `The oldest pairs count most, ${fixed(w[last])} times as much as the newest`
    : `The pair of age ${peak} counts most, ${fixed(most)} times as much as the newest`;
  return `Retention ${fixed(state.retention)}, momentum ${fixed(state.momentum)}. ${who}. ` +
    `The newest ${whole(half)} of ${AGES} pairs have half of all the weight.`;
}

const HEIGHT = 352, middle = { ...SMALL, "text-anchor": "middle" }, end = { ...SMALL, "text-anchor": "end" };
const FRAME = { left: 36, top: 44, width: 276, height: 210, x: [-1, AGES] };
const TICKS = [0, 10, 20, 30, 40, 50];

function ticksUpTo(top) {
  const rough = top / 4, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => i * step);
}

const scaleOf = ({ X, Y, left, top, width, height }, ticks) => [
  ticks.map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t === 0 ? 0.6 : 0.15 }) + words(left - 5, Y(t) + 4, fixed(t, t % 1 ? 1 : 0), end)),
  TICKS.map((t) => words(X(t), top + height + 14, t, middle)),
  words(left + width, top + height + 28, "age of the pair, in tokens", end),
];

function weightsPanel(state) {
  const w = weights(state), { peak, half } = summary(state), high = Math.max(...w) * 1.12, p = plane({ ...FRAME, y: [0, high] }), { X, Y, top, height } = p;
  return panel("Weight of a pair in S", HEIGHT,
    scaleOf(p, ticksUpTo(high)), words(0, 32, "weight", SMALL),
    group(colour("ink"), w.map((w_n, n) => rect(X(n) - 1.6, Y(w_n), 3.2, Math.max(0.5, Y(0) - Y(w_n)), { "fill-opacity": n < half ? 0.85 : 0.4 }))),
    group(colour("slate"), diamond(X(peak), Y(w[peak]) - 11, 6), words(X(peak) + (peak > 45 ? -11 : 11), Y(w[peak]) - 8, `age ${peak}`, peak > 45 ? end : SMALL)),
    entry(0, top + height + 52, "newest pairs with half of the weight (full)", whole(half)));
}

const SERIES = [
  ["retention alone: α, μ = 0", "stone", "2 4", ({ retention }) => ({ retention, momentum: 0 })],
  ["momentum alone: μ, α = 1", "slate", "8 4", ({ momentum }) => ({ retention: 1, momentum })],
  ["both", "ink", "", (state) => state],
];

function causesPanel(state) {
  const p = plane({ ...FRAME, y: [0, 1.08] }), { X, Y, left, top, width, height } = p;
  return panel("The same, each with its largest weight as 1", HEIGHT,
    scaleOf(p, [0, 0.5, 1]), words(0, 32, "share of the largest", SMALL),
    SERIES.map(([name, role, dash, of], i) => {
      const w = weights(of(state)), most = Math.max(...w), y = top + height + 48 + 17 * i;
      return group(colour(role),
        path(through(w.map((w_n, n) => [X(n), Y(w_n / most)])), { "stroke-width": 2, "stroke-dasharray": dash }),
        line(left, y - 4, left + 30, y - 4, { "stroke-width": 2, "stroke-dasharray": dash }), words(left + 38, y, name, SMALL));
    }));
}

export default explorable({
  question: "Which pairs count most?",
  hint: "Momentum holds a new pair back, and retention lets an old pair fade. Move both sliders. At the right end of the first one nothing fades; at the left end of the second one nothing is held back.",
  traits: ["retention", "momentum"],
  sliders: [slider("retention", "retention α", [0.5, 1, 0.01]), slider("momentum", "momentum μ", [0, 0.95, 0.05])],
  panels: (state) => [weightsPanel(state), causesPanel(state)],
  describe,
});
