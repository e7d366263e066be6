"""The published results as tables, and what they say together."""
