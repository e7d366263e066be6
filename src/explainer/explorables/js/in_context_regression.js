// What learners predict from the points (z, y) of a prompt, all from inputs (z, 1); see computed_explorables.py.

import { mean } from "./algebra.js";
import { SMALL, WIDTH, axes, badge, colour, group, line, panel, path, plane, rect, through, words } from "./drawing.js";
import { element, explorable, slider } from "./frame.js";
import { gptPredictions, parseWeights } from "./gpt.js";
import { MINUS, fixed } from "./numbers.js";

const PENALTY = 0.09; // variance of the noise in training: ridge is the Bayes optimum
const RATE = 0.1; // stable below 2 / |S|, and |S| <= 4^2 + 1
const GRID = Array.from({ length: 61 }, (_, i) => (i - 30) / 7.5);

// S = X^T X / n = [[s, z], [z, 1]] and h = X^T y / n = [zy, y]
function moments(points) {
  const of = (f) => mean(points.map((point) => f(...point)));
  return [of((z) => z * z), of((z) => z), of((z, y) => z * y), of((_, y) => y)];
}

// (S + penalty / n) w = h; where S alone is singular, the shortest w
function ridge(points, penalty = PENALTY) {
  const [s, z, zy, y] = moments(points), p = penalty / points.length, determinant = (s + p) * (1 + p) - z * z;
  if (determinant < 1e-12) return [zy / (s + 1), y / (s + 1)];
  return [((1 + p) * zy - z * y) / determinant, ((s + p) * y - z * zy) / determinant];
}

function descent(points, steps) {
  const [s, z, zy, y] = moments(points);
  let [a, b] = [0, 0];
  for (let k = 0; k < steps; k++) [a, b] = [a - RATE * (s * a + z * b - zy), b - RATE * (z * a + b - y)];
  return [a, b];
}

// A h, with the best A for prompts of N points
function linearTransformer(points, N) {
  const [, , zy, y] = moments(points);
  return [zy / (1 + (3 + PENALTY) / N), y / (1 + (1 + PENALTY) / N)];
}

const parsed = new WeakMap();

// Over GRID and at the query
export function predictions({ points, query, steps, gpt }) {
  if (!parsed.has(gpt)) parsed.set(gpt, parseWeights(gpt));
  const zs = [...GRID, query], over = ([a, b]) => zs.map((z) => a * z + b);
  return {
    ridge: over(ridge(points)),
    gpt: gptPredictions(parsed.get(gpt), gpt.config, points.map(([z, y]) => [[z, 1], y]), zs.map((z) => [z, 1])),
    linear: over(linearTransformer(points, gpt.config.examples)),
    ols: over(ridge(points, 0)),
    descent: over(descent(points, steps)),
  };
}

// Between z = -2 and 2; a distance is a root mean square
const slope = (values) => (values[45] - values[15]) / 4;
const distance = (values, best) => Math.sqrt(mean(values.slice(15, 46).map((v, i) => (v - best[15 + i]) ** 2)));

const learner = (name, role, dashes, width = 2) =>
  [name, { ...colour(role), "stroke-dasharray": dashes, "stroke-width": width, "stroke-opacity": width > 2 ? 0.3 : 1 }];
const LEARNERS = {
  ridge: learner("ridge", "ink", "", 8), gpt: learner("small GPT", "ink", "8 4"),
  linear: learner("linear transformer", "slate", "2 3"), ols: learner("least squares", "stone", "12 3 2 3"), descent: learner("gradient steps", "slate", "5 3"),
};

function describe(state) {
  const { points, learners, query } = state, found = predictions(state), [a, b] = ridge(points);
  const off = (name) => distance(found[name], found.ridge);
  const shown = learners.filter((name) => name !== "ridge").sort((p, q) => off(p) - off(q)).map((name) => {
    const own = slope(found[name]), gap = Math.abs(own) - Math.abs(a), lean = gap < -0.1 ? "too flat, " : gap > 0.1 ? "too steep, " : "";
    return `${LEARNERS[name][0]} ${fixed(off(name))} (${lean}slope ${fixed(own)}, predicts ${fixed(found[name][61])})`;
  });
  const outside = points.filter(([z, y]) => z * z > 4 || y * y > 16).length;
  const scatter = Math.sqrt(mean(points.map(([z, y]) => (y - a * z - b) ** 2)));
  return `Ridge, the Bayes optimum: slope ${fixed(a)}, predicts ${fixed(found.ridge[61])} at z = ${fixed(query)}.` +
    (shown[0] ? ` Distance from it, nearest first: ${shown.join("; ")}.` : "") +
    (points.every(([z]) => Math.abs(z * query + 1) < 1e-9) ? " The inputs (z, 1) of all points are orthogonal to that of the query: they say nothing about it." : "") +
    (outside ? ` ${outside} of ${points.length} points ${outside === 1 ? "lies" : "lie"} beyond z = ±2 or y = ±4, as 5 % and 1 % did in training: the GPT may fail.` : "") +
    (scatter > 0.6 ? ` The points scatter by ${fixed(scatter)}, in training by 0.3.` : "");
}

