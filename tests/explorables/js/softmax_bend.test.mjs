import assert from "node:assert/strict";
import test from "node:test";
import explorable, * as module from "#explorables/softmax_bend.js";
import { uniforms } from "#explorables/random.js";
import { FRAME, checkPicture, close, fixture, quickest } from "./support.mjs";

const { cases, uniform_numbers, default_seed } = fixture("softmax_bend");

test("the generator gives Python's numbers", () => {
  const uniform = uniforms(default_seed);
  assert.deepEqual(uniform_numbers.map(() => uniform()), uniform_numbers);
});

test("agrees with Python", () => {
  for (const { state, data, outputs, errors, effective_tokens } of cases) {
    const own = module.example(state);
    for (const name in data) close(own[name], data[name]);
    for (const name in outputs) close(module.outputs(state)[name], outputs[name]);
    for (const name in errors) close(module.errors(state)[name], errors[name]);
    close(module.effectiveTokens(state), effective_tokens);
  }
});

test("the spread is the one asked for", () => {
  const { queries, keys } = module.example({ spread: 1.7, tokens: 32, seed: 5 });
  for (const query of queries) {
    const l = module.logits(query, keys), centre = l.reduce((a, b) => a + b) / l.length;
    close(Math.sqrt(l.reduce((sum, l_i) => sum + (l_i - centre) ** 2, 0) / l.length), 1.7);
  }
});

test("centred linear attention bends last: its error is of second order, the mean's of first", () => {
  const at = (spread) => module.errors({ spread, tokens: 64, seed: default_seed });
  const [small, twice] = [at(0.01), at(0.02)];
  assert.ok(Math.abs(twice.centred / small.centred - 4) < 0.2);
  assert.ok(Math.abs(twice.mean / small.mean - 2) < 0.1);
});

test("the default seed is nearest to the medians of 60", () => {
  const median = (a) => [...a].sort((x, y) => x - y)[a.length >> 1];
  const places = [16, 32, 64, 128].flatMap((tokens) => [0.25, 0.5, 1, 2].map((spread) => ({ tokens, spread })));
  const names = ["scaled", "mean", "centred", "features"], seeds = Array.from({ length: 60 }, (_, seed) => seed);
  const logs = seeds.map((seed) => places.flatMap((place) => {
    const error = module.errors({ ...place, seed });
    return names.map((name) => Math.log(error[name]));
  }));
  const middle = logs[0].map((_, j) => median(logs.map((row) => row[j])));
  const distance = logs.map((row) => Math.max(...row.map((v, j) => Math.abs(v - middle[j]))));
  assert.equal(distance.indexOf(Math.min(...distance)), default_seed);
});

test("percentages are short", () => {
  assert.deepEqual([0.0123, 0.0996, 0.5, 12345.6].map(module.percent), ["1.2\u00a0%", "10\u00a0%", "50\u00a0%", "1,234,560\u00a0%"]);
});

test("every state has a picture", () => {
  for (const tokens of [4, 11, 128]) for (const spread of [0.125, 0.3, 4]) for (const seed of [0, 2 ** 31 - 1]) checkPicture(explorable, { spread, tokens, seed });
});

test("an update fits in a frame", () => {
  explorable.still({ spread: 1, tokens: 128, seed: default_seed });
  assert.ok(quickest((i) => explorable.still({ spread: 0.2 + i / 10, tokens: 128, seed: default_seed })) < FRAME, "the spread moves");
  assert.ok(quickest((i) => explorable.still({ spread: 0.5, tokens: 100 + i, seed: default_seed })) < FRAME, "the tokens change");
});
