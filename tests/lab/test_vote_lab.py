"""The vote as a cause: what an edit does to attention, which heads it reaches, and what lines hold for them."""

import pytest
import tiny_models
import torch
from toy_study import column, rows
from transformers import Gemma3TextConfig

from explainer.errors import ExperimentError
from explainer.models import architectures, attention_edits, circuits, interventions, scoring
from explainer_lab import cli, label_lines, vote
from explainer_lab.label_lines import FORMS, PLACES, SITES, LabelLines
from explainer_lab.vote import LABELS, TEMPLATES, Vote, VoteLesson

K, N = 8, 8
GEMMA = Gemma3TextConfig(**tiny_models.FURTHER["gemma3_text"] | {"sliding_window": 64})
HEADS = dict.fromkeys(("effect", "attention", "agreement"), "0.0 1.1 2.1 0.3 2.0 1.2 0.1 0.2 1.0 1.3")


def setting(directory="model", kind=Vote, **changes):
    return kind.of(
        **{"checkpoint": directory, "part": "edits", "cue": "suffix", "seed": 0, "k": K, "n_queries": N, "sizes": "ten"}
        | HEADS
        | changes
    )


@pytest.fixture(scope="module")
def lesson(directory, checkpoint):
    return VoteLesson.of(checkpoint, setting(directory), "A")


@pytest.fixture(scope="module")
def tables(directory):
    return {part: Vote().compute(setting(directory, part=part), progress=False).tables for part in ("rank", "edits")}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_lines_stand_where_their_labels_are_read(directory, checkpoint, labels, template):
    its = VoteLesson.of(checkpoint, setting(directory, labels=labels, template=template), "B")
    for line, example in zip(its.lines, its.shown, strict=True):
        written = checkpoint.text([its.spans.ids[at] for at in line.nonzero()[:, 0]])
        assert written == f" {example.answer}" and example.answer in LABELS[labels]
    assert {q.fields["word"] for q in its.queries}.isdisjoint(e.fields["word"] for e in [*its.shown, *its.others])


def test_attention_that_is_moved_or_exchanged_is_kept_in_sum():
    y = torch.tensor([2, 0, 1, 3, 1, 2, 3, 0])
    a, c = torch.tensor([0, 3]), torch.tensor([1, 2])
    attention = torch.rand(2, 8)
    of_label = torch.nn.functional.one_hot(y, 4).float()
    for dose in (0.2, 1.0):
        moved = (attention_edits.moved(y, c, dose) @ attention[..., None])[..., 0]
        torch.testing.assert_close(moved.sum(-1), attention.sum(-1))
        expected = (1 - dose) * attention @ of_label
        expected[range(2), c] += dose * attention.sum(-1)
        torch.testing.assert_close(moved @ of_label, expected)
    exchange = vote._exchanged(y, a, c)
    assert torch.equal(exchange @ exchange, torch.eye(8).expand(2, -1, -1))
    before, after = attention @ of_label, (exchange @ attention[..., None])[..., 0] @ of_label
    for i in range(2):
        assert torch.allclose(after[i, [a[i], c[i]]], before[i, [c[i], a[i]]])
    blocks = torch.arange(8) // 4
    assert all(blocks[line] == blocks[m.argmax()] for m in exchange for line, m in enumerate(m))


def test_sets_of_heads_are_named_by_a_setting_and_random_ones_stand_in_their_layers():
    sets = vote.head_sets(setting(sizes="one"), (3, 6), "A")
    assert set(map(tuple, sets["effect 2"].nonzero().tolist())) == {(0, 0), (1, 1)}
    for m in (1, 2, 5):
        random, strongest = sets[f"random {m}"], sets[f"effect {m}"]
        assert torch.equal(random.sum(1), strongest.sum(1)) and not (random & strongest).any()
    assert sets["all"].all()
    for wrong in ({"sizes": "all"}, {"attention": "-1.0"}, {"n_queries": 6}):
        with pytest.raises(ExperimentError, match=r"need|name them"):
            setting(**wrong)


def test_a_rank_has_every_head_and_what_is_never_looked_at_costs_nothing(tables, directory, checkpoint):
    heads = rows(tables["rank"]["heads"])
    n_layers, n_heads = 2, checkpoint.model.config.num_attention_heads
    assert len(heads) == 2 * checkpoint.model.config.num_hidden_layers * n_heads and n_layers
    assert all(row["effect"] == 0 for row in heads if row["attention"] < vote._LOOKS)
    assert any(row["effect"] for row in heads) and all(0 <= row["agrees"] <= 1 for row in heads)


