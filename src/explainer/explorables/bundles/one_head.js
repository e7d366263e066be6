// Made of js/one_head.js by "make explorables": change that file, not this one.

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
function weightedSum(weights2, rows2) {
  const total = rows2[0].map(() => 0);
  for (let i = 0; i < rows2.length; i++) for (let j = 0; j < total.length; j++) total[j] += weights2[i] * rows2[i][j];
  return total;
}
function softmax(logits) {
  const largest = Math.max(...logits), powers = logits.map((l) => Math.exp(l - largest));
  return scale(1 / sum(powers), powers);
}
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
  const gap2 = Math.max(...a.map((a_i, i) => Math.abs(a_i - b[i])));
  const size = Math.max(1, ...a.map(Math.abs));
  if (gap2 === 0) return "They are equal to the last bit.";
  if (gap2 < 1e-13 * size) return `They are equal: the ${gap2.toExponential(0).replace("-", MINUS)} between them is floating-point rounding.`;
  return `They differ by ${gap2.toExponential(1).replace("-", MINUS)}.`;
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
  const bracket = (at2, turn) => path(`M${at2 + turn} ${y - 16}H${at2}V${y + 16}H${at2 + turn}`, { "stroke-opacity": 0.7 });
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
  const grid = (at2) => ({ "stroke-opacity": at2 === 0 ? 0.6 : 0.15 });
  return [
    ticks.map((t) => line(X(t), top, X(t), top + height, grid(t)) + line(left, Y(t), left + width, Y(t), grid(t))),
    ticks.map((t) => words(X(t), top + height + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL })),
    ticks.map((t) => words(left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL })),
    words(left + width, top + height + 28, xName, { "text-anchor": "end", ...SMALL }),
    words(left - 18, top - 8, yName, SMALL)
  ].join("");
}
function shortOf(from, to, gap2 = 10) {
  const away = subtract(from, to), length = Math.hypot(...away);
  return length > gap2 ? add(to, scale(gap2 / length, away)) : from;
}
var panel = (title, height, ...body) => ({ title, height, body: body.flat(Infinity).join("") });
var heading = ({ title }) => words(0, 14, title, { "font-weight": 600 });
var FONT = { "font-family": "inherit", "font-size": 13 };
function panelSvg(p) {
  return tag("svg", { viewBox: `0 0 ${WIDTH} ${p.height}`, role: "img", "aria-label": p.title, ...FONT }, heading(p), p.body);
}
function compose(panels, alt) {
  const gap2 = 28, placed = [];
  let y = 0;
  for (let i = 0; i < panels.length; i += 2) {
    const row = panels.slice(i, i + 2);
    row.forEach((p, j) => placed.push(group({ transform: `translate(${j * (WIDTH + gap2)} ${y})` }, heading(p), p.body)));
    y += Math.max(...row.map((p) => p.height)) + gap2 / 2;
  }
  const width = 2 * WIDTH + gap2, height = y - gap2 / 2;
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
  const update2 = (state) => {
    input.value = toInput(state[trait]);
    value.textContent = format(state[trait]);
    input.setAttribute("aria-valuetext", value.textContent);
  };
  return { node: element("label", {}, element("span", { textContent: label }), input, value), update: update2 };
}
function listControl(trait, label, optionsOf, change, signal) {
  const select = element("select", {});
  let options;
  select.addEventListener("change", () => change({ [trait]: options[select.selectedIndex][0] }), { signal });
  const update2 = (state) => {
    options = optionsOf(state);
    select.replaceChildren(...options.map(([value, textContent, disabled]) => element("option", { textContent, disabled: !!disabled, selected: value === state[trait] })));
  };
  return { node: element("label", {}, element("span", { textContent: label }), select), update: update2 };
}
function panelFrame(itemOf, put, signal) {
  const drawing = element("div", {}), node = element("div", { className: "explorable-panel" }, drawing), handles = [];
  const update2 = (panel2, items) => {
    drawing.innerHTML = panelSvg(panel2);
    handles.splice(items.length).forEach((handle) => handle.remove());
    items.forEach((item, k) => {
      if (!handles[k]) node.append(handles[k] = handleElement(() => itemOf(k), put, signal));
      placeHandle(handles[k], item, panel2.height);
    });
  };
  return { node, update: update2 };
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
  const update2 = () => {
    const state = read();
    view.panels(state).forEach((panel2, i) => frames[i].update(panel2, itemsOn(i, state)));
    controls.forEach((control) => control.update(state));
    view.answers(state).forEach((answer2, i) => answers[i].update(answer2));
    extended?.(state);
    clearTimeout(timer);
    timer = setTimeout(() => {
      status.textContent = view.describe(read());
    }, QUIET);
  };
  const events = view.traits.map((name) => `change:${name}`);
  for (const event of events) model.on(event, update2);
  update2();
  status.textContent = view.describe(start);
  el.append(root);
  return () => {
    for (const event of events) model.off(event, update2);
    clearTimeout(timer);
    stop.abort();
    root.remove();
  };
}
var same = (value) => value;
var slider = (trait, label, range, format = fixed, fromInput = same, toInput = same) => ({ trait, label, range, format, fromInput, toInput });

