// What the reader expects before two chapters, and what was found. A browser that can keeps the bets from page to page.

import { DIAMOND, WIDTH, colour, group, line, marker, panel, rect, words } from "./drawing.js";
import { element, explorable, slider } from "./frame.js";
import { fixed } from "./numbers.js";

const NAME = "explainer.bets"; // in localStorage
const within = ([mean, low, high], digits = 2) => `${fixed(mean, digits)} [${fixed(low, digits)}, ${fixed(high, digits)}]`;
const interval = ([, low, high]) => `95 % interval ${fixed(low)} to ${fixed(high)}`;
const millions = (tokens) => `${fixed(tokens / 1e6)} million tokens`;

// Of each question: the page that asks, the chapter with the answer, title, question, result in words, and choices
const question = (about, where, title, ask, told, choices) => ({ about, where, title, ask, told, choices });
export const QUESTIONS = {
  agreement: question("comparison", 9, "Context and training", "How similar is the change by a context to the change by training on the same examples (cosine)?",
    (its) => `${interval(its.agreement)}; ${its.seeds} seeds.`),
  floor: question("comparison", 9, "Another task, the floor", "How similar is training to a context on another task (cosine)?",
    (its) => `${interval(its.floor)}; ${its.seeds} seeds.`),
  ceiling: question("comparison", 9, "Two training runs, the ceiling", "How similar are two training runs on different examples of the same task (cosine)?",
    (its) => `${interval(its.ceiling)}; ${its.seeds} seeds.`),
  others: question("comparison", 9, "Other examples of the task", "With other examples of the task in the context, how does its similarity to training change?",
    ({ others, seeds }) => `${within(others.change, 3)}; ${seeds} seeds.`,
    { floor: "it falls to the floor", half: "it falls about half way", stays: "it stays" }),
  lowest: question("momentum", 13, "The lowest loss", "Which small language models end with the lowest loss on text that they have not seen (nats per token)?",
    ({ sets, lowest }) => `${lowest.is.length > 1 ? "Their losses cannot be told apart. " : ""}After ${millions(lowest.tokens)} momentum is ${within(lowest.momentum, 3)} below ` +
      `plain attention, the previous value ${within(lowest.previous, 3)} below plain and ${within(lowest.between, 3)} below momentum; ${sets} sets.`,
    { plain: "plain attention", momentum: "momentum: a sum of earlier values", previous: "the previous value alone" }),
  lasting: question("momentum", 13, "The gain of momentum", "As training goes on, what does the lead of momentum over plain attention do (nats per token)?",
    ({ sets, lasting }) => `The lead is ${lasting.gains.map(([at, ...gain]) => `${within(gain)} after ${millions(at)}`).join(", ")}; ${sets} sets.`,
    { grows: "it grows", peaks: "it peaks, then shrinks", stays: "it stays as it is" }),
};
const ALL = Object.keys(QUESTIONS), LISTED = ALL.filter((key) => QUESTIONS[key].choices), NUMBERS = ALL.filter((key) => !QUESTIONS[key].choices);
const FIRST = { comparison: 7, momentum: 12 }; // the chapter that asks at its end
export const asked = ({ about }) => ALL.filter((key) => about === "all" || QUESTIONS[key].about === about);
const none = (bet) => bet == null, opened = ({ about, shown }, key) => about === "all" || shown.includes(key);
const named = (key, value) => (QUESTIONS[key].choices ? `“${QUESTIONS[key].choices[value]}”` : fixed(value));
const result = ({ results }, key) => (QUESTIONS[key].choices ? results[key].is.map((each) => named(key, each)).join(" and ") : fixed(results[key][0]));

// Whether a value from outside is a bet on a question
export const admits = (key, value) =>
  (QUESTIONS[key].choices ? Object.hasOwn(QUESTIONS[key].choices, value) : typeof value === "number" && value >= 0 && value <= 1);

