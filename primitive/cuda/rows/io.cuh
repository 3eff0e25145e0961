// SPDX-License-Identifier: Apache-2.0
//
// How the row kernels read and write: Load and Store functors, which a caller may replace by their
// own to fuse what comes before and after.
//
// A Load functor has
//   using Element = ...;                                  the type an element is kept in on chip
//   template <int N> Pack<Element, N> Load(int64_t row, int64_t col) const;
// a Store functor has
//   using Element = ...;                                  the type that is written
//   int Head(int64_t row) const;    columns before the row's first 16-byte boundary
//   template <int N> void Store(int64_t row, int64_t col, const Pack<C, N>& v) const;
// with C = ComputeType<Element>. Both are called with N = 1, and with N = kPackSize of the Store's
// Element at columns Head(row) + k * N; all of [col, col + N) is inside the row.
//
// A Load functor may offer faster ways for rows that have one; which it is is decided once a row,
// because a branch at every load would keep the loads from being in flight together:
//   bool IsAligned(int64_t row, int64_t head) const;   whether LoadAligned serves head + k * N
//   template <int N> Pack<Element, N> LoadAligned(int64_t row, int64_t col) const;
//   template <int N> Pack<Element, N> LoadInside(int64_t row, int64_t col) const;
//                                                      where [col - N, col + 2 * N) is in the row
// and where a pack's neighbour is at hand in another lane, so that each pack is loaded once:
//   WordFrame Frame(int64_t row, int64_t col) const;   the aligned words from col's on
// And both may say on the host how all rows lie, and give the functor for one of them, whose
// addresses are worked out:
//   RowAlignment Alignment() const;
//   Self At(int64_t row) const;        still called with that row
#pragma once

#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/rows/algorithm.h"

namespace oneflow_lite::cuda {

// How rows lie within 16 bytes: the first one, and each one relative to the one before.
struct RowAlignment {
  unsigned first, step;
  template <class T>
  static RowAlignment Of(const T* rows, int64_t row_stride) {
    return {static_cast<unsigned>(reinterpret_cast<uintptr_t>(rows) % kPackBytes),
            static_cast<unsigned>(static_cast<uint64_t>(row_stride) * sizeof(T) % kPackBytes)};
  }
  bool operator==(const RowAlignment& other) const {
    return first == other.first && step == other.step;
  }
};

// The aligned words of 16 bytes from the one on in which an element begins, `past` bytes into it.
struct WordFrame {
  const uint4* words;
  unsigned past;
  template <class T>
  OFL_DEVICE static WordFrame Of(const T* p) {
    const unsigned past = BytesPastBoundary(p);
    return {reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(p) - past), past};
  }
};

// Calls f(integral_constant) with the whole 4-byte words of `past`, bytes that are whole elements T
// and fewer than 16; not for 0 bytes.
template <class T, class F>
OFL_DEVICE void VisitWordShift(unsigned past, F&& f) {
  if (past == 0) return;
  if (sizeof(T) < 4 && past < 4) {
    f(std::integral_constant<int, 0>{});
  } else if (sizeof(T) <= 4 && past < 8) {
    f(std::integral_constant<int, 1>{});
  } else if (sizeof(T) > 4 || past < 12) {
    f(std::integral_constant<int, 2>{});
  } else {
    f(std::integral_constant<int, 3>{});
  }
}

// Rows of elements in memory, row_stride elements apart.
template <class T>
struct DirectLoad {
  using Element = T;
  const T* x;
  int64_t row_stride;

  RowAlignment Alignment() const { return RowAlignment::Of(x, row_stride); }
  OFL_DEVICE DirectLoad At(int64_t row) const { return {x + row * row_stride, 0}; }
  template <int N>
  OFL_DEVICE Pack<T, N> Load(int64_t row, int64_t col) const {
    return LoadPack<N>(x + row * row_stride + col);
  }
  OFL_DEVICE bool IsAligned(int64_t row, int64_t head) const {
    return IsAlignedFor<uint4>(x + row * row_stride + head);
  }
  template <int N>
  OFL_DEVICE Pack<T, N> LoadAligned(int64_t row, int64_t col) const {
    return LoadAlignedPack<N>(x + row * row_stride + col);
  }
  template <int N>
  OFL_DEVICE Pack<T, N> LoadInside(int64_t row, int64_t col) const {
    const T* from = x + row * row_stride + col;
    if constexpr (N * sizeof(T) == kPackBytes) {
      return LoadShiftedPack<N>(from);
    } else {  // a pack is 16 bytes of the output, which has elements of another size
      return LoadPack<N>(from);
    }
  }
  OFL_DEVICE WordFrame Frame(int64_t row, int64_t col) const {
    return WordFrame::Of(x + row * row_stride + col);
  }
};

template <class T>
struct DirectStore {
  using Element = T;
  T* y;
  int64_t row_stride;

