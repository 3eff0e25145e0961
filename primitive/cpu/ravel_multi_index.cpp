// SPDX-License-Identifier: Apache-2.0
#include "primitive/ravel_multi_index.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/strided.h"
#include "primitive/places.h"

namespace oneflow_lite {
namespace {

std::vector<StridedReader> ReadersOf(const MultiIndex& m, int64_t begin) {
  std::vector<StridedReader> readers;
  for (int k = 0; k < m.count; ++k) {
    readers.emplace_back(m.g, k, sizeof(int64_t), m.index[k], begin);
  }
  return readers;
}

// n places of a dim joined to those before it. Whether all of them lie within the dim.
bool Join(int64_t n, const int64_t* index, int64_t size, bool first, int64_t* out) {
  uint64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = index[i] + (index[i] < 0 ? size : 0);
    outside |= static_cast<uint64_t>(place >= size) | static_cast<uint64_t>(place < 0);
    // Unsigned, since the sizes before a dim of size 0 may have no product.
    const uint64_t before = first ? 0 : static_cast<uint64_t>(out[i]) * static_cast<uint64_t>(size);
    out[i] = static_cast<int64_t>(before + static_cast<uint64_t>(place));
  }
  return outside == 0;
}

class CpuRavelMultiIndex final : public RavelMultiIndex {
 public:
  Status Launch(Stream&, const MultiIndex& m, int64_t* out) const override {
    std::atomic<bool> outside{false};
    ParallelFor(m.g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      std::vector<StridedReader> readers = ReadersOf(m, begin);
      ChunkBuffer buffer[MultiIndex::kMost];
      for (int64_t i = begin; i < end; i += kChunk) {
        const int64_t n = std::min(kChunk, end - i);
        for (int k = 0; k < m.count; ++k) {
          const auto* index =
              static_cast<const int64_t*>(readers[static_cast<size_t>(k)].Read(n, buffer[k]));
          if (!Join(n, index, m.size[k], k == 0 && !m.continues, out + i)) outside = true;
        }
      }
    });
    return outside ? FirstOutside(m) : OkStatus();
  }

 private:
  // The error for the first of them, whatever the threads met first.
  static Status FirstOutside(const MultiIndex& m) {
    for (int k = 0; k < m.count; ++k) {
      StridedReader reader(m.g, k, sizeof(int64_t), m.index[k], 0);
      ChunkBuffer buffer;
      for (int64_t i = 0; i < m.g.numel; i += kChunk) {
        const int64_t n = std::min(kChunk, m.g.numel - i);
        const auto* index = static_cast<const int64_t*>(reader.Read(n, buffer));
        for (int64_t j = 0; j < n; ++j) {
          if (FindPlace(index[j], m.size[k], true) >= 0) continue;
          return Error(ErrorKind::kIndex, kName, "(): index ", index[j], " is out of range [",
                       -m.size[k], ", ", m.size[k] - 1, "] for dim ", m.dim[k], " of size ",
                       m.size[k]);
        }
      }
    }
    return OkStatus();
  }
};

StatusOr<std::unique_ptr<RavelMultiIndex>> New(const RavelMultiIndex::Spec&) {
  return std::make_unique<CpuRavelMultiIndex>();
}

const bool registered = RegisterPrimitive<RavelMultiIndex>(DeviceType::kCPU, &New);

}  // namespace
}  // namespace oneflow_lite
