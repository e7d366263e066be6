// How an explorable lives in a page: `explorable` makes of a view what anywidget and the page's host mount. All state is
// the model's. A view has
//   question, hint: what it asks, and what can be done;
//   traits: the names of all that its drawing depends on;
//   panels(state), describe(state): the drawing, and its result in words, which only a screen reader speaks;
//   printed: what a still shows of the state that a reader opens only step by step;
//   sliders: see `slider`;
//   lists(state): [trait, label, [value, text, whether it is disabled]] for each trait that is chosen from a list;
//   handles(state): { panel, label, plane, at, move, horizontal } for each point that is dragged;
//   answers(state): [name, number] for each result below the panels that they do not show;
//   extend(root, state, read, change, model): adds what no other view has, and returns what brings that up to date with a state.

import { add, scale } from "./algebra.js";
import { WIDTH, compose, panelSvg } from "./drawing.js";
import { fixed, vector } from "./numbers.js";

export const explorable = (view) => {
  const printed = (state) => ({ ...state, ...view.printed }), describe = (state) => view.describe(printed(state));
  return { render: (context) => mount({ ...PLAIN, ...view }, context), still: (state) => compose(view.panels(printed(state)), describe(state)), describe };
};

const none = () => [];
const PLAIN = { sliders: [], lists: none, handles: none, answers: none, extend() {} };

export function element(name, properties, ...children) {
  const { attributes = {}, ...rest } = properties;
  const node = Object.assign(document.createElement(name), rest);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  node.append(...children);
  return node;
}

const ofTheBrowser = (event) => event.altKey || event.ctrlKey || event.metaKey; // Alt+Left goes back, a screen reader has Ctrl+Option
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
    const away = (other) => {
      const { left, top, width, height } = other.getBoundingClientRect();
      return Math.hypot(event.clientX - left - width / 2, event.clientY - top - height / 2);
    };
    const [nearest] = [...node.parentElement.querySelectorAll(".explorable-handle")].sort((a, b) => away(a) - away(b));
    if (nearest !== node) return nearest.dispatchEvent(new PointerEvent(event.type, event)); // of handles that overlap
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
    const { at, plane: { x } } = item(), direction = ARROWS[event.key], end = { Home: x[0], End: x[1] }[event.key];
    if (ofTheBrowser(event) || (!direction && end === undefined)) return;
    event.preventDefault();
    put(item(), direction ? add(at, scale(event.shiftKey ? BIG_STEP : STEP, direction)) : [end, at[1]]);
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

// A control of the reader: its node, and what brings it up to date with a state
function sliderControl({ trait, label, range: [min, max, step], format, fromInput, toInput }, change, signal) {
  const input = element("input", { type: "range", min, max, step });
  const value = element("span", { className: "explorable-number", attributes: { "aria-hidden": "true" } });
  // a press that moves nothing chooses what the thumb shows
  for (const type of ["input", "pointerup"]) input.addEventListener(type, () => change({ [trait]: fromInput(+input.value) }), { signal });
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
    select.replaceChildren(...options.map(([value, textContent, disabled]) =>
      element("option", { textContent, disabled: !!disabled, selected: value === state[trait] })));
  };
  return { node: element("label", {}, element("span", { textContent: label }), select), update };
}

// A drawing with the handles that lie on it
function panelFrame(itemOf, put, signal) {
  const drawing = element("div", {}), node = element("div", { className: "explorable-panel" }, drawing), handles = [];
  const update = (panel, items) => {
    drawing.innerHTML = panelSvg(panel);
    handles.splice(items.length).forEach((handle) => handle.remove());
    items.forEach((item, k) => {
      if (!handles[k]) node.append(handles[k] = handleElement(() => itemOf(k), put, signal));
      placeHandle(handles[k], item, panel.height);
    });
  };
  return { node, update };
}

function answerLine([name]) {
  const number = element("span", { className: "explorable-number" });
  return { node: element("div", {}, element("span", { textContent: name }), number), update: ([, text]) => { number.textContent = text; } };
}

function mount(view, { model, el }) {
  const stop = new AbortController(), { signal } = stop;
  const read = () => Object.fromEntries(view.traits.map((name) => [name, model.get(name)]));
  const change = (patch) => {
    for (const name in patch) model.set(name, patch[name]);
    model.save_changes();
  };
  const put = ({ plane: p, move }, point) =>
    change(move([p.x, p.y].map(([low, high], k) => Math.min(high, Math.max(low, Math.round(point[k] * 100) / 100)))));
  const start = read(), itemsOn = (panel, state = read()) => view.handles(state).filter((item) => item.panel === panel);

  const controls = [
    ...view.lists(start).map(([trait, label], i) => listControl(trait, label, (state) => view.lists(state)[i][2], change, signal)),
    ...view.sliders.map((each) => sliderControl(each, change, signal)),
  ];
  const frames = view.panels(start).map((_, i) => panelFrame((k) => itemsOn(i)[k], put, signal));
  const answers = view.answers(start).map(answerLine);
  const reset = element("button", { type: "button", textContent: "Reset" });
  reset.addEventListener("click", () => change(start), { signal });
  const status = element("p", { className: "explorable-status", attributes: { role: "status", "aria-live": "polite" } });
  const nodes = (parts) => parts.map((part) => part.node);
  const root = element("div", { className: "explorable", attributes: { role: "group", "aria-label": view.question } },
    element("div", { className: "explorable-controls" }, ...nodes(controls), reset),
    element("div", { className: "explorable-panels" }, ...nodes(frames)),
    element("p", { className: "explorable-hint", textContent: view.hint }),
    element("div", { className: "explorable-answers" }, ...nodes(answers)), status);
  root.addEventListener("keydown", (event) => { if (!ofTheBrowser(event)) event.stopPropagation(); }, { signal }); // JupyterLab takes the arrow keys otherwise
  const extended = view.extend(root, start, read, change, model);

  let timer;
  const update = () => {
    const state = read();
    view.panels(state).forEach((panel, i) => frames[i].update(panel, itemsOn(i, state)));
    controls.forEach((control) => control.update(state));
    view.answers(state).forEach((answer, i) => answers[i].update(answer));
    extended?.(state);
    clearTimeout(timer);
    timer = setTimeout(() => { status.textContent = view.describe(read()); }, QUIET); // not `state`: an extension may have changed it
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

const same = (value) => value;
export const slider = (trait, label, range, format = fixed, fromInput = same, toInput = same) =>
  ({ trait, label, range, format, fromInput, toInput });
