# SPDX-License-Identifier: Apache-2.0
"""Every op of the op table through the global mode: inputs by each declared signature, on a line of
four ranks and on a grid, values and gradients against one device.

The sample calls are those of check_op (op_samples.py). Sizes are small, so that many shards are
uneven and some empty.
"""

import os

import numpy as np
import pytest
from rank_group import DEVICE, GRID, LINE

flow = pytest.importorskip("oneflow_lite")

if "RANK" not in os.environ:  # the table is read where the tests are, and not on each rank
    from op_samples import recorded

ext = flow._oneflow_lite
OWN = flow.ops.list("")
# Ops that are not called on global tensors, with the reason.
LOCAL_ONLY = {
    "to_device": "a global tensor changes its device by to_global",
    "as_strided": "by strides of the memory, which a global tensor has not",
    "rand": "no tensor goes in: test_global.py makes them",
    "randn": "no tensor goes in",
    "random_bits": "no tensor goes in",
    "randperm": "no tensor goes in",
    "bin_counts": "histc, histogram and bincount call it on local tensors alone",
    "distances": "cdist and pdist call it on local tensors alone",
    "equal": "the function of its name calls it on local tensors alone",
    "full": "no tensor goes in",
    "arange": "no tensor goes in",
    "linspace": "no tensor goes in",
}
MOST_CALLS, MOST_SIGNATURES = 3, 12


def sbp_of(text):
    kinds = {"B": flow.sbp.broadcast, "P": flow.sbp.partial_sum}
    return kinds[text] if text in kinds else flow.sbp.split(int(text[2:-1]))


def flat(arguments):
    for a in arguments:
        if isinstance(a, list | tuple):
            yield from flat(a)
        elif a is None or isinstance(a, flow.Tensor):
            yield a


def replaced(arguments, tensors, inputs):
    """The arguments with other tensors in the places of the inputs, which come first."""
    return [
        a if i >= inputs
        else [next(tensors) for _ in a] if isinstance(a, list)
        else next(tensors)
        for i, a in enumerate(arguments)
    ]  # fmt: skip


def spread(t, placement, entry):
    """A global tensor with t's values; a partial sum has another term on each rank."""
    whole = t.detach().to_global(placement, [flow.sbp.broadcast] * len(placement.shape))
    if "P" not in entry or not t.dtype.is_floating_point:
        return whole.to_global(sbp=[sbp_of(e) for e in entry])
    share = whole.to_global(sbp=[sbp_of("B" if e == "P" else e) for e in entry]).to_local()
    factor = 1.0
    place = np.argwhere(np.array(placement.ranks) == int(os.environ["RANK"]))[0]
    for e, part, parts in zip(entry, place, placement.shape, strict=True):
        if e == "P":
            factor *= 2.0 ** -(int(part) + 1) if part < parts - 1 else 2.0 ** -(int(part))
    return (share * factor).to_global(placement, [sbp_of(e) for e in entry])


def host(t):
    return t.detach().to_global(sbp=[flow.sbp.broadcast] * len(t.placement.shape)).to_local()


def close(got, want, what):
    a, b = got.double().cpu().numpy(), want.detach().double().cpu().numpy()
    assert a.shape == b.shape, f"{what}: shape {a.shape} for {b.shape}"
    tolerance = 1e-9 if want.dtype is flow.float64 else 3e-2 if want.dtype.itemsize == 2 else 2e-5
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (1 + np.abs(
        np.where(np.isfinite(b), b, 0)).max(initial=0)), equal_nan=True, err_msg=what)  # fmt: skip


def outputs_of(result):
    return list(flat(result if isinstance(result, list | tuple) else [result]))


