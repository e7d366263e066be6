// The parameters (u, U) of a layer with one input entry: the flow, and gradient descent with steps of finite length.

import { LIMIT, SMALL, TICKS, axes, colour, diamond, entry, group, line, marker, panel, path, plane, rect, through, words, SQUARE } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed } from "./numbers.js";

export const GAMMA = 1.5, DURATION = 40, DT = 0.02; // covariance 1, N = 4: (1 + 1/4) + 1/4

// Minus the gradient of 1/2 E(yhat - y)^2: what carries u is U F, what carries U is u F
export const force = ([u, U]) => 1 - GAMMA * u * U;
export const slope = (at) => [at[1] * force(at), at[0] * force(at)];
export const imbalance = ([u, U]) => u * u - U * U;
const moved = ([u, U], [a, b], t) => [u + t * a, U + t * b];

function rungeKutta(at) {
  const a = slope(at), b = slope(moved(at, a, DT / 2)), c = slope(moved(at, b, DT / 2)), d = slope(moved(at, c, DT));
  return moved(at, [0, 1].map((i) => a[i] + 2 * b[i] + 2 * c[i] + d[i]), DT / 6);
}

export function flow({ start }) {
  const points = [start];
  for (let t = 0; t < DURATION / DT; t++) points.push(rungeKutta(points[t]));
  return points;
}

const FAR = 1e3; // a run that is so far off has diverged
export function steps({ start, step }) {
  const points = [start];
  for (let k = 0; k < Math.floor(DURATION / step + 1e-9) && Math.hypot(...points[k]) < FAR; k++)
    points.push(moved(points[k], slope(points[k]), step));
  return points;
}

// The step that is just stable at a minimum: 2 over the curvature there, gamma (u^2 + U^2)
export const stable = ([u, U]) => 2 / (GAMMA * (u * u + U * U));

const stuck = (at) => Math.hypot(...at) < 1e-3;
const arrived = (at) => Math.abs(force(at)) < 1e-3;
const place = ([u, U]) => `u = ${fixed(u)}, U = ${fixed(U)}`;

function ending(points) {
  const last = points.at(-1);
  if (Math.hypot(...last) >= FAR) return "diverge";
  if (stuck(last)) return "stop at the saddle, u = U = 0";
  return arrived(last) ? `reach the optimum ${place(last)}` : `still swing, last at ${place(last)}`;
}

function describe(state) {
  const smooth = flow(state), finite = steps(state), k = imbalance(state.start), last = finite.at(-1);
  const end = smooth.at(-1), where = stuck(end) ? "runs into the saddle, u = U = 0" : `ends at ${place(end)}`;
  const after = Math.hypot(...last) < FAR ? ` Their imbalance is then ${fixed(imbalance(last))}.` : "";
  return `Start ${place(state.start)}, imbalance ${fixed(k)}. The flow keeps the imbalance and ${where}. ` +
    `Steps of length ${fixed(state.step)} ${ending(finite)}.${after}`;
}

const HEIGHT = 410;
const FIELD = plane({ left: 26, top: 44, width: 284, height: 250, x: [-LIMIT, LIMIT], y: [-LIMIT, LIMIT] });
const range = (low, high, n) => Array.from({ length: n + 1 }, (_, i) => low + ((high - low) * i) / n);
const curve = (points, more) => path(through(points.map(([u, U]) => [FIELD.X(u), FIELD.Y(U)])), more);

const optima = [1, -1].map((sign) => range(Math.log(1 / (GAMMA * 2.2)), Math.log(2.2), 40).map((s) => [sign * Math.exp(s), sign / (GAMMA * Math.exp(s))]));

// u^2 - U^2 = k is two branches; k = 0, two lines
function conserved(k) {
  const root = Math.sqrt(Math.abs(k)), t = range(-2.2, 2.2, 40);
  return [1, -1].map((sign) => t.map((s) => (k > 0 ? [sign * Math.hypot(root, s), s] : k < 0 ? [s, sign * Math.hypot(root, s)] : [s, sign * s])));
}

const drawn = (points) => {
  const out = points.findIndex(([u, U]) => Math.hypot(u, U) > 6);
  return out < 0 ? points : points.slice(0, out + 1);
};
const FAINT = { "stroke-width": 1, "stroke-opacity": 0.3 }, DASHED = { "stroke-dasharray": "6 4" };

