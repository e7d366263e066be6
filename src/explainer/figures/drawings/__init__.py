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
        "Where the demonstrations enter. Their column is computed as it would be without the query. The query's column is "
        "not computed as it would be without them: what it looks up in one layer reaches all layers above. The only "
        "arrows that cross are the keys and values that the demonstrations leave in every layer.",
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


def brackets() -> Drawing:
    """The dual form of one gradient step: three factors, two ways to put the brackets."""
    return Drawing(
        _svg("brackets"),
        "The whole identity in one picture, with the numbers of the example: error signal e₁, past input x₁, present "
        "input x. Bracket the first two factors and you have a weight matrix, applied to x. Bracket the last two and "
        "you have one number, how much x looks like x₁, that weighs e₁. A matrix product does not depend on brackets.",
        "Two rows. Gradient descent: the column e_1 = (1, -1/2) times the row x_1 = (1, -1, 1) is a matrix Delta W "
        "with two rows and three columns; times the column x = (2, 1, 1) it gives (2, -1). Attention: the row x_1 "
        "times the column x is the number 2; the column e_1 times 2 gives the same (2, -1).",
    )


def added_or_mixed() -> Drawing:
    """What demonstrations do to the output of a head, without and with softmax."""
    return Drawing(
        _svg("added_or_mixed"),
        "What demonstrations do to the output of one head. Without softmax their term is put on top of the "
        "zero-shot output, without bound: a weight update. With softmax the output stays on the line from the "
        "zero-shot part z to the demonstrations' part a. What one gains, the other loses; the share g is called "
        "the gate.",
        "Two panels of arrows. Left, without softmax: the arrow W ZSL q, then the arrow Delta W ICL q from its "
        "tip; a dotted line shows that more demonstrations carry the output ever further. Right, with softmax: an "
        "arrow to the zero-shot part z and an arrow to the demonstrations' part a; the output (1 - g) z + g a "
        "lies on the line between their tips, and more demonstrations move it along that line towards a.",
    )


def split_rows() -> Drawing:
    """Linear attention over demonstrations and own tokens, split into two matrices."""
    return Drawing(
        _svg("split_rows"),
        "One sum, cut in two. The tokens of the demonstrations give the update; the query's own tokens (the first "
        "token of every sequence among them) give the zero-shot matrix. The picture holds without softmax only.",
        "A row of tokens. On the left the demonstrations X prime, Japan to Tokyo and Italy to Rome; on the right "
        "the own tokens X of the query: the first token, France and an arrow. Keys and values of the "
        "demonstrations are summed as outer products to Delta W ICL, those of the own tokens to W ZSL, and both "
        "together act on the query q.",
    )


def repairs() -> Drawing:
    """Rec2FTP and its chance value, on twelve queries."""
    return Drawing(
        _svg("repairs"),
        "Rec2FTP on twelve queries. Of the four zero-shot errors that FT repairs (orange), ICL repairs three. Of all "
        "eight zero-shot errors (blue), it repairs six. Both shares are 75 %: ICL does no better on the errors that "
        "FT repairs than on the others.",
        "Three rows of twelve circles, filled where a prediction is right. ZSL is right on the first four. A blue box "
        "holds the eight errors of ZSL; ICL repairs six of them. An orange box holds the four that FT repairs; ICL "
        "repairs three of them. Both are 75 per cent.",
    )


def update_angle() -> Drawing:
    """Two changes of a unit vector share the part that leads back inside the circle."""
    return Drawing(
        _svg("update_angle"),
        "Two changes of a vector of length 1. They go opposite ways, to the left and to the right. But both end on the "
        "circle, so both lead back inside it: the green part is common to them, whatever they have learned.",
        "A half circle. The zero-shot output z points up. An arrow d_I leads from its tip to u_I on the left of the "
        "circle, an arrow d_F to u_F on the right. Both go down by the same small amount, drawn in green and labelled "
        "shared: back inside.",
    )


def two_maps() -> Drawing:
    """Attention scores of three tokens under ZSL, ICL and FT, and their changes."""
    return Drawing(
        _svg("two_maps"),
        "Attention scores of three tokens. The three maps look alike, because they start from the same map. Their "
        "changes hardly do. The map of FT is even less like that of ICL than the zero-shot map was.",
        "Bars. On the left the scores: ZSL 7, 4, -4; ICL 8, 4, -1; FT 8, 1, -4. The cosine of ICL and FT is 0.89, that "
        "of ICL and ZSL 0.94. On the right the changes: ICL 1, 0, 3; FT 1, -3, 0, with cosine 0.10.",
    )


def pair_order() -> Drawing:
    """Kendall's tau as a count of crossings."""
    return Drawing(
        _svg("pair_order"),
        "Kendall's tau counts crossings. ICL and FT each rank four training tokens by attention. Of the six pairs of "
        "tokens, five stand in the same order in both and one, drawn dashed, is crossed.",
        "Two columns of four tokens, joined by lines. ICL ranks them 4, 3, 2, 1 from the top, FT 4, 2, 3, 1, so that "
        "the lines of tokens 2 and 3 cross. Tau is (5 - 1) / 6.",
    )


def fair_comparison() -> Drawing:
    """The protocol of the comparison: what is shared, what differs, what is compared."""
    return Drawing(
        _svg("fair_comparison"),
        "The protocol in one picture. Blue: what both ways share. Orange: where they differ, and must. The attention output of "
        "every layer, taken at one token of the query, is compared as an update of the zero-shot output (green). Only the "
        "learning rate has no counterpart on the other side.",
        "A flow chart. The same k demonstrations, in the same order and each read once, go to ICL and to FT; ZSL gets none. ICL is "
        "one forward pass that adds keys and values of other tokens; FT is k steps of size eta that change the keys and values of "
        "the query's own tokens. Below, held fixed: the query, its template, the answer words, W_Q and every other matrix but W_K and "
        "W_V, the token where we look. Each way gives an attention output; the zero-shot one is subtracted from both others, and the cosine "
        "of the two differences is taken. A note: the only free knob is the learning rate.",
    )
