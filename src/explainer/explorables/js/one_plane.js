// One layer of linear attention in two dimensions: the matrix that training gives it, and the weights it acts on.

import { add, addMatrices, dot, matvec, outer, scale, subtract, sum } from "./algebra.js";
import { SMALL, SQUARE, TICKS, WIDTH, arrow, axes, colour, diamond, entry, group, heatMap, line, marker, panel, path, plane, rect, through, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed, vector, whole } from "./numbers.js";
import { normal, uniforms } from "./random.js";
import { remember } from "./remember.js";

export const SHORTEST = 0.5, LONGEST = 1.5, SECOND = 0.7, START = 0.1, EARLIEST = 0.1, DURATION = 100;
export const PROMPTS = 4000;
const DT = 0.02, DOTS = 250, SEED = 7;

// The matrix a e e^T + b f f^T of two axes at right angles
const around = ([e, f], [a, b]) => addMatrices(scaled(a, outer(e, e)), scaled(b, outer(f, f)));
const scaled = (factor, A) => A.map((row) => scale(factor, row));
const multiply = (A, B) => A.map((row) => B[0].map((_, j) => dot(row, B.map((b) => b[j]))));
const quadratic = (A, a) => dot(a, matvec(A, a));

function axesAt([x, y]) {
  const length = Math.hypot(x, y), e = [x / length, y / length];
  return [e, [-e[1], e[0]]];
}
const turned = ([x, y], degrees) => {
  const [c, s] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return [c * x - s * y, s * x + c * y];
};

// Eigenvalues of the training covariance, and of what the fully trained layer inverts
export const eigenvalues = ({ train }) => [train[0] ** 2 + train[1] ** 2, SECOND ** 2];
export const gammas = (state) => eigenvalues(state).map((l) => l + (l + sum(eigenvalues(state))) / state.training_length);

// Gradient flow from a small balanced start: in the eigenbasis it moves u and the two entries of U.
const flow = remember(["train", "training_length"], (state) => {
  const lambda = eigenvalues(state), gamma = gammas(state);
  const [a, b] = lambda.map((l) => l * l), [p, q] = lambda.map((l, k) => l * l * gamma[k]);
  let [u, U, V] = [START, START / Math.SQRT2, START / Math.SQRT2];
  const gains = [[u * U, u * V]], weights = [1, 2, 2, 1], ahead = [0, DT / 2, DT / 2, DT];
  for (let i = 0; i < DURATION / DT; i++) {
    let [du, dU, dV, x, y, z] = [0, 0, 0, 0, 0, 0];
    for (let k = 0; k < 4; k++) { // Runge and Kutta; plain numbers, because there are 20,000 of these
      const v = u + ahead[k] * x, Y = U + ahead[k] * y, Z = V + ahead[k] * z, f = a - p * v * Y, g = b - q * v * Z;
      [x, y, z] = [Y * f + Z * g, v * f, v * g];
      [du, dU, dV] = [du + weights[k] * x, dU + weights[k] * y, dV + weights[k] * z];
    }
    [u, U, V] = [u + (DT / 6) * du, U + (DT / 6) * dU, V + (DT / 6) * dV];
    gains.push([u * U, u * V]);
  }
  return gains;
});
const gainsAt = (state, time) => flow(state)[Math.round(time / DT)];

// The layer, and the test inputs
export function layer(state) {
  const basis = axesAt(state.train), lambda = eigenvalues(state), gains = gainsAt(state, state.time);
  const other = basis.map((e) => turned(e, state.turn));
  const root = other.map((e, k) => scale(Math.sqrt(lambda[k]), e)); // its rows: inputs are root^T times white noise
  return { A: around(basis, gains), Lambda: around(other, lambda), root, shares: gains.map((a, k) => a * lambda[k]) };
}

