"""explainer.theory.weight_patches: the context as changes of an MLP's matrices, exact for every norm, gate and bias."""

import pytest
import torch
from draws import randn
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import layer_norm, silu

from explainer.theory import weight_patches
from explainer.theory.weight_patches import LowRank

D, HIDDEN, M = 6, 10, 3


NORMS = {
    "LayerNorm": lambda r: layer_norm(r, (D,), randn(D, seed=90), randn(D, seed=91)),
    "RMSNorm": lambda r: randn(D, seed=92) * r / (r.square().mean(-1, keepdim=True) + 1e-6).sqrt(),
    "none": lambda r: r,
}
ACTIVATIONS = {"plain": lambda z: torch.relu(z) + 0.1 * z, "gated": lambda gate, up: silu(gate) * up}


class Block:
    """r + W_out phi(W_i norm(r) + b_i) + b_out, in which the matrices may be changed."""

    def __init__(self, norm, kind, seed):
        self.norm, self.phi = NORMS[norm], ACTIVATIONS[kind]
        n_inputs = 2 if kind == "gated" else 1
        self.W = [randn(HIDDEN, D, seed=seed + i) for i in range(n_inputs)]
        self.b = [randn(HIDDEN, seed=seed + 10 + i) for i in range(n_inputs)]
        self.W_out, self.b_out = randn(D, HIDDEN, seed=seed + 20), randn(D, seed=seed + 21)

    def activations(self, r):
        n = self.norm(r)
        z = tuple(n @ W.T + b for W, b in zip(self.W, self.b, strict=True))
        return n, z, self.phi(*z), r

    def __call__(self, r, changes=None):
        """With `changes`, full matrices that are added to W_1, ..., W_out."""
        *dW, dW_out = changes or [torch.zeros_like(W) for W in (*self.W, self.W_out)]
        n = self.norm(r)
        z = (n @ (W + dW).T + b for W, dW, b in zip(self.W, dW, self.b, strict=True))
        return r + self.phi(*z) @ (self.W_out + dW_out).T + self.b_out


def changes_of_weights(without, with_context):
    """The patch of the module's docstring, for each of the queries the changes of W_1, ..., W_out."""
    (n, z, _, r), (_, z_context, a_context, r_context) = without, with_context
    updates = [weight_patches.rank_one(n, after - before) for before, after in zip(z, z_context, strict=True)]
    updates.append(weight_patches.rank_one(a_context, r_context - r))
    return [[torch.outer(update.left[i], update.right[i]) for update in updates] for i in range(M)]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ACTIVATIONS)
@given(seed=st.integers(0, 1000), size=st.sampled_from([1e-3, 1.0, 30.0]))
def test_with_its_patch_the_block_does_without_context_what_it_does_with_context(norm, kind, seed, size):
    block, r = Block(norm, kind, 7 * seed), randn(M, D, seed=seed)
    r_context = r + size * randn(M, D, seed=seed + 5)
    of_queries = changes_of_weights(block.activations(r), block.activations(r_context))
    for i, changes in enumerate(of_queries):
        scale = 1 + max(W.norm() * r_context.norm() for W in (*block.W, block.W_out))
        torch.testing.assert_close(
            block(r[i], changes), block(r_context[i]), rtol=1e-10, atol=1e-13 * float(scale) ** 2
        )


def test_a_rank_one_change_is_the_smallest_that_gives_the_change():
    """Every other dW with dW x = change is larger by a part that x does not see."""
    x, change = randn(1, D, seed=1), randn(1, HIDDEN, seed=2)
    update = weight_patches.rank_one(x, change)
    dW = update.left.T @ update.right
    torch.testing.assert_close(dW @ x[0], change[0])
    unseen = randn(HIDDEN, D, seed=3)
    unseen -= torch.outer(unseen @ x[0], x[0]) / x[0].square().sum()
    assert torch.linalg.matrix_norm(dW + unseen) > torch.linalg.matrix_norm(dW)
    assert abs((dW * unseen).sum()) < 1e-12
    nothing, something = torch.zeros(1, D), torch.ones(1, HIDDEN)
    assert not weight_patches.rank_one(nothing, 0 * something).right.any()
    assert weight_patches.rank_one(nothing, something).right.isnan().all()


def test_weights_combine_changes_for_each_x():
    update = LowRank(randn(4, HIDDEN, seed=1), randn(4, D, seed=2))
    x, weights = randn(2, 5, D, seed=3), randn(2, 1, 4, seed=4)
    for i in range(2):
        dW = sum(w * torch.outer(left, right) for w, left, right in zip(weights[i, 0], *update, strict=True))
        torch.testing.assert_close(update.times(x, weights)[i], x[i] @ dW.T)
    torch.testing.assert_close(update.times(x), x @ (update.left.T @ update.right).T)
