// The Web Worker of LiveGPT, LiveSweep, LiveExperiment, LivePatch and LiveVector. It stands in the folder of the model, beside the runtime and the tokenizer, which
// `bookbuilder.web_model` puts there. Messages to it: { load: true }; { ask, pattern, demonstrations, query, hidden };
// { sweep, pattern, curves, queries }, where `curves` has the demonstrations of each curve; { sweep: 0 } to stop;
// { experiment, pattern, demonstrations, second, update, scale, queries, query }, where `second` has the demonstrations of another
// context, and `update` names a task whose fine-tuning takes its place; { patch, pattern, demonstrations, donors, asked, query };
// { vector, pattern, demonstrations, query }; { stop: true }, after the run that is going on.

import { Tokenizer } from "./tokenizers.min.js";
import { ALONE, FORGETFUL, Refused, fetchShards, modelOn, opened, reach, simAMDelta, simAOU, softmax, tensorsOf } from "./live_model.js";

const BASE = new URL("./", import.meta.url), CACHE = "explainer-model";
const AS_STORED = 0.01, QUICK = 600; // nats; ms of a query, which WebAssembly needs on two slow cores
const PATIENCE = 30_000; // ms until the graphics processor is given up
const SOFTWARE = /swiftshader|llvmpipe|warp/i; // drawn by the processor, ten times slower than WebAssembly
let model, newest, sweeping, comparing, onGPU = false;

// The model on the graphics processor, where there is one that gives the stored answer, and quickly
async function byGPU(...files) {
  const adapter = "Suspending" in WebAssembly ? await navigator.gpu?.requestAdapter() : null;
  if (!adapter || adapter.info.isFallbackAdapter || SOFTWARE.test(adapter.info.architecture)) return null;
  const its = await modelOn(await import("./ort.jspi.min.js"), "webgpu", BASE.href, ...files);
  const [stored] = Object.values(await (await reach(new URL("live_gpt.json", BASE))).json());
  await its.differsFrom(stored); // the first time it compiles
  const since = performance.now(), far = await its.differsFrom(stored);
  if (far < AS_STORED && performance.now() - since < QUICK) return its;
  await its.session.release();
  return null;
}

async function byProcessor(...files) {
  return import("./ort.wasm.min.js").then((ort) => modelOn(ort, "wasm", BASE.href, ...files)).catch((error) => {
    if (!navigator.onLine) throw new Error("The site cannot be reached, and the model needs a part of it to start. Check the connection, then load the model again.");
    throw new Error(`This browser has too little memory for the model, or cannot run it (${String(error.message ?? error).slice(0, 120)}).`);
  });
}

async function load(withGPU = true) {
  const manifest = await (await reach(new URL("manifest.json", BASE))).json().catch(() => {
    throw new Error("What answered is not this site: perhaps the login page of a network. Open a page of it, then load the model again.");
  });
  const [words] = manifest.tokenizer, files = [words, ...manifest.shards], cache = await opened(CACHE);
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const bytes = await fetchShards(BASE, files, cache, (done) => postMessage({ done, total, kept: cache !== FORGETFUL }));
  const tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(bytes.subarray(0, words.size))), {});
  const its = [bytes.subarray(words.size), tokenizer, manifest];
  const givenUp = new Promise((resolve) => setTimeout(resolve, PATIENCE, null));
  model = withGPU ? await Promise.race([byGPU(...its).catch(() => null), givenUp]) : null;
  onGPU = !!model;
  model ??= await byProcessor(...its);
  postMessage({ ready: true, on: onGPU ? "WebGPU" : "WebAssembly" });
}

const thousandths = (shares) => shares.map((x) => Math.round(1000 * x));

// A message that came meanwhile is heard only between two runs.
const heard = () => new Promise((resolve) => setTimeout(resolve));