def run_one(function, arguments, tensors, gradients, inputs):
    """The outputs, and the gradient of each float64 input where gradients are asked for."""
    given = [t if t is None else t.detach() for t in tensors]
    leaves = []
    if gradients:
        for t in given:
            if t is not None and t.dtype is flow.float64:
                leaves.append(t.requires_grad_())
    copies = iter([t.clone() if gradients and t is not None and t.requires_grad else t
                   for t in given])  # fmt: skip
    result = outputs_of(function(*replaced(arguments, copies, inputs)))
    if not leaves:
        return result, []
    tops = [y for y in result if y.requires_grad]
    if not tops:
        return result, []
    total = None
    for y in tops:
        term = (y * y.detach().cos()).sum() if y.dtype is flow.float64 else y.double().sum()
        total = term if total is None else total + term
    return result, flow.autograd.grad([total], leaves, allow_unused=True)


def check_call(name, arguments, placement):
    info = ext.op_info(name)
    function = ext.op_function(name)
    tensors = [t if t is None else t.to(DEVICE) for t in flat(arguments[: len(info["inputs"])])]
    if not any(t is not None for t in tensors):
        return 0
    mutates = any(kind == "mutated" for _, kind in info["inputs"])
    copies = [t if t is None else t.clone() for t in tensors]
    gradients = info["differentiable"] and info["has_backward"]

    def attempt(ts, with_gradients):
        return run_one(function, arguments, ts, with_gradients, len(info["inputs"]))

    try:
        want, want_grads = attempt(copies, gradients)
    except (NotImplementedError, RuntimeError):  # an input without a gradient
        gradients = False
        want, want_grads = attempt([t if t is None else t.clone() for t in tensors], False)
    signatures = ext.op_signatures(name, list(arguments))
    ways = [ins for ins, _ in signatures][:MOST_SIGNATURES]
    everywhere = ["B"] * len(tensors)
    pairs = [(w,) for w in [*ways, everywhere]]
    if len(placement.shape) == 2:
        pairs = [(w, ways[(i + 1) % len(ways)]) for i, w in enumerate(ways)] or [
            (everywhere, everywhere)
        ]
    for way in pairs:
        if mutates and any("P" in w for w in way) and not all(w[0] == "P" for w in way if "P" in w):
            continue
        what = (
            f"{name} {[list(w) for w in way]} {[tuple(t.shape) for t in tensors if t is not None]}"
        )
        entries = list(zip(*way, strict=True))
        parts = [t if t is None else spread(t, placement, e)
                 for t, e in zip(tensors, entries, strict=True)]  # fmt: skip
        try:
            got, got_grads = attempt(parts, gradients)
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        assert all(y.is_global for y in got), what
        for i, (y, z) in enumerate(zip(got, want, strict=True)):
            close(host(y), z, f"{what}: output {i}")
        for i, (g, h) in enumerate(zip(got_grads, want_grads, strict=True)):
            if h is None:
                assert g is None or not host(g).cpu().numpy().any(), f"{what}: gradient {i}"
            else:
                assert g is not None, f"{what}: no gradient {i}"
                close(host(g), h, f"{what}: gradient {i}")
    return len(pairs)


def samples_of(name):
    return [list(sample) for sample in (recorded().get(name) or [])]


def check_op_on(rank, name, ranks, samples):
    placement = flow.placement("cpu", ranks)
    return sum(check_call(name, arguments, placement) for arguments in samples)


@pytest.mark.parametrize("name", [n for n in OWN if n not in LOCAL_ONLY])
def test_each_signature_gives_what_one_device_gives(ranks, name):
    samples = samples_of(name)
    counts = ranks.run(check_op_on, name, LINE, samples[:MOST_CALLS])
    assert len(set(counts)) == 1 and (counts[0] > 0 or not samples)


@pytest.mark.parametrize("name", ["add", "mul", "matmul", "linear", "sum", "mean", "cat", "softmax",
                                  "permute", "view", "slice", "where", "index_select", "add_",
                                  "loss", "cross_entropy", "layer_norm"])  # fmt: skip
def test_signatures_on_a_grid(ranks, name):
    assert ranks.run(check_op_on, name, GRID, samples_of(name)[:MOST_CALLS])[0] > 0
