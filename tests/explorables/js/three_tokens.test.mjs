import assert from "node:assert/strict";
import test from "node:test";
import explorable, * as module from "#explorables/three_tokens.js";
import { uniforms } from "#explorables/random.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

test("agrees with Python", () => {
  for (const { logits, weights, softmax, linear, ...state } of fixture("three_tokens")) {
    close(module.logits({ ...state, attention: "softmax" }), logits);
    close(module.weights({ ...state, attention: "softmax" }), weights);
    close(module.output({ ...state, attention: "softmax" }), softmax);
    close(module.output({ ...state, attention: "linear" }), linear);
  }
});

function* states(count) {
  const uniform = uniforms(3), pair = () => [4 * uniform() - 2, 4 * uniform() - 2];
  for (let i = 0; i < count; i++) {
    const rows = () => [pair(), pair(), pair()];
    yield { token_keys: rows(), token_values: rows(), query: pair(), attention: i % 2 ? "linear" : "softmax" };
  }
}

test("the text says what the weights sum to", () => {
  for (const state of states(100)) {
    const total = module.weights(state).reduce((a, b) => a + b);
    if (state.attention === "softmax") close(total, 1, 1e-13);
    assert.match(explorable.describe(state), state.attention === "softmax" ? /together 1\./ : /Without softmax/);
  }
});

test("every state has a picture", () => {
  for (const state of states(50)) checkPicture(explorable, state);
  const zero = [[0, 0], [0, 0], [0, 0]];
  for (const attention of ["softmax", "linear"]) checkPicture(explorable, { token_keys: zero, token_values: zero, query: [0, 0], attention });
});

test("an update fits in a frame", () => {
  const list = [...states(25)];
  assert.ok(quickest((i) => explorable.still(list[i])) < FRAME);
});
