// Made of js/playground.js by "make explorables": change that file, not this one.

// algebra.js
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);
var sum = (a) => a.reduce((total, a_i) => total + a_i, 0);
var mean = (a) => sum(a) / a.length;

// numbers.js
var MINUS = "−";
function fixed(number, digits = 2, plus2 = "") {
  const size = Math.abs(number).toFixed(digits);
  return (Number(size) === 0 ? "" : number < 0 ? MINUS : plus2) + size;
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
var through = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
var PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };
var badge = (x, y, text, r = 9) => tag("circle", { cx: x, cy: y, r, ...PAPER }) + group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", "font-size": 11 }));
function plane({ left, top, width, height, x: [x0, x1], y: [y0, y1] }) {
  const X = (x) => left + (x - x0) / (x1 - x0) * width, Y = (y) => top + (y1 - y) / (y1 - y0) * height;
  const invert = (px, py) => [x0 + (px - left) / width * (x1 - x0), y1 - (py - top) / height * (y1 - y0)];
  const inside = (...children) => tag("svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" }, ...children);
  return { X, Y, invert, inside, left, top, width, height, x: [x0, x1], y: [y0, y1] };
}
var SPAN = [-2, 2];
var LIMIT = SPAN[1];
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
var panel = (title, height, ...body) => ({ title, height, body: body.flat(Infinity).join("") });
var heading = ({ title }) => words(0, 14, title, { "font-weight": 600 });
var FONT = { "font-family": "inherit", "font-size": 13 };
function panelSvg(p) {
  return tag("svg", { viewBox: `0 0 ${WIDTH} ${p.height}`, role: "img", "aria-label": p.title, ...FONT }, heading(p), p.body);
}
function compose(panels2, alt) {
  const gap = 28, placed = [];
  let y = 0;
  for (let i = 0; i < panels2.length; i += 2) {
    const row = panels2.slice(i, i + 2);
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

// gpt.js
function float16(bits) {
  const exponent = bits >> 10 & 31, fraction = bits & 1023;
  const size = exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24;
  return bits >> 15 ? -size : size;
}
function parseWeights(base64, index) {
  const view = new DataView(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer);
  const row = (first, columns) => Float64Array.from({ length: columns }, (_, j) => float16(view.getUint16(2 * (first + j), true)));
  return Object.fromEntries(Object.entries(index).map(([name, [offset, rows, columns]]) => [name, Array.from({ length: rows }, (_, i) => row(offset + i * columns, columns))]));
}
var gelu = (x) => x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))) / 2;
function affine(x, [matrix, [bias]]) {
  const out = bias.slice();
  for (let i = 0; i < x.length; i++) {
    const row = matrix[i], x_i = x[i];
    for (let j = 0; j < out.length; j++) out[j] += x_i * row[j];
  }
  return out;
}
function layerNorm(x, [[gain], [bias]], epsilon) {
  let mean2 = 0, variance = 0;
  for (const x_i of x) mean2 += x_i / x.length;
  for (const x_i of x) variance += (x_i - mean2) ** 2 / x.length;
  const size = Math.sqrt(variance + epsilon), out = bias.slice();
  for (let i = 0; i < x.length; i++) out[i] += (x[i] - mean2) / size * gain[i];
  return out;
}
function attend(query, keys, values, heads) {
  const size = query.length / heads, out = new Float64Array(query.length), weights = new Float64Array(keys.length);
  for (let from = 0, to = size; from < query.length; from = to, to += size) {
    let largest = -Infinity, total = 0;
    for (let t = 0; t < keys.length; t++) {
      const key = keys[t];
      let sum2 = 0;
      for (let j = from; j < to; j++) sum2 += query[j] * key[j];
      weights[t] = sum2 / Math.sqrt(size);
      largest = Math.max(largest, weights[t]);
    }
    for (let t = 0; t < keys.length; t++) total += weights[t] = Math.exp(weights[t] - largest);
    for (let t = 0; t < keys.length; t++) {
      const weight = weights[t] / total, value = values[t];
      for (let j = from; j < to; j++) out[j] += weight * value[j];
    }
  }
  return out;
}
function plus(a, b) {
  for (let i = 0; i < a.length; i++) a[i] += b[i];
  return a;
}
function network(weights, config) {
  const part = (name) => [weights[`${name}.weight`], weights[`${name}.bias`]];
  const layer = (_, l) => {
    const names = ["ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"];
    return { parts: names.map((name) => part(`h.${l}.${name}`)), keys: [], values: [] };
  };
  const [readIn, last, readOut] = ["read_in", "ln_f", "read_out"].map(part);
  return { ...config, readIn, last, readOut, positions: weights["wpe.weight"], layers: Array.from({ length: config.layers }, layer) };
}
function readToken({ readIn, positions, layers, last, readOut, heads, epsilon }, token) {
  const x = plus(affine(token, readIn), positions[layers[0].keys.length]), d = x.length;
  for (const { parts: [norm, project, merge, innerNorm, widen, narrow], keys, values } of layers) {
    const projected = affine(layerNorm(x, norm, epsilon), project);
    keys.push(projected.subarray(d, 2 * d));
    values.push(projected.subarray(2 * d));
    plus(x, affine(attend(projected.subarray(0, d), keys, values, heads), merge));
    plus(x, affine(affine(layerNorm(x, innerNorm, epsilon), widen).map(gelu), narrow));
  }
  return affine(layerNorm(x, last, epsilon), readOut)[0];
}
function gptPredictions(weights, config, examples, queries) {
  const gpt = network(weights, config);
  for (const [x, y] of examples) {
    readToken(gpt, x);
    readToken(gpt, x.map((_, i) => i ? 0 : y));
  }
  return queries.map((x) => {
    const prediction = readToken(gpt, x);
    for (const { keys, values } of gpt.layers) {
      keys.pop();
      values.pop();
    }
    return prediction;
  });
}

