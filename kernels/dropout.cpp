// SPDX-License-Identifier: Apache-2.0
#include "primitive/dropout.h"

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite {
namespace {

// Where the elements of a part draw: `places` is the place of its first element in the whole, and
// the whole's strides.
Status SetPlaces(const char* op, const Shape& shape, const Dims& places, DropoutNumbers* numbers) {
  if (places.empty()) return OkStatus();
  numbers->start = places[0];
  struct Axis {
    int64_t size, step;
  };
  absl::InlinedVector<Axis, 5> axes;  // without those of size 1, neighbours that go on joined
  for (int d = 0; d < shape.ndim(); ++d) {
    const Axis axis{shape[d], places[d + 1]};
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().step == axis.size * axis.step) {
      axes.back() = {axes.back().size * axis.size, axis.step};
    } else {
      axes.push_back(axis);
    }
  }
  const size_t n = axes.size();
  if (n == 0 || (n == 1 && axes[0].step == 1)) return OkStatus();
  const bool dense = axes[n - 1].step == 1;
  numbers->run = dense ? axes[n - 1].size : 1;
  const size_t outer = dense ? n - 1 : n;  // at most two: each dim of a grid cuts one
  if (outer > 2) {
    return BadValue(op, "places", ToString(places),
                    "those of a part that is cut along two dims at most");
  }
  if (outer > 0) {
    numbers->middle = axes[outer - 1].size;
    numbers->middle_step = axes[outer - 1].step;
  }
  if (outer > 1) numbers->outer_step = axes[0].step;
  return OkStatus();
}

class DropoutKernel final : public PrimitiveKernel<Dropout> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    OFL_ASSIGN_OR_RETURN(const uint64_t* shift, c.stream().RandomShift());
    const PhiloxState state{.seed = static_cast<uint64_t>(c.attr<int64_t>(5)),
                            .offset = static_cast<uint64_t>(c.attr<int64_t>(6)),
                            .shift = shift};
    DropoutNumbers numbers{.p = c.attr<double>(0),
                           .scale = c.attr<double>(1),
                           .kept = c.attr<double>(2),
                           .dropped = c.attr<double>(3),
                           .inner = c.attr<int64_t>(4)};
    OFL_RETURN_IF_ERROR(SetPlaces("dropout", c.output(0).shape(), c.attr<Dims>(7), &numbers));
    return primitive_->Launch(c.stream(), c.output(0).numel(), state, numbers, c.input(0).data(),
                              c.output(0).data(), static_cast<uint64_t*>(c.output(1).data()));
  }
};

class DropoutBackwardKernel final : public PrimitiveKernel<Dropout> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    DropoutNumbers numbers{
        .p = c.attr<double>(0), .scale = c.attr<double>(1), .inner = c.attr<int64_t>(2)};
    OFL_RETURN_IF_ERROR(
        SetPlaces("dropout_backward", c.output(0).shape(), c.attr<Dims>(3), &numbers));
    return primitive_->LaunchBackward(c.stream(), c.output(0).numel(), numbers, c.input(0).data(),
                                      static_cast<const uint64_t*>(c.input(1).data()),
                                      c.output(0).data());
  }
};

OFL_REGISTER_KERNEL({.op = "dropout", .dtypes = kFloatingSet, .bind = BindByInput<DropoutKernel>});
OFL_REGISTER_KERNEL({.op = "dropout_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<DropoutBackwardKernel>});

}  // namespace
}  // namespace oneflow_lite
