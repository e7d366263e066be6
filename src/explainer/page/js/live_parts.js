// What the drawings of the model's answers share: texts that fit, and intervals.

const Z = 1.959964; // the normal distribution has 95 % between -Z and Z

// Wilson's interval of a share x / n
export function wilson(x, n) {
  const p = x / n, scale = 1 + Z * Z / n, centre = (p + (Z * Z) / (2 * n)) / scale, half = (Z * Math.sqrt((p * (1 - p) + (Z * Z) / (4 * n)) / n)) / scale;
  return [centre - half, centre + half];
}

// The width of a character in ems, as wide as common fonts without serifs have it
const emOf = (c) => (/[ -~À-ɏ“”…→−×]/.test(c) ? (/[ijlIft.,:;'|!()]/.test(c) ? 0.42 : /[mwMW@%→]/.test(c) ? 1 : /[A-Z]/.test(c) ? 0.75 : 0.64) : 1.2);
const widthOf = (text, size) => size * [...text].reduce((sum, c) => sum + emOf(c), 0);

// A text cut to what has room; a title keeps what stands after it
export function clip(text, room, size = 13) {
  const all = [...text];
  while (all.length && widthOf(`${all.join("")}…`, size) > room) all.pop();
  return widthOf(text, size) > room ? `${all.join("")}…` : text;
}
export const titled = (before, text, after) => `${before}${clip(text, 320 - widthOf(before + after, 14), 14)}${after}`; // bold: as if of 14
