# SPDX-License-Identifier: Apache-2.0
"""Modules: the tree, hooks, layers against NumPy, initial values."""

import copy
import math

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
nn = flow.nn
F = nn.functional


def small_model():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))


def test_functional_is_the_builtin():
    assert F.softmax is flow.softmax is flow._C.softmax
    assert F.log_softmax is flow.log_softmax
    assert F.cross_entropy is flow.cross_entropy


def test_linear_is_x_times_weight_plus_bias():
    layer = nn.Linear(5, 3)
    x = np.random.default_rng(0).standard_normal((2, 4, 5)).astype(np.float32)
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
    np.testing.assert_allclose(layer(flow.from_numpy(x)).detach().numpy(), expected, atol=1e-6)


def test_linear_refuses_another_last_dim():
    with pytest.raises(
        flow.ShapeError, match=r"linear\(\): input has shape \[2, 4\], expected a last dim of 5"
    ):
        nn.Linear(5, 3)(flow.zeros(2, 4))


@pytest.mark.parametrize("bias", [True, False])
def test_linear_draws_within_pytorchs_bounds(bias):
    flow.manual_seed(0)
    layer = nn.Linear(100, 300, bias=bias)
    weight = layer.weight.detach().numpy()
    assert np.abs(weight).max() <= 0.1
    assert weight.std() == pytest.approx(0.1 / math.sqrt(3), rel=0.02)
    assert (layer.bias is not None) == bias
    if bias:
        assert np.abs(layer.bias.detach().numpy()).max() <= 0.1
        assert layer.bias.detach().numpy().std() > 0.04


def test_initial_values_depend_on_the_seed_alone():
    def draw(seed):
        flow.manual_seed(seed)
        return nn.Linear(7, 5).weight.detach().numpy().copy()

    np.testing.assert_array_equal(draw(3), draw(3))
    assert not np.array_equal(draw(3), draw(4))


@pytest.mark.parametrize(
    "fill, low, high, std",
    [
        (lambda x: nn.init.uniform_(x, -2, 4), -2, 4, 6 / math.sqrt(12)),
        (lambda x: nn.init.normal_(x, 1, 0.5), -3, 5, 0.5),
        (lambda x: nn.init.zeros_(x), 0, 0, 0),
        (lambda x: nn.init.ones_(x), 1, 1, 0),
        # fan_in 200, fan_out 100
        (lambda x: nn.init.xavier_uniform_(x), -math.sqrt(0.02), math.sqrt(0.02),
         math.sqrt(0.02 / 3)),
        (lambda x: nn.init.kaiming_uniform_(x, nonlinearity="relu"), -math.sqrt(0.03),
         math.sqrt(0.03), math.sqrt(0.01)),
        (lambda x: nn.init.kaiming_uniform_(x, mode="fan_out", nonlinearity="linear"),
         -math.sqrt(0.03), math.sqrt(0.03), math.sqrt(0.01)),
        (lambda x: nn.init.xavier_normal_(x, 2.0), -2, 2, 2 * math.sqrt(2 / 300)),
        (lambda x: nn.init.kaiming_normal_(x, nonlinearity="relu"), -1, 1, math.sqrt(2 / 200)),
        (lambda x: nn.init.trunc_normal_(x, 0.5, 1.0, 0.0, 1.0), 0, 1, 0.2840),
    ],
    ids=["uniform", "normal", "zeros", "ones", "xavier", "kaiming", "kaiming_fan_out",
         "xavier_normal", "kaiming_normal", "truncated"],
)  # fmt: skip
def test_init_has_the_spread_it_says(fill, low, high, std):
    x = flow.empty(100, 200, requires_grad=True)
    assert fill(x) is x
    assert x.is_leaf and x.requires_grad
    values = x.detach().numpy()
    assert low - 1e-6 <= values.min() and values.max() <= high + 1e-6
    assert values.std() == pytest.approx(std, rel=0.03, abs=1e-12)


