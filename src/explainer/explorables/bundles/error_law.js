// Made of js/error_law.js by "make explorables": change that file, not this one.

// algebra.js
var add = (a, b) => a.map((a_i, i) => a_i + b[i]);
var scale = (factor, a) => a.map((a_i) => factor * a_i);
var sum = (a) => a.reduce((total, a_i) => total + a_i, 0);

// numbers.js
var MINUS = "−";
function fixed(number2, digits = 2, plus = "") {
  const size = Math.abs(number2).toFixed(digits);
  return (Number(size) === 0 ? "" : number2 < 0 ? MINUS : plus) + size;
}
var vector = (a, digits = 2) => `(${a.map((a_i) => fixed(a_i, digits)).join(", ")})`;
var whole = (number2) => String(number2).replace(/\B(?=(\d{3})+$)/g, ",");

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
var entry = (x, y, text, number2) => words(x, y, text, { "font-size": 12 }) + words(WIDTH, y, number2, { "text-anchor": "end", "font-weight": 600 });
var PAPER = { class: "explorable-paper", fill: "none", stroke: "currentColor", "stroke-width": 2 };
var diamond = (x, y, r = 8) => path(`M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z`, PAPER);
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
    const { plane: p, at: at2 } = item(), [x, y] = pointer(event);
    grip = [x - p.X(at2[0]), y - p.Y(at2[1])];
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
function placeHandle(node, { label, plane: p, at: at2, horizontal }, panelHeight) {
  const [x, y] = [Math.min(p.x[1], Math.max(p.x[0], at2[0])), Math.min(p.y[1], Math.max(p.y[0], at2[1]))];
  node.style.left = `${100 * p.X(x) / WIDTH}%`;
  node.style.top = `${100 * p.Y(y) / panelHeight}%`;
  const value = horizontal ? fixed(at2[0]) : vector(at2);
  const spoken = { "aria-label": `${label}, ${value}`, "aria-valuetext": value };
  const range = { "aria-valuemin": p.x[0], "aria-valuemax": p.x[1], "aria-valuenow": at2[0] };
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
var same = (value) => value;
var slider = (trait, label, range, format = fixed, fromInput = same, toInput = same) => ({ trait, label, range, format, fromInput, toInput });

// error_law.js
function law({ eigenvalues, noise }, N) {
  const trace = sum(eigenvalues);
  let [fall, floor] = [0, 0];
  for (const l of eigenvalues) {
    const gamma = (1 + 1 / N) * l + trace / N, weight = l / (gamma * gamma);
    fall += weight * l * (l + trace + noise * noise);
    floor += weight * ((l + trace) / N) ** 2;
  }
  return { fall, floor, best: noise * noise, zero: trace + noise * noise };
}
function terms(state, N = state.training_length, M = state.prompt_length) {
  const { fall, floor, best, zero } = law(state, N);
  const parts = [best / zero, fall / M / zero, floor / zero];
  return { parts, total: parts[0] + parts[1] + parts[2] };
}
function payingLength(state, N = state.training_length) {
  const { fall, floor, best } = law(state, N);
  return fall / (floor + best);
}
function contour(state, share2, N) {
  const { fall, floor, best, zero } = law(state, N), left = share2 * zero - best - floor;
  return left > 0 ? fall / left : Infinity;
}
var MOST_N = 1e3;
var DECADES = [3, 4];
function bestTraining(state) {
  let [best, least] = [1, Infinity];
  for (let N = 1; N <= MOST_N; N++) {
    const { total } = terms(state, N);
    if (total < least) [best, least] = [N, total];
  }
  return best;
}
var number = (x) => {
  const size = 10 ** Math.max(0, Math.floor(Math.log10(x)) - 1), rounded = x > 1e6 ? Infinity : Math.round(x / size) * size;
  return rounded === Infinity ? "over 1,000,000" : whole(rounded);
};
var share = (x) => x >= 1 ? fixed(x, 2) : fixed(x, x >= 0.1 ? 3 : 4);
function describe(state) {
  const { parts, total } = terms(state), [N, M] = [whole(state.training_length), whole(state.prompt_length)];
  return `Trained on prompts of N = ${N} examples: longer prompts stop paying at about M = ${number(payingLength(state))}, where half of the error is what no prompt length removes. At M = ${M} the error is ${share(total)} of that of predicting 0: ${share(parts[0])} noise on the target, ${share(parts[1])} because the prompt is short, ${share(parts[2])} because the training prompts were. At this M, training at N = ${whole(bestTraining(state))} has the least error${bestTraining(state) === MOST_N ? " of those drawn" : ""}.`;
}
var middle = { ...SMALL, "text-anchor": "middle" };
var end = { ...SMALL, "text-anchor": "end" };
var LEVELS = [1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3];
var STEPS = 60;
var at = (decades) => Array.from({ length: STEPS + 1 }, (_, i) => i * decades / STEPS);
var power = (k) => whole(10 ** k);
var HEIGHT = 452;
var here = (x, y) => group(colour("value"), diamond(x, y, 7));
var log = (x) => Math.max(-9, Math.min(9, Math.log10(x)));
var MAP = plane({ left: 42, top: 46, width: 238, height: 300, x: [0, DECADES[0]], y: [0, DECADES[1]] });
function map(state) {
  const { X, Y, inside, left, top, width, height } = MAP, N = at(DECADES[0]);
  const curve = (f) => N.map((x2) => [X(x2), Y(log(f(10 ** x2)))]);
  const contours = LEVELS.map((level) => curve((n) => contour(state, level, n)));
  const below = (points) => `${through(points)}L${X(DECADES[0])} ${Y(-9)}L${X(0)} ${Y(-9)}Z`;
  const [x, y] = [X(log(state.training_length)), Y(log(state.prompt_length))];
  const labels = contours.map((points, i) => {
    const height_ = points[STEPS][1];
    return height_ > top + 4 && height_ < top + height - 4 ? words(left + width + 4, height_ + 4, LEVELS[i], SMALL) : "";
  });
  const key = (i, mark, text) => group({ transform: `translate(0 ${top + height + 50 + 18 * i})` }, mark, words(34, 0, text, SMALL));
  return panel(
    "Error over both lengths",
    HEIGHT,
    [0, 1, 2, 3].map((k) => words(X(k), top + height + 14, power(k), middle)),
    [0, 1, 2, 3, 4].map((k) => words(left - 4, Y(k) + 4, power(k), end)),
    words(left + width, top + height + 28, "N, examples in a training prompt", end),
    words(0, top - 8, "M, examples in a test prompt", SMALL),
    words(WIDTH, top - 8, "error", end),
    inside(
      contours.map((points) => path(below(points), { fill: "currentColor", "fill-opacity": 0.09, stroke: "none" })),
      contours.map((points) => path(through(points), { "stroke-opacity": 0.55 })),
      group(colour("query"), path(through(curve((n) => payingLength(state, n))), { "stroke-width": 2.5, "stroke-dasharray": "7 4" })),
      group(colour("value"), line(x, top, x, top + height, { "stroke-dasharray": "1 3" }), line(left, y, left + width, y, { "stroke-dasharray": "1 3" }))
    ),
    rect(left, top, width, height, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }),
    labels,
    here(x, y),
    key(0, line(0, -4, 28, -4, { "stroke-opacity": 0.55 }), "equal error, as a share of that of predicting 0"),
    group(colour("query"), key(1, line(0, -4, 28, -4, { "stroke-width": 2.5, "stroke-dasharray": "7 4" }), "above it, longer prompts hardly pay")),
    group(colour("value"), key(2, line(14, -12, 14, 2, { "stroke-dasharray": "1 3" }), "the two cuts that are drawn beside or below"))
  );
}
var CUT = { left: 42, width: 262, height: 92, y: [-3.6, 1.3] };
function cut(top, decades, title, f, now, marked, text) {
  const p = plane({ ...CUT, top, x: [0, decades] }), { X, Y, inside, left, width, height } = p, x = log(marked);
  const points = at(decades).map((k) => [X(k), Y(log(f(10 ** k)))]);
  const shown = x >= 0 && x <= decades, anchor = X(x) > left + width / 2 ? { ...end } : SMALL;
  return [
    words(0, top - 8, title, SMALL),
    [1e-3, 0.01, 0.1, 1].map((e) => line(left, Y(log(e)), left + width, Y(log(e)), { "stroke-opacity": e < 1 ? 0.15 : 0.6 }) + words(left - 4, Y(log(e)) + 4, e, end)),
    Array.from({ length: decades + 1 }, (_, k) => line(X(k), top, X(k), top + height, { "stroke-opacity": 0.15 }) + words(X(k), top + height + 13, power(k), k < decades ? middle : { ...end, x: WIDTH })),
    inside(
      group(colour("key"), path(through(points), { "stroke-width": 2 })),
      shown ? group(colour("query"), line(X(x), top, X(x), top + height, { "stroke-width": 2, "stroke-dasharray": "7 4" })) : ""
    ),
    shown ? group(colour("query"), words(X(x) + (anchor === SMALL ? 5 : -5), top + 11, text, { ...anchor, class: "explorable-halo" })) : "",
    here(X(log(now)), Math.min(top + height, Math.max(top, Y(log(f(now))))))
  ];
}
function cuts(state) {
  const { training_length: N, prompt_length: M } = state, { parts, total } = terms(state), pays = payingLength(state), best = bestTraining(state);
  const names = ["noise on the target: nobody can predict it", "short prompt: falls as 1/M", "short training: falls with N, not with M"];
  const term = (i) => {
    const y = 348 + 36 * i;
    return entry(0, y, names[i], share(parts[i])) + group(colour(["sum", "key", "query"][i]), rect(0, y + 5, WIDTH * parts[i] / total, 8, { "fill-opacity": 0.75 }));
  };
  return panel(
    `At N = ${whole(N)} and M = ${whole(M)}: error ${share(total)}`,
    HEIGHT,
    cut(46, DECADES[1], `error against M, trained at N = ${whole(N)}`, (m) => terms(state, N, m).total, M, pays, `M = ${number(pays)}`),
    cut(188, DECADES[0], `error against N, tested at M = ${whole(M)}`, (n) => terms(state, n, M).total, N, best, `least at N = ${whole(best)}`),
    words(0, 324, "The three terms of the theorem", { "font-weight": 600 }),
    [0, 1, 2].map(term)
  );
}
var LENGTHS = (decades) => [...new Set(Array.from({ length: 10 * decades + 1 }, (_, i) => Math.round(10 ** (i / 10))))];
function lengths(trait, label, decades) {
  const values = LENGTHS(decades), distance = (length) => (value) => Math.abs(Math.log(value / length));
  const nearest = (length) => values.map(distance(length)).reduce((best, gap, i, gaps) => gap < gaps[best] ? i : best, 0);
  return slider(trait, label, [0, values.length - 1, 1], whole, (i) => values[i], nearest);
}
var error_law_default = explorable({
  question: "How long must prompts be, in training and at the test?",
  hint: "One linear attention layer at the optimum of its training, tasks without noise. Errors are exact means over tasks and prompts, as shares of the error of predicting 0.",
  traits: ["training_length", "prompt_length", "noise", "eigenvalues"],
  sliders: [lengths("training_length", "N in training", DECADES[0]), lengths("prompt_length", "M at the test", DECADES[1]), slider("noise", "test noise", [0, 2, 0.1], (x) => fixed(x, 1))],
  panels: (state) => [map(state), cuts(state)],
  describe
});
export {
  error_law_default as default
};
