// SPDX-License-Identifier: Apache-2.0
//
// Expressions of elements: broadcast geometry, then the primitive that the expression has for the
// operands' dtypes; numbers go in by value.
#include "primitive/fused_elements.h"

#include <mutex>
#include <unordered_map>

#include "kernels/broadcast.h"
#include "kernels/number.h"
#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite {
namespace {

class FusedElementsKernel final : public BoundKernel {
 public:
  explicit FusedElementsKernel(DeviceType device) : device_(device) {}

  Status Launch(KernelContext& c) const override {
    const auto& text = c.attr<std::string>(0);
    const auto numbers = static_cast<uint64_t>(c.attr<int64_t>(1));
    const Shape& shape = c.output(0).shape();
    absl::InlinedVector<ElementType, 8> types;
    absl::InlinedVector<FusedElements::Input, 8> inputs(c.num_inputs());
    absl::InlinedVector<Dims, 8> strides;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Tensor& t = c.input(i);
      const bool is_number = numbers >> i & 1;
      types.push_back({t.dtype(), is_number       ? ElementType::kNumber
                                  : t.ndim() == 0 ? ElementType::kScalar
                                                  : ElementType::kTensor});
      strides.push_back(BroadcastStrides(t, shape));
      if (IsNumber(t) && (is_number || device_ != DeviceType::kCPU)) {
        inputs[i].number = NumberIn(t);
      } else {
        inputs[i].data = t.data();
      }
    }
    for (int i = 0; i < c.num_inputs(); ++i) inputs[i].strides = strides[i];
    absl::InlinedVector<FusedElements::Output, 2> outputs;
    for (int j = 0; j < c.num_outputs(); ++j) {
      outputs.push_back({c.output(j).data(), c.output(j).strides()});
    }
    OFL_ASSIGN_OR_RETURN(const auto typed, TypedOnce(text, types));
    for (const TypedExpression::Use& use : typed->uses) {
      if (inputs[use.input].data) continue;
      OFL_RETURN_IF_ERROR(CheckUse(inputs[use.input].number, use));
    }
    OFL_ASSIGN_OR_RETURN(const auto primitive, PrimitiveOf(typed));
    return primitive->Launch(c.stream(), shape, inputs, outputs);
  }

 private:
  using Primitive = std::shared_ptr<const FusedElements>;

  StatusOr<Primitive> PrimitiveOf(const std::shared_ptr<const TypedExpression>& typed) const {
    const std::lock_guard lock(mutex_);
    const auto found = primitives_.find(typed);
    if (found != primitives_.end()) return found->second;
    OFL_ASSIGN_OR_RETURN(Primitive primitive,
                         NewPrimitive<FusedElementsFactory>(device_, {.expression = typed}));
    if (primitives_.size() >= kMost) primitives_.clear();
    return primitives_[typed] = std::move(primitive);
  }

  static constexpr size_t kMost = 4096;
  const DeviceType device_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::shared_ptr<const TypedExpression>, Primitive> primitives_;
};

const bool registered = [] {
  const auto bind = [](const BindContext& c) -> StatusOr<std::unique_ptr<BoundKernel>> {
    return std::make_unique<FusedElementsKernel>(c.device);
  };
  for (int n = 1; n <= 8; ++n) {
    internal::AppendKernel({.op = n == 1 ? "fuse_elements" : absl::StrCat("fuse_elements_", n),
                            .strided_inputs = ~uint32_t{0},
                            .bind = bind},
                           __FILE__, __LINE__);
  }
  return true;
}();

}  // namespace
}  // namespace oneflow_lite