// one_head.js
var NAMES = ["Japan ->", "France -> Paris", "Italy -> Rome", "Egypt -> Cairo", "China -> Beijing"];
var linear = ({ attention }) => attention === "linear";
var tokens = ({ demonstrations }) => [...Array.from({ length: demonstrations }, (_, i) => i + 1), 0];
var looked = ({ token, demonstrations }) => Math.min(token, demonstrations);
var keyOf = ({ token_keys }, i) => token_keys.at(i - 1);
var valueOf = ({ token_values }, i) => token_values.at(i - 1);
var inner = (state) => tokens(state).map((i) => dot(keyOf(state, i), state.query));
var weights = (state) => linear(state) ? inner(state) : softmax(scale(Math.SQRT1_2, inner(state)));
var rows = (state, of) => tokens(state).map((i) => of(state, i));
var product = (state, i) => outer(valueOf(state, i), keyOf(state, i));
var zeroShot = (state) => product(state, 0);
var update = (state) => tokens(state).slice(0, -1).map((i) => product(state, i)).reduce(addMatrices, [[0, 0], [0, 0]]);
var bySum = (state) => weightedSum(inner(state), rows(state, valueOf));
var byMatrix = (state) => matvec(addMatrices(zeroShot(state), update(state)), state.query);
var bySoftmax = (state) => weightedSum(weights({ ...state, attention: "softmax" }), rows(state, valueOf));
var output = (state) => linear(state) ? bySum(state) : bySoftmax(state);
var gap = (state) => Math.hypot(...subtract(bySum(state), bySoftmax(state))) / Math.hypot(...bySoftmax(state));
var answer = ([capital, east]) => capital > 0 ? east > 0 ? "Tokyo" : "Paris" : east > 0 ? "Japan" : "France";
var percent = (share) => Number.isFinite(share) ? `${fixed(100 * share, 0)} %` : "more than can be said";
function describe(state) {
  const n = state.demonstrations, count = n === 0 ? "no demonstration" : n === 1 ? "1 demonstration" : `${n} demonstrations`;
  const same2 = linear(state) ? `The sum over tokens is ${vector(bySum(state), 12)}, the matrix times the query is ${vector(byMatrix(state), 12)}. ${agreement(bySum(state), byMatrix(state))}` : `The sum without softmax is ${vector(bySum(state))}; the distance between the two is ${percent(gap(state))} of the softmax output.`;
  return `${linear(state) ? "Without" : "With"} softmax and with ${count}, the output of the head is ${vector(output(state))}, on the side of ${answer(output(state))}. ${same2}`;
}
var right = { "text-anchor": "end", "font-size": 12 };
var middle = { "text-anchor": "middle", "font-size": 12 };
var MONO = { "font-family": "monospace", "font-size": 12 };
var bold = { "font-weight": 600 };
var ROW = 42;
var rowMiddle = (place) => 66 + ROW * place;
var FOOT = rowMiddle(5) + 10;
var LOW = 312;
function tokenPanel(state) {
  const shown = tokens(state), w = weights(state), reach = Math.max(linear(state) ? 1.5 : 1, ...w.map(Math.abs)), X = (v) => 176 + v / reach * 40;
  const row = (i, place) => {
    const y = rowMiddle(place), k = shown.indexOf(i), chosen = i === looked(state);
    const label = words(26, y + 4, NAMES[i], { ...MONO, ...chosen ? bold : {} });
    const mark = i ? badge(12, y, i, 8) : words(12, y + 5, "?", { "text-anchor": "middle", ...bold });
    if (k < 0) return group({ "fill-opacity": 0.65, "stroke-opacity": 0.5 }, mark, label, words(WIDTH, y + 4, "not in the prompt", { ...right, ...SMALL }));
    return group(
      { "data-token": i, style: "cursor:pointer" },
      rect(1, y - 18, WIDTH - 2, 36, { rx: 5, "fill-opacity": chosen ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": chosen ? 0.8 : 0 }),
      group(colour(i ? "key" : "query"), mark),
      label,
      group(colour("key"), bar(X(0), X(w[k]), y + 1, 11)),
      words(X(0), y - 4, fixed(w[k]), { ...middle, class: "explorable-halo" }),
      words(WIDTH - 6, y + 4, vector(scale(w[k], valueOf(state, i))), right)
    );
  };
  const head = (x, text, role, anchor) => words(x, 36, text, { ...anchor, ...bold, ...colour(role) });
  return panel(
    "The prompt: choose a token",
    LOW,
    head(176, linear(state) ? "k · q" : "p = softmax", "key", middle),
    head(WIDTH - 6, linear(state) ? "adds (k · q) v" : "adds p v", "value", right),
    [1, 2, 3, 4, 0].map(row),
    words(0, FOOT, "output, the sum", bold),
    words(WIDTH - 6, FOOT, vector(output(state)), { "text-anchor": "end", ...bold })
  );
}
var at = ([x, y]) => [PLANE.X(x), PLANE.Y(y)];
var origin = at([0, 0]);
var TOP = PLANE.top + PLANE.height;
function outputPanel(state) {
  const w = weights(state), order = tokens(state), own = order.length - 1, end = output(state);
  const steps = [own, ...order.keys()].slice(0, order.length).map((k) => scale(w[k], valueOf(state, order[k])));
  const stops = steps.reduce((list, step) => [...list, add(list.at(-1), step)], [[0, 0]]).map(at), tip = stops.at(-1);
  const corner = (x, y, text, anchor) => words(x, y, text, { "text-anchor": anchor, ...MONO, ...answer(end) === text ? bold : { "fill-opacity": 0.75 } });
  const off = end.some((x) => Math.abs(x) > 2);
  return panel(
    `The output: on the side of ${answer(end)}`,
    LOW,
    axes(PLANE, TICKS, ["", ""]),
    words(PLANE.left + PLANE.width, TOP + 28, "country ← → capital", { "text-anchor": "end", ...SMALL }),
    words(8, 32, "west ↓ ↑ east", SMALL),
    corner(306, 54, "Tokyo", "end"),
    corner(30, 54, "Japan", "start"),
    corner(306, TOP - 6, "Paris", "end"),
    corner(30, TOP - 6, "France", "start"),
    PLANE.inside(
      group(colour("query"), arrow(...stops[0], ...stops[1])),
      group(colour("value"), stops.slice(2).map((stop, k) => arrow(...stops[k + 1], ...stop))),
      group(colour("sum"), line(...origin, ...tip, { "stroke-width": 1.5, "stroke-dasharray": "3 3" }), tag("circle", { cx: tip[0], cy: tip[1], r: 5, fill: "currentColor" }))
    ),
    off ? words(168, 72, "the output is off the plot", { class: "explorable-halo", "text-anchor": "middle", ...SMALL }) : ""
  );
}
function keyPanel(state) {
  const shown = tokens(state).filter((i) => i), now = looked(state);
  const key = (i) => arrow(...origin, ...shortOf(origin, at(keyOf(state, i)))) + badge(...at(keyOf(state, i)), i || "?", i === now ? 11 : 8);
  return panel(
    "Keys, and the query: drag it",
    LOW,
    axes(PLANE, TICKS, ["", ""]),
    words(8, 32, "west ↓ ↑ east", SMALL),
    group(colour("key"), shown.map(key), key(0)),
    group(colour("query"), arrow(...origin, ...shortOf(origin, at(state.query))), diamond(...at(state.query))),
    words(8, LOW - 4, `chosen: ${NAMES[now]}`, MONO)
  );
}
function matrixPanel(state) {
  const i = looked(state), value = valueOf(state, i), [a, b] = keyOf(state, i), y = 78, low = 166;
  const head = (x, text, role) => words(x, 44, text, { ...middle, ...bold, ...colour(role) });
  const sum2 = addMatrices(zeroShot(state), update(state)), under = (x, text) => words(x, low + 38, text, { ...middle, ...bold });
  const note = linear(state) ? ["The same matrix serves every query:", "drag q, and it does not change."] : ["Softmax has no such matrix: each p depends", "on q and on all keys together."];
  return panel(
    `Value times key: ${NAMES[i]}`,
    LOW,
    head(22, "value", "value"),
    column(0, y, value),
    words(57, y + 4, "×", middle),
    head(116, "key, as a row", "key"),
    path(`M73 ${y - 9}h-4v18h4M159 ${y - 9}h4v18h-4`, { "stroke-opacity": 0.7 }),
    words(110, y + 4, fixed(a), right),
    words(156, y + 4, fixed(b), right),
    words(182, y + 4, "=", middle),
    head(250, "outer product", "sum"),
    heatMap(200, y, product(state, i)),
    line(0, 118, WIDTH, 118, { "stroke-opacity": 0.5 }),
    words(0, 138, "The sum of all outer products, as a matrix", { "font-size": 12 }),
    heatMap(0, low, zeroShot(state), 46),
    words(102, low + 4, "+", middle),
    heatMap(112, low, update(state), 46),
    words(216, low + 4, "=", middle),
    heatMap(227, low, sum2, 46),
    under(46, "W_ZSL"),
    under(158, `ΔW_ICL, ${state.demonstrations} of 4`),
    under(273, "sum"),
    note.map((text, k) => words(0, 234 + 17 * k, text, { "font-size": 12 }))
  );
}
function extend(root, start, read, change) {
  const choose = ({ target }) => {
    const row = target.closest?.("[data-token]"), token = row && +row.dataset.token;
    if (row && token !== looked(read())) change({ token });
  };
  root.addEventListener("pointermove", choose);
  root.addEventListener("click", choose);
}
var one_head_default = explorable({
  question: "What does each demonstration add to the output of a head?",
  hint: "Point at a token or choose it from the list. Drag the diamond (the query), or focus it and press the arrow keys. Each demonstration is one token here; in a real prompt it is several. The numbers are chosen by hand.",
  traits: ["token_keys", "token_values", "query", "demonstrations", "token", "attention"],
  sliders: [slider("demonstrations", "demonstrations", [0, 4, 1], String)],
  lists: (state) => [
    ["attention", "attention", [["linear", "linear: no softmax"], ["softmax", "softmax"]]],
    ["token", "token", tokens(state).map((i) => [i === looked(state) ? state.token : i, NAMES[i]])]
  ],
  panels: (state) => [tokenPanel(state), matrixPanel(state), keyPanel(state), outputPanel(state)],
  handles: ({ query }) => [{ panel: 2, label: "Query", plane: PLANE, at: query, move: (point) => ({ query: point }) }],
  describe,
  extend,
  answers: (state) => [
    ["sum over tokens: Σ vᵢ (kᵢ · q)", vector(bySum(state), 12)],
    ["matrix times query: (W_ZSL + ΔW_ICL) q", vector(byMatrix(state), 12)],
    ["softmax attention: Σ vᵢ softmax(k · q / √2)ᵢ", vector(bySoftmax(state), 3)],
    ["distance from softmax, as a share of it", percent(gap(state))]
  ]
});
export {
  one_head_default as default
};
