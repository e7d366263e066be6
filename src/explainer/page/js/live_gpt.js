// The book's checkpoint in the page: its next word with and without demonstrations, each of which can be hidden. The
// model runs in a Web Worker, live_gpt_worker.js, when the reader asks for it; until then answers are stored ones.

import { SMALL, WIDTH, badge, bar, colour, group, line, panel, path, rect, words } from "#explorables/drawing.js";
import { element, explorable } from "#explorables/frame.js";
import { modelRow, percent } from "./live_model.js";
import { clip, hasParts, isolated, named, spoken, titled } from "./live_parts.js";

const MOST = 16, LONGEST = 400, QUIET = 500; // demonstrations; characters; ms without a change before the model is asked

export const question = ({ pattern, demonstrations, query, hidden }) => [pattern, demonstrations, query, hidden];
export const isCurrent = (state) => JSON.stringify(question(state)) === JSON.stringify(state.found.of);
const seen = ({ demonstrations, hidden }) => demonstrations.length - hidden.length;

// The demonstration without which the answer loses most
export function mostNeeded({ with: [[, p]], alone }) {
  const drops = alone.map((q) => (q === null ? -1 : p - q)), most = Math.max(...drops);
  return most > 0 ? drops.indexOf(most) : -1;
}

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
  const { found, brief } = state, [pattern, demonstrations, query, hidden] = found.of, most = mostNeeded(found);
  const [share, layer, seenMost] = largest(sharesOf(found.looks, 0)), [gate, its, head] = largest(gatesOf(found.looks));
  const expects = ([[token, p]]) => `${spoken(token)} (${percent(p)})`;
  return (isCurrent(state) ? "" : "Of an earlier text: ") +
    `After “${isolated(query)}${pattern[1].replace("->", "→").replaceAll("\n", " ")}” the model expects ${expects(found.without)} without demonstrations, and ${expects(found.with)} ` +
    `when it sees ${seen({ demonstrations, hidden })} of ${demonstrations.length}.` +
    (most < 0 ? "" : ` It needs demonstration ${most + 1} most: when that is hidden, ${spoken(found.with[0][0])} has ${percent(found.alone[most])}.`) +
    (share && !brief ? ` The query looks most at demonstration ${seenMost}, in layer ${layer}: ${percent(share)} of the attention there, mean over heads. ` +
      `Head ${head} of layer ${its} has the largest gate: ${percent(gate)} of its attention goes to the demonstrations.` : "");
}

const right = { "text-anchor": "end" };
const share = (y, from, p) => [
  line(from, y - 11, from, y + 5, { "stroke-opacity": 0.4 }), p > 0 ? bar(from, from + p * (WIDTH - 46 - from), y - 9, 12) : "", words(WIDTH, y, percent(p), right),
];
const earlier = (state) => (isCurrent(state) ? "" : " (earlier)");

const nextPanel = (title, tokens, role) => panel(title, 164,
  tokens.map(([token, p], i) => [words(0, 44 + 25 * i, clip(named(token), 114)), group(colour(role), share(44 + 25 * i, 118, p))]),
  hasParts(tokens) ? words(0, 162, "hexadecimal: part of a character; · is a missing byte", SMALL) : "");

function contributions(state) {
  const { found } = state, [, demonstrations, , hidden] = found.of, [token, p] = found.with[0], foot = 66 + 24 * demonstrations.length;
  const row = ([x, y], i) => {
    const at = 66 + 24 * i, value = found.alone[i];
    return [
      group(colour("key"), badge(10, at - 4, i + 1)), words(26, at, clip(`${isolated(x)} → ${isolated(y)}`, 116, 12), { "font-size": 12 }),
      hidden.includes(i) ? words(146, at, "already hidden", SMALL) : group(colour("sum"), share(at, 146, value)),
    ];
  };
  return panel(titled("What each adds to ", named(token), earlier(state)), foot + 8,
    words(0, 40, "none hidden", { "font-size": 12 }), group(colour("query"), share(40, 146, p)),
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
    group(colour("query"), steps.map((d, i) => (d && i ? path(d, { fill: "currentColor", stroke: "none", "fill-opacity": i / 20 }) : ""))),
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
    group(colour("value"), induction.map(ring)));
}

const answered = (state) => [
  nextPanel(`Next, without demonstrations${earlier(state)}`, state.found.without, "value"),
  nextPanel(`Next, with ${seen({ demonstrations: state.found.of[1], hidden: state.found.of[3] })} of ${state.found.of[1].length}${earlier(state)}`, state.found.with, "query"),
];
const panels = (state) => [...answered(state), ...(state.brief ? [] : [contributions(state), looks(state, earlier(state)), gates(state, earlier(state))])];