def test_softmax_modules_take_the_default_dim():
    x = flow.randn(2, 3, 4)
    expected = flow.softmax(x, 0).numpy()
    np.testing.assert_array_equal(nn.Softmax()(x).numpy(), expected)
    np.testing.assert_array_equal(
        nn.LogSoftmax(dim=1)(x).numpy(), flow.log_softmax(x, 1).numpy()
    )  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_loss_is_nll_of_log_softmax(reduction):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((6, 4)), rng.integers(0, 4, 6)
    y[2] = -100
    weight = rng.random(4)
    log_p = x - x.max(1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(1, keepdims=True))
    label = np.where(y == -100, 0, y)
    counted = np.where(y == -100, 0.0, weight[label])
    terms = -log_p[np.arange(6), label] * counted
    expected = {"none": terms, "sum": terms.sum(), "mean": terms.sum() / counted.sum()}[reduction]
    logits, target = flow.from_numpy(x), flow.from_numpy(y)
    loss = nn.CrossEntropyLoss(flow.from_numpy(weight), reduction=reduction)
    np.testing.assert_allclose(loss(logits, target).numpy(), expected, rtol=1e-12)
    nll = nn.NLLLoss(flow.from_numpy(weight), reduction=reduction)
    np.testing.assert_allclose(nll(flow.log_softmax(logits, 1), target).numpy(), expected,
                               rtol=1e-12)  # fmt: skip


def test_flatten_and_identity():
    x = flow.randn(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0)(x).shape == (24,)
    assert nn.Identity(1, any_argument=2)(x) is x


def test_the_tree_is_walked_in_order_and_once():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.Sequential(shared, nn.Linear(2, 1)))
    assert [name for name, _ in model.named_modules()] == ["", "0", "1", "1.1"]
    assert [name for name, _ in model.named_parameters()] == [
        "0.weight", "0.bias", "1.1.weight", "1.1.bias"]  # fmt: skip
    assert list(model.children()) == [shared, model[1]]
    assert list(model.parameters(recurse=False)) == []


def test_parameters_are_leaves_that_stay_themselves():
    model = small_model()
    weight = model[0].weight
    assert isinstance(weight, nn.Parameter) and isinstance(weight, flow.Tensor)
    assert weight.is_leaf and weight.requires_grad
    identity = id(weight)
    del weight
    assert id(model[0].weight) == identity
    assert isinstance(model[0].weight, nn.Parameter)
    assert not nn.Parameter(flow.ones(2), requires_grad=False).requires_grad
    with pytest.raises(TypeError, match="data must be a Tensor"):
        nn.Parameter([1.0])


def test_assigning_moves_names_between_kinds():
    module = nn.Module()
    module.x = 3
    module.x = nn.Parameter(flow.ones(2))
    assert "x" not in module.__dict__ and list(module.parameters())[0] is module.x
    with pytest.raises(TypeError, match="x is registered as a Parameter"):
        module.x = 4
    module.x = None
    assert module.x is None and list(module.parameters()) == []
    del module.x
    with pytest.raises(AttributeError, match="Module has no attribute 'x'"):
        module.x  # noqa: B018
    with pytest.raises(AttributeError, match="x"):
        del module.x


@pytest.mark.parametrize("name", ["", "a.b", 3, "forward"])
def test_bad_names_are_refused(name):
    error = KeyError if isinstance(name, str) else TypeError  # PyTorch's
    for register, given in (
        (nn.Module.register_buffer, flow.ones(1)),
        (nn.Module.register_parameter, nn.Parameter(flow.ones(1))),
        (nn.Module.register_module, nn.Identity()),
    ):
        with pytest.raises(error, match="forward|is no name"):
            register(nn.Module(), name, given)


def test_what_is_shared_is_named_once_or_at_each_place():
    layer = nn.Linear(2, 2, bias=False)
    model = nn.Sequential(layer, nn.Sequential(layer, nn.ReLU()), layer)
    assert [name for name, _ in model.named_children()] == ["0", "1"]
    assert [name for name, _ in model.named_modules()] == ["", "0", "1", "1.1"]
    everywhere = ["", "0", "1", "1.0", "1.1", "2"]
    assert [name for name, _ in model.named_modules(remove_duplicate=False)] == everywhere
    assert [name for name, _ in model.named_modules({layer}, "m")] == ["m", "m.1", "m.1.1"]
    assert [name for name, _ in model.named_parameters()] == ["0.weight"]
    assert [name for name, _ in model.named_parameters(remove_duplicate=False)] == [
        "0.weight", "1.0.weight", "2.weight"
    ]  # fmt: skip
    assert list(model.state_dict()) == ["0.weight", "1.0.weight", "2.weight"]
    assert "0" not in dir(model)


