"""Words that stand for points, and the texts that are made of them."""

import numpy as np
import torch
from scipy.optimize import linprog

from explainer.data import tasks
from explainer_lab import training_words
from explainer_lab.training_words import DIMENSION, TASK, WORDS


def points_and_signs(examples):
    """The points of the words and their answers as -1 and 1, float64."""
    points = training_words.points_of_words()[[int(example.fields["word"][1:]) for example in examples]]
    return points.double(), torch.tensor([2.0 * example.label - 1 for example in examples], dtype=torch.float64)


def test_points_have_length_one_and_directions_are_at_a_right_angle():
    assert training_words.points_of_words().shape == (WORDS, DIMENSION)
    torch.testing.assert_close(training_words.points_of_words().norm(dim=-1), torch.ones(WORDS))
    # as when the published trainings began
    torch.testing.assert_close(training_words.points_of_words()[0], torch.tensor([-0.6988, -0.7153]), atol=1e-4, rtol=0)
    for seed in range(3):
        V = training_words.directions(seed)
        torch.testing.assert_close(V @ V.T, torch.eye(2), atol=1e-6, rtol=0)
    assert not torch.allclose(training_words.directions(0), training_words.directions(1))


def test_answers_are_signs_and_the_opposite_direction_has_the_opposite_ones():
    w = training_words.directions(0)[0]
    one, opposite = (training_words.data(v) for v in (w, -w))
    x, y = points_and_signs(one.train)
    assert torch.equal(y, torch.sign(x @ w.double()))
    assert torch.equal(y, -points_and_signs(opposite.train)[1])
    assert one.train is one.test and all(e.answer == TASK.labels[e.label] for e in one.train)


def test_texts_are_demonstrations_of_one_direction_without_a_word_twice():
    rows = training_words.sequences(5, 12, torch.Generator().manual_seed(0))
    assert rows.shape == (5, 1 + 3 * 12) and (rows[:, 0] == 0).all()
    tokenizer = training_words.tokenizer()
    for ids in rows.tolist():
        lines = [[tokenizer.id_to_token(i) for i in ids[start : start + 3]] for start in range(1, len(ids), 3)]
        examples = [tasks.Example({"word": word}, answer, TASK.labels.index(answer)) for word, answer, _ in lines]
        text = "".join(f"{TASK.demonstration(example)}\n" for example in examples)
        assert tokenizer.encode(text).ids == ids[1:]
        assert len({example.fields["word"] for example in examples}) == 12
        x, y = (part.numpy() for part in points_and_signs(examples))
        separates = linprog(np.zeros(DIMENSION), -y[:, None] * x, -1e-3 * np.ones(12), bounds=(None, None))
        assert separates.success, "some direction has all of these answers"


def test_least_squares_and_one_gradient_step_give_nearly_the_same_answers():
    """After sixteen examples of a direction, as the study of the positive control says."""
    same = []
    for seed in range(20):
        data = training_words.data(training_words.directions(seed)[0])
        x, y = points_and_signs(tasks.demonstrations(data, 16, seed))
        asked, _ = points_and_signs(tasks.queries(data, 32, seed))
        least_squares, step = torch.linalg.lstsq(x, y[:, None]).solution[:, 0], x.T @ y
        same.append((torch.sign(asked @ least_squares) == torch.sign(asked @ step)).double().mean())
    assert 0.9 < torch.stack(same).mean() < 1
