// The vector of the reader's demonstrations, put into a prompt that has none, after a layer that the reader chooses. Stored answers, or
// those of the model in the page.

import { SMALL, WIDTH, bar, colour, group, line, panel, path, through, words } from "#explorables/drawing.js";
import { element, explorable, slider } from "#explorables/frame.js";
import { percent, questionRow } from "./model_row.js";
import { clip, isolated, named, spoken, titled } from "./live_parts.js";

const PATTERN = ["", " ->"], FEWEST = 2, MOST = 16, LONGEST = 2000;
const ROLES = ["stone", "context", "ink"], END = { "text-anchor": "end" };

// The demonstrations of lines "x -> y"; null where a line is none, or where there are too few or too many
export function demonstrationsOf(lesson) {
  const rows = lesson.split("\n").filter((row) => row.trim()).map((row) => row.split("->").map((part) => part.trim()));
  return rows.length >= FEWEST && rows.length <= MOST && rows.every((row) => row.length === 2 && row.every(Boolean)) ? rows : null;
}

const lessonOf = (demonstrations) => demonstrations.map((pair) => pair.join(" -> ")).join("\n");
const asked = (lesson, query) => JSON.stringify([demonstrationsOf(lesson), query.trim()]);
const answered = ({ demonstrations, query }) => asked(lessonOf(demonstrations), query);
export const isCurrent = ({ lesson, query, found }) => asked(lesson, query) === answered(found);

// The stored answer to what the reader wrote, where there is one
export function storedFor({ study, task, lesson, query }) {
  const its = study[task].found;
  return asked(lesson, query) === answered(its) ? its : undefined;
}

// The layer, counted from 1, after which the vector makes the answer most probable
export const bestLayer = ({ p: [, , own] }) => own.indexOf(Math.max(...own)) + 1;

const share = (p) => percent(p).replace("<", "less than"); // no mark of HTML: a picture says this as its name

function describe(state) {
  const { found, layer } = state, [zsl, icl, own, moved] = found.p, at = bestLayer(found), [token] = found.with[0];
  const [next, most] = found.layers[layer - 1][0], [first, its] = found.without[0];
  return (isCurrent(state) ? "" : "Of an earlier text: ") +
    `After “${isolated(found.query)}” the model expects ${spoken(first)} (${share(its)}) without demonstrations, and ${spoken(token)} (${share(icl)}) with ${found.demonstrations.length} of them. ` +
    `Without them, with their vector added after layer ${layer}, it expects ${spoken(next)} (${share(most)}). There ${spoken(token)} has ${share(own[layer - 1])}; ` +
    `with the vector of the same words after answers that moved on by one it has ${share(moved[layer - 1])}, and with nothing ${share(zsl)}. ` +
    `The vector does most after layer ${at}: ${share(own[at - 1])}.`;
}

function nextTokens({ found, layer }, when) {
  const names = [["empty prompt", found.without], [`${found.demonstrations.length} demonstrations`, found.with], [`empty prompt + vector, layer ${layer}`, found.layers[layer - 1]]];
  const block = ([name, tokens], i) => tokens.map(([token, p], j) => {
    const at = 60 + 76 * i + 20 * j;
    return [j ? "" : words(0, at - 18, name, { "font-size": 12 }), group(colour(ROLES[i]), words(0, at, clip(named(token), 114)),
      p > 0 ? bar(118, 118 + p * (WIDTH - 170), at - 9, 11) : "", words(WIDTH, at, percent(p), END))];
  });
  return panel(titled("Next after “", found.query, ` →”${when}`), 276, names.map(block));
}

