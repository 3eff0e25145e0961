// SPDX-License-Identifier: Apache-2.0
//
// ravel_multi_index: as many indices at a time as a launch takes.
#include "primitive/ravel_multi_index.h"

#include <algorithm>

#include "kernels/broadcast.h"
#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class RavelKernel final : public PrimitiveKernel<RavelMultiIndex> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& out = c.output(0);
    for (int first = 0; first < c.num_inputs(); first += MultiIndex::kMost) {
      OFL_RETURN_IF_ERROR(
          primitive_->Launch(c.stream(), IndicesFrom(c, first), out.data<int64_t>()));
    }
    return OkStatus();
  }

 private:
  static MultiIndex IndicesFrom(const KernelContext& c, int first) {
    constexpr int kMost = MultiIndex::kMost;
    const Tensor& out = c.output(0);
    MultiIndex m;
    m.count = std::min(c.num_inputs() - first, kMost);
    m.continues = first > 0;
    Dims strides[kMost];
    for (int k = 0; k < kMost; ++k) {
      strides[k] = BroadcastStrides(c.input(k < m.count ? first + k : first), out.shape());
      if (k >= m.count) continue;
      const auto at = static_cast<size_t>(first + k);
      m.index[k] = c.input(first + k).data<int64_t>();
      m.size[k] = c.attr<Dims>(0)[at];
      m.dim[k] = c.attr<Dims>(1)[at];
    }
    m.g = MakeElementwise<kMost + 1>(
        out.shape(), {strides[0], strides[1], strides[2], strides[3], out.strides()});
    return m;
  }
};

OFL_REGISTER_KERNEL({.op = "ravel_multi_index",
                     .dtypes = SetOf(DType::kInt64),
                     .strided_inputs = ~uint32_t{0},
                     .bind = [](const BindContext& c) { return BindKernel<RavelKernel>(c, {}); }});

}  // namespace
}  // namespace oneflow_lite
