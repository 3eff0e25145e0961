# SPDX-License-Identifier: Apache-2.0
"""ParameterDict, Unflatten and the distances of vectors, as modules."""

import copy
import inspect
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


def test_unflatten_of_an_empty_batch():
    x = flow.zeros(0, 12)
    assert x.unflatten(-1, (-1, 4)).shape == (0, 3, 4)
    assert x.unflatten(1, (2, -1, 2)).shape == (0, 2, 3, 2)
    assert x.unflatten(0, (-1, 5)).shape == (0, 5, 12)
    for sizes in ((5,), (-1, 5), (2, 3), (-1, -1), (12, -2)):
        with pytest.raises(flow.ShapeError, match=r"^unflatten\(\): sizes .* do not go with dim 1"):
            x.unflatten(1, sizes)
    with pytest.raises(flow.ShapeError, match=r"^unflatten\(\)"):
        x.unflatten(0, (-1, 0))


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


def test_losses_speak_of_shapes_that_do_not_broadcast():
    x, y = flow.ones(2, 3), flow.ones(4)
    for loss in (F.l1_loss, F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.kl_div):
        text = rf"{loss.__name__}\(\): target has shape \[4\], input \[2, 3\]: they do not"
        with pytest.raises(flow.ShapeError, match=text):
            loss(x, y)


def test_binary_cross_entropy_takes_shares():
    x = flow.tensor([0.0, 0.5, 1.0])
    for wrong in (-0.5, 1.5, np.nan):
        y = flow.tensor([0.5, wrong, 0.5])
        for name, given in (("input", (y, x)), ("target", (x, y))):
            text = rf"binary_cross_entropy\(\): {name} has elements from"
            with pytest.raises(ValueError, match=text):
                nn.BCELoss()(*given)
    assert F.binary_cross_entropy(x, x > 0.7).isfinite()
    assert F.binary_cross_entropy(x[:0], x[:0], reduction="sum").item() == 0


def test_modules_say_what_is_wrong_with_their_numbers():
    with pytest.raises(ValueError, match="GroupNorm: 4 channels do not make 0 groups"):
        nn.GroupNorm(0, 4)
    with pytest.raises(ValueError, match="MultiheadAttention: num_heads is 0, but it must be"):
        nn.MultiheadAttention(8, 0)
    for clip in (nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_):
        with pytest.raises(TypeError, match=rf"{clip.__name__}\(\): a parameter must be a Tensor"):
            clip([3.0], 1.0)


def test_lists_of_parameters_keep_what_is_no_tensor():
    w = nn.Parameter(flow.ones(2))
    values = nn.ParameterList([None, w, 3, flow.zeros(1), "name"])
    assert [*values][:3] == [None, w, 3] and values[4] == "name" and len(values) == 5
    assert isinstance(values[3], nn.Parameter) and values[-2] is values[3]
    assert [n for n, _ in values.named_parameters()] == ["1", "3"] == [*values.state_dict()]
    assert "(0): Object of type: NoneType" in repr(values) and "(4): Object of type: str" in repr(
        values
    )
    assert [*nn.ParameterList([None])] == [None] and [*nn.ParameterList([None]).parameters()] == []
    values[0], values[1] = flow.full([2], 5.0), None  # a place may change its kind
    assert [n for n, _ in values.named_parameters()] == ["0", "3"] and values[1] is None
    assert [*values[:2]] == [values[0], None]
    values.append(None).extend([w, None])
    assert len(values) == 8 and values[6] is w
    for made in (copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
        assert made[1] is None and made[2] == 3 and made[0].tolist() == [5, 5]
        assert made[0] is not values[0]
        made.load_state_dict(values.state_dict())
    moved = nn.ParameterList([None, w]).to(flow.float64)
    assert moved[0] is None and moved[1].dtype is flow.float64
    model = nn.Module()
    model.biases = nn.ParameterList([None, flow.ones(1)])
    assert [n for n, _ in model.named_parameters()] == ["biases.1"]


def test_dicts_of_parameters_keep_what_is_no_tensor():
    values = nn.ParameterDict({"a": None, "b": flow.ones(2), "c": 3})
    assert values["a"] is None and values.get("c") == 3 and values.get("d", 7) == 7
    assert list(values) == list(values.keys()) == ["a", "b", "c"] and "a" in values
    assert [type(v).__name__ for v in values.values()] == ["NoneType", "Parameter", "int"]
    assert list(dict(values.items())) == ["a", "b", "c"] and len(values) == 3
    assert list(values.state_dict()) == ["b"] and "(a): Object of type: NoneType" in repr(values)
    assert values.pop("c") == 3 and "c" not in values
    del values["a"]
    with pytest.raises(KeyError):
        values["a"]
    values.clear()
    assert len(values) == 0 and list(values.parameters()) == []


def test_parameters_by_name_are_a_dict():
    a, b = nn.Parameter(flow.ones(1)), nn.Parameter(flow.zeros(2))
    weights = nn.ParameterDict({"a": a})
    assert weights.setdefault("a", b) is a and weights.setdefault("b", b) is b
    assert list(reversed(weights)) == ["b", "a"]
    other = weights.copy()
    assert isinstance(other, nn.ParameterDict) and other["a"] is a and list(other) == ["a", "b"]
    assert other.popitem() == ("b", b) and list(other) == ["a"] and list(weights) == ["a", "b"]
    assert other.popitem()[1] is a
    with pytest.raises(KeyError, match="no parameter"):
        other.popitem()
    merged = nn.ParameterDict({"a": a}) | nn.ParameterDict({"b": b, "a": b})
    assert merged["a"] is b and list(merged) == ["a", "b"]
    merged |= {"c": flow.ones(3)}
    assert isinstance(merged["c"], nn.Parameter) and len(list(merged.parameters())) == 2
    assert list(merged.fromkeys("xy", 1.0).items()) == [("x", 1.0), ("y", 1.0)]
    assert len(nn.ParameterList(values=[a, b])) == 2
    assert merged.fromkeys(keys="x").setdefault(key="x") is None
    assert len(nn.ParameterList(None)) == len(nn.ModuleList(None)) == 0
    assert isinstance(nn.Sequential(nn.ReLU(), nn.Tanh()).pop(key=0), nn.ReLU)


def test_a_module_in_the_place_of_another():
    model = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"act": nn.ReLU()}))
    new = nn.Tanh()
    model.set_submodule("1.act", new)
    assert model[1]["act"] is new and model.get_submodule("1.act") is new
    model.set_submodule("0", new)
    assert model[0] is new
    for target in ("2", "1.norm", "2.act", "3.x", ""):
        with pytest.raises(AttributeError, match="has no "):
            model.set_submodule(target, new, strict=True)
    for target in ("2.act", "3.x", "1.training"):
        with pytest.raises(AttributeError, match="has no "):
            model.set_submodule(target, new)
    model.set_submodule("1.norm", new)
    assert list(model[1]) == ["act", "norm"] and model[1]["norm"] is new
    with pytest.raises(TypeError, match=r"set_submodule\(\): module must be a Module, not int"):
        model.set_submodule("0", 3)


