// Learn a made-up rule from sixteen lines before GPT does. Then move the attention of ten heads, and its answers follow.

import { SMALL, WIDTH, colour, group, line, panel, rect, words } from "./drawing.js";
import { element, explorable, slider } from "./frame.js";
import { fixed } from "./numbers.js";

const DOSES = [0, 20, 50, 100];
const best = (values) => values.indexOf(Math.max(...values));
const right = ({ rule }, i) => rule.queries[i][1];
const done = ({ rule, answers }) => answers.length === rule.queries.length;
const whole = (state) => state.shown || done(state);
const open = (state, i) => state.shown || i < state.answers.length;

// The labels that GPT and the vote give to each word, and GPT's probabilities
export function answered({ rule, target, dose }) {
  const { p, votes } = dose ? rule.moved[dose][target] : rule.plain;
  return { p, gpt: p.map(best), vote: votes.map(best) };
}

export const score = (state, answers) => answers.filter((label, i) => label === right(state, i)).length;
export const alike = (state, { gpt, vote } = answered(state)) => gpt.map((label, i) => label !== right(state, i) && label === vote[i]);

// The result of what is open, sentence by sentence; the rule itself only at the end
function told(state) {
  const { rule, answers, target, dose } = state, { gpt, vote } = answered(state), n = state.shown ? gpt.length : answers.length;
  const known = gpt.slice(0, n), errors = n - score(state, known);
  const [draws, share] = rule.draws, endings = rule.endings.map(([end, label]) => `-${end} → ${rule.labels[label]}`);
  return [
    ...(answers.length ? [`You: ${score(state, answers)} of ${answers.length} right.`] : []),
    ...(n ? [`GPT: ${score(state, known)} of ${n} right, vote: ${score(state, vote.slice(0, n))} of ${n}.`,
      `Errors of GPT: ${errors}, shared by the vote: ${alike(state).slice(0, n).filter(Boolean).length}.`] : []),
    ...(n && dose ? [`${dose} % moved to ${rule.labels[target]}: GPT answers it to ${known.filter((label) => label === target).length} of ${n} words.`] : []),
    ...(whole(state) ? [...(dose ? [] : [`Over ${draws} draws GPT answers ${fixed(100 * share, 0)} of 100 right.`]), `The rule: ${endings.join(", ")}`] : []),
  ];
}

function describe(state) {
  const { rule: { labels, queries }, answers } = state, { p, gpt, vote } = answered(state), asked = answers.length;
  const row = ([word], i) => `${word} → ${labels[right(state, i)]}: ${i < asked ? `you ${labels[answers[i]]}, ` : ""}` +
    `GPT ${labels[gpt[i]]} (${fixed(100 * p[i][gpt[i]], 0)} %), vote ${labels[vote[i]]}.`;
  const rows = queries.map(row), next = done(state) || state.shown ? [] : [`Word ${asked + 1} of ${queries.length}: ${queries[asked][0]} →`];
  return [...(whole(state) ? rows : rows.slice(0, asked).slice(-1)), ...told(state), ...next].join(" ");
}

const HEIGHT = 340;

function linesPanel(state) {
  const { rule: { lines, labels, queries }, answers } = state, [word] = queries[answers.length] ?? [];
  return panel("Sixteen lines of a made-up rule", 232,
    lines.map(([each, label], i) => words(166 * (i >> 3), 38 + 18 * (i % 8), `${each} → ${labels[label]}`, { "font-size": 13 })),
    rect(1, 182, WIDTH - 2, 46, { rx: 5, "fill-opacity": 0.06, stroke: "currentColor", "stroke-opacity": 0.5 }),
    words(10, 210, word ? `Word ${answers.length + 1} of ${queries.length}` : "All words are answered", { "font-size": 12 }),
    word ? words(110, 211, `${word} → ?`, { "font-size": 17, "font-weight": 600 }) : "");
}

const TOP = 54, ROW = 24, CELL = 31, X = 127, YOU = 91, VOTE = 267, tick = (is) => (is ? "✓" : "✗");

