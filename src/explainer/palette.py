"""The colours of the book, in one place that drawings, plots, explorables and the site read."""

PALETTE = {
    "key": ("#0072b2", "#56b4e9"),
    "value": ("#c65300", "#f0853d"),
    "query": ("#00815e", "#2fc79c"),
    "context": ("#a8568a", "#dc93be"),
    "training": ("#866300", "#e0bd4b"),
    "ink": ("#222832", "#ced6dd"),
    "slate": ("#4a545e", "#a9b3bd"),
    "stone": ("#6e7780", "#838e98"),
    "grid": ("#dfe3e6", "#3b444d"),
}
"""What a colour means in every drawing, plot and explorable, and what it is in the light and in the dark scheme.

A weight on a token, k . q or p, is no key and has ink; a value times its weight has the colour of the value. A
context's change is what its demonstrations add, Delta W; one product v k^T is grey. Training changes parameters, and so
does a gradient step. What is none of the first five has ink, slate or stone; a floor is stone.
"""


def palette_css() -> str:
    """The colours as CSS variables, `--xp-key` and so on, and the classes by which explorables ask for them."""
    light, dark = ("".join(f"--xp-{role}: {shades[i]}; " for role, shades in PALETTE.items()) for i in (0, 1))
    classes = "".join(f".explorable .explorable-{role} {{ color: var(--xp-{role}); }}\n" for role in PALETTE)
    schemes = 'html[data-theme="dark"], body[data-jp-theme-light="false"]'
    return f":root {{ {light}}}\n@media screen {{ {schemes} {{ {dark}}} }}\n{classes}"
