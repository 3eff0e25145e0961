# SPDX-License-Identifier: Apache-2.0
"""Activations, losses, embeddings and containers as modules."""

import copy
import math
import pickle

import numpy as np
import pytest
from numerics import flow, host

nn, F = flow.nn, flow.nn.functional
RNG = np.random.default_rng(4)
X = RNG.standard_normal((3, 4)) * 3
Y = RNG.standard_normal((3, 4))

ACTIVATIONS = [
    (nn.ReLU, (), F.relu), (nn.SiLU, (), F.silu), (nn.LeakyReLU, (0.2,), F.leaky_relu),
    (nn.ELU, (1.5,), F.elu), (nn.GELU, ("tanh",), F.gelu), (nn.GELU, (), F.gelu),
    (nn.Softplus, (2.0,), F.softplus), (nn.LogSigmoid, (), F.logsigmoid),
    (nn.Sigmoid, (), flow.sigmoid), (nn.Tanh, (), flow.tanh),
]  # fmt: skip


@pytest.mark.parametrize("module, options, function", ACTIVATIONS)
def test_activations(module, options, function):
    x = flow.tensor(X)
    np.testing.assert_array_equal(host(module(*options)(x)), host(function(x, *options)))
    np.testing.assert_array_equal(host(module(*options)(input=x)), host(function(x, *options)))


@pytest.mark.parametrize("module, options, function", ACTIVATIONS[:4])
def test_activations_in_place(module, options, function):
    """The result lies in the input's memory, and gradients are those of the plain form."""
    grads = []
    for layer in (module(*options), module(*options, inplace=True)):
        x = flow.tensor(X, requires_grad=True)
        before = x * 1
        y = layer(before)
        assert (y is before) == layer.inplace
        (y * flow.tensor(Y)).sum().backward()
        grads.append(host(x.grad))
        np.testing.assert_array_equal(host(y), host(function(flow.tensor(X), *options)))
    np.testing.assert_allclose(*grads, rtol=1e-12)  # in place, elu's comes from the result
    with pytest.raises(RuntimeError, match="leaf"):
        function(flow.tensor(X, requires_grad=True), *options, inplace=True)


@pytest.mark.parametrize("name", ["square", "exp", "sin", "abs", "pow", "reciprocal"])
def test_methods_in_place_have_the_gradients_of_the_functions(name):
    grads = []
    for suffix in ("", "_"):
        x = flow.tensor(np.abs(X) + 1, requires_grad=True)
        args = (3,) if name == "pow" else ()
        getattr(x * 1, name + suffix)(*args).sum().backward()
        grads.append(host(x.grad))
    np.testing.assert_array_equal(*grads)


@pytest.mark.parametrize("module, text", [
    (nn.ReLU(), "ReLU()"), (nn.ReLU(inplace=True), "ReLU(inplace=True)"),
    (nn.GELU(), "GELU(approximate='none')"), (nn.ELU(), "ELU(alpha=1.0)"),
    (nn.LeakyReLU(0.1, True), "LeakyReLU(negative_slope=0.1, inplace=True)"),
    (nn.MSELoss(), "MSELoss()"), (nn.KLDivLoss(), "KLDivLoss()"),
    (nn.CrossEntropyLoss(), "CrossEntropyLoss()"), (nn.Softmax(1), "Softmax(dim=1)"),
    (nn.LayerNorm(10), "LayerNorm((10,), eps=1e-05, elementwise_affine=True)"),
    (nn.RMSNorm([2, 3]), "RMSNorm((2, 3), eps=None, elementwise_affine=True)"),
    (nn.GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True)"),
    (nn.Linear(2, 3), "Linear(in_features=2, out_features=3, bias=True)"),
    (nn.Embedding(5, 3), "Embedding(5, 3)"),
    (nn.Embedding(5, 3, 1, norm_type=1.0), "Embedding(5, 3, padding_idx=1, norm_type=1.0)"),
    (nn.Embedding(5, 3, None, 2.0, 1.0, sparse=True),
     "Embedding(5, 3, max_norm=2.0, norm_type=1.0, sparse=True)"),
    (nn.Hardshrink(), "Hardshrink(0.5)"), (nn.Softshrink(0.25), "Softshrink(0.25)"),
    (nn.TripletMarginWithDistanceLoss(),
     "TripletMarginWithDistanceLoss(\n  (distance_function): PairwiseDistance()\n)"),
    (nn.ParameterList([flow.ones(2), None]), "ParameterList(\n    (0): Parameter containing: "
     "[oneflow_lite.float32 of size 2]\n    (1): Object of type: NoneType\n)"),
    (nn.ModuleDict({"a": nn.Tanh()}), "ModuleDict(\n  (a): Tanh()\n)"),
])  # fmt: skip
def test_text(module, text):
    assert repr(module) == text


