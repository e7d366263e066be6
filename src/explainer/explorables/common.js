// Python puts this file in front of each explorable: a module that travels in a notebook cannot import another one.

// Mathematics: vectors are arrays, a matrix is an array of rows, rows are examples.

export function dot(a, b) {
  let sum = 0; // a plain loop: one curve of random features takes 200,000 of these
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
export const add = (a, b) => a.map((a_i, i) => a_i + b[i]);
export const scale = (factor, a) => a.map((a_i) => factor * a_i);

export function weightedSum(weights, rows) {
  const sum = rows[0].map(() => 0);
  for (let i = 0; i < rows.length; i++) for (let j = 0; j < sum.length; j++) sum[j] += weights[i] * rows[i][j];
  return sum;
}

// sum_i v_i (k_i . q), no softmax: the same numbers as explainer.duality.linear_attention
export const linearAttention = (values, keys, query) => weightedSum(keys.map((key) => dot(key, query)), values);

// Words

export const MINUS = "\u2212";

export function fixed(number, digits = 2, plus = "") {
  const size = Math.abs(number).toFixed(digits);
  return (Number(size) === 0 ? "" : number < 0 ? MINUS : plus) + size;
}

export const vector = (a, digits = 2) => `(${a.map((a_i) => fixed(a_i, digits)).join(", ")})`;

export function agreement(a, b) {
  const gap = Math.max(...a.map((a_i, i) => Math.abs(a_i - b[i])));
  const size = Math.max(1, ...a.map(Math.abs));
  if (gap === 0) return "They are equal to the last bit.";
  if (gap < 1e-13 * size) return `They are equal: the ${gap.toExponential(0).replace("-", MINUS)} between them is floating-point rounding.`;
  return `They differ by ${gap.toExponential(1).replace("-", MINUS)}.`;
}

// Drawing: every function returns SVG text. Ink is currentColor, so a still follows the page it is put in; a colour is
// an attribute that explorables.css overrides. Colours name roles: key, value, query, their sum.

export const WIDTH = 320;
const COLOURS = { key: "#0072b2", value: "#c65300", query: "#00815e", sum: "#a8568a" };
export const colour = (role) => ({ class: `explorable-${role}`, color: COLOURS[role] ?? "inherit" });

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

export function tag(name, attributes, ...children) {
  const written = Object.entries(attributes)
    .map(([key, value]) => ` ${key}="${escape(typeof value === "number" ? +value.toFixed(2) : value)}"`)
    .join("");
  return `<${name}${written}>${children.flat(Infinity).join("")}</${name}>`;
}

export const group = (attributes, ...children) => tag("g", attributes, ...children);
export const words = (x, y, text, more) => tag("text", { x, y, fill: "currentColor", ...more }, escape(text));
export const line = (x1, y1, x2, y2, more) => tag("line", { x1, y1, x2, y2, stroke: "currentColor", ...more });
export const path = (d, more) => tag("path", { d, fill: "none", stroke: "currentColor", ...more });
export const rect = (x, y, width, height, more) => tag("rect", { x, y, width, height, fill: "currentColor", ...more });
const PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };

export const badge = (x, y, text, r = 9) =>
  tag("circle", { cx: x, cy: y, r, ...PAPER }) +
  group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", "font-size": 11 }));

export const diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);

export function arrow(x1, y1, x2, y2, more) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return "";
  const head = Math.min(8, length), [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
  const [bx, by] = [x2 - head * u, y2 - head * v], w = head * 0.45;
  const tip = `M${x2} ${y2}L${bx - w * v} ${by + w * u}L${bx + w * v} ${by - w * u}Z`;
  return group({ ...more }, line(x1, y1, bx, by, { "stroke-width": 2 }), path(tip, { fill: "currentColor", stroke: "none" }));
}

// A bar that grows from `start` to `end`: full when positive, hollow when negative, so that no sign needs a colour.
export function bar(start, end, y, height) {
  const [x, width] = [Math.min(start, end), Math.max(1, Math.abs(end - start))];
  return rect(x, y, width, height, { stroke: "currentColor", "stroke-width": 1.5, "fill-opacity": end < start ? 0.08 : 0.75 });
}

export function plane({ left, top, width, height, x: [x0, x1], y: [y0, y1] }) {
  const X = (x) => left + ((x - x0) / (x1 - x0)) * width, Y = (y) => top + ((y1 - y) / (y1 - y0)) * height;
  const invert = (px, py) => [x0 + ((px - left) / width) * (x1 - x0), y1 - ((py - top) / height) * (y1 - y0)];
  // A nested svg clips what leaves the plane without an id that two instances would share.
  const inside = (...children) =>
    tag("svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" }, ...children);
  return { X, Y, invert, inside, left, top, width, height, x: [x0, x1], y: [y0, y1] };
}

export function axes({ X, Y, left, top, width, height }, ticks, [xName, yName]) {
  const grid = (at) => ({ "stroke-opacity": at === 0 ? 0.6 : 0.15 });
  const small = { "font-size": 11 };
  return [
    ticks.map((t) => line(X(t), top, X(t), top + height, grid(t)) + line(left, Y(t), left + width, Y(t), grid(t))),
    ticks.map((t) => words(X(t), top + height + 14, fixed(t, 0), { "text-anchor": "middle", ...small })),
    ticks.map((t) => words(left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...small })),
    words(left + width, top + height + 28, xName, { "text-anchor": "end", ...small }),
    words(left - 18, top - 8, yName, small),
  ].join("");
}

