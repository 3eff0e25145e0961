// SPDX-License-Identifier: Apache-2.0
#include "primitive/cross_entropy.h"

#include "primitive/cuda/cross_entropy/launch.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

constexpr cuda::FloatingLaunchers<cuda::CrossEntropyLaunchers> kLaunchers = {
    &cuda::kCrossEntropyFloat16, &cuda::kCrossEntropyBFloat16, &cuda::kCrossEntropyFloat32,
    &cuda::kCrossEntropyFloat64};

cuda::CrossEntropyProblem ProblemOf(const CrossEntropyShape& s) {
  return {s.rows, s.classes, s.ignore_index, s.smoothing, s.stride()};
}

class CudaCrossEntropy final : public CrossEntropy {
 public:
  explicit CudaCrossEntropy(const cuda::CrossEntropyLaunchers& launchers) : launchers_(launchers) {}
  size_t WorkspaceBytes(const Stream& stream, const CrossEntropyShape& shape) const override {
    return launchers_.workspace_bytes(shape.rows, shape.classes, cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const CrossEntropyShape& shape, const void* x,
                const int64_t* target, void* loss, void* stats, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.forward(ProblemOf(shape), x, target, loss, stats,
                                {cuda::LimitsOf(stream), s, workspace});
    });
  }

 private:
  const cuda::CrossEntropyLaunchers& launchers_;
};

class CudaCrossEntropyBackward final : public CrossEntropyBackward {
 public:
  explicit CudaCrossEntropyBackward(const cuda::CrossEntropyLaunchers& launchers)
      : launchers_(launchers) {}
  Status Launch(Stream& stream, const CrossEntropyShape& shape, const void* x,
                const int64_t* target, const void* stats, const void* dloss, int64_t dloss_stride,
                void* dx) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.backward(ProblemOf(shape), x, target, stats, dloss, dloss_stride, dx,
                                 {cuda::LimitsOf(stream), s});
    });
  }

 private:
  const cuda::CrossEntropyLaunchers& launchers_;
};

class CudaCrossEntropyInPlace final : public CrossEntropyInPlace {
 public:
  explicit CudaCrossEntropyInPlace(const cuda::CrossEntropyLaunchers& launchers)
      : launchers_(launchers) {}
  size_t WorkspaceBytes(const Stream& stream, const CrossEntropyShape& shape) const override {
    return launchers_.in_place_workspace_bytes(shape.rows, shape.classes, cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const CrossEntropyShape& shape, void* x, const int64_t* target,
                const void* scale, void* loss, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.in_place(ProblemOf(shape), x, target, scale, loss,
                                 {cuda::LimitsOf(stream), s, workspace});
    });
  }

 private:
  const cuda::CrossEntropyLaunchers& launchers_;
};

class CudaMeanWeight final : public MeanWeight {
 public:
  explicit CudaMeanWeight(const cuda::CrossEntropyLaunchers& launchers) : launchers_(launchers) {}
  Status Launch(Stream& stream, int64_t rows, int64_t ignore_index, const int64_t* target,
                void* weight) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.reduce(rows, ignore_index, nullptr, target, nullptr, weight, s);
    });
  }

 private:
  const cuda::CrossEntropyLaunchers& launchers_;
};

class CudaReduceLoss final : public ReduceLoss {
 public:
  explicit CudaReduceLoss(const cuda::CrossEntropyLaunchers& launchers) : launchers_(launchers) {}
  Status Launch(Stream& stream, int64_t rows, int64_t ignore_index, const void* loss,
                const int64_t* target, void* value, void* weight) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.reduce(rows, ignore_index, loss, target, value, weight, s);
    });
  }

 private:
  const cuda::CrossEntropyLaunchers& launchers_;
};

class CudaScaleRows final : public ScaleRows {
 public:
  explicit CudaScaleRows(const cuda::CrossEntropyLaunchers& launchers) : launchers_(launchers) {}
  Status Launch(Stream& stream, int64_t rows, int64_t cols, const void* factor, int64_t stride,
                void* x) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.scale_rows(rows, cols, factor, stride, x, {cuda::LimitsOf(stream), s});
    });
  }

 private:
  const cuda::CrossEntropyLaunchers& launchers_;
};

template <class P, class CudaP>
StatusOr<std::unique_ptr<P>> New(const CrossEntropy::Spec& spec) {
  const cuda::CrossEntropyLaunchers* launchers = kLaunchers.Find(spec.dtype);
  if (!launchers) return NoPrimitiveFor(P::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaP>(*launchers);
}
template <class P, class CudaP>
bool Register() {
  return RegisterPrimitive<P>(DeviceType::kCUDA, &New<P, CudaP>);
}
const bool registered = Register<CrossEntropy, CudaCrossEntropy>() &&
                        Register<CrossEntropyBackward, CudaCrossEntropyBackward>() &&
                        Register<CrossEntropyInPlace, CudaCrossEntropyInPlace>() &&
                        Register<MeanWeight, CudaMeanWeight>() &&
                        Register<ReduceLoss, CudaReduceLoss>() &&
                        Register<ScaleRows, CudaScaleRows>();

}  // namespace
}  // namespace oneflow_lite
