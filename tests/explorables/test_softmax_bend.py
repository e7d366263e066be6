"""SoftmaxBend: its draws, its approximations of attention and their errors are Python's."""

import math

import numpy as np
import torch
from conftest import FRAME_MS
from javascript import close, computed, normals, tensor, uniforms

from explainer.explorables import SoftmaxBend
from explainer.theory import duality

SEED = SoftmaxBend().seed
LAST = 2**31 - 1
STATES = [dict(spread=0.5, tokens=64, seed=SEED), dict(spread=0.125, tokens=4, seed=0)]
STATES += [dict(spread=a, tokens=n, seed=s) for n in (4, 11, 128) for a in (0.3, 4.0) for s in (0, LAST)]
SMALL = [dict(spread=spread, tokens=64, seed=SEED) for spread in (0.01, 0.02)]
SHARES = {0.0123: "1.2\u00a0%", 0.0996: "10\u00a0%", 0.5: "50\u00a0%", 12345.6: "1,234,560\u00a0%"}
TYPICAL = ("scaled", "mean", "centred", "features")
PLACES = [dict(tokens=tokens, spread=spread) for tokens in (16, 32, 64, 128) for spread in (0.25, 0.5, 1, 2)]
FOUND = """{
    ...m.example(s), outputs: m.outputs(s), errors: m.errors(s), effective: m.effectiveTokens(s),
    logits: m.example(s).queries.map((query) => m.logits(query, m.example(s).keys)),
}"""
MORE = """{
    percents: full[0].shares.map(m.percent),
    numbers: Array.from({ length: 100 }, (await import("#explorables/random.js")).uniforms(full[0].seed)),
    spreads: quickest((i) => still({ ...full[0], tokens: 128, spread: 0.2 + i / 10 })),
    tokens: quickest((i) => still({ ...full[0], tokens: 100 + i })),
    errors: full[0].places.map((place) => Array.from({ length: 60 }, (_, seed) => m.errors({ ...place, seed }))),
}"""


def test_outputs_and_errors_are_those_of_the_package():
    own = computed("softmax_bend", STATES + SMALL, FOUND, MORE, shares=list(SHARES), places=PLACES)
    for state, found in zip(STATES + SMALL, own.results, strict=True):
        spread, n = state["spread"], state["tokens"]
        drawn = tensor(normals(state["seed"], 64 + 8 + 2 * 128, 8)).split([64, 8, 128, 128])
        projections, queries, keys, values = drawn[0], drawn[1], drawn[2][:n], drawn[3][:n]
        queries = queries * math.sqrt(spread) / duality.logit_spread(queries, keys)[:, None]
        keys = math.sqrt(spread) * keys
        for name, its in dict(queries=queries, keys=keys, values=values, projections=projections).items():
            close(found[name], its)
        close(np.std(found["logits"], axis=1), [spread] * len(queries))
        exact = duality.softmax_attention(queries, keys, values)
        relaxed = duality.relaxed_attention(queries, keys, values)
        approximations = dict(
            relaxed=relaxed,
            scaled=relaxed * (relaxed * exact).sum() / (relaxed**2).sum(),
            mean=values.mean(0).expand_as(exact),
            centred=duality.centred_linear_attention(queries, keys, values),
            features=duality.random_feature_attention(queries, keys, values, projections),
        )
        close(found["outputs"]["exact"], exact)
        for name, output in approximations.items():
            close(found["outputs"][name], output)
            close(found["errors"][name], duality.relative_error(output, exact))
        weights = duality.scaled_logits(queries, keys).softmax(-1)[0]
        close(found["effective"], torch.special.entr(weights).sum().exp().item())

    small, twice = (found["errors"] for found in own.results[-2:])
    assert abs(twice["centred"] / small["centred"] - 4) < 0.2, "centred linear attention errs in second order"
    assert abs(twice["mean"] / small["mean"] - 2) < 0.1, "and the mean of values in first order"
    assert own.percents == list(SHARES.values()) and own.numbers == uniforms(SEED, 100).tolist()
    assert max(own.spreads, own.tokens) < FRAME_MS
    logs = np.log([[[errors[name] for name in TYPICAL] for errors in seeds] for seeds in own.errors])
    upper = np.sort(logs, axis=1)[:, [30]]
    assert np.abs(logs - upper).max((0, 2)).argmin() == SEED, "the default seed is nearest to the medians of 60"
