// Six rungs from a linear layer to a real GPT: how much of attention's output the layer after a gradient step misses.

import { SMALL, WIDTH, arrow, badge, colour, diamond, group, line, panel, path, rect, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed } from "./numbers.js";

const SUB = "₁₂₃₄", PAIRS = [["France", "Paris"], ["Italy", "Rome"], ["Egypt", "Cairo"], ["China", "Beijing"]];

// What a rung adds, what attention and the step compute there, and what the hollow mark stands for. `value` and `key`
// are those of demonstration i.
const RUNGS = [
  { name: "A linear layer that starts at zero", value: (i) => `η y${i}`, key: (i) => `x${i}`,
    attention: "Σ eᵢ (xᵢ · q)", step: "ΔW q,  ΔW = Σ eᵢ xᵢᵀ",
    why: "keys are inputs, values are error signals: the two sums are one sum with other brackets", other: "" },
  { name: "Its weights are not zero", value: (i) => `η (y${i} − W₀x${i})`, key: (i) => `x${i}`,
    attention: "W₀ q + Σ eᵢ (xᵢ · q)", step: "(W₀ + ΔW) q,  eᵢ = η (yᵢ − W₀xᵢ)",
    why: "a value must hold the error signal: the label minus what the old weights predict", other: "values hold labels, not error signals" },
  { name: "Input and label are two tokens", value: (i) => `e${i}`, key: (i) => `x${i}, copied`,
    attention: "W₀ q + Σ eᵢ (xᵢ · q)", step: "(W₀ + ΔW) q",
    why: "a head below must copy the input into the label's token", other: "no head copies: the label's key is unrelated" },
  { name: "Keys share a direction c", value: (i) => `e${i}`, key: (i) => `x${i} + c`,
    attention: "W₀ q + Σ eᵢ ((xᵢ + c) · q)", step: "(W₀ + ΔW) q,  ΔW = Σ eᵢ (xᵢ + c)ᵀ",
    why: "linear attention changes with c, and so does the step, if c is part of the input", other: "the step learns from inputs without c" },
  { name: "Softmax", value: (i) => `e${i}`, key: (i) => `x${i} + c`,
    attention: "Σ pᵢ vᵢ,  p = softmax(k · q)", step: "(W₀ + ΔW) q",
    why: "softmax averages, and c cancels; the step is a sum, and c stays", other: "mean value kept, keys centred" },
  { name: "Real heads of a GPT", value: () => "4 values v", key: () => "4 keys k",
    attention: "Σ pᵢ vᵢ,  p = softmax(k · q / √d)", step: "(W_ZSL + ΔW_ICL) q",
    why: "all of this at once, with the numbers of SmolLM2-135M for this prompt", other: "mean value kept, keys centred" },
];

export const here = ({ rung, rungs }, at = rung) => rungs.here[at];
export const other = ({ rung, rungs }, at = rung) => rungs.other[at];
export const sample = ({ rung, rungs }, at = rung) => (at === 5 ? `${rungs.heads} heads` : `${rungs.draws.toLocaleString("en")} draws`);
export const percent = (share) => `${fixed(100 * share, 0)}\u00a0%`;
const quartiles = ([low, , high], n) => `quartiles ${percent(low)} to ${percent(high)}, ${n}`;

// The tip of the step's output at its best scale, where attention's is (1, 0): what is missed is the distance between them.
export const tip = (share) => [1 - share ** 2, Math.sqrt(1 - share ** 2) * share];

function describe(state) {
  const { rung, rungs } = state, [, middle] = here(state), all = rungs.here.map(([, each]) => percent(each)).join(", ");
  const is = middle === 0 ? "returns what attention returns" : `misses ${percent(middle)} of what attention returns (${quartiles(here(state), sample(state))})`;
  const hollow = RUNGS[rung].other && ` Where the ${rung > 3 ? "form is changed" : "condition fails"} (${RUNGS[rung].other}), ${percent(other(state)[1])} is missed.`;
  return `Rung ${rung} of 5, ${RUNGS[rung].name}: the layer after one gradient step, at its best scale, ${is}.${hollow} From the lowest rung to the highest, it misses ${all}.`;
}