const LEFT = 48, TOP = 44, FOOT = 190;
function byLayer({ found, layer, study, task }, when) {
  const [zsl, icl, own, moved] = found.p, L = own.length, [token] = found.with[0], its = study[task].study;
  const X = (l) => LEFT + ((WIDTH - LEFT - 8) * (l - 1)) / (L - 1), Y = (p) => FOOT - (FOOT - TOP) * p;
  const curve = (values, role, more) => group(colour(role), path(through(values.map((p, i) => [X(i + 1), Y(p)])), { "stroke-width": 2, ...more }));
  const level = (p, role) => group(colour(role), line(LEFT, Y(p), WIDTH - 8, Y(p), { "stroke-dasharray": "6 3" }));
  return panel(titled("Probability of ", named(token), when), 300,
    [0, 0.5, 1].map((p) => [words(LEFT - 6, Y(p) + 4, percent(p), { ...END, ...SMALL }), line(LEFT, Y(p), WIDTH - 8, Y(p), { "stroke-opacity": 0.2 })]),
    [1, 10, 20, L].map((l) => words(X(l), FOOT + 16, l, { "text-anchor": "middle", ...SMALL })),
    level(zsl, "stone"), level(icl, "context"), curve(own, "ink"), curve(moved, "ink", { "stroke-dasharray": "2 4" }),
    line(X(layer), TOP, X(layer), FOOT, { "stroke-opacity": 0.5 }),
    words(0, FOOT + 34, "layer after which the vector is added", SMALL),
    words(0, FOOT + 52, "solid: your vector; dotted: answers moved on by one", SMALL),
    words(0, FOOT + 67, "dashed: with demonstrations (upper), empty (lower)", SMALL),
    words(0, FOOT + 86, `study, ${task}: context ${percent(its.icl)}, vector ${percent(its.vector)},`, SMALL),
    words(0, FOOT + 100, `vector of shuffled answers ${percent(its.shuffled)}`, SMALL));
}

function panels(state) {
  const when = isCurrent(state) ? "" : " (earlier)";
  return [nextTokens(state, when), byLayer(state, when)];
}

function messageOf({ lesson, query }) {
  const demonstrations = demonstrationsOf(lesson);
  if (!demonstrations) return { refused: `Write ${FEWEST} to ${MOST} lines like cat -> cats.` };
  return { message: { pattern: PATTERN, demonstrations, query: query.trim() }, belongs: {} };
}

const extendRow = questionRow({ kind: "vector", steps: "2 vectors are made", question: ({ task, lesson, query }) => JSON.stringify([task, asked(lesson, query)]), storedFor, messageOf,
  queryOf: ({ study, task }) => study[task].query });

// A field for the reader's own demonstrations; a task that is chosen brings its own
function extend(root, start, read, change, widget) {
  let { task } = start;
  const update = extendRow(root, start, read, change, widget);
  const field = element("textarea", { rows: 8, maxLength: LONGEST, spellcheck: false, dir: "auto", attributes: { "aria-label": "your demonstrations, a line for each" },
    style: "width:100%;box-sizing:border-box;font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:.3rem;padding:.2rem .4rem",
    oninput: () => change({ lesson: field.value }) });
  root.querySelector(".explorable-controls").before(element("label", { style: "display:block" }, element("span", { textContent: "your demonstrations" }), field));
  return (state) => {
    if (field.value !== state.lesson) field.value = state.lesson;
    if (state.task === task) return update(state);
    ({ task } = state);
    const { lesson, query } = state.study[task];
    if (state.lesson === lesson && state.query === query) return update(state);
    change({ lesson, query }); // and comes back here
  };
}

export default explorable({
  question: "Does one vector carry your demonstrations to a prompt without any?",
  hint: "The vector is what demonstrations add to the residual stream at the last token, the mean over them: each is asked after all the others. The stored answers " +
    "were computed with Python. Load the model to take the vector of your own demonstrations.",
  traits: ["task", "lesson", "query", "layer", "found", "study"],
  lists: ({ study }) => [["task", "task", Object.keys(study).map((name) => [name, name])]],
  sliders: [slider("layer", "added after layer", [1, 30, 1], (n) => `${n}`)],
  panels, describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend,
});
