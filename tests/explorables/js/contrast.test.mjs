import assert from "node:assert/strict";
import test from "node:test";
import explorable, { changes, cosine, cosines } from "#explorables/contrast.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const known = fixture("contrast"), states = known.map(({ state }) => state);

test("both cosines are Python's", () => {
  for (const { state, similarity, contrast } of known) {
    const its = cosines(state);
    close([its.similarity, its.contrast], [similarity, contrast], 1e-12);
  }
});

test("what all four share falls out of the contrasts, and exchanging the trainings turns their cosine", () => {
  for (const state of states) {
    const { contrast } = cosines(state);
    close(cosines({ ...state, shared: 0.3 }).contrast, contrast, 1e-9);
    close(cosines({ ...state, exchanged: !state.exchanged }).contrast, -contrast, 1e-9);
  }
  const [first] = states;
  assert.ok(cosines({ ...first, shared: 1.6 }).similarity > cosines(first).similarity + 0.1);
});

test("points that coincide have no direction, and every state has a picture that says both cosines", () => {
  assert.equal(cosine([0, 0], [1, 0]), 0);
  const same = { ...states[0], points: Array(4).fill([0.5, 0.5]) };
  for (const state of [...states, same]) {
    checkPicture(explorable, state);
    const { similarity, contrast } = cosines(state);
    for (const value of [similarity, contrast]) assert.ok(explorable.describe(state).includes(Math.abs(value).toFixed(2)));
  }
});

test("the exchange moves no point, only its lesson", () => {
  const [c_A, c_B, f_A, f_B] = changes(states[0]);
  assert.deepEqual(changes({ ...states[0], exchanged: true }), [c_A, c_B, f_B, f_A]);
});

test("an update fits in a frame", () => {
  assert.ok(quickest((i) => explorable.still(states[i % states.length])) < FRAME);
});
