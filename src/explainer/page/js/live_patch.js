// The context of a query as a change of weights, and what this change does for other queries. Stored answers, or those of the model in
// the page.

import { SMALL, WIDTH, bar, colour, group, line, panel, words } from "#explorables/drawing.js";
import { explorable } from "#explorables/frame.js";
import { percent, questionRow } from "./model_row.js";
import { clip, isolated, named, spoken, titled, wilson } from "./live_parts.js";

const ROLES = ["stone", "context", "ink"], END = { "text-anchor": "end" };
const ofPatches = (n) => (n === 1 ? "the patch of another query" : `the mean patch of ${n} others`);

const question = ({ task, donors, n, query }) => JSON.stringify([task, donors ?? n, query.trim()]);
export const isCurrent = (state) => question(state) === question(state.found);

// The stored answer to what the controls say, where there is one
export function storedFor({ study, task, donors, query }) {
  const its = study[task].found[donors];
  return question({ task, donors, query }) === question(its) ? its : undefined;
}

const size = (error) => (error ? `10${String(Math.ceil(Math.log10(error))).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])}` : "0");

function describe(state) {
  const { found, study } = state, [zsl, icl, moved] = found.right, its = study[found.task].study;
  const [without, inContext, own, mean] = found.answers.map(([[token, p]]) => `${spoken(token)} (${percent(p)})`);
  return (isCurrent(state) ? "" : "Of an earlier choice: ") +
    `After “${isolated(found.query)}” the model expects ${without} without demonstrations and ${inContext} with them. Without them it expects ${own} under the query's own ` +
    `patch, and ${mean} under ${ofPatches(found.n)}. Own patches move no logit from that in context by more than ${size(found.error)}. ` +
    `Of ${found.of} queries of ${found.task} the first token is right for ${zsl} without demonstrations, ${icl} with them, and ${moved} under ${ofPatches(found.n)}; ` +
    `for ${found.carried} it is wrong, and it is what ${found.n === 1 ? "that query" : "one of those queries"} got in context. In the study the mean patch of 23 others answers ` +
    `${percent(its.mean)}, that of another task ${percent(its.foreign)}, and the context ${percent(its.icl)}.`;
}

function ownQuery({ found }, when) {
  const names = ["no context", "in context", "no context, its own patch", `no context, ${ofPatches(found.n)}`];
  const block = (name, i) => found.answers[i].map(([token, p], j) => {
    const at = 60 + 76 * i + 20 * j;
    return [j ? "" : words(0, at - 18, name, { "font-size": 12 }), group(colour(ROLES[Math.min(i, 2)]), words(0, at, clip(named(token), 114)),
      p > 0 ? bar(118, 118 + p * (WIDTH - 170), at - 9, 11) : "", words(WIDTH, at, percent(p), END))];
  });
  return panel(titled("Next after “", found.query, ` →”${when}`), 372, names.map(block),
    words(0, 360, `own patches: logits as in context, to ${size(found.error)}`, SMALL));
}

function answered({ found, study }, when) {
  const from = 118, to = WIDTH - 52, X = (p) => from + p * (to - from), its = study[found.task].study;
  const row = (name, i) => {
    const at = 42 + 40 * i, x = found.right[i], [low, high] = wilson(x, found.of);
    return group(colour(ROLES[i]), words(0, at, name), line(from, at - 13, from, at + 7, { "stroke-opacity": 0.4 }), x ? bar(from, X(x / found.of), at - 10, 12) : "",
      line(X(low), at + 7, X(high), at + 7, { "stroke-width": 1.5 }), words(WIDTH, at, `${x} of ${found.of}`, END));
  };
  const mark = (p) => line(X(p), 108, X(p), 132, { "stroke-dasharray": "3 3" });
  return panel(`Right first tokens: ${found.task}${when}`, 214, ["no context", "in context", found.n === 1 ? "one patch" : "mean patch"].map(row),
    [its.foreign, its.icl].map(mark), words(0, 158, "lines below the bars: 95 % intervals (Wilson)", SMALL),
    words(0, 174, `dashed, the study: another task's patch ${percent(its.foreign)},`, SMALL),
    words(0, 190, `context ${percent(its.icl)}; mean patch of 23 others: ${percent(its.mean)}`, SMALL),
    words(0, 206, `wrong, but what a donor got in context: ${found.carried}`, SMALL));
}

function panels(state) {
  const when = isCurrent(state) ? "" : " (earlier)";
  return [ownQuery(state, when), answered(state, when)];
}

function messageOf({ task, donors, query, lessons, study }) {
  const { pattern, right, queries } = lessons[task], most = Math.max(...Object.keys(study[task].found));
  return {
    message: { task, pattern, demonstrations: right, donors: queries.slice(0, donors), asked: queries.slice(most), query: query.trim() },
    belongs: { task },
  };
}

export default explorable({
  question: "Does the change of weights that replaces the context of one query serve another query?",
  hint: "A patch is a change of rank one in each matrix of the 30 feed-forward layers. The stored answers were computed with Python. Load the model to make " +
    "patches yourself, and to ask your own query with them.",
  traits: ["task", "donors", "query", "found", "study", "lessons"],
  lists: ({ study, task }) => [["task", "task", Object.keys(study).map((name) => [name, name])],
    ["donors", "patches of", Object.keys(study[task].found).map((n) => [+n, n === "1" ? "1 query" : `${n} queries, mean`])]],
  panels, describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend: questionRow({ kind: "patch", steps: "2 runs are done", question, storedFor, messageOf, queryOf: ({ study, task, donors }) => study[task].found[donors].query }),
});
