"""The figures of the chapter on training with momentum, and what they say about pairs of runs."""

import math
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import ttest_1samp

from explainer.analysis import papers
from explainer.figures import training as drawn
from explainer.lab.store import Identity, Store, Stored, read
from explainer.models.training import Setting, StudyError

DOCUMENTS = ["b", "a", "a", "c"]


def _stored(nll=(1.0, 2.0, 3.0, 4.0), held_out=(5.0, 4.0, 3.0), model=(0.2, 0.3), **setting):
    """A run that is finished, with four blocks of three documents."""
    k = {"examples": [0, 4], "bayes": [0.5, 0.9], "model": list(model)}
    result = {
        "curve": {"tokens": [10, 20, 30], "held_out": list(held_out)},
        "held_out": {"documents": DOCUMENTS, "nll": {"256": list(nll)}},
        "in_context": {"k=3": k},
    }
    cell = asdict(Setting(**setting))
    return Stored(Path(f"{cell['average']}-{cell['seed']}.json"), {"cell": cell}, {}, result)


MOMENTUM = {"average": "momentum", "eta": 0.5}
PLAIN = [_stored(seed=seed, held_out=(5.0, 4.0, 3.0 + seed), nll=(1, 2, 3, 4 + seed)) for seed in range(3)]
VARIANT = [_stored(seed=seed, held_out=(5.5, 3.5, 2.0), nll=(1, 1, 3, 4), **MOMENTUM) for seed in (2, 0, 1)]


def test_quoted_tables_have_the_averages_that_the_paper_prints():
    average = {name: np.mean(list(row.values())) for name, row in papers.MOMENTUM_ACCURACY.items()}
    assert average == pytest.approx({"plain": 0.519, "momentum": 0.547}, abs=6e-4)
    plain, momentum = (papers.MOMENTUM_PERPLEXITY[name] for name in ("plain", "momentum"))
    assert [round(plain[c] - momentum[c], 2) for c in ("256", "512", "1024")] == [0.13, 0.14, 0.12]


def test_runs_are_matched_by_all_but_the_average():
    pairs = drawn.matched(VARIANT, PLAIN)
    assert [(a.identity["cell"]["seed"], b.identity["cell"]["seed"]) for a, b in pairs] == [(2, 2), (0, 0), (1, 1)]
    with pytest.raises(StudyError, match=r"momentum-7\.json has no plain run"):
        drawn.matched([_stored(seed=7, **MOMENTUM)], PLAIN)
    with pytest.raises(StudyError, match="has no plain run"):
        drawn.matched([_stored(seed=0, lr=1e-3, **MOMENTUM)], PLAIN)


def test_gap_is_plain_minus_variant_pair_by_pair():
    tokens, gaps = drawn.gaps(VARIANT, PLAIN)
    assert tokens.tolist() == [10, 20, 30]
    np.testing.assert_allclose(gaps, [[-0.5, 0.5, 3], [-0.5, 0.5, 1], [-0.5, 0.5, 2]])
    assert drawn.curve(PLAIN[1]) == ([10, 20, 30], [5.0, 4.0, 4.0])


def test_documents_keep_the_mean_over_blocks():
    total, count = drawn.documents(PLAIN[0], 256)
    assert (total.tolist(), count.tolist()) == ([5, 1, 4], [2, 1, 1])
    assert drawn.mean_nll(total, count) == 2.5 and drawn.perplexity(total, count) == pytest.approx(math.exp(2.5))


def test_changes_are_paired():
    np.testing.assert_allclose(drawn.seed_changes(VARIANT, PLAIN, 256), [-3 / 4, -1 / 4, -2 / 4])
    change = drawn.perplexity_change(VARIANT, PLAIN, 256)
    assert change.estimate == pytest.approx(-0.5) and change.low < -0.5 < change.high <= 0
    same = drawn.perplexity_change(PLAIN, PLAIN, 256)
    assert tuple(same[:3]) == (0, 0, 0)
    assert drawn.perplexity_interval(PLAIN[:1], 256).estimate == pytest.approx(math.exp(2.5))


