"""Checks that readers run on their own answers: `exercises.linear_attention(attend)`."""

from explainer.exercises import (
    attention,
    behaviour,
    circuits,
    comparison,
    deep,
    dual_form,
    duality,
    linear_transformer,
    momentum,
)

_TABLES = attention, behaviour, circuits, comparison, deep, dual_form, duality, linear_transformer, momentum
EXERCISES = {name: exercise for table in _TABLES for name, exercise in table.EXERCISES.items()}
"""All exercises by name; each name is also a function of this module, its check."""

globals().update({name: exercise.function(name) for name, exercise in EXERCISES.items()})
