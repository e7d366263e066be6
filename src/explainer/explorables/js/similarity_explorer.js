// Stored similarities in each layer, beside their floors; similarity_explorer.py gives them in hundredths, a character each.

import { mean } from "./algebra.js";
import { SMALL, colour, group, line, panel, path, plane, rect, tag, through, words } from "./drawing.js";
import { explorable } from "./frame.js";
import { fixed } from "./numbers.js";

const numbers = (hundredths) => [...hundredths].map((c) => (c === "\0" ? NaN : (c.charCodeAt() - 101) / 100));

const MEASURES = { sim_aou: "SimAOU", sim_am: "SimAM", kendall_tau_b: "Kendall τ to the examples" };
const CONDITIONS = {
  none: "the comparison itself", untrained: "untrained model",
  "shuffled-context": "ICL: shuffled answers", "flipped-context": "ICL: wrong labels", "foreign-context": "ICL: another task",
  "reordered-context": "ICL: another order",
  "shuffled-training": "FT: shuffled answers", "flipped-training": "FT: wrong labels", "foreign-training": "FT: another task",
  "other-training": "FT: other examples", "reordered-training": "FT: another order", ascent: "FT: gradient ascent",
  "layer-causal": "FT: layer by layer", "layer-causal-as-long": "FT: layer by layer, as long",
  "random-direction": "FT: random direction", "untrained-layers": "random layers",
};
const conditionName = (control) => CONDITIONS[control] ?? control.replace("-", " ");

const keyOf = ({ measure, normalised }) => (measure === "sim_aou" && !normalised ? "sim_aou_raw" : measure);
const nameOf = ({ measure, normalised }) => (measure === "sim_aou" ? `SimAOU, ${normalised ? "normalised" : "not normalised"}` : MEASURES[measure]);

// Why a condition of a task cannot be shown, or "" if it can.
export function reasonAgainst({ data, task }, control) {
  const found = data.tasks[task]?.[control];
  return typeof found === "object" ? "" : found ?? "not part of the study";
}

// One condition, or null: [value, half-width] per layer and of their mean, and the rank correlation of layer and value
export function curve(state, control) {
  if (!control || reasonAgainst(state, control)) return null;
  const { n, seeds, curves, means } = state.data.tasks[state.task][control], key = keyOf(state);
  const [values, halves] = curves[key].map(numbers), [value, half, trend] = means[key].map((x) => x ?? NaN);
  return { n, seeds, layers: values.map((v, i) => [v, halves[i]]), mean: [value, half], trend };
}

// Floors: lines [name, dash, values per layer]; the largest size of a layer's mean for random directions
export function floors(state, control) {
  const found = state.data.tasks[state.task]?.[control], key = keyOf(state), lines = [];
  if (key === "sim_aou" && found?.noise) lines.push(["noise value", "2 3", numbers(found.noise)]);
  if (found?.floors?.[key]) lines.push([key === "sim_am" ? "before fine-tuning" : "another query's change", "7 2 2 2", numbers(found.floors[key])]);
  return { lines, isotropic: (key === "sim_aou_raw" && found?.isotropic) || NaN };
}

const withInterval = ([v, h]) => (isNaN(v) ? "not measured" : fixed(v, 3) + (isNaN(h) ? "" : ` (${fixed(v - h, 3)} to ${fixed(v + h, 3)})`));
const sample = ({ n, seeds }) => `n = ${n}, ${seeds.length > 5 ? `${seeds.length} seeds` : `seeds ${seeds.join(" ")}`}`;

const shown = (state) => [state.control, state.against].map((control) => ({ control, found: curve(state, control) }));

function describe(state) {
  const { lines, isotropic } = floors(state, state.control);
  const parts = shown(state).filter(({ control }) => control).map(({ control, found }) =>
    `${conditionName(control)}: ${found ? `${withInterval(found.mean)}, ${sample(found)}` : reasonAgainst(state, control)}`);
  const floor = lines.map(([label, , values]) => `${label} ${fixed(mean(values))}`);
  if (!isNaN(isotropic)) floor.push(`random directions at most ${fixed(isotropic, 3)}`);
  return `${nameOf(state)} on ${state.task}, mean over ${state.data.layers} layers: ${parts.join("; ")}.` +
    (floor.length ? ` Floors of the first: ${floor.join("; ")}.` : "");
}

const ROLES = ["ink", "slate", "stone"], DASH = ["none", "6 4"], end = { ...SMALL, "text-anchor": "end" };
const mark = (i, x, y) => (i ? rect(x - 3.5, y - 3.5, 7, 7, { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 1.5 })
  : tag("circle", { cx: x, cy: y, r: 3.5, fill: "currentColor" }));

