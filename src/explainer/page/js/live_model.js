// The checkpoint in a Web Worker: what it expects next after demonstrations, any of them hidden. The page's module,
// live_gpt.js, shows what this answers; both run without the other.

// A demonstration x -> y as the book's tasks write it; without an answer, the query
export const written = ([before, after], x, y) => `${before}${x}${after}${y === undefined ? "" : ` ${y}\n`}`;

// 0 where a new token sees, far below where it does not. The new tokens are texts side by side, each blind to the others; a
// text sees itself up to each token, and the past but its `hidden` ranges [from, to) of positions.
export function biasOf(texts, past) {
  const width = past + texts.reduce((sum, { ids }) => sum + ids.length, 0), bias = new Float32Array((width - past) * width);
  let own = past;
  for (const { ids, hidden } of texts) {
    for (let t = 0; t < ids.length; t++) {
      const row = (own - past + t) * width;
      bias.fill(-1e9, row + past, row + own);
      bias.fill(-1e9, row + own + t + 1, row + width);
      for (const [from, to] of hidden) bias.fill(-1e9, row + from, row + to);
    }
    own += ids.length;
  }
  return bias;
}

// Probabilities, in place of logits
export function softmax(logits) {
  let largest = -Infinity, total = 0;
  for (const z of logits) largest = Math.max(largest, z);
  const p = Float64Array.from(logits, (z) => Math.exp(z - largest));
  for (const each of p) total += each;
  return p.map((each) => each / total);
}

export function topOf(p, n) {
  const best = [];
  p.forEach((each, id) => {
    if (best.length === n && each <= p[best[n - 1]]) return;
    best.splice(best.findLastIndex((other) => p[other] >= each) + 1, 0, id);
    best.length = Math.min(best.length, n);
  });
  return best;
}

// Tokens are bytes. This reads them as byte_tokens.py does, and says what its functions say.
const BYTES = new Map();
for (let byte = 0, next = 256; byte < 256; byte++) BYTES.set(/[!-~¡-¬®-ÿ]/.test(String.fromCharCode(byte)) ? byte : next++, String.fromCharCode(byte));
const CHARACTERS = /((?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|(?!\xe0[\x80-\x9f]|\xed[\xa0-\xbf]|\xf0[\x80-\x8f]|\xf4[\x90-\xbf]|\xef\xbf\xbd)(?:[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}))+)/;
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

function inHexadecimal(bytes) {
  const first = bytes.charCodeAt(0), begins = first >= 0xc2 && first <= 0xf4, length = 2 + (first >= 0xe0) + (first >= 0xf0);
  const hexadecimal = Array.from(bytes, (c) => c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")).join("");
  return begins ? hexadecimal + "·".repeat(length - bytes.length) : `…${hexadecimal}`;
}

export const readable = (bytes) => bytes.split(CHARACTERS).map((part, i) => (i % 2 ? utf8.decode(Uint8Array.from(part, (c) => c.charCodeAt(0)))
  : part.replace(/[\xc2-\xf4][\x80-\xbf]*|[^\xc2-\xf4]+/g, inHexadecimal))).join("");
const isPart = (text) => /[0-9A-F]{2}·+$/.test(text);

const MOST_TOKENS = 1024; // the scores of attention grow with the square

// For each layer and head, the share of the first row's attention that goes to each range of positions; `attention` has the
// shape (layers, heads, rows, positions).
export function sharesOf({ data, dims: [layers, heads, rows, positions] }, ranges) {
  const share = (head, [from, to]) => {
    let sum = 0;
    for (let t = from; t < to; t++) sum += data[head * rows * positions + t];
    return sum;
  };
  return Array.from({ length: layers }, (_, l) => Array.from({ length: heads }, (_, h) => ranges.map((range) => share(l * heads + h, range))));
}

// The tensors of a safetensors file in float16, by name
export function tensorsOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset), start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  return Object.fromEntries(Object.entries(header).filter(([name]) => name !== "__metadata__").map(([name, { shape, data_offsets: [from, to] }]) => [
    name, { shape, data: Float32Array.from({ length: (to - from) / 2 }, (_, i) => ofHalf(view.getUint16(start + from + 2 * i, true))) },
  ]));
}

// The number that sixteen bits stand for
export function ofHalf(bits) {
  const e = (bits >> 10) & 31, f = bits & 1023, sign = bits >> 15 ? -1 : 1;
  return sign * (e ? 2 ** (e - 15) * (1 + f / 1024) : 2 ** -24 * f);
}

