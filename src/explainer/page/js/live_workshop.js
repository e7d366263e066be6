// What the explorables share in which a reader writes demonstrations and a query, and hides demonstrations: the fields, the
// buttons, the model's row, and the drawing of its answers.

import { SMALL, WIDTH, bar, colour, group, line, panel, words } from "#explorables/drawing.js";
import { element } from "#explorables/frame.js";
import { modelRow, percent } from "./model_row.js";
import { clip, hasParts, isolated, named, spoken } from "./live_parts.js";

const TASKS = ["capitals", "plurals", "past", "antonyms", "chinese"]; // a notebook keeps them by the alphabet
const MOST = 16, LONGEST = 400, QUIET = 500; // demonstrations; characters; ms without a change before the model is asked

export const question = ({ pattern, demonstrations, query, hidden }) => [pattern, demonstrations, query, hidden];
export const isCurrent = (state) => JSON.stringify(question(state)) === JSON.stringify(state.found.of);
export const seen = ({ demonstrations, hidden }) => demonstrations.length - hidden.length;

// What is stored of a text: that of a task of the book
const storedOf = (state) => Object.values(state.presets).find(({ found }) => isCurrent({ ...state, found }))?.found;

// The demonstration without which the answer loses most
export function mostNeeded({ with: [[, p]], alone }) {
  const drops = alone.map((q) => (q === null ? -1 : p - q)), most = Math.max(...drops);
  return most > 0 ? drops.indexOf(most) : -1;
}

// What the model expects without demonstrations and with them, and which it needs most, in words
export function expected(state) {
  const { found } = state, [pattern, demonstrations, query, hidden] = found.of, most = mostNeeded(found);
  const expects = ([[token, p]]) => `${spoken(token)} (${percent(p)})`;
  return (isCurrent(state) ? "" : "Of an earlier text: ") +
    `After “${isolated(query)}${pattern[1].replace("->", "→").replaceAll("\n", " ")}” the model expects ${expects(found.without)} without demonstrations, and ${expects(found.with)} ` +
    `when it sees ${seen({ demonstrations, hidden })} of ${demonstrations.length}.` +
    (most < 0 ? "" : ` It needs demonstration ${most + 1} most: when that is hidden, ${spoken(found.with[0][0])} has ${percent(found.alone[most])}.`);
}

const right = { "text-anchor": "end" };
export const share = (y, from, p) => [
  line(from, y - 11, from, y + 5, { "stroke-opacity": 0.4 }), p > 0 ? bar(from, from + p * (WIDTH - 46 - from), y - 9, 12) : "", words(WIDTH, y, percent(p), right),
];
export const earlier = (state) => (isCurrent(state) ? "" : " (earlier)");

export const PARTS = "hexadecimal: part of a character; · is a missing byte";
export const likely = (tokens, role, top, step) => tokens.map(([token, p], i) =>
  [words(0, top + step * i, clip(named(token), 114)), group(colour(role), share(top + step * i, 118, p))]);
export const nextTitles = (state) => [`Next, without demonstrations${earlier(state)}`,
  `Next, with ${seen({ demonstrations: state.found.of[1], hidden: state.found.of[3] })} of ${state.found.of[1].length}${earlier(state)}`];

export const answered = (state) => [[state.found.without, "stone"], [state.found.with, "context"]].map(([tokens, role], i) =>
  panel(nextTitles(state)[i], 164, likely(tokens, role, 44, 25), hasParts(tokens) ? words(0, 162, PARTS, SMALL) : ""));

const STYLE = "flex:1 1 8rem;min-width:0;max-width:none;font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:.3rem;padding:0 .4rem";
const field = (label, put) => element("input", { type: "text", dir: "auto", maxLength: LONGEST, style: STYLE, attributes: { "aria-label": label }, oninput: ({ target }) => put(target.value) });
const write = (input, value) => { if (input.value !== value) input.value = value; };

function demonstrationRow(i, read, change, ticked) {
  const at = (j) => (text) => change({ demonstrations: read().demonstrations.map((pair, k) => (k === i ? pair.with(j, text) : pair)) });
  const box = element("input", {
    type: "checkbox", style: "flex:none;min-width:0;width:1.3rem", attributes: { "aria-label": `the query sees demonstration ${i + 1}` },
    onchange: () => change({ hidden: [...read().hidden.filter((k) => k !== i), ...(box.checked ? [] : [i])].sort((a, b) => a - b) }),
  });
  const [x, y] = [field(`demonstration ${i + 1}`, at(0)), field(`answer of demonstration ${i + 1}`, at(1))];
  const node = element("div", { className: "explorable-controls", style: "flex-wrap:nowrap;gap:.5rem;margin:.25rem 0" },
    ...(ticked ? [box] : []), element("span", { textContent: i + 1, style: "min-width:1.2rem" }), x, element("span", { textContent: "→" }), y);
  const update = ({ demonstrations, hidden }) => {
    box.checked = !hidden.includes(i);
    write(x, demonstrations[i][0]);
    write(y, demonstrations[i][1]);
  };
  return { node, update };
}

