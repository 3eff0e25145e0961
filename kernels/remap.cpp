// SPDX-License-Identifier: Apache-2.0
//
// flip, roll, pad and its gradient: a RemapShape from the attributes. triangle beside them.
#include "primitive/remap.h"

#include <algorithm>

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

// Whether a dim is taken as it is.
bool IsWhole(const RemapDim& d) {
  return d.mode == RemapMode::kShift && d.shift == 0 && d.size == d.out;
}

// A dim and the whole one within it that lies densely are one.
RemapShape Merged(const RemapShape& s) {
  RemapShape m;
  m.numel = s.numel;
  for (int d = 0; d < s.ndim; ++d) {
    const RemapDim& dim = s.dims[d];
    if (IsWhole(dim) && dim.size == 1) continue;
    RemapDim* before = m.ndim > 0 ? &m.dims[m.ndim - 1] : nullptr;
    const bool joins = before && IsWhole(dim) && before->stride == dim.size * dim.stride &&
                       (before->mode == RemapMode::kShift || before->mode == RemapMode::kWrap);
    if (!joins) {
      m.dims[m.ndim++] = dim;
      continue;
    }
    before->size *= dim.size;
    before->out *= dim.size;
    before->shift *= dim.size;
    before->stride = dim.stride;
  }
  if (m.ndim == 0) m.dims[m.ndim++] = {.stride = 1};
  return m;
}

// Every dim of x as it is.
RemapShape ShapeOf(const Tensor& x, const Tensor& y) {
  RemapShape s;
  s.ndim = x.ndim();
  s.numel = y.numel();
  for (int d = 0; d < s.ndim; ++d) {
    s.dims[d] = {.size = x.shape()[d], .out = y.shape()[d], .stride = x.strides()[d]};
  }
  return s;
}

RemapMode ModeOf(const std::string& name) {
  return name == "reflect"     ? RemapMode::kReflect
         : name == "replicate" ? RemapMode::kClamp
         : name == "circular"  ? RemapMode::kWrap
                               : RemapMode::kShift;
}
// widths: how much before and after each dim.
void Pad(const Dims& widths, RemapMode mode, RemapShape* s) {
  for (int d = 0; d < s->ndim; ++d) {
    if (widths[2 * d] == 0 && widths[2 * d + 1] == 0) continue;
    s->dims[d].shift = -widths[2 * d];
    s->dims[d].mode = mode;
  }
}

class FlipKernel final : public PrimitiveKernel<Remap> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    RemapShape s = ShapeOf(c.input(0), c.output(0));
    for (const int64_t d : c.attr<Dims>(0)) s.dims[d].mode = RemapMode::kFlip;
    return primitive_->Launch(c.stream(), Merged(s), Scalar(0), c.input(0).data(),
                              c.output(0).data());
  }
};

class RollKernel final : public PrimitiveKernel<Remap> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    RemapShape s = ShapeOf(c.input(0), c.output(0));
    const Dims &shifts = c.attr<Dims>(0), &dims = c.attr<Dims>(1);
    for (size_t i = 0; i < dims.size(); ++i) {
      RemapDim& d = s.dims[dims[i]];
      d.mode = RemapMode::kWrap;
      d.shift = ((d.shift - shifts[i] % d.size) % d.size + d.size) % d.size;
    }
    return primitive_->Launch(c.stream(), Merged(s), Scalar(0), c.input(0).data(),
                              c.output(0).data());
  }
};

class PadKernel final : public PrimitiveKernel<Remap> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    RemapShape s = ShapeOf(c.input(0), c.output(0));
    Pad(c.attr<Dims>(0), ModeOf(c.attr<std::string>(1)), &s);
    return primitive_->Launch(c.stream(), Merged(s), c.attr<Scalar>(2), c.input(0).data(),
                              c.output(0).data());
  }
};

class PadBackwardKernel final : public PrimitiveKernel<Remap> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    RemapShape s = ShapeOf(c.output(0), c.input(0));
    Pad(c.attr<Dims>(0), ModeOf(c.attr<std::string>(1)), &s);
    return primitive_->LaunchBackward(c.stream(), Merged(s), c.input(0).data(), c.output(0).data());
  }
};

class TriangleKernel final : public PrimitiveKernel<Triangle> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Shape& shape = c.input(0).shape();
    const int64_t rows = shape[shape.ndim() - 2], cols = shape[shape.ndim() - 1];
    // Beyond the matrix all diagonals are alike.
    const int64_t diagonal = std::clamp(c.attr<int64_t>(0), -rows - 1, cols + 1);
    return primitive_->Launch(c.stream(), shape.numel() / (rows * cols), rows, cols, diagonal,
                              c.attr<bool>(1), c.input(0).data(), c.output(0).data());
  }
};

OFL_REGISTER_KERNEL({.op = "flip", .strided_inputs = 0b1, .bind = BindByInput<FlipKernel>});
OFL_REGISTER_KERNEL({.op = "roll", .strided_inputs = 0b1, .bind = BindByInput<RollKernel>});
OFL_REGISTER_KERNEL({.op = "pad", .strided_inputs = 0b1, .bind = BindByInput<PadKernel>});
OFL_REGISTER_KERNEL({.op = "pad_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<PadBackwardKernel>});
OFL_REGISTER_KERNEL({.op = "triangle", .bind = BindByInput<TriangleKernel>});
OFL_REGISTER_KERNEL({.op = "triangle_", .bind = BindByInput<TriangleKernel>});

}  // namespace
}  // namespace oneflow_lite
