// SPDX-License-Identifier: Apache-2.0
//
// Places that hold are compressed by vectors, a piece of the mask at a time. Where threads share a
// mask, each counts its part first.
#include "primitive/compact.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/word.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/compact.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The places of the bytes that are not 0, and how many there are.
int64_t FindHeld(const uint8_t* mask, int64_t n, uint32_t* held) {
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), step = hn::Set(d, static_cast<uint32_t>(lanes));
  auto places = hn::Iota(d, 0);
  uint32_t* to = held;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto holds = hn::Ne(hn::PromoteTo(d, hn::LoadU(bytes, mask + i)), zero);
    hn::StoreU(hn::Compress(places, holds), d, to);
    to += hn::CountTrue(d, holds);
    places = hn::Add(places, step);
  }
  for (; i < n; ++i) {
    *to = static_cast<uint32_t>(i);
    to += mask[i] != 0;
  }
  return to - held;
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindHeld);

constexpr int64_t kBlock = 16384;  // elements a thread is worth starting for
constexpr int64_t kPiece = 1024;
constexpr int64_t kVector = 16;  // elements, at most

// The n <= kPiece elements that hold as bytes.
template <class M>
const uint8_t* BytesOf(const M* mask, int64_t n, uint8_t* bytes) {
  if constexpr (std::is_same_v<M, uint8_t>) {
    return mask;
  } else {
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (sizeof(M) == 2 && !std::is_integral_v<M>) {
        bytes[i] = (mask[i].bits & 0x7fff) != 0;
      } else {
        bytes[i] = mask[i] != M(0);
      }
    }
    return bytes;
  }
}

// f(bytes, i, n) for pieces [i, i + n) of [begin, end).
template <class M, class F>
void ForPieces(const M* mask, int64_t begin, int64_t end, F&& f) {
  uint8_t bytes[kPiece];
  for (int64_t i = begin; i < end; i += kPiece) {
    const int64_t n = std::min(kPiece, end - i);
    f(BytesOf(mask + i, n, bytes), i, n);
  }
}

// emit(i, held, count, k): the k-th element that holds and those that follow are i + held[0] to
// i + held[count - 1]. Gives how many hold.
template <class M, class F>
int64_t ForHeld(int64_t n, const M* mask, F&& emit) {
  const auto find = HWY_DYNAMIC_DISPATCH(FindHeld);
  const auto bytes_loops = FindReduceLoops<uint8_t>(Fold::kSum);
  const int64_t ranges = ParallelRanges(n, kBlock);
  std::vector<int64_t> first(static_cast<size_t>(ranges) + 1, 0);
  const auto for_range = [&](int64_t range, auto f) {
    ForPieces(mask, n * range / ranges, n * (range + 1) / ranges, f);
  };
  if (ranges > 1) {
    ParallelFor(ranges, 1, [&](int64_t begin, int64_t end) {
      for (int64_t range = begin; range < end; ++range) {
        int64_t count = 0;
        for_range(range, [&](const uint8_t* bytes, int64_t, int64_t size) {
          count += bytes_loops.row(size, bytes);
        });
        first[static_cast<size_t>(range) + 1] = count;
      }
    });
  }
  for (size_t r = 0; r + 1 < first.size(); ++r) first[r + 1] += first[r];
  ParallelFor(ranges, 1, [&](int64_t begin, int64_t end) {
    for (int64_t range = begin; range < end; ++range) {
      int64_t k = first[static_cast<size_t>(range)];
      for_range(range, [&](const uint8_t* bytes, int64_t i, int64_t size) {
        uint32_t held[kPiece + kVector];
        const int64_t count = find(bytes, size, held);
        emit(i, held, count, k);
        k += count;
      });
      if (ranges == 1) first[1] = k;
    }
  });
  return first.back();
}

