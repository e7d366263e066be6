// Made of js/contrast.js by "make explorables": change that file, not this one.

// algebra.js
function dot(a, b) {
  let sum2 = 0;
  for (let i = 0; i < a.length; i++) sum2 += a[i] * b[i];
  return sum2;
}
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var subtract = (a, b) => a.map((a_i, i) => a_i - b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);
var sum = (a) => a.reduce((total, a_i) => total + a_i, 0);
var mean = (a) => sum(a) / a.length;

// numbers.js
var MINUS = "−";
function fixed(number, digits = 2, plus = "") {
  const size = Math.abs(number).toFixed(digits);
  return (Number(size) === 0 ? "" : number < 0 ? MINUS : plus) + size;
}
var vector = (a, digits = 2) => `(${a.map((a_i) => fixed(a_i, digits)).join(", ")})`;

// drawing.js
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
var entry = (x, y, text, number) => words(x, y, text, { "font-size": 12 }) + words(WIDTH, y, number, { "text-anchor": "end", "font-weight": 600 });
var PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };
var badge = (x, y, text, r = 9) => tag("circle", { cx: x, cy: y, r, ...PAPER }) + group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", "font-size": 11 }));
var diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);
function arrow(x1, y1, x2, y2, more) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return "";
  const head = Math.min(8, length), [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
  const [bx, by] = [x2 - head * u, y2 - head * v], w = head * 0.45;
  const tip = `M${x2} ${y2}L${bx - w * v} ${by + w * u}L${bx + w * v} ${by - w * u}Z`;
  return group({ ...more }, line(x1, y1, bx, by, { "stroke-width": 2 }), path(tip, { fill: "currentColor", stroke: "none" }));
}
function bar(start, end, y, height) {
  const [x, width] = [Math.min(start, end), Math.max(1, Math.abs(end - start))];
  return rect(x, y, width, height, { stroke: "currentColor", "stroke-width": 1.5, "fill-opacity": end < start ? 0.08 : 0.75 });
}
function plane({ left, top, width, height, x: [x0, x1], y: [y0, y1] }) {
  const X2 = (x) => left + (x - x0) / (x1 - x0) * width, Y = (y) => top + (y1 - y) / (y1 - y0) * height;
  const invert = (px, py) => [x0 + (px - left) / width * (x1 - x0), y1 - (py - top) / height * (y1 - y0)];
  const inside = (...children) => tag("svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" }, ...children);
  return { X: X2, Y, invert, inside, left, top, width, height, x: [x0, x1], y: [y0, y1] };
}
var SPAN = [-2, 2];
var LIMIT = SPAN[1];
function shortOf(from, to, gap = 10) {
  const away = subtract(from, to), length = Math.hypot(...away);
  return length > gap ? add(to, scale(gap / length, away)) : from;
}
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

