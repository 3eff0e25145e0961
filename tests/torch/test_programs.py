# SPDX-License-Identifier: Apache-2.0
"""What programs do around the functions and modules: as PyTorch's own, or a clear error."""

import copy
import functools
import pickle
import threading

import oneflow_lite_torch as rows
import pytest
import torch
import torch.nn.functional as F
from conftest import FLOATS
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils import parametrize


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LayerNorm(16)
        self.body = nn.Sequential(nn.Linear(16, 16), nn.RMSNorm(16))
        self.last = nn.LayerNorm(16, bias=False)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, target):
        return self.loss(self.last(self.body(self.first(x))).flatten(0, -2), target.flatten())


def _made():
    return Net(), torch.randn(2, 3, 16), torch.randint(0, 16, (2, 3))


def _step(model, *inputs):
    model.zero_grad()
    loss = model(*inputs)
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


def _near(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=True)


# ---- the surroundings of apply_to ---------------------------------------------------------------

SURROUNDINGS = {
    "inference mode": torch.inference_mode,
    "no gradients": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "another device by default": lambda: torch.device("meta"),
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_apply_to_does_not_depend_on_its_surroundings(name):
    model, x, target = _made()
    before = _step(model, x, target)
    with SURROUNDINGS[name]():
        assert len(rows.apply_to(model)) == 4
    _near(_step(model, x, target), before)


def test_modules_without_memory_are_left_alone():
    with torch.device("meta"):
        loss = nn.CrossEntropyLoss(weight=torch.ones(5))
        assert rows.apply_to(nn.Sequential(loss, nn.LayerNorm(8), nn.RMSNorm(8))) == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_nor_on_the_dtype_by_default(dtype):
    model, _, _ = _made()
    torch.set_default_dtype(dtype)
    try:
        assert len(rows.apply_to(model)) == 4
    finally:
        torch.set_default_dtype(torch.float32)


def test_hooks_are_kept_and_not_called_by_the_probe():
    model, x, target = _made()

    class Owner:
        def __init__(self):
            self.lock, self.calls = threading.Lock(), []  # a lock cannot be copied

        def hook(self, module, *_):
            self.calls.append(module)

    owner = Owner()
    model.first.register_forward_hook(owner.hook)
    model.first.register_full_backward_hook(owner.hook)
    everywhere = nn.modules.module.register_module_forward_hook(owner.hook)
    try:
        assert len(rows.apply_to(model)) == 4
    finally:
        everywhere.remove()
    assert owner.calls == []
    model(x, target).backward()
    assert owner.calls == [model.first, model.first]


def test_a_forward_of_the_instance_is_left_alone():
    """accelerate puts one there, which calls the class's as it was."""
    model, x, target = _made()
    before = _step(model, x, target)
    model.first.forward = functools.partial(nn.LayerNorm.forward, model.first)
    replaced = rows.apply_to(model)
    assert len(replaced) == 3 and not any(r.startswith("first") for r in replaced)
    _near(_step(model, x, target), before)


def test_apply_to_again_changes_how():
    model, _, _ = _made()
    first = rows.apply_to(model)
    assert rows.apply_to(model, invariant=True) == first
    assert rows.apply_to(model, invariant=True) == []
    with pytest.raises(NotImplementedError, match="invariant=True is not served"):
        torch.vmap(model.last)(torch.ones(3, 2, 16))
    assert rows.apply_to(model, autocast="keep") == first
    assert model.last(torch.ones(2, 16).bfloat16()).dtype == torch.bfloat16


def test_apply_to_again_changes_the_loss_of_transformers():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=7, n_positions=9)
    model = transformers.AutoModelForCausalLM.from_config(config)
    loss = "loss_function: ForCausalLMLoss"
    assert loss in rows.apply_to(model)
    assert loss not in rows.apply_to(model)
    assert loss in rows.apply_to(model, invariant=True)
    model = pickle.loads(pickle.dumps(model))
    assert rows.apply_to(model, invariant=True) == []
    tokens = torch.tensor([[1, 2, 3]])
    with pytest.raises(NotImplementedError, match="invariant=True is not served"):
        model.loss_function(torch.zeros(1, 3, 7, dtype=torch.long), tokens, 7)


class Twice(nn.Module):
    def forward(self, w):
        return 2 * w


def test_what_others_make_of_a_replaced_module():
    """A parametrization, and FSDP, give it a subclass of its class."""
    ours, x, target = _made()
    theirs = copy.deepcopy(ours)
    rows.apply_to(ours)
    for model in (ours, theirs):
        parametrize.register_parametrization(model.first, "weight", Twice())
    expected = _step(theirs, x, target)
    _near(_step(ours, x, target), expected)
    twin = copy.deepcopy(ours)
    assert parametrize.is_parametrized(twin.first)
    _near(_step(twin, x, target), expected)
    parametrize.remove_parametrizations(ours.first, "weight")
    assert type(pickle.loads(pickle.dumps(ours)).first) is type(ours.first)


