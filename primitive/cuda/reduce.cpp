// SPDX-License-Identifier: Apache-2.0
#include "primitive/reduce.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

cuda::ReduceProblem ProblemOf(const AxisSplit& s) { return {s.outer, s.axis, s.inner}; }

class CudaReduce final : public Reduce {
 public:
  CudaReduce(const Spec& spec, cuda::ReduceLaunchers launchers)
      : spec_(spec), launchers_(launchers) {}
  size_t WorkspaceBytes(const Stream& stream, const AxisSplit& shape) const override {
    return launchers_.workspace_bytes(ProblemOf(shape), cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const AxisSplit& shape, double parameter, const void* x, void* y,
                void* second, void* workspace) const override {
    const cuda::ReduceRun run{ProblemOf(shape), spec_.op, parameter, spec_.out, x, y,
                              second,           workspace};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.launch(run, cuda::LimitsOf(stream), s);
    });
  }

 private:
  Spec spec_;
  cuda::ReduceLaunchers launchers_;
};

class CudaReduceGrad final : public ReduceGrad {
 public:
  explicit CudaReduceGrad(cuda::ReduceGradLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, const AxisSplit& shape, double parameter, const Operands& o,
                void* dx) const override {
    const cuda::ReduceGradRun run{ProblemOf(shape), parameter, o.dy, o.x, o.y,
                                  o.extra,          o.zeros,   dx};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) { return launcher_(run, s); });
  }

 private:
  cuda::ReduceGradLauncher launcher_;
};

StatusOr<std::unique_ptr<Reduce>> NewReduce(const Reduce::Spec& spec) {
  const std::optional<DType> out = ReduceOut(spec.op, spec.in);
  // Sums in float64 of narrower floats need another accumulator; functors cast first.
  const bool any_float = TakesAnyFloat(spec.op) && IsFloating(spec.in) && IsFloating(spec.out) &&
                         spec.out != DType::kFloat64;
  cuda::ReduceLaunchers launchers = cuda::FindReduceSum(spec.op, spec.in);
  if (!launchers.launch) launchers = cuda::FindReduceExtreme(spec.op, spec.in);
  if (!launchers.launch) launchers = cuda::FindReduceMoment(spec.op, spec.in);
  if (!out || (spec.out != *out && !any_float) || !launchers.launch) {
    return NoPrimitiveFor(Reduce::kName, DeviceType::kCUDA, spec.in);
  }
  return std::make_unique<CudaReduce>(spec, launchers);
}

StatusOr<std::unique_ptr<ReduceGrad>> NewReduceGrad(const ReduceGrad::Spec& spec) {
  const cuda::ReduceGradLauncher launcher = cuda::FindReduceGrad(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(ReduceGrad::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaReduceGrad>(launcher);
}

const bool registered = RegisterPrimitive<Reduce>(DeviceType::kCUDA, &NewReduce) &&
                        RegisterPrimitive<ReduceGrad>(DeviceType::kCUDA, &NewReduceGrad);

}  // namespace
}  // namespace oneflow_lite
