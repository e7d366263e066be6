import assert from "node:assert/strict";
import test from "node:test";
import explorable, * as module from "#explorables/noise_value.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const { cases, expectations } = fixture("noise_value");

test("agrees with Python", () => {
  for (const { state, normalised, raw, noise_value } of cases) {
    const own = module.simulated(state);
    close(own.each.map((pair) => pair.normalised), normalised, 1e-8);
    close(own.each.map((pair) => pair.raw), raw);
    close(own.closed, noise_value);
  }
});

test("the curve is the expectation that Python integrates", () => {
  for (const { ratio, dimension, value } of expectations) close(module.expected(ratio, dimension), value, 1e-4);
});

test("many dimensions: 1/4 at the square root of 3, 1/2 at last", () => {
  close(module.manyDimensions(Math.sqrt(3)), 0.25, 1e-12);
  close(module.manyDimensions(1e9), 0.5, 1e-8);
  close(module.expected(1.3, 100000), module.manyDimensions(1.3), 1e-4);
});

test("the default state shows the answer", () => {
  const { normalised, raw, closed } = module.simulated({ ratio: Math.sqrt(3), dimension: 512, seed: 0 });
  assert.ok(Math.abs(closed - 0.25) < 0.002 && Math.abs(normalised - 0.25) < 0.01 && Math.abs(raw) < 0.02);
});

test("every state has a picture", () => {
  for (const dimension of [2, 3, 1024]) for (const ratio of [0.1, 1, 9, 10]) for (const seed of [0, 2 ** 31 - 1]) checkPicture(explorable, { ratio, dimension, seed });
});

test("an update fits in a frame", () => {
  explorable.still({ ratio: 1, dimension: 1024, seed: 0 });
  assert.ok(quickest((i) => explorable.still({ ratio: 1 + i / 100, dimension: 1024, seed: 0 })) < FRAME, "the ratio moves");
  assert.ok(quickest((i) => explorable.still({ ratio: 1, dimension: 1000 + i % 25, seed: 0 })) < FRAME, "the dimension changes");
});
