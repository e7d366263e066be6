// Made of js/one_plane.js by "make explorables": change that file, not this one.

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
var matvec = (W, x) => W.map((row) => dot(row, x));
var outer = (a, b) => a.map((a_i) => scale(a_i, b));
var addMatrices = (A, B) => A.map((row, i) => add(row, B[i]));

// numbers.js
var MINUS = "−";
function fixed(number, digits = 2, plus = "") {
  const size2 = Math.abs(number).toFixed(digits);
  return (Number(size2) === 0 ? "" : number < 0 ? MINUS : plus) + size2;
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
var SQUARE = "M-4-4h8v8h-8Z";
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
var diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);
function arrow(x1, y1, x2, y2, more) {
  const length2 = Math.hypot(x2 - x1, y2 - y1);
  if (length2 < 1) return "";
  const head = Math.min(8, length2), [u, v] = [(x2 - x1) / length2, (y2 - y1) / length2];
  const [bx, by] = [x2 - head * u, y2 - head * v], w = head * 0.45;
  const tip2 = `M${x2} ${y2}L${bx - w * v} ${by + w * u}L${bx + w * v} ${by - w * u}Z`;
  return group({ ...more }, line(x1, y1, bx, by, { "stroke-width": 2 }), path(tip2, { fill: "currentColor", stroke: "none" }));
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

// one_plane.js
var SHORTEST = 0.5;
var LONGEST = 1.5;
var SECOND = 0.7;
var START = 0.1;
var EARLIEST = 0.1;
var DURATION = 100;
var PROMPTS = 4e3;
var DT = 0.02;
var DOTS = 250;
var SEED = 7;
var around = ([e, f], [a, b]) => addMatrices(scaled(a, outer(e, e)), scaled(b, outer(f, f)));
var scaled = (factor, A) => A.map((row) => scale(factor, row));
var multiply = (A, B) => A.map((row) => B[0].map((_, j) => dot(row, B.map((b) => b[j]))));
var quadratic = (A, a) => dot(a, matvec(A, a));
function axesAt([x, y]) {
  const length2 = Math.hypot(x, y), e = [x / length2, y / length2];
  return [e, [-e[1], e[0]]];
}
var turned = ([x, y], degrees) => {
  const [c, s] = [Math.cos(degrees * Math.PI / 180), Math.sin(degrees * Math.PI / 180)];
  return [c * x - s * y, s * x + c * y];
};
var eigenvalues = ({ train }) => [train[0] ** 2 + train[1] ** 2, SECOND ** 2];
var gammas = (state) => eigenvalues(state).map((l) => l + (l + sum(eigenvalues(state))) / state.training_length);
var flow = remember(["train", "training_length"], (state) => {
  const lambda = eigenvalues(state), gamma = gammas(state);
  const [a, b] = lambda.map((l) => l * l), [p, q] = lambda.map((l, k) => l * l * gamma[k]);
  let [u, U, V] = [START, START / Math.SQRT2, START / Math.SQRT2];
  const gains = [[u * U, u * V]], weights = [1, 2, 2, 1], ahead = [0, DT / 2, DT / 2, DT];
  for (let i = 0; i < DURATION / DT; i++) {
    let [du, dU, dV, x, y, z] = [0, 0, 0, 0, 0, 0];
    for (let k = 0; k < 4; k++) {
      const v = u + ahead[k] * x, Y = U + ahead[k] * y, Z = V + ahead[k] * z, f = a - p * v * Y, g = b - q * v * Z;
      [x, y, z] = [Y * f + Z * g, v * f, v * g];
      [du, dU, dV] = [du + weights[k] * x, dU + weights[k] * y, dV + weights[k] * z];
    }
    [u, U, V] = [u + DT / 6 * du, U + DT / 6 * dU, V + DT / 6 * dV];
    gains.push([u * U, u * V]);
  }
  return gains;
});
var gainsAt = (state, time) => flow(state)[Math.round(time / DT)];
function layer(state) {
  const basis = axesAt(state.train), lambda = eigenvalues(state), gains = gainsAt(state, state.time);
  const other = basis.map((e) => turned(e, state.turn));
  const root = other.map((e, k) => scale(Math.sqrt(lambda[k]), e));
  return { A: around(basis, gains), Lambda: around(other, lambda), root, shares: gains.map((a, k) => a * lambda[k]) };
}
function formula(state) {
  const { A, Lambda } = layer(state), { w, prompt_length: M } = state, moved = matvec(Lambda, w);
  const mean = matvec(A, moved), zero = quadratic(Lambda, w);
  const spread = scaled(1 / M, addMatrices(scaled(zero, Lambda), outer(moved, moved)));
  const covariance = multiply(multiply(A, spread), A);
  const product = multiply(Lambda, covariance);
  return { mean, covariance, bias: quadratic(Lambda, subtract(mean, w)), scatter: product[0][0] + product[1][1], zero: zero || 1 };
}
function gammaNumber(shape, uniform) {
  if (shape < 1) return gammaNumber(shape + 1, uniform) * (1 - uniform()) ** (1 / shape);
  const d = shape - 1 / 3;
  for (; ; ) {
    const x = normal(uniform), v = (1 + x / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(1 - uniform()) < x * x / 2 + d * (1 - v + Math.log(v))) return d * v;
  }
}
var whiteMoments = remember(["prompt_length"], ({ prompt_length: M }) => {
  const uniform = uniforms(SEED + M), root = (m) => m > 0 ? Math.sqrt(2 * gammaNumber(m / 2, uniform)) : 0;
  return Array.from({ length: PROMPTS }, () => {
    const a = root(M), b = normal(uniform), c = root(M - 1);
    return [a * a / M, a * b / M, (b * b + c * c) / M];
  });
});
function cloud(state) {
  const { A, Lambda, root } = layer(state), [p, q] = matvec(root, state.w);
  const [left, right] = root.map((row) => matvec(A, row));
  const points = whiteMoments(state).map(([a, b, c]) => {
    const [x, y] = [a * p + b * q, b * p + c * q];
    return [x * left[0] + y * right[0], x * left[1] + y * right[1]];
  });
  const mean = [0, 1].map((k2) => sum(points.map((point) => point[k2])) / PROMPTS);
  const [[k, l], [, m]] = Lambda, squared = ([x, y]) => k * x * x + 2 * l * x * y + m * y * y;
  const scatter = sum(points.map((point) => squared(subtract(point, mean)))) / (PROMPTS - 1);
  return { points, bias: squared(subtract(mean, state.w)) - scatter / PROMPTS, scatter };
}
var size = (x) => Math.abs(x) >= 10 ? fixed(x, 1) : fixed(x, 3);
function describe(state) {
  const { mean, bias, scatter, zero } = formula(state), found = cloud(state), { shares } = layer(state);
  const turn = state.turn ? `Test inputs are turned by ${fixed(state.turn, 0)} degrees. ` : "";
  const early = state.time < DURATION ? `Training has run for ${short(state.time)} of ${DURATION}. ` : "";
  return `${early}${turn}The true weights are ${vector(state.w)}; the layer's are ${vector(mean)} on average. Bias squared, trained at N = ${whole(state.training_length)}: ${size(bias)} by the formula, ${size(found.bias)} from the cloud. Scatter, at M = ${whole(state.prompt_length)}: ${size(scatter)} and ${size(found.scatter)}. Together they are ${size((bias + scatter) / zero)} of the error of predicting 0. Of its training inputs' two variances, ${eigenvalues(state).map((l) => fixed(l)).join(" and ")}, the layer undoes ${shares.map((s) => fixed(s)).join(" and ")}.`;
}
var HEIGHT = 476;
var INPUTS = plane({ left: 26, top: 40, width: 204, height: 204, x: [-2, 2], y: [-2, 2] });
var WEIGHTS = plane({ left: 26, top: 40, width: 284, height: 284, x: [-3, 3], y: [-3, 3] });
var CURVES = plane({ left: 34, top: 332, width: 216, height: 100, x: [Math.log(EARLIEST), Math.log(DURATION)], y: [0, 1.15] });
var DASHED = { "stroke-dasharray": "6 4" };
var short = (time) => fixed(time, time < 1 ? 2 : time < 10 ? 1 : 0);
var CIRCLE = Array.from({ length: 61 }, (_, i) => [Math.cos(i * Math.PI / 30), Math.sin(i * Math.PI / 30)]);
var ellipse = ({ X, Y }, [p, q], more, center = [0, 0]) => path(`${through(CIRCLE.map(([a, b]) => add(center, add(scale(a, p), scale(b, q)))).map(([x, y]) => [X(x), Y(y)]))}Z`, more);
var tip = ({ train, turn }) => turned(scale(-1, train), turn);
var halves = ({ train }) => [train, scale(SECOND, axesAt(train)[1])];
function inputsPanel(state) {
  const { A } = layer(state), { X, Y } = INPUTS, [x, y] = tip(state), own = halves(state);
  const lambda = eigenvalues(state), { X: T, Y: S, left, top, width, height } = CURVES, roles = ["key", "sum"];
  const at = (time) => gainsAt(state, time).map((a, k) => [T(Math.log(time)), S(a * lambda[k])]);
  const curves = Array.from({ length: 61 }, (_, i) => at(EARLIEST * (DURATION / EARLIEST) ** (i / 60)));
  const [one, other] = curves[60].map(([, height2]) => height2), close = Math.abs(one - other) < 13, lower = (first) => close ? first ? 10 : -3 : 4;
  const ends = [one + lower(one > other), other + lower(one <= other)];
  const strong = lambda[0] < lambda[1] ? ["weak", "strong"] : ["strong", "weak"];
  return panel(
    "Inputs, and the matrix that training makes",
    HEIGHT,
    axes(INPUTS, TICKS, ["", ""]),
    INPUTS.inside(
      group(colour("key"), ellipse(INPUTS, own, { "stroke-width": 2.5 })),
      group(colour("value"), ellipse(INPUTS, own.map((e) => turned(e, state.turn)), { "stroke-width": 2, ...DASHED }))
    ),
    group(colour("key"), marker(SQUARE, X(state.train[0]), Y(state.train[1]), true)),
    group(colour("value"), marker(SQUARE, X(x), Y(y), false)),
    words(240, 52, "A now", SMALL),
    heatMap(233, 82, A, 43),
    words(240, 132, "half-axes:", SMALL),
    words(240, 147, "one standard", SMALL),
    words(240, 162, "deviation", SMALL),
    group(colour("key"), line(240, 186, 262, 186, { "stroke-width": 2.5 }), words(267, 190, "training", SMALL)),
    group(colour("value"), line(240, 206, 262, 206, { "stroke-width": 2, ...DASHED }), words(267, 210, "test", SMALL)),
    words(0, 290, "s = (eigenvalue of A) × (training variance)", { "font-weight": 600 }),
    words(0, 307, "1: this direction is undone in full", SMALL),
    [0, 0.5, 1].map((s) => line(left, S(s), left + width, S(s), { "stroke-opacity": s === 1 ? 0.6 : 0.2 }) + words(left - 5, S(s) + 4, fixed(s, 1), { "text-anchor": "end", ...SMALL })),
    [0.1, 1, 10, 100].map((t) => words(T(Math.log(t)), top + height + 14, t, { "text-anchor": "middle", ...SMALL })),
    words(left + width, top + height + 29, "training time", { "text-anchor": "end", ...SMALL }),
    line(T(Math.log(state.time)), top, T(Math.log(state.time)), top + height, { "stroke-dasharray": "1 3" }),
    [0, 1].map((k) => group(
      colour(roles[k]),
      CURVES.inside(path(through(curves.map((row) => row[k])), { "stroke-width": 2.5, "stroke-dasharray": k ? "2 3" : "" })),
      words(left + width + 6, ends[k], strong[k], SMALL)
    ))
  );
}
function weightsPanel(state) {
  const { mean, covariance, bias, scatter } = formula(state), found = cloud(state), { X, Y } = WEIGHTS, w = state.w;
  const [[a, b], [, c]] = covariance, root = Math.sqrt(Math.max(a, 1e-12));
  const two = [[2 * root, 2 * b / root], [0, 2 * Math.sqrt(Math.max(0, c - b * b / (root * root)))]];
  const gap = Math.hypot(X(mean[0]) - X(w[0]), Y(mean[1]) - Y(w[1]));
  const row = (y, text, one, other) => entry(0, y, text, size(other)) + words(238, y, size(one), { "text-anchor": "end", "font-weight": 600 });
  return panel(
    "Weights: the true ones and the layer's",
    HEIGHT,
    axes(WEIGHTS, [-3, -2, -1, 0, 1, 2, 3], ["", ""]),
    WEIGHTS.inside(
      group(colour("value"), found.points.slice(0, DOTS).map(([x, y]) => rect(X(x) - 1.2, Y(y) - 1.2, 2.4, 2.4, { "fill-opacity": 0.55 }))),
      group(colour("value"), ellipse(WEIGHTS, two, { "stroke-width": 1.5 }, mean)),
      gap > 9 ? group(colour("query"), arrow(X(w[0]), Y(w[1]), X(mean[0]), Y(mean[1]))) : ""
    ),
    diamond(X(w[0]), Y(w[1]), 7),
    words(X(w[0]) + 11, Y(w[1]) - 7, "w", { "font-weight": 600, class: "explorable-halo" }),
    words(WIDTH, 366, "cloud", { "text-anchor": "end", ...SMALL }),
    words(238, 366, "formula", { "text-anchor": "end", ...SMALL }),
    group(colour("query"), row(386, `bias², the arrow${state.turn ? "" : ": N sets it"}`, bias, found.bias)),
    group(colour("value"), row(406, "scatter, the dots: M sets it", scatter, found.scatter)),
    row(426, "sum, the mean squared error", bias + scatter, found.bias + found.scatter),
    words(0, 452, `${DOTS} of ${whole(PROMPTS)} prompts; the curve: 2 standard deviations`, SMALL)
  );
}
var length = (trait, label) => slider(trait, label, [0, 12, 1], whole, (i) => Math.round(10 ** (i / 4)), (n) => Math.round(4 * Math.log10(n)));
var timeAt = (i) => Math.round(100 * EARLIEST * 10 ** (i / 10)) / 100;
var asTurn = (degrees) => Math.round(degrees - 180 * Math.round(degrees / 180));
var angle = ([x, y]) => Math.atan2(y, x) * 180 / Math.PI;
function within(point) {
  const long = Math.hypot(...point);
  return long ? scale(Math.min(LONGEST, Math.max(SHORTEST, long)) / long, point) : [SHORTEST, 0];
}
var one_plane_default = explorable({
  question: "Which weights does the layer act on, and what moves them away from the true ones?",
  hint: "Drag the solid square (training inputs), the hollow square (it turns the test inputs) or w, or focus one and press the arrow keys; Shift makes bigger steps.",
  traits: ["w", "train", "turn", "training_length", "prompt_length", "time"],
  sliders: [
    length("training_length", "N in training"),
    length("prompt_length", "M at the test"),
    slider("turn", "turn test inputs", [-90, 90, 5], (x) => `${fixed(x, 0)}°`),
    slider("time", "training time", [0, 30, 1], short, timeAt, (t) => Math.round(10 * Math.log10(t / EARLIEST)))
  ],
  panels: (state) => [inputsPanel(state), weightsPanel(state)],
  handles: (state) => [
    { panel: 0, label: "Training inputs", plane: INPUTS, at: state.train, move: (point) => ({ train: within(point) }) },
    { panel: 0, label: "Test inputs", plane: INPUTS, at: tip(state), move: (point) => ({ turn: asTurn(angle(scale(-1, point)) - angle(state.train)) }) },
    { panel: 1, label: "True weights w", plane: WEIGHTS, at: state.w, move: (point) => ({ w: point.map((x) => Math.max(-2, Math.min(2, x))) }) }
  ],
  describe
});
export {
  one_plane_default as default
};
