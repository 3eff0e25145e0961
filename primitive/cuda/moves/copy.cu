// SPDX-License-Identifier: Apache-2.0
//
// Transposes: only the element's size matters, and an element is as wide as copy_plan.h finds.
// Other copies are in elementwise/select.cu, and in elementwise/cast.cu those with a conversion.
#include "primitive/cuda/moves/copy_launch.h"
#include "primitive/cuda/moves/copy_tiles.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class T>
CopyLauncher TilesOf(int access_bytes) {
  if (access_bytes == 16) return &LaunchTiles<T, 16>;
  if constexpr (sizeof(T) < 4) {
    if (access_bytes >= 4) return &LaunchTiles<T, 4>;
  }
  return &LaunchTiles<T, sizeof(T)>;
}

}  // namespace

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
