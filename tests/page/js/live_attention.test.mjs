import assert from "node:assert/strict";
import test from "node:test";
import view, { attentionOf, storedFor } from "#page/live_attention.js";
import { checkPicture, close } from "../../explorables/js/support.mjs";

const pattern = ["", " ->"], demonstrations = [["a", "b"], ["c", "d"]], query = "e";
const found = { of: [pattern, demonstrations, query, []], made: "stored", without: [["x", 0.1]], with: [["y", 0.6]], alone: [0.5, 0.2], attention: [21, 30, [30.5, 90]] };
const hiding = [[[0], [["y", 0.5]], [null, 0.1], [21, 30, [0, 110]]], [[0, 1], [["x", 0.1]], [null, null], [21, 30, [0, 0]]]];
const state = { pattern, demonstrations, query, hidden: [], found, presets: { task: { pattern, demonstrations, query, hidden: [], found, hiding } } };
const hide = (hidden) => { const now = { ...state, hidden }; return { ...now, found: storedFor(now) }; };
const arrows = (its) => [...view.still(its).matchAll(/stroke-width="([\d.]+)" stroke-opacity="0.6"|stroke-dasharray/g)].map(([, wide]) => Number(wide ?? 0));

test("attention is the mean over the heads of the upper third of the layers", () => {
  const layer = (a, b) => [[a, b], [a + 10, b]];
  assert.deepEqual(attentionOf({ looks: [layer(900, 900), layer(900, 900), layer(100, 300)] }), [3, 3, [105, 300]]);
  const [first, last, shares] = attentionOf({ looks: Array.from({ length: 30 }, (_, l) => [[l < 20 ? 1000 : 10 * l]]) });
  assert.deepEqual([first, last], [21, 30]);
  close(shares, [245], 1e-9);
  assert.equal(attentionOf(found), found.attention);
});

test("each choice of hidden demonstrations has its stored answer, and a text that is not the book's has none", () => {
  assert.equal(storedFor(state), found);
  assert.deepEqual(storedFor({ ...state, hidden: [0] }), { ...found, of: [pattern, demonstrations, query, [0]], with: [["y", 0.5]], alone: [null, 0.1], attention: [21, 30, [0, 110]] });
  assert.equal(storedFor({ ...state, hidden: [1] }), undefined);
  assert.equal(storedFor({ ...state, query: "f" }), undefined);
});

test("an arrow is as wide as the attention, and that of a line that is hidden is dimmed in its place", () => {
  assert.deepEqual([[], [0], [0, 1]].map((hidden) => arrows(hide(hidden))), [[3.05, 9], [0, 11], [0, 0]]);
  for (const hidden of [[], [0], [0, 1]]) checkPicture(view, hide(hidden));
  assert.match(view.describe(state), /looks most at demonstration 2: 9 % of its attention/);
  assert.match(view.still(hide([0])), /11 %/);
  assert.doesNotMatch(view.describe(hide([0, 1])), /looks most/);
});

test("a line of which nothing is found has no arrow and no number", () => {
  const changed = { ...state, demonstrations: [["a", "b"], ["c", "z"], ["", ""]] };
  assert.deepEqual(arrows(changed), [3.05]);
  assert.deepEqual([...view.still(changed).matchAll(/(\d+) %<\/text>/g)].map(([, p]) => +p), [3, 60, 60, 10]);
  checkPicture(view, changed);
});

test("without demonstrations and with sixteen the picture is whole", () => {
  const none = { ...found, of: [pattern, [], query, []], alone: [], attention: [21, 30, []] };
  checkPicture(view, { ...state, demonstrations: [], found: none });
  const many = Array(16).fill(["a long demonstration", "with a long answer"]), sixteen = { ...found, of: [pattern, many, query, []], alone: Array(16).fill(0.1), attention: [21, 30, Array(16).fill(12)] };
  checkPicture(view, { ...state, demonstrations: many, found: sixteen });
});
