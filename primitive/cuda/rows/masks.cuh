// SPDX-License-Identifier: Apache-2.0
//
// Geometry of what is fused with a row op: operands that broadcast over batch and heads, and the
// causal triangle. Everything is arithmetic on kernel arguments, without branches or memory, so
// that the loads of a row are still issued together. Index is uint32_t where there are fewer than
// 2^31 rows, which is cheaper, else uint64_t.
//
//   // A mask [batch, 1, 1, keys] against rows of [batch, heads, queries, keys].
//   const int64_t dims[] = {batch, heads, queries}, strides[] = {keys, 0, 0};
//   auto where = MakeRowBroadcast<uint32_t>(dims, strides, /*col_stride=*/1);
#pragma once

#include "primitive/cuda/rows/io.cuh"

namespace oneflow_lite::cuda {

// Division of 0 <= n < 2^31 (2^63) by an invariant number: (umulhi(n, multiplier) + n) >> shift
// (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994).
template <class Index>
struct Divisor {
  Index value = 1;
  Index multiplier = 1;
  uint32_t shift = 0;

  OFL_DEVICE Index Quotient(Index n) const {
    if constexpr (sizeof(Index) == 4) {
      return (__umulhi(n, multiplier) + n) >> shift;
    } else {
      return (__umul64hi(n, multiplier) + n) >> shift;
    }
  }
  OFL_DEVICE Index Remainder(Index n) const { return n - Quotient(n) * value; }
};

// Precondition: 1 <= value < 2^31 (2^63).
template <class Index>
Divisor<Index> MakeDivisor(int64_t value) {
  Divisor<Index> d;
  d.value = static_cast<Index>(value);
  while ((Index{1} << d.shift) < d.value) ++d.shift;
  const auto excess = static_cast<unsigned __int128>((Index{1} << d.shift) - d.value);
  d.multiplier = static_cast<Index>((excess << (8 * sizeof(Index))) / d.value + 1);
  return d;
}

// Where an operand's row starts, in elements, for rows numbered through three dims; a stride of 0
// broadcasts.
template <class Index>
struct RowBroadcast {
  Divisor<Index> inner, middle;
  int64_t strides[3] = {0, 0, 0};  // outermost first
  int64_t col_stride = 1;

  OFL_DEVICE int64_t Offset(int64_t row) const {
    const Index r = static_cast<Index>(row), rest = inner.Quotient(r);
    const Index outer = middle.Quotient(rest);
    return static_cast<int64_t>(outer) * strides[0] +
           static_cast<int64_t>(rest - outer * middle.value) * strides[1] +
           static_cast<int64_t>(r - rest * inner.value) * strides[2];
  }
  // For a pointer that Offset was added to.
  OFL_DEVICE RowBroadcast Begun() const { return {{}, {}, {0, 0, 0}, col_stride}; }
};
template <class Index>
RowBroadcast<Index> MakeRowBroadcast(const int64_t (&dims)[3], const int64_t (&strides)[3],
                                     int64_t col_stride) {
  return {MakeDivisor<Index>(dims[2]),
          MakeDivisor<Index>(dims[1]),
          {strides[0], strides[1], strides[2]},
          col_stride};
}

// How many columns a row sees where query q of each matrix sees the first cols - queries + q + 1;
// all of them without `on`. The number may exceed cols or be negative.
template <class Index>
struct CausalRows {
  Divisor<Index> queries;
  int64_t first = 0;  // of query 0
  Index counts = 0;   // all bits where the query counts

  OFL_DEVICE int64_t Visible(int64_t row) const {
    return first + static_cast<int64_t>(queries.Remainder(static_cast<Index>(row)) & counts);
  }
  // The same for this row alone.
  OFL_DEVICE CausalRows At(int64_t row) const { return {{}, Visible(row), 0}; }
};
template <class Index>
CausalRows<Index> MakeCausalRows(int64_t queries, int64_t cols, bool on = true) {
  return {MakeDivisor<Index>(queries < 1 ? 1 : queries), on ? cols - queries + 1 : cols,
          on ? ~Index{0} : Index{0}};
}

// How many of the N columns from `col` on lie before `visible`.
template <int N>
OFL_DEVICE int VisibleOf(int64_t visible, int64_t col) {
  const int64_t left = visible - col;
  return left <= 0 ? 0 : left >= N ? N : static_cast<int>(left);
}

// p's word where `wanted`, else `v` and no access. A predicate and not a branch, so that the
// compiler issues the loads of a row together.
OFL_DEVICE uint2 LoadWordIf(const uint2* p, bool wanted, uint2 v) {
  asm("{\n .reg .pred q;\n setp.ne.b32 q, %3, 0;\n @q ld.global.v2.u32 {%0, %1}, [%2];\n}"
      : "+r"(v.x), "+r"(v.y)
      : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(wanted)));
  return v;
}
OFL_DEVICE uint32_t LoadWordIf(const uint32_t* p, bool wanted, uint32_t v) {
  asm("{\n .reg .pred q;\n setp.ne.b32 q, %2, 0;\n @q ld.global.u32 %0, [%1];\n}"
      : "+r"(v)
      : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(wanted)));
  return v;
}
OFL_DEVICE uint16_t LoadWordIf(const uint16_t* p, bool wanted, uint16_t v) {
  asm("{\n .reg .pred q;\n setp.ne.b32 q, %2, 0;\n @q ld.global.u16 %0, [%1];\n}"
      : "+h"(v)
      : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(wanted)));
  return v;
}

