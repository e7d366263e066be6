// Made of js/similarity_explorer.js by "make explorables": change that file, not this one.

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
function fixed(number2, digits = 2, plus = "") {
  const size = Math.abs(number2).toFixed(digits);
  return (Number(size) === 0 ? "" : number2 < 0 ? MINUS : plus) + size;
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
  const number2 = element("span", { className: "explorable-number" });
  return { node: element("div", {}, element("span", { textContent: name }), number2), update: ([, text]) => {
    number2.textContent = text;
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

// similarity_explorer.js
var ALPHABET = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).filter((c) => !'"\\<'.includes(c));
var DIGIT = new Map(ALPHABET.map((c, i) => [c, i]));
var BASE = ALPHABET.length;
var LEVELS = 2001;
function codes(text, width) {
  const found = [];
  for (let i = 0; i < text.length; i += width) {
    let code = 0;
    for (let j = i; j < i + width; j++) code = code * BASE + DIGIT.get(text[j]);
    found.push(code === BASE ** width - 1 ? NaN : code);
  }
  return found;
}
var number = (code) => Math.round(code - 1e3) / 1e3;
var halfWidth = (code) => code > 300 ? 0.3 + (code - 300) / 40 : code / 1e3;
var unpack = (text) => codes(text, 2).map(number);
var unpackWithWidth = (text) => codes(text, 3).map((code) => [number(code % LEVELS), halfWidth(Math.floor(code / LEVELS))]);
var KEYS = ["sim_aou", "sim_aou_raw", "sim_aou_tangent", "sim_aou_residual", "sim_am", "update_cosine", "sim_am_delta", "kendall_tau_b"];
var MEASURES = {
  sim_aou: "SimAOU",
  sim_aou_tangent: "SimAOU, tangent part",
  sim_aou_residual: "SimAOU, residual",
  sim_am: "SimAM",
  sim_am_delta: "SimAM of updates",
  update_cosine: "ΔW cosine per head",
  kendall_tau_b: "Kendall τ to the examples"
};
var CONDITIONS = {
  none: "the comparison itself",
  untrained: "untrained model",
  "shuffled-context": "ICL: shuffled answers",
  "flipped-context": "ICL: wrong labels",
  "foreign-context": "ICL: another task",
  "reordered-context": "ICL: another order",
  "shuffled-training": "FT: shuffled answers",
  "flipped-training": "FT: wrong labels",
  "foreign-training": "FT: another task",
  "other-training": "FT: other examples",
  "reordered-training": "FT: another order",
  ascent: "FT: gradient ascent",
  "layer-causal": "FT: layer by layer",
  "layer-causal-as-long": "FT: layer by layer, as long",
  "random-direction": "FT: random direction",
  "untrained-layers": "random layers"
};
var conditionName = (control) => CONDITIONS[control] ?? control.replace("-", " ");
var keyOf = ({ measure, normalised }) => measure === "sim_aou" && !normalised ? "sim_aou_raw" : measure;
var nameOf = ({ measure, normalised }) => measure === "sim_aou" ? `SimAOU, ${normalised ? "normalised" : "not normalised"}` : MEASURES[measure];
function reasonAgainst({ data, task }, control) {
  const found = data.tasks[task]?.[control];
  return typeof found === "object" ? "" : found ?? "not part of the study";
}
function curve(state, control, seed = -1) {
  if (!control || reasonAgainst(state, control)) return null;
  const { of: [n, , , seeds], curves: curves2, singles = [] } = state.data.tasks[state.task][control], L = state.data.layers;
  const m = KEYS.indexOf(keyOf(state)), part = (text, size) => text.slice(size * m, size * (m + 1)), single = singles[seeds.indexOf(seed)];
  if (!single) {
    const all = unpackWithWidth(part(curves2, 3 * (L + 1)));
    return { n, seeds, layers: all.slice(0, L), mean: all[L] };
  }
  const values = unpack(part(single, 2 * L));
  return { n, seeds: [seed], layers: values.map((v) => [v, 0]), mean: [mean(values.filter((v) => !isNaN(v))), NaN] };
}
function floors(state, control) {
  const found = state.data.tasks[state.task]?.[control], L = state.data.layers, key = keyOf(state), m = KEYS.indexOf(key), lines = [];
  if (key === "sim_aou" && found?.noise) lines.push(["noise value", "2 3", unpack(found.noise)]);
  if (m < 6 && found?.floors) lines.push([key === "sim_am" ? "before fine-tuning" : "another query's change", "7 2 2 2", unpack(found.floors.slice(2 * L * m, 2 * L * (m + 1)))]);
  const zero = !["sim_aou", "sim_am"].includes(key) && found?.isotropic;
  return { lines: lines.filter(([, , values]) => !isNaN(mean(values))), isotropic: zero ? unpack(found.isotropic)[m] : NaN };
}
var ranks = (a) => a.map((v) => sum(a.map((w) => Math.sign(v - w))) / 2);
function spearman(values) {
  const there = values.filter((v) => !isNaN(v)), x = ranks(there.map((_, i) => i)), y = ranks(there);
  return dot(x, y) / Math.sqrt(dot(x, x) * dot(y, y));
}
var withInterval = ([v, h]) => isNaN(v) ? "not measured" : fixed(v, 3) + (isNaN(h) ? "" : ` (${fixed(v - h, 3)} to ${fixed(v + h, 3)})`);
var sample = ({ n, seeds }) => `n = ${n}, ${seeds.length > 5 ? `${seeds.length} seeds` : `seed${seeds[1] === void 0 ? "" : "s"} ${seeds.join(" ")}`}`;
var shown = (state) => [["control", state.seed], ["against", -1]].map(([trait, seed]) => ({ control: state[trait], found: curve(state, state[trait], seed) }));
function describe(state) {
  const { lines, isotropic } = floors(state, state.control);
  const parts = shown(state).filter(({ control }) => control).map(({ control, found }) => `${conditionName(control)}: ${found ? `${withInterval(found.mean)}, ${sample(found)}` : reasonAgainst(state, control)}`);
  const floor = lines.map(([label, , values]) => `${label} ${fixed(mean(values), 3)}`);
  if (!isNaN(isotropic)) floor.push(`random directions at most ${fixed(isotropic, 3)}`);
  return `${nameOf(state)} on ${state.task}, mean over ${state.data.layers} layers: ${parts.join("; ")}.` + (floor.length ? ` Floors of the first: ${floor.join("; ")}.` : "");
}
var ROLES = ["key", "value", "ink"];
var DASH = ["none", "6 4"];
var end = { ...SMALL, "text-anchor": "end" };
var mark = (i, x, y) => i ? rect(x - 3.5, y - 3.5, 7, 7, { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 1.5 }) : tag("circle", { cx: x, cy: y, r: 3.5, fill: "currentColor" });
function curves(state) {
  const L = state.data.layers, both = shown(state), { lines } = floors(state, state.control);
  const layers = both.map(({ found }) => (found?.layers ?? []).map(([v, h], l) => [l, v, h]).filter(([, v]) => !isNaN(v)));
  const all = [0, ...layers.flat().flatMap(([, v, h]) => [v - Math.min(h, 0.2), v + Math.min(h, 0.2)]), ...lines.flatMap(([, , v]) => v)];
  const step = Math.max(...all) - Math.min(...all) > 0.9 ? 0.5 : 0.2, low = Math.floor(Math.min(...all) / step) * step;
  const n = Math.max(1, Math.ceil((Math.max(...all) - low) / step)), ticks = Array.from({ length: n + 1 }, (_, i) => low + i * step);
  const p = plane({ left: 34, top: 104, width: 278, height: 216, x: [-0.5, L - 0.5], y: [low, ticks[n]] }), at = ([l, v]) => [p.X(l), p.Y(v)];
  const legend = (i, dash, text) => [line(0, 28 + 17 * i, 30, 28 + 17 * i, { ...colour(ROLES[i] ?? "ink"), "stroke-width": 2, "stroke-dasharray": dash }), words(36, 32 + 17 * i, text, SMALL)];
  return panel(
    `${nameOf(state)}, ${state.task}`,
    356,
    both.map(({ control, found }, i) => [
      legend(i, DASH[i], !control ? "nothing" : `${conditionName(control)}; ${found ? sample(found) : reasonAgainst(state, control)}`),
      group(colour(ROLES[i]), mark(i, 15, 28 + 17 * i))
    ]),
    lines.map(([name, dash], i) => legend(2 + i, dash, `floor: ${name}`)),
    ticks.map((t) => line(34, p.Y(t), 312, p.Y(t), { "stroke-opacity": Math.abs(t) < 1e-9 ? 0.7 : 0.15 }) + words(29, p.Y(t) + 4, fixed(t, 1), end)),
    [0, 1, 2, 3].map((i) => Math.round(i * (L - 1) / 3)).map((l) => words(p.X(l), 334, l, { ...SMALL, "text-anchor": "middle" })),
    words(312, 350, "layer, 0 is next to the input", end),
    p.inside(
      layers.map((points, i) => !points.length ? "" : group(colour(ROLES[i]), path(
        through([...points.map(([l, v, h]) => [l, v + h]), ...points.map(([l, v, h]) => [l, v - h]).reverse()].map(at)),
        { fill: "currentColor", "fill-opacity": 0.14, "stroke-opacity": 0.45, "stroke-dasharray": DASH[i] }
      ))),
      lines.map(([, dash, values]) => path(through(values.map((v, l) => at([l, v]))), { "stroke-width": 1.8, "stroke-dasharray": dash })),
      layers.map((points, i) => !points.length ? "" : group(colour(ROLES[i]), path(through(points.map(at)), { "stroke-width": 2, "stroke-dasharray": DASH[i] }), points.map((q) => mark(i, ...at(q)))))
    )
  );
}
function means(state) {
  const { lines, isotropic } = floors(state, state.control);
  const rows = shown(state).flatMap(({ control, found }, i) => found && !isNaN(found.mean[0]) ? [[conditionName(control), found.mean, i]] : []);
  rows.push(...lines.map(([name, , values]) => [`floor: ${name}`, [mean(values), NaN], 2]), ...isNaN(isotropic) ? [] : [["floor: random directions, widest layer", [0, isotropic], 2]]);
  const ends = [0, 0.05, ...rows.flatMap(([, [v, h]]) => [Math.max(-1, v - (h || 0)), Math.min(1, v + (h || 0))])];
  const low = Math.min(...ends), X = (v) => 8 + (Math.min(1, Math.max(-1, v)) - low) / (Math.max(...ends) - low) * 168, foot = 40 + 52 * rows.length;
  return panel(
    "Mean over the layers",
    foot + 20,
    line(X(0), 26, X(0), foot, { "stroke-opacity": 0.5 }),
    words(X(0), foot + 14, "0", { ...SMALL, "text-anchor": "middle" }),
    rows.map(([name, [v, h], i], r) => {
      const y = 62 + 52 * r;
      return [words(12, y - 16, name), words(312, y + 4, withInterval([v, h]), end), group(
        colour(ROLES[i]),
        line(X(v - (h || 0)), y, X(v + (h || 0)), y, { "stroke-width": 2 }),
        i < 2 ? mark(i, X(v), y) : line(X(v), y - 8, X(v), y + 8, { "stroke-width": 3 })
      )];
    })
  );
}
function choices(state) {
  const { data, task, measure, control } = state, never = measure !== "sim_aou";
  const offered = [...new Set(Object.values(data.tasks).flatMap(Object.keys))].map((name) => [name, reasonAgainst(state, name)]).map(([name, why]) => [name, conditionName(name) + (why && ` (${why})`), !!why]);
  const { of, singles = [] } = data.tasks[task]?.[control] ?? {}, kept = singles.map((_, i) => of[3][i]);
  return [
    ["task", "task", Object.keys(data.tasks).map((name) => [name, name, false])],
    ["measure", "measure", Object.entries(MEASURES).map(([key, name]) => [key, name, false])],
    ["normalised", "outputs", [[true, "normalised first"], [false, "as they are"]].map(([on, text]) => [on, text + (never ? " (SimAOU only)" : ""), never])],
    ["control", "show", offered],
    ["against", "beside", [["", "nothing", false], ...offered]],
    ["seed", "seed", [[-1, "all, mean", false], ...kept.map((seed) => [seed, `${seed}`, false]), ...kept.length ? [] : [[-2, "one (kept for the comparison itself)", true]]]]
  ];
}
var similarity_explorer_default = explorable({
  question: "Where in the network are the two changes alike, and where is that more than a floor?",
  hint: "Bands: 95 % intervals over seeds (Student); n: queries. A floor is what the measure gives for changes without relation.",
  traits: ["data", "task", "measure", "normalised", "control", "against", "seed"],
  lists: choices,
  panels: (state) => [curves(state), means(state)],
  describe,
  answers: (state) => {
    const trends = shown(state).map(({ found }) => found ? spearman(found.layers.map(([v]) => v)) : NaN);
    return [["rank correlation of layer and drawn value: shown; beside it", trends.map((r) => isNaN(r) ? "none" : fixed(r)).join("; ")]];
  },
  extend: (root, { data }) => {
    root.querySelector(".explorable-hint").append(` ${data.made}`);
  }
});
export {
  similarity_explorer_default as default
};