def test_losses_are_their_functions():
    x, y = flow.tensor(X), flow.tensor(Y)
    p, t = flow.sigmoid(x), flow.sigmoid(y)
    weight = flow.tensor(np.abs(Y))
    for module, given, want in (
        (nn.MSELoss(), (x, y), F.mse_loss(x, y)),
        (nn.L1Loss("sum"), (x, y), F.l1_loss(x, y, "sum")),
        (nn.SmoothL1Loss(beta=0.5), (x, y), F.smooth_l1_loss(x, y, beta=0.5)),
        (nn.HuberLoss("sum", 0.5), (x, y), F.huber_loss(x, y, "sum", 0.5)),
        (nn.KLDivLoss("batchmean"), (x, t), F.kl_div(x, t, "batchmean")),
        (nn.KLDivLoss(log_target=True), (x, y), F.kl_div(x, y, log_target=True)),
        (nn.BCELoss(weight, "sum"), (p, t), F.binary_cross_entropy(p, t, weight, "sum")),
        (nn.BCEWithLogitsLoss(weight, "none", weight), (x, t),
         F.binary_cross_entropy_with_logits(x, t, weight, "none", weight)),
    ):  # fmt: skip
        np.testing.assert_array_equal(host(module(*given)), host(want))
    assert list(nn.BCEWithLogitsLoss(pos_weight=weight).state_dict()) == ["pos_weight"]
    with pytest.raises(ValueError, match="delta is 0"):
        F.huber_loss(x, y, delta=0)
    with pytest.raises(flow.ShapeError, match="binary_cross_entropy"):
        F.binary_cross_entropy(p, flow.zeros(4))


def test_arguments_by_place_are_pytorchs():
    norm = nn.LayerNorm(4, 1e-3, True, True, "cpu", flow.float64)
    assert norm.bias.dtype is flow.float64 and norm.eps == 1e-3 and not norm.memory_efficient
    assert nn.RMSNorm(4, 1e-3, True, "cpu", flow.float16).weight.dtype is flow.float16
    assert nn.Linear(4, 2, False, "cpu", flow.float64).weight.dtype is flow.float64
    with pytest.raises(TypeError):
        nn.LayerNorm(4, 1e-3, True, True, None, None, True)


def test_group_norm_learns_per_channel():
    layer = nn.GroupNorm(2, 4, dtype=flow.float64)
    x = flow.tensor(RNG.standard_normal((2, 4, 3)))
    (layer(x) * x).sum().backward()
    assert layer.weight.grad.shape == layer.bias.grad.shape == (4,)
    assert nn.GroupNorm(1, 4, affine=False).weight is None
    assert layer.half()(x.half()).dtype is flow.float16
    with pytest.raises(ValueError, match="4 channels do not make 3 groups"):
        nn.GroupNorm(3, 4)
    assert F.group_norm(x[:0], 2).shape == (0, 4, 3)
    with pytest.raises(flow.ShapeError, match="make 3 groups"):
        F.group_norm(x, 3)


def test_heads_of_keys_that_serve_several_of_queries():
    q, k, v = (flow.tensor(RNG.standard_normal((2, heads, 3, 4))) for heads in (4, 2, 2))
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    wide = (t[:, [0, 0, 1, 1]] for t in (k, v))
    want = F.scaled_dot_product_attention(q, *wide, is_causal=True)
    np.testing.assert_array_equal(host(got), host(want))


def test_causal_attention_over_keys_of_another_number():
    """The first query sees the first key alone; a mask hides further ones."""
    for queries, keys in ((3, 5), (5, 3)):
        q, k, v = (flow.tensor(RNG.standard_normal((2, n, 4))) for n in (queries, keys, keys))
        seen, added = np.tri(queries, keys, dtype=bool), RNG.standard_normal((queries, keys))
        some = np.arange(keys) != 1
        for mask, both in (
            (None, seen),
            (flow.tensor(some), flow.tensor(seen & some)),
            (flow.tensor(added), flow.tensor(np.where(seen, added, -np.inf))),
        ):
            got = F.scaled_dot_product_attention(q, k, v, mask, is_causal=True)
            want = F.scaled_dot_product_attention(q, k, v, flow.tensor(both))
            np.testing.assert_allclose(host(got), host(want), rtol=1e-12)


