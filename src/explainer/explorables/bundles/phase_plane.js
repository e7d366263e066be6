// Made of js/phase_plane.js by "make explorables": change that file, not this one.

// algebra.js
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);

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
  const range2 = { "aria-valuemin": p.x[0], "aria-valuemax": p.x[1], "aria-valuenow": at[0] };
  for (const [key, text] of Object.entries({ ...spoken, ...range2 })) node.setAttribute(key, text);
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
var slider = (trait, label, range2, format = fixed, fromInput = same, toInput = same) => ({ trait, label, range: range2, format, fromInput, toInput });

// phase_plane.js
var GAMMA = 1.5;
var DURATION = 40;
var DT = 0.02;
var force = ([u, U]) => 1 - GAMMA * u * U;
var slope = (at) => [at[1] * force(at), at[0] * force(at)];
var imbalance = ([u, U]) => u * u - U * U;
var moved = ([u, U], [a, b], t) => [u + t * a, U + t * b];
function rungeKutta(at) {
  const a = slope(at), b = slope(moved(at, a, DT / 2)), c = slope(moved(at, b, DT / 2)), d = slope(moved(at, c, DT));
  return moved(at, [0, 1].map((i) => a[i] + 2 * b[i] + 2 * c[i] + d[i]), DT / 6);
}
function flow({ start }) {
  const points = [start];
  for (let t = 0; t < DURATION / DT; t++) points.push(rungeKutta(points[t]));
  return points;
}
var FAR = 1e3;
function steps({ start, step }) {
  const points = [start];
  for (let k = 0; k < Math.floor(DURATION / step + 1e-9) && Math.hypot(...points[k]) < FAR; k++)
    points.push(moved(points[k], slope(points[k]), step));
  return points;
}
var stable = ([u, U]) => 2 / (GAMMA * (u * u + U * U));
var stuck = (at) => Math.hypot(...at) < 1e-3;
var arrived = (at) => Math.abs(force(at)) < 1e-3;
var place = ([u, U]) => `u = ${fixed(u)}, U = ${fixed(U)}`;
function ending(points) {
  const last = points.at(-1);
  if (Math.hypot(...last) >= FAR) return "diverge";
  if (stuck(last)) return "stop at the saddle, u = U = 0";
  return arrived(last) ? `reach the optimum ${place(last)}` : `still swing, last at ${place(last)}`;
}
function describe(state) {
  const smooth = flow(state), finite = steps(state), k = imbalance(state.start), last = finite.at(-1);
  const end = smooth.at(-1), where = stuck(end) ? "runs into the saddle, u = U = 0" : `ends at ${place(end)}`;
  const after = Math.hypot(...last) < FAR ? ` Their imbalance is then ${fixed(imbalance(last))}.` : "";
  return `Start ${place(state.start)}, imbalance ${fixed(k)}. The flow keeps the imbalance and ${where}. Steps of length ${fixed(state.step)} ${ending(finite)}.${after}`;
}
var HEIGHT = 410;
var FIELD = plane({ left: 26, top: 44, width: 284, height: 250, x: [-LIMIT, LIMIT], y: [-LIMIT, LIMIT] });
var range = (low, high, n) => Array.from({ length: n + 1 }, (_, i) => low + (high - low) * i / n);
var curve = (points, more) => path(through(points.map(([u, U]) => [FIELD.X(u), FIELD.Y(U)])), more);
var optima = [1, -1].map((sign) => range(Math.log(1 / (GAMMA * 2.2)), Math.log(2.2), 40).map((s) => [sign * Math.exp(s), sign / (GAMMA * Math.exp(s))]));
function conserved(k) {
  const root = Math.sqrt(Math.abs(k)), t = range(-2.2, 2.2, 40);
  return [1, -1].map((sign) => t.map((s) => k > 0 ? [sign * Math.hypot(root, s), s] : k < 0 ? [s, sign * Math.hypot(root, s)] : [s, sign * s]));
}
var drawn = (points) => {
  const out = points.findIndex(([u, U]) => Math.hypot(u, U) > 6);
  return out < 0 ? points : points.slice(0, out + 1);
};
var FAINT = { "stroke-width": 1, "stroke-opacity": 0.3 };
var DASHED = { "stroke-dasharray": "6 4" };
function legend(y, role, text, more) {
  return group(colour(role), line(0, y - 4, 30, y - 4, { "stroke-width": 2, ...more })) + words(38, y, text, SMALL);
}
function planePanel(state) {
  const smooth = flow(state).filter((_, i) => i % 10 === 0), finite = drawn(steps(state)), low = FIELD.top + FIELD.height;
  const { X, Y } = FIELD, end = smooth.at(-1), inner = ([u, U]) => Math.abs(u) <= LIMIT && Math.abs(U) <= LIMIT;
  return panel(
    "The plane (u, U): drag the start",
    HEIGHT,
    axes(FIELD, TICKS, ["u", "U"]),
    FIELD.inside(
      [-3, -1.5, 0, 1.5, 3].flatMap(conserved).map((points) => curve(points, FAINT)),
      group(colour("query"), optima.map((points) => curve(points, { "stroke-width": 3 }))),
      group(colour("value"), curve(finite, { "stroke-width": 1.5, ...DASHED }), finite.map(([u, U]) => rect(X(u) - 2, Y(U) - 2, 4, 4))),
      group(colour("key"), curve(smooth, { "stroke-width": 2.5 })),
      inner(end) ? group(colour("key"), marker(SQUARE, X(end[0]), Y(end[1]), true)) : "",
      inner(finite.at(-1)) ? group(colour("value"), marker(SQUARE, X(finite.at(-1)[0]), Y(finite.at(-1)[1]), false)) : ""
    ),
    words(X(0), Y(0) + 4, "×", { "text-anchor": "middle", "font-size": 16, "font-weight": 600 }),
    words(X(0) + 8, Y(0) - 6, "saddle", { ...SMALL, class: "explorable-halo" }),
    diamond(X(state.start[0]), Y(state.start[1])),
    legend(low + 44, "query", "optima: u U = 1/γ"),
    legend(low + 61, "key", "gradient flow, to the filled square"),
    legend(low + 78, "value", "steps of finite length, to the hollow square", DASHED),
    legend(low + 95, "", "curves of equal imbalance u² − U²", FAINT)
  );
}
function imbalancePanel(state) {
  const finite = steps(state), k = imbalance(state.start), values = finite.map(imbalance);
  const shown = values.filter((value) => Math.abs(value) < 20), reach = Math.max(1, ...shown.map(Math.abs)) * 1.15;
  const p = plane({ left: 36, top: 44, width: 274, height: 250, x: [0, DURATION], y: [-reach, reach] }), { X, Y, left, top, width, height } = p;
  const last = finite.at(-1), low = top + height, mark = Math.floor(reach);
  return panel(
    "The imbalance u² − U² along the way",
    HEIGHT,
    [-mark, 0, mark].map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t ? 0.15 : 0.6 }) + words(left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL })),
    [0, 10, 20, 30, 40].map((t) => words(X(t), low + 14, t, { "text-anchor": "middle", ...SMALL })),
    words(left + width, low + 28, "time: length of a step times steps", { "text-anchor": "end", ...SMALL }),
    p.inside(
      group(colour("key"), line(X(0), Y(k), X(DURATION), Y(k), { "stroke-width": 2.5 })),
      group(colour("value"), path(through(values.map((value, i) => [X(i * state.step), Y(Math.max(-99, Math.min(99, value)))])), { "stroke-width": 2, ...DASHED }))
    ),
    entry(0, low + 52, "imbalance, flow: start and end", fixed(k)),
    entry(0, low + 72, "imbalance after the steps", Math.hypot(...last) < FAR ? fixed(imbalance(last)) : "diverged"),
    entry(0, low + 92, "stable at the flow's optimum, up to", stuck(flow(state).at(-1)) ? "no optimum" : fixed(stable(flow(state).at(-1))))
  );
}
var phase_plane_default = explorable({
  question: "Which of the best parameters does training reach?",
  hint: "Drag the diamond (the start), or focus it and press the arrow keys; Shift makes bigger steps. Then change the length of a step: long steps leave the curve on which the flow stays.",
  traits: ["start", "step"],
  sliders: [slider("step", "length of a step", [0.05, 1, 0.05])],
  panels: (state) => [planePanel(state), imbalancePanel(state)],
  handles: ({ start }) => [{ panel: 0, label: "Start", plane: FIELD, at: start, move: (point) => ({ start: point }) }],
  describe
});
export {
  phase_plane_default as default
};
