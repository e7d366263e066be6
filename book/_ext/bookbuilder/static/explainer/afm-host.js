(() => {
// Mounts anywidget front-end modules on a static page: no kernel, no RequireJS, no other host.
// It reads the standard tags that myst-nb writes; a classic script, because module scripts do not load from file://.
const STATE = "application/vnd.jupyter.widget-state+json", VIEW = "application/vnd.jupyter.widget-view+json";
const models = new Map(), modules = new Map(), styles = new Set();

class Model {
  #state; #listeners = new Map();
  constructor(state) { this.#state = state; }
  get(name) { return this.#state[name]; }
  set(name, value) {
    if (typeof name === "object") { for (const n in name) this.set(n, name[n]); return; }
    if (this.#state[name] === value) return;
    this.#state[name] = value;
    this.#emit(`change:${name}`, value);
    this.#emit("change");
  }
  save_changes() {}
  send() {}
  on(events, listener) {
    for (const event of events.split(/\s+/)) (this.#listeners.get(event) ?? this.#listeners.set(event, new Set()).get(event)).add(listener);
  }
  off(event, listener) {
    if (event == null) this.#listeners.clear();
    else if (listener == null) this.#listeners.delete(event);
    else this.#listeners.get(event)?.delete(listener);
  }
  #emit(event, ...values) { for (const f of [...(this.#listeners.get(event) ?? [])]) f({ name: event }, ...values); }
}

function revive(model) { // binary traits arrive base64-coded
  for (const { path, data } of model.buffers ?? []) {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    path.slice(0, -1).reduce((object, key) => object[key], model.state)[path.at(-1)] = new DataView(bytes.buffer);
  }
  return model.state;
}

function load(source) {
  if (!modules.has(source)) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    modules.set(source, import(url).finally(() => URL.revokeObjectURL(url)));
  }
  return modules.get(source);
}

async function mount(holder) {
  if (holder.dataset.mounting) return;
  holder.dataset.mounting = "1";
  const entry = models.get(holder.dataset.model), { state, model } = entry;
  if (state._css && !styles.has(state._css)) {
    styles.add(state._css);
    document.head.append(Object.assign(document.createElement("style"), { textContent: state._css }));
  }
  let widget = (await load(state._esm)).default;
  if (typeof widget === "function") widget = await widget();
  entry.ready ??= Promise.resolve(widget.initialize?.({ model }));
  await entry.ready;
  const el = document.createElement("div");
  el.className = "xp-view";
  await widget.render?.({ model, el });
  holder.replaceChildren(el);
  holder.dataset.ready = "1";
}

function attempt(holder) {
  mount(holder).catch((error) => { console.error(error); }); // the still picture stays
}

function start() {
  for (const script of document.querySelectorAll(`script[type="${STATE}"]`))
    for (const [id, model] of Object.entries(JSON.parse(script.textContent).state))
      if (model.model_module === "anywidget") { const state = revive(model); models.set(id, { state, model: new Model(state) }); }
  const holders = [];
  for (const script of document.querySelectorAll(`script[type="${VIEW}"]`)) {
    const id = JSON.parse(script.textContent).model_id, holder = script.closest(".xp-widget");
    if (models.has(id) && holder) { holder.dataset.model = id; holders.push(holder); }
  }
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { observer.unobserve(entry.target); attempt(entry.target); }
  }, { rootMargin: "400px" });
  holders.forEach((holder) => observer.observe(holder));
  addEventListener("beforeprint", () => holders.forEach(attempt));
}
document.readyState === "loading" ? addEventListener("DOMContentLoaded", start) : start();
})();
