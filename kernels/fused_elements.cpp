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
    OFL_ASSIGN_OR_RETURN(auto typed, TypedOnce(text, types));
    uint64_t beyond = 0;  // the bounds of clamp that their dtype does not hold
    for (const TypedExpression::Use& use : typed->uses) {
      const Scalar& number = inputs[use.input].number;
      if (inputs[use.input].data) continue;
      if (use.is_bound && !number.Fits(use.dtype)) {
        beyond |= uint64_t{1} << use.input;
      } else {
        OFL_RETURN_IF_ERROR(CheckUse(number, use));
      }
    }
    if (beyond) {
      OFL_ASSIGN_OR_RETURN(const std::string written, Written(text, inputs, beyond));
      OFL_ASSIGN_OR_RETURN(typed, TypedOnce(written, types));
    }
    OFL_ASSIGN_OR_RETURN(const auto primitive, PrimitiveOf(typed));
    return primitive->Launch(c.stream(), shape, inputs, outputs);
  }

 private:
  using Primitive = std::shared_ptr<const FusedElements>;

  // The expression with these inputs as the numbers that they are.
  static StatusOr<std::string> Written(const std::string& text,
                                       absl::Span<const FusedElements::Input> inputs,
                                       uint64_t which) {
    OFL_ASSIGN_OR_RETURN(const auto e, ParsedExpression(text));
    Expression written(e->parameters());
    std::vector<int> arguments;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_one = which >> i & 1;
      const int input = static_cast<int>(i);
      arguments.push_back(is_one ? written.Constant(inputs[i].number) : written.Input(input));
    }
    written.Finish(written.Inline(*e, arguments));
    return written.Text();
  }

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
