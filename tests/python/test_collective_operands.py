# SPDX-License-Identifier: Apache-2.0
"""What is no tensor of this process's memory is refused by every collective, in its own name."""

import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import _oneflow_lite as _ext  # noqa: E402
from oneflow_lite import distributed as dist  # noqa: E402


def good():
    return flow.ones(2, 3)


# By function: a call for each of its operands.
CALLS = {
    "all_reduce": [lambda x: dist.all_reduce(x), lambda x: dist.all_reduce(x, "avg")],
    "reduce": [lambda x: dist.reduce(x, 0)],
    "broadcast": [lambda x: dist.broadcast(x, 0)],
    "all_gather": [
        lambda x: dist.all_gather([x], good()),
        lambda x: dist.all_gather([good()], x),
    ],
    "all_gather_into_tensor": [
        lambda x: dist.all_gather_into_tensor(x, good()),
        lambda x: dist.all_gather_into_tensor(good(), x),
        lambda x: dist.all_gather_into_tensor(x, x),
    ],
    "reduce_scatter": [
        lambda x: dist.reduce_scatter(x, [good()]),
        lambda x: dist.reduce_scatter(good(), [x]),
    ],
    "reduce_scatter_tensor": [
        lambda x: dist.reduce_scatter_tensor(x, good()),
        lambda x: dist.reduce_scatter_tensor(good(), x),
        lambda x: dist.reduce_scatter_tensor(x, x),
    ],
    "all_to_all": [
        lambda x: dist.all_to_all([x], [good()]),
        lambda x: dist.all_to_all([good()], [x]),
    ],
    "all_to_all_single": [
        lambda x: dist.all_to_all_single(x, good()),
        lambda x: dist.all_to_all_single(good(), x),
        lambda x: dist.all_to_all_single(x, x),
    ],
    "gather": [lambda x: dist.gather(x, [good()]), lambda x: dist.gather(good(), [x])],
    "scatter": [lambda x: dist.scatter(x, [good()]), lambda x: dist.scatter(good(), [x])],
    "send": [lambda x: dist.send(x, 0)],
    "recv": [lambda x: dist.recv(x, 0)],
}
BAD = {
    "a meta tensor": (lambda: flow.zeros(2, 3, device="meta"), RuntimeError),
    "an empty meta tensor": (lambda: flow.zeros(0, device="meta"), RuntimeError),
    "a global tensor": (
        lambda: good().to_global(flow.placement("cpu", [0]), flow.sbp.broadcast),
        ValueError,
    ),
    "None": (lambda: None, TypeError),
    "a list": (lambda: [1, 2], TypeError),
    "a module": (lambda: flow.nn.Linear(2, 2), TypeError),
}


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize("kind", BAD)
def test_refused(function, kind):
    make, error = BAD[kind]
    for call in CALLS[function]:
        with pytest.raises(error, match=rf"^{function}\(\): \w+(\[0\])? "):
            call(make())


@pytest.mark.parametrize("function", ["all_gather", "reduce_scatter", "all_to_all", "gather"])
def test_a_list_of_tensors_is_a_list(function):
    with pytest.raises(TypeError, match=rf"^{function}\(\): \w+ must be a list or tuple of Tens"):
        getattr(dist, function)(good(), good())


@pytest.mark.parametrize("name", ["all_reduce", "broadcast", "send", "recv"])
def test_an_engine_refuses_a_meta_tensor(name):
    """The binding too, whoever calls it: a stream of the meta device is none."""
    everyone = _ext.distributed_communicator("cpu", [0])
    x = flow.zeros(2, device="meta")
    rest = {"all_reduce": (x, 0, None)}.get(name, (0,))
    with pytest.raises(ValueError, match="meta"):
        getattr(everyone, name)(x, *rest)
