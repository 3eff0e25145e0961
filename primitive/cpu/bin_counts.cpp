// SPDX-License-Identifier: Apache-2.0
//
// Each part of the elements is counted for itself, and added as it ends.
#include "primitive/bin_counts.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kPart = 1 << 16;  // elements

template <class T>
struct Bins {
  int64_t count;
  T low, high, width;
  const T* edges;  // or null

  bool Holds(T x) const { return x >= low && x <= high; }
  // Of an x that is held.
  int64_t Of(T x) const {
    const T place = (x - low) * static_cast<T>(count) / width;
    // A NaN, where low is high or a product is infinite, is in the first one.
    const auto cut = place > 0 ? static_cast<int64_t>(std::min(place, kFar)) : int64_t{0};
    const int64_t bin = std::min(cut, count - 1);
    return edges ? Corrected(x, bin) : bin;
  }

 private:
  static constexpr T kFar = T(1 << 30) * T(1 << 30);  // fits int64

  int64_t Corrected(T x, int64_t bin) const {
    while (bin > 0 && x < edges[bin]) --bin;
    while (bin + 1 < count && x >= edges[bin + 1]) ++bin;
    return bin;
  }
};

class CpuBinCounts final : public BinCounts {
 public:
  explicit CpuBinCounts(const Spec& spec) : dtype_(spec.dtype) {}

  Status Launch(Stream&, int64_t n, const void* x, int64_t bins, double low, double high,
                const void* edges, int64_t* counts) const override {
    if (dtype_ == DType::kFloat32) {
      Count<float>(n, x, bins, low, high, edges, counts);
    } else {
      Count<double>(n, x, bins, low, high, edges, counts);
    }
    return OkStatus();
  }

 private:
  template <class T>
  static void Count(int64_t n, const void* data, int64_t count, double low, double high,
                    const void* edges, int64_t* counts) {
    const Bins<T> bins{count, static_cast<T>(low), static_cast<T>(high), static_cast<T>(high - low),
                       static_cast<const T*>(edges)};
    const T* x = static_cast<const T*>(data);
    std::fill_n(counts, count, int64_t{0});
    std::mutex adding;
    ParallelFor(n, std::max(kPart, count), [&](int64_t begin, int64_t end) {
      std::vector<int64_t> own(static_cast<size_t>(count));
      for (int64_t i = begin; i < end; ++i) {
        if (bins.Holds(x[i])) ++own[static_cast<size_t>(bins.Of(x[i]))];
      }
      const std::lock_guard lock(adding);
      for (int64_t k = 0; k < count; ++k) counts[k] += own[static_cast<size_t>(k)];
    });
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<BinCounts>> NewBinCounts(const BinCounts::Spec& spec) {
  if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64) {
    return NoPrimitiveFor(BinCounts::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuBinCounts>(spec);
}

const bool registered = RegisterPrimitive<BinCounts>(DeviceType::kCPU, &NewBinCounts);

}  // namespace
}  // namespace oneflow_lite