// How a bet stands to the result
export function judged({ results, ...state }, key) {
  if (QUESTIONS[key].choices) return !results[key].is.includes(state[key]) ? "not what was found" : results[key].is.length > 1 ? "one of those found" : "as found";
  const away = state[key] - results[key][0];
  return Math.abs(away) < 0.005 ? "as found" : `${fixed(Math.abs(away))} ${away > 0 ? "above" : "below"} the result`;
}

// What stands below a question, paragraphs: what its drawing does not show
export function said(state, key) {
  const { where, told } = QUESTIONS[key], mine = !none(state[key]);
  if (!opened(state, key)) return mine ? [`Noted; the answer is in chapter ${where}.`] : [];
  return [...(mine ? [`Your bet: ${judged(state, key)}.`] : []), `Result: ${told(state.results)}`];
}

const describe = (state) => asked(state).map((key) => {
  const { title, ask } = QUESTIONS[key], mine = none(state[key]) ? [] : [`your bet ${named(key, state[key])}`];
  const told = [...mine, ...(opened(state, key) ? [`result ${result(state, key)}`] : [])];
  return told.length ? `${title}: ${told.join(", ")}.` : ask;
}).join(" ");

// Lines of at most so many characters
export const wrap = (text, most = 46) => text.split(" ").reduce(([last, ...before], word) =>
  (last && `${last} ${word}`.length <= most ? [`${last} ${word}`, ...before] : [word, ...(last ? [last, ...before] : [])]), []).reverse();

const DOT = "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z", TOP = 92, LEADING = 15, ROW = 24;
const X = (value) => 22 + 276 * value, middle = { "text-anchor": "middle", "font-size": 12 };
const mark = (x, y, solid) => group(colour(solid ? "ink" : "slate"), marker(solid ? DOT : DIAMOND, x, y, solid));

function numberLine(state, key) {
  const bet = state[key], [found] = state.results[key], y = TOP + 10;
  const at = (value, solid, text) => mark(X(value), y, solid) + group(colour(solid ? "ink" : "slate"),
    words(Math.min(WIDTH - 46, Math.max(46, X(value))), y + (solid ? 21 : -14), `${text} ${fixed(value)}`, middle));
  return [line(X(0), y, X(1), y), [0, 0.25, 0.5, 0.75, 1].map((tick) => line(X(tick), y - 4, X(tick), y + 4, { "stroke-opacity": 0.6 })),
    words(8, y + 4, "0", middle), words(WIDTH - 8, y + 4, "1", middle),
    none(bet) ? "" : at(bet, false, "your bet"), opened(state, key) ? at(found, true, "result") : ""];
}

