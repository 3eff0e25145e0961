// SPDX-License-Identifier: Apache-2.0
//
// The primitives Invariant<P> on CUDA: of shapes and pointers they make what the launchers take.
#include <type_traits>

#include "primitive/cross_entropy.h"
#include "primitive/cuda/norm_host.h"
#include "primitive/layer_norm.h"
#include "primitive/rms_norm.h"
#include "primitive/scale_mask_softmax.h"
#include "primitive/softmax.h"
#include "python/torch/invariant/invariant.h"
#include "python/torch/invariant/launchers.h"

namespace oneflow_lite::torch_ops {
namespace {

using cuda::InvariantLaunchers;
constexpr cuda::FloatingLaunchers<InvariantLaunchers> kLaunchers = {
    &cuda::kInvariantFloat16, &cuda::kInvariantBFloat16, &cuda::kInvariantFloat32,
    &cuda::kInvariantFloat64};

// What they share: the launchers of the spec's dtype.
template <class P>
class Base : public Invariant<P> {
 public:
  explicit Base(const typename P::Spec& spec)
      : launchers_(*kLaunchers.Find(spec.dtype)), spec_(spec) {}

 protected:
  const InvariantLaunchers& launchers_;
  const typename P::Spec spec_;
};

cuda::SoftmaxProblem ProblemOf(const SoftmaxShape& s, bool log) {
  return {s.rows, s.cols, 1, {s.stride(0), s.stride(1)}, log};
}

class ColumnSoftmax final : public Base<Softmax> {
 public:
  using Base::Base;
  Status Launch(Stream& stream, const SoftmaxShape& shape, const void* x, void* y,
                void*) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.softmax(ProblemOf(shape, spec_.log), x, y, cuda::LimitsOf(stream), s);
    });
  }
};

class ColumnSoftmaxBackward final : public Base<SoftmaxBackward> {
 public:
  using Base::Base;
  Status Launch(Stream& stream, const SoftmaxShape& shape, const void* y, const void* dy, void* dx,
                void*) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.softmax_backward(ProblemOf(shape, spec_.log), y, dy, dx,
                                         cuda::LimitsOf(stream), s);
    });
  }
};

cuda::ScaleMaskProblem ProblemOf(const ScaleMaskSoftmaxShape& s) {
  cuda::ScaleMaskProblem p;
  p.rows = s.rows, p.cols = s.cols, p.queries = s.queries;
  p.scale = s.scale, p.causal = s.causal, p.zero_masked_rows = s.zero_masked_rows;
  std::copy_n(s.mask.dims, MaskGeometry::kDims, p.mask_dims);
  std::copy_n(s.mask.strides, MaskGeometry::kDims, p.mask_strides);
  p.mask_col_stride = s.mask.col_stride;
  return p;
}

class ColumnScaleMask final : public Base<ScaleMaskSoftmax> {
 public:
  using Base::Base;
  Status Launch(Stream& stream, const ScaleMaskSoftmaxShape& shape, const void* x, const void* mask,
                void* y, void*) const override {
    cuda::ScaleMaskProblem p = ProblemOf(shape);
    const bool is_bool = spec_.mask_dtype == DType::kBool;
    p.kind = is_bool ? cuda::ScaleMaskKind::kBool : cuda::ScaleMaskKind::kAdditive;
    p.wide_mask = !is_bool && spec_.mask_dtype != spec_.dtype;
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.scale_mask(p, x, mask, y, cuda::LimitsOf(stream), s);
    });
  }
};

class ColumnScaleMaskBackward final : public Base<ScaleMaskSoftmaxBackward> {
 public:
  using Base::Base;
  Status Launch(Stream& stream, const ScaleMaskSoftmaxShape& shape, const void* y, const void* dy,
                void* dx, void*) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.scale_mask_backward(ProblemOf(shape), y, dy, dx, cuda::LimitsOf(stream), s);
    });
  }
};

cuda::CrossEntropyProblem ProblemOf(const CrossEntropyShape& s) {
  return {s.rows, s.classes, s.ignore_index, s.smoothing, s.stride()};
}

class ColumnCrossEntropy final : public Base<CrossEntropy> {
 public:
  using Base::Base;
  Status Launch(Stream& stream, const CrossEntropyShape& shape, const void* x,
                const int64_t* target, void* loss, void* stats, void*) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.loss(ProblemOf(shape), x, target, loss, stats, cuda::LimitsOf(stream), s);
    });
  }
};

