// One attention head over three tokens: from keys and query to weights, from weights and values to the output.

import { dot, scale, softmax, sum, weightedSum } from "./algebra.js";
import { PLANE, SMALL, TICKS, WIDTH, arrow, axes, badge, bar, colour, column, diamond, group, line, panel, path, plane, shortOf, tag, words } from "./drawing.js";
import { explorable } from "./frame.js";
import { fixed, vector } from "./numbers.js";

const NAMES = ["France", "->", "Paris"]; // the tokens, as they are drawn
const linear = ({ attention }) => attention === "linear";

// k_i . q, for softmax divided by sqrt(2): explainer.theory.duality.scaled_logits
export const logits = (state) => state.token_keys.map((key) => dot(key, state.query) / (linear(state) ? 1 : Math.SQRT2));
export const weights = (state) => (linear(state) ? logits(state) : softmax(logits(state)));
// explainer.theory.duality.softmax_attention or linear_attention
export const output = (state) => weightedSum(weights(state), state.token_values);

function describe(state) {
  const w = weights(state).map((w_i) => fixed(w_i)), end = `The output, the weighted sum of the values, is ${vector(output(state))}`;
  const on = `on France, on the arrow and on Paris are ${w[0]}, ${w[1]} and ${w[2]}`;
  return linear(state)
    ? `Without softmax the attention weights ${on}: the inner products of key and query themselves, which sum to ${fixed(sum(weights(state)))}. ${end}.`
    : `The attention weights ${on}: positive, and together 1. ${end}; it lies between the three values.`;
}

const onPlane = ([x, y]) => [PLANE.X(x), PLANE.Y(y)], origin = onPlane([0, 0]);
const VALUES = plane({ left: 26, top: 40, width: 284, height: 236, x: [-3, 3], y: [-3, 3] });

function keyPanel({ token_keys: keys, query }) {
  return panel("Keys and query: drag them", 308, axes(PLANE, TICKS, ["", ""]),
    group(colour("key"), keys.map((k, i) => arrow(...origin, ...shortOf(origin, onPlane(k))) + badge(...onPlane(k), i + 1))),
    group(colour("query"), arrow(...origin, ...shortOf(origin, onPlane(query))), diamond(...onPlane(query))));
}

function valuePanel(state) {
  const at = ([x, y]) => [VALUES.X(x), VALUES.Y(y)], zero = at([0, 0]), corners = state.token_values.map(at), end = output(state), tip = at(end);
  const off = end.some((x) => Math.abs(x) > 3), left = tip[0] > 200;
  return panel("Values and output: drag the values", 308, axes(VALUES, [-3, -2, -1, 0, 1, 2, 3], ["", ""]),
    path(`M${corners.map((c) => c.map((x) => x.toFixed(1)).join(" ")).join("L")}Z`, { "stroke-dasharray": "2 3", "stroke-opacity": 0.7 }),
    group(colour("value"), corners.map((c, i) => arrow(...zero, ...shortOf(zero, c)) + badge(...c, i + 1))),
    VALUES.inside(group(colour("ink"), arrow(...zero, ...tip, {}), tag("circle", { cx: tip[0], cy: tip[1], r: 5, fill: "currentColor" }))),
    off ? words(168, 56, "the output is off the plot", { class: "explorable-halo", "text-anchor": "middle", ...SMALL })
      : words(tip[0] + (left ? -9 : 9), tip[1] + (end[1] < -2.4 ? -8 : 18), "output", { class: "explorable-halo", "font-weight": 600, "text-anchor": left ? "end" : "start" }));
}

const ROW = 50, middleOf = (i) => 68 + ROW * i, FOOT = middleOf(3) + 4;
const right = { "text-anchor": "end", "font-size": 12 }, middle = { "text-anchor": "middle", "font-size": 12 };
const rule = line(0, FOOT - 26, WIDTH, FOOT - 26, { "stroke-opacity": 0.5 });
const name = (i) => group(colour("key"), badge(10, middleOf(i), i + 1)) + words(26, middleOf(i) + 4, NAMES[i], { "font-family": "monospace", "font-size": 12 });