const H = 352, ROW = 48, LEFT = 34, RIGHT = 256, X = (share) => LEFT + share * (RIGHT - LEFT), right = { "text-anchor": "end" };
const yOf = (at) => 48 + ROW * (5 - at);

function ladderPanel(state) {
  const row = (at) => {
    const y = yOf(at), [low, middle, high] = here(state, at), now = at === state.rung, mark = RUNGS[at].other && X(other(state, at)[1]);
    return group({ "data-rung": at, style: "cursor:pointer" },
      rect(1, y - 20, WIDTH - 2, 43, { rx: 5, "fill-opacity": now ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": now ? 0.8 : 0 }),
      words(LEFT, y - 5, RUNGS[at].name, { "font-size": 12, ...(now ? { "font-weight": 600 } : {}) }),
      rect(LEFT, y + 3, RIGHT - LEFT, 12, { "fill-opacity": 0.07 }),
      group(colour("ink"), rect(LEFT, y + 3, Math.max(1.5, X(middle) - LEFT), 12, { "fill-opacity": 0.4 })),
      high > 0 ? group({ "stroke-width": 1.5 }, line(X(low), y + 9, X(high), y + 9), [low, high].map((end) => line(X(end), y + 6, X(end), y + 12))) : "",
      mark ? group(colour("slate"), diamond(mark, y + 9, 6)) : "",
      words(WIDTH - 8, y + 14, percent(middle), { ...right, "font-weight": 600, "font-size": 14 }));
  };
  const at = [0, 1, 2, 3, 4, 5], foot = yOf(0) + 22;
  return panel("Share of attention's output that is missed", H,
    at.map(row),
    [10, 22].map((x) => line(x, yOf(5) - 14, x, foot, { "stroke-width": 1.5, "stroke-opacity": 0.35 }) + line(x, yOf(state.rung) + 4, x, foot, { "stroke-width": 2.5 })),
    at.map((k) => badge(16, yOf(k) + 4, k, 9)),
    words(LEFT, foot + 15, "0", SMALL), words(X(1), foot + 15, "100 %", { "text-anchor": "middle", ...SMALL }),
    group(colour("slate"), diamond(X(0.36), foot + 11, 5)), words(X(0.36) + 10, foot + 15, "the other case", SMALL));
}

const MONO = { "font-family": "monospace", "font-size": 12 }, small = { "font-size": 12 }, bold = { "font-weight": 600 };

function rungPanel(state) {
  const { rung, rungs } = state, its = RUNGS[rung], real = rung === 5, two = rung >= 2, y = (place) => 60 + 20 * place;
  const box = (x, at, text) => rect(x, at - 12, 7.3 * text.length + 6, 17, { rx: 3, "fill-opacity": 0, stroke: "currentColor", "stroke-opacity": 0.5 }) + words(x + 3, at + 1, text, MONO);
  const text = ([x, label], i) => (two ? [box(0, y(i), x), box(62, y(i), `-> ${label}`)] : words(0, y(i), `${x} -> ${label}`, MONO));
  const hook = (i) => (rung === 2 ? group(colour("key"), path(`M56 ${y(i) - 13}q16 -7 30 0`, { "stroke-width": 1.5 }), path(`M86 ${y(i) - 13}l-5 -4l-1 5Z`, { fill: "currentColor" })) : "");
  const head = (x, word, role) => words(x, 36, word, { ...small, ...bold, ...colour(role) });
  const row = (pair, i) => [
    text(pair, i), hook(i),
    group(colour("value"), words(158, y(i), its.value(SUB[i]), small)), group(colour("key"), words(258, y(i), its.key(SUB[i]), { ...small, ...(rung === 2 ? SMALL : {}) })),
  ];
  const [, share] = here(state), length = 190, from = [24, share === 0 ? 256 : 326], [a, b] = tip(share), to = [from[0] + length * a, from[1] - length * b];
  const end = [from[0] + length, from[1]], middle = [(to[0] + end[0]) / 2, (to[1] + end[1]) / 2];
  return panel(`Rung ${rung}: ${its.name}`, H,
    head(158, "value", "value"), head(258, "key", "key"), words(0, 36, real ? "four tokens each" : "demonstrations", SMALL),
    PAIRS.map(row), words(0, y(4), "Japan ->", MONO), group(colour("query"), words(258, y(4), "query q", small)),
    line(0, 154, WIDTH, 154, { "stroke-opacity": 0.4 }),
    words(0, 172, "attention", { ...small, ...bold, ...colour("ink") }), words(70, 172, its.attention, small),
    words(0, 191, "the step", { ...small, ...bold, ...colour("training") }), words(70, 191, its.step, small),
    words(0, 214, share === 0 ? "The two outputs are one arrow." : `Outputs, the step's at its best scale${real ? ", median head" : ""}:`, { ...small, "fill-opacity": 0.9 }),
    share === 0 ? "" : group(colour("ink"), line(...to, ...end, { "stroke-width": 2, "stroke-dasharray": "4 3" }),
      words(middle[0] + 10, middle[1] - 6, `missed: ${percent(share)}`, { ...small, ...bold })),
    group(colour("ink"), arrow(...from, ...end), words(end[0] + 6, end[1] + 4, "attention", small)),
    share === 0
      ? group(colour("training"), arrow(from[0], from[1] - 5, end[0], end[1] - 5), words(end[0] + 6, end[1] - 12, "the step", small))
      : group(colour("training"), arrow(...from, ...to), words(to[0] - 4, Math.max(236, to[1] - 8), "the step", { ...small, "text-anchor": a < 0.2 ? "start" : "end" })));
}

function extend(root, start, read, change) {
  root.addEventListener("click", ({ target }) => {
    const row = target.closest?.("[data-rung]");
    if (row) change({ rung: +row.dataset.rung });
  });
}

export default explorable({
  question: "How much of what attention does is a gradient step?",
  hint: "Choose a rung with the slider, or click it. Each rung adds one thing that is true of GPT; the conditions of the rungs below are met. " +
    "Missed: the distance between the two outputs, as a share of attention's, after the step's output is multiplied by the best number, of either sign. " +
    "Bars: medians; thin lines: quartiles. Rungs 0 to 4: random vectors whose logits have the spread and the shared part of the median real head.",
  traits: ["rung", "rungs"],
  sliders: [slider("rung", "rung", [0, 5, 1], String)],
  panels: (state) => [ladderPanel(state), rungPanel(state)],
  describe, extend,
  answers: (state) => [
    ["because", RUNGS[state.rung].why],
    ["◇ the other case", RUNGS[state.rung].other ? `${RUNGS[state.rung].other}: ${percent(other(state)[1])}` : "none on this rung"],
    ["note", note(state)],
  ],
});

function note({ rung, rungs }) {
  const [layer, head, its] = rungs.chosen, [above, below] = rungs.signs;
  return [
    "brackets: (e xᵀ) q = e (x · q)",
    `in these draws W₀xᵢ is about ${fixed(rungs.spread, 1)} times as long as eᵢ`,
    "a head that looks one token back can do it",
    `c · q is ${fixed(rungs.shared, 2)} times the spread of the logits, of either sign`,
    `${percent(above)} in the median draw with c · q above zero, ${percent(below)} with it below: softmax cannot tell them apart`,
    `layer ${layer}, head ${head}, which adds most to Tokyo by what it reads in the demonstrations: ${percent(its)}`,
  ][rung];
}