// playground.js
var PENALTY = 0.09;
var RATE = 0.1;
var GRID = Array.from({ length: 61 }, (_, i) => (i - 30) / 7.5);
function moments(points) {
  const of = (f) => mean(points.map((point) => f(...point)));
  return [of((z) => z * z), of((z) => z), of((z, y) => z * y), of((_, y) => y)];
}
function ridge(points, penalty = PENALTY) {
  const [s, z, zy, y] = moments(points), p = penalty / points.length, determinant = (s + p) * (1 + p) - z * z;
  if (determinant < 1e-12) return [zy / (s + 1), y / (s + 1)];
  return [((1 + p) * zy - z * y) / determinant, ((s + p) * y - z * zy) / determinant];
}
function descent(points, steps) {
  const [s, z, zy, y] = moments(points);
  let [a, b] = [0, 0];
  for (let k = 0; k < steps; k++) [a, b] = [a - RATE * (s * a + z * b - zy), b - RATE * (z * a + b - y)];
  return [a, b];
}
function linearTransformer(points, N) {
  const [, , zy, y] = moments(points);
  return [zy / (1 + (3 + PENALTY) / N), y / (1 + (1 + PENALTY) / N)];
}
var parsed = /* @__PURE__ */ new WeakMap();
function predictions({ points, query, steps, gpt }) {
  if (!parsed.has(gpt)) parsed.set(gpt, parseWeights(gpt.data, gpt.index));
  const zs = [...GRID, query], over = ([a, b]) => zs.map((z) => a * z + b);
  return {
    ridge: over(ridge(points)),
    gpt: gptPredictions(parsed.get(gpt), gpt.config, points.map(([z, y]) => [[z, 1], y]), zs.map((z) => [z, 1])),
    linear: over(linearTransformer(points, gpt.config.examples)),
    ols: over(ridge(points, 0)),
    descent: over(descent(points, steps))
  };
}
var slope = (values) => (values[45] - values[15]) / 4;
var distance = (values, best) => Math.sqrt(mean(values.slice(15, 46).map((v, i) => (v - best[15 + i]) ** 2)));
var learner = (name, role, dashes, width = 2) => [name, { ...colour(role), "stroke-dasharray": dashes, "stroke-width": width, "stroke-opacity": width > 2 ? 0.3 : 1 }];
var LEARNERS = {
  ridge: learner("ridge", "ink", "", 8),
  gpt: learner("small GPT", "query", "8 4"),
  linear: learner("linear transformer", "value", "2 3"),
  ols: learner("least squares", "key", "12 3 2 3"),
  descent: learner("gradient steps", "sum", "5 3")
};
function describe(state) {
  const { points, learners, query } = state, found = predictions(state), [a, b] = ridge(points);
  const off = (name) => distance(found[name], found.ridge);
  const shown = learners.filter((name) => name !== "ridge").sort((p, q) => off(p) - off(q)).map((name) => {
    const own = slope(found[name]), gap = Math.abs(own) - Math.abs(a), lean = gap < -0.1 ? "too flat, " : gap > 0.1 ? "too steep, " : "";
    return `${LEARNERS[name][0]} ${fixed(off(name))} (${lean}slope ${fixed(own)}, predicts ${fixed(found[name][61])})`;
  });
  const outside = points.filter(([z, y]) => z * z > 4 || y * y > 16).length;
  const scatter = Math.sqrt(mean(points.map(([z, y]) => (y - a * z - b) ** 2)));
  return `Ridge, the Bayes optimum: slope ${fixed(a)}, predicts ${fixed(found.ridge[61])} at z = ${fixed(query)}.` + (shown[0] ? ` Distance from it, nearest first: ${shown.join("; ")}.` : "") + (points.every(([z]) => Math.abs(z * query + 1) < 1e-9) ? " The inputs (z, 1) of all points are orthogonal to that of the query: they say nothing about it." : "") + (outside ? ` ${outside} of ${points.length} points ${outside === 1 ? "lies" : "lie"} beyond z = ±2 or y = ±4, as 5 % and 1 % did in training: the GPT may fail.` : "") + (scatter > 0.6 ? ` The points scatter by ${fixed(scatter)}, in training by 0.3.` : "");
}
function planeOf({ points, reach }) {
  const high = Math.max(reach, ...points.map(([, y]) => Math.abs(y)));
  return plane({ left: 26, top: 40, width: 284, height: 268, x: [-4, 4], y: [-high, high] });
}
function linesPanel(state, found) {
  const p = planeOf(state), { X, Y, top } = p, at = X(state.query);
  return panel(
    "Points and predicted lines",
    340,
    axes(p, [-4, -2, 0, 2, 4], ["input z", "target y"]),
    p.y[1] < 9 ? "" : [-8, 8].map((t) => words(9, Y(t) + 4, fixed(t, 0), SMALL)),
    p.inside(
      rect(X(-2), Y(4), 142, Y(-4) - Y(4), { "fill-opacity": 0.06 }),
      words(100, Y(-4) - 5, "usual in training", SMALL),
      line(at, top, at, top + p.height, { "stroke-dasharray": "1 4" }),
      Object.keys(LEARNERS).filter((name) => state.learners.includes(name)).map((name) => group(LEARNERS[name][1], path(through(GRID.map((z, i) => [X(z), Y(found[name][i])])))))
    ),
    state.points.map(([z, y], i) => badge(X(z), Y(y), i + 1, 8))
  );
}
function tablePanel(state, found) {
  const right = (x, y, text) => words(x, y, text, { "text-anchor": "end" });
  return panel(
    `Predictions at z = ${fixed(state.query)}`,
    340,
    right(248, 54, "predicts"),
    right(WIDTH, 54, "distance*"),
    Object.entries(LEARNERS).map(([name, [text, ink]], i) => {
      const y = 86 + 36 * i;
      return [
        state.learners.includes(name) ? group(ink, line(0, y - 4, 34, y - 4)) : "",
        words(42, y, text),
        right(248, y, fixed(found[name][61])),
        right(WIDTH, y, fixed(distance(found[name], found.ridge)))
      ];
    }),
    words(0, 284, `* root mean square from ridge, z = ${MINUS}2 to 2`, SMALL)
  );
}
function panels(state) {
  const found = predictions(state);
  return [linesPanel(state, found), tablePanel(state, found)];
}
function choices(root, { shifts }, read, change) {
  const style = "flex:none;min-width:0";
  const boxes = Object.keys(LEARNERS).map((value) => element("input", {
    type: "checkbox",
    value,
    style,
    onchange: ({ target }) => change({ learners: read().learners.filter((name) => name !== value).concat(target.checked ? value : []) })
  }));
  const button = (textContent, patch) => element("button", { type: "button", textContent, style: "margin:0", onclick: () => change(patch(read())) });
  const row = (...nodes) => element("div", { className: "explorable-controls" }, ...nodes);
  root.querySelector(".explorable-controls").after(
    row("Lines, at most four:", ...boxes.map((box) => element("label", { style }, box, LEARNERS[box.value][0]))),
    row(
      "Points, 2 to 12:",
      button("add at query", ({ points, query }) => ({ points: [...points, [query, 0]].slice(0, 12) })),
      button("remove last", ({ points }) => ({ points: points.slice(0, Math.max(2, points.length - 1)) })),
      ...Object.entries(shifts).map(([name, patch]) => button(name, () => patch))
    )
  );
  return ({ learners }) => boxes.forEach((box) => {
    box.checked = learners.includes(box.value);
    box.disabled = !box.checked && learners.length > 3;
  });
}
var playground_default = explorable({
  question: "Which learner is a trained transformer like, and until when?",
  hint: "Drag a numbered point, or focus it and press arrow keys (Shift: bigger steps).",
  traits: ["points", "query", "steps", "reach", "learners", "gpt", "shifts"],
  sliders: [slider("query", "query z", [-4, 4, 0.1]), slider("steps", "gradient steps", [1, 100, 1], String), slider("reach", "plane to y = ±", [4, 12, 4], String)],
  panels,
  describe,
  handles: (state) => state.points.map((at, i) => ({ panel: 0, label: `Point ${i + 1}`, plane: planeOf(state), at, move: (point) => ({ points: state.points.with(i, point) }) })),
  extend: choices
});
export {
  playground_default as default
};
