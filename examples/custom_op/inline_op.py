# SPDX-License-Identifier: Apache-2.0
"""An op from C++ source, compiled when the program first runs and kept for the next time."""

import oneflow_lite as flow

SOURCE = r"""
#include <oneflow_lite/extension/op.h>
namespace ext = oneflow_lite::extension;

OFL_EXTENSION {
  ext::Op op("demo::scale");
  op.doc("x times factor.").input("x").output("y").attr("factor", 2.0);
  op.infer([](ext::Infer c) { c.set_output_like(0, 0); });
  op.kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel c) {
    const float* x = c.input(0).data<float>();
    float* y = c.output(0).data<float>();
    const float factor = static_cast<float>(c.attrs().to_float(0));
    for (int64_t i = 0, n = c.input(0).numel(); i < n; ++i) y[i] = factor * x[i];
  });
  op.backward({}, [](ext::Grad c) {
    c.set(0, ext::call("mul", c.grad(0), c.attrs().to_float(0)));
  });
  op.add();
}
"""

print("new ops:", flow.utils.load_inline("scale", SOURCE))
x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = flow.ops.demo.scale(x, factor=10.0)
y.sum().backward()
print(y.tolist(), x.grad.tolist())
flow.check_op(flow.ops.demo.scale, [x, (flow.randn(3, 4), {"factor": 0.5})])
