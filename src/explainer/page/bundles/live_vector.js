// Made of js/live_vector.js by "make explorables": change that file, not this one.

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
function bar(start, end, y, height) {
  const [x, width] = [Math.min(start, end), Math.max(1, Math.abs(end - start))];
  return rect(x, y, width, height, { stroke: "currentColor", "stroke-width": 1.5, "fill-opacity": end < start ? 0.08 : 0.75 });
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
var asking = ({ kind, steps, question, storedFor: storedFor2, queryOf, messageOf: messageOf2 }) => (root, start, read, change, widget) => {
  let asked2 = 0, since = 0, sent, timer, shown = question(start);
  const model = modelRow((data) => {
    if (data.ready && !storedFor2(read())) return ask();
    if (!asked2 || data[kind] !== asked2) return;
    if (data.stopped || data.failed) {
      asked2 = 0;
      return model.say(data.failed ?? "It stopped, because this page asked something else.");
    }
    if (data.part) model.say(`${data.part} of ${steps} …`);
    if (data.found) {
      asked2 = 0;
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
    asked2 = id;
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
    const now = question(state);
    if (now === shown) return;
    const [task] = JSON.parse(shown);
    shown = now;
    asked2 = 0;
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

// live_vector.js
var PATTERN = ["", " ->"];
var FEWEST = 2;
var MOST = 16;
var LONGEST2 = 2e3;
var ROLES = ["value", "sum", "key"];
var END = { "text-anchor": "end" };
function demonstrationsOf(lesson) {
  const rows = lesson.split("\n").filter((row) => row.trim()).map((row) => row.split("->").map((part) => part.trim()));
  return rows.length >= FEWEST && rows.length <= MOST && rows.every((row) => row.length === 2 && row.every(Boolean)) ? rows : null;
}
var lessonOf = (demonstrations) => demonstrations.map((pair) => pair.join(" -> ")).join("\n");
var asked = (lesson, query) => JSON.stringify([demonstrationsOf(lesson), query.trim()]);
var answered = ({ demonstrations, query }) => asked(lessonOf(demonstrations), query);
var isCurrent = ({ lesson, query, found }) => asked(lesson, query) === answered(found);
function storedFor({ study, task, lesson, query }) {
  const its = study[task].found;
  return asked(lesson, query) === answered(its) ? its : void 0;
}
var bestLayer = ({ p: [, , own] }) => own.indexOf(Math.max(...own)) + 1;
var share = (p) => percent(p).replace("<", "less than");
function describe(state) {
  const { found, layer } = state, [zsl, icl, own, moved] = found.p, at = bestLayer(found), [token] = found.with[0];
  const [next, most] = found.layers[layer - 1][0], [first, its] = found.without[0];
  return (isCurrent(state) ? "" : "Of an earlier text: ") + `After “${isolated(found.query)}” the model expects ${spoken(first)} (${share(its)}) without demonstrations, and ${spoken(token)} (${share(icl)}) with ${found.demonstrations.length} of them. Without them, with their vector added after layer ${layer}, it expects ${spoken(next)} (${share(most)}). There ${spoken(token)} has ${share(own[layer - 1])}; with the vector of the same words after answers that moved on by one it has ${share(moved[layer - 1])}, and with nothing ${share(zsl)}. The vector does most after layer ${at}: ${share(own[at - 1])}.`;
}
function nextTokens({ found, layer }, when) {
  const names = [["empty prompt", found.without], [`${found.demonstrations.length} demonstrations`, found.with], [`empty prompt + vector, layer ${layer}`, found.layers[layer - 1]]];
  const block = ([name, tokens], i) => tokens.map(([token, p], j) => {
    const at = 60 + 76 * i + 20 * j;
    return [j ? "" : words(0, at - 18, name, { "font-size": 12 }), group(
      colour(ROLES[i]),
      words(0, at, clip(named(token), 114)),
      p > 0 ? bar(118, 118 + p * (WIDTH - 170), at - 9, 11) : "",
      words(WIDTH, at, percent(p), END)
    )];
  });
  return panel(titled("Next after “", found.query, ` →”${when}`), 276, names.map(block));
}
var LEFT = 48;
var TOP = 44;
var FOOT = 190;
function byLayer({ found, layer, study, task }, when) {
  const [zsl, icl, own, moved] = found.p, L = own.length, [token] = found.with[0], its = study[task].study;
  const X = (l) => LEFT + (WIDTH - LEFT - 8) * (l - 1) / (L - 1), Y = (p) => FOOT - (FOOT - TOP) * p;
  const curve = (values, role, more) => group(colour(role), path(through(values.map((p, i) => [X(i + 1), Y(p)])), { "stroke-width": 2, ...more }));
  const level = (p, role) => group(colour(role), line(LEFT, Y(p), WIDTH - 8, Y(p), { "stroke-dasharray": "6 3" }));
  return panel(
    titled("Probability of ", named(token), when),
    300,
    [0, 0.5, 1].map((p) => [words(LEFT - 6, Y(p) + 4, percent(p), { ...END, ...SMALL }), line(LEFT, Y(p), WIDTH - 8, Y(p), { "stroke-opacity": 0.2 })]),
    [1, 10, 20, L].map((l) => words(X(l), FOOT + 16, l, { "text-anchor": "middle", ...SMALL })),
    level(zsl, "value"),
    level(icl, "sum"),
    curve(own, "key"),
    curve(moved, "key", { "stroke-dasharray": "2 4" }),
    line(X(layer), TOP, X(layer), FOOT, { "stroke-opacity": 0.5 }),
    words(0, FOOT + 34, "layer after which the vector is added", SMALL),
    words(0, FOOT + 52, "solid: your vector; dotted: answers moved on by one", SMALL),
    words(0, FOOT + 67, "dashed: with demonstrations (upper), empty (lower)", SMALL),
    words(0, FOOT + 86, `study, ${task}: context ${percent(its.icl)}, vector ${percent(its.vector)},`, SMALL),
    words(0, FOOT + 100, `vector of shuffled answers ${percent(its.shuffled)}`, SMALL)
  );
}
function panels(state) {
  const when = isCurrent(state) ? "" : " (earlier)";
  return [nextTokens(state, when), byLayer(state, when)];
}
function messageOf({ lesson, query }) {
  const demonstrations = demonstrationsOf(lesson);
  if (!demonstrations) return { refused: `Write ${FEWEST} to ${MOST} lines like cat -> cats.` };
  return { message: { pattern: PATTERN, demonstrations, query: query.trim() }, belongs: {} };
}
var extendAsking = asking({
  kind: "vector",
  steps: "2 vectors are made",
  question: ({ task, lesson, query }) => JSON.stringify([task, asked(lesson, query)]),
  storedFor,
  messageOf,
  queryOf: ({ study, task }) => study[task].query
});
function extend(root, start, read, change, widget) {
  let { task } = start;
  const update = extendAsking(root, start, read, change, widget);
  const field = element("textarea", {
    rows: 8,
    maxLength: LONGEST2,
    spellcheck: false,
    dir: "auto",
    attributes: { "aria-label": "your demonstrations, a line for each" },
    style: "width:100%;box-sizing:border-box;font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:.3rem;padding:.2rem .4rem",
    oninput: () => change({ lesson: field.value })
  });
  root.querySelector(".explorable-controls").before(element("label", { style: "display:block" }, element("span", { textContent: "your demonstrations" }), field));
  return (state) => {
    if (field.value !== state.lesson) field.value = state.lesson;
    if (state.task === task) return update(state);
    ({ task } = state);
    const { lesson, query } = state.study[task];
    if (state.lesson === lesson && state.query === query) return update(state);
    change({ lesson, query });
  };
}
var live_vector_default = explorable({
  question: "Does one vector carry your demonstrations to a prompt without any?",
  hint: "The vector is what demonstrations add to the residual stream at the last token, the mean over them: each is asked after all the others. The stored answers were computed with Python. Load the model to take the vector of your own demonstrations.",
  traits: ["task", "lesson", "query", "layer", "found", "study"],
  lists: ({ study }) => [["task", "task", Object.keys(study).map((name) => [name, name])]],
  sliders: [slider("layer", "added after layer", [1, 30, 1], (n) => `${n}`)],
  panels,
  describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend
});
export {
  live_vector_default as default
};