function barsAt(x, width, numbers, reach) {
  const X = (v) => x + (v / reach) * width;
  return [
    line(X(0), middleOf(0) - 24, X(0), middleOf(2) + 20, { "stroke-opacity": 0.5 }),
    numbers.map((v, i) => bar(X(0), X(v), middleOf(i) - 3, 14) + words(X(0), middleOf(i) - 8, fixed(v), { ...middle, class: "explorable-halo" })),
  ];
}

function weightPanel(state) {
  const l = logits(state), w = weights(state), of = (numbers) => Math.max(1, ...numbers.map(Math.abs));
  const head = (x, text, role) => words(x, 36, text, { ...middle, "font-weight": 600, ...colour(role) });
  return panel(linear(state) ? "The inner products are used as they are" : "From logits to attention weights", FOOT + 12,
    head(134, linear(state) ? "k · q" : "logit k · q / √2", "ink"), linear(state) ? head(254, "used as it is", "ink") : head(254, "p = softmax", "ink"),
    [0, 1, 2].map(name),
    group(colour("ink"), barsAt(134, 50, l, of(l))),
    group(colour("ink"), linear(state) ? barsAt(254, 50, w, of(w)) : barsAt(216, 90, w, 1)),
    rule, words(0, FOOT, linear(state) ? "sum of all k · q" : "sum of all p", { "font-weight": 600 }), words(WIDTH, FOOT, fixed(sum(w)), { "text-anchor": "end", "font-weight": 600 }));
}

function sumPanel(state) {
  const w = weights(state), values = state.token_values;
  const heads = [[134, linear(state) ? "k · q" : "p", "ink"], [210, "value", "value"], [290, "adds", "value"]];
  return panel("The output: a weighted sum of values", FOOT + 12,
    heads.map(([x, text, role]) => words(x, 36, text, { ...middle, "font-weight": 600, ...colour(role) })),
    values.map((v, i) => [
      name(i), words(150, middleOf(i) + 4, fixed(w[i]), right), words(168, middleOf(i) + 4, "×", middle), column(186, middleOf(i), v),
      words(250, middleOf(i) + 4, "=", middle), column(268, middleOf(i), scale(w[i], v)),
    ]),
    rule, words(0, FOOT, "output", { "font-weight": 600 }), words(WIDTH, FOOT, vector(output(state)), { "text-anchor": "end", "font-weight": 600 }));
}

function handles({ token_keys: keys, token_values: values, query }) {
  const within = { ...VALUES, x: PLANE.x, y: PLANE.y };
  const item = (panelIndex, label, planeOf, at, move) => ({ panel: panelIndex, label, plane: planeOf, at, move });
  return [
    ...keys.map((at, i) => item(0, `Key ${i + 1}`, PLANE, at, (point) => ({ token_keys: keys.with(i, point) }))),
    item(0, "Query", PLANE, query, (point) => ({ query: point })),
    ...values.map((at, i) => item(1, `Value ${i + 1}`, within, at, (point) => ({ token_values: values.with(i, point) }))),
  ];
}

export default explorable({
  question: "What does one attention head do with three tokens?",
  hint: "Drag a numbered arrow or the diamond (the query), or focus it and press the arrow keys; Shift makes bigger steps. " +
    "Hollow bars are negative. With softmax the output stays inside the dotted triangle of the values.",
  traits: ["token_keys", "token_values", "query", "attention"],
  lists: () => [["attention", "attention", [["softmax", "softmax"], ["linear", "linear: no softmax"]]]],
  panels: (state) => [keyPanel(state), valuePanel(state), weightPanel(state), sumPanel(state)],
  handles, describe,
});
