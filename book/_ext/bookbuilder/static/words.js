// The words that explorables write while a reader uses them, in the language of the page. TABLE has them, with {0}, {1}
// for their numbers, as bookbuilder.translation does.
(() => {
  const NUMBER = /(?<![\w\-.{])[-+\u2212]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?!\w)/g;
  const SPOKEN = ["aria-label", "aria-valuetext", "title", "placeholder"];

  function said(text) {
    const numbers = [];
    const key = text.trim().replace(/\s+/g, " ").replace(NUMBER, (number) => `{${numbers.push(number) - 1}}`);
    return Object.hasOwn(TABLE, key) ? TABLE[key].replace(/\{(\d+)\}/g, (_, i) => numbers[i]) : text;
  }

  function translate(node) {
    if (node.nodeType === Node.TEXT_NODE) {
      const words = said(node.data);
      if (words !== node.data) node.data = words;
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || ["SCRIPT", "STYLE", "TEXTAREA"].includes(node.nodeName)) return;
    for (const name of SPOKEN) {
      const given = node.getAttribute(name);
      if (given && said(given) !== given) node.setAttribute(name, said(given));
    }
    node.childNodes.forEach(translate);
  }

  const observer = new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      if (type === "childList") addedNodes.forEach(translate);
      else translate(target);
    }
  });
  const how = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: SPOKEN };
  for (const place of document.querySelectorAll(".xp-widget")) observer.observe(place, how);
})();