def test_embedding():
    table = nn.Embedding(5, 3, padding_idx=-1)
    assert repr(table) == "Embedding(5, 3, padding_idx=4)" and table.padding_idx == 4
    assert table.weight[4].tolist() == [0, 0, 0]
    places = flow.tensor([[0, 4], [2, 2]])
    y = table(places)
    np.testing.assert_array_equal(host(y), host(table.weight)[host(places)])
    y.sum().backward()
    assert table.weight.grad[:, 0].tolist() == [1, 0, 2, 0, 0]
    other = nn.Embedding(5, 3)
    other.load_state_dict(table.state_dict())
    assert flow.equal(other.weight, table.weight)


def test_embedding_of_a_table_that_is_there():
    values = flow.tensor(X)
    table = nn.Embedding.from_pretrained(values)
    assert table.weight.data_ptr() == values.data_ptr() and not table.weight.requires_grad
    assert table(flow.tensor([2])).tolist() == [X[2].tolist()]
    assert nn.Embedding.from_pretrained(values, freeze=False).weight.requires_grad
    for bad in (lambda: nn.Embedding.from_pretrained(values[0]),
                lambda: nn.Embedding(4, 3, _weight=values)):  # fmt: skip
        with pytest.raises(flow.ShapeError, match="Embedding"):
            bad()


@pytest.mark.parametrize("container", [nn.Sequential, lambda *m: nn.ModuleList(m)])
def test_modules_in_order(container):
    modules = container(nn.ReLU(), nn.Tanh())
    modules.insert(1, nn.Sigmoid())
    modules += [nn.GELU()]
    names = [type(m).__name__ for m in modules]
    assert names == ["ReLU", "Sigmoid", "Tanh", "GELU"]
    assert [name for name, _ in modules.named_children()] == ["0", "1", "2", "3"]
    del modules[1:3]
    assert [type(m).__name__ for m in modules] == ["ReLU", "GELU"]
    del modules[-1]
    longer = modules + [nn.Tanh()]
    assert len(longer) == 2 and len(modules) == 1 and type(longer) is type(modules)
    modules[0] = nn.Tanh()
    assert isinstance(modules[0], nn.Tanh)


def test_modules_by_name():
    modules = nn.ModuleDict({"wte": nn.Embedding(4, 2), "drop": nn.Dropout()})
    assert modules.wte is modules["wte"] and list(modules) == list(modules.keys())
    modules.update([("out", nn.Linear(2, 4, bias=False))])
    assert "out" in modules and len(modules) == 3 and dict(modules.items())["out"] is modules.out
    assert list(modules.state_dict()) == ["wte.weight", "out.weight"]
    popped = modules.pop("drop")
    del modules["wte"]
    assert isinstance(popped, nn.Dropout) and [*modules.values()] == [modules.out]


def test_lists_of_parameters():
    parameters = nn.ParameterList(nn.Parameter(flow.zeros(n)) for n in (1, 2))
    parameters.append(nn.Parameter(flow.ones(3)))
    assert len(parameters) == 3 and parameters[-1].tolist() == [1, 1, 1]
    assert [p.numel() for p in parameters] == [p.numel() for p in parameters.parameters()]


def test_parts_by_their_path():
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 3)), nn.ReLU())
    assert model.get_submodule("0.0") is model[0][0] and model.get_submodule("") is model
    assert model.get_parameter("0.0.weight") is model[0][0].weight
    model.register_buffer("mask", flow.ones(2))
    model.register_buffer("absent", None, persistent=False)
    assert model.get_buffer("mask") is model.mask and model.get_buffer("absent") is None
    for get, wrong in (
        (model.get_submodule, ("0.7", "forward", "0.0.weight")),
        (model.get_parameter, ("0.0", "mask", "forward", "0.0.none", "0.0.weight.x")),
        (model.get_buffer, ("0", "0.0.weight", "forward", "none", "forward.mask")),
    ):
        for target in wrong:
            with pytest.raises(AttributeError, match="is no|has no"):
                get(target)
    del model.mask, model.absent
    kept = model.state_dict(keep_vars=True)
    assert kept["0.0.bias"] is model[0][0].bias
    assert repr(model.load_state_dict(kept)) == "<All keys matched successfully>"
    assert "unexpected_keys=['more']" in repr(
        model.load_state_dict({**kept, "more": flow.zeros(1)}, strict=False)
    )