function cosine(a, b) {
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) [ab, aa, bb] = [ab + a[i] * b[i], aa + a[i] * a[i], bb + b[i] * b[i]];
  return ab / Math.sqrt(aa * bb);
}

// a - b, NaN where that is rounding of float32 beside a, at positions that differ by `shift`: beyond_rounding of explainer.theory.metrics
function minus(a, b, shift = 0) {
  const change = Float64Array.from(a, (x, i) => x - b[i]), rounding = (32 + 2 * shift) * 2 ** -23;
  return Math.hypot(...change) <= rounding * Math.hypot(...a) ? change.fill(NaN) : change;
}
function unit(h) {
  const length = Math.hypot(...h);
  return Float64Array.from(h, (x) => x / length);
}

// The mean of those that are numbers
export function meanOf(numbers) {
  const known = numbers.filter((x) => !Number.isNaN(x));
  return known.reduce((sum, x) => sum + x, 0) / known.length;
}

// SimAOU of two changes in each layer, mean over queries: cos(a/|a| - z/|z|, b/|b| - z/|z|) of the outputs z before, a and b after
export const simAOU = (before, a, b) => before[0].outputs.map((_, l) => meanOf(before.map((one, i) => {
  const z = unit(one.outputs[l]);
  return cosine(minus(unit(a[i].outputs[l]), z), minus(unit(b[i].outputs[l]), z));
})));

// SimAM of the changes of attention maps, mean over queries, layers and heads; `context` counts the tokens before a query
export const simAMDelta = (before, a, b) => meanOf(before.flatMap((one, i) => one.scores.flatMap((heads, l) => heads.map((m, h) => {
  const [d, e] = [a[i], b[i]].map(({ scores, context }) => minus(scores[l][h], m, context - one.context));
  return cosine(d, e);
}))));

// Shard by shard into one array. Each is read from `cache` where it is there, is checked, and is kept as soon as it is
// whole: what was stopped goes on from the last whole shard.
export async function fetchShards(base, shards, cache, report) {
  const bytes = new Uint8Array(shards.reduce((sum, { size }) => sum + size, 0));
  let at = 0;
  for (const shard of shards) {
    const url = new URL(`${shard.name}?${shard.sha256.slice(0, 16)}`, base).href;
    const kept = await cache.match(url).catch(() => undefined), part = bytes.subarray(at, at + shard.size);
    try {
      await readInto(part, kept ?? (await reach(url)), shard, (done) => report(at + done));
      if ((await sha256(part)) !== shard.sha256) throw new Error(`${shard.name} did not arrive as it was sent (its SHA-256 is another). Load the model again.`);
    } catch (error) {
      await cache.delete(url).catch(() => {}); // else what is damaged would be read again for ever
      throw error;
    }
    if (!kept) await cache.put(url, new Response(part.slice(), { headers: { "Content-Type": "application/octet-stream" } })).catch(() => {});
    at += shard.size;
  }
  return bytes;
}

export const FORGETFUL = { match: async () => undefined, put: async () => undefined, delete: async () => false };

// The browser's cache of this name; where it may keep nothing, one that forgets
export async function opened(name) {
  try {
    return await caches.open(name);
  } catch {
    return FORGETFUL;
  }
}

export async function reach(url) {
  const answer = await fetch(url).catch(() => {
    throw new Error("The site cannot be reached. Check the connection, then load the model again: what has arrived is kept.");
  });
  if (answer.status === 404) throw new Error("This copy of the site was built without the model.");
  if (!answer.ok) throw new Error(`The site answered with status ${answer.status}. Try again later.`);
  return answer;
}

async function readInto(part, answer, { name, size }, report) {
  const reader = answer.body.getReader();
  let done = 0;
  for (;;) {
    const { value, done: ended } = await reader.read().catch(() => {
      throw new Error("The connection broke. Load the model again: whole parts are kept.");
    });
    if (ended) break;
    if (done + value.length > size) throw new Error(`${name} is longer than it should be. Load the model again.`);
    part.set(value, done);
    report(done += value.length);
  }
  if (done < size) throw new Error(`${name} is cut short. Load the model again.`);
}

