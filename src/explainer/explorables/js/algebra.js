// Vectors are arrays, a matrix is an array of rows, rows are examples.

export function dot(a, b) {
  let sum = 0; // a plain loop: one curve of random features takes 200,000 of these
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
export const add = (a, b) => a.map((a_i, i) => a_i + b[i]);
export const subtract = (a, b) => a.map((a_i, i) => a_i - b[i]);
export const scale = (factor, a) => a.map((a_i) => factor * a_i);
export const sum = (a) => a.reduce((total, a_i) => total + a_i, 0);
export const mean = (a) => sum(a) / a.length;

export function weightedSum(weights, rows) {
  const total = rows[0].map(() => 0);
  for (let i = 0; i < rows.length; i++) for (let j = 0; j < total.length; j++) total[j] += weights[i] * rows[i][j];
  return total;
}

export function softmax(logits) {
  const largest = Math.max(...logits), powers = logits.map((l) => Math.exp(l - largest));
  return scale(1 / sum(powers), powers);
}

// sum_i v_i (k_i . q), no softmax: the same numbers as explainer.theory.duality.linear_attention
export const linearAttention = (values, keys, query) => weightedSum(keys.map((key) => dot(key, query)), values);

export const matvec = (W, x) => W.map((row) => dot(row, x));
export const outer = (a, b) => a.map((a_i) => scale(a_i, b));
export const addMatrices = (A, B) => A.map((row, i) => add(row, B[i]));
