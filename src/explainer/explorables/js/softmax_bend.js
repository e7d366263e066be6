// How far linear attention is from softmax attention: exact softmax against four ways to do without it.

import { add, dot, linearAttention, mean, scale, softmax, subtract, sum, weightedSum } from "./algebra.js";
import { DIAMOND, SMALL, SQUARE, WIDTH, colour, entry, group, line, marker, panel, path, plane, rect, through, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed, whole } from "./numbers.js";
import { normal, uniforms } from "./random.js";
import { remember } from "./remember.js";

const D = 8, D_V = 8, QUERIES = 8, MAX_TOKENS = 128, FEATURES = 64;

const meanRow = (rows) => rows[0].map((_, j) => mean(rows.map((row) => row[j])));
export const logits = (query, keys) => keys.map((key) => dot(key, query) / Math.sqrt(D));

const drawn = remember(["tokens", "seed"], ({ tokens, seed }) => {
  const uniform = uniforms(seed);
  const draw = (rows, columns) => Array.from({ length: rows }, () => Array.from({ length: columns }, () => normal(uniform)));
  const projections = draw(FEATURES, D), queries = draw(QUERIES, D);
  return { projections, queries, keys: draw(MAX_TOKENS, D).slice(0, tokens), values: draw(MAX_TOKENS, D_V).slice(0, tokens) };
});

// Scaled so that the logits of every query have exactly this standard deviation over the tokens.
// Keys and queries take half of the factor each, which is kindest to the random features.
export function example({ spread, tokens, seed }) {
  const { projections, values, ...unit } = drawn({ tokens, seed });
  const queries = unit.queries.map((query) => {
    const l = logits(query, unit.keys), centre = mean(l);
    return scale(Math.sqrt(spread / mean(l.map((l_i) => (l_i - centre) ** 2))), query);
  });
  return { keys: unit.keys.map((key) => scale(Math.sqrt(spread), key)), values, queries, projections };
}

const softmaxAttention = ({ queries, keys, values }) => queries.map((query) => weightedSum(softmax(logits(query, keys)), values));

const relaxedAttention = ({ queries, keys, values }) => queries.map((query) => linearAttention(values, keys, query));

const meanValue = ({ queries, values }) => queries.map(() => meanRow(values));

// mean(V) + (1/T) sum_i v_i (k_i - mean(K)) . q / sqrt(d)
function centredLinearAttention({ queries, keys, values }) {
  const v_0 = meanRow(values), k_0 = meanRow(keys);
  const centred = keys.map((key) => subtract(key, k_0));
  return queries.map((query) => add(v_0, scale(1 / (Math.sqrt(D) * keys.length), linearAttention(values, centred, query))));
}

// phi(x) = exp(w . x - |x|^2 / 2) / sqrt(m), with w the rows of the projections
const positiveRandomFeatures = (rows, projections) => rows.map((x) => {
  const half = dot(x, x) / 2;
  return projections.map((w) => Math.exp(dot(w, x) - half) / Math.sqrt(projections.length));
});

function randomFeatureAttention({ queries, keys, values, projections }) {
  const features = (rows) => positiveRandomFeatures(rows.map((x) => scale(D ** -0.25, x)), projections);
  const phiK = features(keys);
  return features(queries).map((phi_q) => {
    const kernel = phiK.map((phi_k) => dot(phi_k, phi_q));
    return scale(1 / sum(kernel), weightedSum(kernel, values));
  });
}

// The relaxed form times the one number that brings it closest to `exact` (least squares): its best case
function bestScaled(approximation, exact) {
  const [a, b] = [approximation.flat(), exact.flat()], factor = dot(a, b) / dot(a, a);
  return approximation.map((row) => scale(factor, row));
}

function relativeError(approximation, exact) {
  const [a, b] = [approximation.flat(), exact.flat()];
  return Math.hypot(...subtract(a, b)) / Math.hypot(...b);
}

export const outputs = remember(["spread", "tokens", "seed"], (state) => {
  const data = example(state), exact = softmaxAttention(data), relaxed = relaxedAttention(data);
  return {
    exact, relaxed, scaled: bestScaled(relaxed, exact), mean: meanValue(data),
    centred: centredLinearAttention(data), features: randomFeatureAttention(data),
  };
});

// exp(entropy) of the first query's attention: how many tokens share it
export function effectiveTokens(state) {
  const { queries, keys } = example(state);
  return Math.exp(-softmax(logits(queries[0], keys)).reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0));
}