ACTIVATIONS = {"CELU": "alpha=1.0, inplace=False", "GLU": "dim=-1", "Hardshrink": "lambd=0.5",
               "Hardtanh": "min_val=-1.0, max_val=1.0, inplace=False", "Mish": "inplace=False",
               "Softshrink": "lambd=0.5",
               "Threshold": "threshold, value, inplace=False"}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_shows_its_numbers(name):
    signature = inspect.signature(getattr(nn, name))
    shown = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default}"
        for p in signature.parameters.values()
    )
    assert shown == ACTIVATIONS[name]
    with pytest.raises(TypeError, match=rf"^{name}\(\): got an unexpected keyword argument 'no'"):
        getattr(nn, name)(*[1.0] * (2 if name == "Threshold" else 0), no=1)


def test_what_a_module_shows_of_its_options():
    assert repr(nn.GroupNorm(1, 2, bias=False)) == (
        "GroupNorm(1, 2, eps=1e-05, affine=True, bias=False)"
    )
    assert repr(nn.GroupNorm(1, 2)) == "GroupNorm(1, 2, eps=1e-05, affine=True)"
    assert nn.MultiheadAttention(12, 3).head_dim == 4
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1)
    for model in (encoder, decoder):
        assert "(norm)" not in repr(model) and model.norm is None
        model.norm = nn.LayerNorm(4)
        assert "(norm): LayerNorm" in repr(model)


def test_gains():
    gain = nn.init.calculate_gain
    for n in (1, 2, 3):
        assert gain(f"conv{n}d") == gain(f"conv_transpose{n}d") == gain("linear") == 1
    assert gain("leaky_relu", 1) == 1 and gain("leaky_relu") == pytest.approx(2**0.5, rel=1e-3)
    for wrong in (("conv4d",), ("leaky_relu", True), ("leaky_relu", "0.1"), ("leaky_relu", [0.1])):
        with pytest.raises(ValueError):
            gain(*wrong)


def test_what_cannot_be_moved_stays_with_its_gradient():
    layer = nn.Linear(2, 3)
    layer.weight.grad, layer.bias.grad = flow.ones(3, 2), flow.ones(3)
    with pytest.raises(flow.DTypeError, match="floating"):
        layer.to(flow.int64)
    assert layer.weight.grad.tolist() == [[1, 1]] * 3 and layer.bias.grad.tolist() == [1] * 3
    assert layer.weight.dtype is flow.float32
    grad = layer.to(flow.float64).weight.grad
    assert grad.dtype is flow.float64 and grad.tolist() == [[1, 1]] * 3


def test_a_module_that_contains_itself_is_an_error():
    layer = nn.Linear(2, 2)
    layer.inner = nn.Sequential(layer)
    assert [name for name, _ in layer.named_modules()] == ["", "inner"]
    with pytest.raises(RuntimeError, match="inner.0 is a Linear that contains itself"):
        list(layer.named_modules(remove_duplicate=False))
    with pytest.raises(RuntimeError, match="contains itself"):
        layer.load_state_dict({})
    shared = nn.Sequential(a := nn.ReLU(), a, nn.Sequential(a))
    names = [name for name, _ in shared.named_modules(remove_duplicate=False)]
    assert names == ["", "0", "1", "2", "2.0"]