// Bias and scatter by the formula, for this w: squared errors, with inputs as at the test; w = 0 has no share of 0.
export function formula(state) {
  const { A, Lambda } = layer(state), { w, prompt_length: M } = state, moved = matvec(Lambda, w);
  const mean = matvec(A, moved), zero = quadratic(Lambda, w);
  const spread = scaled(1 / M, addMatrices(scaled(zero, Lambda), outer(moved, moved))); // covariance of h
  const covariance = multiply(multiply(A, spread), A); // A is symmetric
  const product = multiply(Lambda, covariance);
  return { mean, covariance, bias: quadratic(Lambda, subtract(mean, w)), scatter: product[0][0] + product[1][1], zero: zero || 1 };
}

// Marsaglia and Tsang (2000): a number of the Gamma distribution, which gives sums of squares of normal numbers
function gammaNumber(shape, uniform) {
  if (shape < 1) return gammaNumber(shape + 1, uniform) * (1 - uniform()) ** (1 / shape);
  const d = shape - 1 / 3;
  for (;;) {
    const x = normal(uniform), v = (1 + x / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(1 - uniform()) < (x * x) / 2 + d * (1 - v + Math.log(v))) return d * v;
  }
}

// (1/M) sum x_i x_i^T of M white inputs, drawn at once (Bartlett): L L^T with independent entries
export const whiteMoments = remember(["prompt_length"], ({ prompt_length: M }) => {
  const uniform = uniforms(SEED + M), root = (m) => (m > 0 ? Math.sqrt(2 * gammaNumber(m / 2, uniform)) : 0);
  return Array.from({ length: PROMPTS }, () => {
    const a = root(M), b = normal(uniform), c = root(M - 1);
    return [(a * a) / M, (a * b) / M, (b * b + c * c) / M];
  });
});

// What the layer acts on in every prompt, A S w, and both parts of the error from these points alone
export function cloud(state) {
  const { A, Lambda, root } = layer(state), [p, q] = matvec(root, state.w);
  const [left, right] = root.map((row) => matvec(A, row));
  const points = whiteMoments(state).map(([a, b, c]) => {
    const [x, y] = [a * p + b * q, b * p + c * q];
    return [x * left[0] + y * right[0], x * left[1] + y * right[1]];
  });
  const mean = [0, 1].map((k) => sum(points.map((point) => point[k])) / PROMPTS);
  const [[k, l], [, m]] = Lambda, squared = ([x, y]) => k * x * x + 2 * l * x * y + m * y * y;
  const scatter = sum(points.map((point) => squared(subtract(point, mean)))) / (PROMPTS - 1);
  return { points, bias: squared(subtract(mean, state.w)) - scatter / PROMPTS, scatter };
}

const size = (x) => (Math.abs(x) >= 10 ? fixed(x, 1) : fixed(x, 3));

function describe(state) {
  const { mean, bias, scatter, zero } = formula(state), found = cloud(state), { shares } = layer(state);
  const turn = state.turn ? `Test inputs are turned by ${fixed(state.turn, 0)} degrees. ` : "";
  const early = state.time < DURATION ? `Training has run for ${short(state.time)} of ${DURATION}. ` : "";
  return `${early}${turn}The true weights are ${vector(state.w)}; the layer's are ${vector(mean)} on average. ` +
    `Bias squared, trained at N = ${whole(state.training_length)}: ${size(bias)} by the formula, ${size(found.bias)} from the cloud. ` +
    `Scatter, at M = ${whole(state.prompt_length)}: ${size(scatter)} and ${size(found.scatter)}. ` +
    `Together they are ${size((bias + scatter) / zero)} of the error of predicting 0. ` +
    `Of its training inputs' two variances, ${eigenvalues(state).map((l) => fixed(l)).join(" and ")}, the layer undoes ${shares.map((s) => fixed(s)).join(" and ")}.`;
}

const HEIGHT = 476;
const INPUTS = plane({ left: 26, top: 40, width: 204, height: 204, x: [-2, 2], y: [-2, 2] });
const WEIGHTS = plane({ left: 26, top: 40, width: 284, height: 284, x: [-3, 3], y: [-3, 3] });
const CURVES = plane({ left: 34, top: 332, width: 216, height: 100, x: [Math.log(EARLIEST), Math.log(DURATION)], y: [0, 1.15] });
const DASHED = { "stroke-dasharray": "6 4" };
const short = (time) => fixed(time, time < 1 ? 2 : time < 10 ? 1 : 0);

