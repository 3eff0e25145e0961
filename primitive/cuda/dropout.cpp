// SPDX-License-Identifier: Apache-2.0
#include "primitive/dropout.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/random/launch.h"
#include "primitive/random_math.h"

namespace oneflow_lite {
namespace {

class CudaDropout final : public Dropout {
 public:
  explicit CudaDropout(cuda::DropoutLaunchers launchers) : launchers_(launchers) {}

  Status Launch(Stream& stream, int64_t n, const PhiloxState& state, const DropoutNumbers& numbers,
                const void* x, void* y, uint64_t* drawn) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.forward(n, Arguments(state, numbers), x, drawn, y, s);
    });
  }
  Status LaunchBackward(Stream& stream, int64_t n, const DropoutNumbers& numbers, const void* dy,
                        const uint64_t* drawn, void* dx) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.backward(n, Arguments({}, numbers), dy, drawn, dx, s);
    });
  }

 private:
  static cuda::DropoutArguments Arguments(const PhiloxState& state, const DropoutNumbers& n) {
    return {{state.seed, state.offset, state.shift},
            UniformThreshold(n.p),
            n.scale,
            n.kept,
            n.dropped,
            n.inner,
            n.run,
            n.middle,
            n.middle_step,
            n.outer_step,
            n.start};
  }

  cuda::DropoutLaunchers launchers_;
};

StatusOr<std::unique_ptr<Dropout>> NewDropout(const Dropout::Spec& spec) {
  const cuda::DropoutLaunchers launchers = cuda::FindDropout(spec.dtype);
  if (!launchers.forward) return NoPrimitiveFor(Dropout::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaDropout>(launchers);
}

const bool registered = RegisterPrimitive<Dropout>(DeviceType::kCUDA, &NewDropout);

}  // namespace
}  // namespace oneflow_lite
