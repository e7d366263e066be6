// The product e_1 x_1^T x with both ways of placing the brackets: its steps leave what they make, so the last shows all.
// After a step towards it, copies of the numbers that something is made of move to where it appears, once.

import { dot, matvec, outer, scale } from "./algebra.js";
import { WIDTH, badge, colour, group, panel, path, rect, words } from "./drawing.js";
import { element, explorable, slider } from "./frame.js";
import { fixed } from "./numbers.js";

const STEPS = [
  "The brackets hold e₁ and x₁ᵀ", "e₁ x₁ᵀ becomes a matrix, ΔW", "ΔW is multiplied by x",
  "The product again: the brackets move", "x₁ᵀ x becomes one number, the weight", "e₁ times the weight is the same vector",
];
export const LAST = STEPS.length, MILLISECONDS = 1200;

const CELL = 24, HIGH = 20, UPPER = 110, LOWER = 234; // of a number; the middles of the two rows
const written = (v) => (Math.abs(v) % 1 === 0.5 ? fixed(Math.trunc(v), 0).replace(/^0$/, v < 0 ? "−" : "") + "½" : fixed(v, v % 1 ? 2 : 0));
const list = (a) => `(${a.map(written).join(", ")})`;

// The numbers of a vector or matrix, which appears in a step: their names and places, and of which others each is made
const grid = (name, step, x, middle, rows, role, of = () => []) => rows.flatMap((row, r) => row.map((value, c) =>
  ({ name: `${name}${r}${c}`, step, x: x + CELL * c, y: middle + HIGH * (r - rows.length / 2), value, role, of: of(r, c) })));
const tall = (a) => a.map((v) => [v]);

export function cells({ e_1, x_1, x }) {
  const W = outer(e_1, x_1), weight = dot(x_1, x);
  const of = (from) => (r, c) => [`${from}${r}${c}`], across = (name) => x.map((_, c) => `${name}0${c}`), down = (name) => x.map((_, r) => `${name}${r}0`);
  const bracket = (name, step, x, middle, from) => ({ name, step, x, y: middle - 34, turn: name[0] === "(" ? -8 : 8, of: from });
  return [
    grid("e", 1, 12, UPPER, tall(e_1), "value"), grid("k", 1, 46, UPPER, [x_1], "key"), grid("q", 1, 128, UPPER, tall(x), "query"),
    bracket("(", 1, 9, UPPER, []), bracket(")", 1, 121, UPPER, []),
    grid("W", 2, 180, UPPER, W, "slate", (r, c) => [`e${r}0`, `k0${c}`]),
    grid("Q", 3, 256, UPPER, tall(x), "query", of("q")),
    grid("a", 3, 296, UPPER, tall(matvec(W, x)), "ink", (r) => [...x.map((_, c) => `W${r}${c}`), ...down("q")]),
    grid("E", 4, 12, LOWER, tall(e_1), "value", of("e")), grid("K", 4, 46, LOWER, [x_1], "key", of("k")), grid("X", 4, 128, LOWER, tall(x), "query", of("q")),
    bracket("(moved", 4, 43, LOWER, ["("]), bracket(")moved", 4, 155, LOWER, [")"]),
    grid("s", 5, 222, LOWER, [[weight]], "ink", () => [...across("K"), ...down("X")]),
    grid("F", 6, 180, LOWER, tall(e_1), "value", of("E")), grid("b", 6, 296, LOWER, tall(scale(weight, e_1)), "ink", (r) => [`E${r}0`, "s00"]),
  ].flat();
}

const drawn = ({ name, x, y, value, role, turn }) => group({ "data-part": name }, turn
  ? path(`M${x} ${y}Q${x + turn} ${y + 34} ${x} ${y + 68}`, { "stroke-width": 2.5 })
  : [group(colour(role), rect(x + 1, y, CELL - 2, HIGH, { "fill-opacity": role === "ink" ? 0.13 : 0.3 })), words(x + CELL / 2, y + 14, written(value), { "text-anchor": "middle" })]);

