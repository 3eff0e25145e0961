// SPDX-License-Identifier: Apache-2.0
//
// What the elementwise primitives are on the host: a launcher and the dtypes it is launched with.
//
//   const CudaPass<2> pass({.in = {a, b}, .common = dtype, .out = dtype}, FindBinary(op, dtype));
//   return pass.Run(stream, kName, g, {{{a.data()}, {b.data()}}}, out);
#pragma once

#include "primitive/cuda/elementwise/launchers.h"
#include "primitive/cuda/elementwise/plan.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite::cuda {

template <int N, class Numbers = NoNumbers>
class CudaPass {
 public:
  CudaPass(const PassTypes<N>& types, PassLauncher<N, Numbers> launcher)
      : types_(types), launcher_(launcher) {}

  // Operands of g: the inputs, out.
  Status Run(const Stream& stream, const char* name, const Elementwise<N + 1>& g,
             const PassInputs<N>& in, void* out, const Numbers& numbers = {}) const {
    return RunOn(stream, name, [&](cudaStream_t s) {
      return ForEachPass<N>(types_, g, in, out,
                            [&](const Pass<N>& pass) { return launcher_(pass, numbers, s); });
    });
  }
  // Elements, or where data is null the number.
  PassInput Input(const void* data, const Scalar& number) const {
    return {data, data ? 0 : NumberBits(number)};
  }

 private:
  // The number as an element of the type that the kernels compute in: integers extended with their
  // sign.
  ScalarBits NumberBits(const Scalar& number) const {
    const DType common = types_.common;
    const ScalarBits bits = BitsOf(number, ComputeType(common));
    if (common == DType::kInt8) return static_cast<uint32_t>(int32_t{static_cast<int8_t>(bits)});
    if (common == DType::kInt16) return static_cast<uint32_t>(int32_t{static_cast<int16_t>(bits)});
    return bits;
  }

  PassTypes<N> types_;
  PassLauncher<N, Numbers> launcher_;
};

}  // namespace oneflow_lite::cuda
