// Made of js/live_experiment.js by "make explorables": change that file, not this one.

// ../../explorables/js/algebra.js
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);

// ../../explorables/js/numbers.js
var MINUS = "−";
function fixed(number, digits = 2, plus = "") {
  const size = Math.abs(number).toFixed(digits);
  return (Number(size) === 0 ? "" : number < 0 ? MINUS : plus) + size;
}
var vector = (a, digits = 2) => `(${a.map((a_i) => fixed(a_i, digits)).join(", ")})`;

// ../../explorables/js/drawing.js
var WIDTH = 320;
var SMALL = { "font-size": 11 };
var COLOURS = { key: "#0072b2", value: "#c65300", query: "#00815e", sum: "#a8568a" };
var colour = (role) => ({ class: `explorable-${role}`, color: COLOURS[role] ?? "inherit" });
var escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
function tag(name, attributes, ...children) {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(typeof value === "number" ? +value.toFixed(2) : value)}"`).join("");
  return `<${name}${written}>${children.flat(Infinity).join("")}</${name}>`;
}
var group = (attributes, ...children) => tag("g", attributes, ...children);
var words = (x, y, text, more) => tag("text", { x, y, fill: "currentColor", ...more }, escape(text));
var line = (x1, y1, x2, y2, more) => tag("line", { x1, y1, x2, y2, stroke: "currentColor", ...more });
var path = (d, more) => tag("path", { d, fill: "none", stroke: "currentColor", ...more });
var rect = (x, y, width, height, more) => tag("rect", { x, y, width, height, fill: "currentColor", ...more });
var through = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
function bar(start, end, y, height) {
  const [x, width] = [Math.min(start, end), Math.max(1, Math.abs(end - start))];
  return rect(x, y, width, height, { stroke: "currentColor", "stroke-width": 1.5, "fill-opacity": end < start ? 0.08 : 0.75 });
}
function plane({ left, top, width, height, x: [x0, x1], y: [y0, y1] }) {
  const X = (x) => left + (x - x0) / (x1 - x0) * width, Y = (y) => top + (y1 - y) / (y1 - y0) * height;
  const invert = (px, py) => [x0 + (px - left) / width * (x1 - x0), y1 - (py - top) / height * (y1 - y0)];
  const inside = (...children) => tag("svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" }, ...children);
  return { X, Y, invert, inside, left, top, width, height, x: [x0, x1], y: [y0, y1] };
}
var SPAN = [-2, 2];
var LIMIT = SPAN[1];
var panel = (title, height, ...body) => ({ title, height, body: body.flat(Infinity).join("") });
var heading = ({ title }) => words(0, 14, title, { "font-weight": 600 });
var FONT = { "font-family": "inherit", "font-size": 13 };
function panelSvg(p) {
  return tag("svg", { viewBox: `0 0 ${WIDTH} ${p.height}`, role: "img", "aria-label": p.title, ...FONT }, heading(p), p.body);
}
function compose(panels2, alt) {
  const gap = 28, placed = [];
  let y = 0;
  for (let i = 0; i < panels2.length; i += 2) {
    const row = panels2.slice(i, i + 2);
    row.forEach((p, j) => placed.push(group({ transform: `translate(${j * (WIDTH + gap)} ${y})` }, heading(p), p.body)));
    y += Math.max(...row.map((p) => p.height)) + gap / 2;
  }
  const width = 2 * WIDTH + gap, height = y - gap / 2;
  const size = { width, height, viewBox: `0 0 ${width} ${height}`, style: "max-width:100%;height:auto" };
  return tag("svg", { xmlns: "http://www.w3.org/2000/svg", ...size, role: "img", "aria-label": alt, ...FONT, "font-family": "sans-serif" }, placed);
}