class ColumnCrossEntropyInPlace final : public Base<CrossEntropyInPlace> {
 public:
  using Base::Base;
  Status Launch(Stream& stream, const CrossEntropyShape& shape, void* x, const int64_t* target,
                const void* scale, void* loss, void*) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.loss_in_place(ProblemOf(shape), x, target, scale, loss,
                                      cuda::LimitsOf(stream), s);
    });
  }
};

bool HasFloatWeight(const NormSpec& spec) {
  return spec.dtype != spec.weight_dtype && spec.weight_dtype == DType::kFloat32;
}
cuda::NormProblem ProblemOf(const NormShape& s, const NormSpec& spec) {
  return {s.rows, s.cols, s.stride(), s.eps, HasFloatWeight(spec)};
}

template <class P>
class ColumnNorm final : public Base<P> {
 public:
  using Base<P>::Base;
  Status Launch(Stream& stream, const NormShape& shape, const typename P::Args& args,
                void*) const override {
    constexpr bool kCentre = requires { args.bias; };
    return cuda::RunOn(stream, this->kName, [&](cudaStream_t s) {
      return this->launchers_.norm(kCentre, ProblemOf(shape, this->spec_), cuda::PointersOf(args),
                                   cuda::LimitsOf(stream), s);
    });
  }
};

// Rows of whole packs, where a block has room for one, and others of up to 256 packs have kernels
// that all rows have.
template <class P>
class ColumnNormBackward final : public Base<P> {
  static constexpr bool kCentre = requires(typename P::Args a) { a.dbias; };

 public:
  explicit ColumnNormBackward(const NormSpec& spec)
      : Base<P>(spec), whole_(*(kCentre ? kLayerNorms : kRmsNorms).Find(spec.dtype)) {}
  size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const override {
    const auto problem = ProblemOf(shape, this->spec_);
    const cuda::DeviceLimits limits = cuda::LimitsOf(stream);
    return std::max(whole_.backward_bytes(shape.rows, shape.cols, limits),
                    this->launchers_.norm_backward_bytes(kCentre, problem, limits));
  }
  Status Launch(Stream& stream, const NormShape& shape, const typename P::Args& args,
                void* workspace) const override {
    const auto problem = ProblemOf(shape, this->spec_);
    const auto pointers = cuda::PointersOf(args);
    const cuda::DeviceLimits limits = cuda::LimitsOf(stream);
    return cuda::RunOn(stream, this->kName, [&](cudaStream_t s) {
      const cudaError_t error = whole_.backward(problem, pointers, workspace, limits, s);
      if (error != cudaErrorNotSupported) return error;
      return this->launchers_.norm_backward(kCentre, problem, pointers, workspace, limits, s);
    });
  }

 private:
  static constexpr cuda::FloatingLaunchers<cuda::NormLaunchers> kLayerNorms = {
      &cuda::kLayerNormFloat16, &cuda::kLayerNormBFloat16, &cuda::kLayerNormFloat32,
      &cuda::kLayerNormFloat64};
  static constexpr cuda::FloatingLaunchers<cuda::NormLaunchers> kRmsNorms = {
      &cuda::kRmsNormFloat16, &cuda::kRmsNormBFloat16, &cuda::kRmsNormFloat32,
      &cuda::kRmsNormFloat64};
  const cuda::NormLaunchers& whole_;
};

template <class P, class Column>
StatusOr<std::unique_ptr<Invariant<P>>> New(const typename P::Spec& spec) {
  if (!kLaunchers.Find(spec.dtype)) return NoPrimitiveFor(P::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<Column>(spec);
}
template <class P, class Column>
bool Register() {
  return RegisterPrimitive<Invariant<P>>(DeviceType::kCUDA, &New<P, Column>);
}

const bool registered =
    Register<Softmax, ColumnSoftmax>() && Register<SoftmaxBackward, ColumnSoftmaxBackward>() &&
    Register<ScaleMaskSoftmax, ColumnScaleMask>() &&
    Register<ScaleMaskSoftmaxBackward, ColumnScaleMaskBackward>() &&
    Register<CrossEntropy, ColumnCrossEntropy>() &&
    Register<CrossEntropyInPlace, ColumnCrossEntropyInPlace>() &&
    Register<LayerNorm, ColumnNorm<LayerNorm>>() && Register<RmsNorm, ColumnNorm<RmsNorm>>() &&
    Register<LayerNormBackward, ColumnNormBackward<LayerNormBackward>>() &&
    Register<RmsNormBackward, ColumnNormBackward<RmsNormBackward>>();

}  // namespace
}  // namespace oneflow_lite::torch_ops
