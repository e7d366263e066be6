// Made of js/swap.js by "make explorables": change that file, not this one.

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
var DIAMOND = "M0-6L6 0L0 6L-6 0Z";
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
function plane({ left, top, width, height, x: [x0, x1], y: [y0, y1] }) {
  const X2 = (x) => left + (x - x0) / (x1 - x0) * width, Y = (y) => top + (y1 - y) / (y1 - y0) * height;
  const invert = (px, py) => [x0 + (px - left) / width * (x1 - x0), y1 - (py - top) / height * (y1 - y0)];
  const inside = (...children) => tag("svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" }, ...children);
  return { X: X2, Y, invert, inside, left, top, width, height, x: [x0, x1], y: [y0, y1] };
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

// swap.js
var LESSONS = [
  ["own", "the same examples"],
  ["reordered", "the same, in another order"],
  ["other", "other examples of the task"],
  ["shuffled", "shuffled answers"],
  ["foreign", "another task"],
  ["nonsense", "made-up words"]
];
var NAMES = Object.fromEntries(LESSONS);
var SIDES = [["context", "the context"], ["training", "the training"]];
var THIRDS = ["lower third", "middle third", "upper third"];
var column = (lesson, side) => lesson === "own" ? "own" : `${side}_${lesson}`;
var series = ({ similarity, lesson, side }, its = lesson) => similarity[column(its, side)];
function thirds(values) {
  const n = values.length / 3;
  return [0, 1, 2].map((k) => values.slice(k * n, (k + 1) * n).reduce((sum, value) => sum + value, 0) / n);
}
var upper = (values) => thirds(values)[2];
var two = (value) => fixed(value, 2);
function describe(state) {
  const { similarity, side, lesson } = state, its = upper(series(state)[0]), own = upper(similarity.own[0]);
  const swapped = lesson === "own" ? "Both sides have learned the same examples" : `The ${side} has learned ${NAMES[lesson]}`;
  const others = LESSONS.map(([key, name]) => `${name} ${two(upper(series(state, key)[0]))}`).join(", ");
  return `${swapped}: in the upper third of the layers the similarity is ${two(its)}. With the same examples it is ${two(own)}, and two trainings agree to ${two(upper(similarity.trainings[0]))}. With the ${side} swapped: ${others}.`;
}
var HEIGHT = 352;
var ROW = 44;
var TOP = 62;
var LEFT = 12;
var RIGHT = 268;
var X = (value) => LEFT + Math.max(0, value) * (RIGHT - LEFT);
function lessonsPanel(state) {
  const { similarity, side } = state, end = TOP + ROW * LESSONS.length;
  const row = ([key, name], at) => {
    const top = TOP + ROW * at, y = top + 27, now = key === state.lesson, value = upper(series(state, key)[0]), half = similarity.upper[column(key, side)], exact = similarity.true[side][key];
    return group(
      { "data-lesson": key, style: "cursor:pointer" },
      rect(1, top, WIDTH - 2, ROW - 4, { rx: 5, "fill-opacity": now ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": now ? 0.8 : 0 }),
      words(LEFT, top + 14, name, { "font-size": 12, ...now ? { "font-weight": 600 } : {} }),
      line(LEFT, y, RIGHT, y, { "stroke-opacity": 0.2 }),
      exact === void 0 ? "" : marker(DIAMOND, X(exact), y, false),
      group(colour("value"), rect(X(value) - 3.5, y - 3.5, 7, 7), line(X(value - half), y, X(value + half), y, { "stroke-width": 2 })),
      words(WIDTH - 8, y + 4, two(value), { "text-anchor": "end", "font-weight": 600 })
    );
  };
  return panel(
    `One side swapped: the ${side}`,
    HEIGHT,
    group(
      { "font-size": 11 },
      group(colour("value"), rect(LEFT - 4, 27, 8, 8)),
      words(LEFT + 10, 35, "this GPT, layers 21 to 30, bar: 95 %", SMALL),
      marker(DIAMOND, LEFT, 47, false),
      words(LEFT + 10, 51, "a layer in which the context is a step of descent", SMALL)
    ),
    LESSONS.map(row),
    words(LEFT, end + 12, "0", SMALL),
    words(RIGHT, end + 12, "1", { ...SMALL, "text-anchor": "middle" }),
    words(X(0.5), end + 12, "similarity (cosine)", { ...SMALL, "text-anchor": "middle" })
  );
}
function layersPanel(state) {
  const { similarity, side, lesson } = state, { trainings, own, noise } = similarity, [mean, half] = series(state), n = mean.length;
  const { X: x, Y: y, inside, left, top, width, height } = plane({ left: 30, top: 44, width: 282, height: 226, x: [1, n], y: [0, 1] });
  const curve = (values) => through(values.map((value, i) => [x(i + 1), y(value)]));
  const band = through([...mean.map((value, i) => [x(i + 1), y(value + half[i])]), ...mean.map((value, i) => [x(i + 1), y(value - half[i])]).reverse()]);
  const key = (at, role, more, text) => group(colour(role), line(0, 318 + 15 * at, 22, 318 + 15 * at, more), words(28, 322 + 15 * at, text, SMALL));
  const dashed = { "stroke-width": 2, "stroke-dasharray": "6 4" }, dotted = { "stroke-width": 1.5, "stroke-dasharray": "1 3" };
  return panel(
    "Similarity in each layer",
    HEIGHT + 22,
    [0, 0.25, 0.5, 0.75, 1].map((t) => line(left, y(t), left + width, y(t), { "stroke-opacity": t ? 0.15 : 0.6 }) + words(left - 5, y(t) + 4, t === 0 || t === 1 ? fixed(t, 0) : fixed(t, 2), { ...SMALL, "text-anchor": "end" })),
    [1, 10, 20, 30].map((t) => words(x(t), top + height + 14, fixed(t, 0), { ...SMALL, "text-anchor": "middle" })),
    words(left + width, top + height + 28, "layer", { ...SMALL, "text-anchor": "end" }),
    words(0, top - 10, "cosine", SMALL),
    inside(
      group(colour("query"), path(curve(trainings[0]), dashed)),
      group(colour("key"), path(curve(own[0]), { "stroke-width": 5, "stroke-opacity": 0.45 })),
      group(
        colour("value"),
        path(`${band}Z`, { fill: "currentColor", "fill-opacity": 0.2, stroke: "none" }),
        path(curve(mean), { "stroke-width": 2 }),
        path(curve(noise[column(lesson, side)]), dotted)
      )
    ),
    key(0, "query", dashed, "two trainings, different examples"),
    key(1, "key", { "stroke-width": 5, "stroke-opacity": 0.45 }, "context and training, the same examples"),
    key(2, "value", { "stroke-width": 2 }, lesson === "own" ? "chosen: nothing swapped" : `chosen: ${NAMES[lesson]} (band: 95 %)`),
    key(3, "value", dotted, "its noise value")
  );
}
function extend(root, start, read, change) {
  root.addEventListener("click", ({ target }) => {
    const row = target.closest?.("[data-lesson]");
    if (row) change({ lesson: row.dataset.lesson });
  });
}
var swap_default = explorable({
  question: "Which lesson must one side get before the similarity falls?",
  hint: "Choose whose lesson is swapped, and for what, from the lists or by a click on a row. The other side keeps its own lesson. Squares: the GPT on word pairs, means over four tasks. Diamonds: a layer in which the claim is true by construction, where measured.",
  traits: ["side", "lesson", "similarity"],
  lists: () => [["side", "swapped is", SIDES], ["lesson", "its lesson is now", LESSONS]],
  panels: (state) => [lessonsPanel(state), layersPanel(state)],
  describe,
  extend,
  answers: (state) => {
    const its = thirds(series(state)[0]), own = thirds(state.similarity.own[0]), best = thirds(state.similarity.trainings[0]);
    return THIRDS.map((name, k) => [name, `${two(its[k])}; with the same examples ${two(own[k])}, two trainings ${two(best[k])}`]);
  }
});
export {
  swap_default as default
};
