import assert from "node:assert/strict";
import test from "node:test";
import * as module from "#explorables/similarity_explorer.js";
import { close, fixture } from "./support.mjs";

const { data, cases, floors, floorOf, spearman } = fixture("similarity_explorer");
const START = { data, task: "sst2", measure: "sim_aou", normalised: true, control: "none", against: "untrained", seed: -1 };
const stateOf = (key) => ({ ...START, measure: key === "sim_aou_raw" ? "sim_aou" : key, normalised: key !== "sim_aou_raw" });
const near = (actual, expected, tolerance) => close(actual, expected, tolerance / Math.max(1, ...expected.map(Math.abs)));

test("curves are Python's to three digits", () => {
  for (const { control, measure, curve } of cases) {
    const own = module.curve(stateOf(measure), control), all = [...own.layers, own.mean];
    if (!curve) { assert.ok(all.every(([v]) => isNaN(v))); continue; }
    near(all.map(([v]) => v), curve.mean, 0.000501);
    near(all.map(([, h]) => h), curve.half, 0.000501);
  }
});

test("a single seed is that of Python, where it is kept", () => {
  for (const { control, measure, first } of cases.filter(({ control }) => control === "none")) {
    const own = module.curve(stateOf(measure), control, 0);
    near(own.layers.map(([v]) => v), first, 0.000501);
    near([own.mean[0]], [first.reduce((a, b) => a + b) / first.length], 0.000501);
    assert.deepEqual(own.seeds, [0]);
  }
  assert.equal(module.curve(START, "ascent", 0).seeds.length, 2, "all seeds, where single ones are not kept");
});

test("floors are those of the measure", () => {
  for (const [key, name] of Object.entries(floorOf)) {
    const { lines } = module.floors(stateOf(key), "none"), expected = name ? [floors[name]] : [];
    if (key === "sim_aou") expected.unshift(floors.sim_aou_noise);
    assert.equal(lines.length, expected.length);
    lines.forEach(([, , values], i) => near(values, expected[i], 0.000501));
  }
  const kept = module.floors(START, "ascent").lines;
  assert.deepEqual(kept.map(([name]) => name), ["noise value"], "the others are kept for two conditions only");
  assert.deepEqual(module.floors(START, "flipped-context").lines, []);
});

test("rank correlations are scipy's", () => {
  for (const [values, rho] of spearman) close(module.spearman(values), rho, 1e-12);
  assert.equal(module.spearman([NaN, 1, NaN, 2]), 1);
});

test("what is not there says why", () => {
  assert.equal(module.reasonAgainst(START, "none"), "");
  assert.equal(module.reasonAgainst(START, "flipped-context"), "not computed yet");
  assert.equal(module.reasonAgainst(START, "random-direction"), "not part of the study");
  assert.equal(module.curve(START, "flipped-context"), null);
  assert.doesNotMatch(module.default.still({ ...START, control: "flipped-context" }), / d="(MZ?)?"/);
  const offered = Object.fromEntries(module.choices(START).map(([trait, , options]) => [trait, options]));
  assert.deepEqual(offered.control.map(([value, , disabled]) => [value, disabled]), [["none", false], ["untrained", false], ["ascent", false], ["flipped-context", true]]);
  assert.deepEqual(offered.seed.map(([value]) => value), [-1, 0, 1, 2, 3, 4]);
  assert.ok(module.choices({ ...START, measure: "sim_am" })[2][2].every(([, text, disabled]) => disabled && text.includes("SimAOU only")));
});
