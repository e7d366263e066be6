// One head of the checkpoint on `Japan ->`: what softmax and what linear attention do when a vector is added to every key.

import { add, dot, scale, softmax, subtract, weightedSum } from "./algebra.js";
import { SMALL, WIDTH, arrow, axes, bar, colour, group, line, marker, DIAMOND, panel, plane, through, path, tag, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed, MINUS } from "./numbers.js";

const RANGE = [-4, 2];

// Keys in the plane of the query and the mean key, each moved by shift times the mean key
export function keys({ head, shift }) {
  const mean = scale(1 / head.keys.length, head.keys.reduce(add));
  return head.keys.map((key) => add(key, scale(shift, mean)));
}
export const logits = (state) => keys(state).map(([along]) => state.head.query * along); // k . q / sqrt(d)
export const shares = (state) => softmax(logits(state));
const demonstrations = ({ head: { n } }, rows) => rows.slice(0, n);

// F(q) - z: what the demonstrations change in the output of the head, in the basis of the stored values
export function softmaxChange(state, rows = state.head.values) {
  const own = softmax(logits(state).slice(state.head.n));
  return subtract(weightedSum(shares(state), rows), weightedSum(own, rows.slice(state.head.n)));
}
// Delta W q / (T sqrt(d)) = 1/T sum_i v_i (k_i . q) / sqrt(d) over the demonstrations
export const linearChange = (state, rows = state.head.values) =>
  scale(1 / state.head.tokens.length, weightedSum(demonstrations(state, logits(state)), demonstrations(state, rows)));

const length = (a) => Math.hypot(...a);
export const cosine = (state) => {
  const [a, b] = [softmaxChange(state), linearChange(state)];
  return dot(a, b) / (length(a) * length(b));
};
// One learning rate for all shifts: the one that brings Delta W q nearest to softmax's change for the keys as they are
export const rate = (state) => {
  const unmoved = { ...state, shift: 0 }, b = linearChange(unmoved);
  return dot(softmaxChange(unmoved), b) / dot(b, b);
};
export const stepLength = (state) => (rate(state) * length(linearChange(state))) / length(softmaxChange(state));
const asRows = ({ head }) => head.answer.map((each) => [each]);
// What each change adds to the logit of Tokyo minus that of Japan, in nats
export const towardsTokyo = (state) => [softmaxChange(state, asRows(state))[0], rate(state) * linearChange(state, asRows(state))[0]];
// How far the shift moves the output of softmax, as a share of it
export const moved = (state) => {
  const output = (at) => weightedSum(shares(at), at.head.values), as_it_is = output({ ...state, shift: 0 });
  return length(subtract(output(state), as_it_is)) / length(as_it_is);
};

const times = (shift) => `${fixed(shift, 1, "+")} × mean key`;
const isRounding = (share) => (share === 0 ? "by nothing" : `by ${share.toExponential(0).replace("-", MINUS)} of its length: rounding`);

function describe(state) {
  const { head, shift } = state, [soft, step] = towardsTokyo(state), unmoved = { ...state, shift: 0 };
  return `Layer ${head.layer}, head ${head.head}, with ${times(shift)} added to every key. Softmax: the demonstrations add ${fixed(soft, 2, "+")} nats to Tokyo over Japan, whatever is added to the keys. ` +
    `Linear attention: ΔW q adds ${fixed(step, 2, "+")} nats; its cosine with softmax's change is ${fixed(cosine(state))} (${fixed(cosine(unmoved))} for the keys as they are), and it is ${fixed(stepLength(state))} times as long.`;
}

const LOW = 330, bold = { "font-weight": 600 };
// 0 for the first token of the text, 5 for the query's own, else the demonstration
const owner = ({ head }, i) => (i < head.n ? 1 + Math.floor((4 * i) / head.n) : i === head.n ? 0 : 5);
const isAnswer = ({ head }, i) => i < head.n && i % (head.n / 4) === 2;

