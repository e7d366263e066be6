// Made of js/one_step.js by "make explorables": change that file, not this one.

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

// one_step.js
function gradientStep(points, learningRate) {
  const W_0 = 0;
  const gradient = points.reduce((sum, [x, y]) => sum + (W_0 * x - y) * x, 0) / points.length;
  return W_0 - learningRate * gradient;
}
var errorSignals = (points, learningRate) => points.map(([, y]) => learningRate / points.length * y);
function attend(points, learningRate, query) {
  return linearAttention(errorSignals(points, learningRate).map((e) => [e]), points.map(([x]) => [x]), [query])[0];
}
var contributions = (points, learningRate, query) => errorSignals(points, learningRate).map((e, i) => e * (points[i][0] * query));
function predictions({ points, learning_rate, query }) {
  return { step: gradientStep(points, learning_rate) * query, attention: attend(points, learning_rate, query) };
}
function describe(state) {
  const { step, attention } = predictions(state);
  return `For the query ${fixed(state.query)}, the layer after one gradient step predicts ${fixed(step, 12)}; linear attention over the ${state.points.length} examples answers ${fixed(attention, 12)}. ${agreement([step], [attention])}`;
}
var clip = (v) => Math.max(-LIMIT, Math.min(LIMIT, v));
function dataPanel({ points, learning_rate, query }) {
  const { X, Y } = PLANE, W = gradientStep(points, learning_rate), prediction = W * query;
  const end = Math.min(LIMIT, LIMIT / Math.abs(W));
  const at = [X(query), Y(clip(prediction))];
  const right = X(LIMIT), steep = Math.abs(prediction) > LIMIT;
  const text = fixed(prediction, 3) + (steep ? " (off the plot)" : ""), leftwards = query > (steep ? 0 : 1.2);
  const from = at[0] + (leftwards ? -10 : 10), to = from + (leftwards ? -1 : 1) * 8 * text.length, below = prediction < 0 ? -12 : 20;
  const hides = (y) => points.filter(([px, py]) => X(px) > Math.min(from, to) - 12 && X(px) < Math.max(from, to) + 12 && Math.abs(Y(py) + 4 - y) < 16).length;
  const free = [below, -below, 2 * below].map((dy) => at[1] + dy).filter((y) => y > Y(LIMIT) + 8 && y < Y(-LIMIT));
  const place = [from, free.reduce((best, y) => hides(y) < hides(best) ? y : best)];
  return panel(
    `One gradient step: W₁ = ${fixed(W, 3)}`,
    308,
    axes(PLANE, TICKS, ["input x", "output y"]),
    line(X(-end), Y(-W * end), X(end), Y(W * end), { "stroke-width": 2.5 }),
    line(X(-LIMIT), Y(0), right, Y(0), { "stroke-dasharray": "6 4", "stroke-width": 1.5 }),
    words(X(-LIMIT) + 4, Y(0) - 5, "before: W₀ = 0", SMALL),
    group(colour("value"), points.map(([x, y]) => line(X(x), Y(0), ...shortOf([X(x), Y(0)], [X(x), Y(y)]), { "stroke-width": 2, "stroke-dasharray": "2 3" }))),
    group(colour("key"), points.map(([x, y], i) => badge(X(x), Y(y), i + 1))),
    group(colour("query"), line(at[0], Y(0), ...at, { "stroke-width": 2 }), diamond(...at)),
    words(...place, text, { class: "explorable-halo", "font-weight": 600, "text-anchor": leftwards ? "end" : "start" })
  );
}
function attentionPanel({ points, learning_rate, query }) {
  const values = errorSignals(points, learning_rate), parts = contributions(points, learning_rate, query);
  const reached = parts.reduce((sums, part) => [...sums, sums.at(-1) + part], [0]);
  const low = Math.min(...reached), high = Math.max(...reached), span = Math.max(high - low, 1e-9);
  const X = (v) => 178 + (v - low) / span * 134, height = 224 / points.length, foot = 50 + 224;
  const total = reached.at(-1), right = { "text-anchor": "end", "font-size": 12 };
  const row = (i) => {
    const y = 50 + i * height, middle = y + height / 2 + 4;
    return [
      group(colour("key"), badge(10, middle - 4, i + 1)),
      words(62, middle, fixed(values[i]), right),
      words(72, middle, "×", { "text-anchor": "middle", "font-size": 12 }),
      words(118, middle, fixed(points[i][0] * query), right),
      words(166, middle, fixed(parts[i], 2, "+"), right),
      group(colour("sum"), bar(X(reached[i]), X(reached[i + 1]), y + height / 2 - 7, 14)),
      i + 1 < points.length ? line(X(reached[i + 1]), y + height / 2 + 7, X(reached[i + 1]), y + height * 1.5 - 7, { "stroke-opacity": 0.5 }) : ""
    ];
  };
  return panel(
    "Linear attention over the examples",
    308,
    group(
      { ...right, "font-weight": 600 },
      words(62, 38, "value", colour("value")),
      words(99, 38, "key ·", colour("key")),
      words(118, 38, "q", colour("query")),
      words(166, 38, "adds", colour("sum")),
      words(X(total), 38, "W₁ q", { ...colour("query"), "text-anchor": X(total) < 230 ? "start" : "end" })
    ),
    line(X(0), 44, X(0), foot + 30, { "stroke-opacity": 0.5 }),
    group(colour("query"), line(X(total), 44, X(total), foot + 30, { "stroke-width": 2, "stroke-dasharray": "2 3" })),
    points.map((_, i) => row(i)),
    line(0, foot + 3, WIDTH, foot + 3, { "stroke-opacity": 0.5 }),
    words(0, foot + 22, "sum", { "font-weight": 600 }),
    words(166, foot + 22, fixed(total, 3), { ...right, "font-size": 13, "font-weight": 600 }),
    group(colour("sum"), bar(X(0), X(total), foot + 10, 16))
  );
}
function handles({ points, learning_rate, query }) {
  return [
    ...points.map((at, i) => ({ panel: 0, label: `Example ${i + 1}`, plane: PLANE, at, move: (point) => ({ points: points.with(i, point) }) })),
    { panel: 0, label: "Query", plane: PLANE, at: [query, gradientStep(points, learning_rate) * query], horizontal: true, move: ([x]) => ({ query: x }) }
  ];
}
var one_step_default = explorable({
  question: "Does one gradient step give the same answer as linear attention over the examples?",
  hint: "Drag a numbered example or the diamond (the query), or focus it and press the arrow keys; Shift makes bigger steps. Value: (η/n) yᵢ, the dotted height. Key: xᵢ. Hollow bars are negative.",
  traits: ["points", "learning_rate", "query"],
  sliders: [slider("learning_rate", "learning rate η", [0, 1.5, 0.05])],
  panels: (state) => [dataPanel(state), attentionPanel(state)],
  handles,
  describe,
  answers: (state) => {
    const { step, attention } = predictions(state);
    return [["after one gradient step: W₁ q", fixed(step, 12)], ["linear attention: Σ valueᵢ (keyᵢ · q)", fixed(attention, 12)]];
  }
});
export {
  one_step_default as default
};
