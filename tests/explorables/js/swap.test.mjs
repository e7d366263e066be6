import assert from "node:assert/strict";
import test from "node:test";
import explorable, { LESSONS, column, series, thirds } from "#explorables/swap.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const { states, upper } = fixture("swap");

test("lessons are those of the class, in its order", () => {
  assert.deepEqual(LESSONS.map(([key]) => key), [...new Set(states.map(({ lesson }) => lesson))]);
});

test("every swap has a picture, and its text says the mean of the upper third", () => {
  for (const state of states) {
    checkPicture(explorable, state);
    const mean = thirds(series(state)[0])[2];
    close(mean, upper[column(state.lesson, state.side)], 1e-3);
    assert.ok(explorable.describe(state).includes(mean.toFixed(2)));
  }
});

test("the picture shows all lessons whichever is chosen", () => {
  for (const state of states) for (const [key] of LESSONS) assert.ok(explorable.still(state).includes(`data-lesson="${key}"`));
});

test("an update fits in a frame", () => {
  assert.ok(quickest((i) => explorable.still(states[i % states.length])) < FRAME);
});