function answersPanel(state) {
  const { rule: { labels, queries }, answers, target, dose } = state, { p, gpt, vote } = answered(state), shared = alike(state);
  const cell = (i, c) => {
    const [x, y] = [X + CELL * c, TOP + ROW * i], its = gpt[i] === c;
    return [
      group(colour("context"), rect(x, y, CELL - 3, ROW - 6, { "fill-opacity": 0.5 * p[i][c], ...(its ? { stroke: "currentColor", "stroke-width": 2 } : {}) })),
      c === right(state, i) ? line(x, y + ROW - 3.5, x + CELL - 3, y + ROW - 3.5, { "stroke-width": 2.5 }) : "",
      words(x + CELL / 2 - 1.5, y + 13, fixed(100 * p[i][c], 0), { ...SMALL, "text-anchor": "middle", ...(its ? { "font-weight": 600 } : {}) }),
    ];
  };
  const row = ([word], i) => {
    const y = TOP + ROW * i + 13, ok = right(state, i), small = (x, text) => words(x, y, text, { "font-size": 12 });
    return [
      i === answers.length && !state.shown ? rect(0, y - 16, WIDTH, ROW, { "fill-opacity": 0.08 }) : "", small(2, word),
      i < answers.length ? words(YOU, y, `${labels[answers[i]]} ${tick(answers[i] === ok)}`, SMALL) : "",
      open(state, i) ? [labels.map((_, c) => cell(i, c)), small(X + 4 * CELL, tick(gpt[i] === ok)), small(VOTE, `${labels[vote[i]]} ${tick(vote[i] === ok)}`), shared[i] ? small(306, "=") : ""] : "",
    ];
  };
  const head = (x, text, more) => words(x, TOP - 8, text, { ...SMALL, ...more });
  return panel("Eight new words", HEIGHT, head(YOU, "you"), head(VOTE, "vote"),
    words(X, TOP - 22, dose ? `GPT, %; ▼ ${dose} % moved here` : "GPT: probability, %", SMALL),
    labels.map((label, c) => head(X + CELL * c + CELL / 2 - 1.5, dose && c === target ? `▼ ${label}` : label, { "text-anchor": "middle", "font-weight": dose && c === target ? 600 : 400 })),
    queries.map(row), told(state).map((text, i) => words(2, TOP + ROW * queries.length + 16 + 17 * i, text, { "font-size": 12, "font-weight": /^(You|GPT)/.test(text) ? 600 : 400 })));
}

function extend(root, start, read, change) {
  const { labels, lines } = start.rule, answer = (label) => { if (!done(read())) change({ answers: [...read().answers, label] }); };
  const buttons = labels.map((label, i) => element("button", { type: "button", textContent: `${i + 1} ${label}`, onclick: () => answer(i) }));
  const spoken = element("p", { className: "explorable-status", textContent: lines.map(([word, label]) => `${word} → ${labels[label]}`).join(", ") });
  const controls = root.querySelector(".explorable-controls");
  root.querySelector(".explorable-panel").append(spoken, element("div", { className: "explorable-controls", style: "gap:.4rem;margin-top:.5rem" }, ...buttons));
  root.addEventListener("keydown", ({ key, altKey, ctrlKey, metaKey }) => {
    if (!altKey && !ctrlKey && !metaKey && labels[key - 1]) answer(key - 1);
  });
  const show = element("button", { type: "button", onclick: () => change({ shown: !read().shown }) });
  controls.lastElementChild.before(show);
  root.querySelector(".explorable-panels").after(controls); // what is moved is moved after the answers
  return (state) => {
    show.textContent = state.shown ? "Hide the answers" : "Show all answers";
    show.hidden = done(state);
    for (const button of buttons) {
      button.setAttribute("aria-disabled", done(state)); // and keeps the focus
      button.style.opacity = done(state) ? 0.5 : 1;
    }
  };
}

export default explorable({
  question: "Sixteen lines of a made-up rule: do you learn it better than GPT?",
  hint: "Label each word by a button, then also by the keys 1 to 4; GPT’s answer appears beside yours. Framed: GPT’s answer. Underlined: the right one. " +
    "Vote: the label whose lines get most attention from ten heads, chosen on other draws. =: the vote makes GPT’s error. At the end, move part of that attention to the lines of one label.",
  traits: ["answers", "shown", "target", "dose", "rule"],
  lists: ({ rule }) => [["target", "move attention to", rule.labels.map((label, i) => [i, label])]],
  sliders: [slider("dose", "how much of it", [0, DOSES.length - 1, 1], (dose) => `${dose} %`, (at) => DOSES[at], (dose) => DOSES.indexOf(dose))],
  panels: (state) => [linesPanel(state), answersPanel(state)],
  printed: { shown: true }, describe, extend,
});
