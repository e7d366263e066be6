// Made of js/momentum_window.js by "make explorables": change that file, not this one.

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
function weightedSum(weights2, rows) {
  const total = rows[0].map(() => 0);
  for (let i = 0; i < rows.length; i++) for (let j = 0; j < total.length; j++) total[j] += weights2[i] * rows[i][j];
  return total;
}
function softmax(logits) {
  const largest = Math.max(...logits), powers = logits.map((l) => Math.exp(l - largest));
  return scale(1 / sum(powers), powers);
}

// numbers.js
var MINUS = "−";
function fixed(number, digits = 2, plus = "") {
  const size2 = Math.abs(number).toFixed(digits);
  return (Number(size2) === 0 ? "" : number < 0 ? MINUS : plus) + size2;
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
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
var diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);
function arrow(x1, y1, x2, y2, more) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return "";
  const head = Math.min(8, length), [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
  const [bx, by] = [x2 - head * u, y2 - head * v], w = head * 0.45;
  const tip = `M${x2} ${y2}L${bx - w * v} ${by + w * u}L${bx + w * v} ${by - w * u}Z`;
  return group({ ...more }, line(x1, y1, bx, by, { "stroke-width": 2 }), path(tip, { fill: "currentColor", stroke: "none" }));
}
function plane({ left, top, width, height, x: [x0, x1], y: [y0, y1] }) {
  const X = (x) => left + (x - x0) / (x1 - x0) * width, Y = (y) => top + (y1 - y) / (y1 - y0) * height;
  const invert = (px, py) => [x0 + (px - left) / width * (x1 - x0), y1 - (py - top) / height * (y1 - y0)];
  const inside = (...children) => tag("svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" }, ...children);
  return { X, Y, invert, inside, left, top, width, height, x: [x0, x1], y: [y0, y1] };
}
var SPAN = [-2, 2];
var LIMIT = SPAN[1];
var TICKS = [-2, -1, 0, 1, 2];
function axes({ X, Y, left, top, width, height }, ticks, [xName, yName]) {
  const grid = (at) => ({ "stroke-opacity": at === 0 ? 0.6 : 0.15 });
  return [
    ticks.map((t) => line(X(t), top, X(t), top + height, grid(t)) + line(left, Y(t), left + width, Y(t), grid(t))),
    ticks.map((t) => words(X(t), top + height + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL })),
    ticks.map((t) => words(left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL })),
    words(left + width, top + height + 28, xName, { "text-anchor": "end", ...SMALL }),
    words(left - 18, top - 8, yName, SMALL)
  ].join("");
}
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
  const size2 = { width, height, viewBox: `0 0 ${width} ${height}`, style: "max-width:100%;height:auto" };
  return tag("svg", { xmlns: "http://www.w3.org/2000/svg", ...size2, role: "img", "aria-label": alt, ...FONT, "font-family": "sans-serif" }, placed);
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
var same = (value) => value;
var slider = (trait, label, range, format = fixed, fromInput = same, toInput = same) => ({ trait, label, range, format, fromInput, toInput });

