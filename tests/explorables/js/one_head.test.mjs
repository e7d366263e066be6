import assert from "node:assert/strict";
import test from "node:test";
import explorable, * as module from "#explorables/one_head.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const { cases, default: start } = fixture("one_head");

test("agrees with Python", () => {
  for (const { state, zero_shot, update, softmax, linear, inner, gap } of [...cases, ...start]) {
    close(module.zeroShot(state), zero_shot);
    close(module.update(state), update);
    close(module.inner(state), inner);
    close(module.bySoftmax(state), softmax);
    close(module.bySum(state), linear);
    close(module.gap(state), gap);
    close(module.output({ ...state, attention: "linear" }), linear);
    close(module.output({ ...state, attention: "softmax" }), softmax);
  }
});

test("sum and matrix are equal, and the text says so", () => {
  for (const { state } of cases) {
    close(module.byMatrix(state), module.bySum(state), 1e-13);
    assert.match(explorable.describe({ ...state, attention: "linear" }), /They are equal/);
    assert.match(explorable.describe({ ...state, attention: "softmax" }), /% of the softmax output/);
  }
});

test("the matrix of the demonstrations does not know the query, softmax weights do", () => {
  for (const { state } of cases.slice(1, 5)) {
    const other = { ...state, query: [1, -1] };
    assert.deepEqual(module.update(other), module.update(state));
    assert.notDeepEqual(module.weights({ ...other, attention: "softmax" }), module.weights({ ...state, attention: "softmax" }));
  }
});

test("without demonstrations the head repeats the country, with four it says the capital", () => {
  for (const attention of ["linear", "softmax"]) {
    const answers = start.map(({ state }) => module.answer(module.output({ ...state, attention })));
    assert.deepEqual(answers, ["Japan", "Japan", "Tokyo", "Tokyo", "Tokyo"]);
  }
});

test("what is looked at is in the prompt", () => {
  const { state } = start[2];
  assert.deepEqual([0, 1, 2, 3, 4].map((token) => module.looked({ ...state, token })), [0, 1, 2, 2, 2]);
});

test("every state has a picture", () => {
  for (const { state } of [...cases, ...start]) {
    for (const attention of ["linear", "softmax"]) for (const token of [0, 1, 4]) checkPicture(explorable, { ...state, attention, token });
  }
  const zero = Array.from({ length: 5 }, () => [0, 0]);
  checkPicture(explorable, { ...start[4].state, token_keys: zero, token_values: zero, query: [0, 0] });
});

test("an update fits in a frame", () => {
  assert.ok(quickest((i) => explorable.still(cases[i % cases.length].state)) < FRAME);
});
