// Made of js/memory_or_ridge.js by "make explorables": change that file, not this one.

// algebra.js
function dot(a, b) {
  let sum2 = 0;
  for (let i = 0; i < a.length; i++) sum2 += a[i] * b[i];
  return sum2;
}
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);
var sum = (a) => a.reduce((total, a_i) => total + a_i, 0);
function weightedSum(weights, rows) {
  const total = rows[0].map(() => 0);
  for (let i = 0; i < rows.length; i++) for (let j = 0; j < total.length; j++) total[j] += weights[i] * rows[i][j];
  return total;
}
function softmax(logits) {
  const largest = Math.max(...logits), powers = logits.map((l) => Math.exp(l - largest));
  return scale(1 / sum(powers), powers);
}

// numbers.js
var MINUS = "−";
function fixed(number, digits = 2, plus = "") {
  const size = Math.abs(number).toFixed(digits);
  return (Number(size) === 0 ? "" : number < 0 ? MINUS : plus) + size;
}
var vector = (a, digits = 2) => `(${a.map((a_i) => fixed(a_i, digits)).join(", ")})`;
var whole = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

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
var through = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
var PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };
var badge = (x, y, text, r = 9) => tag("circle", { cx: x, cy: y, r, ...PAPER }) + group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", "font-size": 11 }));
var diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);
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

// random.js
function uniforms(seed) {
  let state = seed | 0;
  return () => {
    state = state + 1831565813 | 0;
    let bits = Math.imul(state ^ state >>> 15, state | 1);
    bits = bits + Math.imul(bits ^ bits >>> 7, bits | 61) ^ bits;
    return ((bits ^ bits >>> 14) >>> 0) / 2 ** 32;
  };
}
var normal = (uniform) => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());

// remember.js
function remember(traits, compute) {
  let last, result;
  return (state) => {
    const name = traits.map((trait) => state[trait]).join(" ");
    if (name !== last) [result, last] = [compute(state), name];
    return result;
  };
}

