import assert from "node:assert/strict";
import test from "node:test";
import { plane, shortOf, tag } from "#explorables/drawing.js";
import { agreement, fixed, vector } from "#explorables/numbers.js";

test("numbers are written with a real minus sign and without a negative zero", () => {
  assert.equal(fixed(-1.234), "−1.23");
  assert.equal(fixed(-0.001), "0.00");
  assert.equal(fixed(0.5, 1, "+"), "+0.5");
  assert.equal(vector([1, -2], 0), "(1, −2)");
});

test("agreement calls only rounding equal", () => {
  assert.match(agreement([0.5], [0.5]), /equal to the last bit/);
  assert.match(agreement([0.3], [0.1 + 0.2]), /equal: .*rounding/);
  assert.match(agreement([1, 2], [1, 2 + 1e-9]), /^They differ by 1\.0e−9\.$/);
});

test("SVG text is escaped", () => {
  assert.equal(tag("a", { b: '<"&' }, "c"), '<a b="&lt;&quot;&amp;">c</a>');
});

test("a plane's inverse takes a pixel back to its point", () => {
  const p = plane({ left: 3, top: 7, width: 200, height: 100, x: [-2, 2], y: [-1, 1] });
  const [x, y] = p.invert(p.X(0.7), p.Y(-0.3));
  assert.ok(Math.hypot(x - 0.7, y + 0.3) < 1e-12);
});

test("an arrow ends before the mark", () => {
  assert.deepEqual(shortOf([0, 0], [30, 0]), [20, 0]);
  assert.deepEqual(shortOf([0, 0], [3, 0]), [0, 0]);
});
