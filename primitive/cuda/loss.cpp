// SPDX-License-Identifier: Apache-2.0
#include "primitive/loss.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/losses/loss_launch.h"

namespace oneflow_lite {
namespace {

class CudaLoss final : public Loss {
 public:
  explicit CudaLoss(DType dtype) : dtype_(dtype) {}

  size_t WorkspaceBytes(const Stream& stream, const LossProblem& problem) const override {
    return problem.summed ? static_cast<size_t>(BlocksOf(stream, problem)) * sizeof(double) : 0;
  }
  Status Launch(Stream& stream, const LossProblem& problem, const LossPointers& at,
                void* workspace) const override {
    const cuda::LossLaunchers launchers = cuda::FindLoss(problem.kind, dtype_);
    const cuda::LossArguments args = {problem.order, problem.a,      problem.b,      problem.scale,
                                      problem.n,     problem.period, problem.one_dy, at.dy,
                                      at.x,          at.t,           at.p,           at.y};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return problem.summed ? launchers.sum(args, BlocksOf(stream, problem),
                                            static_cast<double*>(workspace), s)
                            : launchers.elements(args, s);
    });
  }

 private:
  int64_t BlocksOf(const Stream& stream, const LossProblem& problem) const {
    return cuda::LossBlocks(problem.n, dtype_, cuda::LimitsOf(stream).multiprocessors);
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<Loss>> New(const Loss::Spec& spec) {
  if (!cuda::FindLoss(LossKind::kMse, spec.dtype).elements) {
    return NoPrimitiveFor(Loss::kName, DeviceType::kCUDA, spec.dtype);
  }
  return std::make_unique<CudaLoss>(spec.dtype);
}

const bool registered = RegisterPrimitive<Loss>(DeviceType::kCUDA, &New);

}  // namespace
}  // namespace oneflow_lite