const CIRCLE = Array.from({ length: 61 }, (_, i) => [Math.cos((i * Math.PI) / 30), Math.sin((i * Math.PI) / 30)]);
// The ellipse of all center + a p + b q with (a, b) on the unit circle
const ellipse = ({ X, Y }, [p, q], more, center = [0, 0]) =>
  path(`${through(CIRCLE.map(([a, b]) => add(center, add(scale(a, p), scale(b, q)))).map(([x, y]) => [X(x), Y(y)]))}Z`, more);

// The tip of the test ellipse that is dragged lies opposite to that of the training ellipse.
const tip = ({ train, turn }) => turned(scale(-1, train), turn);
const halves = ({ train }) => [train, scale(SECOND, axesAt(train)[1])];

function inputsPanel(state) {
  const { A } = layer(state), { X, Y } = INPUTS, [x, y] = tip(state), own = halves(state);
  const lambda = eigenvalues(state), { X: T, Y: S, left, top, width, height } = CURVES, roles = ["ink", "slate"];
  const at = (time) => gainsAt(state, time).map((a, k) => [T(Math.log(time)), S(a * lambda[k])]);
  const curves = Array.from({ length: 61 }, (_, i) => at(EARLIEST * (DURATION / EARLIEST) ** (i / 60)));
  const [one, other] = curves[60].map(([, height]) => height), close = Math.abs(one - other) < 13, lower = (first) => (close ? (first ? 10 : -3) : 4);
  const ends = [one + lower(one > other), other + lower(one <= other)];
  const strong = lambda[0] < lambda[1] ? ["weak", "strong"] : ["strong", "weak"];
  return panel("Inputs, and the matrix that training makes", HEIGHT,
    axes(INPUTS, TICKS, ["", ""]),
    INPUTS.inside(
      group(colour("stone"), ellipse(INPUTS, own, { "stroke-width": 2.5 })),
      group(colour("ink"), ellipse(INPUTS, own.map((e) => turned(e, state.turn)), { "stroke-width": 2, ...DASHED }))),
    group(colour("stone"), marker(SQUARE, X(state.train[0]), Y(state.train[1]), true)),
    group(colour("ink"), marker(SQUARE, X(x), Y(y), false)),
    words(240, 52, "A now", SMALL), heatMap(233, 82, A, 43),
    words(240, 132, "half-axes:", SMALL), words(240, 147, "one standard", SMALL), words(240, 162, "deviation", SMALL),
    group(colour("stone"), line(240, 186, 262, 186, { "stroke-width": 2.5 }), words(267, 190, "training", SMALL)),
    group(colour("ink"), line(240, 206, 262, 206, { "stroke-width": 2, ...DASHED }), words(267, 210, "test", SMALL)),
    words(0, 290, "s = (eigenvalue of A) × (training variance)", { "font-weight": 600 }),
    words(0, 307, "1: this direction is undone in full", SMALL),
    [0, 0.5, 1].map((s) => line(left, S(s), left + width, S(s), { "stroke-opacity": s === 1 ? 0.6 : 0.2 }) + words(left - 5, S(s) + 4, fixed(s, 1), { "text-anchor": "end", ...SMALL })),
    [0.1, 1, 10, 100].map((t) => words(T(Math.log(t)), top + height + 14, t, { "text-anchor": "middle", ...SMALL })),
    words(left + width, top + height + 29, "training time", { "text-anchor": "end", ...SMALL }),
    line(T(Math.log(state.time)), top, T(Math.log(state.time)), top + height, { "stroke-dasharray": "1 3" }),
    [0, 1].map((k) => group(colour(roles[k]),
      CURVES.inside(path(through(curves.map((row) => row[k])), { "stroke-width": 2.5, "stroke-dasharray": k ? "2 3" : "" })),
      words(left + width + 6, ends[k], strong[k], SMALL))));
}

