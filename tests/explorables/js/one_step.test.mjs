import assert from "node:assert/strict";
import test from "node:test";
import explorable, * as module from "#explorables/one_step.js";
import { uniforms } from "#explorables/random.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const cases = fixture("one_step");

test("agrees with Python", () => {
  for (const { state, W_1, values, attention } of cases) {
    close(module.gradientStep(state.points, state.learning_rate), W_1);
    close(module.errorSignals(state.points, state.learning_rate), values);
    close(module.attend(state.points, state.learning_rate, state.query), attention);
    close(module.predictions(state).step, W_1 * state.query);
  }
});

function* states(count) {
  const uniform = uniforms(1), number = () => 4 * uniform() - 2;
  for (let i = 0; i < count; i++) {
    yield { points: Array.from({ length: 1 + (i % 8) }, () => [number(), number()]), learning_rate: 1.5 * uniform(), query: number() };
  }
}

test("step and attention are equal, and the text says so", () => {
  for (const state of states(300)) {
    const { step, attention } = module.predictions(state);
    close(step, attention, 1e-13);
    close(module.contributions(state.points, state.learning_rate, state.query).reduce((a, b) => a + b), attention, 1e-13);
    assert.match(explorable.describe(state), /They are equal/);
  }
});

test("every state has a picture", () => {
  for (const state of states(50)) checkPicture(explorable, state);
  checkPicture(explorable, { points: [[0, 0], [0, 0]], learning_rate: 0, query: 0 });
  checkPicture(explorable, { points: [[2, 2]], learning_rate: 1.5, query: -2 });
});

test("an update fits in a frame", () => {
  const list = [...states(25)];
  assert.ok(quickest((i) => explorable.still(list[i])) < FRAME);
});
