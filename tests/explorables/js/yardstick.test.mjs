import assert from "node:assert/strict";
import test from "node:test";
import explorable, { parts, yardstick } from "#explorables/yardstick.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const { states, measured } = fixture("yardstick");

test("the parts of a change have length 1, and the shared one squared is the cosine of two changes", () => {
  for (const alike of [0, 0.3, 0.71, 0.94, 1]) {
    const [shared, special] = parts(alike);
    close(Math.hypot(shared, special), 1, 1e-12);
    close(shared ** 2, alike, 1e-12);
  }
});

test("the default is the yardstick of the tables", () => {
  close(yardstick(states[0]), measured, 2e-3);
});

test("every state has a picture that says it in words", () => {
  for (const state of states) {
    checkPicture(explorable, state);
    assert.ok(explorable.describe(state).includes(yardstick(state).toFixed(3)));
  }
});

test("an update fits in a frame", () => {
  assert.ok(quickest((i) => explorable.still(states[i % states.length])) < FRAME);
});
