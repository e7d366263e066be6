// The paper's comparison in the page: what demonstrations change in the context, and what a second condition changes. Stored answers,
// or those of the model in the page.

import { SMALL, WIDTH, bar, colour, group, line, marker, panel, path, plane, through, words } from "#explorables/drawing.js";
import { explorable, slider } from "#explorables/frame.js";
import { percent, questionRow } from "./model_row.js";
import { clip, isolated, named, spoken, titled, wilson } from "./live_parts.js";

const SECONDS = {
  "fine-tuned": "fine-tuned on the demonstrations", reordered: "a context in another order",
  shuffled: "a context with shuffled answers", foreign: "a context of another task",
};
const SHORT = { "fine-tuned": "fine-tuned", reordered: "other order", shuffled: "shuffled", foreign: "another task" };
const LISTED = { "fine-tuned": "fine-tuning", reordered: "context, reordered", shuffled: "context, shuffled", foreign: "context, foreign" };
const ROLES = ["stone", "context", "training"];
const isTuned = ({ second }) => second === "fine-tuned";

const two = (x) => (Number.isFinite(x) ? x.toFixed(2).replace("-", "−") : "not defined"); // of a change that is none
const orNone = (x) => (Number.isFinite(x) ? two(x) : "none"); // where there is little room
function mean(numbers) {
  const known = numbers.filter(Number.isFinite);
  return known.reduce((sum, x) => sum + x, 0) / known.length;
}
const last = ({ second, scale }) => (isTuned({ second }) && scale !== 1 ? `${SHORT[second]} × ${scale}` : SHORT[second]);
const lessonsOf = (found) => ["zero-shot", "in context", last(found)];

const question = ({ task, second, scale, query }) => JSON.stringify([task, second, isTuned({ second }) ? scale : 1, query.trim()]);
export const isCurrent = (state) => question(state) === question(state.found);

// The stored answer to what the controls say, where there is one
export function storedFor({ study, task, second, scale, query }) {
  const its = study[task].found[second];
  return question({ task, second, scale, query }) === question(its) ? its : undefined;
}

function describe(state) {
  const { found, study } = state, [zsl, icl, other] = found.right, { floor, ceiling } = study[found.task].bounds[found.second];
  const [repairs, , both] = found.repaired, [before, inContext, after] = found.answers.map(([[token]]) => spoken(token));
  return (isCurrent(state) ? "" : "Of an earlier choice: ") +
    `${found.task}, ${found.n} queries: right are ${zsl} without demonstrations, ${icl} in context, and ${other} ${isTuned(found) ? "when" : "with"} ` +
    `${SECONDS[found.second]}${isTuned(found) && found.scale !== 1 ? `, the update times ${found.scale}` : ""}. Of ${repairs} errors that the context repairs, the second condition repairs ${both}. ` +
    `The SimAOU of the two changes is ${two(mean(found.sim_aou))}, between a floor of ${two(floor)} and a ceiling of ${two(ceiling)}; SimAMΔ is ${two(found.sim_am_delta)}. ` +
    `After “${isolated(found.query)}” the model expects ${before}, ${inContext} and ${after}.`;
}

const END = { "text-anchor": "end" };

function answered({ found }, when) {
  const row = (name, i) => {
    const at = 42 + 40 * i, x = found.right[i], from = 118, to = WIDTH - 52, [low, high] = wilson(x, found.n), X = (p) => from + p * (to - from);
    return group(colour(ROLES[i]), words(0, at, name), line(from, at - 13, from, at + 7, { "stroke-opacity": 0.4 }), x ? bar(from, X(x / found.n), at - 10, 12) : "",
      line(X(low), at + 7, X(high), at + 7, { "stroke-width": 1.5 }), words(WIDTH, at, `${x} of ${found.n}`, END));
  };
  return panel(`Right answers: ${found.task}${when}`, 202, lessonsOf(found).map(row), words(0, 158, "lines below the bars: 95 % intervals (Wilson)", SMALL),
    words(0, 174, "errors repaired:", SMALL), words(0, 190, `in context: ${found.repaired[0]}; ${last(found)}: ${found.repaired[1]}; both: ${found.repaired[2]}`, SMALL));
}

