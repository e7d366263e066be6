// Made of js/age_weights.js by "make explorables": change that file, not this one.

// algebra.js
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);
var sum = (a) => a.reduce((total, a_i) => total + a_i, 0);

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
var entry = (x, y, text, number) => words(x, y, text, { "font-size": 12 }) + words(WIDTH, y, number, { "text-anchor": "end", "font-weight": 600 });
var PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };
var diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);
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

// age_weights.js
var AGES = 60;
function weights({ retention, momentum }, n = AGES) {
  const w = [];
  for (let age = 0, rolled = 1, last = 0; age < n; age++, rolled *= momentum) w.push(last = retention * last + rolled);
  return w;
}
function summary(state) {
  const w = weights(state), total = sum(w);
  let half = 0, seen = 0;
  while (seen < total / 2) seen += w[half++];
  return { peak: w.indexOf(Math.max(...w)), half };
}
var near = (w, most) => w > most * (1 - 1e-9);
function describe(state) {
  const w = weights(state), { peak, half } = summary(state), most = w[peak];
  const last = AGES - 1, level = w.every((each) => near(each, most));
  const who = level ? "All pairs count the same" : peak === 0 ? "The newest pair counts most" : near(w[last], most) ? `The oldest pairs count most, ${fixed(w[last])} times as much as the newest` : `The pair of age ${peak} counts most, ${fixed(most)} times as much as the newest`;
  return `Retention ${fixed(state.retention)}, momentum ${fixed(state.momentum)}. ${who}. The newest ${whole(half)} of ${AGES} pairs have half of all the weight.`;
}
var HEIGHT = 352;
var middle = { ...SMALL, "text-anchor": "middle" };
var end = { ...SMALL, "text-anchor": "end" };
var FRAME = { left: 36, top: 44, width: 276, height: 210, x: [-1, AGES] };
var TICKS = [0, 10, 20, 30, 40, 50];
function ticksUpTo(top) {
  const rough = top / 4, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => i * step);
}
var scaleOf = ({ X, Y, left, top, width, height }, ticks) => [
  ticks.map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t === 0 ? 0.6 : 0.15 }) + words(left - 5, Y(t) + 4, fixed(t, t % 1 ? 1 : 0), end)),
  TICKS.map((t) => words(X(t), top + height + 14, t, middle)),
  words(left + width, top + height + 28, "age of the pair, in tokens", end)
];
function weightsPanel(state) {
  const w = weights(state), { peak, half } = summary(state), high = Math.max(...w) * 1.12, p = plane({ ...FRAME, y: [0, high] }), { X, Y, top, height } = p;
  return panel(
    "Weight of a pair in S",
    HEIGHT,
    scaleOf(p, ticksUpTo(high)),
    words(0, 32, "weight", SMALL),
    group(colour("value"), w.map((w_n, n) => rect(X(n) - 1.6, Y(w_n), 3.2, Math.max(0.5, Y(0) - Y(w_n)), { "fill-opacity": n < half ? 0.85 : 0.4 }))),
    group(colour("query"), diamond(X(peak), Y(w[peak]) - 11, 6), words(X(peak) + (peak > 45 ? -11 : 11), Y(w[peak]) - 8, `age ${peak}`, peak > 45 ? end : SMALL)),
    entry(0, top + height + 52, "newest pairs with half of the weight (dark)", whole(half))
  );
}
var SERIES = [
  ["retention alone: α, μ = 0", "key", "2 4", ({ retention }) => ({ retention, momentum: 0 })],
  ["momentum alone: μ, α = 1", "query", "8 4", ({ momentum }) => ({ retention: 1, momentum })],
  ["both", "value", "", (state) => state]
];
function causesPanel(state) {
  const p = plane({ ...FRAME, y: [0, 1.08] }), { X, Y, left, top, width, height } = p;
  return panel(
    "The same, each with its largest weight as 1",
    HEIGHT,
    scaleOf(p, [0, 0.5, 1]),
    words(0, 32, "share of the largest", SMALL),
    SERIES.map(([name, role, dash, of], i) => {
      const w = weights(of(state)), most = Math.max(...w), y = top + height + 48 + 17 * i;
      return group(
        colour(role),
        path(through(w.map((w_n, n) => [X(n), Y(w_n / most)])), { "stroke-width": 2, "stroke-dasharray": dash }),
        line(left, y - 4, left + 30, y - 4, { "stroke-width": 2, "stroke-dasharray": dash }),
        words(left + 38, y, name, SMALL)
      );
    })
  );
}
var age_weights_default = explorable({
  question: "Which pairs count most?",
  hint: "Momentum holds a new pair back, and retention lets an old pair fade. Move both sliders. At the right end of the first one nothing fades; at the left end of the second one nothing is held back.",
  traits: ["retention", "momentum"],
  sliders: [slider("retention", "retention α", [0.5, 1, 0.01]), slider("momentum", "momentum μ", [0, 0.95, 0.05])],
  panels: (state) => [weightsPanel(state), causesPanel(state)],
  describe
});
export {
  age_weights_default as default
};