// What a link may bring: nothing but short texts, and numbers of demonstrations
export function fromLink(hash) {
  try {
    const [pattern, demonstrations, query, hidden] = JSON.parse(decodeURIComponent(hash.replace(/^#gpt=/, "")));
    const text = (one) => typeof one === "string" && one.length <= LONGEST;
    const pairs = (rows) => Array.isArray(rows) && rows.every((row) => Array.isArray(row) && row.length === 2 && row.every(text));
    const fits = pairs([pattern]) && pairs(demonstrations) && demonstrations.length <= MOST && text(query) &&
      Array.isArray(hidden) && new Set(hidden).size === hidden.length && hidden.every((i) => Number.isInteger(i) && i >= 0 && i < demonstrations.length);
    return fits ? { pattern, demonstrations, query, hidden } : null;
  } catch {
    return null;
  }
}

const STYLE = "flex:1 1 8rem;min-width:0;max-width:none;font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:.3rem;padding:0 .4rem";
const field = (label, put) => element("input", { type: "text", dir: "auto", maxLength: LONGEST, style: STYLE, attributes: { "aria-label": label }, oninput: ({ target }) => put(target.value) });
const write = (input, value) => { if (input.value !== value) input.value = value; };

function demonstrationRow(i, read, change) {
  const at = (j) => (text) => change({ demonstrations: read().demonstrations.map((pair, k) => (k === i ? pair.with(j, text) : pair)) });
  const box = element("input", {
    type: "checkbox", style: "flex:none;min-width:0;width:1.3rem", attributes: { "aria-label": `the query sees demonstration ${i + 1}` },
    onchange: () => change({ hidden: [...read().hidden.filter((k) => k !== i), ...(box.checked ? [] : [i])].sort((a, b) => a - b) }),
  });
  const [x, y] = [field(`demonstration ${i + 1}`, at(0)), field(`answer of demonstration ${i + 1}`, at(1))];
  const node = element("div", { className: "explorable-controls", style: "flex-wrap:nowrap;gap:.5rem;margin:.25rem 0" },
    box, element("span", { textContent: i + 1, style: "min-width:1.2rem" }), x, element("span", { textContent: "→" }), y);
  const update = ({ demonstrations, hidden }) => {
    box.checked = !hidden.includes(i);
    write(x, demonstrations[i][0]);
    write(y, demonstrations[i][1]);
  };
  return { node, update };
}

function workshop(root, start, read, change, widget) {
  let asked = 0, timer, since = 0;
  const model = modelRow((data) => {
    if (data.ready) return ask();
    if (!asked || data.id !== asked) return;
    model.say(data.failed ?? "");
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
  const presets = Object.entries(start.presets).map(([name, patch]) => button(name, () => patch));
  const rows = [], list = element("div", {});
  const query = field("query", (text) => change({ query: text }));
  const add = button("add a demonstration", ({ demonstrations }) => ({ demonstrations: [...demonstrations, ["", ""]].slice(0, MOST) }));
  const drop = button("remove the last", ({ demonstrations: all, hidden }) =>
    ({ demonstrations: all.slice(0, -1), hidden: hidden.filter((i) => i < all.length - 1) }));
  const link = element("button", { type: "button", textContent: "link to this", style: "margin:0", onclick: () => {
    history.replaceState(null, "", `#gpt=${encodeURIComponent(JSON.stringify(question(read())))}`);
    model.say("The address of this page now holds your demonstrations, query and switches. Copy it from the browser.");
  } });
  const row = (...nodes) => element("div", { className: "explorable-controls" }, ...nodes);
  const text = [list, row(element("span", { textContent: "Query" }), query)], taken = presets.length ? row("Tasks of the book:", ...presets) : "";
  const controls = root.querySelector(".explorable-controls"), drawn = root.querySelector(".explorable-panels");
  if (start.brief) { // the answers stand right below the text
    drawn.before(...text);
    drawn.after(row(add, drop, link, ...controls.childNodes), taken, model.node);
    controls.remove();
  } else controls.before(model.node, taken, ...text, row(add, drop, link));
  const follow = () => {
    if (!globalThis.location?.hash.startsWith("#gpt=")) return;
    const linked = fromLink(location.hash);
    if (linked) change({ ...linked, ...Object.values(start.presets).find(({ found }) => isCurrent({ ...linked, found })) });
    else model.say("The link is damaged. This is a text of the book.");
  };
  globalThis.addEventListener?.("hashchange", follow);
  follow();
  let last = JSON.stringify(question(start));
  return (state) => {
    const n = state.demonstrations.length;
    while (rows.length < n) {
      rows.push(demonstrationRow(rows.length, read, change));
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
    timer = setTimeout(() => isCurrent(read()) || ask(), QUIET); // a preset brings its answer last
  };
}

export default explorable({
  question: "What does a real GPT expect next, and which of your demonstrations does it need?",
  hint: "Write your own words, or take a task of the book. Without its tick a demonstration is hidden from the query; " +
    "no position moves.",
  traits: ["pattern", "demonstrations", "query", "hidden", "found", "presets", "head", "induction", "brief"],
  lists: ({ found, brief }) => brief ? [] : [["head", "attention of", [[0, "all heads, mean"], ...found.looks[0].map((_, h) => [h + 1, `head ${h + 1}`])]]],
  panels, describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend: workshop,
});
