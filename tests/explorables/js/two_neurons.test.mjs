import assert from "node:assert/strict";
import test from "node:test";
import explorable, * as module from "#explorables/two_neurons.js";
import { uniforms } from "#explorables/random.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const cases = fixture("two_neurons");

test("agrees with Python", () => {
  for (const { state, errors, update, W, weights, prediction } of cases) {
    close(module.errorSignals(state), errors);
    close(module.gradientDescentUpdate(errors, state.inputs), update);
    close(module.attentionWeights(state), weights);
    const result = module.predictions(state);
    close(result.W, W);
    close(result.step, prediction);
    close(result.attention, prediction);
  }
});

function* states(count) {
  const uniform = uniforms(2), pair = () => [4 * uniform() - 2, 4 * uniform() - 2];
  for (let i = 0; i < count; i++) {
    const rows = () => Array.from({ length: 1 + (i % 4) }, pair);
    yield { inputs: rows(), targets: rows(), query: pair(), learning_rate: uniform(), initial_weights: [pair(), pair()] };
  }
}

test("step and attention are equal, and the text says so", () => {
  for (const state of states(300)) {
    const { step, attention } = module.predictions(state);
    close(step, attention, 1e-13);
    assert.match(explorable.describe(state), /They are equal/);
  }
});

test("every state has a picture", () => {
  for (const state of states(50)) checkPicture(explorable, state);
  const zero = [[0, 0], [0, 0]];
  checkPicture(explorable, { inputs: zero, targets: zero, query: [0, 0], learning_rate: 0, initial_weights: zero });
});

test("an update fits in a frame", () => {
  const list = [...states(25)];
  assert.ok(quickest((i) => explorable.still(list[i])) < FRAME);
});
