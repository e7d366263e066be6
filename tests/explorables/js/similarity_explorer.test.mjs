import assert from "node:assert/strict";
import test from "node:test";
import * as module from "#explorables/similarity_explorer.js";
import { close, fixture } from "./support.mjs";

const { data, cases, floors, floorOf } = fixture("similarity_explorer");
const START = { data, task: "sst2", measure: "sim_aou", normalised: true, control: "none", against: "untrained" };
const stateOf = (key) => ({ ...START, measure: key === "sim_aou_raw" ? "sim_aou" : key, normalised: key !== "sim_aou_raw" });
const near = (actual, expected, tolerance) => close(actual, expected, tolerance / Math.max(1, ...expected.map(Math.abs)));

test("curves are Python's to two digits, means and rank correlations to three", () => {
  for (const { control, measure, curve } of cases) {
    const { layers, mean, trend } = module.curve(stateOf(measure), control);
    if (!curve) { assert.ok([...layers.map(([v]) => v), mean[0], trend].every(isNaN)); continue; }
    near(layers.map(([v]) => v), curve.mean.slice(0, -1), 0.00501);
    near(layers.map(([, h]) => h), curve.half.slice(0, -1), 0.00501);
    near([...mean, trend], [curve.mean.at(-1), curve.half.at(-1), curve.trend], 0.000501);
  }
});

test("floors are those of the measure", () => {
  for (const [key, name] of Object.entries(floorOf)) {
    const { lines } = module.floors(stateOf(key), "none"), expected = name ? [floors[name]] : [];
    if (key === "sim_aou") expected.unshift(floors.sim_aou_noise);
    assert.equal(lines.length, expected.length);
    lines.forEach(([, , values], i) => near(values, expected[i], 0.00501));
  }
  near([module.floors(stateOf("sim_aou_raw"), "none").isotropic], [Math.max(...floors.sim_aou_raw_isotropic.map(Math.abs))], 0.000501);
  const kept = module.floors(START, "ascent").lines;
  assert.deepEqual(kept.map(([name]) => name), ["noise value"], "the others are kept for two conditions only");
  assert.deepEqual(module.floors(START, "flipped-context").lines, []);
});

test("what is not there says why", () => {
  assert.equal(module.reasonAgainst(START, "none"), "");
  assert.equal(module.reasonAgainst(START, "flipped-context"), "not computed yet");
  assert.equal(module.reasonAgainst(START, "random-direction"), "not part of the study");
  assert.equal(module.curve(START, "flipped-context"), null);
  assert.doesNotMatch(module.default.still({ ...START, control: "flipped-context" }), / d="(MZ?)?"/);
  const offered = Object.fromEntries(module.choices(START).map(([trait, , options]) => [trait, options]));
  assert.deepEqual(offered.control.map(([value, , disabled]) => [value, disabled]), [["none", false], ["untrained", false], ["ascent", false], ["flipped-context", true]]);
  assert.ok(module.choices({ ...START, measure: "sim_am" })[2][2].every(([, text, disabled]) => disabled && text.includes("SimAOU only")));
});