// N elements, from `col` on, of an operand's row that serves `row`.
template <int N, class T, class Index>
OFL_DEVICE Pack<T, N> LoadBroadcast(const T* base, const RowBroadcast<Index>& where, int64_t row,
                                    int64_t col) {
  const T* p = base + where.Offset(row);
  if (where.col_stride == 1) return LoadPack<N>(p + col);
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = p[(col + i) * where.col_stride];
  return pack;
}

// Which of N neighbouring columns a boolean mask, or the causal triangle, keeps: the bytes of the
// mask as they lie in memory, applied to whole words of elements.
//
//   Keep<8> keep = LoadKeep<Access::kAligned, 8>(mask, col, 1, true);
//   if (left < 8) keep.HideFrom(left);
//   pack = Kept(pack, keep, fill);

// A byte per column: 1 keeps it, 0 does not.
template <int N>
struct Keep {
  static constexpr int kWords = (N + 3) / 4;
  uint32_t words[kWords];

  OFL_DEVICE static Keep All() {
    Keep keep;
#pragma unroll
    for (uint32_t& word : keep.words) word = 0x01010101u;
    return keep;
  }
  // Hides the columns from `left` on, which may be negative.
  template <class Column>
  OFL_DEVICE void HideFrom(Column left) {
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const int stay = static_cast<int>(left < 0 ? Column(0) : left) - 4 * w;
      words[w] &= stay <= 0 ? 0u : stay >= 4 ? ~0u : (1u << 8 * stay) - 1;
    }
  }
  OFL_DEVICE bool operator[](int i) const { return words[i / 4] >> 8 * (i % 4) & 1; }
};

namespace internal {

// Byte i of the result is byte s of `word`, with s nibble i of the selector, or where s > 7 eight
// times the sign of byte s - 8.
template <uint32_t kSelector>
OFL_DEVICE uint32_t PickBytes(uint32_t word) {
  uint32_t picked;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(picked) : "r"(word), "n"(kSelector));
  return picked;
}
OFL_DEVICE uint32_t Choose(uint32_t where, uint32_t a, uint32_t b) {
  return (a & where) | (b & ~where);
}

}  // namespace internal

// The N bytes of a mask from p on, 2, 4 or 8, at any alignment, where the N before and after may be
// read too: two aligned words, shifted into place once those of other packs are on their way as
// well.
template <int N>
struct KeepWords {
  using Word = typename WordOf<N>::type;
  Word low, high;
  unsigned past;  // bytes of low before p

  template <bool kAligned>
  OFL_DEVICE void Load(const bool* p, bool wanted) {
    past = kAligned ? 0 : static_cast<unsigned>(reinterpret_cast<uintptr_t>(p)) & (N - 1);
    const auto* words = reinterpret_cast<const Word*>(p - past);
    low = LoadWordIf(words, wanted, Word{});
    high = LoadWordIf(words + 1, wanted && past != 0, Word{});
  }
  OFL_DEVICE Keep<N> Get() const {
    uint32_t w[4] = {};
    memcpy(w, &low, N);
    memcpy(reinterpret_cast<char*>(w) + N, &high, N);
    const int first = N == 8 && past >= 4;
    Keep<N> keep;
#pragma unroll
    for (int i = 0; i < Keep<N>::kWords; ++i) {
      keep.words[i] =
          __funnelshift_r(first ? w[i + 1] : w[i], first ? w[i + 2] : w[i + 1], 8 * past);
    }
    return keep;
  }
};

// The bytes of a mask's row from column `col` on, `stride` apart; all columns where not wanted,
// where nothing is read. kAccess is what rows/io.cuh says of a Load's pack, with a boundary of N
// bytes.
template <Access kAccess, int N>
OFL_DEVICE Keep<N> LoadKeep(const bool* mask, int64_t col, int64_t stride, bool wanted) {
  if (!wanted) return Keep<N>::All();
  constexpr bool kAligned = kAccess == Access::kAligned;
  if constexpr ((kAligned || kAccess == Access::kInside) && N > 1) {
    if (kAligned || stride == 1) {
      KeepWords<N> words;
      words.template Load<kAligned>(mask + col, true);
      return words.Get();
    }
  }
  Keep<N> keep;
  const bool* p = mask + col * stride;
  // One by one, and not unrolled: this is code for the ends of rows and for strided masks.
  uint64_t bytes = 0;
#pragma unroll 1
  for (int i = N - 1; i >= 0; --i) bytes = bytes << 8 | static_cast<uint64_t>(p[i * stride]);
#pragma unroll
  for (int w = 0; w < Keep<N>::kWords; ++w) keep.words[w] = static_cast<uint32_t>(bytes >> 32 * w);
  return keep;
}

// x where it is kept, else `fill`.
template <int N, class T>
OFL_DEVICE Pack<T, N> Kept(Pack<T, N> x, const Keep<N>& keep, T fill) {
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
    uint32_t w[N / 2], f;
    const Pack<T, 2> fills = {{fill, fill}};
    memcpy(w, &x, sizeof(x));
    memcpy(&f, &fills, sizeof(f));
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const uint32_t signs = keep.words[i / 2] << 7;
      w[i] = internal::Choose(
          i % 2 ? internal::PickBytes<0xbbaa>(signs) : internal::PickBytes<0x9988>(signs), w[i], f);
    }
    memcpy(&x, w, sizeof(x));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) x.v[i] = keep[i] ? x.v[i] : fill;
  }
  return x;
}

// `fill` from column `left` on. On a stowed pack, because callers branch around this: elements that
// come from two branches would take a register each.
template <int N, class T, class Column>
OFL_DEVICE void HideFrom(StowedPack<T, N>& x, Column left, T fill) {
  auto keep = Keep<N>::All();
  keep.HideFrom(left);
  x = StowedPack<T, N>::Of(Kept(x.Get(), keep, fill));
}

}  // namespace oneflow_lite::cuda
