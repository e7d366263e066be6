// Averages of past values against the dual of heavy ball: weights over positions, and one small head.

import { add, dot, scale, softmax, sum, weightedSum } from "./algebra.js";
import { SMALL, TICKS, WIDTH, arrow, axes, colour, diamond, entry, group, line, marker, panel, plane, rect, shortOf, tag, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed, vector } from "./numbers.js";

// The head: twelve positions, the last one asks. Rows are positions, oldest first.
export const KEYS = [[1.1, 0.3], [-0.4, 0.9], [0.6, -0.8], [0.2, 1.2], [-1.0, -0.2], [0.9, 0.7], [-0.3, -1.1], [1.3, -0.2], [0.1, 0.5], [-0.8, 0.6], [0.7, -0.4], [0.4, 0.4]];
export const VALUES = [[-0.9, 0.5], [0.4, -0.6], [-0.2, 1.0], [0.8, 0.3], [-0.5, -0.7], [0.6, 0.9], [-0.7, 0.2], [0.3, -0.8], [0.9, 0.1], [-0.1, 0.7], [-0.9, -0.6], [0.2, -0.3]];
const PAST = KEYS.length - 1;
export const RATE = 1 / 16; // the learning rate within the values of heavy ball

const NAMES = {
  momentum: "momentum", normalised: "momentum, normalised", nesterov: "Nesterov (ours)",
  previous: "previous value alone", heavy_ball: "dual of heavy ball",
};

// The weight at lag s = 1, 2, ... in explainer.theory.momentum.AVERAGES; of the dual, explainer.theory.duality.heavy_ball_weights.
const AT_LAG = {
  momentum: (eta, s) => eta ** s,
  normalised: (eta, s) => (1 - eta) * eta ** (s - 1),
  nesterov: (eta, s) => eta ** (s + 1) + (s === 1 ? eta : 0),
  previous: (eta, s) => (s === 1 ? eta : 0),
  heavy_ball: (mu, s) => (1 - mu ** s) / (1 - mu),
};

const isDual = ({ average }) => average === "heavy_ball";

// Weights of `n` earlier positions, oldest first.
export const weights = ({ average, eta }, n = PAST) => Array.from({ length: n }, (_, i) => AT_LAG[average](eta, n - i));

// Sum of the weights and (sum w)^2 / sum w^2, over all lags; of the dual, whose weights have no end, over those drawn.
export function size({ average, eta }) {
  const gain = eta / (1 - eta), window = (1 + eta) / (1 - eta);
  if (isDual({ average })) {
    const a = weights({ average, eta });
    return { gain: sum(a), window: sum(a) ** 2 / dot(a, a) };
  }
  return {
    momentum: { gain, window },
    normalised: { gain: 1, window },
    nesterov: { gain, window: 1 / ((1 - eta * eta) ** 2 + (eta ** 4 * (1 - eta)) / (1 + eta)) },
    previous: { gain: eta, window: 1 },
  }[average];
}

const softmaxWeights = (query) => softmax(KEYS.map((k) => dot(k, query) / Math.SQRT2));

// What is added to: softmax attention; for the dual, a layer that starts at W_0 = 0.
export const base = (state) => (isDual(state) ? [0, 0] : weightedSum(softmaxWeights(state.query), VALUES));

// What is added: sum_i w_i v_i, or for the dual sum_i a_i v_i (k_i . q), with the learning rate.
export function added(state, query = state.query) {
  const w = weights(state);
  return weightedSum(isDual(state) ? w.map((a, i) => RATE * a * dot(KEYS[i], query)) : w, VALUES.slice(0, PAST));
}

const letter = (state) => (isDual(state) ? "\u03bc" : "\u03b7");

function describe(state) {
  const w = weights(state), { gain, window } = size(state), asked = vector(state.query);
  const opposite = added(state, scale(-1, state.query));
  return `${NAMES[state.average][0].toUpperCase() + NAMES[state.average].slice(1)}, ${letter(state)} = ${fixed(state.eta)}: ` +
    `the oldest of ${PAST} earlier positions weighs ${fixed(w[0], 3)}, the newest ${fixed(w[PAST - 1], 3)}. ` +
    `Gain ${fixed(gain)}, effective window ${fixed(window)} positions${isDual(state) ? `, over ${PAST} steps` : ""}. ` +
    `For the query ${asked} it adds ${vector(added(state), 3)}, for the opposite query ${vector(opposite, 3)}: ` +
    (isDual(state) ? "the query decides." : "the same for every query.");
}

const HEIGHT = 368, SMALL_DIAMOND = "M0-5L5 0L0 5L-5 0Z";

