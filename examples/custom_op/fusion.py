# SPDX-License-Identifier: Apache-2.0
"""An op as a fusion: arithmetic on each element, inside the kernel of softmax."""

import oneflow_lite as flow

gated_softmax = flow.fuse.softmax(
    load=lambda x, keep, bias, scale: flow.fuse.where(keep, x * scale + bias, -float("inf")),
    store=lambda y, gate: y * flow.fuse.sigmoid(gate),
)

print(gated_softmax)
x = flow.randn(2, 4, 8, requires_grad=True)
keep = flow.ones(4, 8) > 0
bias, gate = flow.zeros(8, requires_grad=True), flow.zeros(2, 4, 1, requires_grad=True)
y = gated_softmax(x, keep, bias, 0.125, gate, dim=-1)
(y * y).sum().backward()
print(y.sum(-1).tolist(), x.grad.shape, bias.grad.shape, gate.grad.shape)
flow.check_op(gated_softmax, [(x, keep, bias, 0.125, gate, {"dim": -1})])