function weightsPanel(state) {
  const { mean, covariance, bias, scatter } = formula(state), found = cloud(state), { X, Y } = WEIGHTS, w = state.w;
  const [[a, b], [, c]] = covariance, root = Math.sqrt(Math.max(a, 1e-12)); // Cholesky, two standard deviations
  const two = [[2 * root, (2 * b) / root], [0, 2 * Math.sqrt(Math.max(0, c - (b * b) / (root * root)))]];
  const gap = Math.hypot(X(mean[0]) - X(w[0]), Y(mean[1]) - Y(w[1]));
  const row = (y, text, one, other) => entry(0, y, text, size(other)) + words(238, y, size(one), { "text-anchor": "end", "font-weight": 600 });
  return panel("Weights: the true ones and the layer's", HEIGHT,
    axes(WEIGHTS, [-3, -2, -1, 0, 1, 2, 3], ["", ""]),
    WEIGHTS.inside(
      group(colour("ink"), found.points.slice(0, DOTS).map(([x, y]) => rect(X(x) - 1.2, Y(y) - 1.2, 2.4, 2.4, { "fill-opacity": 0.55 }))),
      group(colour("ink"), ellipse(WEIGHTS, two, { "stroke-width": 1.5 }, mean)),
      gap > 9 ? group(colour("slate"), arrow(X(w[0]), Y(w[1]), X(mean[0]), Y(mean[1]))) : ""),
    diamond(X(w[0]), Y(w[1]), 7), words(X(w[0]) + 11, Y(w[1]) - 7, "w", { "font-weight": 600, class: "explorable-halo" }),
    words(WIDTH, 366, "cloud", { "text-anchor": "end", ...SMALL }), words(238, 366, "formula", { "text-anchor": "end", ...SMALL }),
    group(colour("slate"), row(386, `bias², the arrow${state.turn ? "" : ": N sets it"}`, bias, found.bias)),
    group(colour("ink"), row(406, "scatter, the dots: M sets it", scatter, found.scatter)),
    row(426, "sum, the mean squared error", bias + scatter, found.bias + found.scatter),
    words(0, 452, `${DOTS} of ${whole(PROMPTS)} prompts; the curve: 2 standard deviations`, SMALL));
}

// Slider positions: four lengths to the decade, so that every step is another one, and ten times
const length = (trait, label) => slider(trait, label, [0, 12, 1], whole, (i) => Math.round(10 ** (i / 4)), (n) => Math.round(4 * Math.log10(n)));
const timeAt = (i) => Math.round(100 * EARLIEST * 10 ** (i / 10)) / 100;

// An angle that turns an axis by no more than a right angle
const asTurn = (degrees) => Math.round(degrees - 180 * Math.round(degrees / 180));
const angle = ([x, y]) => (Math.atan2(y, x) * 180) / Math.PI;
function within(point) {
  const long = Math.hypot(...point);
  return long ? scale(Math.min(LONGEST, Math.max(SHORTEST, long)) / long, point) : [SHORTEST, 0];
}

export default explorable({
  question: "Which weights does the layer act on, and what moves them away from the true ones?",
  hint: "Drag the solid square (training inputs), the hollow square (it turns the test inputs) or w, or focus one and press the arrow keys; Shift makes bigger steps.",
  traits: ["w", "train", "turn", "training_length", "prompt_length", "time"],
  sliders: [
    length("training_length", "N in training"), length("prompt_length", "M at the test"),
    slider("turn", "turn test inputs", [-90, 90, 5], (x) => `${fixed(x, 0)}°`),
    slider("time", "training time", [0, 30, 1], short, timeAt, (t) => Math.round(10 * Math.log10(t / EARLIEST))),
  ],
  panels: (state) => [inputsPanel(state), weightsPanel(state)],
  handles: (state) => [
    { panel: 0, label: "Training inputs", plane: INPUTS, at: state.train, move: (point) => ({ train: within(point) }) },
    { panel: 0, label: "Test inputs", plane: INPUTS, at: tip(state), move: (point) => ({ turn: asTurn(angle(scale(-1, point)) - angle(state.train)) }) },
    { panel: 1, label: "True weights w", plane: WEIGHTS, at: state.w, move: (point) => ({ w: point.map((x) => Math.max(-2, Math.min(2, x))) }) },
  ],
  describe,
});