def test_nothing_changes_without_an_edit_and_all_attention_moved_everywhere_is_the_label(tables, lesson):
    edits = rows(tables["edits"]["edits"])
    none = [row for row in edits if row["edit"] == "none"]
    assert len(none) == 2 and all(row["same"] == 1 for row in none)
    answers = rows(tables["edits"]["queries"])
    for rule, row in zip("AB", none, strict=True):
        its = [one["right"] == one["answer"] for one in answers if one["rule"] == rule]
        assert row["right"] == pytest.approx(sum(its) / N)
    assert {row["edit"] for row in edits} == {"none", "flat", "flat others", "moved", "exchanged"}
    of_all = [row["aimed"] for row in edits if row["edit"] == "moved" and row["heads"] == "all" and row["dose"] == 1]
    small = [row["aimed"] for row in edits if row["edit"] == "moved" and row["dose"] == vote.DOSES[0]]
    assert max(small) <= min(of_all)


def test_a_label_that_an_edit_favours_is_taken_off(lesson, tables, monkeypatch):
    config = lesson.checkpoint.model.config
    every = torch.ones(config.num_hidden_layers, config.num_attention_heads, dtype=torch.bool)
    sets = {"none": ~every, "all": every}
    none, equal = vote._calibrated(lesson, sets)
    row = next(row for row in rows(tables["edits"]["edits"]) if row["edit"] == "none" and row["rule"] == "A")
    assert none["right"] == row["right"] and 0.25 <= none["one_label"] <= 1
    edited = vote._edited

    def pushed(*given):
        logits, most = edited(*given)
        return logits + torch.tensor([0.0, 0.0, 100.0, 0.0]), most

    monkeypatch.setattr(vote, "_edited", pushed)
    for before, after in zip((none, equal), vote._calibrated(lesson, sets), strict=True):
        assert after["one_label"] == 1 and after["calibrated"] == before["calibrated"]


def test_of_a_known_task_every_line_has_the_label_that_is_its_answer(directory, checkpoint):
    known = setting(directory, cue="capitals")
    its = VoteLesson.of(checkpoint, known, "A")
    for line, token, example in zip(its.lines, its.tokens, its.shown, strict=True):
        (answer,) = scoring.continuation_ids(checkpoint, [its.task.prompt(example)], [f" {example.answer}"])
        assert [its.spans.ids[at] for at in line.nonzero()[:, 0]] == answer and answer[0] == token
    found = Vote().compute(known, progress=False).tables
    none, *_ = rows(found["edits"])
    prompts = [*map(its.task.prompt, its.queries)]
    logits = interventions.after_context(checkpoint, its.prefix, prompts).run().logits
    right = torch.tensor(scoring.distinguishing_tokens(checkpoint, its.task, its.queries))
    assert none["right_all"] == found["settings"]["right"] == (logits.argmax(-1) == right).float().mean().item()
    assert {row["edit"] for row in rows(found["edits"])} == {"none", "flat", "flat others", "moved"}


def test_votes_are_attention_to_labels_and_one_label_is_favoured_for_all(lesson, directory):
    mask = vote.head_mask(
        (len(lesson.prefix.keys), lesson.checkpoint.model.config.num_attention_heads), [(0, 0), (1, 1)]
    )
    found = list(vote._votes(lesson, mask))
    assert len({row["favoured"] for row in found}) == 1
    prompt = lesson.task.prompt(lesson.queries[0])
    (stem,) = scoring.answer_prefixes(lesson.checkpoint, [prompt], lesson.labels)  # what all labels begin with
    ids = [*lesson.spans.ids, *lesson.checkpoint.tokenize(prompt), *stem]
    maps = circuits.attention_maps(lesson.checkpoint, ids)[:, :, -1, : len(lesson.spans.ids)]
    by_line = (maps @ lesson.lines.T)[mask].sum(0)
    totals = [by_line[lesson.label_of_line == c].sum().item() for c in range(4)]
    assert found[0]["vote"] == max(range(4), key=totals.__getitem__)


# What lines hold.


@pytest.fixture(scope="module")
def held(directory):
    return {
        part: LabelLines().compute(setting(directory, LabelLines, part=part), progress=False).tables
        for part in ("values", "keys", "kernels")
    }


def test_a_line_more_has_every_form_and_a_repeated_one_has_been_foreseen(held):
    lines = rows(held["values"]["lines"])
    assert len(lines) == len(PLACES) * len(FORMS) * 4
    for row in lines:
        assert 0 < row["p"] < 1
        assert 0 <= row["attention_same_effect"] <= 1


