(() => {
// Mounts the explorables, which are front-end modules of anywidget, on a static page: no kernel, no RequireJS, no other host.
// It reads the standard tags that myst-nb writes; a classic script, because module scripts do not load from file://.
const STATE = "application/vnd.jupyter.widget-state+json", VIEW = "application/vnd.jupyter.widget-view+json";
const models = new Map(), modules = new Map(), styles = new Set();

class Model { // as much of anywidget's as an explorable uses
  #state; #listeners = new Map();
  constructor(state) { this.#state = state; }
  get(name) { return this.#state[name]; }
  set(name, value) {
    if (this.#state[name] === value) return;
    this.#state[name] = value;
    for (const listener of [...(this.#listeners.get(`change:${name}`) ?? [])]) listener();
  }
  save_changes() {}
  send() {}
  on(event, listener) { (this.#listeners.get(event) ?? this.#listeners.set(event, new Set()).get(event)).add(listener); }
  off(event, listener) { this.#listeners.get(event)?.delete(listener); }
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
  const { state, model } = models.get(holder.dataset.model);
  if (state._css && !styles.has(state._css)) {
    styles.add(state._css);
    document.head.append(Object.assign(document.createElement("style"), { textContent: state._css }));
  }
  const widget = (await load(state._esm)).default;
  const el = document.createElement("div");
  el.className = "xp-view";
  await widget.render({ model, el });
  holder.replaceChildren(el);
  holder.dataset.ready = "1";
}

function attempt(holder) {
  mount(holder).catch((error) => { // the still picture stays
    console.error(error);
    const caption = holder.querySelector("figcaption");
    if (caption) caption.textContent = "This figure cannot start in this browser; the picture shows its starting state.";
  });
}

function start() {
  for (const script of document.querySelectorAll(`script[type="${STATE}"]`))
    for (const [id, { model_module, state }] of Object.entries(JSON.parse(script.textContent).state))
      if (model_module === "anywidget") models.set(id, { state, model: new Model(state) });
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
