import assert from "node:assert/strict";
import test from "node:test";
import { clip, hasParts, isolated, named, spoken, titled } from "#page/live_parts.js";

test("what fits stays, and what is cut is cut between characters", () => {
  assert.equal(clip("“Paris”", 114), "“Paris”");
  assert.equal(clip("i".repeat(20), 114), "i".repeat(20));
  assert.ok(clip("W".repeat(20), 114).length < 10);
  for (const room of [20, 40, 60, 80]) assert.ok(clip("🙂".repeat(20), room).isWellFormed());
});

test("a title keeps its end", () => {
  assert.ok(titled("Next after “", "W".repeat(99), " →” (earlier)").endsWith("… →” (earlier)"));
});

test("no character is cut, however many code points it has", () => {
  for (const one of ["👩🏽‍🔬", "🇨🇳", "e\u0301", "क्षि"]) for (const room of [20, 40, 60, 80]) assert.match(clip(one.repeat(20), room), new RegExp(`^(?:${one})*…$`, "u"));
});

test("a text from right to left is isolated, and no other", () => {
  for (const text of ["قطة", "שלום", "a قطة", "\u202eabc"]) assert.equal(isolated(text), `\u2068${text}\u2069`);
  for (const text of ["cat", "猫", "👩🏽‍🔬", "café", ""]) assert.equal(isolated(text), text);
  assert.equal(named(" قطة"), "“\u2068قطة\u2069”");
  assert.equal(titled("After “", "قطة", "” →"), "After “\u2068قطة\u2069” →");
});

test("a part of a character is named by its bytes, and spoken of as a part", () => {
  const rows = [
    [" Paris", "“Paris”", "“Paris”"], [" 冷", "“冷”", "“冷”"], ["\n", "end of line", "end of line"], [" ", "a space", "a space"],
    ["  ", "2 spaces", "2 spaces"], ["\n\n ", "“⏎⏎␣”", "“⏎⏎␣”"], ["\t", "“⇥”", "“⇥”"], ["\u00a0", "“U+00A0”", "“U+00A0”"],
    [" E586·", "E586·", "the first 2 of 3 bytes of a character"], ["E5·· (冷)", "E5·· (冷)", "the first of 3 bytes of “冷”"],
    ["F09F98· (😀)", "F09F98· (😀)", "the first 3 of 4 bytes of “😀”"], ["…B7", "…B7", "the last bytes of a character"],
    ["D8· (ق)", "\u2068D8· (ق)\u2069", "the first of 2 bytes of “\u2068ق\u2069”"], ["FACE", "“FACE”", "“FACE”"], ["·", "“·”", "“·”"],
  ];
  for (const [token, name, words] of rows) assert.deepEqual([named(token), spoken(token), hasParts([[token]])], [name, words, /E5|F09|…B|D8/.test(token)]);
});
