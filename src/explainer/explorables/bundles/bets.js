// Made of js/bets.js by "make explorables": change that file, not this one.

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
var DIAMOND = "M0-6L6 0L0 6L-6 0Z";
var marker = (outline, x, y, solid) => group(
  { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
  path(outline, { class: solid ? "" : "explorable-paper", fill: solid ? "currentColor" : "none", "stroke-width": 1.5 })
);
var SPAN = [-2, 2];
var LIMIT = SPAN[1];
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

// bets.js
var NAME = "explainer.bets";
var within = ([mean, low, high], digits = 2) => `${fixed(mean, digits)} [${fixed(low, digits)}, ${fixed(high, digits)}]`;
var millions = (tokens) => `${fixed(tokens / 1e6)} million tokens`;
var question = (about, where, title, ask, told, choices) => ({ about, where, title, ask, told, choices });
var QUESTIONS = {
  agreement: question(
    "comparison",
    10,
    "Context and training",
    "How similar is the change by a context to the change by a training on the same examples (cosine)?",
    (its) => `${within(its.agreement)}; ${its.seeds} seeds.`
  ),
  floor: question(
    "comparison",
    10,
    "Made-up words, the floor",
    "How similar is the context to a training on made-up words, which teach no task (cosine)?",
    (its) => `${within(its.floor)}; ${its.seeds} seeds. If the context has the made-up words instead: ${within(its.floor_context)}.`
  ),
  ceiling: question(
    "comparison",
    10,
    "Two trainings, the ceiling",
    "How similar are two trainings on different examples of the same task (cosine)?",
    (its) => `${within(its.ceiling)}; ${its.seeds} seeds.`
  ),
  others: question(
    "comparison",
    11,
    "Other examples of the task",
    "If the training gets other examples of the same task, what does its similarity to the context do?",
    ({ agreement, others, seeds }) => `${within(agreement)} on the same examples, ${within(others.other)} on others: a change of ${within(others.change, 3)}; ${seeds} seeds.`,
    { floor: "it falls to the floor", half: "it falls about half way", stays: "it stays" }
  ),
  lowest: question(
    "momentum",
    14,
    "The lowest loss",
    "Which small language models end with the lowest loss on text that they have not seen (nats per token)?",
    ({ sets, lowest }) => `${lowest.is.length > 1 ? "Their losses cannot be told apart. " : ""}After ${millions(lowest.tokens)} momentum is ${within(lowest.momentum, 3)} below plain attention, the previous value ${within(lowest.previous, 3)} below plain and ${within(lowest.between, 3)} below momentum; ${sets} sets.`,
    { plain: "plain attention", momentum: "momentum: a sum of earlier values", previous: "the previous value alone" }
  ),
  lasting: question(
    "momentum",
    14,
    "The gain of momentum",
    "As training goes on, what does the lead of momentum over plain attention do (nats per token)?",
    ({ sets, lasting }) => `The lead is ${lasting.gains.map(([at, ...gain]) => `${within(gain)} after ${millions(at)}`).join(", ")}; ${sets} sets.`,
    { grows: "it grows", peaks: "it peaks, then shrinks", stays: "it stays as it is" }
  )
};
var ALL = Object.keys(QUESTIONS);
var LISTED = ALL.filter((key) => QUESTIONS[key].choices);
var NUMBERS = ALL.filter((key) => !QUESTIONS[key].choices);
var FIRST = { comparison: 8, momentum: 13 };
var asked = ({ about }) => ALL.filter((key) => about === "all" || QUESTIONS[key].about === about);
var none2 = (bet) => bet == null;
var opened = ({ about, shown }, key) => about === "all" || shown.includes(key);
var named = (key, value) => QUESTIONS[key].choices ? `“${QUESTIONS[key].choices[value]}”` : fixed(value);
var result = ({ results }, key) => QUESTIONS[key].choices ? results[key].is.map((each) => named(key, each)).join(" and ") : fixed(results[key][0]);
var admits = (key, value) => QUESTIONS[key].choices ? Object.hasOwn(QUESTIONS[key].choices, value) : typeof value === "number" && value >= 0 && value <= 1;
function judged({ results, ...state }, key) {
  if (QUESTIONS[key].choices) return !results[key].is.includes(state[key]) ? "not what was found" : results[key].is.length > 1 ? "one of those found" : "as found";
  const away = state[key] - results[key][0];
  return Math.abs(away) < 5e-3 ? "as found" : `${fixed(Math.abs(away))} ${away > 0 ? "above" : "below"} the result`;
}
function said(state, key) {
  const { where, about, told, choices } = QUESTIONS[key], open = opened(state, key);
  const mine = none2(state[key]) ? state.about === "all" ? `Your bet: none yet; the end of chapter ${FIRST[about]} asks.` : "No bet yet." : `Your bet: ${named(key, state[key])}${open ? `, ${judged(state, key)}` : ""}.`;
  const more = open ? `Result: ${choices ? `${result(state, key)}. ` : ""}${told(state.results)}` : `Noted; the answer is in chapter ${where}.`;
  return open || !none2(state[key]) ? [mine, more] : [mine];
}
var describe = (state) => asked(state).map((key) => {
  const { title, ask } = QUESTIONS[key], mine = none2(state[key]) ? "no bet yet" : `your bet ${named(key, state[key])}`;
  return opened(state, key) ? `${title}: ${mine}, result ${result(state, key)}.` : none2(state[key]) ? `${ask} No bet yet.` : `${title}: ${mine}.`;
}).join(" ");
var wrap = (text, most = 46) => text.split(" ").reduce(([last, ...before], word) => last && `${last} ${word}`.length <= most ? [`${last} ${word}`, ...before] : [word, ...last ? [last, ...before] : []], []).reverse();
var DOT = "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z";
var TOP = 92;
var LEADING = 15;
var ROW = 24;
var X = (value) => 22 + 276 * value;
var middle = { "text-anchor": "middle", "font-size": 12 };
var mark = (x, y, solid) => group(colour(solid ? "key" : "value"), marker(solid ? DOT : DIAMOND, x, y, solid));
function numberLine(state, key) {
  const bet = state[key], [found] = state.results[key], y = TOP + 30;
  const at = (value, solid, text) => mark(X(value), y, solid) + group(
    colour(solid ? "key" : "value"),
    words(Math.min(WIDTH - 46, Math.max(46, X(value))), y + (solid ? 21 : -14), `${text} ${fixed(value)}`, middle)
  );
  return [
    line(X(0), y, X(1), y),
    [0, 0.25, 0.5, 0.75, 1].map((tick) => line(X(tick), y - 4, X(tick), y + 4, { "stroke-opacity": 0.6 })),
    words(8, y + 4, "0", middle),
    words(WIDTH - 8, y + 4, "1", middle),
    none2(bet) ? "" : at(bet, false, "your bet"),
    opened(state, key) ? at(found, true, "result") : ""
  ];
}
var rows = (state, key) => Object.entries(QUESTIONS[key].choices).map(([choice, text], i) => {
  const y = TOP + ROW * i, mine = state[key] === choice, its = opened(state, key) && state.results[key].is.includes(choice);
  return group(
    { "data-key": key, "data-choice": choice, ...state.about === "all" ? {} : { style: "cursor:pointer" } },
    rect(1, y - 16, WIDTH - 2, ROW - 2, { rx: 5, "fill-opacity": mine ? 0.08 : 0, stroke: "currentColor", "stroke-opacity": mine ? 0.8 : 0.25 }),
    mine ? mark(16, y - 5, false) : "",
    its ? mark(34, y - 5, true) : "",
    words(48, y, text, { "font-size": 12, ...its ? { "font-weight": 600 } : {} })
  );
});
function panels(state) {
  const small = (lines, top) => lines.map((text, i) => words(0, top + LEADING * i, text, { "font-size": 12 }));
  const below = asked(state).map((key) => said(state, key).flatMap((text) => wrap(text)));
  const height = TOP + 70 + LEADING * Math.max(...below.map((lines) => lines.length));
  return asked(state).map((key, i) => panel(
    QUESTIONS[key].title,
    height,
    small(wrap(QUESTIONS[key].ask), 34),
    (QUESTIONS[key].choices ? rows : numberLine)(state, key),
    small(below[i], TOP + 78)
  ));
}
var kept = () => {
  try {
    return { ...JSON.parse(localStorage.getItem(NAME)) };
  } catch {
    return null;
  }
};
function keep(state) {
  const mine = Object.fromEntries(asked(state).map((key) => [key, state[key] ?? void 0]));
  try {
    localStorage.setItem(NAME, JSON.stringify({ ...kept(), ...mine }));
  } catch {
    return false;
  }
  return true;
}
var HINT = "◇ your bet. ● the result; its 95 % interval stands below. ";
var COSINE = "Cosine: 1 if two changes of the attention outputs have one direction, 0 if they are orthogonal. ";
var KEPT = "Bets stay in this browser; chapter 16 shows them.";
var LOST = "This browser keeps nothing here: bets last as long as this page.";
function extend(root, start, read, change) {
  const keys = asked(start), asks = start.about !== "all", frames = root.querySelectorAll(".explorable-panel");
  const controls = root.querySelector(".explorable-controls"), [forget] = controls.querySelectorAll("button"), show = element("button", { type: "button" });
  controls.querySelectorAll("label").forEach((label, i) => {
    const key = [...LISTED, ...NUMBERS][i], frame = frames[keys.indexOf(key)];
    label.remove();
    label.querySelector("input, select").setAttribute("aria-label", `your bet: ${QUESTIONS[key].ask}`);
    label.querySelector("span + select")?.previousSibling.remove();
    if (asks && frame) frame.append(element("div", { className: "explorable-controls", style: "width:0;min-width:100%" }, label));
  });
  root.querySelector(".explorable-panels").after(controls);
  if (asks) controls.prepend(show);
  forget.textContent = "Forget my bets";
  const bets = (state) => keys.filter((key) => !none2(state[key])), closed = (state) => bets(state).some((key) => !opened(state, key));
  forget.addEventListener("click", () => change({ ...Object.fromEntries(keys.map((key) => [key, null])), shown: [] }));
  show.addEventListener("click", () => change({ shown: closed(read()) ? bets(read()) : [] }));
  root.addEventListener("click", ({ target }) => {
    const { key, choice } = target.closest?.("[data-choice]")?.dataset ?? {};
    if (key && asks) change({ [key]: choice });
  });
  let keeps, recalling = false;
  const recall = (otherwise, found = kept()) => {
    recalling = true;
    if (found) change(Object.fromEntries(keys.map((key) => [key, admits(key, found[key]) ? found[key] : otherwise[key] ?? null])));
    recalling = false;
  };
  recall(start);
  for (const event of ["pageshow", "storage"])
    addEventListener(event, function again() {
      root.isConnected ? recall({}) : removeEventListener(event, again);
    });
  return (state) => {
    if (!recalling) keeps = keep(state);
    root.querySelector(".explorable-hint").textContent = HINT + (state.about === "momentum" ? "" : COSINE) + (keeps ? KEPT : LOST);
    show.hidden = !bets(state).length;
    show.textContent = closed(state) ? "Show the results now" : "Hide the results";
  };
}
var bets_default = explorable({
  question: "What do you expect, and what was found?",
  hint: HINT,
  panels,
  describe,
  extend,
  traits: ["about", ...ALL, "shown", "results"],
  lists: () => LISTED.map((key) => [key, "your bet", [[null, "no bet yet"], ...Object.entries(QUESTIONS[key].choices)]]),
  sliders: NUMBERS.map((key) => slider(key, "your bet", [0, 1, 0.01], (bet) => none2(bet) ? "none yet" : fixed(bet), Number, (bet) => bet ?? 0.5))
});
export {
  bets_default as default
};