const AREA = plane({ left: 40, top: 34, width: 206, height: 150, x: [1, 30], y: [-0.2, 1] });

function similarity({ found, study }, when) {
  const { X, Y, left, top, width, height } = AREA, { floor, ceiling } = study[found.task].bounds[found.second], values = found.sim_aou;
  const bound = (y, text) => [line(left, Y(y), left + width, Y(y), { "stroke-dasharray": "5 4" }), words(left + width + 4, Y(y) + 4, text, SMALL)];
  const points = values.flatMap((y, l) => (Number.isFinite(y) ? [[X(l + 1), Y(Math.max(-0.2, y))]] : []));
  return panel(`SimAOU of the two changes${when}`, 236,
    [0, 0.5, 1].map((y) => [line(left, Y(y), left + width, Y(y), { "stroke-opacity": y ? 0.15 : 0.6 }), words(left - 6, Y(y) + 4, y, { ...END, ...SMALL })]),
    [1, 10, 20, 30].map((l) => words(X(l), top + height + 14, l, { "text-anchor": "middle", ...SMALL })), words(left + width, top + height + 30, "layer", { ...END, ...SMALL }),
    bound(ceiling, `ceiling ${two(ceiling)}`), bound(floor, `floor ${two(floor)}`),
    group(colour("ink"), points.length ? path(through(points), { "stroke-width": 1.5 }) : "", points.map(([x, y]) => marker("M0-2.5A2.5 2.5 0 0 1 0 2.5A2.5 2.5 0 0 1 0-2.5Z", x, y, true))),
    words(0, top + height + 46, `mean over layers ${orNone(mean(values))}; SimAMΔ ${orNone(found.sim_am_delta)}`, { "font-weight": 600 }));
}

function ownQuery({ found }, when) {
  const block = (name, i) => found.answers[i].map(([token, p], j) => {
    const at = 60 + 76 * i + 20 * j;
    return [j ? "" : words(0, at - 18, name, { "font-size": 12 }), group(colour(ROLES[i]), words(0, at, clip(named(token), 114)), p > 0 ? bar(118, 118 + p * (WIDTH - 170), at - 9, 11) : "", words(WIDTH, at, percent(p), END))];
  });
  return panel(titled("Next after “", found.query, ` →”${when}`), 278, lessonsOf(found).map(block));
}

function panels(state) {
  const when = isCurrent(state) ? "" : " (earlier)";
  return [answered(state, when), similarity(state, when), ownQuery(state, when)];
}

function messageOf({ task, second, scale, query, lessons, study }) {
  const { pattern, curves, queries } = lessons[task], tuned = isTuned({ second });
  const others = { ...curves, reordered: study[task].order.map((i) => curves.right[i]) };
  return {
    message: { task, lesson: second, pattern, demonstrations: curves.right, second: others[second], update: tuned ? task : null, scale, queries, query: query.trim() },
    belongs: { task, second, scale: tuned ? scale : 1 },
  };
}

const asks = questionRow({ kind: "experiment", steps: "3 conditions are asked", question, storedFor, messageOf, queryOf: ({ study, task, second }) => study[task].found[second].query });

function laboratory(root, ...given) {
  const update = asks(root, ...given), scale = root.querySelector("input[type=range]");
  return (state) => {
    scale.disabled = !isTuned(state);
    update(state);
  };
}

export default explorable({
  question: "Do the demonstrations change the model as fine-tuning on them does?",
  hint: "The stored answers were computed with Python. Load the model to run the comparison yourself, with your own query and with more or less of the update.",
  traits: ["task", "second", "scale", "query", "found", "study", "lessons"],
  lists: ({ study }) => [["task", "task", Object.keys(study).map((name) => [name, name])], ["second", "compared with", Object.entries(LISTED)]],
  sliders: [slider("scale", "update times", [0, 2, 0.25], two)],
  panels, describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend: laboratory,
});