const rows = (state, key) => Object.entries(QUESTIONS[key].choices).map(([choice, text], i) => {
  const y = TOP + ROW * i, mine = state[key] === choice, its = opened(state, key) && state.results[key].is.includes(choice);
  return group({ "data-key": key, "data-choice": choice, ...(state.about === "all" ? {} : { style: "cursor:pointer" }) },
    rect(1, y - 16, WIDTH - 2, ROW - 2, { rx: 5, "fill-opacity": mine ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": mine ? 0.8 : 0.25 }),
    mine ? mark(16, y - 5, false) : "", its ? mark(34, y - 5, true) : "", words(48, y, text, { "font-size": 12, ...(its ? { "font-weight": 600 } : {}) }));
});

function panels(state) {
  const small = (lines, top) => lines.map((text, i) => words(0, top + LEADING * i, text, { "font-size": 12 }));
  const below = asked(state).map((key) => said(state, key).flatMap((text) => wrap(text)));
  return asked(state).map((key, i) => {
    const [draw, foot] = QUESTIONS[key].choices ? [rows, TOP + 78] : [numberLine, TOP + 54];
    return panel(QUESTIONS[key].title, foot - 8 + LEADING * below[i].length, small(wrap(QUESTIONS[key].ask), 34), draw(state, key), small(below[i], foot));
  });
}

// What the browser keeps, by question; null if it keeps nothing
const kept = () => { try { return { ...JSON.parse(localStorage.getItem(NAME)) }; } catch { return null; } };
function keep(state) {
  const mine = Object.fromEntries(asked(state).map((key) => [key, state[key] ?? undefined])); // JSON leaves out what is undefined
  try { localStorage.setItem(NAME, JSON.stringify({ ...kept(), ...mine })); } catch { return false; }
  return true;
}

const HINT = "◇ your bet. ● the result. ", COSINE = "Cosine: 1 if two changes of the attention outputs have one direction, 0 if they are orthogonal; means over the upper third of the layers. ";
const KEPT = { all: `Bets stay in this browser; chapters ${FIRST.comparison} and ${FIRST.momentum} ask for them.` }, ASKED = "Bets stay in this browser; chapter 15 shows them.", LOST = "This browser keeps nothing here: bets last as long as this page.";

function extend(root, start, read, change) {
  const keys = asked(start), values = {}, asks = start.about !== "all", frames = root.querySelectorAll(".explorable-panel");
  const controls = root.querySelector(".explorable-controls"), [forget] = controls.querySelectorAll("button"), show = element("button", { type: "button" });
  controls.querySelectorAll("label").forEach((label, i) => {
    const key = [...LISTED, ...NUMBERS][i], frame = frames[keys.indexOf(key)];
    label.remove();
    values[key] = label.querySelector(".explorable-number");
    label.querySelector("input, select").setAttribute("aria-label", `your bet: ${QUESTIONS[key].ask}`);
    label.querySelector("span + select")?.previousSibling.remove(); // the longest choice needs the room
    if (asks && frame) frame.append(element("div", { className: "explorable-controls", style: "width:0;min-width:100%" }, label)); // no wider than the panel
  });
  root.querySelector(".explorable-panels").after(controls);
  if (asks) controls.prepend(show);
  forget.textContent = "Forget my bets";
  const bets = (state) => keys.filter((key) => !none(state[key])), closed = (state) => bets(state).some((key) => !opened(state, key));
  forget.addEventListener("click", () => change({ ...Object.fromEntries(keys.map((key) => [key, null])), shown: [] }));
  show.addEventListener("click", () => change({ shown: closed(read()) ? bets(read()) : [] }));
  root.addEventListener("click", ({ target }) => {
    const { key, choice } = target.closest?.("[data-choice]")?.dataset ?? {};
    if (key && asks) change({ [key]: choice });
  });

  let keeps, recalling = false; // what is recalled comes trait by trait: nothing is kept before the last
  const recall = (otherwise, found = kept()) => {
    recalling = true;
    if (found) change(Object.fromEntries(keys.map((key) => [key, admits(key, found[key]) ? found[key] : otherwise[key] ?? null])));
    recalling = false;
  };
  recall(start);
  for (const event of ["pageshow", "storage"]) // back on this page, or a bet in another tab
    addEventListener(event, function again() { root.isConnected ? recall({}) : removeEventListener(event, again); });

  return (state) => {
    if (!recalling) keeps = keep(state);
    root.querySelector(".explorable-hint").textContent = HINT + (state.about === "momentum" ? "" : COSINE) + (keeps ? KEPT[state.about] ?? ASKED : LOST);
    for (const key of NUMBERS) values[key].hidden = none(state[key]); // a screen reader hears "none yet" of the slider
    show.hidden = !bets(state).length;
    show.textContent = closed(state) ? "Show the results now" : "Hide the results";
  };
}

export default explorable({
  question: "What do you expect, and what was found?", hint: HINT, panels, describe, extend,
  traits: ["about", ...ALL, "shown", "results"],
  lists: () => LISTED.map((key) => [key, "your bet", [[null, "choose"], ...Object.entries(QUESTIONS[key].choices)]]),
  sliders: NUMBERS.map((key) => slider(key, "your bet", [0, 1, 0.01], (bet) => (none(bet) ? "none yet" : fixed(bet)), Number, (bet) => bet ?? 0)),
});
