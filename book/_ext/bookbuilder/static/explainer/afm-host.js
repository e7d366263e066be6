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

// Whether a value is one that a reader can choose, by the JSON schema of its trait
const fits = (form, value) => form.enum ? form.enum.includes(value)
  : form.type === "array" ? Array.isArray(value) && value.length >= form.minItems && value.length <= form.maxItems
    && value.every((one, i) => fits(form.prefixItems?.[i] ?? form.items, one))
  : form.type === "string" ? typeof value === "string" && value.length <= form.maxLength
  : Number.isFinite(value) && !(value < form.minimum || value > form.maximum) && (form.type !== "integer" || Number.isInteger(value));

// What the address asks for: `?name={"trait": value}`. A trait that is not known (any more) is ignored; a value that is none of a
// reader's, or cannot be drawn, asks for nothing.
function asked(name, forms, state, still) {
  try {
    const all = Object.entries(JSON.parse(new URLSearchParams(location.search).get(name)) ?? {});
    const wanted = Object.fromEntries(all.filter(([trait]) => Object.hasOwn(forms, trait)));
    if (!Object.entries(wanted).every(([trait, value]) => fits(forms[trait], value))) return {};
    return /NaN|undefined|Infinity/.test(still({ ...state, ...wanted })) ? {} : wanted;
  } catch { return {}; }
}

async function mount(holder) {
  if (holder.dataset.mounting) return;
  holder.dataset.mounting = "1";
  const { state, model } = models.get(holder.dataset.model);
  if (state._css && !styles.has(state._css)) {
    styles.add(state._css);
    document.head.append(Object.assign(document.createElement("style"), { textContent: state._css }));
  }
  const module = await load(state._esm), forms = JSON.parse(holder.dataset.traits ?? "{}"), start = { ...state };
  const el = document.createElement("div"), draw = () => module.default.render({ model, el });
  el.className = "xp-view";
  const wanted = asked(holder.closest("figure")?.id.slice(4), forms, state, module.default.still), follows = "found" in start;
  // Answers that follow the other traits follow as they do when a reader chooses
  const choose = () => Object.entries(wanted).sort(([a], [b]) => (b === "task") - (a === "task")).forEach(([trait, value]) => model.set(trait, value));
  if (!follows) Object.assign(state, wanted);
  await Promise.resolve().then(draw).then(() => follows && choose()).catch(() => { el.replaceChildren(); Object.assign(state, start); return draw(); });
  for (const root of el.children) for (const said of ["role", "aria-label"]) root.removeAttribute(said); // its caption asks the question
  holder.replaceChildren(el);
  const changed = ([trait]) => JSON.stringify(state[trait]) !== JSON.stringify(start[trait]);
  holder.explorable = { still: () => module.default.still(state), changed: () => Object.entries(state).filter(([trait]) => trait in forms).filter(changed) };
  holder.dataset.ready = "1";
}

function attempt(holder) {
  mount(holder).catch((error) => { // the still picture stays
    console.error(error);
    const note = holder.querySelector(".xp-still");
    if (note) note.textContent = "This figure cannot start in this browser; the picture shows its starting state.";
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
