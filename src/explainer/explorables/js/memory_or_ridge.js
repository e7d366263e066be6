// The posterior mean over a pool of lines, against ridge regression: y = w_0 x + w_1 with inputs (x, 1).

import { dot, softmax, weightedSum } from "./algebra.js";
import { LIMIT, PLANE, SMALL, TICKS, axes, badge, colour, diamond, group, line, panel, path, plane, rect, through, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed, whole } from "./numbers.js";
import { normal, uniforms } from "./random.js";
import { remember } from "./remember.js";

export const MOST_DOUBLINGS = 10, POOL_SEED = 10;
const MOST_DRAWN = 64, LARGEST = 2 ** MOST_DOUBLINGS;

// w ~ N(0, I) for every line; a smaller pool is the beginning of a larger one
export const pool = remember([], () => {
  const uniform = uniforms(POOL_SEED);
  return Array.from({ length: LARGEST }, () => [normal(uniform), normal(uniform)]);
});

const poolOf = (doublings) => pool({}).slice(0, 2 ** doublings);
const at = (w, x) => w[0] * x + w[1];

// p_j ~ exp(-sum_i (y_i - <w_j, x_i>)^2 / (2 noise^2)), with the prior 1/T
export const posterior = (lines, { points, noise }) =>
  softmax(lines.map((w) => -points.reduce((total, [x, y]) => total + (y - at(w, x)) ** 2, 0) / (2 * noise * noise)));

export const memory = (state, doublings = state.doublings) => {
  const lines = poolOf(doublings);
  return weightedSum(posterior(lines, state), lines);
};

// (X^T X + noise^2 I)^-1 X^T y for the rows (x, 1), by Cramer's rule
export function ridge({ points, noise }) {
  const penalty = noise * noise, column = (f) => points.reduce((total, point) => total + f(point), 0);
  const a = column(([x]) => x * x) + penalty, b = column(([x]) => x), c = points.length + penalty;
  const p = column(([x, y]) => x * y), q = column(([, y]) => y), det = a * c - b * b;
  return [(c * p - b * q) / det, (a * q - b * p) / det];
}

export function predictions(state) {
  const x = [state.query, 1];
  return { memory: dot(memory(state), x), ridge: dot(ridge(state), x) };
}

// Memory's answer at the query for every size of the pool
export const answersBySize = (state) =>
  Array.from({ length: MOST_DOUBLINGS + 1 }, (_, k) => at(memory(state, k), state.query));

function describe(state) {
  const T = 2 ** state.doublings, found = predictions(state), best = Math.max(...posterior(poolOf(state.doublings), state));
  const gap = Math.abs(found.memory - found.ridge);
  const largest = Math.abs(answersBySize(state).at(-1) - found.ridge);
  return `At x = ${fixed(state.query)}, memory of ${T === 1 ? "one line" : `${whole(T)} lines`} answers ${fixed(found.memory, 3)}; ` +
    `ridge regression, for which every line is possible, answers ${fixed(found.ridge, 3)}. They differ by ${fixed(gap, 3)}. ` +
    `Memory gives its most probable line the probability ${fixed(best, 2)}. With a pool of ${whole(LARGEST)} lines they would differ by ${fixed(largest, 3)}.`;
}

const clip = (v) => Math.max(-LIMIT, Math.min(LIMIT, v));
const HEIGHT = 356;

