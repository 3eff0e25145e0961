// SPDX-License-Identifier: Apache-2.0
#include "primitive/nll_loss.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/losses/nll_loss_launch.h"

namespace oneflow_lite {
namespace {

cuda::NllProblem ProblemOf(const NllLossShape& s) {
  return {s.outer, s.classes, s.inner, s.ignore_index};
}

class CudaNllLoss final : public NllLoss {
 public:
  explicit CudaNllLoss(cuda::NllLaunchers launchers) : launchers_(launchers) {}
  Status Launch(Stream& stream, const NllLossShape& shape, const void* logp, const int64_t* target,
                const void* class_weight, void* loss, void* row_weight) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.forward(ProblemOf(shape), logp, target, class_weight, loss, row_weight, s);
    });
  }

 private:
  cuda::NllLaunchers launchers_;
};

class CudaNllLossBackward final : public NllLossBackward {
 public:
  explicit CudaNllLossBackward(cuda::NllLaunchers launchers) : launchers_(launchers) {}
  Status Launch(Stream& stream, const NllLossShape& shape, const void* dloss, const int64_t* target,
                const void* row_weight, void* dlogp) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.backward(ProblemOf(shape), dloss, target, row_weight, dlogp, s);
    });
  }

 private:
  cuda::NllLaunchers launchers_;
};

template <class P, class CudaP>
StatusOr<std::unique_ptr<P>> New(const NllLoss::Spec& spec) {
  const cuda::NllLaunchers launchers = cuda::FindNll(spec.dtype);
  if (!launchers.forward) return NoPrimitiveFor(P::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaP>(launchers);
}

const bool registered = RegisterPrimitive<NllLoss>(DeviceType::kCUDA, &New<NllLoss, CudaNllLoss>) &&
                        RegisterPrimitive<NllLossBackward>(
                            DeviceType::kCUDA, &New<NllLossBackward, CudaNllLossBackward>);

}  // namespace
}  // namespace oneflow_lite
