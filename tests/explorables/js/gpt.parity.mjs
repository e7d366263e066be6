// Run by tests/explorables/test_in_context_regression.py, which writes what PyTorch computes with the same weights.
import assert from "node:assert/strict";
import test from "node:test";
import { gptPredictions, parseWeights } from "#explorables/gpt.js";
import { FRAME, close, fixture, quickest } from "./support.mjs";

const { models } = fixture("gpt");

test("agrees with PyTorch", () => {
  for (const { page, cases } of Object.values(models)) {
    const weights = parseWeights(page);
    for (const { examples, queries, predictions } of cases) close(gptPredictions(weights, page.config, examples, queries), predictions, 1e-4);
  }
});

test("a query sees the examples and no other query", () => {
  const { page, cases } = models.random, weights = parseWeights(page), { examples, queries } = cases.at(-1);
  const alone = queries.map((query) => gptPredictions(weights, page.config, examples, [query])[0]);
  assert.deepEqual(gptPredictions(weights, page.config, examples, queries), alone);
  assert.deepEqual(gptPredictions(weights, page.config, examples, [...queries].reverse()), alone.reverse());
});

test("a line of 61 queries fits in a frame", () => {
  const { page } = models.gpt_line, weights = parseWeights(page);
  const examples = Array.from({ length: 12 }, (_, i) => [[i / 3 - 2, 1], i / 5]), queries = Array.from({ length: 61 }, (_, i) => [i / 15 - 2, 1]);
  assert.ok(quickest(() => gptPredictions(weights, page.config, examples, queries), 100) < FRAME);
});
