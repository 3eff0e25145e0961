// SPDX-License-Identifier: Apache-2.0
//
// softplus(x) = log(1 + exp(x)) for float32, on CPU and CUDA, with its gradient.
#include <oneflow_lite/extension/op.h>

#include <cmath>

namespace ext = oneflow_lite::extension;

void LaunchSoftplus(const float* x, float* y, int64_t n, void* stream);  // softplus.cu

static void SoftplusCpu(ext::Kernel c) {
  const float* x = c.input(0).data<float>();
  float* y = c.output(0).data<float>();
  for (int64_t i = 0, n = c.input(0).numel(); i < n; ++i) {
    y[i] = std::fmax(x[i], 0.f) + std::log1p(std::exp(-std::fabs(x[i])));
  }
}

OFL_EXTENSION {
  ext::Op op("demo::softplus");
  op.doc("log(1 + exp(x)) of each element.").input("x").output("y");
  op.infer([](ext::Infer c) { c.set_output_like(0, 0); });
  op.kernel(OFL_CPU, {OFL_FLOAT32}, SoftplusCpu);
#ifdef WITH_CUDA
  op.kernel(OFL_CUDA, {OFL_FLOAT32}, [](ext::Kernel c) {
    LaunchSoftplus(c.input(0).data<float>(), c.output(0).data<float>(), c.input(0).numel(),
                   c.stream());
  });
#endif
  op.backward({/*inputs=*/1}, [](ext::Grad c) {  // dy / (1 + exp(-x))
    ext::Tensor denominator = ext::call("add", ext::call("exp", ext::call("neg", c.input(0))), 1.0);
    c.set(0, ext::call("div", c.grad(0), denominator));
  });
  op.sbp([](ext::SbpSignatures s) {  // elementwise: may be split on any dim
    for (int32_t d = 0; d < s.ndim(0); ++d) s.add({{'S', d}, {'S', d}});
  });
  op.add();
}
