// Made of js/live_attention.js by "make explorables": change that file, not this one.

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
var PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };
var badge = (x, y, text, r = 9) => tag("circle", { cx: x, cy: y, r, ...PAPER }) + group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", "font-size": 11 }));
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
function compose(panels, alt) {
  const gap = 28, placed = [];
  let y = 0;
  for (let i = 0; i < panels.length; i += 2) {
    const row = panels.slice(i, i + 2);
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
function note(write2) {
  try {
    return write2(sessionStorage);
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
      const { done, total: total2, kept = true } = data;
      if (total2) return tell({ done, total: total2, kept, ...done === total2 && { text: "All is here. The model starts; this takes some seconds." } });
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

// live_parts.js
var FROM_THE_RIGHT = /[\u0590-\u08ff\u202a-\u202e\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
var isolated = (text) => FROM_THE_RIGHT.test(text) ? `⁨${text}⁩` : text;
var PART = /^(…)?((?:[0-9A-F]{2})+)(·*)(?: \((.+)\))?$/;
var partOf = (token) => {
  const found = PART.exec(token.trim());
  return found && (found[1] || found[3]) ? found : null;
};
var hasParts = (tokens) => tokens.some(([token]) => partOf(token));
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

// live_workshop.js
var MOST = 16;
var LONGEST = 400;
var QUIET2 = 500;
var question = ({ pattern, demonstrations, query, hidden }) => [pattern, demonstrations, query, hidden];
var isCurrent = (state) => JSON.stringify(question(state)) === JSON.stringify(state.found.of);
var seen = ({ demonstrations, hidden }) => demonstrations.length - hidden.length;
var storedOf = (state) => Object.values(state.presets).find(({ found }) => isCurrent({ ...state, found }))?.found;
function mostNeeded({ with: [[, p]], alone }) {
  const drops = alone.map((q) => q === null ? -1 : p - q), most = Math.max(...drops);
  return most > 0 ? drops.indexOf(most) : -1;
}
function expected(state) {
  const { found } = state, [pattern, demonstrations, query, hidden] = found.of, most = mostNeeded(found);
  const expects = ([[token, p]]) => `${spoken(token)} (${percent(p)})`;
  return (isCurrent(state) ? "" : "Of an earlier text: ") + `After “${isolated(query)}${pattern[1].replace("->", "→").replaceAll("\n", " ")}” the model expects ${expects(found.without)} without demonstrations, and ${expects(found.with)} when it sees ${seen({ demonstrations, hidden })} of ${demonstrations.length}.` + (most < 0 ? "" : ` It needs demonstration ${most + 1} most: when that is hidden, ${spoken(found.with[0][0])} has ${percent(found.alone[most])}.`);
}
var right = { "text-anchor": "end" };
var share = (y, from, p) => [
  line(from, y - 11, from, y + 5, { "stroke-opacity": 0.4 }),
  p > 0 ? bar(from, from + p * (WIDTH - 46 - from), y - 9, 12) : "",
  words(WIDTH, y, percent(p), right)
];
var earlier = (state) => isCurrent(state) ? "" : " (earlier)";
var nextPanel = (title, tokens, role) => panel(
  title,
  164,
  tokens.map(([token, p], i) => [words(0, 44 + 25 * i, clip(named(token), 114)), group(colour(role), share(44 + 25 * i, 118, p))]),
  hasParts(tokens) ? words(0, 162, "hexadecimal: part of a character; · is a missing byte", SMALL) : ""
);
var answered = (state) => [
  nextPanel(`Next, without demonstrations${earlier(state)}`, state.found.without, "value"),
  nextPanel(`Next, with ${seen({ demonstrations: state.found.of[1], hidden: state.found.of[3] })} of ${state.found.of[1].length}${earlier(state)}`, state.found.with, "query")
];
function fromLink(hash) {
  try {
    const [pattern, demonstrations, query, hidden] = JSON.parse(decodeURIComponent(hash.replace(/^#gpt=/, "")));
    const text = (one) => typeof one === "string" && one.length <= LONGEST;
    const pairs = (rows) => Array.isArray(rows) && rows.every((row) => Array.isArray(row) && row.length === 2 && row.every(text));
    const fits = pairs([pattern]) && pairs(demonstrations) && demonstrations.length <= MOST && text(query) && Array.isArray(hidden) && new Set(hidden).size === hidden.length && hidden.every((i) => Number.isInteger(i) && i >= 0 && i < demonstrations.length);
    return fits ? { pattern, demonstrations, query, hidden } : null;
  } catch {
    return null;
  }
}
var STYLE = "flex:1 1 8rem;min-width:0;max-width:none;font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:.3rem;padding:0 .4rem";
var field = (label, put) => element("input", { type: "text", dir: "auto", maxLength: LONGEST, style: STYLE, attributes: { "aria-label": label }, oninput: ({ target }) => put(target.value) });
var write = (input, value) => {
  if (input.value !== value) input.value = value;
};
function demonstrationRow(i, read, change) {
  const at = (j) => (text) => change({ demonstrations: read().demonstrations.map((pair, k) => k === i ? pair.with(j, text) : pair) });
  const box = element("input", {
    type: "checkbox",
    style: "flex:none;min-width:0;width:1.3rem",
    attributes: { "aria-label": `the query sees demonstration ${i + 1}` },
    onchange: () => change({ hidden: [...read().hidden.filter((k) => k !== i), ...box.checked ? [] : [i]].sort((a, b) => a - b) })
  });
  const [x, y] = [field(`demonstration ${i + 1}`, at(0)), field(`answer of demonstration ${i + 1}`, at(1))];
  const node = element(
    "div",
    { className: "explorable-controls", style: "flex-wrap:nowrap;gap:.5rem;margin:.25rem 0" },
    box,
    element("span", { textContent: i + 1, style: "min-width:1.2rem" }),
    x,
    element("span", { textContent: "→" }),
    y
  );
  const update = ({ demonstrations, hidden }) => {
    box.checked = !hidden.includes(i);
    write(x, demonstrations[i][0]);
    write(y, demonstrations[i][1]);
  };
  return { node, update };
}
var workshop = ({ below = false, storedFor: storedFor2 = storedOf } = {}) => (root, start, read, change, widget) => {
  let asked = 0, timer, since = 0;
  const model = modelRow((data) => {
    if (data.ready) return ask();
    if (!asked || data.id !== asked) return;
    model.say(data.failed ?? "");
    if (!data.found) return;
    change({ found: { ...data.found, of: sent, made: `computed ${model.place}, ${((performance.now() - since) / 1e3).toFixed(1)} s` } });
  }, widget);
  let sent;
  const ask = () => {
    const state = read(), [pattern, demonstrations, query2, hidden] = question(state);
    const trimmed = demonstrations.map((pair) => pair.map((text2) => text2.trim())), empty = trimmed.findIndex((pair) => !(pair[0] && pair[1]));
    if (empty >= 0) return model.say(`Fill in demonstration ${empty + 1}, or remove it.`);
    since = performance.now();
    const id = model.number();
    if (!model.ask({ ask: id, pattern, demonstrations: trimmed, query: query2.trim(), hidden })) return model.decline("Load the model to ask it about this text.");
    [asked, sent] = [id, question(state)];
    model.say("Asking …");
  };
  const button = (textContent, patch) => element("button", { type: "button", textContent, style: "margin:0", onclick: () => change(patch(read())) });
  const presets = Object.entries(start.presets).map(([name, { hiding, ...its }]) => button(name, () => its));
  const rows = [], list = element("div", {});
  const query = field("query", (text2) => change({ query: text2 }));
  const add2 = button("add a demonstration", ({ demonstrations }) => ({ demonstrations: [...demonstrations, ["", ""]].slice(0, MOST) }));
  const drop = button("remove the last", ({ demonstrations: all, hidden }) => ({ demonstrations: all.slice(0, -1), hidden: hidden.filter((i) => i < all.length - 1) }));
  const link = element("button", { type: "button", textContent: "link to this", style: "margin:0", onclick: () => {
    history.replaceState(null, "", `#gpt=${encodeURIComponent(JSON.stringify(question(read())))}`);
    model.say("The address of this page now holds your demonstrations, query and switches. Copy it from the browser.");
  } });
  const row = (...nodes) => element("div", { className: "explorable-controls" }, ...nodes);
  const text = [list, row(element("span", { textContent: "Query" }), query)], tasks = presets.length ? row("Tasks of the book:", ...presets) : "";
  const controls = root.querySelector(".explorable-controls"), drawn = root.querySelector(".explorable-panels");
  if (below) {
    drawn.before(...text);
    drawn.after(row(add2, drop, link, ...controls.childNodes), tasks, model.node);
    controls.remove();
  } else controls.before(model.node, tasks, ...text, row(add2, drop, link));
  const follow = () => {
    if (!globalThis.location?.hash.startsWith("#gpt=")) return;
    const linked = fromLink(location.hash);
    if (linked) change({ ...linked, found: storedFor2({ ...start, ...linked }) ?? start.found });
    else model.say("The link is damaged. This is a text of the book.");
  };
  globalThis.addEventListener?.("hashchange", follow);
  follow();
  let last = JSON.stringify(question(start));
  return (state) => {
    const n = state.demonstrations.length;
    while (rows.length < n) {
      rows.push(demonstrationRow(rows.length, read, change));
      list.append(rows.at(-1).node);
    }
    rows.splice(n).forEach(({ node }) => node.remove());
    rows.forEach((each) => each.update(state));
    write(query, state.query);
    const focused = root.getRootNode().activeElement;
    [add2.disabled, drop.disabled] = [n >= MOST, n === 0];
    if (focused?.disabled) (focused === add2 ? drop : add2).focus();
    const now = JSON.stringify(question(state));
    if (now === last) return;
    last = now;
    asked = 0;
    clearTimeout(timer);
    model.say("");
    const kept = storedFor2(state);
    if (kept) return isCurrent(state) || change({ found: kept });
    timer = setTimeout(() => isCurrent(read()) || ask(), QUIET2);
  };
};

// live_attention.js
var total = (numbers) => numbers.reduce((sum, x) => sum + x, 0);
function attentionOf({ looks, attention }) {
  if (!looks) return attention;
  const first = Math.floor(2 * looks.length / 3), heads = looks.slice(first).flat();
  return [first + 1, looks.length, heads[0].map((_, i) => total(heads.map((its) => its[i])) / heads.length)];
}
var same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
function storedFor(state) {
  const its = Object.values(state.presets).find(({ found }) => same(question({ ...state, hidden: [] }), found.of));
  if (!its || !state.hidden.length) return its?.found;
  const [, then, alone, attention] = its.hiding.find(([hidden]) => same(hidden, state.hidden)) ?? [];
  return then && { ...its.found, of: question(state), with: then, alone, attention };
}
function describe(state) {
  const [first, last, shares] = attentionOf(state.found), most = Math.max(0, ...shares);
  return expected(state) + (most ? ` In layers ${first} to ${last} the last token looks most at demonstration ${shares.indexOf(most) + 1}: ${percent(most / 1e3)} of its attention.` : "");
}
var HEIGHT = 352;
var TOP = 50;
var LAST = 284;
var EDGE = 188;
var widthOf2 = (share2) => Math.min(14, 1 + 0.045 * share2);
function arc(y, share2) {
  const wide = widthOf2(share2), tip = 5 + wide, bend = EDGE + 26 + 0.34 * (LAST - y);
  return path(`M${EDGE} ${LAST - 4}C${bend} ${LAST - 4} ${bend} ${y} ${EDGE + tip} ${y}`, { "stroke-width": wide, "stroke-opacity": 0.6 }) + path(`M${EDGE - 2} ${y}L${EDGE + tip} ${y - tip * 0.6}L${EDGE + tip} ${y + tip * 0.6}Z`, { fill: "currentColor", stroke: "none" });
}
function looksPanel(state) {
  const { found } = state, [pattern, demonstrations, query, hidden] = found.of, [first, last, shares] = attentionOf(found);
  const n = demonstrations.length, step = Math.min(44, (LAST - 30 - TOP) / Math.max(1, n - 1)), size = { "font-size": n > 9 ? 11 : 12 };
  const row = ([x, y], i) => {
    const at = TOP + step * i, gone = hidden.includes(i);
    return [
      group(gone ? { opacity: 0.65 } : {}, group(colour("key"), badge(10, at, i + 1, n > 9 ? 7 : 9)), words(26, at + 4, clip(`${isolated(x)} → ${isolated(y)}`, EDGE - 30, 12), size)),
      gone ? words(WIDTH, at + 4, "hidden", { ...SMALL, "text-anchor": "end" }) : [group(colour("query"), arc(at, shares[i])), words(WIDTH, at + 4, percent(shares[i] / 1e3), { "text-anchor": "end", "font-weight": 600, ...size })]
    ];
  };
  const asked = `${query}${pattern[1]}`.replace("->", "→").replaceAll("\n", " ");
  return panel(
    `Where the last token looks${earlier(state)}`,
    HEIGHT,
    demonstrations.map(row),
    words(26, LAST, clip(isolated(asked), EDGE - 30, 13), { "font-weight": 600 }),
    words(0, 320, `its attention in layers ${first} to ${last}, mean over the heads`, SMALL),
    words(0, 335, `the rest: ${percent(1 - total(shares) / 1e3)}, to the query and to the first token`, SMALL)
  );
}
function answersPanel(state) {
  const [without, seeing] = answered(state), down = without.height + 14;
  return panel(without.title, HEIGHT, without.body, group({ transform: `translate(0 ${down})` }, words(0, 14, seeing.title, { "font-weight": 600 }), seeing.body));
}
var live_attention_default = explorable({
  question: "Where does a real GPT look before it answers, and what does it expect next?",
  hint: "Without its tick a demonstration is hidden from the query, and its arrow is gone; no position moves. Write your own words, or take a task of the book.",
  traits: ["pattern", "demonstrations", "query", "hidden", "found", "presets"],
  panels: (state) => [looksPanel(state), answersPanel(state)],
  describe,
  answers: ({ found }) => [["these answers were", found.made]],
  extend: workshop({ below: true, storedFor })
});
export {
  live_attention_default as default
};
