// Where the model looks: arrows from the last token of a text to the demonstrations above it, beside what it expects next.
// A demonstration that is hidden has no arrow. The answers of every choice of a task's demonstrations are stored.

import { SMALL, WIDTH, badge, colour, group, panel, path, words } from "#explorables/drawing.js";
import { explorable } from "#explorables/frame.js";
import { percent } from "./model_row.js";
import { clip, isolated } from "./live_parts.js";
import { answered, earlier, expected, question, workshop } from "./live_workshop.js";

const total = (numbers) => numbers.reduce((sum, x) => sum + x, 0);

// [first layer, last layer, shares]: the last token's attention to each demonstration, in thousandths, mean over the heads of
// the upper third of the layers. Of stored answers only this is kept, of an answer of the model it is worked out.
export function attentionOf({ looks, attention }) {
  if (!looks) return attention;
  const first = Math.floor((2 * looks.length) / 3), heads = looks.slice(first).flat();
  return [first + 1, looks.length, heads[0].map((_, i) => total(heads.map((its) => its[i])) / heads.length)];
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// The stored answer to a text of a task, whichever of its demonstrations are hidden
export function storedFor(state) {
  const its = Object.values(state.presets).find(({ found }) => same(question({ ...state, hidden: [] }), found.of));
  if (!its || !state.hidden.length) return its?.found;
  const [, then, alone, attention] = its.hiding.find(([hidden]) => same(hidden, state.hidden)) ?? [];
  return then && { ...its.found, of: question(state), with: then, alone, attention };
}

function describe(state) {
  const [first, last, shares] = attentionOf(state.found), most = Math.max(0, ...shares);
  return expected(state) + (most ? ` In layers ${first} to ${last} the last token looks most at demonstration ${shares.indexOf(most) + 1}: ${percent(most / 1000)} of its attention.` : "");
}

const HEIGHT = 352, TOP = 50, LAST = 284, EDGE = 188;
// As wide as the share, from 1 to 14
const widthOf = (share) => Math.min(14, 1 + 0.045 * share);

function arc(y, share) {
  const wide = widthOf(share), tip = 5 + wide, bend = EDGE + 26 + 0.34 * (LAST - y);
  return path(`M${EDGE} ${LAST - 4}C${bend} ${LAST - 4} ${bend} ${y} ${EDGE + tip} ${y}`, { "stroke-width": wide, "stroke-opacity": 0.6 }) +
    path(`M${EDGE - 2} ${y}L${EDGE + tip} ${y - tip * 0.6}L${EDGE + tip} ${y + tip * 0.6}Z`, { fill: "currentColor", stroke: "none" });
}

function looksPanel(state) {
  const { found } = state, [pattern, demonstrations, query, hidden] = found.of, [first, last, shares] = attentionOf(found);
  const n = demonstrations.length, step = Math.min(44, (LAST - 30 - TOP) / Math.max(1, n - 1)), size = { "font-size": n > 9 ? 11 : 12 };
  const row = ([x, y], i) => {
    const at = TOP + step * i, gone = hidden.includes(i);
    return [
      group(gone ? { opacity: 0.65 } : {}, group(colour("key"), badge(10, at, i + 1, n > 9 ? 7 : 9)), words(26, at + 4, clip(`${isolated(x)} → ${isolated(y)}`, EDGE - 30, 12), size)),
      gone ? words(WIDTH, at + 4, "hidden", { ...SMALL, "text-anchor": "end" }) : [group(colour("query"), arc(at, shares[i])), words(WIDTH, at + 4, percent(shares[i] / 1000), { "text-anchor": "end", "font-weight": 600, ...size })],
    ];
  };
  const asked = `${query}${pattern[1]}`.replace("->", "→").replaceAll("\n", " ");
  return panel(`Where the last token looks${earlier(state)}`, HEIGHT, demonstrations.map(row),
    words(26, LAST, clip(isolated(asked), EDGE - 30, 13), { "font-weight": 600 }),
    words(0, 320, `its attention in layers ${first} to ${last}, mean over the heads`, SMALL),
    words(0, 335, `the rest: ${percent(1 - total(shares) / 1000)}, to the query and to the first token`, SMALL));
}

// Both answers below each other
function answersPanel(state) {
  const [without, seeing] = answered(state), down = without.height + 14;
  return panel(without.title, HEIGHT, without.body, group({ transform: `translate(0 ${down})` }, words(0, 14, seeing.title, { "font-weight": 600 }), seeing.body));
}

export default explorable({
  question: "Where does a real GPT look before it answers, and what does it expect next?",
  hint: "Without its tick a demonstration is hidden from the query, and its arrow is gone; no position moves. Write your own words, or take a task of the book.",
  traits: ["pattern", "demonstrations", "query", "hidden", "found", "presets"],
  panels: (state) => [looksPanel(state), answersPanel(state)],
  describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend: workshop({ below: true, storedFor }),
});
