// Made of js/ladder.js by "make explorables": change that file, not this one.

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
var PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };
var badge = (x, y, text, r = 9) => tag("circle", { cx: x, cy: y, r, ...PAPER }) + group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", "font-size": 11 }));
var diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);
function arrow(x1, y1, x2, y2, more) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return "";
  const head = Math.min(8, length), [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
  const [bx, by] = [x2 - head * u, y2 - head * v], w = head * 0.45;
  const tip2 = `M${x2} ${y2}L${bx - w * v} ${by + w * u}L${bx + w * v} ${by - w * u}Z`;
  return group({ ...more }, line(x1, y1, bx, by, { "stroke-width": 2 }), path(tip2, { fill: "currentColor", stroke: "none" }));
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

// ladder.js
var SUB = "₁₂₃₄";
var PAIRS = [["France", "Paris"], ["Italy", "Rome"], ["Egypt", "Cairo"], ["China", "Beijing"]];
var RUNGS = [
  {
    name: "A linear layer that starts at zero",
    value: (i) => `η y${i}`,
    key: (i) => `x${i}`,
    attention: "Σ eᵢ (xᵢ · q)",
    step: "ΔW q,  ΔW = Σ eᵢ xᵢᵀ",
    why: "keys are inputs, values are error signals: the two sums are one sum with other brackets",
    other: ""
  },
  {
    name: "Its weights are not zero",
    value: (i) => `η (y${i} − W₀x${i})`,
    key: (i) => `x${i}`,
    attention: "W₀ q + Σ eᵢ (xᵢ · q)",
    step: "(W₀ + ΔW) q,  eᵢ = η (yᵢ − W₀xᵢ)",
    why: "a value must hold the error signal: the label less what the old weights say",
    other: "values hold labels, not error signals"
  },
  {
    name: "Input and label are two tokens",
    value: (i) => `e${i}`,
    key: (i) => `x${i}, copied`,
    attention: "W₀ q + Σ eᵢ (xᵢ · q)",
    step: "(W₀ + ΔW) q",
    why: "a head below must copy the input into the label's token",
    other: "no head copies: the label's key is a stranger"
  },
  {
    name: "Keys share a direction c",
    value: (i) => `e${i}`,
    key: (i) => `x${i} + c`,
    attention: "W₀ q + Σ eᵢ ((xᵢ + c) · q)",
    step: "(W₀ + ΔW) q,  ΔW = Σ eᵢ (xᵢ + c)ᵀ",
    why: "linear attention turns with c, and so does the step, if c counts as input",
    other: "the step learns from inputs without c"
  },
  {
    name: "Softmax",
    value: (i) => `e${i}`,
    key: (i) => `x${i} + c`,
    attention: "Σ pᵢ vᵢ,  p = softmax(k · q)",
    step: "(W₀ + ΔW) q",
    why: "softmax averages and does not see c; the step adds up and turns with c",
    other: "mean value kept, keys centred"
  },
  {
    name: "Real heads of a GPT",
    value: () => "4 values v",
    key: () => "4 keys k",
    attention: "Σ pᵢ vᵢ,  p = softmax(k · q / √d)",
    step: "(W_ZSL + ΔW_ICL) q",
    why: "all of this at once, with the numbers of SmolLM2-135M for this prompt",
    other: "mean value kept, keys centred"
  }
];
var here = ({ rung, rungs }, at = rung) => rungs.here[at];
var other = ({ rung, rungs }, at = rung) => rungs.other[at];
var sample = ({ rung, rungs }, at = rung) => at === 5 ? `${rungs.heads} heads` : `${rungs.draws.toLocaleString("en")} draws`;
var percent = (share) => `${fixed(100 * share, 0)} %`;
var NONE = "0 %, exactly";
var told = (state, at) => here(state, at)[2] === 0 ? NONE : withQuartiles(here(state, at), sample(state, at));
var quartiles = ([low, , high], n) => `quartiles ${percent(low)} to ${percent(high)}, ${n}`;
var withQuartiles = (share, n) => `${percent(share[1])} (${quartiles(share, n)})`;
var tip = (share) => [1 - share ** 2, Math.sqrt(1 - share ** 2) * share];
function describe(state) {
  const { rung, rungs } = state, [, middle] = here(state), all = rungs.here.map(([, each]) => percent(each)).join(", ");
  const is = middle === 0 ? "returns what attention returns" : `misses ${percent(middle)} of what attention returns (${quartiles(here(state), sample(state))})`;
  const hollow = RUNGS[rung].other && ` Where the ${rung > 3 ? "form is changed" : "condition fails"} (${RUNGS[rung].other}), ${percent(other(state)[1])} is missed.`;
  return `Rung ${rung} of 5, ${RUNGS[rung].name}: the layer after one gradient step, at its best scale, ${is}.${hollow} From the lowest rung to the highest, it misses ${all}.`;
}
var H = 352;
var ROW = 48;
var LEFT = 34;
var RIGHT = 256;
var X = (share) => LEFT + share * (RIGHT - LEFT);
var right = { "text-anchor": "end" };
var yOf = (at) => 48 + ROW * (5 - at);
function ladderPanel(state) {
  const row = (at2) => {
    const y = yOf(at2), [low, middle, high] = here(state, at2), now = at2 === state.rung, mark = RUNGS[at2].other && X(other(state, at2)[1]);
    return group(
      { "data-rung": at2, style: "cursor:pointer" },
      rect(1, y - 20, WIDTH - 2, 43, { rx: 5, "fill-opacity": now ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": now ? 0.8 : 0 }),
      words(LEFT, y - 5, RUNGS[at2].name, { "font-size": 12, ...now ? { "font-weight": 600 } : {} }),
      rect(LEFT, y + 3, RIGHT - LEFT, 12, { "fill-opacity": 0.07 }),
      group(colour("sum"), rect(LEFT, y + 3, Math.max(1.5, X(middle) - LEFT), 12, { "fill-opacity": 0.75 })),
      high > 0 ? group({ "stroke-width": 1.5 }, line(X(low), y + 9, X(high), y + 9), [low, high].map((end) => line(X(end), y + 6, X(end), y + 12))) : "",
      mark ? group(colour("value"), diamond(mark, y + 9, 6)) : "",
      words(WIDTH - 8, y + 14, percent(middle), { ...right, "font-weight": 600, "font-size": 14 })
    );
  };
  const at = [0, 1, 2, 3, 4, 5], foot = yOf(0) + 22;
  return panel(
    "Missed of attention's output",
    H,
    at.map(row),
    [10, 22].map((x) => line(x, yOf(5) - 14, x, foot, { "stroke-width": 1.5, "stroke-opacity": 0.35 }) + line(x, yOf(state.rung) + 4, x, foot, { "stroke-width": 2.5 })),
    at.map((k) => badge(16, yOf(k) + 4, k, 9)),
    words(LEFT, foot + 15, "0", SMALL),
    words(X(1), foot + 15, "100 %", { "text-anchor": "middle", ...SMALL }),
    group(colour("value"), diamond(X(0.36), foot + 11, 5)),
    words(X(0.36) + 10, foot + 15, "the other case", SMALL)
  );
}
var MONO = { "font-family": "monospace", "font-size": 12 };
var small = { "font-size": 12 };
var bold = { "font-weight": 600 };
function rungPanel(state) {
  const { rung, rungs } = state, its = RUNGS[rung], real = rung === 5, two = rung >= 2, y = (place) => 60 + 20 * place;
  const box = (x, at, text2) => rect(x, at - 12, 7.3 * text2.length + 6, 17, { rx: 3, "fill-opacity": 0, stroke: "currentColor", "stroke-opacity": 0.5 }) + words(x + 3, at + 1, text2, MONO);
  const text = ([x, label], i) => two ? [box(0, y(i), x), box(62, y(i), `-> ${label}`)] : words(0, y(i), `${x} -> ${label}`, MONO);
  const hook = (i) => rung === 2 ? group(colour("key"), path(`M56 ${y(i) - 13}q16 -7 30 0`, { "stroke-width": 1.5 }), path(`M86 ${y(i) - 13}l-5 -4l-1 5Z`, { fill: "currentColor" })) : "";
  const head = (x, word, role) => words(x, 36, word, { ...small, ...bold, ...colour(role) });
  const row = (pair, i) => [
    text(pair, i),
    hook(i),
    group(colour("value"), words(158, y(i), its.value(SUB[i]), small)),
    group(colour("key"), words(258, y(i), its.key(SUB[i]), { ...small, ...rung === 2 ? SMALL : {} }))
  ];
  const [, share] = here(state), length = 190, from = [24, share === 0 ? 256 : 326], [a, b] = tip(share), to = [from[0] + length * a, from[1] - length * b];
  const end = [from[0] + length, from[1]], middle = [(to[0] + end[0]) / 2, (to[1] + end[1]) / 2];
  return panel(
    `Rung ${rung}: ${its.name}`,
    H,
    head(158, "value", "value"),
    head(258, "key", "key"),
    words(0, 36, real ? "four tokens each" : "demonstrations", SMALL),
    PAIRS.map(row),
    words(0, y(4), "Japan ->", MONO),
    group(colour("query"), words(258, y(4), "query q", small)),
    line(0, 154, WIDTH, 154, { "stroke-opacity": 0.4 }),
    words(0, 172, "attention", { ...small, ...bold, ...colour("value") }),
    words(70, 172, its.attention, small),
    words(0, 191, "the step", { ...small, ...bold, ...colour("query") }),
    words(70, 191, its.step, small),
    words(0, 214, share === 0 ? "The two outputs are one arrow." : `Outputs, the step's at its best scale${real ? ", median head" : ""}:`, { ...small, "fill-opacity": 0.9 }),
    share === 0 ? "" : group(
      colour("sum"),
      line(...to, ...end, { "stroke-width": 2, "stroke-dasharray": "4 3" }),
      words(middle[0] + 10, middle[1] - 6, `missed: ${percent(share)}`, { ...small, ...bold })
    ),
    group(colour("value"), arrow(...from, ...end), words(end[0] + 6, end[1] + 4, "attention", small)),
    share === 0 ? group(colour("query"), arrow(from[0], from[1] - 5, end[0], end[1] - 5), words(end[0] + 6, end[1] - 12, "the step", small)) : group(colour("query"), arrow(...from, ...to), words(to[0] - 4, Math.max(236, to[1] - 8), "the step", { ...small, "text-anchor": a < 0.2 ? "start" : "end" }))
  );
}
function extend(root, start, read, change) {
  root.addEventListener("click", ({ target }) => {
    const row = target.closest?.("[data-rung]");
    if (row) change({ rung: +row.dataset.rung });
  });
}
var ladder_default = explorable({
  question: "How much of what attention does is a gradient step?",
  hint: "Choose a rung with the slider, or click it. Each rung adds one thing that is true of GPT; the conditions of the rungs below are met. Missed: the distance between the two outputs, as a share of attention's, after the step's output was scaled by the one number, of either sign, that suits it best. Bars: medians; black lines: quartiles. Rungs 0 to 4: random vectors whose logits are as spread, and share as much, as in the median real head.",
  traits: ["rung", "rungs"],
  sliders: [slider("rung", "rung", [0, 5, 1], String)],
  panels: (state) => [ladderPanel(state), rungPanel(state)],
  describe,
  extend,
  answers: (state) => [
    ["missed on this rung", told(state)],
    ["because", RUNGS[state.rung].why],
    ["◇ the other case", RUNGS[state.rung].other ? `${RUNGS[state.rung].other}: ${withQuartiles(other(state), sample(state))}` : "none on this rung"],
    ["note", note(state)]
  ]
});
function note({ rung, rungs }) {
  const [layer, head, its] = rungs.chosen, [above, below] = rungs.signs;
  return [
    "brackets: (e xᵀ) q = e (x · q)",
    `in these draws W₀xᵢ is about ${fixed(rungs.spread, 1)} times as long as eᵢ`,
    "a head that looks one token back can do it",
    `c · q is ${fixed(rungs.shared, 2)} times the spread of the logits, of either sign`,
    `${percent(above)} in the median draw with c · q above zero, ${percent(below)} with it below: softmax cannot tell them apart`,
    `layer ${layer}, head ${head}, which adds most to Tokyo by what it reads in the demonstrations: ${percent(its)}`
  ][rung];
}
export {
  ladder_default as default
};