// Names and signs: the step in which each appears, its place, its text
const MARKS = [UPPER, LOWER].flatMap((middle, i) => [[1, 24, "e₁"], [1, 82, "x₁ᵀ"], [1, 140, "x"]].map(([step, x, text]) => [step + 3 * i, x, middle - 40, text]))
  .concat([[2, 170, UPPER + 4, "="], [2, 216, UPPER - 40, "ΔW"], [3, 268, UPPER - 40, "x"], [3, 288, UPPER + 4, "="]],
    [[5, 234, LOWER - 40, "weight"], [6, 170, LOWER + 4, "="], [6, 192, LOWER - 40, "e₁"], [6, 213, LOWER + 4, "×"], [6, 284, LOWER + 4, "="]]);

function product(state) {
  const shown = ({ step }) => step <= state.step, heading = (y, text) => words(0, y, text, { "font-size": 12, "font-weight": 600 });
  return panel("Two ways to place the brackets", LOWER + 38,
    heading(46, "Gradient descent: first the matrix"), state.step > 3 ? heading(170, "Attention: first the comparison") : "",
    MARKS.filter(([step]) => step <= state.step).map(([, x, y, text]) => words(x, y, text, { "text-anchor": "middle" })), cells(state).filter(shown).map(drawn),
    state.step === LAST ? path(`M305 ${UPPER + 40}v44M311 ${UPPER + 40}v44`, { "stroke-width": 1.5 }) : "");
}

const steps = ({ step }) => panel("Step by step", 36 + 30 * LAST, STEPS.map((text, i) =>
  group(i < step ? {} : { opacity: 0.65 }, badge(12, 42 + 30 * i, i + 1, i + 1 === step ? 11 : 9), words(32, 46 + 30 * i, text, i + 1 === step ? { "font-weight": 700 } : {}))));

function describe({ step, e_1, x_1, x }) {
  const W = outer(e_1, x_1), weight = dot(x_1, x);
  const result = [`${list(e_1)} × ${list(x_1)}`, `its rows are ${W.map(list).join(" and ")}`, list(matvec(W, x)), "e₁ (x₁ᵀ x)", written(weight), list(scale(weight, e_1))];
  return `Step ${step} of ${LAST}. ${STEPS[step - 1]}: ${result[step - 1]}.`;
}

// Copies of what something is made of move there, down or up and then across, where it appears
function move(root, { name, x, y, of }, places) {
  const its = root.querySelector(`[data-part="${name}"]`);
  its.animate({ opacity: [0, 0, 1] }, MILLISECONDS);
  for (const from of of) {
    const copy = root.querySelector(`[data-part="${from}"]`).cloneNode(true), [dx, dy] = [x - places[from].x, y - places[from].y];
    copy.removeAttribute("data-part");
    its.parentNode.append(copy);
    copy.animate({ transform: ["none", `translate(0px, ${dy}px)`, `translate(${dx}px, ${dy}px)`] }, { duration: MILLISECONDS, easing: "ease-in-out" }).onfinish = () => copy.remove();
  }
}

export default explorable({
  question: "How does a gradient step become attention when a pair of brackets moves?",
  hint: "e₁ is the error signal, x₁ the past input, x the present one. Replay shows the first step, and Next what is made of what.",
  traits: ["step", "e_1", "x_1", "x"],
  sliders: [slider("step", "step", [1, LAST, 1], (step) => `${step} of ${LAST}`)],
  panels: (state) => [product(state), steps(state)],
  describe,
  extend: (root, start, read, change) => {
    const button = (textContent, to) => element("button", { type: "button", textContent, style: "margin:0;min-width:5.5rem", onclick: () => change({ step: to(read().step) }) });
    const next = button("", (step) => (step % LAST) + 1);
    root.querySelector(".explorable-controls").prepend(button("Back", (step) => Math.max(1, step - 1)), next);
    let before = start.step;
    return (state) => {
      next.textContent = state.step === LAST ? "Replay" : "Next";
      const all = cells(state), made = all.filter(({ step }) => step > before && step <= state.step), still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      before = state.step;
      if (!still) made.forEach((each) => move(root, each, Object.fromEntries(all.map((one) => [one.name, one]))));
    };
  },
});