function planeOf({ points, reach }) {
  const high = Math.max(reach, ...points.map(([, y]) => Math.abs(y)));
  return plane({ left: 26, top: 40, width: 284, height: 268, x: [-4, 4], y: [-high, high] });
}

function linesPanel(state, found) {
  const p = planeOf(state), { X, Y, top } = p, at = X(state.query);
  return panel("Points and predicted lines", 340,
    axes(p, [-4, -2, 0, 2, 4], ["input z", "target y"]), p.y[1] < 9 ? "" : [-8, 8].map((t) => words(p.left - 5, Y(t) + 4, fixed(t, 0), { ...SMALL, "text-anchor": "end" })),
    p.inside(
      rect(X(-2), Y(4), 142, Y(-4) - Y(4), { "fill-opacity": 0.06 }), words(100, Y(-4) - 5, "usual in training", SMALL),
      line(at, top, at, top + p.height, { "stroke-dasharray": "1 4" }),
      Object.keys(LEARNERS).filter((name) => state.learners.includes(name)).map((name) =>
        group(LEARNERS[name][1], path(through(GRID.map((z, i) => [X(z), Y(found[name][i])])))))),
    state.points.map(([z, y], i) => badge(X(z), Y(y), i + 1, 8)));
}

function tablePanel(state, found) {
  const right = (x, y, text) => words(x, y, text, { "text-anchor": "end" });
  return panel(`Predictions at z = ${fixed(state.query)}`, 340,
    right(248, 54, "predicts"), right(WIDTH, 54, "distance*"),
    Object.entries(LEARNERS).map(([name, [text, ink]], i) => {
      const y = 86 + 36 * i;
      return [
        state.learners.includes(name) ? group(ink, line(0, y - 4, 34, y - 4)) : "", words(42, y, text),
        right(248, y, fixed(found[name][61])), right(WIDTH, y, fixed(distance(found[name], found.ridge))),
      ];
    }),
    words(0, 284, `* root mean square from ridge, z = ${MINUS}2 to 2`, SMALL));
}

function panels(state) {
  const found = predictions(state);
  return [linesPanel(state, found), tablePanel(state, found)];
}

// Choices below the sliders
function choices(root, { shifts }, read, change) {
  const style = "flex:none;min-width:0";
  const boxes = Object.keys(LEARNERS).map((value) => element("input", {
    type: "checkbox", value, style,
    onchange: ({ target }) => change({ learners: read().learners.filter((name) => name !== value).concat(target.checked ? value : []) }),
  }));
  const button = (textContent, patch) => element("button", { type: "button", textContent, style: "margin:0", onclick: () => change(patch(read())) });
  const row = (...nodes) => element("div", { className: "explorable-controls" }, ...nodes);
  root.querySelector(".explorable-controls").after(
    row("Lines, at most four:", ...boxes.map((box) => element("label", { style }, box, LEARNERS[box.value][0]))),
    row("Points, 2 to 12:", button("add at query", ({ points, query }) => ({ points: [...points, [query, 0]].slice(0, 12) })),
      button("remove last", ({ points }) => ({ points: points.slice(0, Math.max(2, points.length - 1)) })),
      ...Object.entries(shifts).map(([name, patch]) => button(name, () => patch))));
  return ({ learners }) => boxes.forEach((box) => {
    box.checked = learners.includes(box.value);
    box.disabled = !box.checked && learners.length > 3;
  });
}

export default explorable({
  question: "Which learner does a trained transformer resemble, and under which shifts?",
  hint: "Drag a numbered point, or focus it and press arrow keys (Shift: bigger steps).",
  traits: ["points", "query", "steps", "reach", "learners", "gpt", "shifts"],
  sliders: [slider("query", "query z", [-4, 4, 0.1]), slider("steps", "gradient steps", [1, 100, 1], String), slider("reach", "plane to y = ±", [4, 12, 4], String)],
  panels, describe,
  handles: (state) => state.points.map((at, i) => (
    { panel: 0, label: `Point ${i + 1}`, plane: planeOf(state), at, move: (point) => ({ points: state.points.with(i, point) }) })),
  extend: choices,
});