def test_train_and_to_refuse_what_they_cannot_be():
    model = small_model()
    with pytest.raises(ValueError, match=r"train\(\): mode must be True or False, not 'eval'"):
        model.train("eval")
    with pytest.raises(TypeError, match=r"to\(\): dtype is int64, but it must be a floating"):
        model.to(flow.int64)
    assert model[0].weight.dtype is flow.float32
    assert nn.Parameter().shape == (0,) and nn.Parameter().requires_grad


def test_forgetting_super_init_is_told():
    class Broken(nn.Module):
        def __init__(self):
            self.layer = nn.Identity()

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
        Broken()
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)


def test_a_module_below_may_define_train():
    calls = []

    class Merging(nn.Linear):
        def train(self, mode=True):
            calls.append(mode)
            return super().train(mode)

    class Frozen(nn.Sequential):
        def train(self, mode=True):
            return super().train(False)

    shared = nn.Dropout()
    model = nn.Sequential(Merging(2, 2), nn.ModuleDict({"a": Merging(2, 2), "b": shared}),
                          Frozen(nn.Dropout(), nn.Sequential(shared)))  # fmt: skip
    assert model.train() is model and calls == [True, True]
    assert not any(m.training for m in model[2].modules())
    assert model.eval() is model and calls == [True, True, False, False]
    assert not any(m.training for m in model.modules())


def test_train_eval_apply_requires_grad():
    model = small_model()
    assert model.eval() is model and not any(m.training for m in model.modules())
    assert model.train()[0].training
    seen = []
    model.apply(seen.append)
    assert seen == [*model.children(), model]
    model.requires_grad_(False)
    assert not any(p.requires_grad for p in model.parameters())


def test_zero_grad():
    model = small_model()
    model(flow.ones(1, 3)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    model.zero_grad(set_to_none=False)
    assert all(not p.grad.numpy().any() for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_hooks_see_and_change():
    model = nn.Identity()
    first = model.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    second = model.register_forward_hook(lambda m, args, y: y * 10)
    assert model(flow.ones(1)).item() == 20
    first.remove()
    first.remove()
    assert model(flow.ones(1)).item() == 10
    second.remove()
    assert model(flow.ones(1)).item() == 1


def test_to_keeps_parameters_the_same_objects():
    model = small_model()
    model.register_buffer("steps", flow.tensor([3]))
    before = list(model.parameters())
    model(flow.ones(1, 3)).sum().backward()
    assert model.to(flow.float64) is model
    for p, q in zip(before, model.parameters(), strict=True):
        assert p is q and p.dtype == flow.float64 and p.grad.dtype == flow.float64
    assert model.steps.dtype == flow.int64
    y = model(flow.ones(1, 3, dtype=flow.float64)).sum()
    y.backward()
    assert model[0].weight.grad.dtype == flow.float64


def test_repr_shows_the_tree():
    assert repr(small_model()) == (
        "Sequential(\n"
        "  (0): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (1): ReLU()\n"
        "  (2): Linear(in_features=4, out_features=2, bias=False)\n"
        ")"
    )
    assert repr(nn.Sequential(nn.Sequential(nn.Softmax(1)))) == (
        "Sequential(\n  (0): Sequential(\n    (0): Softmax(dim=1)\n  )\n)"
    )


def test_containers():
    model = small_model()
    assert len(model) == 3 and model[-1] is list(model)[2]
    assert len(model[:2]) == 2 and model[:2][0] is model[0]
    named = nn.Sequential({"first": nn.Identity(), "second": nn.ReLU()})
    assert [name for name, _ in named.named_children()] == ["first", "second"]
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3)).append(nn.ReLU())
    assert len(layers) == 4 and len(list(layers.parameters())) == 6
    assert isinstance(layers[1:], nn.ModuleList) and layers[1:][0] is layers[1]
    layers[3] = nn.Identity()
    assert isinstance(layers[-1], nn.Identity)


