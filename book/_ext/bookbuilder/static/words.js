// The words that explorables write while a reader uses them, in the language of the page. A key of TABLE has {0}, {1} and so on for
// numbers, {a}, {b} for words that are said in turn, and {A}, {B} for words that stay. A text that no key fits is said part by part.
const sayFrom = (table) => {
  const WORD = /[A-Za-z]{2}/, NUMBER = /(?<![\w\-.{])[-+\u2212]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?!\w)/g, PLACE = /\{(\d+|[A-Za-z])\}/;
  const SENTENCES = /(?<=[.?!]) (?![^“]*”)/, SPLITS = [[/; (?![^“]*”)/, "；"], [/: (?![^“]*”)/, "："]], ENDS = { ".": "。", "?": "？", "!": "！" };
  const SPACE = / (?=[，。：；？！（）])|(?<=[，。：；？！（）]) |(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff“])/g;
  const fill = (text, held) => text.split(PLACE).map((part, i) => (i % 2 ? held(part) : part)).join("");
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const literal = (key) => key.split(PLACE).filter((_, i) => i % 2 === 0).join("").length;

  function patternOf(key) {
    const parts = key.split(PLACE), names = parts.filter((_, i) => i % 2), hold = (name) => (/\d/.test(name) ? "(\\{\\d+\\})" : "(.+?)");
    return { names, form: new RegExp(`^${parts.map((part, i) => (i % 2 ? hold(part) : escape(part))).join("")}$`), other: table[key] };
  }
  const patterns = Object.keys(table).filter((key) => /\{[A-Za-z]\}/.test(key)).sort((a, b) => literal(b) - literal(a)).map(patternOf);

  function say(given) {
    if (!WORD.test(given)) return null;
    const numbers = [], text = given.trim().replace(/\s+/g, " ");
    const key = text.replace(NUMBER, (number) => `{${numbers.push(number) - 1}}`);
    if (Object.hasOwn(table, key)) return fill(table[key], (i) => numbers[i]);
    return composed(text, () => phrase(key, (part) => fill(part, (i) => numbers[i])));
  }

  function phrase(key, withNumbers) {
    for (const { names, form, other } of patterns) {
      const found = key.match(form);
      if (!found) continue;
      const held = Object.fromEntries(names.map((name, i) => [name, withNumbers(found[i + 1])]));
      return fill(other, (name) => (/[a-z]/.test(name) ? say(held[name]) ?? held[name] : held[name])).replace(SPACE, "");
    }
    return null;
  }

  function composed(text, asPhrase) {
    const sentences = text.split(SENTENCES), end = ENDS[text.at(-1)], all = joined(sentences, "", true);
    if (all) return all;
    const said = end ? say(text.slice(0, -1)) : null;
    if (said) return said + end;
    return SPLITS.reduce((found, [between, joint]) => found ?? joined(text.split(between), joint), asPhrase() ?? joined(sentences, ""));
  }

  function joined(parts, joint, whole = false) {
    const said = parts.length > 1 ? parts.map(say) : [], left = parts.filter((_, i) => !said[i]);
    const enough = said.some(Boolean) && !(whole && left.some((part) => WORD.test(part)));
    return enough ? parts.map((part, i) => said[i] ?? part).join(joint) : null;
  }

  return say;
};

(() => {
  const SPOKEN = ["aria-label", "aria-valuetext", "title", "placeholder"], say = sayFrom(TABLE);

  function translate(node) {
    if (node.nodeType === Node.TEXT_NODE) {
      const words = say(node.data);
      if (words !== null && words !== node.data) node.data = words;
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || ["SCRIPT", "STYLE"].includes(node.nodeName)) return;
    for (const name of SPOKEN) {
      const given = node.getAttribute(name), words = given && say(given);
      if (words && words !== given) node.setAttribute(name, words);
    }
    if (node.nodeName !== "TEXTAREA") node.childNodes.forEach(translate); // what a reader wrote stays
  }

  const observer = new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      if (type === "childList") addedNodes.forEach(translate);
      else translate(target);
    }
  });
  const how = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: SPOKEN };
  for (const place of document.querySelectorAll(".xp-widget")) {
    observer.observe(place, how);
    translate(place); // a quick explorable is here before this script
  }
})();
