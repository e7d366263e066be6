// Made of js/three_tokens.js by "make explorables": change that file, not this one.

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
function softmax(logits2) {
  const largest = Math.max(...logits2), powers = logits2.map((l) => Math.exp(l - largest));
  return scale(1 / sum(powers), powers);
}

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
function tag(name2, attributes, ...children) {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(typeof value === "number" ? +value.toFixed(2) : value)}"`).join("");
  return `<${name2}${written}>${children.flat(Infinity).join("")}</${name2}>`;
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
function element(name2, properties, ...children) {
  const { attributes = {}, ...rest } = properties;
  const node = Object.assign(document.createElement(name2), rest);
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
function answerLine([name2]) {
  const number = element("span", { className: "explorable-number" });
  return { node: element("div", {}, element("span", { textContent: name2 }), number), update: ([, text]) => {
    number.textContent = text;
  } };
}
function mount(view, { model, el }) {
  const stop = new AbortController(), { signal } = stop;
  const read = () => Object.fromEntries(view.traits.map((name2) => [name2, model.get(name2)]));
  const change = (patch) => {
    for (const name2 in patch) model.set(name2, patch[name2]);
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
  const events = view.traits.map((name2) => `change:${name2}`);
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

// three_tokens.js
var NAMES = ["France", "->", "Paris"];
var linear = ({ attention }) => attention === "linear";
var logits = (state) => state.token_keys.map((key) => dot(key, state.query) / (linear(state) ? 1 : Math.SQRT2));
var weights = (state) => linear(state) ? logits(state) : softmax(logits(state));
var output = (state) => weightedSum(weights(state), state.token_values);
function describe(state) {
  const w = weights(state).map((w_i) => fixed(w_i)), end = `The output, the weighted sum of the values, is ${vector(output(state))}`;
  const on = `on France, on the arrow and on Paris are ${w[0]}, ${w[1]} and ${w[2]}`;
  return linear(state) ? `Without softmax the attention weights ${on}: the inner products of key and query themselves, which sum to ${fixed(sum(weights(state)))}. ${end}.` : `The attention weights ${on}: positive, and together 1. ${end}; it lies between the three values.`;
}
var onPlane = ([x, y]) => [PLANE.X(x), PLANE.Y(y)];
var origin = onPlane([0, 0]);
var VALUES = plane({ left: 26, top: 40, width: 284, height: 236, x: [-3, 3], y: [-3, 3] });
function keyPanel({ token_keys: keys, query }) {
  return panel(
    "Keys and query: drag them",
    308,
    axes(PLANE, TICKS, ["", ""]),
    group(colour("key"), keys.map((k, i) => arrow(...origin, ...shortOf(origin, onPlane(k))) + badge(...onPlane(k), i + 1))),
    group(colour("query"), arrow(...origin, ...shortOf(origin, onPlane(query))), diamond(...onPlane(query)))
  );
}
function valuePanel(state) {
  const at = ([x, y]) => [VALUES.X(x), VALUES.Y(y)], zero = at([0, 0]), corners = state.token_values.map(at), end = output(state), tip = at(end);
  const off = end.some((x) => Math.abs(x) > 3), left = tip[0] > 200;
  return panel(
    "Values and output: drag the values",
    308,
    axes(VALUES, [-3, -2, -1, 0, 1, 2, 3], ["", ""]),
    path(`M${corners.map((c) => c.map((x) => x.toFixed(1)).join(" ")).join("L")}Z`, { "stroke-dasharray": "2 3", "stroke-opacity": 0.7 }),
    group(colour("value"), corners.map((c, i) => arrow(...zero, ...shortOf(zero, c)) + badge(...c, i + 1))),
    VALUES.inside(group(colour("sum"), arrow(...zero, ...tip, {}), tag("circle", { cx: tip[0], cy: tip[1], r: 5, fill: "currentColor" }))),
    off ? words(168, 56, "the output is off the plot", { class: "explorable-halo", "text-anchor": "middle", ...SMALL }) : words(tip[0] + (left ? -9 : 9), tip[1] + (end[1] < -2.4 ? -8 : 18), "output", { class: "explorable-halo", "font-weight": 600, "text-anchor": left ? "end" : "start" })
  );
}
var ROW = 50;
var middleOf = (i) => 68 + ROW * i;
var FOOT = middleOf(3) + 4;
var right = { "text-anchor": "end", "font-size": 12 };
var middle = { "text-anchor": "middle", "font-size": 12 };
var rule = line(0, FOOT - 26, WIDTH, FOOT - 26, { "stroke-opacity": 0.5 });
var name = (i) => group(colour("key"), badge(10, middleOf(i), i + 1)) + words(26, middleOf(i) + 4, NAMES[i], { "font-family": "monospace", "font-size": 12 });
function barsAt(x, width, numbers, reach) {
  const X = (v) => x + v / reach * width;
  return [
    line(X(0), middleOf(0) - 24, X(0), middleOf(2) + 20, { "stroke-opacity": 0.5 }),
    numbers.map((v, i) => bar(X(0), X(v), middleOf(i) - 3, 14) + words(X(0), middleOf(i) - 8, fixed(v), { ...middle, class: "explorable-halo" }))
  ];
}
function weightPanel(state) {
  const l = logits(state), w = weights(state), of = (numbers) => Math.max(1, ...numbers.map(Math.abs));
  const head = (x, text, role) => words(x, 36, text, { ...middle, "font-weight": 600, ...colour(role) });
  return panel(
    linear(state) ? "The inner products are used as they are" : "From logits to attention weights",
    FOOT + 12,
    head(134, linear(state) ? "k · q" : "logit k · q / √2", "query"),
    linear(state) ? head(254, "used as it is", "key") : head(254, "p = softmax", "key"),
    [0, 1, 2].map(name),
    group(colour("query"), barsAt(134, 50, l, of(l))),
    group(colour("key"), linear(state) ? barsAt(254, 50, w, of(w)) : barsAt(216, 90, w, 1)),
    rule,
    words(0, FOOT, linear(state) ? "sum of all k · q" : "sum of all p", { "font-weight": 600 }),
    words(WIDTH, FOOT, fixed(sum(w)), { "text-anchor": "end", "font-weight": 600 })
  );
}
function sumPanel(state) {
  const w = weights(state), values = state.token_values;
  const heads = [[134, linear(state) ? "k · q" : "p", "key"], [210, "value", "value"], [290, "adds", "sum"]];
  return panel(
    "The output: a weighted sum of values",
    FOOT + 12,
    heads.map(([x, text, role]) => words(x, 36, text, { ...middle, "font-weight": 600, ...colour(role) })),
    values.map((v, i) => [
      name(i),
      words(150, middleOf(i) + 4, fixed(w[i]), right),
      words(168, middleOf(i) + 4, "×", middle),
      column(186, middleOf(i), v),
      words(250, middleOf(i) + 4, "=", middle),
      column(268, middleOf(i), scale(w[i], v))
    ]),
    rule,
    words(0, FOOT, "output", { "font-weight": 600 }),
    words(WIDTH, FOOT, vector(output(state)), { "text-anchor": "end", "font-weight": 600 })
  );
}
function handles({ token_keys: keys, token_values: values, query }) {
  const within = { ...VALUES, x: PLANE.x, y: PLANE.y };
  const item = (panelIndex, label, planeOf, at, move) => ({ panel: panelIndex, label, plane: planeOf, at, move });
  return [
    ...keys.map((at, i) => item(0, `Key ${i + 1}`, PLANE, at, (point) => ({ token_keys: keys.with(i, point) }))),
    item(0, "Query", PLANE, query, (point) => ({ query: point })),
    ...values.map((at, i) => item(1, `Value ${i + 1}`, within, at, (point) => ({ token_values: values.with(i, point) })))
  ];
}
var three_tokens_default = explorable({
  question: "What does one attention head do with three tokens?",
  hint: "Drag a numbered arrow or the diamond (the query), or focus it and press the arrow keys; Shift makes bigger steps. Hollow bars are negative. With softmax the output stays inside the dotted triangle of the values.",
  traits: ["token_keys", "token_values", "query", "attention"],
  lists: () => [["attention", "attention", [["softmax", "softmax"], ["linear", "linear: no softmax"]]]],
  panels: (state) => [keyPanel(state), valuePanel(state), weightPanel(state), sumPanel(state)],
  handles,
  describe
});
export {
  three_tokens_default as default
};