// momentum_window.js
var KEYS = [[1.1, 0.3], [-0.4, 0.9], [0.6, -0.8], [0.2, 1.2], [-1, -0.2], [0.9, 0.7], [-0.3, -1.1], [1.3, -0.2], [0.1, 0.5], [-0.8, 0.6], [0.7, -0.4], [0.4, 0.4]];
var VALUES = [[-0.9, 0.5], [0.4, -0.6], [-0.2, 1], [0.8, 0.3], [-0.5, -0.7], [0.6, 0.9], [-0.7, 0.2], [0.3, -0.8], [0.9, 0.1], [-0.1, 0.7], [0.7, 0.4], [0.2, -0.3]];
var PAST = KEYS.length - 1;
var RATE = 1 / 16;
var NAMES = {
  momentum: "momentum",
  normalised: "momentum, normalised",
  nesterov: "Nesterov (ours)",
  previous: "previous value alone",
  heavy_ball: "dual of heavy ball"
};
var AT_LAG = {
  momentum: (eta, s) => eta ** s,
  normalised: (eta, s) => (1 - eta) * eta ** (s - 1),
  nesterov: (eta, s) => eta ** (s + 1) + (s === 1 ? eta : 0),
  previous: (eta, s) => s === 1 ? eta : 0,
  heavy_ball: (mu, s) => (1 - mu ** s) / (1 - mu)
};
var isDual = ({ average }) => average === "heavy_ball";
var weights = ({ average, eta }, n = PAST) => Array.from({ length: n }, (_, i) => AT_LAG[average](eta, n - i));
function size({ average, eta }) {
  const gain = eta / (1 - eta), window = (1 + eta) / (1 - eta);
  if (isDual({ average })) {
    const a = weights({ average, eta });
    return { gain: sum(a), window: sum(a) ** 2 / dot(a, a) };
  }
  return {
    momentum: { gain, window },
    normalised: { gain: 1, window },
    nesterov: { gain, window: 1 / ((1 - eta * eta) ** 2 + eta ** 4 * (1 - eta) / (1 + eta)) },
    previous: { gain: eta, window: 1 }
  }[average];
}
var softmaxWeights = (query) => softmax(KEYS.map((k) => dot(k, query) / Math.SQRT2));
var base = (state) => isDual(state) ? [0, 0] : weightedSum(softmaxWeights(state.query), VALUES);
function added(state, query = state.query) {
  const w = weights(state);
  return weightedSum(isDual(state) ? w.map((a, i) => RATE * a * dot(KEYS[i], query)) : w, VALUES.slice(0, PAST));
}
var letter = (state) => isDual(state) ? "μ" : "η";
function describe(state) {
  const w = weights(state), { gain, window } = size(state), asked = vector(state.query);
  const opposite = added(state, scale(-1, state.query));
  return `${NAMES[state.average][0].toUpperCase() + NAMES[state.average].slice(1)}, ${letter(state)} = ${fixed(state.eta)}: the oldest of ${PAST} earlier positions weighs ${fixed(w[0], 3)}, the newest ${fixed(w[PAST - 1], 3)}. Gain ${fixed(gain)}, effective window ${fixed(window)} positions${isDual(state) ? `, over ${PAST} steps` : ""}. For the query ${asked} it adds ${vector(added(state), 3)}, for the opposite query ${vector(opposite, 3)}: ` + (isDual(state) ? "the query decides." : "the same for every query.");
}
var HEIGHT = 368;
var SMALL_DIAMOND = "M0-5L5 0L0 5L-5 0Z";
function ticksUpTo(top) {
  const rough = top / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
  return { step, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}
function weightsPanel(state) {
  const w = weights(state), factors = isDual(state) ? KEYS.slice(0, PAST).map((k) => dot(k, state.query)) : softmaxWeights(state.query);
  const high = Math.max(0.5, ...w, ...factors) * 1.08, low = Math.min(0, ...factors) * 1.1;
  const { step, digits } = ticksUpTo(high - low);
  const { X, Y, left, top, width, height } = plane({ left: 34, top: 44, width: 280, height: 204, x: [-0.6, PAST + 0.6], y: [low, high] });
  const first = Math.ceil(low / step), ticks = Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
  const { gain, window } = size(state), mid = { "text-anchor": "middle", ...SMALL };
  const row = (i, text, value) => entry(0, top + height + 52 + 19 * i, text, value);
  return panel(
    `Weights: ${NAMES[state.average]}`,
    HEIGHT,
    ticks.map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t === 0 ? 0.6 : 0.15 }) + words(left - 5, Y(t) + 4, fixed(t, digits), { "text-anchor": "end", ...SMALL })),
    KEYS.map((_, i) => words(X(i), top + height + 14, i, mid)),
    words(left + width, top + height + 28, "position (11 asks)", { "text-anchor": "end", ...SMALL }),
    words(0, 32, "weight", SMALL),
    group(colour("value"), w.map((w_i, i) => rect(X(i) - 8, Y(w_i), 16, Math.max(0.5, Y(0) - Y(w_i)), { "fill-opacity": 0.75 }))),
    group(colour("query"), factors.map((f, i) => marker(SMALL_DIAMOND, X(i), Y(f)))),
    row(0, isDual(state) ? `gain, sum over ${PAST} steps` : "gain, sum over all lags", fixed(gain)),
    row(1, "effective window, positions", fixed(window)),
    row(2, "bars: weight; diamonds:", isDual(state) ? "k·q" : "softmax weight")
  );
}
var OUTPUTS = plane({ left: 24, top: 40, width: 286, height: 232, x: [-2.5, 2.5], y: [-2, 2] });
function headPanel(state) {
  const { X, Y, inside, top, height } = OUTPUTS, from = base(state), change = added(state), to = add(from, change), at = ([a, b]) => [X(a), Y(b)];
  const row = (i, role, text, value) => group(colour(role), words(0, top + height + 34 + 19 * i, text, { "font-size": 12 })) + words(WIDTH, top + height + 34 + 19 * i, value, { "text-anchor": "end", "font-weight": 600 });
  return panel(
    "The head at the last position",
    HEIGHT,
    axes(OUTPUTS, TICKS, ["", ""]),
    inside(
      VALUES.map((v, i) => group({ "opacity": 0.75 }, words(...at(v), i, { "text-anchor": "middle", "font-size": 10 }))),
      group(colour("query"), line(...at([0, 0]), ...shortOf(at([0, 0]), at(state.query)), { "stroke-dasharray": "3 4", "stroke-opacity": 0.7 }), diamond(...at(state.query)), words(X(state.query[0]) + 11, Y(state.query[1]) - 7, "q", {})),
      group(colour("key"), arrow(...at([0, 0]), ...at(from), {})),
      group(colour("value"), arrow(...at(from), ...at(to), {})),
      group(colour("sum"), tag("circle", { cx: X(to[0]), cy: Y(to[1]), r: 5, fill: "currentColor" }))
    ),
    row(0, "key", isDual(state) ? "start: W₀ q, with W₀ = 0" : "softmax attention", vector(from)),
    row(1, "value", isDual(state) ? "added: sum of a v (k·q) / 16" : "added by the average", vector(change)),
    row(2, "sum", "output (the dot)", vector(to))
  );
}
var momentum_window_default = explorable({
  question: "Which positions does momentum attention weigh, and does the query matter to what it adds?",
  hint: "Twelve positions with fixed keys and values; the numbers in the plane are the values. The last position asks: drag its query q, the diamond.",
  traits: ["average", "eta", "query"],
  sliders: [slider("eta", "η (heavy ball: μ)", [0, 0.95, 0.05])],
  lists: () => [["average", "average", Object.entries(NAMES)]],
  panels: (state) => [weightsPanel(state), headPanel(state)],
  describe,
  handles: ({ query }) => [{ panel: 1, label: "query", plane: { ...OUTPUTS, x: [-2, 2] }, at: query, move: (point) => ({ query: point }) }],
  answers: (state) => [
    ["added for this query", vector(added(state), 3)],
    ["added for the opposite query", vector(added(state, scale(-1, state.query)), 3)]
  ]
});
export {
  momentum_window_default as default
};
