// SPDX-License-Identifier: Apache-2.0
//
// Strided copies with conversion. Without conversion only the element's size matters.
#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class From, class To>
struct CopyRun {
  const From* src;
  To* dst;

  template <int N>
  __device__ void Run(int64_t i) const {
    const Pack<From, N> in = LoadPack<N>(src + i);
    Pack<To, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) out.v[k] = ConvertTo<To>(in.v[k]);
    StorePack<N>(dst + i, out);
  }
  __device__ void At(const int64_t (&offset)[2]) const {
    dst[offset[1]] = ConvertTo<To>(src[offset[0]]);
  }
};

template <class From, class To>
cudaError_t LaunchCopy(const Strided<2>& g, const void* src, void* dst, cudaStream_t stream) {
  const CopyRun<From, To> run{static_cast<const From*>(src), static_cast<To*>(dst)};
  constexpr int kWidest = sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To);
  if (g.contiguous) return ForPacks<kPackBytes / kWidest>(g.numel, run, stream);
  return ForElements(g, run, stream);
}

CopyLauncher SameType(DType dtype) {
  switch (SizeOf(dtype)) {
    case 1:
      return &LaunchCopy<uint8_t, uint8_t>;
    case 2:
      return &LaunchCopy<uint16_t, uint16_t>;
    case 4:
      return &LaunchCopy<uint32_t, uint32_t>;
    default:
      return &LaunchCopy<uint64_t, uint64_t>;
  }
}

}  // namespace

CopyLauncher FindCopy(DType from, DType to) {
  if (from == to) return SameType(from);
  return VisitDeviceAll<CopyLauncher>(from, [to](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    return VisitDeviceAll<CopyLauncher>(to, [](auto to_tag) -> CopyLauncher {
      using To = typename decltype(to_tag)::type;
      if constexpr (std::is_same_v<From, To>) {
        return nullptr;  // SameType's
      } else {
        return &LaunchCopy<From, To>;
      }
    });
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
