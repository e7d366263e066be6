// Made of js/real_head.js by "make explorables": change that file, not this one.

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
function weightedSum(weights, rows) {
  const total = rows[0].map(() => 0);
  for (let i = 0; i < rows.length; i++) for (let j = 0; j < total.length; j++) total[j] += weights[i] * rows[i][j];
  return total;
}
function softmax(logits2) {
  const largest = Math.max(...logits2), powers = logits2.map((l) => Math.exp(l - largest));
  return scale(1 / sum(powers), powers);
}

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
var PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };
var badge = (x, y, text, r = 9) => tag("circle", { cx: x, cy: y, r, ...PAPER }) + group({ class: "explorable-ink" }, words(x, y + 4, text, { "text-anchor": "middle", "font-size": 11 }));
var DIAMOND = "M0-6L6 0L0 6L-6 0Z";
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
function arrow(x1, y1, x2, y2, more) {
  const length2 = Math.hypot(x2 - x1, y2 - y1);
  if (length2 < 1) return "";
  const head = Math.min(8, length2), [u, v] = [(x2 - x1) / length2, (y2 - y1) / length2];
  const [bx, by] = [x2 - head * u, y2 - head * v], w = head * 0.45;
  const tip = `M${x2} ${y2}L${bx - w * v} ${by + w * u}L${bx + w * v} ${by - w * u}Z`;
  return group({ ...more }, line(x1, y1, bx, by, { "stroke-width": 2 }), path(tip, { fill: "currentColor", stroke: "none" }));
}
function bar(start, end, y, height) {
  const [x, width] = [Math.min(start, end), Math.max(1, Math.abs(end - start))];
  return rect(x, y, width, height, { stroke: "currentColor", "stroke-width": 1.5, "fill-opacity": end < start ? 0.08 : 0.75 });
}
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