const METHODS = [
  { key: "relaxed", name: "relaxed: V Kᵀ q", spoken: "relaxed V Kᵀ q", role: "slate", dash: "none", mark: SQUARE, solid: true },
  { key: "scaled", name: "relaxed, times its best scale", spoken: "relaxed with its best scale", role: "slate", dash: "5 3", mark: SQUARE },
  { key: "mean", name: "mean value alone", spoken: "the mean value alone", role: "ink", dash: "2 3", mark: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z" },
  { key: "centred", name: "mean + centred linear", spoken: "mean plus centred linear", role: "stone", dash: "none", mark: "M0-6L6 5H-6Z", solid: true },
  { key: "features", name: `${FEATURES} positive random features`, spoken: `${FEATURES} positive random features`, role: "stone", dash: "8 3 2 3", mark: DIAMOND, solid: true },
];

export function errors(state) {
  const all = outputs(state);
  return Object.fromEntries(METHODS.map(({ key }) => [key, relativeError(all[key], all.exact)]));
}

export function percent(share) {
  const number = 100 * share;
  return `${number < 9.95 ? number.toFixed(1) : whole(number.toFixed(0))}\u00a0%`;
}

function describe(state) {
  const error = errors(state), list = METHODS.map(({ key, spoken }) => `${spoken} ${percent(error[key])}`);
  return `With a logit spread of ${fixed(state.spread)} over ${state.tokens} tokens, softmax attention works with ` +
    `${fixed(effectiveTokens(state), 1)} tokens. Error relative to it: ${list.slice(0, -1).join(", ")} and ${list.at(-1)} (seed ${state.seed}).`;
}

const SPREADS = Array.from({ length: 11 }, (_, i) => 2 ** (-3 + i / 2));
const curve = remember(["tokens", "seed"], ({ tokens, seed }) => SPREADS.map((spread) => errors({ spread, tokens, seed })));

const ROWS = 94, ROW = 56, HEIGHT = ROWS + METHODS.length * ROW - 4;

function weightStrip(state) {
  const { queries, keys } = example(state), weights = softmax(logits(queries[0], keys)).sort((a, b) => b - a);
  const step = WIDTH / weights.length, y = (w) => 70 - (30 * w) / weights[0];
  const steps = weights.map((w, i) => `V${y(w).toFixed(1)}H${((i + 1) * step).toFixed(1)}`).join("");
  return [
    words(0, 33, `softmax weights of ${state.tokens} tokens, sorted: ${fixed(effectiveTokens(state), 1)} in use`, { "font-size": 12 }),
    path(`M0 70${steps}V70Z`, { fill: "currentColor", "fill-opacity": 0.3, "stroke-opacity": 0.7 }),
  ];
}

function outputPanel(state) {
  const all = outputs(state), error = errors(state), reach = 1.3 * Math.max(...all.exact[0].map(Math.abs));
  const height = (v) => (13 * Math.max(-reach, Math.min(reach, v))) / reach;
  return panel("Output of one query, eight numbers", HEIGHT, weightStrip(state), METHODS.map((method, m) => {
    const top = ROWS + m * ROW, base = top + 28, bars = all[method.key][0].map((v, j) => {
      const [x, h] = [4 + 40 * j, height(v)];
      const cut = Math.abs(v) > reach ? path(`M${x + 10} ${base - h}l6 ${-4 * Math.sign(v)}l6 ${4 * Math.sign(v)}Z`, { fill: "currentColor" }) : "";
      return rect(x, base - Math.max(h, 0), 32, Math.max(1, Math.abs(h)), { "fill-opacity": method.solid ? 0.6 : 0.15, stroke: "currentColor" }) + cut;
    });
    const exact = all.exact[0].map((v, j) => line(1 + 40 * j, base - height(v), 39 + 40 * j, base - height(v), { "stroke-width": 2.5 }));
    return [
      group(colour(method.role), line(0, top - 1, 24, top - 1, { "stroke-width": 2, "stroke-dasharray": method.dash }), marker(method.mark, 12, top - 1, method.solid), bars),
      entry(32, top + 4, method.name, percent(error[method.key])),
      line(0, base, WIDTH, base, { "stroke-opacity": 0.4 }), exact,
    ];
  }));
}

const [LOW, HIGH] = [-2.5, 2.5]; // decades of relative error
const CHART = plane({ left: 58, top: 42, width: 254, height: 290, x: [-3, 2], y: [LOW, HIGH] });

function curvePanel(state) {
  const { X, Y, inside, left, top, width, height } = CHART, points = curve(state), now = errors(state);
  const at = (spread, error) => [X(Math.log2(spread)), Y(Math.log10(error))];
  const grid = { "stroke-opacity": 0.15 };
  const here = X(Math.log2(state.spread));
  return panel(`Error against logit spread, ${state.tokens} tokens`, HEIGHT,
    [-3, -2, -1, 0, 1, 2].map((t) => line(X(t), top, X(t), top + height, grid) + words(X(t), top + height + 15, 2 ** t, { "text-anchor": "middle", ...SMALL })),
    [-2, -1, 0, 1, 2].map((t) => line(left, Y(t), left + width, Y(t), t ? grid : { "stroke-opacity": 0.6 }) + words(left - 5, Y(t) + 4, percent(10 ** t).replace(".0", ""), { "text-anchor": "end", ...SMALL })),
    words(left + width, top + height + 30, "logit spread (standard deviation)", { "text-anchor": "end", ...SMALL }),
    words(0, top - 10, "relative error", SMALL),
    line(here, top, here, top + height, { "stroke-width": 1.5, "stroke-opacity": 0.6 }),
    inside(METHODS.map(({ key, role, dash }) => group(colour(role),
      path(through(points.map((p, i) => at(SPREADS[i], p[key]))), { "stroke-width": 2, "stroke-dasharray": dash })))),
    METHODS.map((method) => group(colour(method.role), marker(method.mark, here, Math.min(top + height, Math.max(top, at(state.spread, now[method.key])[1])), method.solid))));
}

const powerOfTwo = (exponent) => 2 ** exponent;
export default explorable({
  question: "When is linear attention close to softmax attention?",
  hint: `Thick lines: exact softmax attention. Bars: the approximation (an arrowhead: off the scale). Percentages are over ${QUERIES} queries. ` +
    `Fixed: Gaussian keys, queries and values of ${D} numbers each and ${FEATURES} Gaussian projections, drawn from a seed; scale 1/√${D}, which V Kᵀ q leaves out.`,
  traits: ["spread", "tokens", "seed"],
  sliders: [
    slider("spread", "logit spread", [-3, 2, 0.25], fixed, powerOfTwo, Math.log2),
    slider("tokens", "tokens", [2, 7, 1], String, powerOfTwo, Math.log2),
  ],
  panels: (state) => [outputPanel(state), curvePanel(state)],
  describe,
});
