import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import view, { gatesOf, largest, sharesOf } from "#page/live_gpt.js";
import { mostNeeded } from "#page/live_workshop.js";
import { ALONE, LiveModel, biasOf, fetchShards, meanOf, ofHalf, opened, sharesOf as sumsOf, softmax, topOf, written } from "#page/live_model.js";
import { close } from "../../explorables/js/support.mjs";

test("writes a demonstration as the book's tasks do", () => {
  assert.equal(written(["", " ->"], "France", "Paris"), "France -> Paris\n");
  assert.equal(written(["Review: ", "\nSentiment:"], "fine"), "Review: fine\nSentiment:");
});

test("a token sees itself and what came before, but nothing hidden", () => {
  const sees = (past, ...texts) => [...biasOf(texts.map(([n, hidden]) => ({ ids: Array(n), hidden })), past)].map((x) => +(x === 0));
  assert.deepEqual(sees(3, [2, [[1, 2]]]), [1, 0, 1, 1, 0, /**/ 1, 0, 1, 1, 1]);
  assert.deepEqual(sees(2, [1, []], [1, [[0, 1]]]), [1, 1, 1, 0, /**/ 0, 1, 0, 1]);
  assert.deepEqual(sees(1, [1, [[0, 1]]], [2, []]), [0, 1, 0, 0, /**/ 1, 0, 1, 0, /**/ 1, 0, 1, 1]);
});

test("probabilities and the best of them", () => {
  const p = softmax([1000, 1001, 999, 1001]), e = Math.exp(-1), all = 2 + e + e * e;
  close([...p], [e / all, 1 / all, (e * e) / all, 1 / all], 1e-12);
  assert.deepEqual(topOf(p, 3), [1, 3, 0]);
  assert.deepEqual(topOf(p, 9), [1, 3, 0, 2]);
});

test("names the demonstration without which most is lost", () => {
  const found = (alone) => ({ with: [["a", 0.6]], alone });
  assert.equal(mostNeeded(found([0.5, null, 0.1, 0.7])), 2);
  assert.equal(mostNeeded(found([0.7, null])), -1);
  assert.equal(mostNeeded(found([])), -1);
});

test("shares of attention are sums over a demonstration, in each head", () => {
  const data = [0.5, 0.25, 0.25, 0, 0.1, 0.2, 0.3, 0.4], looks = sumsOf({ data, dims: [1, 2, 1, 4] }, [[1, 2], [2, 4]]);
  close(looks, [[[0.25, 0.25], [0.2, 0.7]]], 1e-12);
});

test("one head or the mean over heads, the gates, and the largest of them", () => {
  const looks = [[[250, 250], [200, 701]], [[100, 300], [0, 1000]]];
  close(sharesOf(looks, 0), [[0.225, 0.4755], [0.05, 0.65]], 1e-12);
  close(sharesOf(looks, 2), [[0.2, 0.701], [0, 1]], 1e-12);
  close(gatesOf(looks), [[0.5, 0.901], [0.4, 1]], 1e-12);
  assert.deepEqual(largest([[0.1, 0.2], [0.3, 0.1]]), [0.3, 2, 1]);
  assert.deepEqual(largest([[], []]), [0, 0, 0]);
});

test("sixteen bits are a number", () => {
  const bits = [0x0000, 0x3c00, 0xc000, 0x3555, 0x0001, 0x03ff, 0x7bff], numbers = [0, 1, -2, 0.333251953125, 2 ** -24, 1023 * 2 ** -24, 65504];
  assert.deepEqual(bits.map(ofHalf), numbers);
});

test("a mean leaves out what is no number", () => {
  assert.equal(meanOf([1, NaN, 4]), 2.5);
  assert.ok(Number.isNaN(meanOf([NaN])));
});

// Shards

const shard = (name, text) => ({ name, size: text.length, sha256: createHash("sha256").update(text).digest("hex") });
const SHARDS = [shard("gpt.0.bin", "first "), shard("gpt.1.bin", "second")];

function site(t, texts) {
  const kept = new Map(), asked = [];
  t.mock.method(globalThis, "fetch", async (url) => {
    const name = new URL(url).pathname.slice(1);
    asked.push(name);
    if (texts[name] instanceof Error) throw texts[name];
    return texts[name] === undefined ? new Response("", { status: 404 }) : new Response(texts[name]);
  });
  const cache = { match: async (url) => kept.get(url)?.clone(), put: async (url, answer) => { kept.set(url, answer); }, delete: async (url) => kept.delete(url) };
  return { asked, cache, load: (report = () => {}) => fetchShards("http://site/", SHARDS, cache, report) };
}

