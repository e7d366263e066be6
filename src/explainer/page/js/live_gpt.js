// The book's checkpoint in the page: its next word with and without demonstrations, each of which can be hidden. The
// model runs in a Web Worker, live_model_worker.js, when the reader asks for it; until then answers are stored ones.

import { SMALL, WIDTH, badge, colour, group, panel, path, rect, words } from "#explorables/drawing.js";
import { explorable } from "#explorables/frame.js";
import { percent } from "./model_row.js";
import { clip, isolated, named, titled } from "./live_parts.js";
import { answered, earlier, expected, share, workshop } from "./live_workshop.js";

const total = (numbers) => numbers.reduce((sum, x) => sum + x, 0);

// The attention to each demonstration in every layer: of one head, counted from 1, or the mean over heads; `looks` has thousandths
export const sharesOf = (looks, head) => looks.map((heads) => (head ? heads[head - 1] : heads[0].map((_, i) => total(heads.map((its) => its[i])) / heads.length))
  .map((x) => x / 1000));

// The gate g of each head, by layers: what all demonstrations get
export const gatesOf = (looks) => looks.map((heads) => heads.map((its) => Math.min(1, total(its) / 1000)));

// The largest number of some rows: [it, its row, its column], counted from 1
export const largest = (rows) =>
  rows.reduce((best, row, l) => row.reduce((most, x, i) => (x > most[0] ? [x, l + 1, i + 1] : most), best), [0, 0, 0]);

function describe(state) {
  const { looks } = state.found, [most, layer, seenMost] = largest(sharesOf(looks, 0)), [gate, its, head] = largest(gatesOf(looks));
  return expected(state) + (most ? ` The query looks most at demonstration ${seenMost}, in layer ${layer}: ${percent(most)} of the attention there, mean over heads. ` +
    `Head ${head} of layer ${its} has the largest gate: ${percent(gate)} of its attention goes to the demonstrations.` : "");
}

function contributions(state) {
  const { found } = state, [, demonstrations, , hidden] = found.of, [token, p] = found.with[0], foot = 66 + 24 * demonstrations.length;
  const row = ([x, y], i) => {
    const at = 66 + 24 * i, value = found.alone[i];
    return [
      group(colour("key"), badge(10, at - 4, i + 1)), words(26, at, clip(`${isolated(x)} → ${isolated(y)}`, 116, 12), { "font-size": 12 }),
      hidden.includes(i) ? words(146, at, "already hidden", SMALL) : group(colour("context"), share(at, 146, value)),
    ];
  };
  return panel(titled("What each adds to ", named(token), earlier(state)), foot + 8,
    words(0, 40, "none hidden", { "font-size": 12 }), group(colour("context"), share(40, 146, p)),
    demonstrations.map(row), words(0, foot, demonstrations.length ? "each bar: its probability when this one is hidden, too" : "There are no demonstrations.", SMALL));
}

// A row for each layer, shaded in twenty steps from 0 to `full`, each step one path; below it, two lines
const LEFT = 62, TOP = 52, FOOT = 232;
const across = (n) => (WIDTH - LEFT) / n, down = (rows) => (FOOT - TOP) / rows.length;
function layersBy(title, rows, width, full, lines, ...more) {
  const height = down(rows), steps = Array.from({ length: 21 }, () => "");
  const cell = (l, i) => `M${+(LEFT + i * width).toFixed(1)} ${TOP + l * height}h${+(width - 2).toFixed(1)}v${height}h${+(2 - width).toFixed(1)}Z`;
  rows.forEach((row, l) => row.forEach((x, i) => { steps[Math.round((20 * x) / full)] += cell(l, i); }));
  return panel(title, FOOT + 46, more,
    [1, rows.length].map((l) => words(0, TOP + (l - 0.5) * height + 4, `layer ${l}`, { "font-size": 12 })),
    group(colour("ink"), steps.map((d, i) => (d && i ? path(d, { fill: "currentColor", stroke: "none", "fill-opacity": i / 20 }) : ""))),
    lines.map((text, i) => words(0, FOOT + 20 + 15 * i, text, SMALL)));
}

const NOTHING = "It sees no demonstration.";

function looks({ found, head }, when) {
  const rows = sharesOf(found.looks, head), { length: n } = found.of[1], [most, layer] = largest(rows), width = across(Math.max(n, 4));
  const lines = [most ? `strongest: ${percent(most)}, in layer ${layer}` : NOTHING, head ? `head ${head} of each layer` : "mean over the heads of each layer"];
  return layersBy(`Where the query looks${when}`, rows, width, most || 1, lines,
    found.of[1].map((_, i) => [LEFT + (i + 0.5) * width - 1, i + 1]).map(([x, name]) => // circles where they do not touch
      group(colour("key"), width < 21 ? words(x, 40, name, { "text-anchor": "middle", ...SMALL }) : badge(x, 36, name))));
}

function gates({ found, head, induction }, when) {
  const rows = gatesOf(found.looks), [most, layer, its] = largest(rows), width = across(rows[0].length), height = down(rows);
  const lines = [most ? `strongest: g = ${percent(most)}, head ${its} of layer ${layer}` : NOTHING, "outlined: the ten strongest induction heads"];
  const ring = ([l, h]) => rect(LEFT + h * width - 1, TOP + l * height, width, height, { fill: "none", stroke: "currentColor", "stroke-width": 1.5 });
  return layersBy(`The gate g of each head${when}`, rows, width, 1, lines, words(0, 42, "head", { "font-size": 12 }), rows[0].map((_, h) =>
    words(LEFT + (h + 0.5) * width - 1, 42, h + 1, { "text-anchor": "middle", ...SMALL, "font-weight": h === head - 1 ? 700 : 400 })),
    group(colour("ink"), induction.map(ring)));
}

const panels = (state) => [...answered(state), contributions(state), looks(state, earlier(state)), gates(state, earlier(state))];

export default explorable({
  question: "What does a real GPT expect next, and which of your demonstrations does it need?",
  hint: "Write your own words, or take a task of the book. Without its tick a demonstration is hidden from the query; " +
    "no position moves.",
  traits: ["pattern", "demonstrations", "query", "hidden", "found", "presets", "head", "induction"],
  lists: ({ found }) => [["head", "attention of", [[0, "all heads, mean"], ...found.looks[0].map((_, h) => [h + 1, `head ${h + 1}`])]]],
  panels, describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend: workshop(),
});
