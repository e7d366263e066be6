"""The one definition of the thirds of a model's layers; it needs no other module, and takes no time to import."""

THIRDS = ("lower third", "middle third", "upper third")


def layer_thirds(n_layers: int) -> dict[str, slice]:
    """The layers of each third, numbered from 0 next to the input: layers [round(i n / 3), round((i + 1) n / 3)).

    Of 30 layers each third has ten. 28 cannot be divided: the lower third is layers 0 to 8 (nine), the middle third 9
    to 18 (ten), the upper third 19 to 27 (nine). Of fewer than three layers the last one is the upper third, and
    another third may have none.
    """
    lower, upper = round(n_layers / 3), min(round(2 * n_layers / 3), n_layers - 1)
    cuts = (0, min(lower, upper), upper, n_layers)
    return {name: slice(*cuts[i : i + 2]) for i, name in enumerate(THIRDS)}
