// SPDX-License-Identifier: Apache-2.0
//
// Strided copies with conversion. Without conversion only the element's size matters, and an
// element is as wide as copy_plan.h finds.
#include "primitive/cuda/copy_tiles.cuh"
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

// A conversion of kPack elements per element of g.
template <class From, class To, int kPack>
struct PackRun {
  const From* src;
  To* dst;

  __device__ void At(const int64_t (&offset)[2]) const {
    const Pack<From, kPack> in = LoadAlignedPack<kPack>(src + offset[0]);
    StoreAlignedPack(dst + offset[1], ConvertPack<To>(in));
  }
};

template <class From, class To>
cudaError_t LaunchPacks(const Strided<2>& g, const void* src, void* dst, cudaStream_t stream) {
  return ForElements(g,
                     PackRun<From, To, ConversionPack(sizeof(From), sizeof(To))>{
                         static_cast<const From*>(src), static_cast<To*>(dst)},
                     stream);
}

template <class T>
CopyLauncher TilesOf(int access_bytes) {
  if (access_bytes == 16) return &LaunchTiles<T, 16>;
  if constexpr (sizeof(T) < 4) {
    if (access_bytes >= 4) return &LaunchTiles<T, 4>;
  }
  return &LaunchTiles<T, sizeof(T)>;
}

// The dtypes between which mixed precision converts: all 90 pairs would take about as long to
// compile as the rest of this file.
template <class R, class F>
R VisitMixed(DType t, F&& f) {
  return t == DType::kFloat64 ? R{} : VisitDeviceFloating<R>(t, static_cast<F&&>(f));
}

}  // namespace

CopyLauncher FindCopyOf(int element_bytes) {
  switch (element_bytes) {
    case 1:
      return &LaunchCopy<uint8_t, uint8_t>;
    case 2:
      return &LaunchCopy<uint16_t, uint16_t>;
    case 4:
      return &LaunchCopy<uint32_t, uint32_t>;
    case 8:
      return &LaunchCopy<uint64_t, uint64_t>;
    default:
      return &LaunchCopy<uint4, uint4>;
  }
}

CopyLauncher FindTransposingCopy(int element_bytes, int access_bytes) {
  switch (element_bytes) {
    case 1:
      return TilesOf<uint8_t>(access_bytes);
    case 2:
      return TilesOf<uint16_t>(access_bytes);
    case 4:
      return TilesOf<uint32_t>(access_bytes);
    case 8:
      return TilesOf<uint64_t>(access_bytes);
    default:
      return TilesOf<uint4>(access_bytes);
  }
}

CopyLauncher FindPackConversion(DType from, DType to) {
  return VisitMixed<CopyLauncher>(from, [to](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    return VisitMixed<CopyLauncher>(to, [](auto to_tag) -> CopyLauncher {
      using To = typename decltype(to_tag)::type;
      if constexpr (std::is_same_v<From, To> || sizeof(From) == 8 || sizeof(To) == 8) {
        return nullptr;
      } else {
        return &LaunchPacks<From, To>;
      }
    });
  });
}

CopyLauncher FindCopy(DType from, DType to) {
  if (from == to) return FindCopyOf(SizeOf(from));
  return VisitDeviceAll<CopyLauncher>(from, [to](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    return VisitDeviceAll<CopyLauncher>(to, [](auto to_tag) -> CopyLauncher {
      using To = typename decltype(to_tag)::type;
      if constexpr (std::is_same_v<From, To>) {
        return nullptr;  // FindCopyOf's
      } else {
        return &LaunchCopy<From, To>;
      }
    });
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
