# SPDX-License-Identifier: Apache-2.0
"""An op in Python: x cubed, with its gradient, usable like every other op."""

import oneflow_lite as flow


@flow.register_op("demo::cube")
class Cube:
    """x cubed."""

    def forward(x):
        return x * x * x

    def backward(ctx, dy):
        return dy * 3 * ctx.x * ctx.x


x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = flow.ops.demo.cube(x)
y.sum().backward()
print(y.tolist(), x.grad.tolist())
print(flow.ops.describe("demo::cube"))
flow.check_op("demo::cube", [x, flow.randn(3, 4)])  # raises where the op does not hold
