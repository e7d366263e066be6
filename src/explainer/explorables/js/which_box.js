// Three boxes without names, five probes: which box is the linear layer, which the small GPT, which least squares?

import { DIAMOND, SMALL, SQUARE, WIDTH, colour, group, line, marker, panel, path, plane, rect, words } from "./drawing.js";
import { element, explorable } from "./frame.js";
import { fixed } from "./numbers.js";
import { uniforms } from "./random.js";

export const LEARNERS = ["linear", "gpt", "ols"], UNNAMED = "?";
const NAMES = { linear: "one linear layer", gpt: "the small GPT", ols: "least squares" };
export const PROBES = [
  { key: "plain", name: "plain prompts", long: "20 examples that cover all directions evenly" },
  { key: "stretched", name: "inputs stretched", long: "inputs twice as long in one direction, half as long in another" },
  { key: "targets", name: "targets × 4", long: "all targets four times as large" },
  { key: "outlier", name: "one wild target", long: "30 added to the target of the first example" },
  { key: "few", name: "three examples", long: "three examples, while inputs have five numbers" },
];
const LETTERS = ["A", "B", "C"], TRAITS = ["a", "b", "c"], ROLES = ["ink", "slate", "stone"];
const MARKS = [SQUARE, DIAMOND, "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z"];
const ORDERS = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

// The learner in box A, B and C
export function order(seed) {
  const draw = uniforms(seed);
  return ORDERS[Math.floor(ORDERS.length * draw())].map((i) => LEARNERS[i]);
}

const error = ({ results }, probe, learner) => results.errors[probe][learner];

// How many times one error is the other; errors below a hundredth count as a hundredth
const apart = (state, probe, one, other) =>
  Math.abs(Math.log(Math.max(0.01, error(state, probe, one)[0]) / Math.max(0.01, error(state, probe, other)[0])));

// The probe whose errors tell two learners apart best
export const decisive = (state, one, other) =>
  PROBES.reduce((best, probe) => (apart(state, probe.key, one, other) > apart(state, best.key, one, other) ? probe : best), PROBES[0]);

const number = (value) => (value < 0.0005 ? "0" : fixed(value, value < 0.995 ? 2 : 1));
const errs = (state, probe, learners) => learners.map((each) => `${NAMES[each]} ${number(error(state, probe.key, each)[0])}`).join(", ");
const against = (state, probe, its, others) => `on “${probe.name}” its error is ${number(error(state, probe.key, its)[0])} (${errs(state, probe, others)})`;

// What the probes say to the reader's name for a box
export function verdict(state, box) {
  const its = order(state.seed)[box], named = state[TRAITS[box]];
  if (named === UNNAMED) return state.shown ? NAMES[its] : "not named yet";
  if (named !== its) return `not ${NAMES[named]}: ${against(state, decisive(state, its, named), its, [named])}`;
  const others = LEARNERS.filter((each) => each !== its), by = others.map((each) => decisive(state, its, each));
  const told = by[0] === by[1] ? [against(state, by[0], its, others)] : others.map((each, i) => against(state, by[i], its, [each]));
  return `right: ${told.join("; ")}`;
}

function describe(state) {
  const probe = PROBES[state.probe], boxes = order(state.seed);
  const errors = boxes.map((each, i) => `box ${LETTERS[i]}${state.shown ? ` (${NAMES[each]})` : ""} ${number(error(state, probe.key, each)[0])}`);
  return `Probe “${probe.name}”, ${probe.long}: the relative errors are ${errors.join(", ")}. On plain prompts all three boxes give nearly the same answers, ` +
    `so similar answers do not tell which box is which. Changed prompts do: with inputs stretched one box fails, and with targets × 4 another one.`;
}

const HEIGHT = 350, REACH = { plain: 8, stretched: 12, targets: 24, outlier: 12, few: 6 };
const name = (state, box) => `box ${LETTERS[box]}${state.shown ? `, ${NAMES[order(state.seed)[box]]}` : ""}`;