function legend(y, role, text, more) {
  return group(colour(role), line(0, y - 4, 30, y - 4, { "stroke-width": 2, ...more })) + words(38, y, text, SMALL);
}

function planePanel(state) {
  const smooth = flow(state).filter((_, i) => i % 10 === 0), finite = drawn(steps(state)), low = FIELD.top + FIELD.height;
  const { X, Y } = FIELD, end = smooth.at(-1), inner = ([u, U]) => Math.abs(u) <= LIMIT && Math.abs(U) <= LIMIT;
  return panel("The plane (u, U): drag the start", HEIGHT,
    axes(FIELD, TICKS, ["u", "U"]),
    FIELD.inside(
      [-3, -1.5, 0, 1.5, 3].flatMap(conserved).map((points) => curve(points, FAINT)),
      group(colour("stone"), optima.map((points) => curve(points, { "stroke-width": 3 }))),
      group(colour("slate"), curve(finite, { "stroke-width": 1.5, ...DASHED }), finite.map(([u, U]) => rect(X(u) - 2, Y(U) - 2, 4, 4))),
      group(colour("ink"), curve(smooth, { "stroke-width": 2.5 })),
      inner(end) ? group(colour("ink"), marker(SQUARE, X(end[0]), Y(end[1]), true)) : "",
      inner(finite.at(-1)) ? group(colour("slate"), marker(SQUARE, X(finite.at(-1)[0]), Y(finite.at(-1)[1]), false)) : ""),
    words(X(0), Y(0) + 4, "×", { "text-anchor": "middle", "font-size": 16, "font-weight": 600 }),
    words(X(0) + 8, Y(0) - 6, "saddle", { ...SMALL, class: "explorable-halo" }),
    diamond(X(state.start[0]), Y(state.start[1])),
    legend(low + 44, "stone", "optima: u U = 1/γ"), legend(low + 61, "ink", "gradient flow, to the filled square"),
    legend(low + 78, "slate", "steps of finite length, to the hollow square", DASHED), legend(low + 95, "", "curves of equal imbalance u² − U²", FAINT));
}

function imbalancePanel(state) {
  const finite = steps(state), k = imbalance(state.start), values = finite.map(imbalance);
  const shown = values.filter((value) => Math.abs(value) < 20), reach = Math.max(1, ...shown.map(Math.abs)) * 1.15;
  const p = plane({ left: 36, top: 44, width: 274, height: 250, x: [0, DURATION], y: [-reach, reach] }), { X, Y, left, top, width, height } = p;
  const last = finite.at(-1), low = top + height, mark = Math.floor(reach);
  return panel("The imbalance u² − U² along the way", HEIGHT,
    [-mark, 0, mark].map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t ? 0.15 : 0.6 }) + words(left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL })),
    [0, 10, 20, 30, 40].map((t) => words(X(t), low + 14, t, { "text-anchor": "middle", ...SMALL })),
    words(left + width, low + 28, "time: length of a step times steps", { "text-anchor": "end", ...SMALL }),
    p.inside(
      group(colour("ink"), line(X(0), Y(k), X(DURATION), Y(k), { "stroke-width": 2.5 })),
      group(colour("slate"), path(through(values.map((value, i) => [X(i * state.step), Y(Math.max(-99, Math.min(99, value)))])), { "stroke-width": 2, ...DASHED }))),
    entry(0, low + 52, "imbalance, flow: start and end", fixed(k)),
    entry(0, low + 72, "imbalance after the steps", Math.hypot(...last) < FAR ? fixed(imbalance(last)) : "diverged"),
    entry(0, low + 92, "stable at the flow's optimum, up to", stuck(flow(state).at(-1)) ? "no optimum" : fixed(stable(flow(state).at(-1)))));
}

export default explorable({
  question: "Which of the optima does training reach?",
  hint: "Drag the diamond (the start), or focus it and press the arrow keys; Shift makes bigger steps. Then change the length of a step: long steps leave the curve on which the flow stays.",
  traits: ["start", "step"],
  sliders: [slider("step", "length of a step", [0.05, 1, 0.05])],
  panels: (state) => [planePanel(state), imbalancePanel(state)],
  handles: ({ start }) => [{ panel: 0, label: "Start", plane: FIELD, at: start, move: (point) => ({ start: point }) }],
  describe,
});
