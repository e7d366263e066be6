// One gradient step on y = W x from W_0 = 0, against linear attention over the examples.

import { linearAttention } from "./algebra.js";
import { LIMIT, PLANE, SMALL, TICKS, WIDTH, axes, badge, bar, colour, diamond, group, line, panel, shortOf, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { agreement, fixed } from "./numbers.js";

// W_1 = W_0 - lr dL/dW at W_0 = 0, with L = 1/(2n) sum_i (W x_i - y_i)^2
export function gradientStep(points, learningRate) {
  const W_0 = 0;
  const gradient = points.reduce((sum, [x, y]) => sum + (W_0 * x - y) * x, 0) / points.length;
  return W_0 - learningRate * gradient;
}

// e_i = -lr dL/d(W x_i) at W_0 = 0: the values of the attention
export const errorSignals = (points, learningRate) => points.map(([, y]) => (learningRate / points.length) * y);

export function attend(points, learningRate, query) {
  return linearAttention(errorSignals(points, learningRate).map((e) => [e]), points.map(([x]) => [x]), [query])[0];
}

export const contributions = (points, learningRate, query) =>
  errorSignals(points, learningRate).map((e, i) => e * (points[i][0] * query));

export function predictions({ points, learning_rate, query }) {
  return { step: gradientStep(points, learning_rate) * query, attention: attend(points, learning_rate, query) };
}

function describe(state) {
  const { step, attention } = predictions(state);
  return `For the query ${fixed(state.query)}, the layer after one gradient step predicts ${fixed(step, 12)}; ` +
    `linear attention over the ${state.points.length} examples answers ${fixed(attention, 12)}. ${agreement([step], [attention])}`;
}

const clip = (v) => Math.max(-LIMIT, Math.min(LIMIT, v));

function dataPanel({ points, learning_rate, query }) {
  const { X, Y } = PLANE, W = gradientStep(points, learning_rate), prediction = W * query;
  const end = Math.min(LIMIT, LIMIT / Math.abs(W)); // where the line leaves the plane
  const at = [X(query), Y(clip(prediction))];
  const right = X(LIMIT), steep = Math.abs(prediction) > LIMIT;
  const text = fixed(prediction, 3) + (steep ? " (off the plot)" : ""), leftwards = query > (steep ? 0 : 1.2);
  const from = at[0] + (leftwards ? -10 : 10), to = from + (leftwards ? -1 : 1) * 8 * text.length, below = prediction < 0 ? -12 : 20;
  const hides = (y) => points.filter(([px, py]) => X(px) > Math.min(from, to) - 12 && X(px) < Math.max(from, to) + 12 && Math.abs(Y(py) + 4 - y) < 16).length;
  const free = [below, -below, 2 * below].map((dy) => at[1] + dy).filter((y) => y > Y(LIMIT) + 8 && y < Y(-LIMIT));
  const place = [from, free.reduce((best, y) => (hides(y) < hides(best) ? y : best))];
  return panel(`One gradient step: W₁ = ${fixed(W, 3)}`, 308,
    axes(PLANE, TICKS, ["input x", "output y"]),
    line(X(-end), Y(-W * end), X(end), Y(W * end), { "stroke-width": 2.5 }),
    line(X(-LIMIT), Y(0), right, Y(0), { "stroke-dasharray": "6 4", "stroke-width": 1.5 }),
    words(X(-LIMIT) + 4, Y(0) - 5, "before: W₀ = 0", SMALL),
    group(colour("value"), points.map(([x, y]) => line(X(x), Y(0), ...shortOf([X(x), Y(0)], [X(x), Y(y)]), { "stroke-width": 2, "stroke-dasharray": "2 3" }))),
    group(colour("key"), points.map(([x, y], i) => badge(X(x), Y(y), i + 1))),
    group(colour("query"), line(at[0], Y(0), ...at, { "stroke-width": 2 }), diamond(...at)),
    words(...place, text, { class: "explorable-halo", "font-weight": 600, "text-anchor": leftwards ? "end" : "start" }));
}

function attentionPanel({ points, learning_rate, query }) {
  const values = errorSignals(points, learning_rate), parts = contributions(points, learning_rate, query);
  const reached = parts.reduce((sums, part) => [...sums, sums.at(-1) + part], [0]);
  const low = Math.min(...reached), high = Math.max(...reached), span = Math.max(high - low, 1e-9);
  const X = (v) => 178 + ((v - low) / span) * 134, height = 224 / points.length, foot = 50 + 224;
  const total = reached.at(-1), right = { "text-anchor": "end", "font-size": 12 };
  const row = (i) => {
    const y = 50 + i * height, middle = y + height / 2 + 4;
    return [
      group(colour("key"), badge(10, middle - 4, i + 1)),
      words(62, middle, fixed(values[i]), right), words(72, middle, "×", { "text-anchor": "middle", "font-size": 12 }),
      words(118, middle, fixed(points[i][0] * query), right), words(166, middle, fixed(parts[i], 2, "+"), right),
      group(colour("value"), bar(X(reached[i]), X(reached[i + 1]), y + height / 2 - 7, 14)),
      i + 1 < points.length ? line(X(reached[i + 1]), y + height / 2 + 7, X(reached[i + 1]), y + height * 1.5 - 7, { "stroke-opacity": 0.5 }) : "",
    ];
  };
  return panel("Linear attention over the examples", 308,
    group({ ...right, "font-weight": 600 },
      words(62, 38, "value", colour("value")), words(99, 38, "key ·", colour("key")), words(118, 38, "q", colour("query")),
      words(166, 38, "adds", colour("value")), words(X(total), 38, "W₁ q", { "text-anchor": X(total) < 230 ? "start" : "end" })),
    line(X(0), 44, X(0), foot + 30, { "stroke-opacity": 0.5 }),
    group(colour("ink"), line(X(total), 44, X(total), foot + 30, { "stroke-width": 2, "stroke-dasharray": "2 3" })),
    points.map((_, i) => row(i)),
    line(0, foot + 3, WIDTH, foot + 3, { "stroke-opacity": 0.5 }),
    words(0, foot + 22, "sum", { "font-weight": 600 }), words(166, foot + 22, fixed(total, 3), { ...right, "font-size": 13, "font-weight": 600 }),
    group(colour("ink"), bar(X(0), X(total), foot + 10, 16)));
}

function handles({ points, learning_rate, query }) {
  return [
    ...points.map((at, i) => ({ panel: 0, label: `Example ${i + 1}`, plane: PLANE, at, move: (point) => ({ points: points.with(i, point) }) })),
    { panel: 0, label: "Query", plane: PLANE, at: [query, gradientStep(points, learning_rate) * query], horizontal: true, move: ([x]) => ({ query: x }) },
  ];
}

export default explorable({
  question: "Does one gradient step give the same answer as linear attention over the examples?",
  hint: "Drag a numbered example or the diamond (the query), or focus it and press the arrow keys; Shift makes bigger steps. " +
    "Value: (η/n) yᵢ, the dotted height. Key: xᵢ. Hollow bars are negative.",
  traits: ["points", "learning_rate", "query"],
  sliders: [slider("learning_rate", "learning rate η", [0, 1.5, 0.05])],
  panels: (state) => [dataPanel(state), attentionPanel(state)],
  handles, describe,
  answers: (state) => {
    const { step, attention } = predictions(state);
    return [["after one gradient step: W₁ q", fixed(step, 12)], ["linear attention: Σ valueᵢ (keyᵢ\u00a0·\u00a0q)", fixed(attention, 12)]];
  },
});
