// A linear layer with two inputs and two neurons: its weights as a sum of outer products, its prediction as attention.

import { add, addMatrices, dot, linearAttention, matvec, outer, scale, subtract } from "./algebra.js";
import { LIMIT, PLANE, TICKS, WIDTH, arrow, axes, badge, bar, colour, column, diamond, group, heatMap, line, panel, path, rect, shortOf, tag, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { agreement, fixed, vector } from "./numbers.js";

// e_i = -lr dL/d(W x_i) at W_0, with L = 1/2 sum_i |W x_i - y_i|^2
export function errorSignals({ initial_weights, inputs, targets, learning_rate }) {
  return inputs.map((x, i) => scale(learning_rate, subtract(targets[i], matvec(initial_weights, x))));
}

// sum_i e_i x_i^T, as explainer.theory.duality.gradient_descent_update
export const gradientDescentUpdate = (errors, inputs) => errors.map((e, i) => outer(e, inputs[i])).reduce(addMatrices);

export function predictions(state) {
  const { initial_weights, inputs, query } = state, errors = errorSignals(state);
  const W = addMatrices(initial_weights, gradientDescentUpdate(errors, inputs));
  return { W, step: matvec(W, query), attention: add(matvec(initial_weights, query), linearAttention(errors, inputs, query)) };
}

export const attentionWeights = ({ inputs, query }) => inputs.map((x) => dot(x, query));

function describe(state) {
  const { step, attention } = predictions(state);
  const weights = attentionWeights(state).map((weight) => fixed(weight)).join(", ");
  return `After one gradient step the layer predicts ${vector(step, 12)} for the query ${vector(state.query)}. ` +
    `Linear attention, with weights ${weights} on the demonstrations, answers ${vector(attention, 12)}. ${agreement(step, attention)}`;
}

const onPlane = ([x, y]) => [PLANE.X(x), PLANE.Y(y)];
const middle = { "text-anchor": "middle" }, small = { "font-size": 12 }, right = { "text-anchor": "end", ...small };

function inputPanel({ inputs, query }) {
  const origin = onPlane([0, 0]);
  return panel("Inputs: drag the keys and the query", 308,
    axes(PLANE, TICKS, ["input 1", "input 2"]),
    group(colour("key"), inputs.map((x, i) => arrow(...origin, ...shortOf(origin, onPlane(x))) + badge(...onPlane(x), i + 1))),
    group(colour("query"), arrow(...origin, ...shortOf(origin, onPlane(query))), diamond(...onPlane(query))));
}

function outputPanel(state) {
  const { initial_weights, inputs, targets, query } = state;
  const start = matvec(initial_weights, query), errors = errorSignals(state), weights = attentionWeights(state);
  const steps = errors.map((e, i) => scale(weights[i], e));
  const stops = steps.reduce((list, s) => [...list, add(list.at(-1), s)], [start]).map(onPlane);
  const before = inputs.map((x) => onPlane(matvec(initial_weights, x)));
  const { step } = predictions(state), leaves = step.some((v) => Math.abs(v) > LIMIT);
  const chain = steps.map((_, i) => arrow(...stops[i], ...stops[i + 1]));
  return panel("Outputs: drag the targets", 308,
    axes(PLANE, TICKS, ["neuron 1", "neuron 2"]),
    group(colour("value"), PLANE.inside(before.map((b, i) =>
      line(...b, ...shortOf(b, onPlane(targets[i])), { "stroke-width": 2, "stroke-dasharray": "2 3" }) + rect(b[0] - 2.5, b[1] - 2.5, 5, 5, {}))),
      targets.map((y, i) => badge(...onPlane(y), i + 1))),
    PLANE.inside(
      group(colour("query"), path(`M${stops[0][0] - 6} ${stops[0][1]}l6 -6l6 6l-6 6Z`, { "stroke-width": 2, "stroke-dasharray": "2 2" })),
      group(colour("value"), chain),
      group(colour("query"), diamond(...onPlane(step)), tag("circle", { cx: stops.at(-1)[0], cy: stops.at(-1)[1], r: 3, fill: "currentColor" }))),
    leaves ? words(PLANE.X(-LIMIT) + 6, PLANE.Y(LIMIT) + 14, `W q = ${vector(step)} is off the plot`, { ...small, class: "explorable-halo" }) : "");
}

const ROW = 50, rowMiddle = (i) => 66 + ROW * i;
const rule = (y) => line(0, y, WIDTH, y, { "stroke-opacity": 0.5 });
const heads = (...columns) => group({ "font-weight": 600, ...small }, columns.map(([x, text, role]) => words(x, 36, text, role ? colour(role) : {})));

function weightPanel(state) {
  const { initial_weights, inputs } = state, errors = errorSignals(state), n = inputs.length;
  return panel("Gradient descent builds the weights", rowMiddle(n + 1) + 40,
    heads([34, "error e", "value"], [112, "input xᵀ", "key"], [216, "e xᵀ"]),
    words(0, rowMiddle(0) + 4, "start: W₀"), heatMap(216, rowMiddle(0), initial_weights),
    inputs.map((x, i) => {
      const y = rowMiddle(i + 1);
      return [
        words(0, y + 4, "+"), group(colour("key"), badge(21, y, i + 1, 8)), column(36, y, errors[i]), words(90, y + 4, "×", middle),
        path(`M104 ${y - 9}h-4v18h4M184 ${y - 9}h4v18h-4`, { "stroke-opacity": 0.7 }),
        words(139, y + 4, fixed(x[0]), right), words(181, y + 4, fixed(x[1]), right), words(202, y + 4, "=", middle), heatMap(216, y, outer(errors[i], x)),
      ];
    }),
    rule(rowMiddle(n) + 27), words(0, rowMiddle(n + 1) + 10, "W = W₀ + Σ eᵢ xᵢᵀ", { "font-weight": 600 }), heatMap(216, rowMiddle(n + 1) + 6, predictions(state).W));
}

function attentionPanel(state) {
  const { initial_weights, inputs, query } = state, errors = errorSignals(state), weights = attentionWeights(state), n = inputs.length;
  const reach = Math.max(1, ...weights.map(Math.abs)), X = (v) => 76 + (v / reach) * 40;
  return panel("Attention reads the same examples", rowMiddle(n + 1) + 40,
    heads([38, "weight xᵢ · q", "ink"], [152, "value e", "value"], [234, "weight × e", "value"]),
    words(0, rowMiddle(0) + 4, "start: W₀ q"), column(240, rowMiddle(0), matvec(initial_weights, query)),
    line(X(0), rowMiddle(1) - 20, X(0), rowMiddle(n) + 20, { "stroke-opacity": 0.5 }),
    inputs.map((_, i) => {
      const y = rowMiddle(i + 1);
      return [
        words(0, y + 4, "+"), group(colour("key"), badge(21, y, i + 1, 8)), group(colour("ink"), bar(X(0), X(weights[i]), y - 2, 14)),
        words(X(0), y - 6, fixed(weights[i]), { ...middle, ...small, class: "explorable-halo" }), words(133, y + 4, "×", middle), column(146, y, errors[i]),
        words(215, y + 4, "=", middle), column(240, y, scale(weights[i], errors[i])),
      ];
    }),
    rule(rowMiddle(n) + 27), words(0, rowMiddle(n + 1) + 10, "W₀ q + Σ (xᵢ · q) eᵢ", { "font-weight": 600 }), column(240, rowMiddle(n + 1) + 6, predictions(state).attention));
}

function handles({ inputs, targets, query }) {
  const item = (panelIndex, label, at, move) => ({ panel: panelIndex, label, plane: PLANE, at, move });
  return [
    ...inputs.map((at, i) => item(0, `Input ${i + 1}`, at, (point) => ({ inputs: inputs.with(i, point) }))),
    item(0, "Query", query, (point) => ({ query: point })),
    ...targets.map((at, i) => item(1, `Target ${i + 1}`, at, (point) => ({ targets: targets.with(i, point) }))),
  ];
}

export default explorable({
  question: "Is a layer after one gradient step the same as linear attention over its training examples?",
  hint: "Drag a numbered point or the diamond (the query q), or focus it and press the arrow keys; Shift makes bigger steps. " +
    "A dotted line runs from the start's output W₀ xᵢ (square) to the target: η times it is the error eᵢ. " +
    "Arrows add the attention's terms to W₀ q and end in the layer's prediction W q (diamond).",
  traits: ["inputs", "targets", "query", "learning_rate", "initial_weights"],
  sliders: [slider("learning_rate", "learning rate η", [0, 1, 0.05])],
  panels: (state) => [inputPanel(state), outputPanel(state), weightPanel(state), attentionPanel(state)],
  handles, describe,
  answers: (state) => {
    const { step, attention } = predictions(state);
    return [["after one gradient step: W q", vector(step, 12)], ["linear attention: W₀ q + Σ eᵢ\u00a0(xᵢ\u00a0·\u00a0q)", vector(attention, 12)]];
  },
});
