// Two changes, each of a shared and a special part: how much of their similarity is special to the examples.

import { SMALL, WIDTH, arrow, axes, colour, entry, group, line, panel, path, plane, rect, words } from "./drawing.js";
import { explorable, slider } from "./frame.js";
import { fixed } from "./numbers.js";

// A change of length 1 of which another one on other examples shares the squared length `agreement`: its two parts
export const parts = (alike) => [Math.sqrt(alike), Math.sqrt(1 - alike)];
export const yardstick = ({ contexts, trainings, own }) => own * parts(contexts)[1] * parts(trainings)[1];

const share = (value) => fixed(value, 2), small = (value) => fixed(value, 3);

function describe(state) {
  const fall = yardstick(state), [, , high] = state.falls.both;
  return `The similarity of two contexts is ${share(state.contexts)}, of two training runs ${share(state.trainings)}. If the special parts were as similar as the whole changes, other examples would lower the similarity ` +
    `of ${share(state.own)} by ${small(fall)}. Measured in the GPT, with both swapped: at most ${fixed(high, 4)}.`;
}

const H = 350, P = /* @__PURE__ */ plane({ left: 30, top: 40, width: 240, height: 240, x: [0, 1], y: [0, 1] });

function partsPanel({ contexts, trainings }) {
  const change = (alike, role, name, at) => {
    const [x, y] = parts(alike), tip = [P.X(x), P.Y(y)];
    return group(colour(role),
      line(...tip, tip[0], P.Y(0), { "stroke-dasharray": "3 3" }), line(...tip, P.X(0), tip[1], { "stroke-dasharray": "3 3" }),
      arrow(P.X(0), P.Y(0), ...tip), words(P.X(0), 326 + 17 * at, name, { "font-size": 12, "font-weight": 600 }));
  };
  const quarter = Array.from({ length: 31 }, (_, k) => [P.X(Math.cos((k * Math.PI) / 60)), P.Y(Math.sin((k * Math.PI) / 60))]);
  return panel("A change: what is shared, what is special", H,
    axes(P, [0, 1], ["shared with other examples", "special to these examples"]),
    path(`M${quarter.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`, { "stroke-opacity": 0.25 }),
    change(contexts, "context", `context: √C = ${share(parts(contexts)[0])}, √(1 − C) = ${share(parts(contexts)[1])}`, 0),
    change(trainings, "training", `training: √F = ${share(parts(trainings)[0])}, √(1 − F) = ${share(parts(trainings)[1])}`, 1));
}

const LEAST = -0.02, MOST = 0.2, LEFT = 8, RIGHT = 304;
const X = (value) => LEFT + ((Math.min(MOST, Math.max(LEAST, value)) - LEAST) / (MOST - LEAST)) * (RIGHT - LEFT);

function fallsPanel(state) {
  const fall = yardstick(state), { own, falls } = state;
  const row = (y, name, number, ...marks) => entry(0, y, name, number) + group({}, line(LEFT, y + 20, RIGHT, y + 20, { "stroke-opacity": 0.2 }), ...marks);
  const point = ([mean, low, high], y) => group(colour("ink"), rect(X(low), y + 18, Math.max(1.5, X(high) - X(low)), 4), rect(X(mean) - 3, y + 15, 6, 10));
  return panel("The fall with other examples", H,
    entry(0, 48, "similarity on the same examples, s", share(own)),
    entry(0, 70, "times √(1 − C) √(1 − F)", small(parts(state.contexts)[1] * parts(state.trainings)[1])),
    row(104, "expected, if the examples mattered", small(fall), group(colour("slate"), rect(X(0), 116, Math.max(1.5, X(fall) - X(0)), 16, { "fill-opacity": 0.75 }))),
    row(164, "measured, context swapped", small(falls.context[0]), point(falls.context, 164)),
    row(224, "measured, both swapped", small(falls.both[0]), point(falls.both, 224)),
    [0, 0.05, 0.1, 0.15, 0.2].map((t) => line(X(t), 256, X(t), 261) + words(X(t), 274, t ? fixed(t, 2) : "0", { ...SMALL, "text-anchor": "middle" })),
    words(WIDTH, 294, "fall of the similarity; bars: 95 %", { ...SMALL, "text-anchor": "end" }));
}

export default explorable({
  question: "How far would the similarity fall with other examples, if the examples mattered?",
  hint: "Both arrows have length 1. Two changes on different examples have the shared part in common and the special part not, so their cosine is the square of the shared part. " +
    "Move C and F. The measured falls are those of the GPT and do not move.",
  traits: ["contexts", "trainings", "own", "falls"],
  sliders: [
    slider("contexts", "C, two contexts", [0, 1, 0.01], share),
    slider("trainings", "F, two training runs", [0, 1, 0.01], share),
    slider("own", "s, same examples", [0, 1, 0.01], share),
  ],
  panels: (state) => [partsPanel(state), fallsPanel(state)],
  describe,
});
