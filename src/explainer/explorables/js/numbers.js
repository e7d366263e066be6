// Numbers and results, as they are read.

export const MINUS = "\u2212";

export function fixed(number, digits = 2, plus = "") {
  const size = Math.abs(number).toFixed(digits);
  return (Number(size) === 0 ? "" : number < 0 ? MINUS : plus) + size;
}

export const vector = (a, digits = 2) => `(${a.map((a_i) => fixed(a_i, digits)).join(", ")})`;
export const whole = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

export function agreement(a, b) {
  const gap = Math.max(...a.map((a_i, i) => Math.abs(a_i - b[i])));
  const size = Math.max(1, ...a.map(Math.abs));
  if (gap === 0) return "They are equal to the last bit.";
  if (gap < 1e-13 * size) return `They are equal: the ${gap.toExponential(0).replace("-", MINUS)} between them is floating-point rounding.`;
  return `They differ by ${gap.toExponential(1).replace("-", MINUS)}.`;
}