@pytest.mark.parametrize(
    "made", [lambda m: copy.deepcopy(m), lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_share_nothing(made):
    model = nn.ModuleDict(
        {"norm": nn.LayerNorm(3), "list": nn.ParameterList([nn.Parameter(flow.ones(2))])}
    )
    other = made(model)
    assert repr(other) == repr(model)
    for (name, p), (same, q) in zip(
        model.named_parameters(), other.named_parameters(), strict=True
    ):
        assert name == same and type(q) is nn.Parameter and p.data_ptr() != q.data_ptr()
        assert flow.equal(p, q) and q.requires_grad and q.is_leaf


def test_gradients_are_clipped():
    def parameters():
        made = [nn.Parameter(flow.zeros(n)) for n in (2, 3)]
        made[0].grad, made[1].grad = flow.tensor([3.0, 0.0]), flow.tensor([0.0, 4.0, 0.0])
        return [*made, nn.Parameter(flow.zeros(1))]

    clip = nn.utils.clip_grad_norm_
    clipped = parameters()
    assert clip(clipped, 1.0).item() == 5
    assert clipped[0].grad.tolist() == pytest.approx([0.6, 0])
    clip(kept := parameters(), 10.0)
    assert kept[1].grad.tolist() == [0, 4, 0] and kept[2].grad is None
    clip(flat := parameters(), 1.0, math.inf)
    assert flat[1].grad.tolist() == pytest.approx([0, 1, 0])
    assert clip(clipped[0], 1.0).item() == pytest.approx(0.6) and clip([], 1.0).item() == 0
    kept[0].grad[0] = math.nan
    with pytest.raises(RuntimeError, match="nan"):
        clip(kept, 1.0, error_if_nonfinite=True)
    nn.utils.clip_grad_value_(flat, 0.5)
    assert flat[1].grad.tolist() == [0, 0.5, 0]
    vector = nn.utils.parameters_to_vector(flat)
    nn.utils.vector_to_parameters(vector + flow.arange(6.0), flat)
    assert [p.tolist() for p in flat] == [[0, 1], [2, 3, 4], [5]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_binary_cross_entropy_of_certain_probabilities(dtype):
    x = flow.tensor([0.0, 0.25, 1.0, 0.75], dtype=getattr(flow, dtype), requires_grad=True)
    target = flow.tensor([1.0, 1.0, 0.0, 0.0]).to(None, x.dtype)
    F.binary_cross_entropy(x.float(), target.float(), reduction="none")[1::2].sum().backward()
    assert host(x.grad).tolist() == [0, -4, 0, 4]
    certain = flow.tensor([0.0, 1.0], requires_grad=True)
    F.binary_cross_entropy(certain, flow.tensor([1.0, 0.0])).backward()
    assert np.isfinite(host(certain.grad)).all() and host(certain.grad)[0] < -1e10


def test_losses_of_large_values():
    x = flow.tensor([300.0, -350.0], dtype=flow.float16, requires_grad=True)
    y = F.huber_loss(x, flow.zeros(2, dtype=flow.float16), "none", 1000.0)
    assert np.allclose(host(y), [45000, 61250], rtol=1e-3)
    y.sum().backward()
    assert host(x.grad).tolist() == [300, -350]
    x = flow.tensor([math.inf, 0.5], requires_grad=True)
    F.smooth_l1_loss(x, flow.zeros(2), reduction="sum").backward()
    assert host(x.grad).tolist() == [1, 0.5]
    number = flow.tensor(0.5)
    assert F.kl_div(number.log(), number, reduction="batchmean").item() == 0


def test_attention_to_nothing_is_zero():
    q = flow.tensor(RNG.standard_normal((2, 3, 4)), requires_grad=True)
    seen = flow.tensor([[False] * 3, [True] * 3, [True, False, False]])
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=seen)
    assert not host(y)[:, 0].any() and np.isfinite(host(y)).all()
    y.sum().backward()
    assert np.isfinite(host(q.grad)).all()
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    empty = flow.zeros(0, 3, 8)
    assert attention(empty, empty, empty)[0].shape == (0, 3, 8)


def test_sequential_goes_with_a_number():
    layer, act = nn.Linear(2, 2), nn.ReLU()
    model = nn.Sequential(layer, act)
    assert [*(model * 2)] == [*(2 * model)] == [layer, act, layer, act] and len(model) == 2
    model *= 2
    assert list(model._modules) == ["0", "1", "2", "3"] and model.pop(1) is act
    assert [*model.insert(-1, act)] == [layer, layer, act, act]
    with pytest.raises(IndexError, match=r"index 5 is out of range \[-4, 4\]"):
        model.insert(5, act)
    with pytest.raises(ValueError, match="0 times"):
        model * 0
    with pytest.raises(TypeError, match="goes with an int"):
        model * 1.5


def test_parameter_lists_grow_and_are_cut():
    a, b, c = (nn.Parameter(flow.full([n], float(n))) for n in (1, 2, 3))
    parameters = nn.ParameterList([a])
    parameters += [b]
    assert [*parameters.extend([flow.ones(4)])][:2] == [a, b] and len(parameters) == 3
    parameters[-1] = c
    assert [*parameters[1:]] == [b, c] and isinstance(parameters[:1], nn.ParameterList)
    assert list(dict(parameters.named_parameters())) == ["0", "1", "2"]
    assert "(1): Parameter containing: [oneflow_lite.float32 of size 2]" in repr(parameters)
    for index in (3, 4, -4):
        with pytest.raises(IndexError, match=f"index {index} is out of range of its 3"):
            parameters[index] = a
    assert len(parameters) == 3


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weighted_losses(name):
    loss = getattr(F, name)
    x, y = flow.tensor([1.0, 2.0, 4.0]), flow.tensor([0.5, 4.0, 4.5])
    weight = flow.tensor([1.0, 0.0, 3.0])
    each = host(loss(x, y, reduction="none")) * host(weight)
    np.testing.assert_allclose(host(loss(x, y, reduction="none", weight=weight)), each)
    over = 3 if name == "huber_loss" else 4  # the losses, else their weights
    assert loss(x, y, weight=weight).item() == pytest.approx(each.sum() / over)
    assert loss(x, y, "sum", weight=weight).item() == pytest.approx(each.sum())
    with pytest.raises(flow.ShapeError, match=rf"{name}\(\): weight has shape \[1\], expected"):
        loss(x, y, weight=flow.ones(1))
    with pytest.warns(
        UserWarning, match=r"target has shape \[1\], input \[3\]: they broadcast"
    ) as said:
        loss(x, flow.ones(1))
    assert said[0].filename == __file__
    many = flow.zeros(100_000, dtype=flow.float16)
    assert loss(many, many + 1, weight=many + 1).item() == loss(many[:1], many[:1] + 1).item()


@pytest.mark.parametrize("norm_type", [2.0, 1.0])
def test_embedding_bounds_the_rows_that_are_looked_up(norm_type):
    table = np.random.default_rng(5).standard_normal((6, 3)).astype(np.float32)
    layer = nn.Embedding(6, 3, None, 0.5, norm_type, _weight=flow.tensor(table))
    y = layer(flow.tensor([[0, 1], [3, 3]]))
    y.sum().backward()
    norms = np.linalg.norm(table, norm_type, axis=1, keepdims=True)
    bounded = np.where(norms > 0.5, table * 0.5 / norms, table)
    seen = np.array([[True], [True], [False], [True], [False], [False]])
    np.testing.assert_allclose(host(layer.weight), np.where(seen, bounded, table), rtol=1e-5)
    np.testing.assert_allclose(host(y), bounded[[[0, 1], [3, 3]]], rtol=1e-5)
    assert layer.weight.grad[:, 0].tolist() == [1, 1, 0, 2, 0, 0]
    before = host(layer.weight).copy()
    for row in (6, -1):
        with pytest.raises(IndexError, match=rf"embedding\(\): index {row} is out of range \[0, 5"):
            layer(flow.tensor([row, 2]))
    assert (host(layer.weight) == before).all() and layer(flow.tensor([[]]).long()).shape[1] == 0
    shown = "" if norm_type == 2 else f", norm_type={norm_type}"
    assert repr(layer) == f"Embedding(6, 3, max_norm=0.5{shown})"
    with pytest.raises(NotImplementedError, match="scale_grad_by_freq=True is not supported"):
        nn.Embedding(6, 3, scale_grad_by_freq=True)
    whole = nn.Embedding.from_pretrained(flow.tensor([[1, 2]]))
    assert whole(flow.tensor([0])).tolist() == [[1, 2]] and not whole.weight.requires_grad
