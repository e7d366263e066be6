// Made of js/softmax_bend.js by "make explorables": change that file, not this one.

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
function weightedSum(weights, rows) {
  const total = rows[0].map(() => 0);
  for (let i = 0; i < rows.length; i++) for (let j = 0; j < total.length; j++) total[j] += weights[i] * rows[i][j];
  return total;
}
function softmax(logits2) {
  const largest = Math.max(...logits2), powers = logits2.map((l) => Math.exp(l - largest));
  return scale(1 / sum(powers), powers);
}
var linearAttention = (values, keys, query) => weightedSum(keys.map((key) => dot(key, query)), values);

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
var DIAMOND = "M0-6L6 0L0 6L-6 0Z";
var SQUARE = "M-4-4h8v8h-8Z";
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
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

// softmax_bend.js
var D = 8;
var D_V = 8;
var QUERIES = 8;
var MAX_TOKENS = 128;
var FEATURES = 64;
var meanRow = (rows) => rows[0].map((_, j) => mean(rows.map((row) => row[j])));
var logits = (query, keys) => keys.map((key) => dot(key, query) / Math.sqrt(D));
var drawn = remember(["tokens", "seed"], ({ tokens, seed }) => {
  const uniform = uniforms(seed);
  const draw = (rows, columns) => Array.from({ length: rows }, () => Array.from({ length: columns }, () => normal(uniform)));
  const projections = draw(FEATURES, D), queries = draw(QUERIES, D);
  return { projections, queries, keys: draw(MAX_TOKENS, D).slice(0, tokens), values: draw(MAX_TOKENS, D_V).slice(0, tokens) };
});
function example({ spread, tokens, seed }) {
  const { projections, values, ...unit } = drawn({ tokens, seed });
  const queries = unit.queries.map((query) => {
    const l = logits(query, unit.keys), centre = mean(l);
    return scale(Math.sqrt(spread / mean(l.map((l_i) => (l_i - centre) ** 2))), query);
  });
  return { keys: unit.keys.map((key) => scale(Math.sqrt(spread), key)), values, queries, projections };
}
var softmaxAttention = ({ queries, keys, values }) => queries.map((query) => weightedSum(softmax(logits(query, keys)), values));
var relaxedAttention = ({ queries, keys, values }) => queries.map((query) => linearAttention(values, keys, query));
var meanValue = ({ queries, values }) => queries.map(() => meanRow(values));
function centredLinearAttention({ queries, keys, values }) {
  const v_0 = meanRow(values), k_0 = meanRow(keys);
  const centred = keys.map((key) => subtract(key, k_0));
  return queries.map((query) => add(v_0, scale(1 / (Math.sqrt(D) * keys.length), linearAttention(values, centred, query))));
}
var positiveRandomFeatures = (rows, projections) => rows.map((x) => {
  const half = dot(x, x) / 2;
  return projections.map((w) => Math.exp(dot(w, x) - half) / Math.sqrt(projections.length));
});
function randomFeatureAttention({ queries, keys, values, projections }) {
  const features = (rows) => positiveRandomFeatures(rows.map((x) => scale(D ** -0.25, x)), projections);
  const phiK = features(keys);
  return features(queries).map((phi_q) => {
    const kernel = phiK.map((phi_k) => dot(phi_k, phi_q));
    return scale(1 / sum(kernel), weightedSum(kernel, values));
  });
}
function bestScaled(approximation, exact) {
  const [a, b] = [approximation.flat(), exact.flat()], factor = dot(a, b) / dot(a, a);
  return approximation.map((row) => scale(factor, row));
}
function relativeError(approximation, exact) {
  const [a, b] = [approximation.flat(), exact.flat()];
  return Math.hypot(...subtract(a, b)) / Math.hypot(...b);
}
var outputs = remember(["spread", "tokens", "seed"], (state) => {
  const data = example(state), exact = softmaxAttention(data), relaxed = relaxedAttention(data);
  return {
    exact,
    relaxed,
    scaled: bestScaled(relaxed, exact),
    mean: meanValue(data),
    centred: centredLinearAttention(data),
    features: randomFeatureAttention(data)
  };
});
function effectiveTokens(state) {
  const { queries, keys } = example(state);
  return Math.exp(-softmax(logits(queries[0], keys)).reduce((sum2, p) => sum2 + (p > 0 ? p * Math.log(p) : 0), 0));
}
var METHODS = [
  { key: "relaxed", name: "relaxed: V Kᵀ q", spoken: "relaxed V Kᵀ q", role: "value", dash: "none", mark: SQUARE, solid: true },
  { key: "scaled", name: "relaxed, times its best scale", spoken: "relaxed with its best scale", role: "value", dash: "5 3", mark: SQUARE },
  { key: "mean", name: "mean value alone", spoken: "the mean value alone", role: "ink", dash: "2 3", mark: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z" },
  { key: "centred", name: "mean + centred linear", spoken: "mean plus centred linear", role: "key", dash: "none", mark: "M0-6L6 5H-6Z", solid: true },
  { key: "features", name: `${FEATURES} positive random features`, spoken: `${FEATURES} positive random features`, role: "sum", dash: "8 3 2 3", mark: DIAMOND, solid: true }
];
function errors(state) {
  const all = outputs(state);
  return Object.fromEntries(METHODS.map(({ key }) => [key, relativeError(all[key], all.exact)]));
}
function percent(share) {
  const number = 100 * share;
  return `${number < 9.95 ? number.toFixed(1) : whole(number.toFixed(0))} %`;
}
function describe(state) {
  const error = errors(state), list = METHODS.map(({ key, spoken }) => `${spoken} ${percent(error[key])}`);
  return `With a logit spread of ${fixed(state.spread)} over ${state.tokens} tokens, softmax attention works with ${fixed(effectiveTokens(state), 1)} tokens. Error relative to it: ${list.slice(0, -1).join(", ")} and ${list.at(-1)} (seed ${state.seed}).`;
}
var SPREADS = Array.from({ length: 11 }, (_, i) => 2 ** (-3 + i / 2));
var curve = remember(["tokens", "seed"], ({ tokens, seed }) => SPREADS.map((spread) => errors({ spread, tokens, seed })));
var ROWS = 94;
var ROW = 56;
var HEIGHT = ROWS + METHODS.length * ROW - 4;
function weightStrip(state) {
  const { queries, keys } = example(state), weights = softmax(logits(queries[0], keys)).sort((a, b) => b - a);
  const step = WIDTH / weights.length, y = (w) => 70 - 30 * w / weights[0];
  const steps = weights.map((w, i) => `V${y(w).toFixed(1)}H${((i + 1) * step).toFixed(1)}`).join("");
  return [
    words(0, 33, `softmax weights of ${state.tokens} tokens, sorted: ${fixed(effectiveTokens(state), 1)} in use`, { "font-size": 12 }),
    path(`M0 70${steps}V70Z`, { fill: "currentColor", "fill-opacity": 0.3, "stroke-opacity": 0.7 })
  ];
}
function outputPanel(state) {
  const all = outputs(state), error = errors(state), reach = 1.3 * Math.max(...all.exact[0].map(Math.abs));
  const height = (v) => 13 * Math.max(-reach, Math.min(reach, v)) / reach;
  return panel("Output of one query, eight numbers", HEIGHT, weightStrip(state), METHODS.map((method, m) => {
    const top = ROWS + m * ROW, base = top + 31, bars = all[method.key][0].map((v, j) => {
      const [x, h] = [4 + 40 * j, height(v)];
      const cut = Math.abs(v) > reach ? path(`M${x + 10} ${base - h}l6 ${-4 * Math.sign(v)}l6 ${4 * Math.sign(v)}Z`, { fill: "currentColor" }) : "";
      return rect(x, base - Math.max(h, 0), 32, Math.max(1, Math.abs(h)), { "fill-opacity": method.solid ? 0.6 : 0.15, stroke: "currentColor" }) + cut;
    });
    const exact = all.exact[0].map((v, j) => line(1 + 40 * j, base - height(v), 39 + 40 * j, base - height(v), { "stroke-width": 2.5 }));
    return [
      group(colour(method.role), line(0, top - 1, 24, top - 1, { "stroke-width": 2, "stroke-dasharray": method.dash }), marker(method.mark, 12, top - 1, method.solid), bars),
      entry(32, top + 4, method.name, percent(error[method.key])),
      line(0, base, WIDTH, base, { "stroke-opacity": 0.4 }),
      exact
    ];
  }));
}
var [LOW, HIGH] = [-2.5, 2.5];
var CHART = plane({ left: 58, top: 42, width: 254, height: 290, x: [-3, 2], y: [LOW, HIGH] });
function curvePanel(state) {
  const { X, Y, inside, left, top, width, height } = CHART, points = curve(state), now = errors(state);
  const at = (spread, error) => [X(Math.log2(spread)), Y(Math.log10(error))];
  const grid = { "stroke-opacity": 0.15 };
  const here = X(Math.log2(state.spread));
  return panel(
    `Error against logit spread, ${state.tokens} tokens`,
    HEIGHT,
    [-3, -2, -1, 0, 1, 2].map((t) => line(X(t), top, X(t), top + height, grid) + words(X(t), top + height + 15, 2 ** t, { "text-anchor": "middle", ...SMALL })),
    [-2, -1, 0, 1, 2].map((t) => line(left, Y(t), left + width, Y(t), t ? grid : { "stroke-opacity": 0.6 }) + words(left - 5, Y(t) + 4, percent(10 ** t).replace(".0", ""), { "text-anchor": "end", ...SMALL })),
    words(left + width, top + height + 30, "logit spread (standard deviation)", { "text-anchor": "end", ...SMALL }),
    words(0, top - 10, "relative error", SMALL),
    line(here, top, here, top + height, { "stroke-width": 1.5, "stroke-opacity": 0.6 }),
    inside(METHODS.map(({ key, role, dash }) => group(
      colour(role),
      path(through(points.map((p, i) => at(SPREADS[i], p[key]))), { "stroke-width": 2, "stroke-dasharray": dash })
    ))),
    METHODS.map((method) => group(colour(method.role), marker(method.mark, here, Math.min(top + height, Math.max(top, at(state.spread, now[method.key])[1])), method.solid)))
  );
}
var powerOfTwo = (exponent) => 2 ** exponent;
var softmax_bend_default = explorable({
  question: "Where does softmax bend linear attention, and by how much?",
  hint: `Thick lines: exact softmax attention. Bars: what stands in for it (an arrowhead leaves the scale). Percentages are over ${QUERIES} queries. Fixed: Gaussian keys, queries and values of ${D} numbers each and ${FEATURES} Gaussian projections, drawn from a seed; scale 1/√${D}, which V Kᵀ q leaves out.`,
  traits: ["spread", "tokens", "seed"],
  sliders: [
    slider("spread", "logit spread", [-3, 2, 0.25], fixed, powerOfTwo, Math.log2),
    slider("tokens", "tokens", [2, 7, 1], String, powerOfTwo, Math.log2)
  ],
  panels: (state) => [outputPanel(state), curvePanel(state)],
  describe
});
export {
  softmax_bend_default as default
};