// Rows [begin, end) of y, whose last numbers are places that rise: the index of each. A division
// takes as long as some steps from the row before.
void Unravel(int ndim, const int64_t* dims, int64_t begin, int64_t end, int64_t* y) {
  constexpr int64_t kNear = 4;  // rows
  const int last = ndim - 1;
  const int64_t cols = dims[last];
  int64_t row[kMaxDims] = {}, first = 0;  // the index of a row, and where it begins
  const auto find_row = [&](int64_t place) {
    if (place < first || place - first >= kNear * cols) {
      int64_t rest = place / cols;
      first = rest * cols;
      for (int d = last - 1; d >= 0; rest /= dims[d--]) row[d] = rest % dims[d];
      return;
    }
    for (; place - first >= cols; first += cols) {
      int d = last - 1;
      for (; d > 0 && ++row[d] == dims[d]; --d) row[d] = 0;
      row[0] += d == 0;
    }
  };
  for (int64_t k = begin; k < end; ++k) {
    int64_t* index = y + k * ndim;
    const int64_t place = index[last];
    if (place < first || place - first >= cols) find_row(place);
    index[0] = row[0];
    for (int d = 1; d < last; ++d) index[d] = row[d];
    index[last] = place - first;
  }
}

class CpuCompact final : public Compact {
 public:
  explicit CpuCompact(const Spec& spec) : spec_(spec) {}

  Status Places(Stream&, int ndim, const int64_t* dims, const void* mask, int64_t count, int64_t* y,
                void*) const override {
    if (ndim == 0) return OkStatus();
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= dims[d];
    VisitAll(spec_.mask, [&]<class M>(Tag<M>) {
      // A bool that others made of bytes may be neither 0 nor 1.
      using Read = std::conditional_t<std::is_same_v<M, bool>, uint8_t, M>;
      const int64_t found = ForHeld(n, static_cast<const Read*>(mask),
                                    [&](int64_t i, const uint32_t* held, int64_t more, int64_t k) {
                                      int64_t* to = y + k * ndim + ndim - 1;
                                      for (int64_t j = 0; j < std::min(more, count - k); ++j)
                                        to[j * ndim] = i + held[j];
                                    });
      if (found < count) std::fill(y + found * ndim, y + count * ndim, int64_t{0});
    });
    if (ndim > 1) {
      ParallelFor(count, kBlock,
                  [&](int64_t begin, int64_t end) { Unravel(ndim, dims, begin, end, y); });
    }
    return OkStatus();
  }
  Status Take(Stream&, int64_t n, const void* mask, const void* x, int64_t count, void* y,
              void*) const override {
    VisitWord(SizeOf(spec_.dtype), [&]<class T>(Tag<T>) {
      const T* from = static_cast<const T*>(x);
      T* to = static_cast<T*>(y);
      const int64_t found = ForHeld(n, static_cast<const uint8_t*>(mask),
                                    [&](int64_t i, const uint32_t* held, int64_t more, int64_t k) {
                                      more = std::min(more, count - k);
                                      for (int64_t j = 0; j < more; ++j)
                                        to[k + j] = from[i + held[j]];
                                    });
      if (found < count) std::fill(to + found, to + count, T(0));
    });
    return OkStatus();
  }
  Status Put(Stream&, int64_t n, const void* mask, const void* x, const void* src, int64_t count,
             void* y, void*) const override {
    std::memcpy(y, x, static_cast<size_t>(n) * SizeOf(spec_.dtype));
    VisitWord(SizeOf(spec_.dtype), [&]<class T>(Tag<T>) {
      const T* from = static_cast<const T*>(src);
      T* to = static_cast<T*>(y);
      ForHeld(n, static_cast<const uint8_t*>(mask),
              [&](int64_t i, const uint32_t* held, int64_t more, int64_t k) {
                more = std::min(more, count - k);
                for (int64_t j = 0; j < more; ++j) to[i + held[j]] = from[k + j];
              });
    });
    return OkStatus();
  }

 private:
  Spec spec_;
};

StatusOr<std::unique_ptr<Compact>> NewCompact(const Compact::Spec& spec) {
  return std::make_unique<CpuCompact>(spec);
}

const bool registered = RegisterPrimitive<Compact>(DeviceType::kCPU, &NewCompact);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
