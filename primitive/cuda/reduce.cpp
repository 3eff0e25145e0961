// SPDX-License-Identifier: Apache-2.0
#include "primitive/reduce.h"

#include <cmath>

#include "oneflow_lite/core/cuda/stream.h"
#include "primitive/cuda/host.h"
#include "primitive/cuda/reduce/grad_launch.h"
#include "primitive/cuda/reduce/launch.h"
#include "primitive/cuda/reduce/planner.h"

namespace oneflow_lite {
namespace {

cuda::ReduceProblem ProblemOf(const AxisSplit& s) { return {s.outer, s.axis, s.inner}; }

// Where to find the launchers of a norm.
auto FinderOfNorm(double p) {
  if (std::isinf(p)) return &cuda::FindReductionOfExtremes;
  return p == 0 || p == 1 || p == 2 ? &cuda::FindReductionOfSums : &cuda::FindReductionOfMoments;
}

class CudaReduce final : public Reduce {
 public:
  CudaReduce(const Spec& spec, cuda::ReductionLaunchers launchers)
      : spec_(spec), launchers_(launchers) {}
  bool TakesStrides(const ReduceShape& shape) const override {
    return cuda::TakesReduceStrides(shape);
  }
  size_t WorkspaceBytes(const Stream& stream, const ReduceShape& shape) const override {
    return launchers_.workspace_bytes(shape, cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const ReduceShape& shape, double parameter, const void* x, void* y,
                void* second, void* workspace) const override {
    const cuda::ReductionLaunchers launchers =
        spec_.op == ReduceKind::kNorm ? FinderOfNorm(parameter)(spec_.op, spec_.in) : launchers_;
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      const cuda::Reduction run{.shape = shape,
                                .op = spec_.op,
                                .parameter = parameter,
                                .out = spec_.out,
                                .x = x,
                                .y = y,
                                .second = second,
                                .workspace = workspace,
                                .counters = CountersOf(stream),
                                .num_counters = CudaStream::kCounters};
      return launchers.launch(run, cuda::LimitsOf(stream), s);
    });
  }

 private:
  Spec spec_;
  cuda::ReductionLaunchers launchers_;
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
  cuda::ReductionLaunchers launchers = cuda::FindReductionOfSums(spec.op, spec.in);
  if (!launchers.launch) launchers = cuda::FindReductionOfExtremes(spec.op, spec.in);
  if (!launchers.launch) launchers = cuda::FindReductionOfMoments(spec.op, spec.in);
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
