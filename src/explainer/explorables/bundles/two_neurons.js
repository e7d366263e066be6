// Made of js/two_neurons.js by "make explorables": change that file, not this one.

// algebra.js
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var subtract = (a, b) => a.map((a_i, i) => a_i - b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);
function weightedSum(weights, rows) {
  const total = rows[0].map(() => 0);
  for (let i = 0; i < rows.length; i++) for (let j = 0; j < total.length; j++) total[j] += weights[i] * rows[i][j];
  return total;
}
var linearAttention = (values, keys, query) => weightedSum(keys.map((key) => dot(key, query)), values);
var matvec = (W, x) => W.map((row) => dot(row, x));
var outer = (a, b) => a.map((a_i) => scale(a_i, b));
var addMatrices = (A, B) => A.map((row, i) => add(row, B[i]));

// numbers.js
var MINUS = "−";
function fixed(number, digits = 2, plus = "") {
  const size = Math.abs(number).toFixed(digits);
  return (Number(size) === 0 ? "" : number < 0 ? MINUS : plus) + size;
}
var vector = (a, digits = 2) => `(${a.map((a_i) => fixed(a_i, digits)).join(", ")})`;
function agreement(a, b) {
  const gap = Math.max(...a.map((a_i, i) => Math.abs(a_i - b[i])));
  const size = Math.max(1, ...a.map(Math.abs));
  if (gap === 0) return "They are equal to the last bit.";
  if (gap < 1e-13 * size) return `They are equal: the ${gap.toExponential(0).replace("-", MINUS)} between them is floating-point rounding.`;
  return `They differ by ${gap.toExponential(1).replace("-", MINUS)}.`;
}

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
function column(x, y, [a, b]) {
  const right2 = { "text-anchor": "end", "font-size": 12 };
  const bracket = (at, turn) => path(`M${at + turn} ${y - 16}H${at}V${y + 16}H${at + turn}`, { "stroke-opacity": 0.7 });
  return bracket(x, 4) + words(x + 39, y - 3, fixed(a), right2) + words(x + 39, y + 13, fixed(b), right2) + bracket(x + 45, -4);
}
function heatMap(x, y, W, width = 50) {
  const cell = (v, left, top) => [
    group(v < 0 ? {} : colour("sum"), rect(left, top, width, 20, { "fill-opacity": 0.42 * Math.min(1, Math.abs(v)) })),
    words(left + width - 7, top + 14, fixed(v), { "text-anchor": "end", "font-size": 12 })
  ];
  const edge = path(`M${x} ${y - 20}h${2 * width}v40h-${2 * width}Z`, { "stroke-opacity": 0.7 });
  return [W.map((row, r) => row.map((v, c) => cell(v, x + width * c, y - 20 + 20 * r))), edge];
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
var PLANE = /* @__PURE__ */ plane({ left: 26, top: 40, width: 284, height: 236, x: SPAN, y: SPAN });
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

// two_neurons.js
function errorSignals({ initial_weights, inputs, targets, learning_rate }) {
  return inputs.map((x, i) => scale(learning_rate, subtract(targets[i], matvec(initial_weights, x))));
}
var gradientDescentUpdate = (errors, inputs) => errors.map((e, i) => outer(e, inputs[i])).reduce(addMatrices);
function predictions(state) {
  const { initial_weights, inputs, query } = state, errors = errorSignals(state);
  const W = addMatrices(initial_weights, gradientDescentUpdate(errors, inputs));
  return { W, step: matvec(W, query), attention: add(matvec(initial_weights, query), linearAttention(errors, inputs, query)) };
}
var attentionWeights = ({ inputs, query }) => inputs.map((x) => dot(x, query));
function describe(state) {
  const { step, attention } = predictions(state);
  const weights = attentionWeights(state).map((weight) => fixed(weight)).join(", ");
  return `After one gradient step the layer predicts ${vector(step, 12)} for the query ${vector(state.query)}. Linear attention, with weights ${weights} on the demonstrations, answers ${vector(attention, 12)}. ${agreement(step, attention)}`;
}
var onPlane = ([x, y]) => [PLANE.X(x), PLANE.Y(y)];
var middle = { "text-anchor": "middle" };
var small = { "font-size": 12 };
var right = { "text-anchor": "end", ...small };
function inputPanel({ inputs, query }) {
  const origin = onPlane([0, 0]);
  return panel(
    "Inputs: drag the keys and the query",
    308,
    axes(PLANE, TICKS, ["input 1", "input 2"]),
    group(colour("key"), inputs.map((x, i) => arrow(...origin, ...shortOf(origin, onPlane(x))) + badge(...onPlane(x), i + 1))),
    group(colour("query"), arrow(...origin, ...shortOf(origin, onPlane(query))), diamond(...onPlane(query)))
  );
}
function outputPanel(state) {
  const { initial_weights, inputs, targets, query } = state;
  const start = matvec(initial_weights, query), errors = errorSignals(state), weights = attentionWeights(state);
  const steps = errors.map((e, i) => scale(weights[i], e));
  const stops = steps.reduce((list, s) => [...list, add(list.at(-1), s)], [start]).map(onPlane);
  const before = inputs.map((x) => onPlane(matvec(initial_weights, x)));
  const { step } = predictions(state), leaves = step.some((v) => Math.abs(v) > LIMIT);
  const chain = steps.map((_, i) => arrow(...stops[i], ...stops[i + 1]));
  return panel(
    "Outputs: drag the targets",
    308,
    axes(PLANE, TICKS, ["neuron 1", "neuron 2"]),
    group(
      colour("value"),
      PLANE.inside(before.map((b, i) => line(...b, ...shortOf(b, onPlane(targets[i])), { "stroke-width": 2, "stroke-dasharray": "2 3" }) + rect(b[0] - 2.5, b[1] - 2.5, 5, 5, {}))),
      targets.map((y, i) => badge(...onPlane(y), i + 1))
    ),
    PLANE.inside(
      group(colour("query"), path(`M${stops[0][0] - 6} ${stops[0][1]}l6 -6l6 6l-6 6Z`, { "stroke-width": 2, "stroke-dasharray": "2 2" })),
      group(colour("sum"), chain),
      group(colour("query"), diamond(...onPlane(step)), tag("circle", { cx: stops.at(-1)[0], cy: stops.at(-1)[1], r: 3, fill: "currentColor" }))
    ),
    leaves ? words(PLANE.X(-LIMIT) + 6, PLANE.Y(LIMIT) + 14, `W q = ${vector(step)} is off the plot`, { ...small, class: "explorable-halo" }) : ""
  );
}
var ROW = 50;
var rowMiddle = (i) => 66 + ROW * i;
var rule = (y) => line(0, y, WIDTH, y, { "stroke-opacity": 0.5 });
var heads = (...columns) => group({ "font-weight": 600, ...small }, columns.map(([x, text, role]) => words(x, 36, text, role ? colour(role) : {})));
function weightPanel(state) {
  const { initial_weights, inputs } = state, errors = errorSignals(state), n = inputs.length;
  return panel(
    "Gradient descent builds the weights",
    rowMiddle(n + 1) + 40,
    heads([34, "error e", "value"], [112, "input xᵀ", "key"], [216, "e xᵀ", "sum"]),
    words(0, rowMiddle(0) + 4, "start: W₀"),
    heatMap(216, rowMiddle(0), initial_weights),
    inputs.map((x, i) => {
      const y = rowMiddle(i + 1);
      return [
        words(0, y + 4, "+"),
        group(colour("key"), badge(21, y, i + 1, 8)),
        column(36, y, errors[i]),
        words(90, y + 4, "×", middle),
        path(`M104 ${y - 9}h-4v18h4M184 ${y - 9}h4v18h-4`, { "stroke-opacity": 0.7 }),
        words(139, y + 4, fixed(x[0]), right),
        words(181, y + 4, fixed(x[1]), right),
        words(202, y + 4, "=", middle),
        heatMap(216, y, outer(errors[i], x))
      ];
    }),
    rule(rowMiddle(n) + 27),
    words(0, rowMiddle(n + 1) + 10, "W = W₀ + Σ eᵢ xᵢᵀ", { "font-weight": 600 }),
    heatMap(216, rowMiddle(n + 1) + 6, predictions(state).W)
  );
}
function attentionPanel(state) {
  const { initial_weights, inputs, query } = state, errors = errorSignals(state), weights = attentionWeights(state), n = inputs.length;
  const reach = Math.max(1, ...weights.map(Math.abs)), X = (v) => 76 + v / reach * 40;
  return panel(
    "Attention reads the same examples",
    rowMiddle(n + 1) + 40,
    heads([38, "weight xᵢ · q", "key"], [152, "value e", "value"], [234, "weight × e", "sum"]),
    words(0, rowMiddle(0) + 4, "start: W₀ q"),
    column(240, rowMiddle(0), matvec(initial_weights, query)),
    line(X(0), rowMiddle(1) - 20, X(0), rowMiddle(n) + 20, { "stroke-opacity": 0.5 }),
    inputs.map((_, i) => {
      const y = rowMiddle(i + 1);
      return [
        words(0, y + 4, "+"),
        group(colour("key"), badge(21, y, i + 1, 8), bar(X(0), X(weights[i]), y - 2, 14)),
        words(X(0), y - 6, fixed(weights[i]), { ...middle, ...small, class: "explorable-halo" }),
        words(133, y + 4, "×", middle),
        column(146, y, errors[i]),
        words(215, y + 4, "=", middle),
        column(240, y, scale(weights[i], errors[i]))
      ];
    }),
    rule(rowMiddle(n) + 27),
    words(0, rowMiddle(n + 1) + 10, "W₀ q + Σ (xᵢ · q) eᵢ", { "font-weight": 600 }),
    column(240, rowMiddle(n + 1) + 6, predictions(state).attention)
  );
}
function handles({ inputs, targets, query }) {
  const item = (panelIndex, label, at, move) => ({ panel: panelIndex, label, plane: PLANE, at, move });
  return [
    ...inputs.map((at, i) => item(0, `Input ${i + 1}`, at, (point) => ({ inputs: inputs.with(i, point) }))),
    item(0, "Query", query, (point) => ({ query: point })),
    ...targets.map((at, i) => item(1, `Target ${i + 1}`, at, (point) => ({ targets: targets.with(i, point) })))
  ];
}
var two_neurons_default = explorable({
  question: "Is a layer after one gradient step the same as linear attention over its training examples?",
  hint: "Drag a numbered point or the diamond (the query q), or focus it and press the arrow keys; Shift makes bigger steps. A dotted line runs from the start's output W₀ xᵢ (square) to the target: η times it is the error eᵢ. Arrows add the attention's terms to W₀ q and end in the layer's prediction W q (diamond).",
  traits: ["inputs", "targets", "query", "learning_rate", "initial_weights"],
  sliders: [slider("learning_rate", "learning rate η", [0, 1, 0.05])],
  panels: (state) => [inputPanel(state), outputPanel(state), weightPanel(state), attentionPanel(state)],
  handles,
  describe,
  answers: (state) => {
    const { step, attention } = predictions(state);
    return [["after one gradient step: W q", vector(step, 12)], ["linear attention: W₀ q + Σ eᵢ (xᵢ · q)", vector(attention, 12)]];
  }
});
export {
  two_neurons_default as default
};