  RowAlignment Alignment() const { return RowAlignment::Of(y, row_stride); }
  OFL_DEVICE DirectStore At(int64_t row) const { return {y + row * row_stride, 0}; }
  OFL_DEVICE int Head(int64_t row) const { return ElementsToBoundary(y + row * row_stride); }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Pack<ComputeType<T>, N>& v) const {
    StoreAlignedPack<N>(y + row * row_stride + col, ConvertPack<T>(v));
  }
};

namespace internal {

template <class F>
using AlignmentIn = decltype(&F::Alignment);
template <class F>
using RowAtIn = decltype(&F::At);
template <class L>
using IsAlignedIn = decltype(&L::IsAligned);
template <class L>
using FrameIn = decltype(&L::Frame);

}  // namespace internal

// Whether it is known that every row of `load` lies within 16 bytes as that of `store` does.
template <class L, class S>
bool IsAlignedEverywhere(const L& load, const S& store) {
  if constexpr (internal::kHas<internal::AlignmentIn, L> &&
                internal::kHas<internal::AlignmentIn, S>) {
    return sizeof(typename L::Element) == sizeof(typename S::Element) &&
           load.Alignment() == store.Alignment();
  }
  return false;
}
// Whether it is known that every row starts at a multiple of 16 bytes.
template <class F>
bool AllAligned(const F& functor) {
  if constexpr (internal::kHas<internal::AlignmentIn, F>)
    return functor.Alignment() == RowAlignment{0, 0};
  return false;
}
// The functor, or row algorithm, for one row alone, where it has such: its addresses are worked out
// once.
template <class F>
OFL_DEVICE F AtRow(const F& f, int64_t row) {
  if constexpr (internal::kHas<internal::RowAtIn, F>) {
    return f.At(row);
  } else {
    return f;
  }
}

// What is known of the columns that a Load reads. Operands of fused rows at any alignment may be
// asked for element by element, or in words of two (LoadOperand).
enum class Access { kAligned, kInside, kAny, kEach, kWords };

// RowOffers::kShifts where packs of kPack elements may be loaded as words of a frame and shifted
// into place.
template <class L, int kPack>
inline constexpr unsigned ShiftsOf =
    internal::kHas<internal::FrameIn, L>&& kPack == kPackSize<typename L::Element>
        ? RowOffers::kShifts
        : RowOffers::kNothing;

// Whether Access::kAligned may be used at the columns head + k * N of a row.
template <class L>
OFL_DEVICE bool IsAligned(const L& load, int64_t row, int64_t head) {
  if constexpr (internal::kHas<internal::IsAlignedIn, L>) return load.IsAligned(row, head);
  return false;
}
template <Access kAccess, int N, class L>
OFL_DEVICE Pack<typename L::Element, N> LoadFrom(const L& load, int64_t row, int64_t col) {
  if constexpr (kAccess == Access::kAligned && internal::kHas<internal::IsAlignedIn, L>) {
    return load.template LoadAligned<N>(row, col);
  } else if constexpr (kAccess == Access::kInside && internal::kHas<internal::IsAlignedIn, L>) {
    return load.template LoadInside<N>(row, col);
  } else {
    return load.template Load<N>(row, col);
  }
}

// N neighbouring columns of an algorithm's inputs, as they are loaded.
template <class Element, int kInputs, int N>
struct RawPacks {
  Pack<Element, N> input[kInputs];
};

// A row cut into whole aligned packs and the few columns before (head) and after them (tail). The
// columns outside packs are dealt out one by one: extra e < extras() lies at column Column(e).
// Index: int where rows are known to be short enough.
template <int N, class Index = int64_t>
struct RowSpan {
  int head, tail;
  Index packs;

  OFL_DEVICE RowSpan(int first_boundary, Index cols) {
    head = first_boundary < cols ? first_boundary : static_cast<int>(cols);
    packs = (cols - head) / N;
    tail = static_cast<int>(cols - head - packs * N);
  }
  OFL_DEVICE RowSpan() : head(0), tail(0), packs(0) {}  // no columns at all
  OFL_DEVICE int extras() const { return head + tail; }
  OFL_DEVICE Index Column(int e) const { return e < head ? e : packs * N + e; }
  OFL_DEVICE Index PackColumn(Index p) const { return head + p * N; }
};

// Pack p of a row, by the fastest way that serves it.
template <bool kAligned, class A, int N, class Index>
OFL_DEVICE auto LoadPackOf(const A& a, int64_t row, const RowSpan<N, Index>& span, int64_t p) {
  const int64_t col = span.PackColumn(p);
  if constexpr (kAligned) return a.template Load<Access::kAligned, N>(row, col);
  if (p > 0 && p + 1 < span.packs) return a.template Load<Access::kInside, N>(row, col);
  return a.template Load<Access::kAny, N>(row, col);
}

// The most columns outside packs, dealt to `members` threads.
template <int N>
__host__ __device__ constexpr int ExtrasPerThread(int members) {
  return (2 * (N - 1) + members - 1) / members;
}

}  // namespace oneflow_lite::cuda
