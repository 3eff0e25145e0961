# SPDX-License-Identifier: Apache-2.0
"""ParameterDict, Unflatten and the distances of vectors, as modules."""

import copy
import pickle

import numpy as np
import pytest
from numerics import HALVES, flow, host, tensor

nn, F = flow.nn, flow.nn.functional
RNG = np.random.default_rng(11)
A, B = RNG.standard_normal((2, 3, 5))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterDict({"a": flow.ones(2), "b": nn.Parameter(flow.zeros(3))})


def test_parameters_by_name():
    model = Model()
    weights = model.weights
    assert [n for n, _ in model.named_parameters()] == ["weights.a", "weights.b"]
    assert list(weights) == ["a", "b"] and len(weights) == 2 and "a" in weights
    assert isinstance(weights["a"], nn.Parameter) and weights["a"] is weights.a
    assert weights.get("c") is None and weights.get("a") is weights["a"]
    assert [n for n, _ in weights.items()] == list(weights.keys())
    assert [id(p) for p in weights.values()] == [id(p) for p in model.parameters()]

    weights["c"] = flow.full((1,), 5.0)
    (weights["c"] * 2).sum().backward()
    assert weights.c.grad.tolist() == [2.0]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), Model()):
        if "c" not in other.weights:
            other.weights.update([("c", flow.zeros(1))])
        other.load_state_dict(model.state_dict())
        assert other.weights["c"].item() == 5.0 and other.weights["c"] is not weights["c"]
    assert "(a): Parameter containing: [oneflow_lite.float32 of size 2]" in repr(weights)

    popped = weights.pop("a")
    assert popped.tolist() == [1.0, 1.0] and list(weights) == ["b", "c"]
    del weights["b"]
    weights.clear()
    assert len(weights) == 0 and not list(model.parameters())
    with pytest.raises(KeyError):
        weights["a"]


def test_unflatten_is_the_opposite_of_flatten():
    x = flow.arange(24.0).view(2, 3, 4)
    model = nn.Sequential(nn.Flatten(), nn.Unflatten(1, (3, 4)))
    assert flow.equal(model(x), x)
    assert nn.Unflatten(-1, [2, -1])(x).shape == (2, 3, 2, 2)
    assert repr(model[1]) == "Unflatten(dim=1, unflattened_size=(3, 4))"


@pytest.mark.parametrize("p", [1, 2, 3.5, np.inf])
def test_distances(p):
    x, y = flow.tensor(A, requires_grad=True), flow.tensor(B, requires_grad=True)
    for keepdim in (False, True):
        expected = np.linalg.norm(A - B + 1e-6, p, axis=-1, keepdims=keepdim)
        got = nn.PairwiseDistance(p, keepdim=keepdim)(x, y)
        np.testing.assert_allclose(host(got), expected, rtol=1e-12)
    assert flow.autograd.gradcheck(lambda a, b: F.pairwise_distance(a, b, p), (x, y))
    same = F.pairwise_distance(x, x.detach(), p)
    assert same.isfinite().all()
    assert flow.autograd.grad(same.sum(), x)[0].isfinite().all()


@pytest.mark.parametrize("dtype", HALVES)
def test_distances_of_16_bits_are_rounded_once(dtype):
    x, y = tensor(A * 200, dtype), tensor(B * 200, dtype)
    exact = np.linalg.norm(host(x) - host(y) + 1e-6, axis=-1)
    got = F.pairwise_distance(x, y)
    assert got.dtype is x.dtype
    np.testing.assert_array_equal(host(got), host(tensor(exact, dtype)))


def test_cosines():
    x, y = flow.tensor(A), flow.tensor(B)
    expected = (A * B).sum(1) / np.linalg.norm(A, axis=1) / np.linalg.norm(B, axis=1)
    np.testing.assert_allclose(host(nn.CosineSimilarity()(x, y)), expected)
    np.testing.assert_allclose(host(nn.CosineSimilarity(dim=0)(x.t(), y.t())), expected)