def test_softmax_of_channels_and_of_the_smallest():
    x = flow.randn(2, 3, 4, 5)
    assert nn.Softmax2d()(x).equal(flow.softmax(x, 1))
    assert nn.Softmax2d()(x[0]).equal(flow.softmax(x[0], 0))
    with pytest.raises(ValueError, match=r"\[3, 4\], but it must have 3 or 4 dims"):
        nn.Softmax2d()(x[0, :, :, 0])
    assert nn.Softmin(-1)(x).equal(flow.softmax(-x, -1))
    assert nn.functional.softmin(x, 2, flow.float64).allclose(flow.softmax(-x.double(), 2))
    assert repr(nn.Softmin(1)) == "Softmin(dim=1)"


def test_activations_are_their_functions():
    x = flow.randn(7)
    assert nn.Sigmoid()(x).equal(flow.sigmoid(x))
    assert nn.Tanh()(x).equal(flow.tanh(x))


@pytest.mark.parametrize(
    "name, dtype",
    [("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("float", "float32")],
)
def test_modules_change_dtype_by_name(name, dtype):
    module = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    assert getattr(module, name)() is module
    assert {p.dtype for p in module.parameters()} == {getattr(flow, dtype)}


def test_a_module_of_a_type_has_it_everywhere():
    """As in PyTorch, whose other conversions leave integers alone."""
    module = nn.Linear(3, 2)
    module.register_buffer("count", flow.tensor([1, 2]))
    assert module.type("DoubleTensor") is module and module.weight.dtype is flow.float64
    assert module.count.dtype is flow.float64
    module.type(flow.float16)
    assert module.count.dtype is module.bias.dtype is flow.float16 and module.weight.requires_grad
    module.requires_grad_(False).type(flow.int32)
    assert module.weight.dtype is module.count.dtype is flow.int32
    with pytest.raises(RuntimeError, match="require"):
        nn.Linear(3, 2).type(flow.int64)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (2, 3, 4)])
def test_orthogonal_rows_or_columns(shape):
    flow.manual_seed(1)
    w = flow.empty(shape)
    assert nn.init.orthogonal_(w, gain=2.0) is w
    m = w.view(shape[0], -1).numpy().astype(np.float64)
    product = m @ m.T if m.shape[0] <= m.shape[1] else m.T @ m
    np.testing.assert_allclose(product, 4 * np.eye(min(m.shape)), atol=2e-6)
    first = w.clone()
    nn.init.orthogonal_(w)
    assert not flow.equal(w, first / 2)
    flow.manual_seed(1)
    assert flow.equal(nn.init.orthogonal_(w, gain=2.0), first)


def test_other_initial_values():
    w = nn.Parameter(flow.ones(2, 3))
    assert nn.init.eye_(w) is w and w.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert nn.init._calculate_fan_in_and_fan_out(flow.ones(2, 3, 5)) == (15, 10)
    assert nn.init.orthogonal_(flow.ones(0, 3)).shape == (0, 3)
    for init in (nn.init.eye_, nn.init.orthogonal_):
        with pytest.raises(flow.ShapeError, match=init.__name__):
            init(flow.ones(3))


def test_a_module_without_its_values():
    model = nn.Sequential(nn.Linear(2, 3, device="meta"), nn.LayerNorm(3, device="meta"))
    model[0].register_buffer("mask", flow.ones(2, device="meta"))
    assert model.to_empty(device="cpu") is model
    for tensor in (*model.parameters(), *model.buffers()):
        assert tensor.device.type == "cpu"
    model.load_state_dict({k: np.ones(v.shape) for k, v in model.state_dict().items()})
    assert model(flow.ones(1, 2)).tolist() == [[1, 1, 1]]
    assert model.type(flow.float64) is model and model[0].weight.dtype is flow.float64


