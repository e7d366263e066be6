import assert from "node:assert/strict";
import test from "node:test";
import explorable, * as module from "#explorables/real_head.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const cases = fixture("real_head");
const start = cases.find(({ state }) => state.shift === 0);

test("agrees with Python", () => {
  for (const { state, shares, soft, linear, rate, cosine, nats, length } of cases) {
    close(module.shares(state), shares);
    close(module.softmaxChange(state), soft);
    close(module.linearChange(state), linear);
    close(module.rate(state), rate);
    close(module.cosine(state), cosine);
    close(module.towardsTokyo(state), nats);
    close(module.stepLength(state), length);
  }
});

test("softmax stands still, the update does not", () => {
  for (const { state } of cases) {
    assert.ok(module.moved(state) < 1e-12);
    close(module.softmaxChange(state), module.softmaxChange(start.state), 1e-12);
    if (state.shift) assert.ok(Math.abs(module.cosine(state) - start.cosine) > 0.01);
  }
});

test("the tip of the update moves along a line", () => {
  const tip = (shift) => module.drawn({ ...start.state, shift }).step, [a, b, c] = [-4, -1, 2].map(tip);
  close([(a[0] + c[0]) / 2, (a[1] + c[1]) / 2], b, 1e-12);
  close(module.drawn(start.state).soft, [1, 0], 1e-3);
});

test("every state has a picture and says its numbers", () => {
  for (const { state, cosine } of cases) {
    checkPicture(explorable, state);
    assert.match(explorable.describe(state), new RegExp(`cosine with softmax's change is ${cosine < 0 ? "−" : ""}${Math.abs(cosine).toFixed(2)}`));
  }
});

test("an update fits in a frame", () => {
  assert.ok(quickest((i) => explorable.still(cases[i % cases.length].state)) < FRAME);
});