def test_interval_over_seeds_is_that_of_the_t_test():
    values = np.array([-0.6, -0.3, -0.4])
    expected = ttest_1samp(values, 0).confidence_interval(0.95)
    assert drawn.over_seeds(values) == pytest.approx((values.mean(), expected.low, expected.high))
    alone = drawn.over_seeds(values[:1])
    assert alone.estimate == -0.6 and math.isnan(alone.low) and math.isnan(alone.high)


def test_per_cent_is_the_change_of_the_perplexity():
    assert drawn.per_cent(math.log(15.02 / 15.14)) == pytest.approx(100 * (15.02 / 15.14 - 1))


def test_tokens_to_reach_a_loss():
    curve = ([10, 20, 30], [5.0, 4.0, 2.0])
    assert [drawn.tokens_to_reach(curve, loss) for loss in (6.0, 5.0, 4.5, 3.0, 2.0)] == [10, 10, 15, 25, 30]
    assert math.isnan(drawn.tokens_to_reach(curve, 1.9))


@pytest.mark.parametrize("last", [0, 1, 2])
def test_counting_equals_counting_in_words(last):
    """Against the same formula with dictionaries, one token at a time."""
    generator = np.random.default_rng(last)
    stream, rows = generator.integers(4, size=40), generator.integers(5, size=(3, 7))  # 4 never occurs in the stream
    after = [defaultdict(Counter) for _ in range(last + 1)]
    for n in range(last + 1):
        for i in range(n, len(stream)):
            after[n][tuple(stream[i - n : i])][stream[i]] += 1

    def probability(word, history):
        shorter = probability(word, history[1:]) if history else 1 / 5
        counts = after[len(history)][history]
        if not counts:
            return shorter
        return (counts[word] + len(counts) * shorter) / (counts.total() + len(counts))

    expected = [-math.log(probability(row[i], tuple(row[i - last : i]))) for row in rows for i in range(last, 7)]
    nll = drawn.counting_nll(torch.from_numpy(stream), torch.from_numpy(rows), last, 5)
    assert nll == pytest.approx(np.mean(expected), rel=1e-12)


def test_counted_probabilities_sum_to_one():
    stream = torch.randint(3, (50,), generator=torch.Generator().manual_seed(0))
    rows = torch.tensor([[0, 1, word] for word in range(3)])
    nll = [drawn.counting_nll(stream, row[None], 2, 3) for row in rows]
    assert sum(math.exp(-value) for value in nll) == pytest.approx(1)


def test_text():
    assert drawn.text((1.234, -0.5, 3)) == "1.23 [−0.50, 3.00]"
    assert drawn.text((1.234, math.nan, math.nan), 1) == "1.2"
    assert drawn.change_text((0.0, math.log(0.9), math.log(1.1))) == "0.0 [−10.0, 10.0] %"
    assert [drawn.direction((0, *ends)) for ends in ((-2, -1), (1, 2), (-1, 1))] == ["better", "worse", "not decided"]
    assert drawn.direction((-1, math.nan, math.nan)) == "not decided"


def test_made_names_seeds_time_and_command(tmp_path):
    identity = Identity("x", {"cell": asdict(Setting(seed=4))})
    provenance = {"device": "cpu x", "threads": 1, "versions": {"torch": "2.0"}}
    path = Store(tmp_path).save(identity, {}, provenance=provenance, run={"cpu_seconds": 12.0, "seconds": 30.0})
    said = drawn.made([read(path)] * 2, "explainer train")
    expected = "Stored: 2 runs, seeds 4; cpu x, 1 thread, torch 2.0; 24 CPU seconds; trained by: explainer train"
    assert said == expected


