// SPDX-License-Identifier: Apache-2.0
//
// Each thread adds up its own elements; their sums are added in order.
#include "primitive/bin_counts.h"

#include <algorithm>
#include <memory>
#include <new>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kPart = 1 << 16;  // elements

// T: what is computed in; E: of the elements.
template <class T, class E>
struct Bins {
  int64_t count;
  T low, high, width;
  const E* edges;  // or null

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

// Integers from 0 on that are their own bins.
struct Integers {
  int64_t count;

  bool Holds(int64_t x) const { return static_cast<uint64_t>(x) < static_cast<uint64_t>(count); }
  int64_t Of(int64_t x) const { return x; }
};

struct One {
  int64_t operator()(int64_t) const { return 1; }
};
template <class T>
struct WeightOf {
  const T* weights;
  double operator()(int64_t i) const { return static_cast<double>(weights[i]); }
};

class CpuBinCounts final : public BinCounts {
 public:
  explicit CpuBinCounts(const Spec& spec) : dtype_(spec.dtype) {}

  Status Launch(Stream&, int64_t n, const void* x, int64_t bins, double low, double high,
                const void* edges, const void* weights, void* sums) const override {
    const auto run = [&]<class T, class E>(Tag<T>, Tag<E>) {
      const Bins<T, E> all{bins, static_cast<T>(low), static_cast<T>(high),
                           static_cast<T>(high - low), static_cast<const E*>(edges)};
      const E* from = static_cast<const E*>(x);
      if (weights) {
        return Add<double>(all, n, from, WeightOf<E>{static_cast<const E*>(weights)},
                           static_cast<E*>(sums));
      }
      return Add<int64_t>(all, n, from, One(), static_cast<int64_t*>(sums));
    };
    if (dtype_ == DType::kFloat32) return run(Tag<float>(), Tag<float>());
    if (dtype_ == DType::kFloat64) return run(Tag<double>(), Tag<double>());
    if (low == 0 && high == static_cast<double>(bins) - 0.5 && !edges && !weights) {
      return Add<int64_t>(Integers{bins}, n, static_cast<const int64_t*>(x), One(),
                          static_cast<int64_t*>(sums));
    }
    return run(Tag<double>(), Tag<int64_t>());
  }

 private:
  template <class S, class AnyBins, class T, class Term, class Out>
  static Status Add(const AnyBins& bins, int64_t n, const T* x, Term term, Out* sums) {
    const int64_t count = bins.count, ranges = ParallelRanges(n, std::max(kPart, count));
    const auto add = [&](int64_t begin, int64_t end, S* own) {
      // A copy, to which no store goes. Unrolled, as CopyStrided says.
      const AnyBins here = bins;
#pragma GCC unroll 4
      for (int64_t i = begin; i < end; ++i) {
        if (here.Holds(x[i])) own[here.Of(x[i])] += term(i);
      }
    };
    if constexpr (std::is_same_v<S, Out>) {
      if (ranges == 1) {
        std::fill_n(sums, count, S{});
        add(0, n, sums);
        return OkStatus();
      }
    }
    const std::unique_ptr<S[]> parts(new (std::nothrow) S[static_cast<size_t>(ranges * count)]());
    if (!parts) {
      return Error(ErrorKind::kOutOfMemory, kName, "(): no memory for ", count, " bins of ", ranges,
                   " parts");
    }
    ParallelFor(ranges, 1, [&](int64_t first, int64_t last) {
      add(n * first / ranges, n * last / ranges, parts.get() + first * count);
    });
    for (int64_t k = 0; k < count; ++k) {
      S sum{};
      for (int64_t range = 0; range < ranges; ++range) {
        sum += parts[static_cast<size_t>(range * count + k)];
      }
      sums[k] = static_cast<Out>(sum);
    }
    return OkStatus();
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<BinCounts>> NewBinCounts(const BinCounts::Spec& spec) {
  if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64 &&
      spec.dtype != DType::kInt64) {
    return NoPrimitiveFor(BinCounts::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuBinCounts>(spec);
}

const bool registered = RegisterPrimitive<BinCounts>(DeviceType::kCPU, &NewBinCounts);

}  // namespace
}  // namespace oneflow_lite