// memory_or_ridge.js
var MOST_DOUBLINGS = 10;
var POOL_SEED = 10;
var MOST_DRAWN = 64;
var LARGEST = 2 ** MOST_DOUBLINGS;
var pool = remember([], () => {
  const uniform = uniforms(POOL_SEED);
  return Array.from({ length: LARGEST }, () => [normal(uniform), normal(uniform)]);
});
var poolOf = (doublings) => pool({}).slice(0, 2 ** doublings);
var at = (w, x) => w[0] * x + w[1];
var posterior = (lines, { points, noise }) => softmax(lines.map((w) => -points.reduce((total, [x, y]) => total + (y - at(w, x)) ** 2, 0) / (2 * noise * noise)));
var memory = (state, doublings = state.doublings) => {
  const lines = poolOf(doublings);
  return weightedSum(posterior(lines, state), lines);
};
function ridge({ points, noise }) {
  const penalty = noise * noise, column = (f) => points.reduce((total, point) => total + f(point), 0);
  const a = column(([x]) => x * x) + penalty, b = column(([x]) => x), c = points.length + penalty;
  const p = column(([x, y]) => x * y), q = column(([, y]) => y), det = a * c - b * b;
  return [(c * p - b * q) / det, (a * q - b * p) / det];
}
function predictions(state) {
  const x = [state.query, 1];
  return { memory: dot(memory(state), x), ridge: dot(ridge(state), x) };
}
var answersBySize = (state) => Array.from({ length: MOST_DOUBLINGS + 1 }, (_, k) => at(memory(state, k), state.query));
function describe(state) {
  const T = 2 ** state.doublings, found = predictions(state), best = Math.max(...posterior(poolOf(state.doublings), state));
  const gap = Math.abs(found.memory - found.ridge);
  const largest = Math.abs(answersBySize(state).at(-1) - found.ridge);
  return `At x = ${fixed(state.query)}, memory of ${T === 1 ? "one line" : `${whole(T)} lines`} answers ${fixed(found.memory, 3)}; ridge regression, which takes every line for possible, answers ${fixed(found.ridge, 3)}. They part by ${fixed(gap, 3)}. Memory gives its most probable line the probability ${fixed(best, 2)}. With a pool of ${whole(LARGEST)} lines they would part by ${fixed(largest, 3)}.`;
}
var clip = (v) => Math.max(-LIMIT, Math.min(LIMIT, v));
var HEIGHT = 356;
function linesPanel(state) {
  const { X, Y, inside } = PLANE, lines = poolOf(state.doublings), weights = posterior(lines, state);
  const found = predictions(state), x = X(state.query);
  const whole_ = (w, more) => line(X(-LIMIT), Y(at(w, -LIMIT)), X(LIMIT), Y(at(w, LIMIT)), more);
  const drawn = lines.slice(0, MOST_DRAWN).map((w, j) => whole_(w, { "stroke-opacity": (0.18 + 0.6 * weights[j]).toFixed(3), "stroke-width": 1 }));
  const key = (i, mark, text) => group({ transform: `translate(26 ${318 + 16 * i})` }, mark, words(36, 4, text, SMALL));
  return panel(
    `The prompt, and a pool of T = ${whole(lines.length)}`,
    HEIGHT,
    axes(PLANE, TICKS, ["input x", "output y"]),
    inside(
      drawn,
      group(colour("value"), whole_(ridge(state), { "stroke-width": 2.5, "stroke-dasharray": "7 4" })),
      group(colour("query"), whole_(memory(state), { "stroke-width": 2.5 })),
      line(x, PLANE.top, x, PLANE.top + PLANE.height, { "stroke-dasharray": "1 3" })
    ),
    group(colour("key"), state.points.map(([x_i, y_i], i) => badge(X(x_i), Y(y_i), i + 1))),
    group(colour("value"), diamond(x, Y(clip(found.ridge)), 6)),
    group(colour("query"), diamond(x, Y(clip(found.memory)), 8)),
    group(colour("query"), key(0, line(0, 0, 28, 0, { "stroke-width": 2.5 }), "memory: mean over the pool, as it fits")),
    group(colour("value"), key(1, line(0, 0, 28, 0, { "stroke-width": 2.5, "stroke-dasharray": "7 4" }), "ridge regression: every line is possible"))
  );
}
var SIZES = plane({ left: 34, top: 40, width: 260, height: 236, x: [0, MOST_DOUBLINGS], y: [-LIMIT, LIMIT] });
function sizesPanel(state) {
  const { X, Y, inside, left, top, width, height } = SIZES, answers = answersBySize(state), { ridge: level } = predictions(state);
  const points = answers.map((answer, k) => [X(k), Y(clip(answer))]), now = points[state.doublings];
  const middle = { ...SMALL, "text-anchor": "middle" };
  return panel(
    "Their answers, by the size of the pool",
    HEIGHT,
    rect(left, top, width, height, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }),
    TICKS.map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t ? 0.15 : 0.6 }) + words(left - 5, Y(t) + 4, fixed(t, 0), { ...SMALL, "text-anchor": "end" })),
    [0, 2, 4, 6, 8, 10].map((k) => words(X(k), top + height + 14, whole(2 ** k), middle)),
    words(left + width, top + height + 28, "T, lines in the pool", { ...SMALL, "text-anchor": "end" }),
    words(0, top - 8, `answer at x = ${fixed(state.query)}`, SMALL),
    inside(
      group(colour("value"), line(left, Y(clip(level)), left + width, Y(clip(level)), { "stroke-width": 2.5, "stroke-dasharray": "7 4" })),
      group(colour("query"), path(through(points), { "stroke-width": 2 }), points.map(([x, y]) => rect(x - 2.5, y - 2.5, 5, 5, {})))
    ),
    group(colour("query"), diamond(...now, 8)),
    words(0, 322, "Where they part, memory answers with the tasks", SMALL),
    words(0, 338, "of its pool, and ridge with the task of the prompt.", SMALL)
  );
}
function handles({ points, query }) {
  return [
    ...points.map((at_, i) => ({ panel: 0, label: `Example ${i + 1}`, plane: PLANE, at: at_, move: (point) => ({ points: points.with(i, point) }) })),
    { panel: 0, label: "Query", plane: PLANE, at: [query, -LIMIT], horizontal: true, move: ([x]) => ({ query: x }) }
  ];
}
var memory_or_ridge_default = explorable({
  question: "What does a learner answer that knows T lines by heart, and what one that takes every line for possible?",
  hint: `Move the slider from few lines to many. Drag a numbered example, or the query along the bottom edge, or focus it and press the arrow keys; Shift makes bigger steps. At most ${MOST_DRAWN} lines are drawn; all count.`,
  traits: ["points", "query", "doublings", "noise"],
  sliders: [
    slider("doublings", "lines in the pool T", [0, MOST_DOUBLINGS, 1], (k) => whole(2 ** k)),
    slider("noise", "noise σ", [0.1, 1, 0.05])
  ],
  panels: (state) => [linesPanel(state), sizesPanel(state)],
  handles,
  describe,
  answers: (state) => {
    const found = predictions(state);
    return [["memory of the pool", fixed(found.memory, 3)], ["ridge regression", fixed(found.ridge, 3)]];
  }
});
export {
  memory_or_ridge_default as default
};
