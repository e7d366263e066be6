"""The names of controls in figures."""

from collections.abc import Mapping

CONTROL_NAMES: Mapping[str, str] = {
    "none": "real comparison",
    "shuffled-context": "context: shuffled",
    "flipped-context": "context: flipped",
    "foreign-context": "context: foreign",
    "nonsense-context": "context: nonsense",
    "reordered-context": "context: reordered",
    "shuffled-training": "FT: shuffled",
    "flipped-training": "FT: flipped",
    "nonsense-training": "FT: nonsense",
    "reordered-training": "FT: reordered",
    "other-training": "FT: other examples",
    "foreign-training": "FT: foreign",
    "ascent": "FT: ascent",
    "layer-causal": "FT: layer-causal",
    "layer-causal-as-long": "FT: layer-causal, as long",
    "random-direction": "FT: random",
    "untrained": "untrained model",
    "untrained-layers": "untrained layers",
    "permuted-weights": "permuted weights",
}
"""`compare.controls.CONTROLS`, with their names in figures."""
