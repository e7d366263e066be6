// What the drawings of the model's answers share: texts of any script that fit, the names of tokens, and intervals.

const Z = 1.959964; // the normal distribution has 95 % between -Z and Z

// Wilson's interval of a share x / n
export function wilson(x, n) {
  const p = x / n, scale = 1 + Z * Z / n, centre = (p + (Z * Z) / (2 * n)) / scale, half = (Z * Math.sqrt((p * (1 - p) + (Z * Z) / (4 * n)) / n)) / scale;
  return [centre - half, centre + half];
}

// A text of a script that runs from right to left is isolated: it would carry away what stands beside it
const FROM_THE_RIGHT = /[\u0590-\u08ff\u202a-\u202e\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
export const isolated = (text) => (FROM_THE_RIGHT.test(text) ? `\u2068${text}\u2069` : text);

// A token as a reader writes it. Of a part of a character, which comes as hexadecimal bytes, `spoken` says that it is one.
const PART = /^(…)?((?:[0-9A-F]{2})+)(·*)(?: \((.+)\))?$/;
const partOf = (token) => { const found = PART.exec(token.trim()); return found && (found[1] || found[3]) ? found : null; };
export const hasParts = (tokens) => tokens.some(([token]) => partOf(token));
// Of tokens without letters each has a name of its own
const SIGNS = { " ": "␣", "\n": "⏎", "\t": "⇥" }, code = (c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
const blank = (token) => token === "\n" ? "end of line" : token === " " ? "a space" : /^ +$/.test(token) ? `${token.length} spaces` : `“${Array.from(token, (c) => SIGNS[c] ?? code(c)).join("")}”`;
export const named = (token) => partOf(token) ? isolated(token.trim()) : token.trim() ? `“${isolated(token.trim())}”` : blank(token);
export function spoken(token) {
  const [, rest, bytes, dots, whole] = partOf(token) ?? [], n = bytes?.length / 2;
  return !bytes ? named(token) : rest ? "the last bytes of a character" : `the first ${n > 1 ? `${n} ` : ""}of ${n + dots.length} bytes of ${whole ? `“${isolated(whole)}”` : "a character"}`;
}

// The width of a character in ems, as wide as common fonts without serifs have it
const emOf = (c) => (/[\u2068\u2069]/.test(c) ? 0 : /[ -~À-ɏ“”…→−×·]/.test(c) ? (/[ijlIft.,:;'|!()·]/.test(c) ? 0.42 : /[mwMW@%→]/.test(c) ? 1 : /[A-Z]/.test(c) ? 0.75 : 0.64) : FROM_THE_RIGHT.test(c) ? 0.64 : 1.2);
const charactersOf = (text) => Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
const widthOf = (text, size) => size * charactersOf(text).reduce((sum, c) => sum + emOf(c), 0);

// A text cut to what has room; a title keeps what stands after it
export function clip(text, room, size = 13) {
  const all = charactersOf(text);
  while (all.length && widthOf(`${all.join("")}…`, size) > room) all.pop();
  return widthOf(text, size) > room ? `${all.join("")}…` : text;
}
export const titled = (before, text, after) => `${before}${isolated(clip(text, 320 - widthOf(before + after, 14), 14))}${after}`; // bold: as if of 14
