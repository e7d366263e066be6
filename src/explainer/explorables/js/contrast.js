// Four points, a context and a training on each of two tasks: what the tasks share cancels in the difference of two.

import { dot, mean, subtract } from "./algebra.js";
import { SMALL, WIDTH, arrow, badge, bar, colour, diamond, entry, group, line, panel, plane, rect, shortOf, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed } from "./numbers.js";

// NaN where an arrow has no length
export const cosine = (a, b) => dot(a, b) / (Math.hypot(...a) * Math.hypot(...b));

// The four changes, from the place of no change: [context A, context B, training A, training B]
export function changes({ points, shared, exchanged }) {
  const [c_A, c_B, first, second] = points.map(([x, y]) => [x + shared, y]);
  return exchanged ? [c_A, c_B, second, first] : [c_A, c_B, first, second];
}

// The cosine of a context and a training on the same task, mean of A and B, and that of the two contrasts
export function cosines(state) {
  const [c_A, c_B, f_A, f_B] = changes(state);
  return { similarity: mean([cosine(c_A, f_A), cosine(c_B, f_B)]), contrast: cosine(subtract(c_A, c_B), subtract(f_A, f_B)) };
}

const two = (value) => (Number.isNaN(value) ? "–" : fixed(value, 2));

// What the GPT scores, with the trainings as they are or exchanged
const ofGPT = ({ found, exchanged }) => (exchanged ? [found.foreign, found.contrast.map((x) => -x)] : [found.similarity, found.contrast]);

function describe(state) {
  const { similarity, contrast } = cosines(state), [[s], [c]] = ofGPT(state);
  return `Context and training on ${state.exchanged ? "the wrong" : "the same"} task have the similarity ${two(similarity)}, mean of A and B. The two arrows, A minus B, have the cosine ${two(contrast)}: what A and B share has cancelled. ` +
    `Measured in the upper third of the GPT: ${two(s)} and ${two(c)}.`;
}

const HEIGHT = 300, CONTEXT = "context", TRAINING = "training"; // as the two ceilings of the chapter before
const P = /* @__PURE__ */ plane({ left: 10, top: 30, width: 300, height: 262, x: [-0.7, 2.5], y: [-1.4, 1.4] });
const at = ([x, y]) => [P.X(x), P.Y(y)], ORIGIN = /* @__PURE__ */ at([0, 0]);

const square = (x, y, text) => diamond(x, y, 12) + group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", ...SMALL }));
const circle = (x, y, text) => badge(x, y, text, 10);

// Both changes of one side, and the arrow from B to A
function side(role, mark, a, b) {
  const faint = { "stroke-opacity": 0.35 };
  return group(colour(role), line(...ORIGIN, ...a, faint), line(...ORIGIN, ...b, faint),
    arrow(...shortOf(a, b, 11), ...shortOf(b, a, 12)), mark(...a, "A"), mark(...b, "B"));
}

function pointsPanel(state) {
  const [c_A, c_B, f_A, f_B] = changes(state).map(at), [x, y] = ORIGIN, right = P.left + P.width, halo = { class: "explorable-halo", ...SMALL };
  return panel("Four changes, two arrows: drag the points", HEIGHT,
    line(P.left, y, right, y, { "stroke-opacity": 0.2 }), line(x, P.top, x, P.top + P.height, { "stroke-opacity": 0.2 }),
    arrow(x, y, P.X(state.shared), y, { opacity: 0.7 }), side(CONTEXT, circle, c_A, c_B), side(TRAINING, square, f_A, f_B),
    words(x - 5, y + 14, "no change", { ...halo, "text-anchor": "end" }),
    words(right, y + 4, "shared by all", { ...halo, "text-anchor": "end" }));
}

const LEFT = 10, RIGHT = 310, X = (value) => LEFT + ((value + 1) / 2) * (RIGHT - LEFT);

function cosinesPanel(state) {
  const { similarity, contrast } = cosines(state), [s, c] = ofGPT(state), foot = 236;
  const row = (y, name, value, role, [its, low, high]) => entry(0, y, name, two(value)) +
    line(LEFT, y + 36, RIGHT, y + 36, { "stroke-opacity": 0.2 }) +
    group(colour(role), bar(X(0), X(value || 0), y + 12, 16), rect(X(low), y + 34, Math.max(2, X(high) - X(low)), 4), rect(X(its) - 2.5, y + 30, 5, 12)) +
    words(X(its), y + 55, "GPT", { "text-anchor": "middle", ...SMALL });
  return panel("What the two cosines say", HEIGHT,
    group(colour(CONTEXT), circle(12, 40, "A")), words(27, 44, "context", SMALL), group(colour(TRAINING), square(96, 40, "A")), words(113, 44, "training", SMALL), words(176, 44, "arrows: A minus B", SMALL),
    row(84, state.exchanged ? "similarity, now on the wrong task" : "similarity, on the same task", similarity, "ink", s),
    row(164, "cosine of the two arrows", contrast, "slate", c),
    line(X(0), 92, X(0), foot, { "stroke-opacity": 0.6 }),
    [-1, -0.5, 0, 0.5, 1].map((t) => words(X(t), foot + 14, t % 1 ? two(t) : fixed(t, 0), { ...SMALL, "text-anchor": "middle" })),
    words(WIDTH, foot + 36, "bars: this drawing; marks: measured (95 %)", { ...SMALL, "text-anchor": "end" }));
}

const handles = ({ points, shared, exchanged }) => points.map(([x, y], i) => {
  const task = "AB"[(i % 2) ^ (exchanged && i > 1)];
  return {
    panel: 0, label: `${i < 2 ? "Context" : "Training"} on task ${task}`, plane: P, at: [x + shared, y],
    move: ([newX, newY]) => ({ points: points.with(i, [newX - shared, newY]) }),
  };
});

export default explorable({
  question: "What does the difference of two tasks keep, and what does it cancel?",
  hint: "Each point is the change that task A or B makes in the model, by a context (circles) or by training (diamonds). The slider moves all four points: only the similarity changes. " +
    "Drag a point, or focus it and press the arrow keys. Exchange the two training runs: the similarity keeps what the tasks share, and the cosine of the arrows changes its sign.",
  traits: ["points", "shared", "exchanged", "found"],
  lists: () => [["exchanged", "the training runs", [[false, "on A and on B"], [true, "exchanged"]]]],
  sliders: [slider("shared", "shared by all", [0, 1.6, 0.05], two)],
  panels: (state) => [pointsPanel(state), cosinesPanel(state)],
  handles, describe,
});