// frame.js
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
    const { plane: p, at: at2 } = item(), [x, y] = pointer(event);
    grip = [x - p.X(at2[0]), y - p.Y(at2[1])];
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
function placeHandle(node, { label, plane: p, at: at2, horizontal }, panelHeight) {
  const [x, y] = [Math.min(p.x[1], Math.max(p.x[0], at2[0])), Math.min(p.y[1], Math.max(p.y[0], at2[1]))];
  node.style.left = `${100 * p.X(x) / WIDTH}%`;
  node.style.top = `${100 * p.Y(y) / panelHeight}%`;
  const value = horizontal ? fixed(at2[0]) : vector(at2);
  const spoken = { "aria-label": `${label}, ${value}`, "aria-valuetext": value };
  const range = { "aria-valuemin": p.x[0], "aria-valuemax": p.x[1], "aria-valuenow": at2[0] };
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
  const drawing = element("div", {}), node = element("div", { className: "explorable-panel" }, drawing), handles2 = [];
  const update = (panel2, items) => {
    drawing.innerHTML = panelSvg(panel2);
    handles2.splice(items.length).forEach((handle) => handle.remove());
    items.forEach((item, k) => {
      if (!handles2[k]) node.append(handles2[k] = handleElement(() => itemOf(k), put, signal));
      placeHandle(handles2[k], item, panel2.height);
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

// contrast.js
var cosine = (a, b) => dot(a, b) / (Math.hypot(...a) * Math.hypot(...b) || 1);
function changes({ points, shared, exchanged }) {
  const [c_A, c_B, first, second] = points.map(([x, y]) => [x + shared, y]);
  return exchanged ? [c_A, c_B, second, first] : [c_A, c_B, first, second];
}
function cosines(state) {
  const [c_A, c_B, f_A, f_B] = changes(state);
  return { similarity: mean([cosine(c_A, f_A), cosine(c_B, f_B)]), contrast: cosine(subtract(c_A, c_B), subtract(f_A, f_B)) };
}
var two = (value) => fixed(value, 2);
var interval = ([its, low, high]) => `${two(its)} [${two(low)}, ${two(high)}]`;
var ofGPT = ({ found, exchanged }) => exchanged ? [found.foreign, found.contrast.map((x) => -x)] : [found.similarity, found.contrast];
function describe(state) {
  const { similarity, contrast } = cosines(state), [[s], [c]] = ofGPT(state);
  return `A context and a training on ${state.exchanged ? "the wrong" : "the same"} lesson have the similarity ${two(similarity)}, mean of A and B. The two arrows, A minus B, have the cosine ${two(contrast)}: what A and B share has cancelled. Measured in the upper third of the GPT: ${two(s)} and ${two(c)}.`;
}
var HEIGHT = 300;
var CONTEXT = "sum";
var TRAINING = "query";
var P = /* @__PURE__ */ plane({ left: 10, top: 30, width: 300, height: 262, x: [-0.7, 2.5], y: [-1.4, 1.4] });
var at = ([x, y]) => [P.X(x), P.Y(y)];
var ORIGIN = /* @__PURE__ */ at([0, 0]);
var square = (x, y, text) => diamond(x, y, 12) + group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", ...SMALL }));
var circle = (x, y, text) => badge(x, y, text, 10);
function side(role, mark, a, b) {
  const faint = { "stroke-opacity": 0.35 };
  return group(
    colour(role),
    line(...ORIGIN, ...a, faint),
    line(...ORIGIN, ...b, faint),
    arrow(...shortOf(a, b, 11), ...shortOf(b, a, 12)),
    mark(...a, "A"),
    mark(...b, "B")
  );
}
function pointsPanel(state) {
  const [c_A, c_B, f_A, f_B] = changes(state).map(at), [x, y] = ORIGIN, right = P.left + P.width, halo = { class: "explorable-halo", ...SMALL };
  return panel(
    "Four changes, two arrows: drag the points",
    HEIGHT,
    line(P.left, y, right, y, { "stroke-opacity": 0.2 }),
    line(x, P.top, x, P.top + P.height, { "stroke-opacity": 0.2 }),
    arrow(x, y, P.X(state.shared), y, { opacity: 0.7 }),
    side(CONTEXT, circle, c_A, c_B),
    side(TRAINING, square, f_A, f_B),
    words(x - 5, y + 14, "no lesson", { ...halo, "text-anchor": "end" }),
    words(right, y + 4, "shared by all", { ...halo, "text-anchor": "end" })
  );
}
var LEFT = 10;
var RIGHT = 310;
var X = (value) => LEFT + (value + 1) / 2 * (RIGHT - LEFT);
function cosinesPanel(state) {
  const { similarity, contrast } = cosines(state), [s, c] = ofGPT(state), foot = 236;
  const row = (y, name, value, role, [its, low, high]) => entry(0, y, name, two(value)) + line(LEFT, y + 36, RIGHT, y + 36, { "stroke-opacity": 0.2 }) + group(colour(role), bar(X(0), X(value), y + 12, 16), rect(X(low), y + 34, Math.max(2, X(high) - X(low)), 4), rect(X(its) - 2.5, y + 30, 5, 12)) + words(X(its), y + 55, "GPT", { "text-anchor": "middle", ...SMALL });
  return panel(
    "What the two cosines say",
    HEIGHT,
    group(colour(CONTEXT), circle(12, 40, "A")),
    words(27, 44, "context", SMALL),
    group(colour(TRAINING), square(96, 40, "A")),
    words(113, 44, "training", SMALL),
    words(176, 44, "arrows: A minus B", SMALL),
    row(84, state.exchanged ? "similarity, now on the wrong lesson" : "similarity, on the same lesson", similarity, "key", s),
    row(164, "cosine of the two arrows", contrast, "value", c),
    line(X(0), 92, X(0), foot, { "stroke-opacity": 0.6 }),
    [-1, -0.5, 0, 0.5, 1].map((t) => words(X(t), foot + 14, t % 1 ? two(t) : fixed(t, 0), { ...SMALL, "text-anchor": "middle" })),
    words(WIDTH, foot + 36, "bars: this drawing; marks: measured (95 %)", { ...SMALL, "text-anchor": "end" })
  );
}
var handles = ({ points, shared, exchanged }) => points.map(([x, y], i) => {
  const lesson = "AB"[i % 2 ^ (exchanged && i > 1)];
  return {
    panel: 0,
    label: `${i < 2 ? "Context" : "Training"} on lesson ${lesson}`,
    plane: P,
    at: [x + shared, y],
    move: ([newX, newY]) => ({ points: points.with(i, [newX - shared, newY]) })
  };
});
var contrast_default = explorable({
  question: "What does the difference of two lessons keep, and what does it cancel?",
  hint: "Each point is what a lesson changes in the model, A or B, by a context (circles) or by training (diamonds). The slider moves all four points: only the similarity changes. Drag a point, or focus it and press the arrow keys. Exchange the two trainings: the similarity keeps what the lessons share, and the cosine of the arrows turns its sign.",
  traits: ["points", "shared", "exchanged", "found"],
  lists: () => [["exchanged", "the trainings", [[false, "on A and on B"], [true, "exchanged"]]]],
  sliders: [slider("shared", "shared by all", [0, 1.6, 0.05], two)],
  panels: (state) => [pointsPanel(state), cosinesPanel(state)],
  handles,
  describe,
  answers: ({ found }) => [
    ["GPT, upper third: similarity, and with another task", `${interval(found.similarity)}; ${interval(found.foreign)}`],
    ["GPT, upper third: cosine of the arrows", interval(found.contrast)]
  ]
});
export {
  contrast_default as default
};