const KEYS = plane({ left: 30, top: 40, width: 280, height: 240, x: [-9, 11], y: [-68, 60] });
function keyPanel(state) {
  const { X, Y } = KEYS, placed = (its, l = logits(its)) => keys(its).map(([, across], i) => [X(l[i]), Y(across)]), at = placed(state);
  const [from, to] = RANGE.map((shift) => placed({ ...state, shift }));
  const zero = X(0);
  return panel("The keys, all moved by one vector", LOW,
    axes({ ...KEYS, Y }, [], ["logit k · q / √d, along the query", "mean key"]),
    [-8, -4, 0, 4, 8].map((t) => words(X(t), KEYS.top + KEYS.height + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL }) + line(X(t), KEYS.top, X(t), KEYS.top + KEYS.height, { "stroke-opacity": t === 0 ? 0.7 : 0.15, "stroke-width": t === 0 ? 1.5 : 1 })),
    [-50, -25, 0, 25, 50].map((t) => words(KEYS.left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL }) + line(KEYS.left, Y(t), KEYS.left + KEYS.width, Y(t), { "stroke-opacity": t === 0 ? 0.6 : 0.15 })),
    words(zero - 5, KEYS.top + 12, "linear: negative", { "text-anchor": "end", ...SMALL }), words(zero + 5, KEYS.top + 12, "positive", SMALL),
    KEYS.inside(
      group(colour("query"), arrow(X(0), Y(0), X(10), Y(0)), words(X(10), Y(0) - 8, "q", { "text-anchor": "end", ...bold })),
      group({ ...colour("key"), "fill-opacity": 0.9 }, at.map(([x, y], i) => (owner(state, i) === 5 || owner(state, i) === 0 ? marker(DIAMOND, x, y, false) : ""))),
      group(colour("key"), at.map((_, i) => (isAnswer(state, i) ? line(...from[i], ...to[i], { "stroke-dasharray": "2 4", "stroke-opacity": 0.6 }) : "")),
        at.map(([x, y], i) => (i < state.head.n && !isAnswer(state, i) ? tag("circle", { cx: x, cy: y, r: 3, fill: "currentColor", "fill-opacity": 0.6 }) : "")),
        at.map(([x, y], i) => (isAnswer(state, i) ? tag("circle", { cx: x, cy: y, r: 4, class: "explorable-paper", stroke: "currentColor", "stroke-width": 2 }) : ""))),
      at.map(([x, y], i) => (isAnswer(state, i) ? words(x, y + (owner(state, i) % 2 ? 17 : -8), owner(state, i), { "text-anchor": "middle", ...SMALL, ...bold, class: "explorable-ink explorable-halo" }) : ""))), // 2 and 3 are neighbours
    words(0, LOW - 4, "1 to 4: the answers, dotted: their way; ◇ own text", SMALL));
}

const OUT = plane({ left: 30, top: 40, width: 280, height: 240, x: [-1.35, 2.15], y: [-2, 1] });
// Both changes, drawn in units of softmax's. Its basis: the first axis is softmax's change, the second the rest of the mean value.
export const drawn = (state) => {
  const unit = length(softmaxChange({ ...state, shift: 0 })), first = ([a, b]) => [a / unit, b / unit];
  return { soft: first(softmaxChange(state)), step: first(scale(rate(state), linearChange(state))) };
};
function changePanel(state) {
  const { X, Y } = OUT, page = ([a, b]) => [X(a), Y(b)], origin = page([0, 0]), { soft, step } = drawn(state);
  const asIs = drawn({ ...state, shift: 0 }).step, ends = RANGE.map((shift) => page(drawn({ ...state, shift }).step)), tip = page(step);
  const outside = step.some((v, k) => v < OUT[k ? "y" : "x"][0] || v > OUT[k ? "y" : "x"][1]);
  const [right, below] = subtract(page(soft), tip), meets = Math.abs(right) < 70 && Math.abs(below + 12) < 26; // with the other label
  const atEdge = tip[0] > OUT.left + OUT.width - 50;
  return panel("What the demonstrations change", LOW,
    axes(OUT, [], ["softmax's change = 1", ""]),
    [-1, 0, 1, 2].map((t) => words(X(t), OUT.top + OUT.height + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL }) + line(X(t), OUT.top, X(t), OUT.top + OUT.height, { "stroke-opacity": t === 0 ? 0.6 : 0.15 })),
    [-2, -1, 0, 1].map((t) => words(OUT.left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL }) + line(OUT.left, Y(t), OUT.left + OUT.width, Y(t), { "stroke-opacity": t === 0 ? 0.6 : 0.15 })),
    words(8, 32, "mean value of the demonstrations, the rest", SMALL),
    OUT.inside(
      group(colour("training"), line(...ends[0], ...ends[1], { "stroke-dasharray": "2 4", "stroke-opacity": 0.9 }),
        line(...origin, ...page(asIs), { "stroke-width": 1.5, "stroke-dasharray": "5 4" }), tag("circle", { cx: page(asIs)[0], cy: page(asIs)[1], r: 4, class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 }),
        arrow(...origin, ...tip)),
      group(colour("ink"), arrow(...origin, ...page(soft), { "stroke-width": 3 })),
      words(page(soft)[0] + 6, page(soft)[1] + 16, "softmax", { ...bold, class: "explorable-ink explorable-halo" }),
      words(tip[0] + (atEdge ? -8 : 8), Math.max(OUT.top + 14, Math.min(tip[1] + (meets ? (below < 0 ? Math.max(4, 29 + below) : -10) : atEdge ? 20 : 4), OUT.top + OUT.height - 8)), "ΔW q", { "text-anchor": atEdge ? "end" : "start", ...bold, class: "explorable-training explorable-halo" })),
    outside ? words(OUT.left + 8, OUT.top + 14, "ΔW q leaves the plot", SMALL) : "",
    words(0, LOW - 4, "dashed with ○: ΔW q for the keys as they are", SMALL));
}

