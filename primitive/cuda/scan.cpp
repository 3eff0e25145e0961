// SPDX-License-Identifier: Apache-2.0
#include "primitive/scan.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/reduce/scan_launch.h"

namespace oneflow_lite {
namespace {

cuda::ReduceProblem ProblemOf(const AxisSplit& s) { return {s.outer, s.axis, s.inner}; }

class CudaScan final : public Scan {
 public:
  explicit CudaScan(cuda::ScanLaunchers launchers) : launchers_(launchers) {}
  size_t WorkspaceBytes(const Stream& stream, const AxisSplit& shape) const override {
    return launchers_.workspace_bytes(ProblemOf(shape), cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const AxisSplit& shape, bool reverse, bool shifted,
                const Operands& o, void* workspace) const override {
    const cuda::ScanRun run{ProblemOf(shape), reverse, shifted,  o.x,
                            o.other,          o.y,     o.places, workspace};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.launch(run, cuda::LimitsOf(stream), s);
    });
  }

 private:
  cuda::ScanLaunchers launchers_;
};

StatusOr<std::unique_ptr<Scan>> NewScan(const Scan::Spec& spec) {
  const cuda::ScanLaunchers launchers = cuda::FindScan(spec.op, spec.dtype);
  if (!launchers.launch) return NoPrimitiveFor(Scan::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaScan>(launchers);
}

const bool registered = RegisterPrimitive<Scan>(DeviceType::kCUDA, &NewScan);

}  // namespace
}  // namespace oneflow_lite
