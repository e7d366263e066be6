// Made of js/which_box.js by "make explorables": change that file, not this one.

// algebra.js
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);

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
function tag(name2, attributes, ...children) {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(typeof value === "number" ? +value.toFixed(2) : value)}"`).join("");
  return `<${name2}${written}>${children.flat(Infinity).join("")}</${name2}>`;
}
var group = (attributes, ...children) => tag("g", attributes, ...children);
var words = (x, y, text, more) => tag("text", { x, y, fill: "currentColor", ...more }, escape(text));
var line = (x1, y1, x2, y2, more) => tag("line", { x1, y1, x2, y2, stroke: "currentColor", ...more });
var path = (d, more) => tag("path", { d, fill: "none", stroke: "currentColor", ...more });
var rect = (x, y, width, height, more) => tag("rect", { x, y, width, height, fill: "currentColor", ...more });
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
function element(name2, properties, ...children) {
  const { attributes = {}, ...rest } = properties;
  const node = Object.assign(document.createElement(name2), rest);
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
function answerLine([name2]) {
  const number2 = element("span", { className: "explorable-number" });
  return { node: element("div", {}, element("span", { textContent: name2 }), number2), update: ([, text]) => {
    number2.textContent = text;
  } };
}
function mount(view, { model, el }) {
  const stop = new AbortController(), { signal } = stop;
  const read = () => Object.fromEntries(view.traits.map((name2) => [name2, model.get(name2)]));
  const change = (patch) => {
    for (const name2 in patch) model.set(name2, patch[name2]);
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
  const events = view.traits.map((name2) => `change:${name2}`);
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

// which_box.js
var LEARNERS = ["linear", "gpt", "ols"];
var UNNAMED = "?";
var NAMES = { linear: "one linear layer", gpt: "the small GPT", ols: "least squares" };
var PROBES = [
  { key: "plain", name: "plain prompts", long: "20 examples that cover all directions evenly" },
  { key: "stretched", name: "inputs stretched", long: "inputs twice as long in one direction, half as long in another" },
  { key: "targets", name: "targets × 4", long: "all targets four times as large" },
  { key: "outlier", name: "one wild target", long: "30 added to the target of the first example" },
  { key: "few", name: "three examples", long: "three examples, while inputs have five numbers" }
];
var LETTERS = ["A", "B", "C"];
var TRAITS = ["a", "b", "c"];
var ROLES = ["key", "value", "query"];
var MARKS = [SQUARE, DIAMOND, "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z"];
var ORDERS = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
function order(seed) {
  const draw = uniforms(seed);
  return ORDERS[Math.floor(ORDERS.length * draw())].map((i) => LEARNERS[i]);
}
var error = ({ results }, probe, learner) => results.errors[probe][learner];
var apart = (state, probe, one, other) => Math.abs(Math.log(Math.max(0.01, error(state, probe, one)[0]) / Math.max(0.01, error(state, probe, other)[0])));
var decisive = (state, one, other) => PROBES.reduce((best, probe) => apart(state, probe.key, one, other) > apart(state, best.key, one, other) ? probe : best, PROBES[0]);
var number = (value) => value < 5e-4 ? "0" : fixed(value, value < 0.995 ? 2 : 1);
var errs = (state, probe, learners) => learners.map((each) => `${NAMES[each]} ${number(error(state, probe.key, each)[0])}`).join(", ");
var against = (state, probe, its, others) => `on “${probe.name}” it errs ${number(error(state, probe.key, its)[0])} (${errs(state, probe, others)})`;
function verdict(state, box) {
  const its = order(state.seed)[box], named = state[TRAITS[box]];
  if (named === UNNAMED) return state.shown ? NAMES[its] : "not named yet";
  if (named !== its) return `not ${NAMES[named]}: ${against(state, decisive(state, its, named), its, [named])}`;
  const others = LEARNERS.filter((each) => each !== its), by = others.map((each) => decisive(state, its, each));
  const told = by[0] === by[1] ? [against(state, by[0], its, others)] : others.map((each, i) => against(state, by[i], its, [each]));
  return `right: ${told.join("; ")}`;
}
function describe(state) {
  const probe = PROBES[state.probe], boxes = order(state.seed);
  const errors = boxes.map((each, i) => `box ${LETTERS[i]}${state.shown ? ` (${NAMES[each]})` : ""} ${number(error(state, probe.key, each)[0])}`);
  return `Probe “${probe.name}”, ${probe.long}: the relative errors are ${errors.join(", ")}. On plain prompts all three boxes answer nearly alike, so similar answers do not tell which box is which. Changed prompts do: with inputs stretched one box fails, and with targets × 4 another one.`;
}
var HEIGHT = 350;
var REACH = { plain: 8, stretched: 12, targets: 24, outlier: 12, few: 6 };
var name = (state, box) => `box ${LETTERS[box]}${state.shown ? `, ${NAMES[order(state.seed)[box]]}` : ""}`;
function answersPanel(state) {
  const { key, name: title } = PROBES[state.probe], reach = REACH[key], span = [-reach, reach], { results } = state;
  const { X, Y, inside, left, top, width, height } = plane({ left: 30, top: 40, width: 282, height: 222, x: span, y: span });
  const ticks = [-1, -0.5, 0, 0.5, 1].map((t) => t * reach), clip = (v) => Math.max(-reach, Math.min(reach, v));
  return panel(
    `Answers to ${results.right[key].length} prompts: ${title}`,
    HEIGHT,
    rect(left, top, width, height, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }),
    ticks.map((t) => line(left, Y(t), left + width, Y(t), { "stroke-opacity": t ? 0.12 : 0.5 }) + line(X(t), top, X(t), top + height, { "stroke-opacity": t ? 0.12 : 0.5 }) + words(left - 5, Y(t) + 4, fixed(t, 0), { ...SMALL, "text-anchor": "end" }) + words(X(t), top + height + 14, fixed(t, 0), { ...SMALL, "text-anchor": "middle" })),
    words(0, top - 8, "box’s answer", SMALL),
    words(left + width, top + height + 28, "right answer", { ...SMALL, "text-anchor": "end" }),
    inside(line(X(-reach), Y(-reach), X(reach), Y(reach), { "stroke-dasharray": "4 3", "stroke-opacity": 0.7 })),
    order(state.seed).map((learner, box) => group(
      colour(ROLES[box]),
      results.right[key].map((right, i) => marker(MARKS[box], X(clip(right)), Y(clip(results.answers[key][learner][i])), false))
    )),
    LETTERS.map((_, box) => group({ ...colour(ROLES[box]), transform: `translate(12 ${304 + 17 * box})` }, marker(MARKS[box], 0, 0, false), words(14, 4, name(state, box), { "font-size": 12 })))
  );
}
var MOST = 1.2;
var BARS = 138;
var FULL = 142;
var ROW = 56;
var long = (value) => FULL * Math.min(value, MOST) / MOST;
function errorsPanel(state) {
  const one = BARS + FULL / MOST;
  const row = (probe, at) => {
    const top = 30 + ROW * at, now = at === state.probe;
    return group(
      { "data-probe": at, style: "cursor:pointer" },
      rect(1, top, WIDTH - 2, ROW - 4, { rx: 5, "fill-opacity": now ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": now ? 0.8 : 0 }),
      words(8, top + 30, probe.name, { "font-size": 12, ...now ? { "font-weight": 600 } : {} }),
      order(state.seed).map((learner, box) => {
        const [middle, low, high] = error(state, probe.key, learner), y = top + 6 + 14 * box;
        const cut = middle > MOST ? path(`M${BARS + FULL - 5} ${y - 1}l5 5.5l-5 5.5`, { "stroke-width": 2 }) : line(BARS + long(low), y + 4.5, BARS + long(high), y + 4.5, { "stroke-width": 2 });
        return group(
          colour(ROLES[box]),
          words(BARS - 6, y + 9, LETTERS[box], { ...SMALL, "text-anchor": "end", "font-weight": 600 }),
          rect(BARS, y, Math.max(1.5, long(middle)), 9, { "fill-opacity": 0.6 }),
          cut,
          words(WIDTH - 6, y + 9, number(middle), { ...SMALL, "text-anchor": "end" })
        );
      })
    );
  };
  const foot = 30 + ROW * PROBES.length;
  return panel(
    "Relative error on five probes",
    HEIGHT,
    PROBES.map(row),
    line(one, 30, one, foot, { "stroke-dasharray": "2 3", "stroke-opacity": 0.7 }),
    words(BARS, foot + 13, "0", SMALL),
    words(one, foot + 13, "1: answering 0", { ...SMALL, "text-anchor": "middle" })
  );
}
var LIST = [[UNNAMED, "?"], ...LEARNERS.map((each) => [each, NAMES[each]])];
var nobody = Object.fromEntries(TRAITS.map((trait) => [trait, UNNAMED]));
function extend(root, start, read, change) {
  const button = () => element("button", { type: "button" }), show = button(), shuffle = button();
  shuffle.textContent = "Shuffle";
  show.addEventListener("click", () => change({ shown: !read().shown }));
  shuffle.addEventListener("click", () => change({ seed: read().seed + 1, shown: false, ...nobody }));
  root.querySelector(".explorable-controls").append(show, shuffle);
  root.addEventListener("click", ({ target }) => {
    const row = target.closest?.("[data-probe]");
    if (row) change({ probe: +row.dataset.probe });
  });
  return (state) => {
    show.textContent = state.shown ? "Hide the names" : "Show the names";
  };
}
var which_box_default = explorable({
  question: "Three boxes answer the same prompts. Which one is the small GPT?",
  hint: "One box is a layer of linear attention, one a small GPT, one least squares. Choose a probe, or click its row, and name the boxes. Tasks are y = w · x with five inputs and no noise. Thin ends of bars: 95 % intervals over 1000 prompts; an arrow: the error is off the scale.",
  traits: ["probe", "seed", "a", "b", "c", "shown", "results"],
  lists: () => [
    ["probe", "probe", PROBES.map(({ name: text }, at) => [at, text])],
    ...TRAITS.map((trait, box) => [trait, `box ${LETTERS[box]} is`, LIST])
  ],
  panels: (state) => [answersPanel(state), errorsPanel(state)],
  describe,
  extend,
  answers: (state) => LETTERS.map((letter, box) => [`box ${letter}`, verdict(state, box)])
});
export {
  which_box_default as default
};
