// SPDX-License-Identifier: Apache-2.0
//
// Strided copies without conversion (cast.cu has those with one): only the element's size matters,
// and an element is as wide as copy_plan.h finds.
#include "primitive/cuda/copy_tiles.cuh"
#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class T>
struct CopyRun {
  const T* src;
  T* dst;

  template <int N>
  __device__ void Run(int64_t i) const {
    StorePack<N>(dst + i, LoadPack<N>(src + i));
  }
  __device__ void At(const int64_t (&offset)[2]) const { dst[offset[1]] = src[offset[0]]; }
};

template <class T>
cudaError_t LaunchCopy(const Strided<2>& g, const void* src, void* dst, cudaStream_t stream) {
  const CopyRun<T> run{static_cast<const T*>(src), static_cast<T*>(dst)};
  if (g.contiguous) return ForPacks<kPackSize<T>>(g.numel, run, stream);
  return ForElements(g, run, stream);
}

template <class T>
CopyLauncher TilesOf(int access_bytes) {
  if (access_bytes == 16) return &LaunchTiles<T, 16>;
  if constexpr (sizeof(T) < 4) {
    if (access_bytes >= 4) return &LaunchTiles<T, 4>;
  }
  return &LaunchTiles<T, sizeof(T)>;
}

}  // namespace

CopyLauncher FindCopyOf(int element_bytes) {
  switch (element_bytes) {
    case 1:
      return &LaunchCopy<uint8_t>;
    case 2:
      return &LaunchCopy<uint16_t>;
    case 4:
      return &LaunchCopy<uint32_t>;
    case 8:
      return &LaunchCopy<uint64_t>;
    default:
      return &LaunchCopy<uint4>;
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

}  // namespace cuda
}  // namespace oneflow_lite