function linesPanel(state) {
  const { X, Y, inside } = PLANE, lines = poolOf(state.doublings), weights = posterior(lines, state);
  const found = predictions(state), x = X(state.query);
  const whole_ = (w, more) => line(X(-LIMIT), Y(at(w, -LIMIT)), X(LIMIT), Y(at(w, LIMIT)), more);
  const drawn = lines.slice(0, MOST_DRAWN).map((w, j) => whole_(w, { "stroke-opacity": (0.18 + 0.6 * weights[j]).toFixed(3), "stroke-width": 1 }));
  const key = (i, mark, text) => group({ transform: `translate(26 ${318 + 16 * i})` }, mark, words(36, 4, text, SMALL));
  return panel(`The prompt, and a pool of T = ${whole(lines.length)}`, HEIGHT,
    axes(PLANE, TICKS, ["input x", "output y"]),
    inside(drawn,
      group(colour("slate"), whole_(ridge(state), { "stroke-width": 2.5, "stroke-dasharray": "7 4" })),
      group(colour("ink"), whole_(memory(state), { "stroke-width": 2.5 })),
      line(x, PLANE.top, x, PLANE.top + PLANE.height, { "stroke-dasharray": "1 3" })),
    group(colour("stone"), state.points.map(([x_i, y_i], i) => badge(X(x_i), Y(y_i), i + 1))),
    badge(x, PLANE.top + PLANE.height, "x"), group(colour("slate"), diamond(x, Y(clip(found.ridge)), 6)),
    group(colour("ink"), diamond(x, Y(clip(found.memory)), 8)),
    group(colour("ink"), key(0, line(0, 0, 28, 0, { "stroke-width": 2.5 }), "memory: mean over the pool, as it fits")),
    group(colour("slate"), key(1, line(0, 0, 28, 0, { "stroke-width": 2.5, "stroke-dasharray": "7 4" }), "ridge regression: every line is possible")));
}

const SIZES = plane({ left: 34, top: 40, width: 260, height: 236, x: [0, MOST_DOUBLINGS], y: [-LIMIT, LIMIT] });

function sizesPanel(state) {
  const { X, Y, inside, left, top, width, height } = SIZES, answers = answersBySize(state), { ridge: level } = predictions(state);
  const points = answers.map((answer, k) => [X(k), Y(clip(answer))]), now = points[state.doublings];
  const middle = { ...SMALL, "text-anchor": "middle" };
  const name = (text, x, y, above) => words(left + x, Math.max(top + 23, Math.min(top + height - 7, y + (above ? -7 : 15))), text, { ...SMALL, class: "explorable-halo" });
  return panel("Their answers, by the size of the pool", HEIGHT,
    TICKS.map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t ? 0.15 : 0.6 }) + words(left - 5, Y(t) + 4, fixed(t, 0), { ...SMALL, "text-anchor": "end" })),
    [0, 2, 4, 6, 8, 10].map((k) => words(X(k), top + height + 14, whole(2 ** k), middle)),
    words(left + width, top + height + 28, "T, lines in the pool", { ...SMALL, "text-anchor": "end" }),
    words(0, top - 8, `answer at x = ${fixed(state.query)}`, SMALL),
    inside(group(colour("slate"), line(left, Y(clip(level)), left + width, Y(clip(level)), { "stroke-width": 2.5, "stroke-dasharray": "7 4" })),
      group(colour("ink"), path(through(points), { "stroke-width": 2 }), points.map(([x, y]) => rect(x - 2.5, y - 2.5, 5, 5, {})))),
    group(colour("ink"), name("memory", 8, points[0][1], points[0][1] < Y(level)), diamond(...now, 8)),
    group(colour("slate"), name("ridge", 72, Y(clip(level)), points[0][1] >= Y(level))),
    words(0, 322, "Where they differ, memory answers with the tasks", SMALL),
    words(0, 338, "of its pool, and ridge with the task of the prompt.", SMALL));
}

function handles({ points, query }) {
  return [
    ...points.map((at_, i) => ({ panel: 0, label: `Example ${i + 1}`, plane: PLANE, at: at_, move: (point) => ({ points: points.with(i, point) }) })),
    { panel: 0, label: "Query", plane: PLANE, at: [query, -LIMIT], horizontal: true, move: ([x]) => ({ query: x }) },
  ];
}

export default explorable({
  question: "How does a learner that knows T lines by heart answer, and one for which any line is possible?",
  hint: "Move the slider from few lines to many. Drag a numbered example, or the query along the bottom edge, or focus it and press the arrow keys; " +
    `Shift makes bigger steps. At most ${MOST_DRAWN} lines are drawn; all count.`,
  traits: ["points", "query", "doublings", "noise"],
  sliders: [
    slider("doublings", "lines in the pool T", [0, MOST_DOUBLINGS, 1], (k) => whole(2 ** k)),
    slider("noise", "noise σ", [0.1, 1, 0.05]),
  ],
  panels: (state) => [linesPanel(state), sizesPanel(state)],
  handles, describe,
  answers: (state) => {
    const found = predictions(state);
    return [["memory of the pool", fixed(found.memory, 3)], ["ridge regression", fixed(found.ridge, 3)]];
  },
});
