// The function of a state, with its last result remembered: one drawing asks for the same numbers several times.
// The traits named decide the result; what a reader drags beside them does not compute it again.
export function remember(traits, compute) {
  let last, result;
  return (state) => {
    const name = traits.map((trait) => state[trait]).join(" ");
    if (name !== last) [result, last] = [compute(state), name];
    return result;
  };
}
