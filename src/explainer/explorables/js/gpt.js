// The forward pass of explainer.models.in_context_gpt: GPT-2 on regression prompts. Vectors are arrays, a matrix is an array of
// rows, a layer computes x W + b.

// { name: matrix } from whole numbers, in units of 1 / grid, and { name: [offset, rows, columns] }, counted in numbers.
export function parseWeights({ data, index, grid }) {
  const row = (first, columns) => Float64Array.from({ length: columns }, (_, j) => data[first + j] / grid);
  return Object.fromEntries(Object.entries(index).map(([name, [offset, rows, columns]]) =>
    [name, Array.from({ length: rows }, (_, i) => row(offset + i * columns, columns))]));
}

const gelu = (x) => (x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)))) / 2;

// Plain loops from here on: a line of predictions takes two million products.

function affine(x, [matrix, [bias]]) {
  const out = bias.slice();
  for (let i = 0; i < x.length; i++) {
    const row = matrix[i], x_i = x[i];
    for (let j = 0; j < out.length; j++) out[j] += x_i * row[j];
  }
  return out;
}

function layerNorm(x, [[gain], [bias]], epsilon) {
  let mean = 0, variance = 0;
  for (const x_i of x) mean += x_i / x.length;
  for (const x_i of x) variance += (x_i - mean) ** 2 / x.length;
  const size = Math.sqrt(variance + epsilon), out = bias.slice();
  for (let i = 0; i < x.length; i++) out[i] += ((x[i] - mean) / size) * gain[i];
  return out;
}

// sum_t softmax_t(q . k_t / sqrt(size)) v_t, one head after another.
function attend(query, keys, values, heads) {
  const size = query.length / heads, out = new Float64Array(query.length), weights = new Float64Array(keys.length);
  for (let from = 0, to = size; from < query.length; from = to, to += size) {
    let largest = -Infinity, total = 0;
    for (let t = 0; t < keys.length; t++) {
      const key = keys[t];
      let sum = 0;
      for (let j = from; j < to; j++) sum += query[j] * key[j];
      weights[t] = sum / Math.sqrt(size);
      largest = Math.max(largest, weights[t]);
    }
    for (let t = 0; t < keys.length; t++) total += weights[t] = Math.exp(weights[t] - largest);
    for (let t = 0; t < keys.length; t++) {
      const weight = weights[t] / total, value = values[t];
      for (let j = from; j < to; j++) out[j] += weight * value[j];
    }
  }
  return out;
}

function plus(a, b) {
  for (let i = 0; i < a.length; i++) a[i] += b[i];
  return a;
}

// Weight and bias of every part, and in each layer room for the keys and values of the tokens that it has read.
function network(weights, config) {
  const part = (name) => [weights[`${name}.weight`], weights[`${name}.bias`]];
  const layer = (_, l) => {
    const names = ["ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"];
    return { parts: names.map((name) => part(`h.${l}.${name}`)), keys: [], values: [] };
  };
  const [readIn, last, readOut] = ["read_in", "ln_f", "read_out"].map(part);
  return { ...config, readIn, last, readOut, positions: weights["wpe.weight"], layers: Array.from({ length: config.layers }, layer) };
}

// The prediction at a token; its keys and values stay in the layers.
function readToken({ readIn, positions, layers, last, readOut, heads, epsilon }, token) {
  const x = plus(affine(token, readIn), positions[layers[0].keys.length]), d = x.length;
  for (const { parts: [norm, project, merge, innerNorm, widen, narrow], keys, values } of layers) {
    const projected = affine(layerNorm(x, norm, epsilon), project);
    keys.push(projected.subarray(d, 2 * d));
    values.push(projected.subarray(2 * d));
    plus(x, affine(attend(projected.subarray(0, d), keys, values, heads), merge));
    plus(x, affine(affine(layerNorm(x, innerNorm, epsilon), widen).map(gelu), narrow));
  }
  return affine(layerNorm(x, last, epsilon), readOut)[0];
}

// Predictions for queries x, each on its own after the examples [x, y], of which there are at most config.examples.
export function gptPredictions(weights, config, examples, queries) {
  const gpt = network(weights, config);
  for (const [x, y] of examples) {
    readToken(gpt, x);
    readToken(gpt, x.map((_, i) => (i ? 0 : y)));
  }
  return queries.map((x) => {
    const prediction = readToken(gpt, x);
    for (const { keys, values } of gpt.layers) { // the next query does not see this one
      keys.pop();
      values.pop();
    }
    return prediction;
  });
}