// ../../explorables/js/frame.js
var explorable = (view) => ({
  render: (context) => mount({ ...PLAIN, ...view }, context),
  still: (state) => compose(view.panels(state), view.describe(state)),
  describe: view.describe
});
var none = () => [];
var PLAIN = { sliders: [], lists: none, handles: none, answers: none, extend() {
} };
function element(name, properties, ...children) {
  const { attributes = {}, ...rest } = properties;
  const node = Object.assign(document.createElement(name), rest);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  node.append(...children);
  return node;
}
var ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
var STEP = 0.05;
var BIG_STEP = 0.25;
var QUIET = 300;
function handleElement(item, put, signal) {
  const node = element("div", { className: "explorable-handle", tabIndex: 0, attributes: { role: "slider" } });
  let grip = [0, 0];
  const pointer = (event) => {
    const box = node.parentElement.getBoundingClientRect();
    return [(event.clientX - box.left) * (WIDTH / box.width), (event.clientY - box.top) * (WIDTH / box.width)];
  };
  node.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault();
    node.setPointerCapture(event.pointerId);
    node.focus({ preventScroll: true });
    const { plane: p, at } = item(), [x, y] = pointer(event);
    grip = [x - p.X(at[0]), y - p.Y(at[1])];
  }, { signal });
  node.addEventListener("pointermove", (event) => {
    if (!node.hasPointerCapture(event.pointerId)) return;
    const [x, y] = pointer(event);
    put(item(), item().plane.invert(x - grip[0], y - grip[1]));
  }, { signal });
  node.addEventListener("keydown", (event) => {
    const direction = ARROWS[event.key];
    if (!direction) return;
    event.preventDefault();
    put(item(), add(item().at, scale(event.shiftKey ? BIG_STEP : STEP, direction)));
  }, { signal });
  return node;
}
function placeHandle(node, { label, plane: p, at, horizontal }, panelHeight) {
  const [x, y] = [Math.min(p.x[1], Math.max(p.x[0], at[0])), Math.min(p.y[1], Math.max(p.y[0], at[1]))];
  node.style.left = `${100 * p.X(x) / WIDTH}%`;
  node.style.top = `${100 * p.Y(y) / panelHeight}%`;
  const value = horizontal ? fixed(at[0]) : vector(at);
  const spoken2 = { "aria-label": `${label}, ${value}`, "aria-valuetext": value };
  const range = { "aria-valuemin": p.x[0], "aria-valuemax": p.x[1], "aria-valuenow": at[0] };
  for (const [key, text] of Object.entries({ ...spoken2, ...range })) node.setAttribute(key, text);
}
function sliderControl({ trait, label, range: [min, max, step], format, fromInput, toInput }, change, signal) {
  const input = element("input", { type: "range", min, max, step });
  const value = element("span", { className: "explorable-number", attributes: { "aria-hidden": "true" } });
  input.addEventListener("input", () => change({ [trait]: fromInput(+input.value) }), { signal });
  const update = (state) => {
    input.value = toInput(state[trait]);
    value.textContent = format(state[trait]);
    input.setAttribute("aria-valuetext", value.textContent);
  };
  return { node: element("label", {}, element("span", { textContent: label }), input, value), update };
}
function listControl(trait, label, optionsOf, change, signal) {
  const select = element("select", {});
  let options;
  select.addEventListener("change", () => change({ [trait]: options[select.selectedIndex][0] }), { signal });
  const update = (state) => {
    options = optionsOf(state);
    select.replaceChildren(...options.map(([value, textContent, disabled]) => element("option", { textContent, disabled: !!disabled, selected: value === state[trait] })));
  };
  return { node: element("label", {}, element("span", { textContent: label }), select), update };
}
function panelFrame(itemOf, put, signal) {
  const drawing = element("div", {}), node = element("div", { className: "explorable-panel" }, drawing), handles = [];
  const update = (panel2, items) => {
    drawing.innerHTML = panelSvg(panel2);
    handles.splice(items.length).forEach((handle) => handle.remove());
    items.forEach((item, k) => {
      if (!handles[k]) node.append(handles[k] = handleElement(() => itemOf(k), put, signal));
      placeHandle(handles[k], item, panel2.height);
    });
  };
  return { node, update };
}
function answerLine([name]) {
  const number = element("span", { className: "explorable-number" });
  return { node: element("div", {}, element("span", { textContent: name }), number), update: ([, text]) => {
    number.textContent = text;
  } };
}
function mount(view, { model, el }) {
  const stop = new AbortController(), { signal } = stop;
  const read = () => Object.fromEntries(view.traits.map((name) => [name, model.get(name)]));
  const change = (patch) => {
    for (const name in patch) model.set(name, patch[name]);
    model.save_changes();
  };
  const put = ({ plane: p, move }, point) => change(move([p.x, p.y].map(([low, high], k) => Math.min(high, Math.max(low, Math.round(point[k] * 100) / 100)))));
  const start = read(), itemsOn = (panel2, state = read()) => view.handles(state).filter((item) => item.panel === panel2);
  const controls = [
    ...view.lists(start).map(([trait, label], i) => listControl(trait, label, (state) => view.lists(state)[i][2], change, signal)),
    ...view.sliders.map((each) => sliderControl(each, change, signal))
  ];
  const frames = view.panels(start).map((_, i) => panelFrame((k) => itemsOn(i)[k], put, signal));
  const answers = view.answers(start).map(answerLine);
  const reset = element("button", { type: "button", textContent: "Reset" });
  reset.addEventListener("click", () => change(start), { signal });
  const status = element("p", { className: "explorable-status", attributes: { role: "status", "aria-live": "polite" } });
  const nodes = (parts) => parts.map((part) => part.node);
  const root = element(
    "div",
    { className: "explorable", attributes: { role: "group", "aria-label": view.question } },
    element("div", { className: "explorable-controls" }, ...nodes(controls), reset),
    element("div", { className: "explorable-panels" }, ...nodes(frames)),
    element("p", { className: "explorable-hint", textContent: view.hint }),
    element("div", { className: "explorable-answers" }, ...nodes(answers)),
    status
  );
  root.addEventListener("keydown", (event) => event.stopPropagation(), { signal });
  const extended = view.extend(root, start, read, change, model);
  let timer;
  const update = () => {
    const state = read();
    view.panels(state).forEach((panel2, i) => frames[i].update(panel2, itemsOn(i, state)));
    controls.forEach((control) => control.update(state));
    view.answers(state).forEach((answer, i) => answers[i].update(answer));
    extended?.(state);
    clearTimeout(timer);
    timer = setTimeout(() => {
      status.textContent = view.describe(read());
    }, QUIET);
  };
  const events = view.traits.map((name) => `change:${name}`);
  for (const event of events) model.on(event, update);
  update();
  status.textContent = view.describe(start);
  el.append(root);
  return () => {
    for (const event of events) model.off(event, update);
    clearTimeout(timer);
    stop.abort();
    root.remove();
  };
}
var same = (value) => value;
var slider = (trait, label, range, format = fixed, fromInput = same, toInput = same) => ({ trait, label, range, format, fromInput, toInput });