// real_head.js
var RANGE = [-4, 2];
function keys({ head, shift }) {
  const mean = scale(1 / head.keys.length, head.keys.reduce(add));
  return head.keys.map((key) => add(key, scale(shift, mean)));
}
var logits = (state) => keys(state).map(([along]) => state.head.query * along);
var shares = (state) => softmax(logits(state));
var demonstrations = ({ head: { n } }, rows) => rows.slice(0, n);
function softmaxChange(state, rows = state.head.values) {
  const own = softmax(logits(state).slice(state.head.n));
  return subtract(weightedSum(shares(state), rows), weightedSum(own, rows.slice(state.head.n)));
}
var linearChange = (state, rows = state.head.values) => scale(1 / state.head.tokens.length, weightedSum(demonstrations(state, logits(state)), demonstrations(state, rows)));
var length = (a) => Math.hypot(...a);
var cosine = (state) => {
  const [a, b] = [softmaxChange(state), linearChange(state)];
  return dot(a, b) / (length(a) * length(b));
};
var rate = (state) => {
  const unmoved = { ...state, shift: 0 }, b = linearChange(unmoved);
  return dot(softmaxChange(unmoved), b) / dot(b, b);
};
var stepLength = (state) => rate(state) * length(linearChange(state)) / length(softmaxChange(state));
var asRows = ({ head }) => head.answer.map((each) => [each]);
var towardsTokyo = (state) => [softmaxChange(state, asRows(state))[0], rate(state) * linearChange(state, asRows(state))[0]];
var moved = (state) => {
  const output = (at) => weightedSum(shares(at), at.head.values), as_it_is = output({ ...state, shift: 0 });
  return length(subtract(output(state), as_it_is)) / length(as_it_is);
};
var times = (shift) => `${fixed(shift, 1, "+")} × mean key`;
var isRounding = (share) => share === 0 ? "by nothing" : `by ${share.toExponential(0).replace("-", MINUS)} of its length: rounding`;
function describe(state) {
  const { head, shift } = state, [soft, step] = towardsTokyo(state), unmoved = { ...state, shift: 0 };
  return `Layer ${head.layer}, head ${head.head}, with ${times(shift)} added to every key. Softmax: the demonstrations add ${fixed(soft, 2, "+")} nats to Tokyo over Japan, whatever is added to the keys. Linear attention: ΔW q adds ${fixed(step, 2, "+")} nats; its cosine with softmax's change is ${fixed(cosine(state))} (${fixed(cosine(unmoved))} for the keys as they are), and it is ${fixed(stepLength(state))} times as long.`;
}
var LOW = 330;
var bold = { "font-weight": 600 };
var owner = ({ head }, i) => i < head.n ? 1 + Math.floor(4 * i / head.n) : i === head.n ? 0 : 5;
var isAnswer = ({ head }, i) => i < head.n && i % (head.n / 4) === 2;
var KEYS = plane({ left: 30, top: 40, width: 280, height: 240, x: [-9, 11], y: [-68, 60] });
function keyPanel(state) {
  const { X, Y } = KEYS, l = logits(state), at = keys(state).map(([, across], i) => [X(l[i]), Y(across)]);
  const zero = X(0);
  return panel(
    "The keys, all moved by one vector",
    LOW,
    axes({ ...KEYS, Y }, [], ["logit k · q / √d, along the query", "mean key"]),
    [-8, -4, 0, 4, 8].map((t) => words(X(t), KEYS.top + KEYS.height + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL }) + line(X(t), KEYS.top, X(t), KEYS.top + KEYS.height, { "stroke-opacity": t === 0 ? 0.7 : 0.15, "stroke-width": t === 0 ? 1.5 : 1 })),
    [-50, -25, 0, 25, 50].map((t) => words(KEYS.left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL }) + line(KEYS.left, Y(t), KEYS.left + KEYS.width, Y(t), { "stroke-opacity": t === 0 ? 0.6 : 0.15 })),
    words(zero - 5, KEYS.top + 12, "linear: negative", { "text-anchor": "end", ...SMALL }),
    words(zero + 5, KEYS.top + 12, "positive", SMALL),
    KEYS.inside(
      group(colour("query"), arrow(X(0), Y(0), X(10), Y(0)), words(X(10), Y(0) - 8, "q", { "text-anchor": "end", ...bold })),
      group({ ...colour("query"), "fill-opacity": 0.9 }, at.map(([x, y], i) => owner(state, i) === 5 || owner(state, i) === 0 ? marker(DIAMOND, x, y, false) : "")),
      group(
        colour("key"),
        at.map(([x, y], i) => i < state.head.n && !isAnswer(state, i) ? tag("circle", { cx: x, cy: y, r: 3, fill: "currentColor", "fill-opacity": 0.6 }) : ""),
        at.map(([x, y], i) => isAnswer(state, i) ? badge(x, y, owner(state, i), 8) : "")
      )
    ),
    words(0, LOW - 4, "1 to 4: the answers' tokens; diamonds: own text", SMALL)
  );
}
var OUT = plane({ left: 30, top: 40, width: 280, height: 240, x: [-1.35, 2.15], y: [-2, 1] });
var drawn = (state) => {
  const unit = length(softmaxChange({ ...state, shift: 0 })), first = ([a, b]) => [a / unit, b / unit];
  return { soft: first(softmaxChange(state)), step: first(scale(rate(state), linearChange(state))) };
};
function changePanel(state) {
  const { X, Y } = OUT, page = ([a, b]) => [X(a), Y(b)], origin = page([0, 0]), { soft, step } = drawn(state);
  const asIs = drawn({ ...state, shift: 0 }).step, ends = RANGE.map((shift) => page(drawn({ ...state, shift }).step)), tip = page(step);
  const outside = step.some((v, k) => v < OUT[k ? "y" : "x"][0] || v > OUT[k ? "y" : "x"][1]);
  const [right, below] = subtract(page(soft), tip), meets = Math.abs(right) < 70 && Math.abs(below + 12) < 26;
  const atEdge = tip[0] > OUT.left + OUT.width - 50;
  return panel(
    "What the demonstrations change",
    LOW,
    axes(OUT, [], ["softmax's change = 1", ""]),
    [-1, 0, 1, 2].map((t) => words(X(t), OUT.top + OUT.height + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL }) + line(X(t), OUT.top, X(t), OUT.top + OUT.height, { "stroke-opacity": t === 0 ? 0.6 : 0.15 })),
    [-2, -1, 0, 1].map((t) => words(OUT.left - 5, Y(t) + 4, fixed(t, 0), { "text-anchor": "end", ...SMALL }) + line(OUT.left, Y(t), OUT.left + OUT.width, Y(t), { "stroke-opacity": t === 0 ? 0.6 : 0.15 })),
    words(8, 32, "mean value of the demonstrations, the rest", SMALL),
    OUT.inside(
      group(
        colour("query"),
        line(...ends[0], ...ends[1], { "stroke-dasharray": "2 4", "stroke-opacity": 0.9 }),
        line(...origin, ...page(asIs), { "stroke-width": 1.5, "stroke-dasharray": "5 4" }),
        tag("circle", { cx: page(asIs)[0], cy: page(asIs)[1], r: 4, class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 }),
        arrow(...origin, ...tip)
      ),
      group(colour("value"), arrow(...origin, ...page(soft), { "stroke-width": 3 })),
      words(page(soft)[0] + 6, page(soft)[1] + 16, "softmax", { ...colour("value"), ...bold, class: "explorable-value explorable-halo" }),
      words(tip[0] + (atEdge ? -8 : 8), Math.max(OUT.top + 14, Math.min(tip[1] + (meets ? below < 0 ? Math.max(4, 29 + below) : -10 : atEdge ? 20 : 4), OUT.top + OUT.height - 8)), "ΔW q", { "text-anchor": atEdge ? "end" : "start", ...colour("query"), ...bold, class: "explorable-query explorable-halo" })
    ),
    outside ? words(OUT.left + 8, OUT.top + 14, "ΔW q leaves the plot", SMALL) : "",
    words(0, LOW - 4, "dashed with ○: ΔW q for the keys as they are", SMALL)
  );
}
function tokenPanel(state) {
  const p = shares(state), l = logits(state), reach = 12, low = 52 + 14 * p.length + 16;
  const P = (v) => 88 + 70 * v, L = (v) => 220 + 50 * v / reach;
  const name = (text) => text.replace("\n", "⏎").replace("<|endoftext|>", "first token").trim();
  const row = (text, i) => {
    const y = 52 + 14 * i, own = i >= state.head.n;
    return [
      words(own ? 4 : 14, y + 4, name(text), { "font-family": "monospace", "font-size": 11, ...isAnswer(state, i) ? bold : {} }),
      isAnswer(state, i) ? words(0, y + 4, owner(state, i), { "font-size": 11, ...bold }) : "",
      group(colour("value"), bar(P(0), P(p[i]), y - 4, 9)),
      own ? "" : group(colour("query"), bar(L(0), L(Math.max(-reach, Math.min(reach, l[i]))), y - 4, 9)),
      words(WIDTH, y + 4, fixed(state.head.answer[i], 2, "+"), { "text-anchor": "end", "font-size": 11 })
    ];
  };
  return panel(
    "How much each token counts",
    low,
    words(88, 36, "softmax p", { ...colour("value"), ...bold, "font-size": 12 }),
    words(220, 36, "k · q / √d", { ...colour("query"), ...bold, "font-size": 12, "text-anchor": "middle" }),
    words(WIDTH, 36, "value", { ...bold, "font-size": 12, "text-anchor": "end" }),
    words(WIDTH, low - 4, "value: nats for Tokyo over Japan", { ...SMALL, "text-anchor": "end" }),
    state.head.tokens.map(row),
    line(L(0), 42, L(0), 52 + 14 * state.head.n - 8, { "stroke-opacity": 0.5 })
  );
}
var CURVE = plane({ left: 30, top: 40, width: 280, height: 232, x: RANGE, y: [-1, 1] });
function curvePanel(state) {
  const { X, Y } = CURVE, shifts = Array.from({ length: 61 }, (_, k) => RANGE[0] + k / 10), [low, middle, high] = state.head.cosine;
  const at = [X(state.shift), Y(cosine(state))], foot = CURVE.top + CURVE.height;
  return panel(
    "Cosine of ΔW q with softmax's change",
    352,
    axes({ ...CURVE }, [-1, 0, 1], ["added to every key, × mean key", ""]),
    [-4, -3, -2, 2].map((t) => words(X(t), foot + 14, fixed(t, 0), { "text-anchor": "middle", ...SMALL })),
    line(X(-1), CURVE.top, X(-1), foot, { "stroke-dasharray": "3 4", "stroke-opacity": 0.6 }),
    words(X(-1) - 4, foot - 8, "centred", { "text-anchor": "end", ...SMALL }),
    line(X(0), CURVE.top, X(0), foot, { "stroke-dasharray": "3 4", "stroke-opacity": 0.6 }),
    words(X(0) + 5, foot - 8, "as they are", SMALL),
    group(
      colour("sum"),
      line(X(0), Y(low), X(0), Y(high), { "stroke-width": 2 }),
      line(X(0) - 6, Y(middle), X(0) + 6, Y(middle), { "stroke-width": 2.5 }),
      words(X(0) + 8, Y(middle) + 4, `all ${state.head.heads} heads`, { ...SMALL, class: "explorable-sum explorable-halo" })
    ),
    group(colour("query"), path(through(shifts.map((shift) => [X(shift), Y(cosine({ ...state, shift }))])), { "stroke-width": 2 }), tag("circle", { cx: at[0], cy: at[1], r: 5, fill: "currentColor" })),
    words(at[0] + (state.shift > 1 ? -8 : 9), at[1] + (state.shift > -1 ? 20 : -6), fixed(cosine(state)), { ...bold, class: "explorable-halo", "text-anchor": state.shift > 1 ? "end" : "start" })
  );
}
var real_head_default = explorable({
  question: "What happens in a real head when one vector is added to all its keys?",
  hint: "Move the slider: it adds a multiple of the mean key to every key, and q · c to every logit. Softmax sees only differences between logits. SmolLM2-135M, four countries with their capitals, then Japan: of all heads, this is the one whose attention to the demonstrations adds most to Tokyo over Japan. ΔW q is drawn at one learning rate, the best for the keys as they are; lengths and cosines are those of all 64 numbers, arrows are their shadows on the plane of softmax's change and the mean value.",
  traits: ["shift", "head"],
  sliders: [slider("shift", "added, × mean key", [...RANGE, 0.1], (v) => fixed(v, 1, "+"))],
  panels: (state) => [tokenPanel(state), changePanel(state), keyPanel(state), curvePanel(state)],
  describe,
  answers: (state) => {
    const [soft, step] = towardsTokyo(state), [low, middle, high] = state.head.cosine;
    return [
      ["the shift moves the output of softmax", isRounding(moved(state))],
      ["softmax: the demonstrations add to Tokyo − Japan", `${fixed(soft, 2, "+")} nats`],
      ["linear: ΔW q adds to Tokyo − Japan", `${fixed(step, 2, "+")} nats`],
      ["cosine of the two changes", fixed(cosine(state))],
      ["length of ΔW q, softmax's change = 1", fixed(stepLength(state))],
      [`the same cosine in all ${state.head.heads} heads, keys as they are`, `median ${fixed(middle)} (quartiles ${fixed(low)} to ${fixed(high)})`]
    ];
  }
});
export {
  real_head_default as default
};
