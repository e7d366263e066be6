// What flows where the model looks: arrows from the demonstrations of a text to its last token, and on to what it expects next.
// The arrow of a line that is hidden is dimmed. The answers of every choice of a task's demonstrations are stored.

import { SMALL, WIDTH, colour, group, panel, path, rect, words } from "#explorables/drawing.js";
import { element, explorable } from "#explorables/frame.js";
import { percent } from "./model_row.js";
import { clip, hasParts, isolated, named } from "./live_parts.js";
import { PARTS, earlier, expected, likely, nextTitles, question, workshop } from "./live_workshop.js";

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

const TOP = 44, START = 186, NODE = 244, FOOT = 50; // the first line; where arrows start; the left edge of the query; what stands below the lines
const stepOf = (n) => (n > 6 ? 22 : 34), rowsEnd = (n) => TOP + stepOf(n) * Math.max(4, n), rowAt = (i, n) => TOP + stepOf(n) * i;
// A tenth of the share in thousandths, from 1 to 20
const widthOf = (share) => Math.min(20, Math.max(1, 0.1 * share));

function arrow(y, to, wide, hidden) {
  const tip = wide / 2 + 3, look = hidden ? { "stroke-dasharray": "3 4", "stroke-opacity": 0.5 } : { "stroke-width": wide, "stroke-opacity": 0.6 };
  return path(`M${START} ${y}C${START + 36} ${y} ${NODE - 40} ${to} ${NODE - 14} ${to}`, look) +
    path(`M${NODE - 15} ${to - tip}L${NODE - 3} ${to}L${NODE - 15} ${to + tip}Z`, hidden ? { "stroke-opacity": 0.5 } : { fill: "currentColor", stroke: "none" });
}

// The lines as they are now, and what is found of them
function looksPanel(state) {
  const { demonstrations: all, hidden, found } = state, [first, last, shares] = attentionOf(found), n = all.length, end = rowsEnd(n);
  const known = all.map((pair, i) => same(pair, found.of[1][i])), gone = all.map((_, i) => hidden.includes(i));
  const wide = all.map((_, i) => (gone[i] || !known[i] ? 1 : widthOf(shares[i]))), high = Math.max(30, total(wide) + 7 * n);
  const middle = (TOP + rowAt(Math.max(3, n - 1), n)) / 2, tips = all.map((_, i) => middle + 3.5 * (2 * i + 1 - n) + total(wide.slice(0, i)) + (wide[i] - total(wide)) / 2);
  const arrows = all.map((_, i) => (gone[i] || known[i] ? arrow(rowAt(i, n), tips[i], wide[i], gone[i]) : ""));
  const row = ([x, y], i) => {
    const at = rowAt(i, n), text = `${isolated(x)} → ${isolated(y)}`, room = START - 24, size = clip(text, room, 12) === text ? 12 : 11;
    const beside = gone[i] ? "hidden" : known[i] ? percent(shares[i] / 1000) : "", look = gone[i] ? SMALL : { "font-size": 12, "font-weight": 600 };
    return [
      rect(1, at - 7, 13, 13, { fill: "none", stroke: "currentColor" }), gone[i] ? "" : path(`M4 ${at - 1}l3 3.5l5-7`, { "stroke-width": 2 }),
      words(20, at + 4, clip(text, room, size), { "font-size": size, ...(gone[i] && { opacity: 0.65 }) }),
      words(START - 4, at + 15, beside, { "text-anchor": "end", ...look }), // left of all arrows, which it would lie against
    ];
  };
  const [answer, p] = found.with[0], middleOf = { "text-anchor": "middle", "font-weight": 600 }, x = (NODE + WIDTH) / 2, foot = middle + high / 2;
  const asked = `${found.of[2]}${found.of[0][1]}`.replace("->", "→").replaceAll("\n", " ");
  return panel(`Where the last token looks${earlier(state)}`, end + FOOT, group(colour("context"), arrows), all.map(row),
    group(colour("query"), rect(NODE, middle - high / 2, WIDTH - NODE - 1, high, { rx: 5, fill: "none", stroke: "currentColor", "stroke-width": 2 })),
    words(x, middle + 4, clip(isolated(asked), WIDTH - NODE - 8, 12), { ...middleOf, "font-size": 12 }),
    group(colour("context"), path(`M${x} ${foot + 2}v8`, { "stroke-width": 6 }), path(`M${x - 8} ${foot + 9}h16l-8 9Z`, { fill: "currentColor", stroke: "none" })),
    words(x, foot + 32, clip(named(answer), WIDTH - NODE, 12), { ...middleOf, "font-size": 12 }), words(x, foot + 47, percent(p), { ...middleOf, "font-size": 12 }),
    words(0, end + 14, `width: attention in layers ${first} to ${last}, mean over the heads`, SMALL),
    words(0, end + 29, `the rest: ${percent(1 - total(shares) / 1000)}, to the query and to the first token`, SMALL),
    words(0, end + 44, found.made, SMALL));
}

// Both answers below each other
function answersPanel(state) {
  const { found } = state, [without, seeing] = nextTitles(state), parts = hasParts([...found.with, ...found.without]), end = rowsEnd(4) + 36;
  return panel(seeing, end + (parts ? 16 : 0), likely(found.with, "context", 38, 20), words(0, 146, without, { "font-weight": 600 }),
    likely(found.without.slice(0, 3), "stone", 169, 20), parts ? words(0, end + 11, PARTS, SMALL) : "");
}

// The tick of each line lies on its drawing, as wide as its words
function ticks(root, read, change) {
  const place = root.querySelector(".explorable-panel"), boxes = [];
  const box = (i) => element("input", { type: "checkbox", className: "explorable-tick", onchange: ({ target }) =>
    change({ hidden: [...read().hidden.filter((k) => k !== i), ...(target.checked ? [] : [i])].sort((a, b) => a - b) }) });
  return ({ demonstrations: all, hidden }) => {
    const n = all.length, height = rowsEnd(n) + FOOT;
    boxes.splice(n).forEach((each) => each.remove());
    all.forEach(([x, y], i) => {
      if (!boxes[i]) place.append(boxes[i] = box(i));
      boxes[i].checked = !hidden.includes(i);
      boxes[i].setAttribute("aria-label", `the query sees demonstration ${i + 1}: ${isolated(x)} → ${isolated(y)}`);
      Object.assign(boxes[i].style, { top: `${(100 * rowAt(i, n)) / height}%`, height: `${(100 * stepOf(n)) / height}%` });
    });
  };
}

export default explorable({
  question: "Where does a real GPT look before it answers, and what does it expect next?",
  hint: "Untick a line to hide its keys and values from the query. No position moves.",
  traits: ["pattern", "demonstrations", "query", "hidden", "found", "presets"],
  panels: (state) => [looksPanel(state), answersPanel(state)],
  describe,
  extend: (root, start, read, change, widget) => {
    const parts = [ticks(root, read, change), workshop({ folded: true, storedFor })(root, start, read, change, widget)];
    return (state) => parts.forEach((update) => update(state));
  },
});
