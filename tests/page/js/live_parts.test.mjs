import assert from "node:assert/strict";
import test from "node:test";
import { clip, titled } from "#page/live_parts.js";

test("what fits stays, and what is cut is cut between characters", () => {
  assert.equal(clip("“Paris”", 114), "“Paris”");
  assert.equal(clip("i".repeat(20), 114), "i".repeat(20));
  assert.ok(clip("W".repeat(20), 114).length < 10);
  for (const room of [20, 40, 60, 80]) assert.ok(clip("🙂".repeat(20), room).isWellFormed());
});

test("a title keeps its end", () => {
  assert.ok(titled("Next after “", "W".repeat(99), " →” (earlier)").endsWith("… →” (earlier)"));
});
