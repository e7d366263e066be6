"""The task of associative recall with revision: what is written, what is asked, what partial readers can reach."""

import pytest
import torch

from explainer.data import recall_data


def drawn(n_keys, n_sequences=5, seed=0):
    return recall_data.draw(n_sequences, n_keys, torch.Generator().manual_seed(seed))


def written(keys, values):
    """The values of each key in the order of their writes, by a loop."""
    found = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        if value != recall_data._BLANK:
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("n_keys", [2, 5, 8, 32])
def test_answers_are_the_newest_values_and_stale_ones_those_before(n_keys):
    sequences = drawn(n_keys)
    for keys, values, answers, stale in zip(*sequences, strict=True):
        of_key = written(keys, values)
        asked = keys[-n_keys:].tolist()
        assert sorted(asked) == sorted(of_key), "every key is asked once"
        assert answers.tolist() == [of_key[key][-1] for key in asked]
        before = [of_key[key][0] if len(of_key[key]) == 2 else recall_data.NO_STALE for key in asked]
        assert stale.tolist() == before
        assert sum(len(each) == 2 for each in of_key.values()) == recall_data._n_revised(n_keys)
        every = [value for each in of_key.values() for value in each]
        assert len(set(every)) == len(every) == recall_data.n_writes(n_keys), "no value is written twice"


def test_partial_readers_reach_what_the_module_says():
    """Whatever they prefer: who does not know the order, who looks at the place of the query, who takes one write."""
    sequences = drawn(8, 20_000)
    assert all(torch.equal(a, b) for a, b in zip(sequences, drawn(8, 20_000), strict=True))
    assert not torch.equal(sequences.keys, drawn(8, 20_000, seed=1).keys)
    revised = sequences.stale != recall_data.NO_STALE
    newest_is_larger = (sequences.answers > sequences.stale)[revised].double().mean()
    assert newest_is_larger == pytest.approx(0.5, abs=0.01)
    assert revised.double().mean(0).tolist() == pytest.approx([0.5] * 8, abs=0.02)
    writes = sequences.values[:, : recall_data.n_writes(8)]
    right = (writes[:, :, None] == sequences.answers[:, None]).double().mean((0, 2))
    assert right.max() == right[-1] == pytest.approx(1 / 8, abs=1e-12)
