"""Diagrams drawn by hand, as inline SVG."""

from importlib import resources

from explainer.figures.base import Drawing


def _svg(name: str) -> str:
    return (resources.files(__package__) / f"{name}.svg").read_text("utf8")


def claim() -> Drawing:
    """The claim of the book: a gradient step and attention have the same form, term by term."""
    return Drawing(
        _svg("claim"),
        "The claim in one picture. Both lines are a fixed part plus one term for each example, and each term is a vector "
        "times an inner product. The lower line leaves out the softmax. For a linear layer the match is an identity; for a real "
        "GPT, with softmax and many layers, it is a hypothesis that this book tests.",
        "Two formulas above each other. One gradient step on a linear layer predicts W0 x plus the sum over examples of "
        "error signal e_i times the inner product of past input x_i and present input x. Attention over demonstrations, "
        "with softmax left out, returns W_ZSL q plus the sum of value v_i times the inner product of key k_i and query q. "
        "Dashed lines pair error signal with value, past input with key, present input with query.",
    )


def forward_pass() -> Drawing:
    """Where in the forward pass the demonstrations enter."""
    return Drawing(
        _svg("forward_pass"),
        "Where the demonstrations enter. The query's own column is computed as it would be without them; the only arrows "
        "that cross are the keys and values that the demonstrations leave in every layer.",
        "Two columns of layers. The left column reads the demonstrations and leaves keys and values in each of 30 layers. "
        "The right column reads the query. In every layer one arrow, labelled k, v, crosses from left to right into the "
        "query's attention. Below the right column: hidden state at the last position, logits, Paris.",
    )


def two_ways() -> Drawing:
    """Fine-tuning and in-context learning side by side."""
    return Drawing(
        _svg("two_ways"),
        "Two ways to learn from the same examples. Fine-tuning goes forward, compares, goes backward and changes parameters. "
        "In-context learning only goes forward: the examples leave keys and values, and the query's attention to them acts "
        "as a change of the model that lasts for this prompt alone. That the orange boxes do the same work is the claim to be tested.",
        "Two columns of boxes. Fine-tuning: examples one by one, forward pass, loss, back-propagation to gradients, parameters "
        "changed to W plus Delta W FT, forward pass on the query, answer. In-context learning: examples in the prompt, forward "
        "pass, keys and values in every layer which the paper reads as meta-gradients, a model built on the fly W ZSL plus "
        "Delta W ICL, attention of the query, answer. The gradient boxes on the left face the key and value box on the right.",
    )