@pytest.mark.parametrize("config", [tiny_models.CONFIGS["llama"], GEMMA])
def test_what_a_head_writes_is_what_the_logit_changes_by_at_first_order(config):
    """To a head's output e W_O v is added: the label's logit changes by e times what its line writes."""
    checkpoint = tiny_models.random_checkpoint(config, torch.float64)
    prefix, tokens = scoring.encode(checkpoint, "France -> Paris\nItaly -> Rome\n"), torch.tensor([5, 9, 30])
    last = interventions.after_context(checkpoint, prefix, ["Spain ->", "the little old town ->", "x"]).at_last()
    at, layer, head = 3, 1, 2
    line = torch.arange(len(prefix)) == at
    writes = label_lines._written(checkpoint, prefix, line, label_lines._gradients(last, tokens))
    architecture = architectures.architecture(checkpoint.model)
    W_O = architecture.layers[layer].output.weight.unflatten(1, (architecture.n_heads, -1))
    v = prefix.values[layer][0].repeat_interleave(architecture.n_heads // prefix.values[layer].shape[1], 0)
    step = 1e-3 * W_O[:, head] @ v[head, at]  # not smaller: norms compute in float32
    edits = [[interventions.at_last(architecture.layers[layer].output, lambda z, s=s: z + s)] for s in (step, -step)]
    up, down = (last.run(edit).logits[:, tokens] for edit in edits)
    changed = (up - down) / 2e-3
    changed = (changed - changed.mean(-1, keepdim=True)).mean(0)
    torch.testing.assert_close(writes[layer, head], changed, rtol=0, atol=2e-3 * changed.abs().max().item())
    assert changed.abs().max() > 1e-4


def test_turned_states_are_those_of_the_label_before():
    y = torch.tensor([2, 0, 1, 3, 1, 2, 3, 0])
    order = label_lines._turned(y)
    assert torch.equal(y[order], (y - 1) % 4) and torch.equal(order // 4, torch.arange(8) // 4)


def test_sites_are_the_tokens_that_they_are_called_after(lesson):
    sites = label_lines._sites(lesson)
    for i, example in enumerate(lesson.shown):
        text = {name: lesson.checkpoint.text([lesson.spans.ids[at[i]]]) for name, at in sites.items()}
        assert text["arrow"] == " ->" and f" {example.answer}".startswith(text["label"])
        word = lesson.spans.ids[sites["first"][i] : sites["word"][i] + 1]
        assert lesson.checkpoint.text(word).strip() == example.fields["word"]


def test_exchanged_states_of_all_tokens_before_anything_is_read_are_exchanged_lines(held):
    exchanges = rows(held["keys"]["exchanges"])
    assert {row["site"] for row in exchanges} == set(SITES)
    assert column(held["keys"]["exchanges"], "before_answer")


def test_a_kernel_votes_by_the_similarity_of_streams_at_the_arrow(held, lesson):
    """One block and temperature, from what the model's own layer gives."""
    block, tau = label_lines._EVERY - 1, 8
    ids = torch.tensor([lesson.spans.ids])
    arrows = label_lines._sites(lesson)["arrow"]

    kept = []

    def states(ids):
        with torch.no_grad():
            lesson.checkpoint.model(ids)
        return kept.pop()

    hook = lesson.checkpoint.model.model.layers[block].register_forward_hook(lambda _m, _i, out: kept.append(out[0]))
    x_j = states(ids)[arrows]
    prompts = [lesson.task.prompt(query) for query in lesson.queries]
    stems = scoring.answer_prefixes(lesson.checkpoint, prompts, lesson.labels)  # what all labels begin with
    asked = [[*lesson.checkpoint.tokenize(its), *stem] for its, stem in zip(prompts, stems, strict=True)]
    x = torch.stack([states(torch.cat([ids, torch.tensor([its])], 1))[-1] for its in asked])
    hook.remove()
    K = torch.nn.functional.cosine_similarity((x - x.mean(0))[:, None], (x_j - x_j.mean(0))[None], dim=-1)
    weight = (tau * K).exp()
    sums = torch.stack([weight[:, lesson.label_of_line == c].sum(1) for c in range(4)], 1)
    found = [row for row in rows(held["kernels"]["kernels"]) if (row["block"], row["tau"]) == (block, tau)]
    sure = (sums / sums.sum(1, keepdim=True)).topk(2).values.diff(dim=1).abs()[:, 0] > 1e-5
    assert [row["query"] for row in found] == list(range(N)) and sure.any()
    for i in sure.nonzero()[:, 0].tolist():
        assert found[i]["vote"] == sums[i].argmax()


@pytest.mark.parametrize("command", ["vote", "label-lines", "ablations"])
def test_heads_of_one_model_are_not_taken_for_those_of_another(command, directory, capsys):
    assert cli.main([command, "--model", directory, "--list"]) == 1
    assert "rank its own" in capsys.readouterr().err
    if command == "vote":
        assert cli.main([command, "--model", directory, "--only", "rank", "--list"]) == 0
