# SPDX-License-Identifier: Apache-2.0
"""Names that programs written for PyTorch use beside functions and layers: switches of libraries,
engines of attention, padded sequences, kept generators, dims changed in place."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest
from numerics import flow

nn = flow.nn
rnn = nn.utils.rnn


# ---------------------------------------------------------------------------------------------
# nn.utils.rnn


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("lengths", [(3, 5, 1), (2,), (0, 4), (0, 0)])
@pytest.mark.parametrize("inner", [(), (2,), (2, 0), (2, 3)])
def test_pad_sequence(batch_first, side, lengths, inner):
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((n, *inner)) for n in lengths]
    want = np.full((len(lengths), max(lengths), *inner), -1.5)
    for row, a in zip(want, arrays, strict=True):
        row[slice(0, len(a)) if side == "right" else slice(len(row) - len(a), None)] = a
    got = rnn.pad_sequence([flow.tensor(a) for a in arrays], batch_first, -1.5, side)
    np.testing.assert_array_equal(got.numpy(), want if batch_first else np.swapaxes(want, 0, 1))


def test_gradients_and_dtypes_of_padding():
    a, b = flow.ones(2, requires_grad=True), flow.ones(3)
    rnn.pad_sequence([a, b]).sum().backward()
    assert a.grad.tolist() == [1, 1] and b.grad is None
    ints = rnn.pad_sequence([flow.ones(2, dtype=flow.int64), flow.ones(1, dtype=flow.int64)], True)
    assert ints.dtype is flow.int64 and ints.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("batch_first", [False, True])
def test_unpad_is_the_way_back(batch_first):
    parts = [flow.rand(n, 2) for n in (3, 0, 5)]
    padded = rnn.pad_sequence(parts, batch_first)
    back = rnn.unpad_sequence(padded, flow.tensor([3, 0, 5]), batch_first)
    assert all(a.equal(b) for a, b in zip(parts, back, strict=True))


@pytest.mark.parametrize("call, error, text", [
    (lambda: rnn.pad_sequence([]), flow.ShapeError, "at least one sequence"),
    (lambda: rnn.pad_sequence([flow.ones(())]), flow.ShapeError, r"must be \[length\]"),
    (lambda: rnn.pad_sequence([flow.ones(2, 3), flow.ones(2, 4)]), flow.ShapeError,
     r"sequence 1 has shape \[2, 4\], but must be \[length, 3\]"),
    (lambda: rnn.pad_sequence([flow.ones(2), [1.0]]), TypeError, "must be a Tensor, not list"),
    (lambda: rnn.pad_sequence([flow.ones(2)], padding_side="up"), ValueError, "'left' or 'right'"),
    (lambda: rnn.unpad_sequence(flow.ones(3), flow.ones(3)), flow.ShapeError, "2 dims or more"),
    (lambda: rnn.unpad_sequence(flow.ones(3, 2), flow.ones(2)), TypeError, "integer dtype"),
    (lambda: rnn.unpad_sequence(flow.ones(3, 2), flow.tensor([1])), flow.ShapeError, r"\[2\]"),
    (lambda: rnn.unpad_sequence(flow.ones(3, 1), flow.tensor([4])), ValueError, r"\[0, 3\]"),
])  # fmt: skip
def test_errors_of_padding(call, error, text):
    with pytest.raises(error, match=text):
        call()


# ---------------------------------------------------------------------------------------------
# nn.attention


def test_engines_of_attention_are_taken():
    from oneflow_lite.nn.attention import SDPBackend, sdpa_kernel

    q = flow.randn(1, 2, 3, 4)
    want = nn.functional.scaled_dot_product_attention(q, q, q)
    kinds = [k for k in SDPBackend if k is not SDPBackend.ERROR]
    for given in [*kinds, kinds, kinds[:2]]:
        with sdpa_kernel(given):
            assert nn.functional.scaled_dot_product_attention(q, q, q).equal(want)
    for bad, error in ((SDPBackend.ERROR, ValueError), ([], ValueError), ([1], TypeError)):
        with pytest.raises(error, match=r"sdpa_kernel\(\): backends"), sdpa_kernel(bad):
            pass


# ---------------------------------------------------------------------------------------------
# flow.backends


def test_switches_that_change_nothing_say_so():
    backends = flow.backends
    switches = [(backends.cuda.matmul, "allow_tf32"), (backends.cudnn, "benchmark"),
                (backends.cudnn, "allow_tf32"),
                (backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"),
                (backends.cuda.matmul, "allow_fp16_reduced_precision_reduction")]  # fmt: skip
    for module, name in switches:
        setattr(module, name, False)  # is so already
        with pytest.warns(UserWarning, match=f"{name} changes nothing"):
            setattr(module, name, True)
        assert getattr(module, name) is False


def test_switches_that_cannot_be_moved_refuse():
    backends = flow.backends
    backends.cudnn.enabled = True
    backends.cuda.enable_math_sdp(True)
    with pytest.raises(RuntimeError, match=r"cudnn.enabled stays True: "):
        backends.cudnn.enabled = False
    for kind in ("flash", "mem_efficient", "math", "cudnn"):
        with pytest.raises(RuntimeError, match=rf"enable_{kind}_sdp\(False\): "):
            getattr(backends.cuda, f"enable_{kind}_sdp")(False)
        assert getattr(backends.cuda, f"{kind}_sdp_enabled")() is True
    with pytest.raises(AttributeError, match="no switch 'benchmrk'"):
        backends.cudnn.benchmrk = True
    assert not backends.mps.is_available() and not backends.mps.is_built()
    assert backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    assert backends.cuda.is_built() is flow.__config__["CUDA"]
    assert isinstance(backends.cudnn.is_available(), bool)


def test_deterministic_is_the_one_switch_of_its_kind():
    before = flow.are_deterministic_algorithms_enabled()
    try:
        flow.backends.cudnn.deterministic = True
        assert flow.are_deterministic_algorithms_enabled()
        flow.use_deterministic_algorithms(False)
        assert flow.backends.cudnn.deterministic is False
        flow.backends.cudnn.deterministic = True
        flow.backends.cudnn.deterministic = False
        assert not flow.are_deterministic_algorithms_enabled()
        for by_switch in (False, True):  # what the function asked for is not this switch's
            flow.backends.cudnn.deterministic = by_switch
            flow.use_deterministic_algorithms(True)
            with pytest.warns(UserWarning, match="stays True"):
                flow.backends.cudnn.deterministic = False
            assert flow.are_deterministic_algorithms_enabled()
            flow.use_deterministic_algorithms(False)
    finally:
        flow.use_deterministic_algorithms(before)


def test_the_usual_imports_of_switches():
    script = """