@pytest.mark.parametrize("family", ["Llama", "Gemma"])
def test_a_subclass_of_a_replaced_norm_of_transformers(family):
    """What is not served goes to the class that was replaced, not back to its subclass."""
    module = f"transformers.models.{family.lower()}.modeling_{family.lower()}"
    modeling = pytest.importorskip(module, reason="transformers is not installed")
    norm = getattr(modeling, f"{family}RMSNorm")(16)
    expected = norm(torch.empty(0, 16))
    assert len(rows.apply_to(norm)) == 1
    norm.__class__ = type("Sub", (type(norm),), {})
    assert norm(torch.empty(0, 16)).shape == expected.shape
    x = torch.randn(3, 2, 16)
    _near(torch.vmap(norm)(x), norm(x))
    assert type(copy.deepcopy(norm)) is type(norm)


# ---- tracers ------------------------------------------------------------------------------------


def test_torch_fx_traces_pytorchs_functions():
    model, x, target = _made()
    before = model(x, target)
    rows.apply_to(model)
    traced = torch.fx.symbolic_trace(model)
    _near(traced(x, target), before)


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16))

    def forward(self, x):
        y, s = rows.add_rms_norm(x, x, 16, self.weight)
        z = rows.log_softmax(rows.scale_mask_softmax(y, causal=True) + s, 0)
        return rows.linear_cross_entropy(
            z.flatten(0, 1), self.weight.outer(self.weight), torch.arange(z.shape[0] * z.shape[1])
        )


@pytest.mark.filterwarnings("ignore")
def test_torch_jit_trace_finds_the_same_graph_twice():
    """It records with gradients and without, and compares the graphs."""
    model, x, target = _made()
    before = model(x, target)
    rows.apply_to(model)
    _near(torch.jit.trace(model, (x, target))(x, target), before)
    functions = Functions()
    _near(torch.jit.trace(functions, (x,))(x), functions(x))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_model(backend):
    torch._dynamo.reset()
    model, x, target = _made()
    before = _step(model, x, target)
    rows.apply_to(model)
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    _near(_step(compiled, x, target), before)


def test_an_exported_model():
    model, x, target = _made()
    before = model(x, target)
    rows.apply_to(model)
    lead = torch.export.Dim("lead", min=1, max=64)
    program = torch.export.export(model, (x, target), dynamic_shapes=({0: lead}, {0: lead}))
    _near(program.module()(torch.cat([x, x]), torch.cat([target, target])), before)


def test_fake_tensors_have_the_shapes_of_real_ones():
    with FakeTensorMode():
        x, weight = torch.randn(4, 16), torch.randn(5, 16, requires_grad=True)
        target = torch.zeros(4, dtype=torch.long)
        for y in (rows.softmax(x), rows.layer_norm(x, 16), *rows.add_rms_norm(x, x, 16)):
            assert type(y) is type(x) and y.shape == x.shape and y.dtype == x.dtype
        assert rows.cross_entropy(x, target).shape == ()
        assert rows.linear_cross_entropy(x, weight, target).shape == ()


def test_a_probe_that_cannot_run_replaces_nothing():
    with FakeTensorMode():
        model = Net()
        assert rows.apply_to(model) == []
        x, target = torch.randn(2, 3, 16), torch.zeros(2, 3, dtype=torch.long)
        assert model(x, target).shape == ()


