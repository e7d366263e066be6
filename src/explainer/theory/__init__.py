"""Pure functions of tensors: what the papers prove, in float64 where it matters."""
