// Made of js/live_sweep.js by "make explorables": change that file, not this one.

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
var through = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
var DIAMOND = "M0-6L6 0L0 6L-6 0Z";
var SQUARE = "M-4-4h8v8h-8Z";
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
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
  const spoken = { "aria-label": `${label}, ${value}`, "aria-valuetext": value };
  const range = { "aria-valuemin": p.x[0], "aria-valuemax": p.x[1], "aria-valuenow": at[0] };
  for (const [key, text] of Object.entries({ ...spoken, ...range })) node.setAttribute(key, text);
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

// live_model.js
var SIZE = "115 MB";
var CACHE = "explainer-model";
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
  const bar = element("progress", { attributes: { "aria-label": "loading the model" } }), amount = element("span", {});
  const said = element("p", { className: "explorable-hint", tabIndex: -1, style: "margin-bottom:.8rem", attributes: { role: "status" } });
  const node = element("div", {}, element("div", { className: "explorable-controls" }, forgo, load, bar, amount, stop, remove), said);
  let told;
  const show = () => {
    const had = node.contains(document.activeElement) && document.activeElement;
    load.hidden = !!its.worker;
    forgo.hidden = !its.ended;
    if (base) load.textContent = its.ended ? "Load the model again" : `Load the model (${SIZE})`;
    bar.hidden = amount.hidden = stop.hidden = !its.worker || its.ready;
    remove.hidden = !its.kept;
    if (base) [bar.max, bar.value] = [its.total ?? 1, its.done ?? 0];
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

// live_parts.js
var Z = 1.959964;
function wilson(x, n) {
  const p = x / n, scale2 = 1 + Z * Z / n, centre = (p + Z * Z / (2 * n)) / scale2, half = Z * Math.sqrt((p * (1 - p) + Z * Z / (4 * n)) / n) / scale2;
  return [centre - half, centre + half];
}

// live_sweep.js
var KINDS = [["right", "right answers", "query"], ["shuffled", "shuffled answers", "value"], ["foreign", "another task", "key"]];
var MARKS = { right: "M0-4A4 4 0 0 1 0 4A4 4 0 0 1 0-4Z", shuffled: SQUARE, foreign: DIAMOND };
var SIZES = [10, 20, 30];
var percent = (p) => `${Math.round(100 * p)}`;
var last = (counts) => Math.min(...KINDS.map(([kind]) => counts[kind].length)) - 1;
function describe({ found: { task, n, counts } }) {
  const k = last(counts);
  if (k < 0) return `The sweep over ${n} queries of ${task} begins.`;
  const [low, high] = wilson(counts.right[k], n).map(percent);
  return `${task}, ${n} queries: without demonstrations the model writes ${counts.right[0]} answers word for word. After ${k} right demonstrations it writes ${counts.right[k]} (95 % interval: ${low} to ${high} %), after ${k} with shuffled answers ${counts.shuffled[k]}, and after ${k} of another task ${counts.foreign[k]}.`;
}
var AREA = plane({ left: 44, top: 40, width: 264, height: 190, x: [-0.5, 16.5], y: [0, 1] });
function grid({ X, Y, left, top, width, height }) {
  return [
    [0, 0.5, 1].map((y) => [line(left, Y(y), left + width, Y(y), { "stroke-opacity": y ? 0.15 : 0.6 }), words(left - 6, Y(y) + 4, `${percent(y)} %`, { "text-anchor": "end", ...SMALL })]),
    [0, 4, 8, 12, 16].map((k) => words(X(k), top + height + 15, k, { "text-anchor": "middle", ...SMALL })),
    words(left + width, top + height + 31, "demonstrations k", { "text-anchor": "end", ...SMALL })
  ];
}
function curve({ n, counts }, [kind, , role], i) {
  const points = counts[kind].map((x, k) => [AREA.X(k + 0.16 * (i - 1)), AREA.Y(x / n)]);
  const whisker = (x, k) => line(points[k][0], AREA.Y(wilson(x, n)[0]), points[k][0], AREA.Y(wilson(x, n)[1]), { "stroke-opacity": 0.35 });
  return group(colour(role), counts[kind].map(whisker), points.length ? path(through(points), { "stroke-width": 1.5 }) : "", points.map(([x, y]) => marker(MARKS[kind], x, y, true)));
}
function numbers({ n, counts }) {
  const k = last(counts), right = { "text-anchor": "end" };
  const row = ([kind, name, role], i) => {
    const at = 48 + 56 * i, x = counts[kind][k], [low, high] = k < 0 ? [0, 0] : wilson(x, n);
    return [
      group(colour(role), marker(MARKS[kind], 8, at - 4, true)),
      words(24, at, name),
      words(WIDTH, at, k < 0 ? "" : `${x} of ${n}`, { ...right, "font-weight": 600 }),
      words(WIDTH, at + 18, k < 0 ? "" : `95 % interval: ${percent(low)} to ${percent(high)} %`, { ...right, ...SMALL })
    ];
  };
  return panel(k < 0 ? "No point is complete yet" : `Word for word right at k = ${k}`, 290, KINDS.map(row));
}
var panels = ({ found }) => [panel(`Exact match: ${found.task}, ${found.n} queries`, 290, grid(AREA), KINDS.map((kind, i) => curve(found, kind, i))), numbers(found)];
var stored = ({ lessons }, task) => ({ task, n: lessons[task].queries.length, counts: lessons[task].counts, made: "computed with Python and stored with the book" });
function runner(root, start, read, change, widget) {
  let running = 0, since, mine;
  const quiet = () => {
    const focused = root.getRootNode().activeElement === stop;
    running = 0;
    [run.hidden, stop.hidden] = [false, true];
    if (focused) run.focus();
  };
  const model = modelRow((data) => {
    if (data.ended) return quiet();
    if (!running || data.sweep !== running) return;
    if (data.stopped) model.say("The sweep stopped, because this page asked something else.");
    if (data.failed) model.say(data.failed);
    if (data.done || data.failed) return quiet();
    const { found } = read(), kind = KINDS[data.curve][0], right = data.exact.filter(Boolean).length;
    mine = { ...found, counts: { ...found.counts, [kind]: [...found.counts[kind], right] }, made: `computed ${model.place}, ${Math.round((performance.now() - since) / 1e3)} s` };
    change({ found: mine });
  }, widget);
  const button = (textContent, onclick, hidden) => element("button", { type: "button", textContent, onclick, hidden, style: "margin:0" });
  const size = element("select", {}, ...SIZES.map((n) => element("option", { textContent: n, value: n })));
  const run = button("Run it", () => {
    const { task, lessons } = read(), { pattern, curves, queries } = lessons[task], n = +size.value, id = model.number();
    since = performance.now();
    if (!model.ask({ sweep: id, pattern, curves: KINDS.map(([kind]) => curves[kind]), queries: queries.slice(0, n) })) return model.decline("Load the model to run it here.");
    running = id;
    mine = { task, n, counts: { right: [], shuffled: [], foreign: [] }, made: `being computed ${model.place}` };
    change({ found: mine });
    [run.hidden, stop.hidden] = [true, false];
    stop.focus();
  });
  const halt = () => {
    model.ask({ sweep: 0 });
    quiet();
  };
  const stop = button("Stop", () => {
    halt();
    model.say("Stopped. The curves end where you stopped them.");
  }, true);
  root.querySelector("button").addEventListener("click", () => {
    size.value = SIZES[0];
  });
  const controls = root.querySelector(".explorable-controls");
  controls.before(model.node);
  controls.append(element("label", {}, element("span", { textContent: "queries" }), size), run, stop);
  let shown = start.task;
  return (state) => {
    if (running && state.found !== mine) halt();
    if (state.task === shown) return;
    shown = state.task;
    change({ found: stored(state, shown) });
  };
}
var live_sweep_default = explorable({
  question: "How many demonstrations does the model need, and must their answers be right?",
  hint: "The stored curves were computed with Python. Load the model and run the sweep yourself: the counts come one k after the other.",
  traits: ["task", "found", "lessons"],
  panels,
  describe,
  lists: ({ lessons }) => [["task", "task", Object.keys(lessons).map((name) => [name, name])]],
  answers: ({ found }) => [["these counts were", found.made]],
  extend: runner
});
export {
  live_sweep_default as default
};