// The answer without demonstrations, with them, and with each of them hidden in turn
async function ask({ ask: id, pattern, demonstrations, query, hidden }) {
  await model.context(pattern, demonstrations);
  await heard();
  if (id !== newest) return postMessage({ id, stopped: true });
  const shown = [...demonstrations.keys()].filter((i) => !hidden.includes(i));
  const { logits, looks } = await model.next(pattern, demonstrations, query, hidden, ALONE, ...shown.map((i) => [...hidden, i]));
  const [p, zero, ...others] = logits.map(softmax), answer = p.indexOf(Math.max(...p));
  const alone = demonstrations.map((_, i) => others[shown.indexOf(i)]?.[answer] ?? null);
  const expected = (its, out) => model.completed(its, pattern, demonstrations, query, out);
  postMessage({ id, found: { without: await expected(zero, ALONE), with: await expected(p, hidden), looks: looks.map((heads) => heads.map(thousandths)), alone } });
}

// Which queries are answered word for word after the first k demonstrations of each curve, k by k
async function sweep({ sweep: id, pattern, curves, queries }) {
  for (let k = 0; k <= Math.max(...curves.map((one) => one.length)); k++) {
    for (const [curve, demonstrations] of curves.entries()) {
      await heard();
      if (sweeping !== id) return postMessage({ sweep: id, done: true, stopped: true });
      if (k > demonstrations.length) continue;
      const answers = await model.greedy(pattern, demonstrations, queries, k);
      const exact = answers.map((tokens) => tokens.every(([token, best]) => token === best));
      postMessage({ sweep: id, curve, k, exact, answers });
    }
  }
  postMessage({ sweep: id, done: true });
}

// The factors of the update that fine-tuning makes on a task, fetched once
async function factorsOf(task) {
  const files = await (await reach(new URL("updates.json", BASE))).json();
  return tensorsOf(await fetchShards(BASE, [files[task]], await opened(CACHE), () => {}));
}

const factors = new Map(), observations = new Map();

// What is seen after a lesson, kept for the next comparison
async function observe(pattern, demonstrations, queries, update) {
  const key = JSON.stringify([pattern, demonstrations, queries, update?.key]);
  if (!observations.has(key)) {
    if (observations.size > 3) observations.delete(observations.keys().next().value); // 8 MB each
    observations.set(key, await model.observed(pattern, demonstrations, queries, update));
  }
  return observations.get(key);
}

// Two changes of the model: by demonstrations in the context, and by a second lesson
async function experiment({ experiment: id, pattern, demonstrations, second, update: task, scale, queries, query }) {
  if (task && !factors.has(task)) factors.set(task, await factorsOf(task).catch(() => { throw new Refused("The update of this task could not be fetched. Run it again when you are online."); }));
  const update = task ? model.update(`${task} ${scale}`, factors.get(task), scale) : undefined;
  const lessons = [[[]], [demonstrations], [task ? [] : second, update]], seen = [], answers = [];
  for (const [shown, changed] of lessons) {
    await heard();
    if (comparing !== id) return postMessage({ experiment: id, stopped: true });
    seen.push(await observe(pattern, shown, queries, changed));
    answers.push(await model.expects(pattern, shown, query, 3, changed));
    postMessage({ experiment: id, part: seen.length });
  }
  const count = (test) => seen[0].filter((_, i) => test(...seen.map((its) => its[i].exact))).length;
  const right = [count((z) => z), count((z, a) => a), count((z, a, b) => b)];
  const repaired = [count((z, a) => !z && a), count((z, a, b) => !z && b), count((z, a, b) => !z && a && b)];
  const found = { n: queries.length, right, repaired, sim_aou: simAOU(...seen), sim_am_delta: simAMDelta(...seen), query, answers };
  postMessage({ experiment: id, found });
}

const best = (logits) => logits.indexOf(Math.max(...logits));
const plain = new Map();

