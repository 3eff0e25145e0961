# SPDX-License-Identifier: Apache-2.0
"""Sample calls of every op, taken from the op table.

A row of op_table.py calls a function; the ops that it comes to, forward and backward, are recorded
with their arguments. So an op is covered by the row of the function that uses it.
"""

import functools

import numpy as np
from numerics import FLOATS, flow, tensor
from op_table import OPS

ext = flow._oneflow_lite
MOST_CALLS, MOST_ELEMENTS = 8, 2000  # kept per op; of a call that is kept


def _dtype(op):
    return "float64" if "float64" in op.dtypes else op.dtypes[0]


def _run(op, sample, args):
    """The call of a row, and its gradient: alone, which may be an op of one step, and recorded."""
    dtype, kwargs = _dtype(op), dict(sample.kwargs)
    if op.factory:
        kwargs |= {"dtype": getattr(flow, dtype), "device": "cpu"}
    leaves = []
    if op.differentiable and not op.factory and dtype in FLOATS:
        for i in sample.tensors():
            args[i] = args[i].double().detach().requires_grad_()
            leaves.append(args[i])
    outputs = [y for y in op.run(*args, **kwargs) if y.requires_grad]
    if not leaves or not outputs:
        return
    rng = np.random.default_rng(0)
    seeds = [tensor(rng.standard_normal(tuple(y.shape)), y.dtype.name).requires_grad_()
             for y in outputs]  # fmt: skip
    # What is not recorded may be an op of one step.
    flow.autograd.grad(outputs, leaves, seeds, retain_graph=op.twice, allow_unused=True)
    if op.twice:
        flow.autograd.grad(outputs, leaves, seeds, create_graph=True, allow_unused=True)


def _key(arguments):
    def of(a):
        if isinstance(a, flow.Tensor):
            return (tuple(a.shape), a.dtype.name)
        return tuple(map(of, a)) if isinstance(a, list) else repr(a)

    return tuple(map(of, arguments))


def _elements(arguments):
    return sum(a.numel() for a in arguments if isinstance(a, flow.Tensor))


@functools.cache
def recorded():
    """{op: its distinct calls, as lists of arguments}; no empty one where there are others."""
    calls = {}
    for row in OPS:
        for sample in row.samples:
            args = sample.make(_dtype(row), "cpu")  # which is no part of the call
            for name, arguments in ext.record_ops(lambda a=args, r=row, s=sample: _run(r, s, a)):
                if _elements(arguments) <= MOST_ELEMENTS:
                    calls.setdefault(name, {}).setdefault(_key(arguments), arguments)
    return {name: _chosen(list(found.values())) for name, found in calls.items()}


def _chosen(calls):
    """Those with elements, of the dtype that gradients are checked in, come first."""

    def rank(call):
        tensors = [a for a in call if isinstance(a, flow.Tensor)]
        return any(t.numel() == 0 for t in tensors), tensors and tensors[0].dtype != flow.float64

    return sorted(calls, key=rank)[:MOST_CALLS]
