"""The five rows of the verdict, of tables made by hand and of the book's."""

import pandas as pd
import pytest

from explainer.results import new_rule, verdict
from explainer.results.published import results

SIMILAR = {
    "own": 0.5,
    "both_other": 0.5,
    "training_other": 0.45,
    "context_other": 0.45,
    "context_foreign": 0.3,
    "contexts": 0.75,
    "trainings": 0.75,
}
LOWER = dict.fromkeys(SIMILAR, 0.9) | {"trainings": 0.95}


def tables():
    """Upper layers as in SIMILAR, lower ones all alike; two draws that agree."""
    layers = [{"seed": s, "task": "a", "layer": i} | (SIMILAR if i >= 4 else LOWER) for s in (0, 1) for i in range(6)]
    right = {"icl": [1, 1, 1, 0], "vector": [1, 0, 1, 0], "vector_foreign": [1, 0, 0, 0]}
    answers = [
        {"seed": s, "task": "a", "intervention": name, "correct": bool(hit)}
        for s in (0, 1)
        for name, hits in right.items()
        for hit in hits
    ]
    strengths = [
        {"seed": s, "cue": "suffix", "epochs": 20, "layers": layers, "reordered": 1.0, "examples": 0.0}
        | {"own": own, "other": own, "contexts": 0.5, "trainings": 0.32}
        for s in (0, 1)
        for layers, own in (("upper third", 0.1), ("all", 0.4))
    ]
    changes = [
        {"seed": s, "cue": "suffix", "strength": n, "kind": kind, "lesson": lesson, "right_a": a, "right_b": b}
        for s in (0, 1)
        for n, kind, lesson, a, b in (
            (16, "ICL", "A", 0.7, 0.0),
            (16, "ICL", "B", 0.0, 0.9),
            (16, "ICL shuffled", "A", 0.2, 0.9),
            (8, "ICL", "A", 0.0, 0.0),
        )
    ]
    return map(pd.DataFrame, (layers, answers, strengths, changes))


def test_rows_are_shares_between_floor_and_ceiling():
    found = {name: of.estimate for name, of in verdict.questions(*tables()).items()}
    assert found == pytest.approx(
        {
            "word pairs: like training": (0.5 - 0.3) / (0.75 - 0.3),
            "word pairs: on these examples": 0.05 / (0.5 * 0.25),
            "word pairs: carried by one vector": (0.5 - 0.25) / (0.75 - 0.25),
            "new rule: learned": (0.8 - 0.2) / 0.8,
            "new rule: like training": 0.1 / 0.16**0.5,
        }
    )


def test_what_the_pages_say_of_the_rows():
    """Less than half of the way, no examples seen, about half by one vector, half of a new rule and little shared."""
    found = verdict.of_book()
    assert found["word pairs: like training"].low > 0.3 and found["word pairs: like training"].high < 0.5
    assert found["word pairs: on these examples"].low < 0 < found["word pairs: on these examples"].high < 0.1
    assert found["word pairs: carried by one vector"].estimate == pytest.approx(0.48, abs=0.01)
    assert found["new rule: learned"].estimate == pytest.approx(0.54, abs=0.01)
    assert found["new rule: like training"].high < 0.15
    changes = new_rule.table("rule-contexts", "changes")
    assert set(changes["seed"]) == set(range(20)) and results("rival")["seed"].nunique() == 5