// The patches of the donors' contexts, and what their mean does for the queries that are asked
async function patch({ patch: id, pattern, demonstrations, donors, asked, query }) {
  const words = asked.map(([x]) => x), key = JSON.stringify([pattern, demonstrations, words]);
  if (!plain.has(key)) plain.set(key, (await model.withAndWithout(pattern, demonstrations, words)).map((logits) => logits.map(best)));
  postMessage({ patch: id, part: 1 });
  await heard();
  if (comparing !== id) return postMessage({ patch: id, stopped: true });
  const [icl, zsl] = plain.get(key), own = [...donors.map(([x]) => x), query];
  const [[zero]] = (await model.withAndWithout(pattern, demonstrations, [query])).slice(1);
  const [inContext, byOwn, moved] = await model.patched(pattern, demonstrations, own, donors.length, [query, ...words]);
  const tokens = asked.map(([, y]) => model.tokens(` ${y}`)[0]), mean = moved.slice(1).map(best), given = inContext.slice(0, -1).map(best);
  const count = (found) => found.filter((token, i) => token === tokens[i]).length;
  const error = Math.max(...inContext.map((logits, i) => logits.reduce((most, z, j) => Math.max(most, Math.abs(z - byOwn[i][j])), 0)));
  const answers = [zero, inContext.at(-1), byOwn.at(-1), moved[0]].map((logits) => model.top(softmax(logits), 3));
  const carried = mean.filter((token, i) => token !== tokens[i] && given.includes(token)).length;
  postMessage({ patch: id, found: { n: donors.length, of: asked.length, right: [zsl, icl, mean].map(count), carried, error, query, answers } });
}

// The vector of demonstrations, and the same after answers that moved on by one, put into an empty prompt layer by layer
async function vector({ vector: id, pattern, demonstrations, query }) {
  const n = demonstrations.length, moved = demonstrations.map(([x], i) => [x, demonstrations[(i + 1) % n][1]]), put = [];
  for (const lesson of [demonstrations, moved]) {
    await heard();
    if (comparing !== id) return postMessage({ vector: id, stopped: true });
    put.push((await model.plus(pattern, demonstrations, query, await model.taskVectors(pattern, lesson))).map(softmax));
    postMessage({ vector: id, part: put.length });
  }
  const [[icl], [zsl]] = (await model.withAndWithout(pattern, demonstrations, [query])).map((logits) => logits.map(softmax));
  const answer = best(icl), top = (p) => model.top(p, 3), [own, other] = put;
  const p = [own, other].map((layers) => layers.map((its) => its[answer]));
  postMessage({ vector: id, found: { demonstrations, query, without: top(zsl), with: top(icl), layers: own.map(top), p: [zsl[answer], icl[answer], ...p] } });
}

function work(data) {
  if (data.stop) return;
  if (data.load) return load();
  const { experiment: id, patch: other, vector: third } = data, its = id ?? other ?? third;
  if (its && its !== comparing) return postMessage({ experiment: id, patch: other, vector: third, stopped: true });
  if (id) return experiment(data);
  if (other) return patch(data);
  if (third) return vector(data);
  if ("sweep" in data) return data.sweep && sweep(data);
  return data.ask === newest ? ask(data) : postMessage({ id: data.ask, stopped: true });
}

// Once more on the processor if the graphics processor fails, which a driver may do at any time
async function workSafely(data) {
  try {
    await work(data);
  } catch (error) {
    if (!onGPU || error instanceof Refused) throw error;
    await load(false);
    await work(data);
  }
}

let turn = Promise.resolve();
onmessage = ({ data }) => {
  if (data.ask || data.stop) newest = data.ask;
  sweeping = data.sweep; // a question that comes meanwhile stops it
  comparing = data.stop ? 0 : data.experiment || data.patch || data.vector || comparing;
  turn = turn.then(() => workSafely(data)).catch((error) => postMessage({ failed: String(error?.message ?? error), id: data.ask, sweep: data.sweep, experiment: data.experiment, patch: data.patch, vector: data.vector }));
};