function answersPanel(state) {
  const { key, name: title } = PROBES[state.probe], reach = REACH[key], span = [-reach, reach], { results } = state;
  const { X, Y, inside, left, top, width, height } = plane({ left: 30, top: 40, width: 282, height: 222, x: span, y: span });
  const ticks = [-1, -0.5, 0, 0.5, 1].map((t) => t * reach), clip = (v) => Math.max(-reach, Math.min(reach, v));
  return panel(`Answers to ${results.right[key].length} prompts: ${title}`, HEIGHT,
    rect(left, top, width, height, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }),
    ticks.map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t ? 0.12 : 0.5 }) + line(X(t), top, X(t), top + height, { "stroke-opacity": t ? 0.12 : 0.5 }) +
      words(left - 5, Y(t) + 4, fixed(t, 0), { ...SMALL, "text-anchor": "end" }) + words(X(t), top + height + 14, fixed(t, 0), { ...SMALL, "text-anchor": "middle" })),
    words(0, top - 8, "box’s answer", SMALL), words(left + width, top + height + 28, "right answer", { ...SMALL, "text-anchor": "end" }),
    inside(line(X(-reach), Y(-reach), X(reach), Y(reach), { "stroke-dasharray": "4 3", "stroke-opacity": 0.7 })),
    order(state.seed).map((learner, box) => group(colour(ROLES[box]),
      results.right[key].map((right, i) => marker(MARKS[box], X(clip(right)), Y(clip(results.answers[key][learner][i])), false)))),
    LETTERS.map((_, box) => group({ ...colour(ROLES[box]), transform: `translate(12 ${304 + 17 * box})` }, marker(MARKS[box], 0, 0, false), words(14, 4, name(state, box), { "font-size": 12 }))));
}

const MOST = 1.2, BARS = 138, FULL = 142, ROW = 56;
const long = (value) => (FULL * Math.min(value, MOST)) / MOST;

function errorsPanel(state) {
  const one = BARS + FULL / MOST;
  const row = (probe, at) => {
    const top = 30 + ROW * at, now = at === state.probe;
    return group({ "data-probe": at, style: "cursor:pointer" },
      rect(1, top, WIDTH - 2, ROW - 4, { rx: 5, "fill-opacity": now ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": now ? 0.8 : 0 }),
      words(8, top + 30, probe.name, { "font-size": 12, ...(now ? { "font-weight": 600 } : {}) }),
      order(state.seed).map((learner, box) => {
        const [middle, low, high] = error(state, probe.key, learner), y = top + 6 + 14 * box;
        const cut = middle > MOST ? path(`M${BARS + FULL - 5} ${y - 1}l5 5.5l-5 5.5`, { "stroke-width": 2 }) : line(BARS + long(low), y + 4.5, BARS + long(high), y + 4.5, { "stroke-width": 2 });
        return group(colour(ROLES[box]), words(BARS - 6, y + 9, LETTERS[box], { ...SMALL, "text-anchor": "end", "font-weight": 600 }),
          rect(BARS, y, Math.max(1.5, long(middle)), 9, { "fill-opacity": 0.6 }), cut,
          words(WIDTH - 6, y + 9, number(middle), { ...SMALL, "text-anchor": "end" }));
      }));
  };
  const foot = 30 + ROW * PROBES.length;
  return panel("Relative error on five probes", HEIGHT,
    PROBES.map(row), line(one, 30, one, foot, { "stroke-dasharray": "2 3", "stroke-opacity": 0.7 }),
    words(BARS, foot + 13, "0", SMALL), words(one, foot + 13, "1: answering 0", { ...SMALL, "text-anchor": "middle" }));
}

const LIST = [[UNNAMED, "?"], ...LEARNERS.map((each) => [each, NAMES[each]])];
const nobody = Object.fromEntries(TRAITS.map((trait) => [trait, UNNAMED]));

function extend(root, start, read, change) {
  const button = () => element("button", { type: "button" }), show = button(), shuffle = button();
  shuffle.textContent = "Shuffle";
  show.addEventListener("click", () => change({ shown: !read().shown }));
  shuffle.addEventListener("click", () => change({ seed: read().seed + 1, shown: false, ...nobody }));
  root.querySelector(".explorable-controls").append(show, shuffle);
  root.addEventListener("click", ({ target }) => {
    const row = target.closest?.("[data-probe]");
    if (row) change({ probe: +row.dataset.probe });
  });
  return (state) => { show.textContent = state.shown ? "Hide the names" : "Show the names"; };
}

export default explorable({
  question: "Three boxes answer the same prompts. Which one is the small GPT?",
  hint: "One box is a layer of linear attention, one a small GPT, one least squares. Choose a probe, or click its row, and name the boxes. " +
    "Tasks are y = w · x with five inputs and no noise. Thin ends of bars: 95 % intervals over 1000 prompts; an arrow: the error is off the scale.",
  traits: ["probe", "seed", "a", "b", "c", "shown", "results"],
  lists: () => [
    ["probe", "probe", PROBES.map(({ name: text }, at) => [at, text])],
    ...TRAITS.map((trait, box) => [trait, `box ${LETTERS[box]} is`, LIST]),
  ],
  panels: (state) => [answersPanel(state), errorsPanel(state)],
  describe, extend,
  answers: (state) => LETTERS.map((letter, box) => [`box ${letter}`, verdict(state, box)]),
});
