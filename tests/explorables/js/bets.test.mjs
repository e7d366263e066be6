import assert from "node:assert/strict";
import test from "node:test";
import explorable, { QUESTIONS, admits, asked, judged, said, wrap } from "#explorables/bets.js";
import { fixture } from "./support.mjs";

const { starts, states, choices, numbers } = fixture("bets");
const texts = (state) => asked(state).map((key) => said(state, key).join(" "));

test("questions, their order and their choices are those of the class", () => {
  assert.deepEqual(Object.keys(QUESTIONS), [...numbers, ...Object.keys(choices)]);
  for (const key in choices) assert.deepEqual(Object.keys(QUESTIONS[key].choices), choices[key]);
  assert.deepEqual(starts.map((state) => asked(state).length), [4, 2, 6]);
});

test("a page that asks shows no result before the reader wants it", () => {
  for (const state of states.filter(({ about }) => about !== "all")) {
    asked(state).forEach((key, i) => {
      const open = state.shown.includes(key);
      assert.equal(texts(state)[i].includes("Result:"), open);
      assert.equal(texts(state)[i].includes("the answer is in chapter"), !open && state[key] !== null);
    });
    if (!state.shown.length) for (const text of [explorable.still(state), explorable.describe(state)]) assert.doesNotMatch(text, /result|Result/);
  }
});

test("the last page shows every result, with and without a bet", () => {
  for (const state of states.filter(({ about }) => about === "all")) {
    assert.equal(texts(state).filter((text) => text.includes("Result:")).length, 6);
    assert.equal(explorable.describe(state).match(/result/g).length, 6);
    for (const key of numbers) assert.ok(explorable.still(state).includes(`result ${state.results[key][0].toFixed(2)}`));
  }
});

test("bets are marked, and judged by the result", () => {
  const state = { ...starts[2], agreement: 0.6, floor: 0.1, ceiling: starts[2].results.ceiling[0], others: "half", lasting: starts[2].results.lasting.is[0] };
  assert.equal(judged(state, "agreement"), `${(0.6 - state.results.agreement[0]).toFixed(2)} above the result`);
  assert.match(judged(state, "floor"), /below/);
  assert.equal(judged(state, "ceiling"), "as found");
  assert.equal(judged(state, "others"), state.results.others.is.includes("half") ? "as found" : "not what was found");
  assert.equal(judged(state, "lasting"), "as found");
  for (const lowest of state.results.lowest.is) assert.match(judged({ ...state, lowest }, "lowest"), /found$/);
  assert.ok(explorable.still(state).includes("your bet 0.60"));
  assert.doesNotMatch(explorable.describe(state), /lowest loss: your bet/);
});

test("what a browser kept is a bet only if the question admits it", () => {
  for (const key of numbers) {
    for (const good of [0, 0.5, 1]) assert.ok(admits(key, good));
    for (const bad of [-0.1, 1.1, NaN, "0.5", null, undefined, {}]) assert.ok(!admits(key, bad));
  }
  for (const key in choices) {
    for (const good of choices[key]) assert.ok(admits(key, good));
    for (const bad of ["toString", "", null, undefined, 0, {}]) assert.ok(!admits(key, bad));
  }
});

test("lines are no longer than asked, and lose nothing", () => {
  for (const text of states.flatMap(texts).filter(Boolean)) {
    assert.ok(wrap(text).every((line) => line.length <= 46 && line));
    assert.equal(wrap(text).join(" "), text);
  }
});
