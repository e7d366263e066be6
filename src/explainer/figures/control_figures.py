"""The names of controls in figures."""

from collections.abc import Mapping

CONTROL_NAMES: Mapping[str, str] = {
    "none": "real comparison",
    "foreign-context": "context: foreign",
    "foreign-training": "FT: foreign",
    "flipped-context": "context: flipped",
    "flipped-training": "FT: flipped",
    "shuffled-context": "context: shuffled",
    "shuffled-training": "FT: shuffled",
    "reordered-context": "context: reordered",
    "reordered-training": "FT: reordered",
    "nonsense-context": "context: nonsense",
    "nonsense-training": "FT: nonsense",
    "other-training": "FT: other examples",
    "ascent": "FT: ascent",
    "layer-causal-as-long": "FT: layer-causal, as long",
    "layer-causal": "FT: layer-causal",
    "random-direction": "FT: random",
    "untrained": "untrained model",
    "untrained-layers": "untrained layers",
    "permuted-weights": "permuted weights",
}
"""`compare.controls.CONTROLS`, with their names in figures, in the order in which the study speaks of them."""
