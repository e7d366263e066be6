// The Web Worker of LiveGPT. It stands in the folder of the model, beside the runtime and the tokenizer, which
// `bookbuilder.web_model` puts there. Messages to it: { load: true }, { ask, pattern, demonstrations, query, hidden }.

import * as ort from "./ort.wasm.min.mjs";
import { Tokenizer } from "./tokenizers.min.mjs";
import { LiveModel, fetchShards, reach, softmax } from "./live_gpt_core.js";

const BASE = new URL("./", import.meta.url), CACHE = "explainer-model";
let model, newest;

async function load() {
  const manifest = await (await reach(new URL("manifest.json", BASE))).json();
  const [words] = manifest.tokenizer, files = [words, ...manifest.shards], cache = await caches.open(CACHE);
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const bytes = await fetchShards(BASE, files, cache, (done) => postMessage({ done, total }));
  const tokenizer = JSON.parse(new TextDecoder().decode(bytes.subarray(0, words.size)));
  ort.env.wasm.numThreads = 1; // a static host sends no headers that would allow more
  ort.env.wasm.wasmPaths = BASE.href;
  const session = await ort.InferenceSession.create(bytes.subarray(words.size), { executionProviders: ["wasm"] }).catch((error) => {
    throw new Error(`This browser has too little memory for the model, or cannot run it (${String(error.message ?? error).slice(0, 120)}).`);
  });
  model = new LiveModel(ort, session, new Tokenizer(tokenizer, {}), manifest);
  postMessage({ ready: true });
}

// A message that came meanwhile is heard only between two runs.
const heard = () => new Promise((resolve) => setTimeout(resolve));

// First both answers, then the answer without each demonstration in turn
async function ask({ ask: id, pattern, demonstrations, query, hidden }) {
  newest = id;
  const without = model.top(softmax((await model.next(pattern, [], query, [])).logits));
  await heard();
  if (newest !== id) return;
  const { logits, looks } = await model.next(pattern, demonstrations, query, hidden), p = softmax(logits), answer = p.indexOf(Math.max(...p));
  const found = { without, with: model.top(p), looks, alone: demonstrations.map(() => null) };
  postMessage({ id, found, partly: true });
  for (const i of demonstrations.keys()) {
    if (hidden.includes(i)) continue;
    await heard();
    if (newest !== id) return;
    found.alone[i] = softmax((await model.next(pattern, demonstrations, query, [...hidden, i])).logits)[answer];
  }
  postMessage({ id, found });
}

let turn = Promise.resolve();
onmessage = ({ data }) => {
  if (data.ask) newest = data.ask;
  turn = turn.then(() => (data.load ? load() : data.ask === newest && ask(data)))
    .catch((error) => postMessage({ failed: String(error?.message ?? error), id: data.ask }));
};
