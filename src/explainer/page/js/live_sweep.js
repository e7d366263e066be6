// Exact match after k demonstrations: right ones, with shuffled answers, and of another task. Stored counts, or those of the
// model in the page, which come one by one.

import { DIAMOND, SMALL, SQUARE, WIDTH, colour, group, line, marker, panel, path, plane, through, words } from "#explorables/drawing.js";
import { element, explorable } from "#explorables/frame.js";
import { modelRow } from "./model_row.js";
import { wilson } from "./live_parts.js";

const KINDS = [["right", "right answers", "context"], ["shuffled", "shuffled answers", "slate"], ["foreign", "another task", "stone"]];
const MARKS = { right: "M0-4A4 4 0 0 1 0 4A4 4 0 0 1 0-4Z", shuffled: SQUARE, foreign: DIAMOND };
const SIZES = [10, 20, 30]; // queries

const percent = (p) => `${Math.round(100 * p)}`;
const last = (counts) => Math.min(...KINDS.map(([kind]) => counts[kind].length)) - 1; // the largest k that every curve has

function describe({ found: { task, n, counts } }) {
  const k = last(counts);
  if (k < 0) return `The sweep over ${n} queries of ${task} begins.`;
  const [low, high] = wilson(counts.right[k], n).map(percent);
  return `${task}, ${n} queries: without demonstrations the model writes ${counts.right[0]} answers word for word. After ${k} right demonstrations it writes ` +
    `${counts.right[k]} (95 % interval: ${low} to ${high} %), after ${k} with shuffled answers ${counts.shuffled[k]}, and after ${k} of another task ${counts.foreign[k]}.`;
}

const AREA = plane({ left: 44, top: 40, width: 264, height: 190, x: [-0.5, 16.5], y: [0, 1] });

function grid({ X, Y, left, top, width, height }) {
  return [
    [0, 0.5, 1].map((y) => [line(left, Y(y), left + width, Y(y), { "stroke-opacity": y ? 0.15 : 0.6 }), words(left - 6, Y(y) + 4, `${percent(y)} %`, { "text-anchor": "end", ...SMALL })]),
    [0, 4, 8, 12, 16].map((k) => words(X(k), top + height + 15, k, { "text-anchor": "middle", ...SMALL })),
    words(left + width, top + height + 31, "demonstrations k", { "text-anchor": "end", ...SMALL }),
  ];
}

function curve({ n, counts }, [kind, , role], i) {
  const points = counts[kind].map((x, k) => [AREA.X(k + 0.16 * (i - 1)), AREA.Y(x / n)]);
  const whisker = (x, k) => line(points[k][0], AREA.Y(wilson(x, n)[0]), points[k][0], AREA.Y(wilson(x, n)[1]), { "stroke-opacity": 0.35 });
  return group(colour(role), counts[kind].map(whisker), points.length ? path(through(points), { "stroke-width": 1.5 }) : "", points.map(([x, y]) => marker(MARKS[kind], x, y, true)));
}

function numbers({ n, counts }) {
  const k = last(counts), right = { "text-anchor": "end" };
  const row = ([kind, name, role], i) => {
    const at = 48 + 56 * i, x = counts[kind][k], [low, high] = k < 0 ? [0, 0] : wilson(x, n);
    return [
      group(colour(role), marker(MARKS[kind], 8, at - 4, true)), words(24, at, name), words(WIDTH, at, k < 0 ? "" : `${x} of ${n}`, { ...right, "font-weight": 600 }),
      words(WIDTH, at + 18, k < 0 ? "" : `95 % interval: ${percent(low)} to ${percent(high)} %`, { ...right, ...SMALL }),
    ];
  };
  return panel(k < 0 ? "No point is complete yet" : `Word for word right at k = ${k}`, 290, KINDS.map(row));
}

const panels = ({ found }) => [panel(`Exact match: ${found.task}, ${found.n} queries`, 290, grid(AREA), KINDS.map((kind, i) => curve(found, kind, i))), numbers(found)];

const stored = ({ lessons }, task) => ({ task, n: lessons[task].queries.length, counts: lessons[task].counts, made: "computed with Python and stored with the book" });

function runner(root, start, read, change, widget) {
  let running = 0, since, mine;
  const quiet = () => {
    const focused = root.getRootNode().activeElement === stop;
    running = 0;
    [run.hidden, stop.hidden] = [false, true];
    if (focused) run.focus(); // a button that hides would take the focus with it
  };
  const model = modelRow((data) => {
    if (data.ended) return quiet();
    if (!running || data.sweep !== running) return;
    if (data.stopped) model.say("The sweep stopped, because this page asked something else.");
    if (data.failed) model.say(data.failed);
    if (data.done || data.failed) return quiet();
    const { found } = read(), kind = KINDS[data.curve][0], right = data.exact.filter(Boolean).length;
    mine = { ...found, counts: { ...found.counts, [kind]: [...found.counts[kind], right] }, made: `computed ${model.place}, ${Math.round((performance.now() - since) / 1000)} s` };
    change({ found: mine });
  }, widget);
  const button = (textContent, onclick, hidden) => element("button", { type: "button", textContent, onclick, hidden, style: "margin:0" });
  const size = element("select", {}, ...SIZES.map((n) => element("option", { textContent: n, value: n })));
  const run = button("Run it", () => {
    const { task, lessons } = read(), { pattern, curves, queries } = lessons[task], n = +size.value, id = model.number();
    since = performance.now();
    if (!model.ask({ sweep: id, pattern, curves: KINDS.map(([kind]) => curves[kind]), queries: queries.slice(0, n) })) return model.decline("Load the model to run it here.");
    running = id;
    mine = { task, n, counts: { right: [], shuffled: [], foreign: [] }, made: `being computed ${model.place}` };
    change({ found: mine });
    [run.hidden, stop.hidden] = [true, false];
    stop.focus();
  });
  const halt = () => {
    model.ask({ sweep: 0 });
    quiet();
  };
  const stop = button("Stop", () => {
    halt();
    model.say("Stopped. The curves end where you stopped them.");
  }, true);
  root.querySelector("button").addEventListener("click", () => { size.value = SIZES[0]; }); // Reset, the one button so far
  const controls = root.querySelector(".explorable-controls");
  controls.before(model.node); // which has controls of its own
  controls.append(element("label", {}, element("span", { textContent: "queries" }), size), run, stop);
  let shown = start.task;
  return (state) => {
    if (running && state.found !== mine) halt(); // Reset has put back what was stored
    if (state.task === shown) return;
    shown = state.task;
    change({ found: stored(state, shown) });
  };
}

export default explorable({
  question: "How many demonstrations does the model need, and must their answers be right?",
  hint: "The stored curves were computed with Python. Load the model and run the sweep yourself: the counts come one k after the other.",
  traits: ["task", "found", "lessons"],
  panels, describe,
  lists: ({ lessons }) => [["task", "task", Object.keys(lessons).map((name) => [name, name])]],
  answers: ({ found }) => [["these counts were", found.made]],
  extend: runner,
});
