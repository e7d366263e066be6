// The error of the trained one-layer transformer over the length N of its training prompts and the length M of tests.

import { sum } from "./algebra.js";
import { SMALL, WIDTH, colour, diamond, entry, group, line, panel, path, plane, rect, through, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed, whole } from "./numbers.js";

// Theorem 4.2 at Gamma^-1, averaged over tasks: risk = noise^2 + fall / M + floor, both sums over the eigenvalues.
export function law({ eigenvalues, noise }, N) {
  const trace = sum(eigenvalues);
  let [fall, floor] = [0, 0];
  for (const l of eigenvalues) {
    const gamma = (1 + 1 / N) * l + trace / N, weight = l / (gamma * gamma);
    fall += weight * l * (l + trace + noise * noise);
    floor += weight * ((l + trace) / N) ** 2;
  }
  return { fall, floor, best: noise * noise, zero: trace + noise * noise };
}

// The three terms and their sum, as shares of the error of predicting 0
export function terms(state, N = state.training_length, M = state.prompt_length) {
  const { fall, floor, best, zero } = law(state, N);
  const parts = [best / zero, fall / M / zero, floor / zero];
  return { parts, total: parts[0] + parts[1] + parts[2] };
}

// M at which what falls with M equals what stays: half of the error is left to longer prompts.
export function payingLength(state, N = state.training_length) {
  const { fall, floor, best } = law(state, N);
  return fall / (floor + best);
}

// M on the contour where the error is a share of that of predicting 0; infinite where N is too short for it
export function contour(state, share, N) {
  const { fall, floor, best, zero } = law(state, N), left = share * zero - best - floor;
  return left > 0 ? fall / left : Infinity;
}

const MOST_N = 1000, DECADES = [3, 4]; // of N and of M

// The training length with the least error at this M
export function bestTraining(state) {
  let [best, least] = [1, Infinity];
  for (let N = 1; N <= MOST_N; N++) {
    const { total } = terms(state, N);
    if (total < least) [best, least] = [N, total];
  }
  return best;
}

const number = (x) => {
  const size = 10 ** Math.max(0, Math.floor(Math.log10(x)) - 1), rounded = x > 1e6 ? Infinity : Math.round(x / size) * size;
  return rounded === Infinity ? "over 1,000,000" : whole(rounded);
};
const share = (x) => (x >= 1 ? fixed(x, 2) : fixed(x, x >= 0.1 ? 3 : 4));

function describe(state) {
  const { parts, total } = terms(state), [N, M] = [whole(state.training_length), whole(state.prompt_length)];
  return `Trained on prompts of N = ${N} examples: longer prompts stop paying at about M = ${number(payingLength(state))}, ` +
    `where half of the error is what no prompt length removes. At M = ${M} the error is ${share(total)} of that of predicting 0: ` +
    `${share(parts[0])} noise on the target, ${share(parts[1])} because the prompt is short, ${share(parts[2])} because the training prompts were. ` +
    `At this M, training at N = ${whole(bestTraining(state))} has the least error${bestTraining(state) === MOST_N ? " of those drawn" : ""}.`;
}

const middle = { ...SMALL, "text-anchor": "middle" }, end = { ...SMALL, "text-anchor": "end" };
const LEVELS = [1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001];
const STEPS = 60, at = (decades) => Array.from({ length: STEPS + 1 }, (_, i) => (i * decades) / STEPS);
const power = (k) => whole(10 ** k);
const HEIGHT = 452;

const here = (x, y) => group(colour("value"), diamond(x, y, 7));

// Values that leave the drawing are cut at its edge or beyond it, never infinite.
const log = (x) => Math.max(-9, Math.min(9, Math.log10(x)));

const MAP = plane({ left: 42, top: 46, width: 238, height: 300, x: [0, DECADES[0]], y: [0, DECADES[1]] });

function map(state) {
  const { X, Y, inside, left, top, width, height } = MAP, N = at(DECADES[0]);
  const curve = (f) => N.map((x) => [X(x), Y(log(f(10 ** x)))]);
  const contours = LEVELS.map((level) => curve((n) => contour(state, level, n)));
  const below = (points) => `${through(points)}L${X(DECADES[0])} ${Y(-9)}L${X(0)} ${Y(-9)}Z`;
  const [x, y] = [X(log(state.training_length)), Y(log(state.prompt_length))];
  const labels = contours.map((points, i) => {
    const height_ = points[STEPS][1];
    return height_ > top + 4 && height_ < top + height - 4 ? words(left + width + 4, height_ + 4, LEVELS[i], SMALL) : "";
  });
  const key = (i, mark, text) => group({ transform: `translate(0 ${top + height + 50 + 18 * i})` }, mark, words(34, 0, text, SMALL));
  return panel("Error over both lengths", HEIGHT,
    [0, 1, 2, 3].map((k) => words(X(k), top + height + 14, power(k), middle)),
    [0, 1, 2, 3, 4].map((k) => words(left - 4, Y(k) + 4, power(k), end)),
    words(left + width, top + height + 28, "N, examples in a training prompt", end),
    words(0, top - 8, "M, examples in a test prompt", SMALL), words(WIDTH, top - 8, "error", end),
    inside(
      contours.map((points) => path(below(points), { fill: "currentColor", "fill-opacity": 0.09, stroke: "none" })),
      contours.map((points) => path(through(points), { "stroke-opacity": 0.55 })),
      group(colour("query"), path(through(curve((n) => payingLength(state, n))), { "stroke-width": 2.5, "stroke-dasharray": "7 4" })),
      group(colour("value"), line(x, top, x, top + height, { "stroke-dasharray": "1 3" }), line(left, y, left + width, y, { "stroke-dasharray": "1 3" }))),
    rect(left, top, width, height, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }), labels, here(x, y),
    key(0, line(0, -4, 28, -4, { "stroke-opacity": 0.55 }), "equal error, as a share of that of predicting 0"),
    group(colour("query"), key(1, line(0, -4, 28, -4, { "stroke-width": 2.5, "stroke-dasharray": "7 4" }), "above it, longer prompts hardly pay")),
    group(colour("value"), key(2, line(14, -12, 14, 2, { "stroke-dasharray": "1 3" }), "the two cuts that are drawn beside or below")));
}