async function sha256(bytes) {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const ALONE = null;

// What the reader has to change
export class Refused extends Error {}

// The model on a backend of the runtime, "wasm" or "webgpu"
export async function modelOn(ort, backend, base, bytes, tokenizer, manifest) {
  ort.env.wasm.numThreads = 1; // a static host sends no headers that would allow more
  const name = backend === "webgpu" ? "ort-wasm-simd-threaded.jspi" : "ort-wasm-simd-threaded";
  ort.env.wasm.wasmPaths = { mjs: `${base}${name}.js`, wasm: `${base}${name}.wasm` }; // the site has it as .js
  return new LiveModel(ort, await ort.InferenceSession.create(bytes, { executionProviders: [backend] }), tokenizer, manifest);
}

export class LiveModel {
  #read = new Map();

  constructor(ort, session, tokenizer, { shape, first_token_id: first }) {
    Object.assign(this, { ort, session, tokenizer, shape, first });
    this.nothing = new Float32Array(shape.layers * shape.width);
    const of = (...dims) => ({ data: new Float32Array(dims.reduce((a, b) => a * b)), shape: dims }), n = 2 * shape.layers;
    this.same = this.update("", { in: of(n, shape.width, 1), out: of(n, 1, shape.key_heads * shape.head_size) }, 0);
  }

  tokens(text) { return this.tokenizer.encode(text, { add_special_tokens: false }).ids; }

  text(ids) { return readable(ids.map((id) => this.tokenizer.id_to_token(id)).join("").replace(/./gsu, (c) => BYTES.get(c.codePointAt(0)))); }

  // Texts side by side after a context, which is what an earlier run gave: keys, values and P, the number of their
  // positions. Each text has its token ids, the position where it begins (`at`) or all its `positions`, what is `hidden` from
  // it, and how many of its last tokens are asked what comes next.
  // `update` is that of the keys' and values' weights; `wanted` are the outputs of the graph that are fetched. A patch is
  // two texts, the same query with its context and without; the `weights` of a text say how much of each patch it has.
  // `added` has a vector for each layer; the last token of a text with a layer `plus`, counted from 0, gets that layer's.
  async run(texts, context, wanted, update = this.same, patches = [[0, 0]], added = this.nothing) {
    context ??= this.#none();
    const { Tensor } = this.ort, ids = texts.flatMap((text) => text.ids), T = ids.length, P = context.P;
    const whole = (numbers) => new Tensor("int64", BigInt64Array.from(numbers, BigInt), [numbers.length]);
    let end = 0;
    const rows = texts.flatMap(({ ids: { length }, asks = 1 }) => (end += length, Array.from({ length: asks }, (_, i) => end - asks + i)));
    end = 0;
    const last = texts.map(({ ids: { length } }) => (end += length) - 1), none = patches.map(() => 0);
    const { layers, width } = this.shape, plus = new Float32Array(T * layers);
    texts.forEach(({ plus: layer }, i) => { if (layer !== undefined) plus[last[i] * layers + layer] = 1; });
    const shares = Float32Array.from(texts.flatMap(({ ids: its, weights = none }) => its.flatMap(() => weights)));
    const found = await this.session.run({
      ids: whole(ids), positions: whole(texts.flatMap(({ ids: its, at, positions }) => positions ?? its.map((_, t) => at + t))),
      past_keys: context.keys, past_values: context.values, bias: new Tensor("float32", biasOf(texts, P), [T, P + T]), rows: whole(rows),
      update_in: update.in, update_out: update.out,
      with_context: whole(patches.map(([i]) => last[i])), without_context: whole(patches.map(([, i]) => last[i])),
      patch_weights: new Tensor("float32", shares, [T, patches.length]),
      added: new Tensor("float32", added, [layers, width]), added_to: new Tensor("float32", plus, [T, layers]),
    }, wanted);
    if (!found.logits) return { ...found, P: P + T };
    const { logits: { data } } = found, size = data.length / rows.length;
    return { ...found, P: P + T, logits: rows.map((_, i) => data.subarray(i * size, (i + 1) * size)) };
  }

  // An update of low rank times a scale; `key` tells it from others
  update(key, { in: into, out }, scale) {
    const { Tensor } = this.ort;
    return { key, in: new Tensor("float32", into.data.map((x) => scale * x), into.shape), out: new Tensor("float32", out.data, out.shape) };
  }

  #none() {
    const { layers, key_heads, head_size } = this.shape;
    const empty = new this.ort.Tensor("float32", new Float32Array(0), [layers, key_heads, 0, head_size]);
    return { keys: empty, values: empty, P: 0 };
  }

  // Demonstrations in a row behind the first token: their keys and values, and the range of positions of each
  async context(pattern, demonstrations, update = this.same) {
    const key = JSON.stringify([pattern, demonstrations, update.key]);
    if (!this.#read.has(key)) {
      if (this.#read.size > 7) this.#read.clear(); // 46 kB a token
      const pieces = demonstrations.map(([x, y]) => this.tokens(written(pattern, x, y)));
      const n = pieces.flat().length;
      if (n > MOST_TOKENS) throw new Refused(`These demonstrations are ${n} tokens; the page takes ${MOST_TOKENS}. Make them shorter.`);
      const ends = pieces.reduce((all, piece) => [...all, all.at(-1) + piece.length], [1]);
      const { keys, values, P } = await this.run([{ ids: [this.first, ...pieces.flat()], at: 0, hidden: [] }], null, ["keys", "values"], update);
      this.#read.set(key, { keys, values, P, ends, ranges: pieces.map((_, i) => [ends[i], ends[i + 1]]) });
    }
    return this.#read.get(key);
  }

  // For each list of hidden demonstrations the logits of the next token; and where the query looks under the first. ALONE is
  // a query that stands where it would stand without demonstrations, and sees none.
  async next(pattern, demonstrations, query, ...hidden) {
    const context = await this.context(pattern, demonstrations);
    const ids = this.tokens(written(pattern, query));
    const { logits, attention } = await this.run(hidden.map((its) => this.#after(context, its, ids)), context, ["logits", "attention"]);
    return { logits, looks: sharesOf(attention, context.ranges) };
  }

  #after({ P, ranges }, hidden, ids) { return hidden === ALONE ? { ids, at: 1, hidden: [[1, P]] } : { ids, at: P, hidden: hidden.map((i) => ranges[i]) }; }

  // The five most probable next tokens of probabilities p; the first with its whole character, if it is but the beginning of one
  async completed(p, pattern, demonstrations, query, hidden) {
    const best = this.top(p), ids = topOf(p, 1), before = this.tokens(written(pattern, query));
    while (isPart(this.text(ids)) && ids.length < 4) {
      const context = await this.context(pattern, demonstrations), { logits: [z] } = await this.run([this.#after(context, hidden, [...before, ...ids])], context, ["logits"]);
      ids.push(topOf(z, 1)[0]);
    }
    if (ids.length > 1 && !isPart(this.text(ids))) best[0][0] += ` (${this.text(ids).trim()})`;
    return best;
  }

  // Each query [x, y] after the first k demonstrations alone, all in one run: for every token of y and of the end of its line [the
  // token, the most probable one in its place, log p of that]. Where the two agree throughout, greedy decoding writes y.
  async greedy(pattern, demonstrations, queries, k = demonstrations.length) {
    const context = await this.context(pattern, demonstrations), at = context.ends[k], hidden = [[at, context.P]];
    const answers = queries.map(([, y]) => this.tokens(` ${y}\n`));
    const texts = queries.map(([x], i) => ({ ids: [...this.tokens(written(pattern, x)), ...answers[i].slice(0, -1)], asks: answers[i].length, at, hidden }));
    const rows = (await this.run(texts, context, ["logits"])).logits.values();
    return answers.map((tokens) => tokens.map((token) => {
      const p = softmax(rows.next().value), [best] = topOf(p, 1);
      return [token, best, Math.log(p[best])];
    }));
  }

  // What is seen at the last token of each query [x, y] after demonstrations, under an update: whether greedy decoding
  // writes y; the outputs of attention, layer by layer; and the scores of each head at the tokens of x.
  async observed(pattern, demonstrations, queries, update) {
    const context = await this.context(pattern, demonstrations, update), at = context.P;
    const answers = queries.map(([, y]) => this.tokens(` ${y}\n`)), prompts = queries.map(([x]) => this.tokens(written(pattern, x)));
    const texts = prompts.map((ids, i) => ({ ids: [...ids, ...answers[i].slice(0, -1)], asks: answers[i].length, at, hidden: [] }));
    const { logits, outputs, scores } = await this.run(texts, context, ["logits", "outputs", "scores"], update);
    const [L, R, d] = outputs.dims, [, H, , S] = scores.dims, each = (n, of) => Array.from({ length: n }, (_, i) => of(i));
    let [row, start] = [0, at];
    return prompts.map(({ length }, i) => {
      const [first, from] = [row, start];
      [row, start] = [row + answers[i].length, start + texts[i].ids.length];
      const scoresOf = (l, h) => ((l * H + h) * R + first) * S + from;
      return {
        context: at,
        exact: answers[i].every((token, t) => topOf(logits[first + t], 1)[0] === token),
        outputs: each(L, (l) => outputs.data.subarray((l * R + first) * d, (l * R + first + 1) * d)),
        scores: each(L, (l) => each(H, (h) => scores.data.subarray(scoresOf(l, h), scoresOf(l, h) + length))),
      };
    });
  }

  // The logits of the next token after each query: after demonstrations, and without them at the same positions
  async withAndWithout(pattern, demonstrations, queries) {
    const context = await this.context(pattern, demonstrations), texts = this.#copies(pattern, queries, context);
    const { logits } = await this.run([...texts.map(([after]) => after), ...texts.map(([, without]) => without)], context, ["logits"]);
    return [logits.slice(0, queries.length), logits.slice(queries.length)];
  }

  // The context of some queries as a change of weights: after these queries with their context, and without it with their own
  // patches; and the logits after other queries without context, which have the mean of the first `n` patches.
  async patched(pattern, demonstrations, queries, n, others) {
    const context = await this.context(pattern, demonstrations), m = queries.length;
    const texts = this.#copies(pattern, queries, context), mean = queries.map((_, j) => (j < n ? 1 / n : 0));
    const own = texts.map(([, without], i) => ({ ...without, weights: queries.map((_, j) => +(i === j)) }));
    const moved = this.#copies(pattern, others, context).map(([, without]) => ({ ...without, weights: mean }));
    const { logits } = await this.run([...texts.map(([after]) => after), ...own, ...moved], context, ["logits"], this.same, texts.map((_, j) => [j, m + j]));
    return [logits.slice(0, m), logits.slice(m, 2 * m), logits.slice(2 * m)];
  }

  // What demonstrations change in the residual stream after each layer: the mean over them, each asked as a query after all
  // the others and without them. (layers, d), row by row
  async taskVectors(pattern, demonstrations) {
    const { layers, width } = this.shape, mean = new Float32Array(layers * width);
    for (const [i, [x]] of demonstrations.entries()) {
      const context = await this.context(pattern, demonstrations.toSpliced(i, 1));
      const { stream: { data } } = await this.run(this.#copies(pattern, [x], context)[0], context, ["stream"]);
      mean.forEach((_, at) => {
        const first = Math.floor(at / width) * 2 * width + (at % width);
        mean[at] += (data[first] - data[first + width]) / demonstrations.length;
      });
    }
    return mean;
  }

  // The logits after a query without its context, with the vector of each layer in turn added after that layer
  async plus(pattern, demonstrations, query, vectors) {
    const context = await this.context(pattern, demonstrations), [[, without]] = this.#copies(pattern, [query], context);
    const texts = Array.from({ length: this.shape.layers }, (_, plus) => ({ ...without, plus }));
    return (await this.run(texts, context, ["logits"], this.same, [[0, 0]], vectors)).logits;
  }

  // Each query after a context, and after the first token alone, which is passed with it, so that patches reach it, too
  #copies(pattern, queries, { P }) {
    return queries.map((x) => this.tokens(written(pattern, x))).map((ids) => [
      { ids, at: P, hidden: [] }, { ids: [this.first, ...ids], positions: [0, ...ids.map((_, t) => P + t)], hidden: [[0, P]] },
    ]);
  }

  // The most probable next tokens after demonstrations and a query, under an update
  async expects(pattern, demonstrations, query, n, update) {
    const context = await this.context(pattern, demonstrations, update), ids = this.tokens(written(pattern, query));
    const { logits: [z] } = await this.run([{ ids, at: context.P, hidden: [] }], context, ["logits"], update);
    return this.top(softmax(z), n);
  }

  // How far log p of any token that a stored answer names is from what is stored
  async differsFrom({ pattern, demonstrations, query, found }) {
    const { logits: [z] } = await this.next(pattern, demonstrations, query, []), own = new Map(this.top(softmax(z), 2 * found.with.length));
    return Math.max(...found.with.map(([token, p]) => (own.has(token) ? Math.abs(Math.log(own.get(token) / p)) : Infinity)));
  }

  top(p, n = 5) { return topOf(p, n).map((id) => [this.text([id]), p[id]]); }
}