function curves(state) {
  const L = state.data.layers, both = shown(state), { lines } = floors(state, state.control);
  const layers = both.map(({ found }) => (found?.layers ?? []).map(([v, h], l) => [l, v, h]).filter(([, v]) => !isNaN(v)));
  const all = [0, ...layers.flat().flatMap(([, v, h]) => [v - Math.min(h, 0.2), v + Math.min(h, 0.2)]), ...lines.flatMap(([, , v]) => v)];
  const step = Math.max(...all) - Math.min(...all) > 0.9 ? 0.5 : 0.2, low = Math.floor(Math.min(...all) / step) * step;
  const n = Math.max(1, Math.ceil((Math.max(...all) - low) / step)), ticks = Array.from({ length: n + 1 }, (_, i) => low + i * step);
  const p = plane({ left: 34, top: 104, width: 278, height: 216, x: [-0.5, L - 0.5], y: [low, ticks[n]] }), at = ([l, v]) => [p.X(l), p.Y(v)];
  const legend = (i, dash, text) => [line(0, 28 + 17 * i, 30, 28 + 17 * i, { ...colour(ROLES[i] ?? "ink"), "stroke-width": 2, "stroke-dasharray": dash }), words(36, 32 + 17 * i, text, SMALL)];
  return panel(`${nameOf(state)}, ${state.task}`, 356,
    both.map(({ control, found }, i) => [
      legend(i, DASH[i], !control ? "nothing" : `${conditionName(control)}; ${found ? sample(found) : reasonAgainst(state, control)}`),
      group(colour(ROLES[i]), mark(i, 15, 28 + 17 * i)),
    ]),
    lines.map(([name, dash], i) => legend(2 + i, dash, `floor: ${name}`)),
    ticks.map((t) => line(34, p.Y(t), 312, p.Y(t), { "stroke-opacity": Math.abs(t) < 1e-9 ? 0.7 : 0.15 }) + words(29, p.Y(t) + 4, fixed(t, 1), end)),
    [0, 1, 2, 3].map((i) => Math.round((i * (L - 1)) / 3)).map((l) => words(p.X(l), 334, l + 1, { ...SMALL, "text-anchor": "middle" })),
    words(312, 350, "layer, 1 is next to the input", end),
    p.inside(
      layers.map((points, i) => !points.length ? "" : group(colour(ROLES[i]), path(through([...points.map(([l, v, h]) => [l, v + h]), ...points.map(([l, v, h]) => [l, v - h]).reverse()].map(at)),
        { fill: "currentColor", "fill-opacity": 0.14, "stroke-opacity": 0.45, "stroke-dasharray": DASH[i] }))),
      lines.map(([, dash, values]) => path(through(values.map((v, l) => at([l, v]))), { "stroke-width": 1.8, "stroke-dasharray": dash })),
      layers.map((points, i) => !points.length ? "" : group(colour(ROLES[i]), path(through(points.map(at)), { "stroke-width": 2, "stroke-dasharray": DASH[i] }), points.map((q) => mark(i, ...at(q)))))));
}

function means(state) {
  const { lines, isotropic } = floors(state, state.control);
  const rows = shown(state).flatMap(({ control, found }, i) => (found && !isNaN(found.mean[0]) ? [[conditionName(control), found.mean, i]] : []));
  rows.push(...lines.map(([name, , values]) => [`floor: ${name}`, [mean(values), NaN], 2]), ...(isNaN(isotropic) ? [] : [["floor: random directions, widest layer", [0, isotropic], 2]]));
  const ends = [0, 0.05, ...rows.flatMap(([, [v, h]]) => [Math.max(-1, v - (h || 0)), Math.min(1, v + (h || 0))])];
  const low = Math.min(...ends), X = (v) => 8 + ((Math.min(1, Math.max(-1, v)) - low) / (Math.max(...ends) - low)) * 168, foot = 40 + 52 * rows.length;
  return panel("Mean over the layers", foot + 20, line(X(0), 26, X(0), foot, { "stroke-opacity": 0.5 }), words(X(0), foot + 14, "0", { ...SMALL, "text-anchor": "middle" }),
    rows.map(([name, [v, h], i], r) => {
      const y = 62 + 52 * r;
      return [words(12, y - 16, name), words(312, y + 4, withInterval([v, h]), end), group(colour(ROLES[i]),
        line(X(v - (h || 0)), y, X(v + (h || 0)), y, { "stroke-width": 2 }), i < 2 ? mark(i, X(v), y) : line(X(v), y - 8, X(v), y + 8, { "stroke-width": 3 }))];
    }));
}

// [trait, label, [value, text, whether it is disabled, and then why]]
export function choices(state) {
  const { data, measure } = state, never = measure !== "sim_aou";
  const offered = [...new Set(Object.values(data.tasks).flatMap(Object.keys))].map((name) => [name, reasonAgainst(state, name)])
    .map(([name, why]) => [name, conditionName(name) + (why && ` (${why})`), !!why]);
  return [
    ["task", "task", Object.keys(data.tasks).map((name) => [name, name, false])],
    ["measure", "measure", Object.entries(MEASURES).map(([key, name]) => [key, name, false])],
    ["normalised", "outputs", [[true, "normalised first"], [false, "as they are"]].map(([on, text]) => [on, text + (never ? " (SimAOU only)" : ""), never])],
    ["control", "show", offered],
    ["against", "beside", [["", "nothing", false], ...offered]],
  ];
}

export default explorable({
  question: "Where in the network are the two changes similar, and where does that exceed a floor?",
  hint: "Bands: 95 % intervals over seeds (Student); n: queries. A floor is what the measure gives for unrelated changes.",
  traits: ["data", "task", "measure", "normalised", "control", "against"],
  lists: choices,
  panels: (state) => [curves(state), means(state)],
  describe,
  answers: (state) => {
    const trends = shown(state).map(({ found }) => found?.trend ?? NaN);
    return [["rank correlation of layer and drawn value: shown; beside it", trends.map((r) => (isNaN(r) ? "none" : fixed(r))).join("; ")]];
  },
  extend: (root, { data }) => { root.querySelector(".explorable-hint").append(` ${data.made}`); },
});
