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

namespace oneflow_lite {
namespace cuda {

// Division of 0 <= n < 2^31 (2^63) by an invariant number: (umulhi(n, multiplier) + n) >> shift
// (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994).
template <class Index>
struct Divisor {
  Index value = 1;
  Index multiplier = 1;
  uint32_t shift = 0;

  __device__ __forceinline__ Index Quotient(Index n) const {
    if constexpr (sizeof(Index) == 4) {
      return (__umulhi(n, multiplier) + n) >> shift;
    } else {
      return (__umul64hi(n, multiplier) + n) >> shift;
    }
  }
  __device__ __forceinline__ Index Remainder(Index n) const { return n - Quotient(n) * value; }
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

  __device__ __forceinline__ int64_t Offset(int64_t row) const {
    const Index r = static_cast<Index>(row), rest = inner.Quotient(r);
    const Index outer = middle.Quotient(rest);
    return static_cast<int64_t>(outer) * strides[0] +
           static_cast<int64_t>(rest - outer * middle.value) * strides[1] +
           static_cast<int64_t>(r - rest * inner.value) * strides[2];
  }
  // For a pointer that Offset was added to.
  __device__ __forceinline__ RowBroadcast Begun() const { return {{}, {}, {0, 0, 0}, col_stride}; }
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

  __device__ __forceinline__ int64_t Visible(int64_t row) const {
    return first + static_cast<int64_t>(queries.Remainder(static_cast<Index>(row)) & counts);
  }
  // The same for this row alone.
  __device__ __forceinline__ CausalRows At(int64_t row) const { return {{}, Visible(row), 0}; }
};
template <class Index>
CausalRows<Index> MakeCausalRows(int64_t queries, int64_t cols, bool on = true) {
  return {MakeDivisor<Index>(queries < 1 ? 1 : queries), on ? cols - queries + 1 : cols,
          on ? ~Index{0} : Index{0}};
}

// How many of the N columns from `col` on lie before `visible`.
template <int N>
__device__ __forceinline__ int VisibleOf(int64_t visible, int64_t col) {
  const int64_t left = visible - col;
  return left <= 0 ? 0 : left >= N ? N : static_cast<int>(left);
}

// p's word where `wanted`, else `v` and no access. A predicate and not a branch, so that the
// compiler issues the loads of a row together.
__device__ __forceinline__ uint4 LoadWordIf(const uint4* p, bool wanted, uint4 v) {
  asm("{\n .reg .pred q;\n setp.ne.b32 q, %5, 0;\n"
      " @q ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
      : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
      : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(wanted)));
  return v;
}
__device__ __forceinline__ uint2 LoadWordIf(const uint2* p, bool wanted, uint2 v) {
  asm("{\n .reg .pred q;\n setp.ne.b32 q, %3, 0;\n @q ld.global.v2.u32 {%0, %1}, [%2];\n}"
      : "+r"(v.x), "+r"(v.y)
      : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(wanted)));
  return v;
}
__device__ __forceinline__ uint32_t LoadWordIf(const uint32_t* p, bool wanted, uint32_t v) {
  asm("{\n .reg .pred q;\n setp.ne.b32 q, %2, 0;\n @q ld.global.u32 %0, [%1];\n}"
      : "+r"(v)
      : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(wanted)));
  return v;
}
__device__ __forceinline__ uint16_t LoadWordIf(const uint16_t* p, bool wanted, uint16_t v) {
  asm("{\n .reg .pred q;\n setp.ne.b32 q, %2, 0;\n @q ld.global.u16 %0, [%1];\n}"
      : "+h"(v)
      : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(wanted)));
  return v;
}

template <int N, class T>
__device__ __forceinline__ Pack<T, N> FilledPack(T value) {
  Pack<T, N> pack;
#pragma unroll
  for (T& v : pack.v) v = value;
  return pack;
}

// N elements, from `col` on, of an operand's row that serves `row`; kAccess is what rows/io.cuh
// says of a Load's pack. kAligned promises a col_stride of 1.
template <Access kAccess, int N, class T, class Index>
__device__ __forceinline__ Pack<T, N> LoadBroadcast(const T* base, const RowBroadcast<Index>& where,
                                                    int64_t row, int64_t col) {
  const T* p = base + where.Offset(row);
  if constexpr (kAccess == Access::kAligned && N > 1) return LoadAlignedPack<N>(p + col);
  if (where.col_stride == 1) {
    if constexpr (kAccess == Access::kInside && N * sizeof(T) == kPackBytes) {
      return LoadShiftedPack<N>(p + col);
    }
    return LoadPack<N>(p + col);
  }
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = p[(col + i) * where.col_stride];
  return pack;
}

}  // namespace cuda
}  // namespace oneflow_lite
