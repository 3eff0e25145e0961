// SPDX-License-Identifier: Apache-2.0
//
// A block of the mask is counted by one thread; where its elements go is then known.
#include "primitive/compact.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "oneflow_lite/core/parallel.h"
#include "primitive/word.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kBlock = 16384;  // elements

template <class M>
bool Holds(M m) {
  if constexpr (sizeof(M) == 2 && !std::is_integral_v<M>) {
    return static_cast<float>(m) != 0;
  } else {
    return m != M(0);
  }
}

// The elements of [begin, end) that hold, at most kPiece; returns how many. No branch depends on
// them: half of the branches would be foreseen wrongly in a random mask.
constexpr int64_t kPiece = 512;
template <class M>
int64_t FindHeld(const M* mask, int64_t begin, int64_t end, int64_t* held) {
  int64_t n = 0;
  for (int64_t i = begin; i < end; ++i) {
    held[n] = i;
    n += Holds(mask[i]);
  }
  return n;
}

// emit(i, k) for the k-th element that holds, i; in order within a block, blocks in parallel.
template <class M, class F>
void ForHeld(int64_t n, const M* mask, F&& emit) {
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<int64_t> first(static_cast<size_t>(blocks + 1), 0);
  ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t count = 0;
      for (int64_t i = b * kBlock; i < std::min(n, (b + 1) * kBlock); ++i) count += Holds(mask[i]);
      first[static_cast<size_t>(b + 1)] = count;
    }
  });
  for (size_t b = 0; b < static_cast<size_t>(blocks); ++b) first[b + 1] += first[b];
  ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t k = first[static_cast<size_t>(b)], held[kPiece];
      const int64_t stop = std::min(n, (b + 1) * kBlock);
      for (int64_t i = b * kBlock; i < stop; i += kPiece) {
        const int64_t count = FindHeld(mask, i, std::min(i + kPiece, stop), held);
        for (int64_t j = 0; j < count; ++j) emit(held[j], k++);
      }
    }
  });
}

// Rows [begin, end) of y, whose last numbers are places that rise: the index of each. A division
// takes as long as some steps from the place before.
void Unravel(int ndim, const int64_t* dims, int64_t begin, int64_t end, int64_t* y) {
  constexpr int64_t kNear = 4;  // rows
  const int last = ndim - 1;
  int64_t before = 0;
  for (int64_t k = begin; k < end; ++k) {
    int64_t* index = y + k * ndim;
    const int64_t place = index[last];
    if (k == begin || place < before || place - before >= kNear * dims[last]) {
      int64_t rest = place;
      for (int d = last; d >= 0; rest /= dims[d--]) index[d] = rest % dims[d];
    } else {
      std::copy_n(index - ndim, ndim, index);
      index[last] += place - before;
      for (int d = last; d > 0; --d) {
        for (; index[d] >= dims[d]; index[d] -= dims[d]) ++index[d - 1];
      }
    }
    before = place;
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
    std::fill(y, y + count * ndim, int64_t{0});
    VisitAll(spec_.mask, [&]<class M>(Tag<M>) {
      // A bool that others made of bytes may be neither 0 nor 1.
      using Read = std::conditional_t<std::is_same_v<M, bool>, uint8_t, M>;
      ForHeld(n, static_cast<const Read*>(mask), [&](int64_t i, int64_t k) {
        if (k < count) y[k * ndim + ndim - 1] = i;
      });
    });
    if (ndim > 1) {
      ParallelFor(count, kBlock,
                  [&](int64_t begin, int64_t end) { Unravel(ndim, dims, begin, end, y); });
    }
    return OkStatus();
  }
  Status Take(Stream&, int64_t n, const void* mask, const void* x, int64_t count, void* y,
              void*) const override {
    std::memset(y, 0, static_cast<size_t>(count) * SizeOf(spec_.dtype));
    VisitWord(SizeOf(spec_.dtype), [&]<class T>(Tag<T>) {
      ForHeld(n, static_cast<const uint8_t*>(mask), [&](int64_t i, int64_t k) {
        if (k < count) static_cast<T*>(y)[k] = static_cast<const T*>(x)[i];
      });
    });
    return OkStatus();
  }
  Status Put(Stream&, int64_t n, const void* mask, const void* x, const void* src, int64_t count,
             void* y, void*) const override {
    std::memcpy(y, x, static_cast<size_t>(n) * SizeOf(spec_.dtype));
    VisitWord(SizeOf(spec_.dtype), [&]<class T>(Tag<T>) {
      ForHeld(n, static_cast<const uint8_t*>(mask), [&](int64_t i, int64_t k) {
        if (k < count) static_cast<T*>(y)[i] = static_cast<const T*>(src)[k];
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