const CUT = { left: 42, width: 262, height: 92, y: [-3.6, 1.3] };

function cut(top, decades, title, f, now, marked, text) {
  const p = plane({ ...CUT, top, x: [0, decades] }), { X, Y, inside, left, width, height } = p, x = log(marked);
  const points = at(decades).map((k) => [X(k), Y(log(f(10 ** k)))]);
  const shown = x >= 0 && x <= decades, anchor = X(x) > left + width / 2 ? { ...end } : SMALL;
  return [
    words(0, top - 8, title, SMALL),
    [0.001, 0.01, 0.1, 1].map((e) => line(left, Y(log(e)), left + width, Y(log(e)), { "stroke-opacity": e < 1 ? 0.15 : 0.6 }) + words(left - 4, Y(log(e)) + 4, e, end)),
    Array.from({ length: decades + 1 }, (_, k) => line(X(k), top, X(k), top + height, { "stroke-opacity": 0.15 }) + words(X(k), top + height + 13, power(k), k < decades ? middle : { ...end, x: WIDTH })),
    inside(group(colour("key"), path(through(points), { "stroke-width": 2 })),
      shown ? group(colour("query"), line(X(x), top, X(x), top + height, { "stroke-width": 2, "stroke-dasharray": "7 4" })) : ""),
    shown ? group(colour("query"), words(X(x) + (anchor === SMALL ? 5 : -5), top + 11, text, { ...anchor, class: "explorable-halo" })) : "",
    here(X(log(now)), Math.min(top + height, Math.max(top, Y(log(f(now)))))),
  ];
}

function cuts(state) {
  const { training_length: N, prompt_length: M } = state, { parts, total } = terms(state), pays = payingLength(state), best = bestTraining(state);
  const names = ["noise on the target: nobody can predict it", "short prompt: falls as 1/M", "short training: falls with N, not with M"];
  const term = (i) => {
    const y = 348 + 36 * i;
    return entry(0, y, names[i], share(parts[i])) +
      group(colour(["sum", "key", "query"][i]), rect(0, y + 5, (WIDTH * parts[i]) / total, 8, { "fill-opacity": 0.75 }));
  };
  return panel(`At N = ${whole(N)} and M = ${whole(M)}: error ${share(total)}`, HEIGHT,
    cut(46, DECADES[1], `error against M, trained at N = ${whole(N)}`, (m) => terms(state, N, m).total, M, pays, `M = ${number(pays)}`),
    cut(188, DECADES[0], `error against N, tested at M = ${whole(M)}`, (n) => terms(state, n, M).total, N, best, `least at N = ${whole(best)}`),
    words(0, 324, "The three terms of the theorem", { "font-weight": 600 }), [0, 1, 2].map(term));
}

// Slider positions of whole lengths, about 10 to the decade, so that every step is another length
const LENGTHS = (decades) => [...new Set(Array.from({ length: 10 * decades + 1 }, (_, i) => Math.round(10 ** (i / 10))))];
function lengths(trait, label, decades) {
  const values = LENGTHS(decades), distance = (length) => (value) => Math.abs(Math.log(value / length));
  const nearest = (length) => values.map(distance(length)).reduce((best, gap, i, gaps) => (gap < gaps[best] ? i : best), 0);
  return slider(trait, label, [0, values.length - 1, 1], whole, (i) => values[i], nearest);
}

export default explorable({
  question: "How long must prompts be, in training and at the test?",
  hint: "One linear attention layer at the optimum of its training, tasks without noise. Errors are exact means over tasks and prompts, as shares of the error of predicting 0.",
  traits: ["training_length", "prompt_length", "noise", "eigenvalues"],
  sliders: [lengths("training_length", "N in training", DECADES[0]), lengths("prompt_length", "M at the test", DECADES[1]), slider("noise", "test noise", [0, 2, 0.1], (x) => fixed(x, 1))],
  panels: (state) => [map(state), cuts(state)],
  describe,
});
