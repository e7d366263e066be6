// What Python computed for the modules to agree with (see tests/explorables/test_explorables.py), and what all tests ask.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const fixture = (name) => JSON.parse(readFileSync(join(process.env.EXPLORABLES_FIXTURES, `${name}.json`), "utf8"));

// Milliseconds: one frame of the screen is 16, and a machine may be four times slower than the one it was written on.
export const FRAME = 4 * 16;

export function close(actual, expected, tolerance = 1e-9) {
  const [a, b] = [[actual].flat(Infinity), [expected].flat(Infinity)];
  assert.equal(a.length, b.length);
  const size = Math.max(1, ...b.map(Math.abs));
  a.forEach((a_i, i) => assert.ok(Math.abs(a_i - b[i]) <= tolerance * size, `entry ${i}: ${a_i}, expected ${b[i]}`));
}

// The quickest of several runs, in milliseconds of the processor: a busy machine is slow, not wrong.
export function quickest(action, times = 25) {
  let best = Infinity;
  for (let i = 0; i < times; i++) {
    const before = process.cpuUsage();
    action(i);
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1000);
  }
  return best;
}

export function checkPicture({ still, describe }, state) {
  const picture = still(state), result = describe(state);
  for (const text of [picture, result]) assert.doesNotMatch(text, /NaN|undefined|Infinity|null|\[object/);
  assert.doesNotMatch(picture, / id=|href|url\(/, "two instances on a page would share it");
  assert.ok(picture.includes(`aria-label="${result}"`), "the still says its result in words");
}