function ticksUpTo(top) {
  const rough = top / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
  return { step, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

function weightsPanel(state) {
  const w = weights(state), factors = isDual(state) ? KEYS.slice(0, PAST).map((k) => dot(k, state.query)) : softmaxWeights(state.query);
  const high = Math.max(0.5, ...w, ...factors) * 1.08, low = Math.min(0, ...factors) * 1.1;
  const { step, digits } = ticksUpTo(high - low);
  const { X, Y, left, top, width, height } = plane({ left: 34, top: 44, width: 280, height: 204, x: [-0.6, PAST + 0.6], y: [low, high] });
  const first = Math.ceil(low / step), ticks = Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
  const { gain, window } = size(state), mid = { "text-anchor": "middle", ...SMALL };
  const row = (i, text, value) => entry(0, top + height + 52 + 19 * i, text, value);
  return panel(`Weights: ${NAMES[state.average]}`, HEIGHT,
    ticks.map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t === 0 ? 0.6 : 0.15 }) + words(left - 5, Y(t) + 4, fixed(t, digits), { "text-anchor": "end", ...SMALL })),
    KEYS.map((_, i) => words(X(i), top + height + 14, i, mid)),
    words(left + width, top + height + 28, "position (11 asks)", { "text-anchor": "end", ...SMALL }),
    words(0, 32, "weight", SMALL),
    group(colour("ink"), w.map((w_i, i) => rect(X(i) - 8, Y(w_i), 16, Math.max(0.5, Y(0) - Y(w_i)), { "fill-opacity": 0.75 }))),
    group(colour("slate"), factors.map((f, i) => marker(SMALL_DIAMOND, X(i), Y(f)))),
    row(0, isDual(state) ? `gain, sum over ${PAST} steps` : "gain, sum over all lags", fixed(gain)),
    row(1, "effective window, positions", fixed(window)),
    row(2, "bars: weight; diamonds:", isDual(state) ? "k\u00b7q" : "softmax weight"));
}

const OUTPUTS = plane({ left: 24, top: 40, width: 286, height: 232, x: [-2.5, 2.5], y: [-2, 2] });

function headPanel(state) {
  const { X, Y, inside, top, height } = OUTPUTS, from = base(state), change = added(state), to = add(from, change), at = ([a, b]) => [X(a), Y(b)];
  const row = (i, role, text, value) => group(colour(role), words(0, top + height + 34 + 19 * i, text, { "font-size": 12 })) +
    words(WIDTH, top + height + 34 + 19 * i, value, { "text-anchor": "end", "font-weight": 600 });
  return panel("The head at the last position", HEIGHT,
    axes(OUTPUTS, TICKS, ["", ""]),
    inside(
      group(colour("query"), line(...at([0, 0]), ...shortOf(at([0, 0]), at(state.query)), { "stroke-dasharray": "3 4", "stroke-opacity": 0.7 })),
      VALUES.map((v, i) => words(...at(v), i, { class: "explorable-halo", "fill-opacity": 0.75, "text-anchor": "middle", "font-size": 10 })),
      group(colour("query"), diamond(...at(state.query)), words(X(state.query[0]) + 11, Y(state.query[1]) - 7, "q", {})),
      group(colour("slate"), arrow(...at([0, 0]), ...at(from), {})),
      group(colour("value"), arrow(...at(from), ...at(to), {})),
      group(colour("ink"), tag("circle", { cx: X(to[0]), cy: Y(to[1]), r: 5, fill: "currentColor" }))),
    row(0, "slate", isDual(state) ? "start: W\u2080 q, with W\u2080 = 0" : "softmax attention", vector(from)),
    row(1, "value", isDual(state) ? "added: sum of a v (k\u00b7q) / 16" : "added by the average", vector(change)),
    row(2, "ink", "output (the dot)", vector(to)));
}

export default explorable({
  question: "Which positions does momentum attention weigh, and does the query matter to what it adds?",
  hint: "Twelve positions with fixed keys and values; the numbers in the plane are the values. The last position asks: drag its query q, the diamond.",
  traits: ["average", "eta", "query"],
  sliders: [slider("eta", "\u03b7 (heavy ball: \u03bc)", [0, 0.95, 0.05])],
  lists: () => [["average", "average", Object.entries(NAMES)]],
  panels: (state) => [weightsPanel(state), headPanel(state)],
  describe,
  handles: ({ query }) => [{ panel: 1, label: "query", plane: { ...OUTPUTS, x: [-2, 2] }, at: query, move: (point) => ({ query: point }) }],
  answers: (state) => [["added for the opposite query", vector(added(state, scale(-1, state.query)))]],
});