function tokenPanel(state) {
  const p = shares(state), l = logits(state), reach = 12, low = 52 + 14 * p.length + 16;
  const P = (v) => 88 + 70 * v, L = (v) => 220 + (50 * v) / reach;
  const name = (text) => text.replace("\n", "⏎").replace("<|endoftext|>", "first token").trim();
  const row = (text, i) => {
    const y = 52 + 14 * i, own = i >= state.head.n;
    return [
      words(own ? 4 : 14, y + 4, name(text), { "font-family": "monospace", "font-size": 11, ...(isAnswer(state, i) ? bold : {}) }),
      isAnswer(state, i) ? words(0, y + 4, owner(state, i), { "font-size": 11, ...bold }) : "",
      group(colour("ink"), bar(P(0), P(p[i]), y - 4, 9)),
      own ? "" : group(colour("ink"), bar(L(0), L(Math.max(-reach, Math.min(reach, l[i]))), y - 4, 9)),
      words(WIDTH, y + 4, fixed(state.head.answer[i], 2, "+"), { "text-anchor": "end", "font-size": 11 }),
    ];
  };
  return panel("How much each token counts", low,
    words(88, 36, "softmax p", { ...bold, "font-size": 12 }), words(220, 36, "k · q / √d", { ...bold, "font-size": 12, "text-anchor": "middle" }),
    words(WIDTH, 36, "value", { ...bold, ...colour("value"), "font-size": 12, "text-anchor": "end" }), words(WIDTH, low - 4, "value: nats for Tokyo over Japan", { ...SMALL, "text-anchor": "end" }),
    state.head.tokens.map(row), line(L(0), 42, L(0), 52 + 14 * state.head.n - 8, { "stroke-opacity": 0.5 }));
}

const CURVE = plane({ left: 30, top: 40, width: 280, height: 232, x: RANGE, y: [-1, 1] });
function curvePanel(state) {
  const { X, Y } = CURVE, shifts = Array.from({ length: 61 }, (_, k) => RANGE[0] + k / 10), [low, middle, high] = state.head.cosine;
  const at = [X(state.shift), Y(cosine(state))], foot = CURVE.top + CURVE.height;
  return panel("Cosine of ΔW q with softmax's change", 352,
    axes({ ...CURVE }, [-1, 0, 1], ["added to every key, × mean key", ""]),
    [-4, -3, -2, 2].map((t) => words(X(t), foot + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL })),
    line(X(-1), CURVE.top, X(-1), foot, { "stroke-dasharray": "3 4", "stroke-opacity": 0.6 }), words(X(-1) - 4, foot - 8, "centred", { "text-anchor": "end", ...SMALL }),
    line(X(0), CURVE.top, X(0), foot, { "stroke-dasharray": "3 4", "stroke-opacity": 0.6 }), words(X(0) + 5, foot - 8, "as they are", SMALL),
    group(colour("slate"), line(X(0), Y(low), X(0), Y(high), { "stroke-width": 2 }), line(X(0) - 6, Y(middle), X(0) + 6, Y(middle), { "stroke-width": 2.5 }),
      words(X(0) + 8, Y(middle) + 4, `all ${state.head.heads} heads`, { ...SMALL, class: "explorable-slate explorable-halo" })),
    group(colour("training"), path(through(shifts.map((shift) => [X(shift), Y(cosine({ ...state, shift }))])), { "stroke-width": 2 }), tag("circle", { cx: at[0], cy: at[1], r: 5, fill: "currentColor" })),
    words(at[0] + (state.shift > 1 ? -8 : 9), at[1] + (state.shift > -1 ? 20 : -6), fixed(cosine(state)), { ...bold, class: "explorable-halo", "text-anchor": state.shift > 1 ? "end" : "start" }));
}

export default explorable({
  question: "What happens in a real head when one vector is added to all its keys?",
  hint: "Move the slider: it adds a multiple of the mean key to every key, and q · c to every logit. Softmax sees only differences between logits. " +
    "SmolLM2-135M, four countries with their capitals, then Japan: of all heads, this is the one whose attention to the demonstrations adds most to Tokyo over Japan. " +
    "ΔW q is drawn at one learning rate, the best for the keys as they are; lengths and cosines are those of all 64 numbers, arrows are projections onto the plane of softmax's change and the mean value. Grey: median and quartiles over all heads, for the keys as they are.",
  traits: ["shift", "head"],
  sliders: [slider("shift", "added, × mean key", [...RANGE, 0.1], (v) => fixed(v, 1, "+"))],
  panels: (state) => [tokenPanel(state), changePanel(state), keyPanel(state), curvePanel(state)],
  describe,
  answers: (state) => {
    const [soft, step] = towardsTokyo(state);
    return [
      ["the shift moves the output of softmax", isRounding(moved(state))],
      ["softmax: the demonstrations add to Tokyo − Japan", `${fixed(soft, 2, "+")} nats`],
      ["linear: ΔW q adds to Tokyo − Japan", `${fixed(step, 2, "+")} nats`],
    ];
  },
});