// live_model.js
var SIZE = "115 MB";
var CACHE = "explainer-model";
var percent = (p) => p > 0 && p < 5e-3 ? "< 1 %" : `${Math.round(100 * p)} %`;
function obstacle() {
  if (location.protocol === "file:") return "A page opened as a file cannot load the model. Run make serve, or read this page on the site. The stored answers stay.";
  if (typeof WebAssembly !== "object") return "This browser has no WebAssembly, which the model needs. The stored answers stay.";
  if (!isSecureContext) return "The model loads only over https, or from this machine. The stored answers stay.";
  if (navigator.deviceMemory < 2) return "This device has too little memory for the model, which takes 1 GB. The stored answers stay.";
  return "";
}
var NOTE = "explainer-model-is-here";
function note(write) {
  try {
    return write(sessionStorage);
  } catch {
  }
}
function greeting() {
  if (note((its) => its.getItem(NOTE))) return { ended: true, text: "The browser ended this page while it had the model, perhaps because memory was short. The stored answers need no model." };
  const small = matchMedia("(max-width: 640px), (pointer: coarse)").matches || navigator.deviceMemory <= 4 || navigator.connection?.saveData;
  return { text: small ? `To load the model takes a download of ${SIZE}, once, and 1 GB of memory. A phone that has less may end this page. The stored answers need neither.` : "" };
}
var ofThePage = () => globalThis[/* @__PURE__ */ Symbol.for("explainer.model")] ??= Object.assign(new EventTarget(), { numbers: 0 }, greeting());
function kernelOf(model) {
  const hear = (data) => worker.onmessage({ data });
  const worker = { postMessage: (message) => model.send(message), terminate: () => model.off("msg:custom", hear) };
  model.on("msg:custom", hear);
  return worker;
}
function modelRow(heard, widget) {
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
    tell({ worker: void 0, ready: false, text });
    its.dispatchEvent(new CustomEvent("answer", { detail: { ended: true } }));
  };
  const ifKept = (text) => its.kept === false ? "" : text;
  const start = () => {
    const why = base && obstacle();
    if (why) return tell({ text: why });
    const worker = base ? new Worker(new URL("live_gpt_worker.js", base), { type: "module" }) : kernelOf(widget);
    worker.onerror = () => end(navigator.onLine ? "This copy of the site was built without the model. The stored answers stay." : "The site cannot be reached. Check the connection, then load the model again.");
    worker.onmessage = ({ data }) => {
      const { done, total, kept = true } = data;
      if (total) return tell({ done, total, kept, ...done === total && { text: "All is here. The model starts; this takes some seconds." } });
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
  const stop = button("Cancel", () => end(ifKept("Stopped. What has arrived is kept; loading goes on from there.")));
  const remove = button("Remove it from this browser", async () => {
    await caches.delete(CACHE);
    end("Removed. The answers shown stay.");
    tell({ kept: false });
  });
  const bar2 = element("progress", { attributes: { "aria-label": "loading the model" } }), amount = element("span", {});
  const said = element("p", { className: "explorable-hint", tabIndex: -1, style: "margin-bottom:.8rem", attributes: { role: "status" } });
  const node = element("div", {}, element("div", { className: "explorable-controls" }, forgo, load, bar2, amount, stop, remove), said);
  let told;
  const show = () => {
    const had = node.contains(document.activeElement) && document.activeElement;
    load.hidden = !!its.worker;
    forgo.hidden = !its.ended;
    if (base) load.textContent = its.ended ? "Load the model again" : `Load the model (${SIZE})`;
    bar2.hidden = amount.hidden = stop.hidden = !its.worker || its.ready;
    remove.hidden = !its.kept;
    if (base) [bar2.max, bar2.value] = [its.total ?? 1, its.done ?? 0];
    amount.textContent = its.total ? `${Math.round(its.done / 1e6)} of ${Math.round(its.total / 1e6)} MB of weights` : "";
    if (its.text !== told) said.textContent = told = its.text;
    if (had?.hidden) ([stop, forgo, load].find((each) => !each.hidden) ?? said).focus({ preventScroll: true });
  };
  const say = (text) => {
    said.textContent = text || its.text;
  };
  its.addEventListener("change", show);
  its.addEventListener("answer", ({ detail }) => node.isConnected && heard(detail));
  if (base) globalThis.caches?.has(CACHE).then((kept) => kept && !its.kept && tell({ kept }), () => {
  });
  show();
  return {
    node,
    place,
    say,
    number: () => ++its.numbers,
    decline: (text) => say(its.worker && !its.ready ? "The model is still loading." : text),
    ask: (message) => {
      if (its.ready) its.worker.postMessage(message);
      return !!its.ready;
    }
  };
}
var QUIET2 = 500;
var LONGEST = 200;
var asking = ({ kind, steps, question: question2, storedFor: storedFor2, queryOf, messageOf: messageOf2 }) => (root, start, read, change, widget) => {
  let asked = 0, since = 0, sent, timer, shown = question2(start);
  const model = modelRow((data) => {
    if (data.ready && !storedFor2(read())) return ask();
    if (!asked || data[kind] !== asked) return;
    if (data.stopped || data.failed) {
      asked = 0;
      return model.say(data.failed ?? "It stopped, because this page asked something else.");
    }
    if (data.part) model.say(`${data.part} of ${steps} …`);
    if (data.found) {
      asked = 0;
      model.say("Done. Change anything: it is asked again.");
      change({ found: { ...data.found, ...sent, made: `computed ${model.place}, ${Math.round((performance.now() - since) / 1e3)} s` } });
    }
  }, widget);
  const ask = () => {
    const id = model.number(), { message, belongs, refused } = messageOf2(read());
    if (refused) return model.say(refused);
    since = performance.now();
    sent = belongs;
    if (!model.ask({ [kind]: id, ...message })) return model.decline("Load the model to ask it this.");
    asked = id;
    model.say("Asking …");
  };
  const field = element("input", {
    type: "text",
    maxLength: LONGEST,
    style: "flex:1 1 8rem;min-width:0;font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:.3rem;padding:0 .4rem",
    dir: "auto",
    attributes: { "aria-label": "your own query" },
    oninput: () => change({ query: field.value })
  });
  const run = element("button", { type: "button", textContent: "Run it", style: "margin:0", onclick: ask });
  const controls = root.querySelector(".explorable-controls");
  controls.before(model.node);
  controls.append(element("label", {}, element("span", { textContent: "your own query" }), field), run);
  return (state) => {
    if (field.value !== state.query) field.value = state.query;
    const now = question2(state);
    if (now === shown) return;
    const [task] = JSON.parse(shown);
    shown = now;
    asked = 0;
    clearTimeout(timer);
    if (state.task !== task && state.query !== queryOf(state)) return change({ query: queryOf(state) });
    const kept = storedFor2(state);
    if (kept) {
      model.say("");
      change({ found: kept });
    } else timer = setTimeout(ask, QUIET2);
  };
};

// live_parts.js
var Z = 1.959964;
function wilson(x, n) {
  const p = x / n, scale2 = 1 + Z * Z / n, centre = (p + Z * Z / (2 * n)) / scale2, half = Z * Math.sqrt((p * (1 - p) + Z * Z / (4 * n)) / n) / scale2;
  return [centre - half, centre + half];
}
var FROM_THE_RIGHT = /[\u0590-\u08ff\u202a-\u202e\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
var isolated = (text) => FROM_THE_RIGHT.test(text) ? `⁨${text}⁩` : text;
var PART = /^(…)?((?:[0-9A-F]{2})+)(·*)(?: \((.+)\))?$/;
var partOf = (token) => {
  const found = PART.exec(token.trim());
  return found && (found[1] || found[3]) ? found : null;
};
var named = (token) => partOf(token) ? isolated(token.trim()) : token.trim() ? `“${isolated(token.trim())}”` : token.includes("\n") ? "end of line" : "a space";
function spoken(token) {
  const [, rest, bytes, dots, whole] = partOf(token) ?? [], n = bytes?.length / 2;
  return !bytes ? named(token) : rest ? "the last bytes of a character" : `the first ${n > 1 ? `${n} ` : ""}of ${n + dots.length} bytes of ${whole ? `“${isolated(whole)}”` : "a character"}`;
}
var emOf = (c) => /[\u2068\u2069]/.test(c) ? 0 : /[ -~À-ɏ“”…→−×·]/.test(c) ? /[ijlIft.,:;'|!()·]/.test(c) ? 0.42 : /[mwMW@%→]/.test(c) ? 1 : /[A-Z]/.test(c) ? 0.75 : 0.64 : FROM_THE_RIGHT.test(c) ? 0.64 : 1.2;
var charactersOf = (text) => Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
var widthOf = (text, size) => size * charactersOf(text).reduce((sum, c) => sum + emOf(c), 0);
function clip(text, room, size = 13) {
  const all = charactersOf(text);
  while (all.length && widthOf(`${all.join("")}…`, size) > room) all.pop();
  return widthOf(text, size) > room ? `${all.join("")}…` : text;
}
var titled = (before, text, after) => `${before}${isolated(clip(text, 320 - widthOf(before + after, 14), 14))}${after}`;

// live_experiment.js
var SECONDS = {
  "fine-tuned": "fine-tuned on the demonstrations",
  reordered: "a context in another order",
  shuffled: "a context with shuffled answers",
  foreign: "a context of another task"
};
var SHORT = { "fine-tuned": "fine-tuned", reordered: "other order", shuffled: "shuffled", foreign: "another task" };
var LISTED = { "fine-tuned": "fine-tuning", reordered: "context, reordered", shuffled: "context, shuffled", foreign: "context, foreign" };
var ROLES = ["value", "query", "key"];
var isTuned = ({ second }) => second === "fine-tuned";
var two = (x) => Number.isFinite(x) ? x.toFixed(2).replace("-", "−") : "not defined";
var orNone = (x) => Number.isFinite(x) ? two(x) : "none";
function mean(numbers) {
  const known = numbers.filter(Number.isFinite);
  return known.reduce((sum, x) => sum + x, 0) / known.length;
}
var last = ({ second, scale: scale2 }) => isTuned({ second }) && scale2 !== 1 ? `${SHORT[second]} × ${scale2}` : SHORT[second];
var lessonsOf = (found) => ["zero-shot", "in context", last(found)];
var question = ({ task, second, scale: scale2, query }) => JSON.stringify([task, second, isTuned({ second }) ? scale2 : 1, query.trim()]);
var isCurrent = (state) => question(state) === question(state.found);
function storedFor({ study, task, second, scale: scale2, query }) {
  const its = study[task].found[second];
  return question({ task, second, scale: scale2, query }) === question(its) ? its : void 0;
}
function describe(state) {
  const { found, study } = state, [zsl, icl, other] = found.right, { floor, ceiling } = study[found.task].bounds[found.second];
  const [repairs, , both] = found.repaired, [before, inContext, after] = found.answers.map(([[token]]) => spoken(token));
  return (isCurrent(state) ? "" : "Of an earlier choice: ") + `${found.task}, ${found.n} queries: right are ${zsl} without demonstrations, ${icl} in context, and ${other} ${isTuned(found) ? "when" : "with"} ${SECONDS[found.second]}${isTuned(found) && found.scale !== 1 ? `, the update times ${found.scale}` : ""}. Of ${repairs} errors that the context repairs, the second lesson repairs ${both}. The SimAOU of the two changes is ${two(mean(found.sim_aou))}, between a floor of ${two(floor)} and a ceiling of ${two(ceiling)}; SimAMΔ is ${two(found.sim_am_delta)}. After “${isolated(found.query)}” the model expects ${before}, ${inContext} and ${after}.`;
}
var END = { "text-anchor": "end" };
function answered({ found }, when) {
  const row = (name, i) => {
    const at = 42 + 40 * i, x = found.right[i], from = 118, to = WIDTH - 52, [low, high] = wilson(x, found.n), X = (p) => from + p * (to - from);
    return group(
      colour(ROLES[i]),
      words(0, at, name),
      line(from, at - 13, from, at + 7, { "stroke-opacity": 0.4 }),
      x ? bar(from, X(x / found.n), at - 10, 12) : "",
      line(X(low), at + 7, X(high), at + 7, { "stroke-width": 1.5 }),
      words(WIDTH, at, `${x} of ${found.n}`, END)
    );
  };
  return panel(
    `Right answers: ${found.task}${when}`,
    202,
    lessonsOf(found).map(row),
    words(0, 158, "lines below the bars: 95 % intervals (Wilson)", SMALL),
    words(0, 174, "errors repaired:", SMALL),
    words(0, 190, `in context: ${found.repaired[0]}; ${last(found)}: ${found.repaired[1]}; both: ${found.repaired[2]}`, SMALL)
  );
}
var AREA = plane({ left: 40, top: 34, width: 206, height: 150, x: [1, 30], y: [-0.2, 1] });
function similarity({ found, study }, when) {
  const { X, Y, left, top, width, height } = AREA, { floor, ceiling } = study[found.task].bounds[found.second], values = found.sim_aou;
  const bound = (y, text) => [line(left, Y(y), left + width, Y(y), { "stroke-dasharray": "5 4" }), words(left + width + 4, Y(y) + 4, text, SMALL)];
  const points = values.flatMap((y, l) => Number.isFinite(y) ? [[X(l + 1), Y(Math.max(-0.2, y))]] : []);
  return panel(
    `SimAOU of the two changes${when}`,
    236,
    [0, 0.5, 1].map((y) => [line(left, Y(y), left + width, Y(y), { "stroke-opacity": y ? 0.15 : 0.6 }), words(left - 6, Y(y) + 4, y, { ...END, ...SMALL })]),
    [1, 10, 20, 30].map((l) => words(X(l), top + height + 14, l, { "text-anchor": "middle", ...SMALL })),
    words(left + width, top + height + 30, "layer", { ...END, ...SMALL }),
    bound(ceiling, `ceiling ${two(ceiling)}`),
    bound(floor, `floor ${two(floor)}`),
    group(colour("sum"), points.length ? path(through(points), { "stroke-width": 1.5 }) : "", points.map(([x, y]) => marker("M0-2.5A2.5 2.5 0 0 1 0 2.5A2.5 2.5 0 0 1 0-2.5Z", x, y, true))),
    words(0, top + height + 46, `mean over layers ${orNone(mean(values))}; SimAMΔ ${orNone(found.sim_am_delta)}`, { "font-weight": 600 })
  );
}
function ownQuery({ found }, when) {
  const block = (name, i) => found.answers[i].map(([token, p], j) => {
    const at = 60 + 76 * i + 20 * j;
    return [j ? "" : words(0, at - 18, name, { "font-size": 12 }), group(colour(ROLES[i]), words(0, at, clip(named(token), 114)), p > 0 ? bar(118, 118 + p * (WIDTH - 170), at - 9, 11) : "", words(WIDTH, at, percent(p), END))];
  });
  return panel(titled("Next after “", found.query, ` →”${when}`), 278, lessonsOf(found).map(block));
}
function panels(state) {
  const when = isCurrent(state) ? "" : " (earlier)";
  return [answered(state, when), similarity(state, when), ownQuery(state, when)];
}
function messageOf({ task, second, scale: scale2, query, lessons, study }) {
  const { pattern, curves, queries } = lessons[task], tuned = isTuned({ second });
  const others = { ...curves, reordered: study[task].order.map((i) => curves.right[i]) };
  return {
    message: { task, lesson: second, pattern, demonstrations: curves.right, second: others[second], update: tuned ? task : null, scale: scale2, queries, query: query.trim() },
    belongs: { task, second, scale: tuned ? scale2 : 1 }
  };
}
var asks = asking({ kind: "experiment", steps: "3 lessons are asked", question, storedFor, messageOf, queryOf: ({ study, task, second }) => study[task].found[second].query });
function laboratory(root, ...given) {
  const update = asks(root, ...given), scale2 = root.querySelector("input[type=range]");
  return (state) => {
    scale2.disabled = !isTuned(state);
    update(state);
  };
}
var live_experiment_default = explorable({
  question: "Do the demonstrations change the model as fine-tuning on them does?",
  hint: "The stored answers were computed with Python. Load the model to run the comparison yourself, with your own query and with more or less of the update.",
  traits: ["task", "second", "scale", "query", "found", "study", "lessons"],
  lists: ({ study }) => [["task", "task", Object.keys(study).map((name) => [name, name])], ["second", "second lesson", Object.entries(LISTED)]],
  sliders: [slider("scale", "update times", [0, 2, 0.25], two)],
  panels,
  describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend: laboratory
});
export {
  live_experiment_default as default
};