const text = (bytes) => new TextDecoder().decode(bytes);

test("shards become one array, and are asked for once", async (t) => {
  const { asked, load } = site(t, { "gpt.0.bin": "first ", "gpt.1.bin": "second" }), steps = [];
  assert.equal(text(await load((done) => steps.push(done))), "first second");
  assert.deepEqual(steps, [6, 12]);
  assert.equal(text(await load()), "first second");
  assert.deepEqual(asked, ["gpt.0.bin", "gpt.1.bin"]);
});

test("where the browser keeps nothing, the shards arrive and are not kept", async (t) => {
  const { asked } = site(t, { "gpt.0.bin": "first ", "gpt.1.bin": "second" });
  for (const caches of [undefined, { open: async () => { throw new Error("SecurityError"); } }]) {
    Object.defineProperty(globalThis, "caches", { value: caches, configurable: true, writable: true });
    assert.equal(text(await fetchShards("http://site/", SHARDS, await opened("name"), () => {})), "first second");
  }
  assert.equal(asked.length, 4);
});

test("what the browser kept and cannot read is fetched anew", async (t) => {
  const { asked, cache, load } = site(t, { "gpt.0.bin": "first ", "gpt.1.bin": "second" });
  await cache.put("http://site/gpt.0.bin?" + SHARDS[0].sha256.slice(0, 16), new Response("fir"));
  await assert.rejects(load(), /gpt.0.bin is cut short/);
  cache.match = async () => { throw new Error("UnknownError"); };
  assert.equal(text(await load()), "first second");
  assert.deepEqual(asked, ["gpt.0.bin", "gpt.1.bin"]);
});

test("what was stopped goes on from the last whole shard", async (t) => {
  const texts = { "gpt.0.bin": "first ", "gpt.1.bin": new Error("offline") }, { asked, load } = site(t, texts);
  await assert.rejects(load(), /cannot be reached.*what has arrived is kept/);
  texts["gpt.1.bin"] = "second";
  assert.equal(text(await load()), "first second");
  assert.deepEqual(asked, ["gpt.0.bin", "gpt.1.bin", "gpt.1.bin"]);
});

test("a flipped bit, a short shard and a long one are refused by name", async (t) => {
  const texts = { "gpt.0.bin": "first ", "gpt.1.bin": "secone" }, { load } = site(t, texts);
  await assert.rejects(load(), /gpt.1.bin did not arrive as it was sent/);
  texts["gpt.1.bin"] = "sec";
  await assert.rejects(load(), /gpt.1.bin is cut short/);
  texts["gpt.1.bin"] = "seconds";
  await assert.rejects(load(), /gpt.1.bin is longer/);
  texts["gpt.1.bin"] = undefined;
  await assert.rejects(load(), /built without the model/);
  texts["gpt.1.bin"] = "second";
  assert.equal(text(await load()), "first second");
});

// A model that expects a 7 after everything, and its runs
function known() {
  const runs = [], tensor = class { constructor(type, data, dims) { Object.assign(this, { data, dims }); } };
  const row = Float32Array.from({ length: 128 }, (_, id) => (id === 55 ? 9 : 0));
  const session = { run: async (inputs) => {
    runs.push(inputs);
    const data = new Float32Array(inputs.rows.data.length * row.length);
    for (let at = 0; at < data.length; at += row.length) data.set(row, at);
    return { keys: "keys", values: "values", logits: { data }, attention: { data: [], dims: [0, 1, 1, 10] } };
  } };
  const tokenizer = { encode: (words) => ({ ids: [...words].map((c) => c.charCodeAt(0)) }) };
  const model = new LiveModel({ Tensor: tensor }, session, tokenizer, { shape: { layers: 1, width: 3, key_heads: 1, head_size: 2 }, first_token_id: 9 });
  return { runs, model };
}

