// The explorables as they ship: each bundle is the text that anywidget and the page's host get.
import assert from "node:assert/strict";
import test from "node:test";
import { checkPicture, fixture } from "./support.mjs";

const MOST_BYTES = 32_000;

for (const [name, { source, state }] of Object.entries(fixture("bundles"))) {
  test(`${name} is one small module that leaves nothing behind`, async () => {
    assert.ok(Buffer.byteLength(source) <= MOST_BYTES, `${Buffer.byteLength(source)} bytes`);
    const before = Reflect.ownKeys(globalThis);
    const module = await import(`data:text/javascript,${encodeURIComponent(source)}`); // no address: it can import nothing
    assert.deepEqual(Object.keys(module), ["default"]);
    assert.deepEqual(Object.keys(module.default).sort(), ["describe", "render", "still"]);
    checkPicture(module.default, state);
    assert.deepEqual(Reflect.ownKeys(globalThis), before);
  });
}