import oneflow_lite as torch
import oneflow_lite.backends.cudnn as cudnn
from oneflow_lite.backends import cuda
from oneflow_lite.backends.cuda import matmul
cudnn.deterministic, cuda.matmul.allow_tf32, matmul.allow_tf32 = False, False, False
assert torch.backends.cudnn is cudnn and cuda.matmul is matmul
"""
    subprocess.run([sys.executable, "-c", script], check=True)


# ---------------------------------------------------------------------------------------------
# random.fork_rng


@pytest.mark.parametrize("devices", [None, [], ["cpu"], (flow.device("cpu"),)])
@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_fork_rng_takes_devices(devices, kind):
    flow.manual_seed(3)
    want = flow.rand(4)
    flow.manual_seed(3)
    with flow.random.fork_rng(devices, device_type=kind):
        flow.rand(7)
    assert flow.rand(4).equal(want)


def test_fork_rng_refuses_other_kinds():
    with pytest.raises(ValueError, match="'cuda' or 'cpu'"), flow.random.fork_rng(device_type="a"):
        pass


# ---------------------------------------------------------------------------------------------
# Dims changed in place

TURNS = [
    ("transpose_", (0, 1)), ("transpose_", (-1, 0)), ("transpose_", (1, 1)), ("swapaxes_", (0, -1)),
    ("swapdims_", (1, 2)), ("squeeze_", ()), ("squeeze_", (0,)), ("squeeze_", ((0, 2),)),
    ("unsqueeze_", (0,)), ("unsqueeze_", (-1,)), ("unsqueeze_", (2,)),
]  # fmt: skip
SHAPES = [(2, 3, 4), (1, 3, 1), (1, 0, 2), (1, 1, 1)]


@pytest.mark.parametrize("name, arguments", TURNS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_tensor_becomes_what_the_function_gives(name, arguments, shape):
    x = flow.arange(float(np.prod(shape))).reshape(shape)
    want, place = getattr(x, name[:-1])(*arguments), x.data_ptr()
    got = getattr(x, name)(*arguments)
    assert got is x and x.shape == want.shape and x.stride() == want.stride()
    assert x.is_contiguous() == want.is_contiguous() and x.data_ptr() == place
    assert x.tolist() == want.tolist()
    x.add_(1)
    assert x.tolist() == want.tolist(), "the same memory"


def test_t_of_itself():
    x = flow.arange(6.0).view(2, 3)
    assert x.t_() is x and x.shape == (3, 2) and x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert flow.ones(3).t_().shape == (3,) and flow.ones(()).t_().shape == ()
    with pytest.raises(flow.ShapeError, match=r"^t_\(\): "):
        flow.ones(1, 2, 3).t_()


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("name, arguments", [("transpose_", (0, 1)), ("unsqueeze_", (1,)),
                                             ("squeeze_", (2,)), ("squeeze_", ())])  # fmt: skip
def test_gradients_through_changed_dims(name, arguments, changed):
    """Against the function without the underscore; `changed`: its elements change as well."""
    grads = []
    for in_place in (False, True):
        x = flow.arange(6.0).view(2, 3, 1).requires_grad_()
        h = x * 2
        turned = getattr(h, name if in_place else name[:-1])(*arguments)
        assert (turned is h) is in_place
        if changed:
            turned.mul_(3)
            turned.select(0, 0).exp_()
        (turned * flow.arange(6.0).view(turned.shape)).sum().backward()
        grads.append(x.grad)
    assert grads[0].equal(grads[1])


def test_views_cut_before_the_change_keep_their_gradients():
    x = flow.arange(6.0).view(2, 3).requires_grad_()
    h = x * 2
    row = h[1]
    h.t_()
    (row * flow.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [2, 4, 6]]


def test_a_graph_that_saved_the_tensor_refuses():
    x = flow.rand(2, 3, requires_grad=True)
    h = x * 2
    y = (h * h).sum()
    h.t_()
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_what_keeps_its_dims():
    leaf = flow.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^t_\(\): a leaf that requires grad"):
        leaf.t_()
    with flow.no_grad():
        assert leaf.t_().shape == (3, 2)
    h = leaf * 2
    with pytest.raises(RuntimeError, match=r"^unsqueeze_\(\): a view with a history"):
        h[0].unsqueeze_(0)
    with flow.no_grad(), pytest.raises(RuntimeError, match="keeps its dims under no_grad"):
        h.squeeze_()
    assert h.shape == (3, 2)
    for call in (lambda: h.transpose_(0, 5), lambda: flow.ones(2).unsqueeze_(9)):
        with pytest.raises(IndexError, match=r"^(transpose|unsqueeze)_\(\): dim"):
            call()


def test_nothing_stays_of_a_tensor_that_changed_its_dims():
    thing = flow.rand(2, 3, requires_grad=True) * 2
    end = weakref.ref(thing)
    thing.t_().exp().sum().backward()
    del thing
    gc.collect()
    assert end() is None