test("demonstrations are read once, and hidden by their positions", async () => {
  const { runs, model } = known();
  const ask = (hidden) => model.next(["", ""], [["a", "b"], ["c", "d"]], "e", hidden);
  await ask([]);
  await ask([1]);
  await ask(ALONE);
  assert.deepEqual(runs.map(({ ids }) => Array.from(ids.data, Number)), [[9, ..."a b\nc d\n"].map((c) => c.charCodeAt?.(0) ?? c), [101], [101], [101]]);
  assert.deepEqual(runs.slice(1).map(({ positions }) => Array.from(positions.data, Number)), [[9], [9], [1]]);
  assert.deepEqual([...runs[3].bias.data].map((x) => x < 0), [...Array(10).keys()].map((t) => t >= 1 && t < 9));
  assert.deepEqual([...runs[2].bias.data].map((x) => x < 0), [...Array(10).keys()].map((t) => t >= 5 && t < 9));
  await assert.rejects(model.next(["", ""], [["a".repeat(1100), "b"]], "e", []), /1103 tokens; the page takes 1024/);
});

test("queries after the first k demonstrations stand where those end, and are read token by token", async () => {
  const { runs, model } = known(), asked = [["e", "77"], ["ff", "x"]], numbers = ({ data }) => Array.from(data, Number);
  const answers = await model.greedy(["", ""], [["a", "b"], ["c", "d"]], asked, 1), [, run] = runs;
  assert.deepEqual(answers.map((tokens) => tokens.map(([token]) => token)), [[32, 55, 55, 10], [32, 120, 10]]);
  assert.ok(answers.flat().every(([, best]) => best === 55));
  close(answers[0][0][2], 9 - Math.log(Math.exp(9) + 127), 1e-9);
  assert.deepEqual([numbers(run.positions), numbers(run.rows)], [[5, 6, 7, 8, 5, 6, 7, 8], [0, 1, 2, 3, 5, 6, 7]]);
  assert.deepEqual([...run.bias.data].slice(0, 17).map((x) => +(x === 0)), [1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
});

test("an answer that begins a character is completed, and no further", async () => {
  const { model } = known(), ids = [0xe5, 0x86, 0xb7], letters = { 0xe5: "å", 0x86: "Ĩ", 0xb7: "·", 55: "7" };
  model.tokenizer.id_to_token = (id) => letters[id] ?? "a";
  const runs = [], one = (best) => Float64Array.from({ length: 256 }, (_, id) => (id === best ? 0.9 : 0.1 / 255));
  model.run = async ([text]) => (runs.push(text), { logits: [one(ids[runs.length])], P: 5 });
  model.context = async () => ({ P: 5, ranges: [[1, 5]] });
  const [[token, p]] = await model.completed(one(0xe5), ["", ""], [["a", "b"]], "c", [0]);
  assert.deepEqual([token, p], ["E5·· (冷)", 0.9]);
  assert.deepEqual(runs, [{ ids: [99, 0xe5], at: 5, hidden: [[1, 5]] }, { ids: [99, 0xe5, 0x86], at: 5, hidden: [[1, 5]] }]);
  assert.equal((await model.completed(one(55), ["", ""], [], "c", ALONE))[0][0], "7");
  assert.equal(runs.length, 2);
});

test("an update comes with every token, times its scale, and without one it is nothing", async () => {
  const { runs, model } = known(), of = (...data) => ({ data: Float32Array.from(data), shape: [2, 1, data.length / 2] });
  const update = model.update("a 0.5", { in: of(2, 4, 6, 8, 10, 12), out: of(1, 2, 3, 4) }, 0.5);
  await model.expects(["", ""], [["a", "b"]], "c", 1, update).catch(() => {}); // this tokenizer decodes nothing
  await model.next(["", ""], [["a", "b"]], "c", []);
  assert.deepEqual(runs.map(({ update_in, update_out }) => [[...update_in.data], [...update_out.data]]).slice(0, 2), Array(2).fill([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4]]));
  assert.deepEqual(runs.slice(2).map(({ update_in }) => [...update_in.data]), Array(2).fill([0, 0, 0, 0, 0, 0])); // read again without it
});

test("it draws and says the answers, what each adds, where heads look, and the gates", () => {
  const looks = [[[100, 200], [300, 100]]], found = { of: [["", " ->"], [["a", "b"], ["c", "d"]], "e", []], without: [["x", 0.1]], with: [["y", 0.6]], alone: [0.5, 0.2], looks };
  const state = { pattern: ["", " ->"], demonstrations: [["a", "b"], ["c", "d"]], query: "e", hidden: [], found, presets: {}, head: 0, induction: [] };
  assert.match(view.describe(state), /“y” \(60 %\).*gate/);
  for (const title of ["Next, without", "Next, with 2 of 2", "What each adds", "Where the query looks", "The gate g"]) assert.ok(view.still(state).includes(title));
});
