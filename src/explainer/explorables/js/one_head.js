// The running example: what each demonstration adds to the output of one head on `Japan ->`.

import { add, addMatrices, dot, matvec, outer, scale, softmax, subtract, weightedSum } from "./algebra.js";
import { PLANE, SMALL, TICKS, WIDTH, arrow, axes, badge, bar, colour, column, diamond, group, heatMap, line, panel, path, rect, shortOf, tag, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { agreement, fixed, vector } from "./numbers.js";

const NAMES = ["Japan ->", "France -> Paris", "Italy -> Rome", "Egypt -> Cairo", "China -> Beijing"]; // by the trait `token`
const linear = ({ attention }) => attention === "linear";

// The tokens of the prompt, demonstrations first, the query's own text (0) last
const tokens = ({ demonstrations }) => [...Array.from({ length: demonstrations }, (_, i) => i + 1), 0];
// What is looked at: a demonstration that is not in the prompt gives way to the last one that is
export const looked = ({ token, demonstrations }) => Math.min(token, demonstrations);
const keyOf = ({ token_keys }, i) => token_keys.at(i - 1), valueOf = ({ token_values }, i) => token_values.at(i - 1);

export const inner = (state) => tokens(state).map((i) => dot(keyOf(state, i), state.query));
export const weights = (state) => (linear(state) ? inner(state) : softmax(scale(Math.SQRT1_2, inner(state))));
const rows = (state, of) => tokens(state).map((i) => of(state, i));

// The fields of explainer.theory.duality.split_attention
export const product = (state, i) => outer(valueOf(state, i), keyOf(state, i));
export const zeroShot = (state) => product(state, 0);
export const update = (state) => tokens(state).slice(0, -1).map((i) => product(state, i)).reduce(addMatrices, [[0, 0], [0, 0]]);

export const bySum = (state) => weightedSum(inner(state), rows(state, valueOf));
export const byMatrix = (state) => matvec(addMatrices(zeroShot(state), update(state)), state.query);
export const bySoftmax = (state) => weightedSum(weights({ ...state, attention: "softmax" }), rows(state, valueOf));
export const output = (state) => (linear(state) ? bySum(state) : bySoftmax(state));
export const gap = (state) => Math.hypot(...subtract(bySum(state), bySoftmax(state))) / Math.hypot(...bySoftmax(state));

// The readout: the answer whose direction the output is nearest to. First number: capital or country; second: east or west.
export const answer = ([capital, east]) => (capital > 0 ? (east > 0 ? "Tokyo" : "Paris") : east > 0 ? "Japan" : "France");

const percent = (share) => (Number.isFinite(share) ? `${fixed(100 * share, 0)}\u00a0%` : "more than can be said");

function describe(state) {
  const n = state.demonstrations, count = n === 0 ? "no demonstration" : n === 1 ? "1 demonstration" : `${n} demonstrations`;
  const same = linear(state)
    ? `The sum over tokens is ${vector(bySum(state), 12)}, the matrix times the query is ${vector(byMatrix(state), 12)}. ${agreement(bySum(state), byMatrix(state))}`
    : `The sum without softmax is ${vector(bySum(state))}; the distance between the two is ${percent(gap(state))} of the softmax output.`;
  return `${linear(state) ? "Without" : "With"} softmax and with ${count}, the output of the head is ${vector(output(state))}, on the side of ${answer(output(state))}. ${same}`;
}

const right = { "text-anchor": "end", "font-size": 12 }, middle = { "text-anchor": "middle", "font-size": 12 }, MONO = { "font-family": "monospace", "font-size": 12 };
const bold = { "font-weight": 600 }, ROW = 42, rowMiddle = (place) => 66 + ROW * place, FOOT = rowMiddle(5) + 10, LOW = 312;

function tokenPanel(state) {
  const shown = tokens(state), w = weights(state), reach = Math.max(linear(state) ? 1.5 : 1, ...w.map(Math.abs)), X = (v) => 176 + (v / reach) * 40;
  const row = (i, place) => {
    const y = rowMiddle(place), k = shown.indexOf(i), chosen = i === looked(state);
    const label = words(26, y + 4, NAMES[i], { ...MONO, ...(chosen ? bold : {}) });
    const mark = i ? badge(12, y, i, 8) : words(12, y + 5, "?", { "text-anchor": "middle", ...bold });
    if (k < 0) return group({ "fill-opacity": 0.65, "stroke-opacity": 0.5 }, mark, label, words(WIDTH, y + 4, "not in the prompt", { ...right, ...SMALL }));
    return group({ "data-token": i, style: "cursor:pointer" },
      rect(1, y - 18, WIDTH - 2, 36, { rx: 5, "fill-opacity": chosen ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": chosen ? 0.8 : 0 }),
      group(colour(i ? "key" : "query"), mark), label,
      group(colour("ink"), bar(X(0), X(w[k]), y + 1, 11)), words(X(0), y - 4, fixed(w[k]), { ...middle, class: "explorable-halo" }),
      words(WIDTH - 6, y + 4, vector(scale(w[k], valueOf(state, i))), right));
  };
  const head = (x, text, role, anchor) => words(x, 36, text, { ...anchor, ...bold, ...colour(role) });
  return panel("The prompt: choose a token", LOW,
    head(176, linear(state) ? "k · q" : "p = softmax", "ink", middle), head(WIDTH - 6, linear(state) ? "adds (k · q) v" : "adds p v", "value", right),
    [1, 2, 3, 4, 0].map(row),
    words(0, FOOT, "output, the sum", bold), words(WIDTH - 6, FOOT, vector(output(state)), { "text-anchor": "end", ...bold }));
}

const at = ([x, y]) => [PLANE.X(x), PLANE.Y(y)], origin = at([0, 0]);
const TOP = PLANE.top + PLANE.height;

function outputPanel(state) {
  const w = weights(state), order = tokens(state), own = order.length - 1, end = output(state);
  // The own text first, then the demonstrations, one arrow each
  const steps = [own, ...order.keys()].slice(0, order.length).map((k) => scale(w[k], valueOf(state, order[k])));
  const stops = steps.reduce((list, step) => [...list, add(list.at(-1), step)], [[0, 0]]).map(at), tip = stops.at(-1);
  const corner = (x, y, text, anchor) => words(x, y, text, { "text-anchor": anchor, ...MONO, ...(answer(end) === text ? bold : { "fill-opacity": 0.75 }) });
  const off = end.some((x) => Math.abs(x) > 2);
  return panel(`The output: on the side of ${answer(end)}`, LOW,
    axes(PLANE, TICKS, ["", ""]),
    words(PLANE.left + PLANE.width, TOP + 28, "country ← → capital", { "text-anchor": "end", ...SMALL }), words(8, 32, "west ↓ ↑ east", SMALL),
    corner(306, 54, "Tokyo", "end"), corner(30, 54, "Japan", "start"), corner(306, TOP - 6, "Paris", "end"), corner(30, TOP - 6, "France", "start"),
    PLANE.inside(
      group(colour("value"), stops.slice(1).map((stop, k) => arrow(...stops[k], ...stop))),
      group(colour("ink"), line(...origin, ...tip, { "stroke-width": 1.5, "stroke-dasharray": "3 3" }), tag("circle", { cx: tip[0], cy: tip[1], r: 5, fill: "currentColor" }))),
    off ? words(168, 72, "the output is off the plot", { class: "explorable-halo", "text-anchor": "middle", ...SMALL }) : "");
}

function keyPanel(state) {
  const shown = tokens(state).filter((i) => i), now = looked(state);
  const key = (i) => arrow(...origin, ...shortOf(origin, at(keyOf(state, i)))) + badge(...at(keyOf(state, i)), i || "?", i === now ? 11 : 8);
  return panel("Keys, and the query: drag it", LOW,
    axes(PLANE, TICKS, ["", ""]), words(8, 32, "west ↓ ↑ east", SMALL),
    group(colour("key"), shown.map(key), key(0)),
    group(colour("query"), arrow(...origin, ...shortOf(origin, at(state.query))), diamond(...at(state.query))),
    words(8, LOW - 4, `chosen: ${NAMES[now]}`, MONO));
}

function matrixPanel(state) {
  const i = looked(state), value = valueOf(state, i), [a, b] = keyOf(state, i), y = 78, low = 166;
  const head = (x, text, role) => words(x, 44, text, { ...middle, ...bold, ...colour(role) });
  const sum = addMatrices(zeroShot(state), update(state)), under = (x, text) => words(x, low + 38, text, { ...middle, ...bold });
  const note = linear(state)
    ? ["The same matrix serves every query:", "drag q, and it does not change."]
    : ["Softmax has no such matrix: each p depends", "on q and on all keys together."];
  return panel(`Value times key: ${NAMES[i]}`, LOW,
    head(22, "value", "value"), column(0, y, value), words(57, y + 4, "×", middle),
    head(116, "key, as a row", "key"), path(`M73 ${y - 9}h-4v18h4M159 ${y - 9}h4v18h-4`, { "stroke-opacity": 0.7 }),
    words(110, y + 4, fixed(a), right), words(156, y + 4, fixed(b), right), words(182, y + 4, "=", middle),
    head(250, "outer product", "ink"), heatMap(200, y, product(state, i)),
    line(0, 118, WIDTH, 118, { "stroke-opacity": 0.5 }),
    words(0, 138, "The sum of all outer products, as a matrix", { "font-size": 12 }),
    heatMap(0, low, zeroShot(state), 46), words(102, low + 4, "+", middle), heatMap(112, low, update(state), 46, "context"), words(216, low + 4, "=", middle), heatMap(227, low, sum, 46),
    under(46, "W_ZSL"), under(158, `ΔW_ICL, ${state.demonstrations} of 4`), under(273, "sum"),
    note.map((text, k) => words(0, 234 + 17 * k, text, { "font-size": 12 })));
}

function extend(root, start, read, change) {
  const choose = ({ target }) => {
    const row = target.closest?.("[data-token]"), token = row && +row.dataset.token;
    if (row && token !== looked(read())) change({ token });
  };
  // Not pointerover: a redraw below a resting pointer fires it, and would take back what was chosen from the list.
  root.addEventListener("pointermove", choose);
  root.addEventListener("click", choose);
}

export default explorable({
  question: "What does each demonstration add to the output of a head?",
  hint: "Point at a token or choose it from the list. Drag the diamond (the query), or focus it and press the arrow keys. " +
    "Each demonstration is one token here; in a real prompt it is several. The numbers are chosen by hand.",
  traits: ["token_keys", "token_values", "query", "demonstrations", "token", "attention"],
  sliders: [slider("demonstrations", "demonstrations", [0, 4, 1], String)],
  lists: (state) => [
    ["attention", "attention", [["linear", "linear: no softmax"], ["softmax", "softmax"]]],
    ["token", "token", tokens(state).map((i) => [i === looked(state) ? state.token : i, NAMES[i]])],
  ],
  panels: (state) => [tokenPanel(state), matrixPanel(state), keyPanel(state), outputPanel(state)],
  handles: ({ query }) => [{ panel: 2, label: "Query", plane: PLANE, at: query, move: (point) => ({ query: point }) }],
  describe, extend,
  answers: (state) => [
    ["sum over tokens: Σ vᵢ\u00a0(kᵢ\u00a0·\u00a0q)", vector(bySum(state), 12)],
    ["matrix times query: (W_ZSL + ΔW_ICL)\u00a0q", vector(byMatrix(state), 12)],
    ["distance from softmax attention, as a share of it", percent(gap(state))],
  ],
});