// `folded`: the fields lie in a fold below the drawing, which has the ticks. `storedFor` finds the stored answer of a state.
export const workshop = ({ folded = false, storedFor = storedOf } = {}) => (root, start, read, change, widget) => {
  let asked = 0, timer, since = 0;
  const model = modelRow((data) => {
    if (data.ready) return ask();
    if (!asked || data.id !== asked) return;
    model.say(data.failed ?? "");
    asked = 0;
    if (!data.found) return;
    change({ found: { ...data.found, of: sent, made: `computed ${model.place}, ${((performance.now() - since) / 1000).toFixed(1)} s` } });
  }, widget);
  let sent;
  const ask = () => {
    const state = read(), [pattern, demonstrations, query, hidden] = question(state);
    const trimmed = demonstrations.map((pair) => pair.map((text) => text.trim())), empty = trimmed.findIndex((pair) => !(pair[0] && pair[1]));
    if (empty >= 0) return model.say(`Fill in demonstration ${empty + 1}, or remove it.`);
    since = performance.now();
    const id = model.number();
    if (!model.ask({ ask: id, pattern, demonstrations: trimmed, query: query.trim(), hidden })) return model.decline("Load the model to ask it about this text.");
    [asked, sent] = [id, question(state)];
    model.say("Asking …");
  };
  const button = (textContent, patch) => element("button", { type: "button", textContent, style: "margin:0", onclick: () => change(patch(read())) });
  const known = Object.keys(start.presets).sort((a, b) => TASKS.indexOf(a) - TASKS.indexOf(b));
  const presets = known.map((name) => button(name.replace("chinese", "Chinese"), () => (({ hiding, ...its }) => its)(start.presets[name])));
  const rows = [], list = element("div", {});
  const query = field("query", (text) => change({ query: text }));
  const add = button("add a demonstration", ({ demonstrations }) => ({ demonstrations: [...demonstrations, ["", ""]].slice(0, MOST) }));
  const drop = button("remove the last", ({ demonstrations: all, hidden }) =>
    ({ demonstrations: all.slice(0, -1), hidden: hidden.filter((i) => i < all.length - 1) }));
  const row = (...nodes) => element("div", { className: "explorable-controls" }, ...nodes);
  const text = [list, row(element("span", { textContent: "Query" }), query)], tasks = presets.length ? row("Tasks of the book:", ...presets) : "";
  const controls = root.querySelector(".explorable-controls"), drawn = root.querySelector(".explorable-panels");
  const fold = element("details", { style: "margin-top:.6rem" }, element("summary", { textContent: "Write your own" }));
  if (folded) {
    fold.append(...text, row(add, drop), model.node);
    controls.prepend(...(tasks.childNodes ?? []));
    controls.style.gap = ".4rem";
    drawn.nextSibling.after(fold); // the hint
  } else controls.before(model.node, tasks, ...text, row(add, drop));
  const kept = !isCurrent(read()) && storedFor(read()); // an address may bring what is hidden without its answer
  if (kept) change({ found: start.found = kept }); // and Reset does
  fold.open ||= !isCurrent(read());
  let last = JSON.stringify(question(start));
  return (state) => {
    const n = state.demonstrations.length;
    while (rows.length < n) {
      rows.push(demonstrationRow(rows.length, read, change, !folded));
      list.append(rows.at(-1).node);
    }
    rows.splice(n).forEach(({ node }) => node.remove());
    rows.forEach((each) => each.update(state));
    write(query, state.query);
    const focused = root.getRootNode().activeElement;
    [add.disabled, drop.disabled] = [n >= MOST, n === 0];
    if (focused?.disabled) (focused === add ? drop : add).focus(); // a button that is disabled would lose the focus to the page
    const now = JSON.stringify(question(state));
    if (now === last) return;
    last = now;
    asked = 0; // an answer that is on its way belongs to what was there before
    clearTimeout(timer);
    model.say("");
    const kept = storedFor(state);
    if (kept) return isCurrent(state) || change({ found: kept });
    timer = setTimeout(() => isCurrent(read()) || ask(), QUIET); // a preset brings its answer last
  };
};
