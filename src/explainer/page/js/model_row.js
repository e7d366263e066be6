// The model of a page: the reader loads it, and it runs in one Web Worker, live_model_worker.js. In a notebook the kernel takes the
// worker's place: live_base.py answers the same messages.

import { element } from "#explorables/frame.js";

const SIZE = "115 MB", CACHE = "explainer-model";

// A probability as a reader writes it
export const percent = (p) => (p > 0 && p < 0.005 ? "< 1 %" : `${Math.round(100 * p)} %`);

// Why the model cannot be loaded here, if it cannot
function obstacle() {
  if (location.protocol === "file:") return "A page opened as a file cannot load the model. Run make serve, or read this page on the site. The stored answers stay.";
  if (typeof WebAssembly !== "object") return "This browser has no WebAssembly, which the model needs. The stored answers stay.";
  if (!isSecureContext) return "The model loads only over https, or from this machine. The stored answers stay.";
  if (navigator.deviceMemory < 2) return "This device has too little memory for the model, which takes 1 GB. The stored answers stay.";
  return "";
}

// The tab keeps a note while it has the model: if the note is there when the page begins, the browser ended the page.
const NOTE = "explainer-model-is-here";
function note(write) {
  try {
    return write(sessionStorage);
  } catch {} // where nothing may be kept
}

// Why the worker did not begin, where its files can be reached or not
async function cause(base) {
  const answer = await fetch(new URL("live_model_worker.js", base)).catch(() => null), type = answer?.headers.get("Content-Type");
  if (!answer) return "The site cannot be reached. Check the connection, then load the model again.";
  if (!answer.ok) return "This copy of the site was built without the model. The stored answers stay.";
  if (!/javascript/.test(type)) return `The server of this site sends JavaScript as “${type}”, which no browser runs as a module. The stored answers stay.`;
  return "This browser cannot run the model. The stored answers stay.";
}

// What is said before the model is loaded
function greeting() {
  if (note((its) => its.getItem(NOTE))) return { ended: true, text: "The browser ended this page while it had the model, perhaps because memory was short. The stored answers need no model." };
  const small = matchMedia("(max-width: 640px), (pointer: coarse)").matches || navigator.deviceMemory <= 4 || navigator.connection?.saveData;
  return { text: small ? `To load the model takes a download of ${SIZE}, once, and 1 GB of memory. A phone that has less may end this page. The stored answers need neither.` : "" };
}

// The worker of this page, which all its explorables share, and what is said of it
const ofThePage = () => (globalThis[Symbol.for("explainer.model")] ??= Object.assign(new EventTarget(), { numbers: 0 }, greeting()));

// The kernel behind a widget, with the face of a worker
function kernelOf(model) {
  const hear = (data) => worker.onmessage({ data });
  const worker = { postMessage: (message) => model.send(message), terminate: () => model.off("msg:custom", hear) };
  model.on("msg:custom", hear);
  return worker;
}

