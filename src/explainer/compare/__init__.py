"""The comparison of zero-shot, in-context and fine-tuned predictions, and controls that could refute its reading."""