def test_the_arguments_of_embedding():
    table = nn.Embedding(4, 2, padding_idx=1, max_norm=0.5, sparse=True)
    assert (table.max_norm, table.norm_type, table.scale_grad_by_freq, table.sparse) == (
        0.5, 2.0, False, True)  # fmt: skip
    x = flow.tensor([[0, 1], [3, 3]])
    with flow.no_grad():
        table.weight.fill_(3)
    copy = table.weight.detach().clone().requires_grad_()
    y = F.embedding(x, copy, table.padding_idx, table.max_norm, table.norm_type,
                    table.scale_grad_by_freq, table.sparse)  # fmt: skip
    assert flow.equal(y, table(x)) and flow.equal(copy, table.weight)
    np.testing.assert_allclose(y.norm(dim=-1).detach().numpy(), np.full((2, 2), 0.5), rtol=1e-5)
    y.sum().backward()
    assert copy.grad.tolist() == [[1, 1], [0, 0], [0, 0], [2, 2]]
    assert copy[2].tolist() == [3, 3]
    with pytest.raises(NotImplementedError, match="scale_grad_by_freq"):
        F.embedding(x, copy, scale_grad_by_freq=True)
    with pytest.raises(IndexError, match="index 4 is out of range"):
        F.embedding(flow.tensor([4]), copy, max_norm=1.0)


def test_the_copy_of_a_model_has_no_gradients():
    model = small_model()
    model(flow.ones(1, 3)).sum().backward()
    other = copy.deepcopy(model)
    assert all(p.grad is None for p in other.parameters())
    assert all(p.grad is not None for p in model.parameters())
    other(flow.ones(1, 3)).sum().backward()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert flow.equal(p.grad, q.grad) and p.grad.data_ptr() != q.grad.data_ptr()
    first, second = copy.deepcopy([model[0].weight] * 2)
    assert first is second and isinstance(first, nn.Parameter) and first.requires_grad


@pytest.mark.parametrize("kind", [nn.Sequential, nn.ModuleList])
def test_places_of_a_container(kind):
    def made():
        modules = [nn.ReLU(), nn.Tanh(), nn.Sigmoid()]
        return kind(*modules) if kind is nn.Sequential else kind(modules)

    name = kind.__name__
    for index in (3, -4):
        for use in (lambda c, i=index: c[i], lambda c, i=index: c.__setitem__(i, nn.ReLU()),
                    lambda c, i=index: c.__delitem__(i), lambda c, i=index: c.pop(i)):  # fmt: skip
            with pytest.raises(
                IndexError, match=f"^{name}: index {index} is out of range of its 3"
            ):
                use(made())
    for wrong in (5, "a", flow.ones(1), nn.ReLU):
        container = made()
        before = list(container)
        for use in (lambda c, w=wrong: c.__setitem__(0, w), lambda c, w=wrong: c.insert(1, w),
                    lambda c, w=wrong: c.append(w), lambda c, w=wrong: c.extend([w])):  # fmt: skip
            with pytest.raises(TypeError, match=name):
                use(container)
            assert list(container) == before and list(container._modules) == ["0", "1", "2"]
    for wrong in ("a", 0.5, None):
        for container in (made(), nn.ParameterList([flow.ones(1)])):
            with pytest.raises(TypeError, match="an index must be an integer or a slice, not "):
                container[wrong]
    assert isinstance(made()[flow.tensor(1)], nn.Tanh)
    container = made()
    container[-1] = nn.GELU()
    assert isinstance(container[2], nn.GELU) and isinstance(container.pop(), nn.GELU)
    with pytest.raises(IndexError, match="^ParameterList: index 1 is out of range of its 1"):
        nn.ParameterList([flow.ones(1)])[1]


def test_what_a_layer_says_of_itself_in_several_lines():
    class Wordy(nn.Module):
        def extra_repr(self):
            return "a=1\nb=2"

    assert repr(Wordy()) == "Wordy(\n  a=1\n  b=2\n)"
    assert repr(nn.Sequential(Wordy())) == "Sequential(\n  (0): Wordy(\n    a=1\n    b=2\n  )\n)"
    assert repr(nn.ParameterList([flow.ones(1)])) == (
        "ParameterList(  (0): Parameter containing: [oneflow_lite.float32 of size 1])"
    )


def test_a_layer_of_no_inputs_gives_zeros():
    assert nn.Linear(0, 3)(flow.ones(2, 0)).tolist() == [[0] * 3] * 2
