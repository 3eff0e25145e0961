// SPDX-License-Identifier: Apache-2.0
#include "primitive/reduce.h"

#include <algorithm>
#include <cmath>

#include "oneflow_lite/core/cuda/stream.h"
#include "primitive/cuda/host.h"
#include "primitive/cuda/reduce/cut.h"
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

// The dtype of the second output.
DType SecondOf(const Reduce::Spec& spec) {
  switch (spec.op) {
    case ReduceKind::kProdParts:
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      return DType::kInt64;
    default:
      return spec.out;
  }
}

class CudaReduce final : public Reduce {
 public:
  CudaReduce(const Spec& spec, cuda::ReductionLaunchers launchers)
      : spec_(spec), launchers_(launchers) {}
  bool TakesStrides(const ReduceShape& shape) const override {
    return cuda::TakesReduceStrides(shape);
  }
  size_t WorkspaceBytes(const Stream& stream, const ReduceShape& shape) const override {
    const cuda::DeviceLimits limits = cuda::LimitsOf(stream);
    if (cuda::ResultsOf(shape) <= cuda::kMostResults) {
      return launchers_.workspace_bytes(shape, limits);
    }
    size_t most = 0;
    for (const cuda::ReducePart& part : cuda::CutReduction(shape, cuda::kMostResults)) {
      most = std::max(most, launchers_.workspace_bytes(part.shape, limits));
    }
    return most;
  }
  Status Launch(Stream& stream, const ReduceShape& shape, double parameter, const void* x, void* y,
                void* second, void* workspace) const override {
    cuda::Reduction run{.shape = shape,
                        .op = spec_.op,
                        .parameter = parameter,
                        .out = spec_.out,
                        .x = x,
                        .y = y,
                        .second = second,
                        .workspace = workspace,
                        .counters = nullptr,
                        .num_counters = CudaStream::kCounters};
    if (cuda::ResultsOf(shape) <= cuda::kMostResults) return LaunchOne(stream, run);
    const auto at = [](void* p, int64_t elements, DType dtype) {
      return p ? static_cast<char*>(p) + elements * static_cast<int64_t>(SizeOf(dtype)) : nullptr;
    };
    for (const cuda::ReducePart& part : cuda::CutReduction(shape, cuda::kMostResults)) {
      run.shape = part.shape;
      run.x = static_cast<const char*>(x) + part.x * static_cast<int64_t>(SizeOf(spec_.in));
      run.y = at(y, part.y, spec_.out);
      run.second = at(second, part.y, SecondOf(spec_));
      OFL_RETURN_IF_ERROR(LaunchOne(stream, run));
    }
    return OkStatus();
  }

 private:
  Status LaunchOne(Stream& stream, cuda::Reduction& run) const {
    const cuda::ReductionLaunchers launchers =
        run.op == ReduceKind::kNorm ? FinderOfNorm(run.parameter)(run.op, spec_.in) : launchers_;
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      run.counters = CountersOf(stream);
      return launchers.launch(run, cuda::LimitsOf(stream), s);
    });
  }

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
