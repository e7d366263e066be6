// What a context and a training get: swap it on one side, and see the similarity layer by layer.

import { mean } from "./algebra.js";
import { DIAMOND, SMALL, WIDTH, colour, group, line, marker, panel, path, plane, rect, through, words } from "./drawing.js";
import { explorable } from "./frame.js";
import { fixed } from "./numbers.js";

export const LESSONS = [
  ["own", "the same examples"],
  ["reordered", "the same, in another order"],
  ["other", "other examples of the task"],
  ["shuffled", "shuffled answers"],
  ["foreign", "another task"],
  ["nonsense", "made-up words"],
];
const NAMES = Object.fromEntries(LESSONS);
const SIDES = [["context", "the context"], ["training", "the training"]];

export const column = (lesson, side) => (lesson === "own" ? "own" : `${side}_${lesson}`);
export const series = ({ similarity, lesson, side }, its = lesson) => similarity[column(its, side)];

// The mean over the layers of the upper third
export const upper = (values) => mean(values.slice((2 * values.length) / 3));
const two = (value) => fixed(value, 2);

function describe(state) {
  const { similarity, side, lesson } = state, its = upper(series(state)[0]), own = upper(similarity.own[0]);
  const swapped = lesson === "own" ? "Both sides have the same examples" : `The ${side} gets: ${NAMES[lesson]}`;
  const others = LESSONS.map(([key, name]) => `${name} ${two(upper(series(state, key)[0]))}`).join(", ");
  return `${swapped}: in the upper third of the layers the similarity is ${two(its)}. With the same examples it is ${two(own)}, and between two training runs ${two(upper(similarity.trainings[0]))}. ` +
    `With the ${side} swapped: ${others}.`;
}

const HEIGHT = 352, ROW = 44, TOP = 62, LEFT = 12, RIGHT = 268, X = (value) => LEFT + Math.max(0, value) * (RIGHT - LEFT);

function lessonsPanel(state) {
  const { similarity, side } = state, end = TOP + ROW * LESSONS.length;
  const row = ([key, name], at) => {
    const top = TOP + ROW * at, y = top + 27, now = key === state.lesson, value = upper(series(state, key)[0]), half = similarity.upper[column(key, side)], exact = similarity.true[side][key];
    return group({ "data-lesson": key, style: "cursor:pointer" },
      rect(1, top, WIDTH - 2, ROW - 4, { rx: 5, "fill-opacity": now ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": now ? 0.8 : 0 }),
      words(LEFT, top + 14, name, { "font-size": 12, ...(now ? { "font-weight": 600 } : {}) }),
      line(LEFT, y, RIGHT, y, { "stroke-opacity": 0.2 }),
      exact === undefined ? "" : marker(DIAMOND, X(exact), y, false),
      group(colour("ink"), rect(X(value) - 3.5, y - 3.5, 7, 7), line(X(value - half), y, X(value + half), y, { "stroke-width": 2 })),
      words(WIDTH - 8, y + 4, two(value), { "text-anchor": "end", "font-weight": 600 }));
  };
  return panel(`One side swapped: the ${side}`, HEIGHT,
    group({ "font-size": 11 },
      group(colour("ink"), rect(LEFT - 4, 27, 8, 8)), words(LEFT + 10, 35, "this GPT, layers 21 to 30, bar: 95 %", SMALL),
      marker(DIAMOND, LEFT, 47, false), words(LEFT + 10, 51, "a layer in which the context is a step of descent", SMALL)),
    LESSONS.map(row),
    words(LEFT, end + 12, "0", SMALL), words(RIGHT, end + 12, "1", { ...SMALL, "text-anchor": "middle" }), words(X(0.5), end + 12, "similarity (cosine)", { ...SMALL, "text-anchor": "middle" }));
}

function layersPanel(state) {
  const { similarity, side, lesson } = state, { trainings, own, noise } = similarity, [mean, half] = series(state), n = mean.length;
  const { X: x, Y: y, inside, left, top, width, height } = plane({ left: 30, top: 44, width: 282, height: 226, x: [1, n], y: [0, 1] });
  const curve = (values) => through(values.map((value, i) => [x(i + 1), y(value)]));
  const band = through([...mean.map((value, i) => [x(i + 1), y(value + half[i])]), ...mean.map((value, i) => [x(i + 1), y(value - half[i])]).reverse()]);
  const key = (at, role, more, text) => group(colour(role), line(0, 318 + 15 * at, 22, 318 + 15 * at, more), words(28, 322 + 15 * at, text, SMALL));
  const dashed = { "stroke-width": 2, "stroke-dasharray": "6 4" }, dotted = { "stroke-width": 1.5, "stroke-dasharray": "1 3" };
  return panel("Similarity in each layer", HEIGHT + 22,
    [0, 0.25, 0.5, 0.75, 1].map((t) => line(left, y(t), left + width, y(t), { "stroke-opacity": t ? 0.15 : 0.6 }) + words(left - 5, y(t) + 4, t === 0 || t === 1 ? fixed(t, 0) : fixed(t, 2), { ...SMALL, "text-anchor": "end" })),
    [1, 10, 20, 30].map((t) => words(x(t), top + height + 14, fixed(t, 0), { ...SMALL, "text-anchor": "middle" })),
    words(left + width, top + height + 28, "layer", { ...SMALL, "text-anchor": "end" }), words(0, top - 10, "cosine", SMALL),
    inside(group(colour("training"), path(curve(trainings[0]), dashed)),
      group(colour("slate"), path(curve(own[0]), { "stroke-width": 5, "stroke-opacity": 0.45 })),
      group(colour("ink"), path(`${band}Z`, { fill: "currentColor", "fill-opacity": 0.2, stroke: "none" }), path(curve(mean), { "stroke-width": 2 }),
        path(curve(noise[column(lesson, side)]), dotted))),
    key(0, "training", dashed, "two training runs, different examples"), key(1, "slate", { "stroke-width": 5, "stroke-opacity": 0.45 }, "context and training, the same examples"),
    key(2, "ink", { "stroke-width": 2 }, lesson === "own" ? "chosen: nothing swapped" : `chosen: ${NAMES[lesson]} (band: 95 %)`), key(3, "ink", dotted, "its noise value"));
}

function extend(root, start, read, change) {
  root.addEventListener("click", ({ target }) => {
    const row = target.closest?.("[data-lesson]");
    if (row) change({ lesson: row.dataset.lesson });
  });
}

export default explorable({
  question: "Which swap lowers the similarity of context and training?",
  hint: "Choose the side that is swapped and what it gets, from the lists or by a click on a row. The other side keeps the same examples. " +
    "Squares: the GPT on word pairs, means over four tasks. Diamonds, where measured: a layer whose context is a step of descent by construction.",
  traits: ["side", "lesson", "similarity"],
  lists: () => [["side", "swap", SIDES], ["lesson", "it gets", LESSONS]],
  panels: (state) => [lessonsPanel(state), layersPanel(state)],
  describe, extend,
});
