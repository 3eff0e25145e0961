// SPDX-License-Identifier: Apache-2.0
#include "primitive/binary.h"

#include "primitive/cuda/elementwise_launchers.h"
#include "primitive/cuda/elementwise_plan.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

// The number as an element of the type that the kernels compute in: integers extended with their
// sign.
cuda::ScalarBits SharedBits(const Scalar& scalar, DType common) {
  const cuda::ScalarBits bits = cuda::BitsOf(scalar, ComputeType(common));
  if (common == DType::kInt8) return static_cast<uint32_t>(int32_t{static_cast<int8_t>(bits)});
  if (common == DType::kInt16) return static_cast<uint32_t>(int32_t{static_cast<int16_t>(bits)});
  return bits;
}

class CudaBinary final : public Binary {
 public:
  CudaBinary(const Spec& spec, cuda::BinaryLaunchers launchers)
      : types_{{spec.a.value_or(spec.dtype), spec.b.value_or(spec.dtype)},
               spec.dtype,
               IsComparison(spec.op) ? DType::kBool : spec.dtype},
        launchers_(launchers) {}

  Status Launch(Stream& stream, const Elementwise<3>& g, const void* a, const void* b,
                void* out) const override {
    return Run(stream, g, {a, b}, out, /*value=*/0);
  }
  Status LaunchScalar(Stream& stream, const Elementwise<2>& g, const void* x, Scalar scalar,
                      bool scalar_first, void* out) const override {
    Elementwise<3> wide;  // the number as an operand without strides
    wide.ndim = g.ndim;
    wide.numel = g.numel;
    wide.contiguous = g.contiguous;
    std::copy_n(g.dims, g.ndim, wide.dims);
    std::copy_n(g.strides[0], g.ndim, wide.strides[scalar_first ? 1 : 0]);
    std::copy_n(g.strides[1], g.ndim, wide.strides[2]);
    const void* const none = nullptr;
    return Run(stream, wide, {scalar_first ? none : x, scalar_first ? x : none}, out,
               SharedBits(scalar, types_.common));
  }

 private:
  Status Run(Stream& stream, const Elementwise<3>& g, const std::array<const void*, 2>& in,
             void* out, cuda::ScalarBits value) const {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::ForEachPass<2>(types_, g, in, out, value, [&](const cuda::Pass<2>& pass) {
        return launchers_.launch(pass, s);
      });
    });
  }

  cuda::PassTypes<2> types_;
  cuda::BinaryLaunchers launchers_;
};

StatusOr<std::unique_ptr<Binary>> NewBinary(const Binary::Spec& spec) {
  const cuda::BinaryLaunchers launchers = cuda::FindBinary(spec.op, spec.dtype);
  if (!launchers.launch) return NoPrimitiveFor(Binary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaBinary>(spec, launchers);
}

const bool registered = RegisterPrimitive<Binary>(DeviceType::kCUDA, &NewBinary);

}  // namespace
}  // namespace oneflow_lite