// Buttons to load, stop and remove the model. `heard` is given each message of the worker but its progress.
export function modelRow(heard, widget) {
  const host = document.querySelector('script[src*="explainer/afm-host.js"]'), base = host && new URL("model/", host.src), its = base ? ofThePage() : Object.assign(new EventTarget(), { text: "", numbers: 0 });
  const place = base ? "in this page" : "in this notebook";
  const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick, style: "margin:0" });
  const tell = (patch) => {
    Object.assign(its, patch);
    its.dispatchEvent(new Event("change"));
  };
  const end = (text) => {
    its.worker?.terminate();
    note((kept) => kept.removeItem(NOTE));
    tell({ worker: undefined, ready: false, text });
    its.dispatchEvent(new CustomEvent("answer", { detail: { ended: true } }));
  };
  const ifKept = (text) => (its.kept === false ? "" : text);
  const start = () => {
    const why = base && obstacle();
    if (why) return tell({ text: why });
    const worker = base ? new Worker(new URL("live_model_worker.js", base), { type: "module" }) : kernelOf(widget);
    worker.onerror = async () => end(await cause(base));
    worker.onmessage = ({ data }) => {
      const { done, total, kept = true } = data;
      if (total) return tell({ done, total, kept, ...(done === total && { text: "All is here. The model starts; this takes some seconds." }) });
      if (data.failed && !its.ready) end(data.failed);
      if (data.ready) tell({ ready: true, text: `The model is here${data.on ? `, on ${data.on}` : ""}. Change anything: it answers ${place}, and nothing leaves ${base ? "it" : "this machine"}.` });
      its.dispatchEvent(new CustomEvent("answer", { detail: data }));
    };
    worker.postMessage({ load: true });
    if (!base) return tell({ worker, ready: false, text: "Asking the kernel of this notebook. Without one, the stored answers stay." });
    addEventListener("pagehide", () => its.worker === worker && end(ifKept("The model was put away when you left. It is kept in this browser: load it again.")), { once: true });
    note((kept) => kept.setItem(NOTE, "yes"));
    tell({ worker, ready: false, ended: false, done: 0, text: "The model is loading …" });
  };
  const load = button("Ask this notebook's kernel", start);
  const forgo = button("Keep the stored answers", () => {
    end("");
    tell({ ended: false });
  });
  let running = 0; // the number of this row's question
  const cancel = () => {
    const id = running;
    its.worker.postMessage({ stop: true });
    answered({ failed: "Stopped.", id, experiment: id, patch: id, vector: id });
  };
  const stop = button("Cancel", () => its.ready ? cancel() : end(ifKept("Stopped. What has arrived is kept; loading goes on from there.")));
  const remove = button("Remove it from this browser", async () => {
    await caches.delete(CACHE);
    end("Removed. The answers shown stay.");
    tell({ kept: false });
  });
  const bar = element("progress", { attributes: { "aria-label": "loading the model" } }), amount = element("span", {}); // beside what is read aloud
  const said = element("p", { className: "explorable-hint", tabIndex: -1, style: "margin-bottom:.8rem", attributes: { role: "status" } });
  const node = element("div", {}, element("div", { className: "explorable-controls" }, forgo, load, bar, amount, stop, remove), said);
  let told;
  const show = () => {
    const had = node.contains(document.activeElement) && document.activeElement;
    load.hidden = !!its.worker;
    forgo.hidden = !its.ended;
    if (base) load.textContent = its.ended ? "Load the model again" : `Load the model (${SIZE})`;
    bar.hidden = amount.hidden = !its.worker || its.ready;
    stop.hidden = bar.hidden && !running;
    remove.hidden = !its.kept;
    if (base) [bar.max, bar.value] = [its.total ?? 1, its.done ?? 0];
    amount.textContent = its.total ? `${Math.round(its.done / 1e6)} of ${Math.round(its.total / 1e6)} MB of weights` : "";
    if (its.text !== told) said.textContent = told = its.text; // else what this row says of its own question stays
    if (had?.hidden) ([stop, forgo, load].find((each) => !each.hidden) ?? said).focus({ preventScroll: true }); // never on Remove, where Enter would delete
  };
  const say = (text) => { said.textContent = text || its.text; }; // of a question of this row, else of the model
  its.addEventListener("change", show);
  const answered = (data) => {
    const { id, experiment, patch, vector, part, ended } = data;
    if (ended || (!part && [id, experiment, patch, vector].includes(running))) running = 0;
    if (node.isConnected) heard(data);
    show();
  };
  its.addEventListener("answer", ({ detail }) => answered(detail));
  if (base) globalThis.caches?.has(CACHE).then((kept) => kept && !its.kept && tell({ kept }), () => {}); // refused where nothing may be kept
  show();
  return {
    node, place, say, number: () => ++its.numbers,
    decline: (text) => say(its.worker && !its.ready ? "The model is still loading." : text),
    ask: (message) => {
      if (!its.ready) return false;
      its.worker.postMessage(message);
      running = message.ask ?? message.experiment ?? message.patch ?? message.vector ?? 0; // a sweep has a button of its own
      show();
      return true;
    },
  };
}

const QUIET = 500, LONGEST = 200; // ms without a change before the model is asked; characters of a query

// What an explorable with stored answers needs to ask for others: the model's row, a field for the reader's own query, a button.
// `kind` names its messages, and `steps` what their parts are; `question` tells two choices apart, its first entry the task;
// `storedFor` finds a stored answer, and `queryOf` the query of the one that a task shows first; `messageOf` writes the message, and
// what of the choice its answer belongs to, or says why it cannot be asked.
export const questionRow = ({ kind, steps, question, storedFor, queryOf, messageOf }) => (root, start, read, change, widget) => {
  let asked = 0, since = 0, sent, timer, shown = question(start);
  const model = modelRow((data) => {
    if (data.ready && !storedFor(read())) return ask();
    if (!asked || data[kind] !== asked) return;
    if (data.stopped || data.failed) {
      asked = 0;
      return model.say(data.failed ?? "It stopped, because this page asked something else.");
    }
    if (data.part) model.say(`${data.part} of ${steps} …`);
    if (data.found) {
      asked = 0;
      model.say("Done. Change anything: it is asked again.");
      change({ found: { ...data.found, ...sent, made: `computed ${model.place}, ${Math.round((performance.now() - since) / 1000)} s` } });
    }
  }, widget);
  const ask = () => {
    const id = model.number(), { message, belongs, refused } = messageOf(read());
    if (refused) return model.say(refused);
    since = performance.now();
    sent = belongs;
    if (!model.ask({ [kind]: id, ...message })) return model.decline("Load the model to ask it this.");
    asked = id;
    model.say("Asking …");
  };
  const field = element("input", { type: "text", maxLength: LONGEST, style: "flex:1 1 8rem;min-width:0;font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:.3rem;padding:0 .4rem",
    dir: "auto", attributes: { "aria-label": "your own query" }, oninput: () => change({ query: field.value }) });
  const run = element("button", { type: "button", textContent: "Run it", style: "margin:0", onclick: ask });
  const controls = root.querySelector(".explorable-controls");
  controls.before(model.node);
  controls.append(element("label", {}, element("span", { textContent: "your own query" }), field), run);
  return (state) => {
    if (field.value !== state.query) field.value = state.query;
    const now = question(state);
    if (now === shown) return;
    const [task] = JSON.parse(shown);
    shown = now;
    asked = 0;
    clearTimeout(timer);
    if (state.task !== task && state.query !== queryOf(state)) return change({ query: queryOf(state) }); // and comes back here
    const kept = storedFor(state);
    if (kept) {
      model.say("");
      change({ found: kept });
    } else timer = setTimeout(ask, QUIET);
  };
};
