import assert from "node:assert/strict";
import test from "node:test";
import explorable, * as module from "#explorables/ladder.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const states = fixture("ladder");

test("the drawing keeps the shares: tip and attention are as far apart as is missed", () => {
  for (const share of [0, 0.2, 0.58, 0.83, 1]) {
    const [a, b] = module.tip(share);
    close(Math.hypot(1 - a, b), share, 1e-12);
    close(a * (1 - a) - b * b, 0, 1e-12); // at its best scale, what is missed is orthogonal to the step
  }
});

test("every rung has a picture, and its text says what is stored", () => {
  for (const state of states) {
    checkPicture(explorable, state);
    const text = explorable.describe(state), [, middle] = module.here(state);
    assert.ok(text.startsWith(`Rung ${state.rung} of 5`));
    assert.ok(text.includes(module.percent(middle)));
    assert.equal(text.includes("returns what attention returns"), state.rung < 4);
  }
});

test("the picture shows all rungs whichever is chosen", () => {
  for (const state of states) {
    const picture = explorable.still(state);
    for (let at = 0; at < 6; at++) {
      assert.ok(picture.includes(`data-rung="${at}"`));
      assert.ok(picture.includes(module.percent(module.here(state, at)[1])));
    }
  }
});

test("an update fits in a frame", () => {
  assert.ok(quickest((i) => explorable.still(states[i % states.length])) < FRAME);
});