// Where a line must end to stay outside the mark at its tip
export function shortOf(from, to, gap = 10) {
  const away = add(from, scale(-1, to)), length = Math.hypot(...away);
  return length > gap ? add(to, scale(gap / length, away)) : from;
}

export const panel = (title, height, ...body) => ({ title, height, body: body.flat(Infinity).join("") });

const heading = ({ title }) => words(0, 14, title, { "font-weight": 600 });
const FONT = { "font-family": "inherit", "font-size": 13 };

function panelSvg(p) {
  return tag("svg", { viewBox: `0 0 ${WIDTH} ${p.height}`, role: "img", "aria-label": p.title, ...FONT }, heading(p), p.body);
}

// The whole picture as one SVG, two panels abreast.
export function compose(panels, alt) {
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

// Mounting: `view` says what to draw for a state; this says how it lives in a page. All state is the model's.

function element(name, properties, ...children) {
  const { attributes = {}, ...rest } = properties;
  const node = Object.assign(document.createElement(name), rest);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  node.append(...children);
  return node;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const STEP = 0.05, BIG_STEP = 0.25;
const QUIET = 300; // ms without a change before the result is written for a screen reader to speak

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
  node.style.left = `${(100 * p.X(x)) / WIDTH}%`;
  node.style.top = `${(100 * p.Y(y)) / panelHeight}%`;
  const value = horizontal ? fixed(at[0]) : vector(at);
  const spoken = { "aria-label": `${label}, ${value}`, "aria-valuetext": value };
  const range = { "aria-valuemin": p.x[0], "aria-valuemax": p.x[1], "aria-valuenow": at[0] };
  for (const [key, text] of Object.entries({ ...spoken, ...range })) node.setAttribute(key, text);
}

export function mount(view, { model, el }) {
  const stop = new AbortController(), { signal } = stop;
  const read = () => Object.fromEntries(view.traits.map((name) => [name, model.get(name)]));
  const change = (patch) => {
    for (const name in patch) model.set(name, patch[name]);
    model.save_changes();
  };
  const start = read();
  const put = ({ plane: p, move }, point) => {
    const clamped = [p.x, p.y].map(([low, high], k) => Math.min(high, Math.max(low, Math.round(point[k] * 100) / 100)));
    change(move(clamped));
  };

  const sliders = view.sliders.map((slider) => {
    const [min, max, step] = slider.range;
    const input = element("input", { type: "range", min, max, step });
    const value = element("span", { className: "explorable-number", attributes: { "aria-hidden": "true" } });
    input.addEventListener("input", () => change({ [slider.trait]: slider.fromInput(+input.value) }), { signal });
    return { slider, input, value, label: element("label", {}, element("span", { textContent: slider.label }), input, value) };
  });
  const reset = element("button", { type: "button", textContent: "Reset" });
  reset.addEventListener("click", () => change(start), { signal });

  const frames = view.panels(start).map(() => {
    const drawing = element("div", {});
    return { drawing, holder: element("div", { className: "explorable-panel" }, drawing), handles: [] };
  });
  const answers = view.answers(start).map(([name]) => {
    const number = element("span", { className: "explorable-number" });
    return { number, row: element("div", {}, element("span", { textContent: name }), number) };
  });
  const status = element("p", { className: "explorable-status", attributes: { role: "status", "aria-live": "polite" } });
  const root = element("div", { className: "explorable", attributes: { role: "group", "aria-label": view.question } },
    element("div", { className: "explorable-controls" }, ...sliders.map((s) => s.label), reset),
    element("div", { className: "explorable-panels" }, ...frames.map((f) => f.holder)),
    element("p", { className: "explorable-hint", textContent: view.hint }),
    element("div", { className: "explorable-answers" }, ...answers.map((a) => a.row)), status);
  root.addEventListener("keydown", (event) => event.stopPropagation(), { signal }); // JupyterLab takes the arrow keys otherwise

  let items = [], timer;
  function place(state, panels) {
    items = view.handles(state);
    const count = frames.map(() => 0);
    items.forEach((item, i) => {
      const { holder, handles } = frames[item.panel], k = count[item.panel]++;
      if (!handles[k]) {
        handles[k] = handleElement(() => items[handles[k].item], put, signal);
        holder.append(handles[k]);
      }
      handles[k].item = i;
      placeHandle(handles[k], item, panels[item.panel].height);
    });
    frames.forEach(({ handles }, f) => handles.splice(count[f]).forEach((node) => node.remove()));
  }
  function update() {
    const state = read(), panels = view.panels(state);
    panels.forEach((p, i) => { frames[i].drawing.innerHTML = panelSvg(p); });
    place(state, panels);
    sliders.forEach(({ slider, input, value }) => {
      input.value = slider.toInput(state[slider.trait]);
      value.textContent = slider.format(state[slider.trait]);
      input.setAttribute("aria-valuetext", value.textContent);
    });
    view.answers(state).forEach(([, number], i) => { answers[i].number.textContent = number; });
    clearTimeout(timer);
    timer = setTimeout(() => { status.textContent = view.describe(state); }, QUIET);
  }
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

const same = (value) => value;
export const slider = (trait, label, range, format = fixed, fromInput = same, toInput = same) =>
  ({ trait, label, range, format, fromInput, toInput });