@pytest.fixture
def mesh(tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    from torch.distributed.device_mesh import init_device_mesh

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    yield init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


def test_distributed_tensors_take_pytorchs_way(mesh):
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    x, w = torch.randn(2, 4, 16), torch.randn(16)
    calls = (
        lambda x, w: rows.softmax(x),
        lambda x, w: rows.layer_norm(x, 16, w),
        lambda x, w: rows.rms_norm(x, 16, w),
        lambda x, w: rows.add_rms_norm(x, x, 16, w)[1],
        lambda x, w: rows.scale_mask_softmax(x, None, 0.5, causal=True),
        lambda x, w: rows.scale_mask_softmax(x, x, masked_row="zero"),
    )
    for call in calls:
        y = call(distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(w, mesh, [Replicate()]))
        assert type(y) is DTensor
        _near(y.full_tensor(), call(x, w))


def test_functions_of_a_models_parameters():
    model, x, target = _made()
    parameters = {n: p.detach().clone() for n, p in model.named_parameters()}

    def loss(p, x):
        return torch.func.functional_call(model, p, (x, target))

    calls = (
        lambda: torch.func.grad(loss)(parameters, x),
        lambda: torch.func.jacrev(loss, argnums=1)(parameters, x),
        lambda: torch.func.jvp(lambda t: loss(parameters, t), (x,), (x,)),
        lambda: torch.vmap(torch.func.grad(loss), (None, 0))(parameters, torch.stack([x, x])),
    )
    expected = [call() for call in calls]
    rows.apply_to(model)
    for call, e in zip(calls, expected, strict=True):
        _near(call(), e)


# ---- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(3, 5, 8), (8,), (), (0, 3)])
@pytest.mark.parametrize("dim", [-4, -2, 3, None, True, 1.0, "1"])
@pytest.mark.parametrize("needs_grad", [False, True])
@pytest.mark.filterwarnings("ignore:Implicit dimension choice")
def test_a_dim_that_is_none_of_the_tensors(name, shape, dim, needs_grad):
    """As PyTorch: its error, or its way with None."""
    x = torch.randn(shape, requires_grad=needs_grad)
    outcomes = []
    for module in (F, rows):
        try:
            outcomes.append(getattr(module, name)(x, dim))
        except Exception as error:
            outcomes.append((type(error), str(error)))
    theirs, ours = outcomes
    if isinstance(theirs, torch.Tensor):
        _near(ours, theirs)
    else:
        assert ours == theirs


@pytest.mark.parametrize("needs_grad", [False, True])
def test_a_tensor_without_memory_beside_real_ones_is_refused(needs_grad):
    x = torch.randn(4, 8, requires_grad=needs_grad)
    w, target = torch.randn(8), torch.tensor([1, 2, 3, 4])
    calls = (
        lambda f: f.layer_norm(x, (8,), w.to("meta")),
        lambda f: f.layer_norm(x, (8,), w, w.to("meta")),
        lambda f: f.rms_norm(x, (8,), w.to("meta")),
        lambda f: f.cross_entropy(x, target.to("meta")),
    )
    for call in calls:
        for module in (F, rows):
            with pytest.raises(RuntimeError):
                call(module)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("of_column", FLOATS)
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
@pytest.mark.filterwarnings("ignore:Mismatch dtype")
def test_columns_of_another_dtype(name, dtype, of_column):
    """Served where it is input's or float32 beside 16 bits; else as PyTorch, which may refuse."""
    x, w = torch.randn(3, 8).to(dtype), torch.randn(8).to(of_column)
    served = dtype == of_column or (of_column == torch.float32 and dtype.itemsize == 2)
    outcomes = []
    for module in (F, rows):
        try:
            outcomes.append(getattr(module, name)(x, (8,), w, eps=1e-5))
        except RuntimeError as error:
            outcomes.append(str(error))
    theirs, ours = outcomes
    if isinstance(theirs, torch.Tensor):
        assert ours.dtype == theirs.dtype
        rounding = 4 * torch.finfo(dtype).eps
        torch.testing.assert_close(ours, theirs, rtol=rounding, atol=rounding)
    else:
        assert served or ours == theirs


@pytest.mark.parametrize("eps", [None, "a", float("nan")])
def test_an_eps_that_is_none(eps):
    x = torch.randn(3, 8)
    if eps == eps:
        with pytest.raises(TypeError, match="eps"):
            rows.layer_norm(x, (8,), eps=eps)
    else:
        assert rows.layer_norm(x, (8,), eps=eps).isnan().all()
        assert rows.rms_norm(x, (8,), eps=eps).isnan().all()


def _gradient_penalty(call, *leaves):
    """Second derivatives whose way begins at a constant: the gradient of a sum."""
    total = sum(y.sum() for y in call(*leaves))
    first = torch.autograd.grad(total, leaves, create_graph=True)
    return torch.autograd.grad(sum(g.square().sum() for g in first), leaves)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("of_column", [torch.float64, torch.float32])
def test_second_derivatives_of_norms_with_a_residual(name, of_column):
    dtype = torch.float64 if of_column == torch.float64 else torch.bfloat16
    x, r = (torch.randn(3, 8).to(dtype).requires_grad_() for _ in range(2))
    w = torch.randn(8, dtype=of_column, requires_grad=True)

    def composed(x, r, w):
        s = x + r
        return getattr(F, name)(s, (8,), w, eps=1e-5), s * s

    def ours(x, r, w):
        y, s = getattr(rows, f"add_{name}")(x, r, (8,), w, eps=1e-5)
        return y, s * s

    found, expected = _gradient_penalty(ours, x, r, w), _gradient_penalty(composed, x, r, w)
    rounding = 1e-8 if dtype == torch.float64 else 6e-2
    scale = max(e.abs().max().item() for e in expected)
    for f, e in zip(found, expected, strict=True):
        assert f.dtype == e.dtype
        torch.testing.assert_close(f, e, rtol=rounding, atol=rounding * scale)
    if dtype == torch.float64:
        assert torch.autograd.gradgradcheck(ours, (x, r, w))


def test_functions_without_second_derivatives_say_so():
    """Not by gradients that look like constants."""
    x, target = torch.randn(4, 8, requires_grad=True), torch.tensor([1, 2, 3, 4])
    weight = torch.randn(9, 8, requires_grad=True)
    for loss in (
        rows.linear_cross_entropy(x, weight, target),
        rows.cross_entropy(x * 1, target, inplace_backward=True),
    ):
        with pytest.raises(RuntimeError, match="no second derivatives"):
            torch.autograd.grad(loss, x, create_graph=True)


def test_rows_of_which_nothing_is_left_have_gradients_of_zero():
    x = torch.randn(2, 3, 4)
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[0, 1] = False

    def total(x):
        y = rows.scale_mask_softmax(x, mask[0] if x.ndim == 2 else mask, masked_row="zero")
        return y.square().sum()

    leaf = x.clone().requires_grad_()
    expected = torch.autograd.grad(total(leaf), leaf)[0]
    assert not expected[0, 1].any()
    _near(torch.func.grad(total)(x), expected)