def test_learning_curves_draw_seeds_thin_and_their_mean():
    figure = drawn.learning_curves({"plain": [drawn.curve(one) for one in PLAIN]}, "loss", levels={"level": 2.5})
    *seeds, mean = figure.data
    assert [trace.line.width for trace in seeds] == [1, 1, 1] and not any(trace.showlegend for trace in seeds)
    np.testing.assert_allclose(mean.y, [5, 4, 4])
    np.testing.assert_allclose(mean.x, [1e-5, 2e-5, 3e-5])
    assert figure.layout.shapes[0].y0 == 2.5 and figure.layout.annotations[0].text == "level"
    alone = drawn.learning_curves({"a": [([1], [2])]}, "loss")
    assert [trace.name for trace in alone.data] == ["a"]


def test_gap_curves_have_an_interval_only_over_several_seeds():
    figure = drawn.gap_curves({"many": drawn.gaps(VARIANT, PLAIN), "one": drawn.gaps(VARIANT[:1], PLAIN)})
    traces = {trace.name: trace for trace in figure.data}
    assert set(traces) == {"many", "many, pair 1", "many, pair 2", "many, pair 3", "one"}
    assert traces["many"].y[2] == 2
    assert traces["one"].error_y.array is None


def test_gap_curves_have_a_bar_at_every_fourth_point():
    values = np.array([[0.0] * 8, [1.0] * 8])
    bars = drawn.gap_curves({"a": (np.arange(8), values)}).data[-1].error_y.array
    interval = drawn.over_seeds(values[:, 0])
    expected = pytest.approx(interval.high - interval.estimate, rel=1e-3)
    assert [place for place, bar in enumerate(bars) if bar is not None] == [3, 7] and bars[3] == expected


def test_effects_draw_each_seed_and_the_mean():
    values = {"a": np.array([-0.5, -0.4, -0.3]), "b": np.array([0.1])}
    figure = drawn.effects(values)
    seeds, mean, other, alone = figure.data
    np.testing.assert_allclose(seeds.x, [drawn.per_cent(value) for value in values["a"]], rtol=1e-2)
    assert mean.x[0] == pytest.approx(drawn.per_cent(-0.4), rel=1e-2) and len(mean.error_x.array) == 1
    assert alone.error_x.array is None and not alone.showlegend and not other.showlegend
    assert figure.layout.yaxis.ticktext == ("a", "b")


def test_accuracies_in_context():
    finished = {"plain": PLAIN, "momentum": [_stored(seed=s, model=(0.2, 0.4 + s / 10), **MOMENTUM) for s in range(3)]}
    examples, curves = drawn.in_context(finished, 3)
    assert examples == [0, 4] and list(curves) == ["Bayes' rule", "plain", "momentum"]
    np.testing.assert_allclose([mean[1] for mean, _, _ in curves.values()], [0.9, 0.3, 0.5])
    rises, lead = drawn.in_context_changes(finished, 3)
    assert rises["plain"].estimate == pytest.approx(0.1) and rises["momentum"].estimate == pytest.approx(0.3)
    assert lead == pytest.approx(drawn.over_seeds(np.array([0.1, 0.2, 0.3])))


def test_panels_share_their_legend():
    panel = drawn.in_context({"plain": PLAIN}, 3)
    figure = drawn.panels({"k = 3": panel, "k = 5": panel}, "examples", "accuracy")
    assert [trace.showlegend for trace in figure.data] == [True, True, False, False]
    assert figure.layout.xaxis.ticktext == ("0", "4")


def test_panels_name_every_number_of_examples():
    """Also where the last panel has fewer."""
    examples, curves = drawn.in_context({"plain": PLAIN}, 3)
    fewer = {name: tuple(end[:1] for end in curve) for name, curve in curves.items()}
    figure = drawn.panels({"k = 3": (examples, curves), "k = 8": (examples[:1], fewer)}, "examples", "accuracy")
    assert figure.layout.xaxis2.ticktext == ("0", "4")
