// Made of js/noise_value.js by "make explorables": change that file, not this one.

// algebra.js
function dot(a, b) {
  let sum2 = 0;
  for (let i = 0; i < a.length; i++) sum2 += a[i] * b[i];
  return sum2;
}
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
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
var through = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
var entry = (x, y, text, number) => words(x, y, text, { "font-size": 12 }) + words(WIDTH, y, number, { "text-anchor": "end", "font-weight": 600 });
var DIAMOND = "M0-6L6 0L0 6L-6 0Z";
var SQUARE = "M-4-4h8v8h-8Z";
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
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

// noise_value.js
var PAIRS = 64;
function normalVector(uniform, dimension) {
  const g = new Float64Array(dimension);
  for (let j = 0; j < dimension; j++) g[j] = normal(uniform);
  return g;
}
var drawn = remember(["dimension", "seed"], ({ dimension, seed }) => {
  const uniform = uniforms(seed);
  return Array.from({ length: PAIRS }, () => {
    const [g, f] = [normalVector(uniform, dimension), normalVector(uniform, dimension)];
    const [lengthG, lengthF] = [Math.sqrt(dot(g, g)), Math.sqrt(dot(f, f))];
    return { icl: g[0] / lengthG, ft: f[0] / lengthF, both: dot(g, f) / (lengthG * lengthF) };
  });
});
var lengthOf = (ratio, c) => Math.sqrt(1 + 2 * ratio * c + ratio * ratio);
function changeLength(ratio, c) {
  const n = lengthOf(ratio, c), along = (1 + ratio * c) / n - 1, across = ratio * Math.sqrt(Math.max(0, 1 - c * c)) / n;
  return Math.hypot(along, across);
}
function normalised(ratio, { icl, ft, both }) {
  const [n, m] = [lengthOf(ratio, icl), lengthOf(ratio, ft)], [a, b] = [(1 + ratio * icl) / n, (1 + ratio * ft) / m];
  const u = (1 + ratio * (icl + ft) + ratio * ratio * both) / (n * m);
  return (u - a - b + 1) / (changeLength(ratio, icl) * changeLength(ratio, ft));
}
var manyDimensions = (ratio) => (1 - 1 / Math.sqrt(1 + ratio * ratio)) / 2;
var STEPS = 400;
function expected(ratio, dimension) {
  let [sum2, total] = [0, 0];
  for (let i = 0; i < STEPS; i++) {
    const angle = (i + 0.5) * Math.PI / STEPS, weight = Math.sin(angle) ** (dimension - 2);
    sum2 += weight * changeLength(ratio, Math.cos(angle));
    total += weight;
  }
  return (sum2 / total) ** 2 / 4;
}
var simulated = remember(["ratio", "dimension", "seed"], (state) => {
  const pairs = drawn(state), { ratio } = state;
  const each = pairs.map((pair) => ({ normalised: normalised(ratio, pair), raw: pair.both }));
  return {
    each,
    normalised: mean(each.map((pair) => pair.normalised)),
    raw: mean(each.map((pair) => pair.raw)),
    closed: mean(pairs.map(({ icl, ft }) => changeLength(ratio, icl) * changeLength(ratio, ft) / 4))
  };
});
function describe(state) {
  const { normalised: value, raw, closed } = simulated(state);
  return `Two unrelated changes of one vector, each ${fixed(state.ratio)} times as long as it, in ${state.dimension} dimensions. Normalised SimAOU: ${fixed(closed, 3)} by the formula, ${fixed(value, 3)} in ${PAIRS} simulated pairs (seed ${state.seed}). Not normalised: ${fixed(raw, 3)}.`;
}
var HEIGHT = 372;
var RADIUS = 78;
var note = { "font-size": 12 };
var CIRCLE = plane({ left: 0, top: 26, width: WIDTH, height: 250, x: [-WIDTH / 2 / RADIUS, WIDTH / 2 / RADIUS], y: [-1.45, 250 / RADIUS - 1.45] });
function circlePanel(state) {
  const { X, Y, inside, top, height } = CIRCLE, { ratio } = state, value = manyDimensions(ratio);
  const angle = Math.atan(ratio), [x, y] = [Math.sin(angle), Math.cos(angle)];
  const at = (a, b) => [X(a), Y(b)];
  const dots = (name, side, role) => group({ ...colour(role), "fill-opacity": 0.45 }, drawn(state).map((pair) => {
    const c = pair[name], n = lengthOf(ratio, c), across = side * ratio * Math.sqrt(Math.max(0, 1 - c * c)) / n;
    return tag("circle", { cx: X(across), cy: Y((1 + ratio * c) / n), r: 2.4, fill: "currentColor" });
  }));
  const change = (side, role) => group(
    colour(role),
    line(...at(0, 0), ...at(side * x * 9, y * 9), { "stroke-dasharray": "2 4", "stroke-opacity": 0.7 }),
    arrow(...at(0, 1), ...at(side * Math.min(ratio, 12), 1), { "stroke-opacity": 0.5 }),
    arrow(...at(0, 1), ...at(side * x, y), {})
  );
  return panel(
    "At unit length, all changes point inwards",
    HEIGHT,
    inside(
      tag("circle", { cx: X(0), cy: Y(0), r: RADIUS, fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }),
      arrow(...at(0, 0), ...at(0, 1), {}),
      dots("icl", 1, "sum"),
      dots("ft", -1, "query"),
      change(1, "sum"),
      change(-1, "query"),
      group(colour("key"), arrow(...at(0, 1), ...at(0, y), {}), line(...at(-x, y), ...at(x, y), { "stroke-dasharray": "5 3" }))
    ),
    words(X(0) - 5, Y(1) - 7, "z", { "text-anchor": "end" }),
    group(colour("sum"), words(WIDTH, top + 14, "r (ICL)", { "text-anchor": "end", ...SMALL }), words(X(x) + 9, Y(y) + 13, "u", {})),
    group(colour("query"), words(0, top + 14, "r (FT)", SMALL), words(X(-x) - 9, Y(y) + 13, "u", { "text-anchor": "end" })),
    y < 0.8 ? group(colour("key"), words(X(0) + 6, Y((1 + y) / 2) + 4, fixed(1 - y), { class: "explorable-halo", ...SMALL })) : "",
    ratio > 0.6 ? [[1, "sum"], [-1, "query"]].map(([side, role]) => group(colour(role), words(X(side * x * 2 / 3) + side * 8, Y((1 + 2 * y) / 3) - 3, "d", { class: "explorable-halo", "text-anchor": "middle" }))) : "",
    words(0, top + height + 20, "In space, left and right are at right angles. Only the", note),
    words(0, top + height + 36, "inward part, along z, is common to both changes.", note),
    words(0, top + height + 52, `Its square is ${fixed(value, 3)} of the square of the whole`, note),
    words(0, top + height + 68, "change, and that is the similarity of the two.", note),
    words(0, top + height + 88, `Dots: ${PAIRS} simulated changes on either side.`, note)
  );
}
var CHART = plane({ left: 40, top: 44, width: 272, height: 218, x: [-2.25, 2.25], y: [-0.2, 0.6] });
var log3 = (ratio) => Math.log(ratio) / Math.log(3);
var GRID = Array.from({ length: 37 }, (_, i) => -2.25 + i / 8);
var curve = remember(["dimension"], ({ dimension }) => GRID.map((x) => expected(3 ** x, dimension)));
var quantile = (a, share) => [...a].sort((p, q) => p - q)[Math.round(share * (a.length - 1))];
function chartPanel(state) {
  const { X, Y, inside, left, top, width, height } = CHART, { each, ...means } = simulated(state), here = X(log3(state.ratio));
  const line_ = (values) => through(GRID.map((x, i) => [X(x), Y(values[i])]));
  const spread = (name, shift) => {
    const all = each.map((pair) => pair[name]), [low, high] = [quantile(all, 0.05), quantile(all, 0.95)];
    return line(here + shift, Y(low), here + shift, Y(high), { "stroke-width": 3, "stroke-opacity": 0.45 });
  };
  const row = (i, role, mark, text, value, solid) => {
    const y = top + height + 50 + 19 * i;
    return group(colour(role), marker(mark, 6, y - 4, solid)) + entry(18, y, text, fixed(value, 3));
  };
  const grid = { "stroke-opacity": 0.15 }, mid = { "text-anchor": "middle", ...SMALL };
  return panel(
    "What unrelated changes score",
    HEIGHT,
    [-2, -1, 0, 1, 2].map((t) => line(X(t), top, X(t), top + height, grid) + words(X(t), top + height + 14, t < 0 ? `1/${3 ** -t}` : 3 ** t, mid)),
    [-0.2, 0, 0.2, 0.4, 0.6].map((t) => line(left, Y(t), left + width, Y(t), t ? grid : { "stroke-opacity": 0.6 }) + words(left - 5, Y(t) + 4, fixed(t, 1), { "text-anchor": "end", ...SMALL })),
    words(left + width, top + height + 28, "length of the change / length of z", { "text-anchor": "end", ...SMALL }),
    words(0, top - 10, "similarity", SMALL),
    line(here, top, here, top + height, { "stroke-width": 1.5, "stroke-opacity": 0.6 }),
    line(left, Y(0.25), X(0.5), Y(0.25), { "stroke-dasharray": "2 3" }),
    line(X(0.5), Y(0.25), X(0.5), top + height, { "stroke-dasharray": "2 3" }),
    words(left + 4, Y(0.25) - 5, "1/4, where ‖r‖² = 3‖z‖²", SMALL),
    inside(
      path(line_(GRID.map((x) => manyDimensions(3 ** x))), { "stroke-dasharray": "1 4", "stroke-width": 2 }),
      group(colour("key"), path(line_(curve(state)), { "stroke-width": 2 }), spread("normalised", -3)),
      group(colour("value"), spread("raw", 3))
    ),
    group(colour("key"), marker(DIAMOND, here, Y(means.normalised), true)),
    group(colour("value"), marker(SQUARE, here, Y(means.raw))),
    row(0, "key", "M-6 0H6", "normalised, by the formula |d||d| / 4", means.closed),
    row(1, "key", DIAMOND, `normalised, mean of ${PAIRS} pairs`, means.normalised, true),
    row(2, "value", SQUARE, "not normalised, mean of the same pairs", means.raw)
  );
}
var noise_value_default = explorable({
  question: "How similar are two changes that have nothing to do with each other?",
  hint: "Solid curve: expectation in this many dimensions; dotted: in infinitely many. Bars at the two markers: 5 % to 95 % of the simulated pairs. Both changes are random directions, drawn from a seed, and equally long.",
  traits: ["ratio", "dimension", "seed"],
  sliders: [
    slider("ratio", "length of change", [-4, 4, 0.25], fixed, (x) => 3 ** (x / 2), (ratio) => 2 * log3(ratio)),
    slider("dimension", "dimensions", [1, 10, 1], String, (x) => 2 ** x, Math.log2)
  ],
  panels: (state) => [circlePanel(state), chartPanel(state)],
  describe
});
export {
  noise_value_default as default
};
