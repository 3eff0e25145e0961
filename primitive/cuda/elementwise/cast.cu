// SPDX-License-Identifier: Apache-2.0
//
// Casts between all dtypes: a kernel for each type that elements go through and each kind of
// result.
#include "primitive/cuda/chip/convert.cuh"
#include "primitive/cuda/elementwise/find.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// To elements of which `To` is the widest: int32_t is truncated to narrower integers.
template <class To>
struct Cast {
  template <class C>
  __device__ To operator()(C x) const {
    return ConvertTo<To>(x);
  }
};

}  // namespace

template <class To>
inline constexpr bool kChangesType<Cast<To>> = true;

namespace {

template <class C>
PassLauncher<1> FindFrom(DType to) {
  switch (to) {
    case DType::kBool:
      return &LaunchOp<1, NoNumbers, C, Cast<bool>>;
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
      return &LaunchOp<1, NoNumbers, C, Cast<int32_t>>;
    case DType::kInt64:
      return &LaunchOp<1, NoNumbers, C, Cast<int64_t>>;
    default:
      return nullptr;
  }
}

}  // namespace

PassLauncher<1> FindCast(DType through, DType to) {
  if (to == DType::kFloat64) return &LaunchOp<1, NoNumbers, double, Cast<double>>;
  if (to >= DType::kFloat16) return &LaunchOp<1, NoNumbers, float, Cast<float>>;
  switch (through) {
    case DType::kFloat64:
      return FindFrom<double>(to);
    case DType::kFloat32:
      return FindFrom<float>(to);
    default:
      return FindFrom<int64_t>(to);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
