"""Blocking: what the lines of a lesson say, and that a learner that corrects its error is blocked."""

import numpy as np
import pytest
from toy_study import rows

from explainer.models import scoring
from explainer_lab import blocking, lab_lessons
from explainer_lab.blocking import LABELS, LESSONS, TASK, Blocking, _Lines, _run_blocking


def setting(directory="model", **changes):
    usual = {"checkpoint": directory, "seed": 0, "k": 4, "n_queries": 4, "lr": 0.01, "epochs": 2}
    return Blocking.of(**usual | changes)


@pytest.mark.parametrize("last", "YX")
def test_a_cue_has_one_label_wherever_it_stands(last):
    lines = _Lines(setting(last=last))
    drawn = [example for kinds in ("X", "Z", "XY", "Y") for example in lines.draw(kinds, 4)]
    assert len({cue for cues in lines.cues.values() for cue in cues}) == 12
    given, stems = {}, []
    for example in drawn:
        stem, *cues = example.fields["word"].split()
        stems.append(stem)
        for cue in cues:
            assert given.setdefault(cue, example.answer) == example.answer
        if len(cues) == 2:
            assert cues[1] in lines.cues[last]
    assert len(set(stems)) == len(stems)
    for cues in lines.cues.values():
        assert sorted(given[cue] for cue in cues) == sorted(LABELS)


def features(examples, lines):
    """One-hot cues, and one-hot labels."""
    cues = [cue for kind in "XYZ" for cue in lines.cues[kind]]
    X = np.array([[cue in example.fields["word"].split() for cue in cues] for example in examples], float)
    return X, np.eye(4)[[example.label for example in examples]]


def learned(lines, parts, asked, steps):
    """Log odds against the mean of other labels that linear regression by descent gives Y after both parts."""
    W = np.zeros((12, 4))
    for part in parts:
        X, Y = features(part, lines)
        for _ in range(steps):
            W += 0.5 / len(part) * 4 * X.T @ (Y - X @ W)
    X, Y = features(asked, lines)
    return (X @ W * Y).sum(1).mean()


def test_the_design_blocks_a_learner_that_corrects_its_error_and_no_learner_of_one_step():
    """Linear regression on the cues of these lines: the delta rule is blocked, sums of answers are not."""
    lines = _Lines(setting())
    parts = {kinds: lines.draw(kinds, 4) for kinds in ("X", "Z", "XY")}
    asked = lines.draw("Y", 4)
    of = {
        lesson: {n: learned(lines, [parts[first], parts[then]], asked, n) for n in (1, 50)}
        for lesson, (first, then) in LESSONS.items()
        if lesson != "alone"
    }
    assert of["blocked"][50] < 0.01 and of["control"][50] > 0.4

    def votes(lesson):
        """Each answer counted once for every cue that it shares with the query."""
        first, then = LESSONS[lesson]
        (X, Y), (X_q, Y_q) = features(parts[first] + parts[then], lines), features(asked, lines)
        return (X_q @ X.T @ Y * Y_q).sum(1).mean()

    assert votes("blocked") == votes("control") > 0


def test_answers_are_those_after_the_lines(directory, checkpoint):
    its = setting(directory)
    tables, lines = _run_blocking(checkpoint, its), _Lines(its)
    parts = {kinds: lines.draw(kinds, 4) for kinds in ("X", "Z", "XY", "Y")}
    lines.draw("X", 4)
    asked = lines.draw("Y", 4)
    context = lab_lessons.context(checkpoint, TASK, parts["Z"] + parts["XY"])
    log_probs = scoring.candidate_log_probs(checkpoint, context, [TASK.prompt(e) for e in asked], LABELS)
    right = log_probs.argmax(1) == [e.label for e in asked]
    (row,) = rows(tables["answers"], kind="ICL", lesson="control", cue="Y")
    assert row["right"] == right.mean()
    of_y = {f"{r['kind'].lower()}_{r['lesson']}": r["right"] for r in rows(tables["answers"], cue="Y")}
    assert tables["settings"] == of_y | {"note": ""}
    assert {(r["kind"], r["lesson"], r["cue"]) for r in rows(tables["answers"])} == {
        (kind, lesson, cue) for kind in ("ICL", "FT") for lesson in LESSONS for cue in "XY"
    }
    assert all(r["log_prob"] <= 0 for r in rows(tables["answers"]))


def test_the_first_part_is_trained_on_before_the_second(directory, checkpoint, monkeypatch):
    seen = []

    def keep(checkpoint, run, batch, *, progress):
        seen.append(run)
        assert batch == len(LABELS), "a step is a line of each label"
        return (n for n in ())

    monkeypatch.setattr(blocking.finetuning, "fine_tune_every_weight", keep)
    its = setting(directory)
    lines = _Lines(its)
    one, two = lines.draw("X", 4), lines.draw("XY", 4)
    assert list(blocking._trained(checkpoint, its, (one, two), False)) == []
    of_one = {tuple(ids) for ids in its.sequences(checkpoint, TASK, one)}
    assert [tuple(ids) in of_one for ids in seen[0].sequences] == 8 * [True] + 8 * [False]
