// SPDX-License-Identifier: Apache-2.0
#include "primitive/reduce.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

cuda::ReduceProblem ProblemOf(const AxisSplit& s) { return {s.outer, s.axis, s.inner}; }

class CudaReduce final : public Reduce {
 public:
  explicit CudaReduce(cuda::ReduceLaunchers launchers) : launchers_(launchers) {}
  size_t WorkspaceBytes(const Stream& stream, const AxisSplit& shape) const override {
    return launchers_.workspace_bytes(ProblemOf(shape), cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const AxisSplit& shape, const void* x, void* y,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.launch(ProblemOf(shape), x, y, workspace, cuda::LimitsOf(stream), s);
    });
  }

 private:
  cuda::ReduceLaunchers launchers_;
};

class CudaArgMax final : public ArgMax {
 public:
  explicit CudaArgMax(cuda::ArgMaxLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, const AxisSplit& shape, const void* x,
                int64_t* index) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(ProblemOf(shape), x, index, s); });
  }

 private:
  cuda::ArgMaxLauncher launcher_;
};

cuda::ReduceLaunchers Find(ReduceOp op, DType in) {
  switch (op) {
    case ReduceOp::kSum:
      return cuda::FindSum(in);
    case ReduceOp::kMean:
      return cuda::FindMean(in);
    case ReduceOp::kMax:
      return cuda::FindMax(in);
  }
  return {};
}

StatusOr<std::unique_ptr<Reduce>> NewReduce(const Reduce::Spec& spec) {
  const bool widens = spec.op == ReduceOp::kSum && !IsFloating(spec.in);
  const cuda::ReduceLaunchers launchers = Find(spec.op, spec.in);
  if (!launchers.launch || spec.out != (widens ? DType::kInt64 : spec.in)) {
    return NoPrimitiveFor(Reduce::kName, DeviceType::kCUDA, spec.in);
  }
  return std::make_unique<CudaReduce>(launchers);
}

StatusOr<std::unique_ptr<ArgMax>> NewArgMax(const ArgMax::Spec& spec) {
  const cuda::ArgMaxLauncher launcher = cuda::FindArgMax(spec.dtype);
  if (!launcher) return NoPrimitiveFor(ArgMax::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaArgMax>(launcher);
}

const bool registered = RegisterPrimitive<Reduce>(DeviceType::kCUDA, &NewReduce) &&
                        RegisterPrimitive<ArgMax>(DeviceType::kCUDA, &NewArgMax);

}  // namespace
}  // namespace oneflow_lite
