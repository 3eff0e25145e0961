// SPDX-License-Identifier: Apache-2.0
//
// One elementwise launch as a kernel argument, and which elements a thread of it handles. C++17 for
// .cu files; nothing here needs a GPU, so tests walk through launches on the host.
//
// A unit is kPassPack elements along the innermost dim of the output, and begins where the output
// is aligned to 16 bytes. A whole unit moves in packs; a unit at a row's end goes element by
// element. Where a unit is 32 bytes, a warp's units take turns by 16: the first halves of all lie
// side by side, then the second ones, so that each access of the warp is one dense block.
//
//   flat: the output is dense, and units follow each other through all of it. One may cross from
//         one row of the inputs into the next.
//   rows: each row of the output is divided into units of its own.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/elementwise_tags.h"

namespace oneflow_lite {
namespace cuda {

// Elements of a unit by the compute type: 32 bytes of it, so that 16-bit elements are 16 bytes.
template <class C>
inline constexpr int kPassPack = 32 / static_cast<int>(sizeof(C));
inline constexpr int kPassThreads = 256;
inline constexpr int kMaxPassDims = 16;
// Units of a thread, all loaded before the first is computed.
template <int N>
inline constexpr int kPassDepth = N < 3 ? 2 : 1;
inline constexpr int kPassLanes = 32;  // threads whose units lie side by side

// How an input lies along a row.
enum class Form : uint8_t {
  kPacked,   // dense
  kStepped,  // every so many elements
  kNumber,   // one element for the whole row
  kValue,    // one number for everything, given by value
};

// Operands 0 .. N - 1 are inputs, N is the output. All strides are bytes.
template <int N>
struct Pass {
  const char* in[N] = {};
  char* out = nullptr;
  uint64_t value[N] = {};  // of kValue inputs: an element of the compute type
  int64_t numel = 0;
  int64_t length = 0;  // of a row, in elements
  int64_t step[N + 1] = {};
  // The dims that an index is divided into, innermost first. One of them stands for the row: its
  // strides are 0, and its size is the length (flat) or the number of units (rows).
  int64_t strides[N + 1][kMaxPassDims] = {};
  uint32_t dims[kMaxPassDims] = {};
  uint32_t multiplier[kMaxPassDims] = {};  // as Strided (launchers.h) has them
  uint32_t shift[kMaxPassDims] = {};
  int ndim = 0;
  int row_dim = 0;
  uint32_t units = 0;     // of the launch; pairs of units where adjacent
  int past = 0;           // elements from the last boundary to the first element of (every) row
  uint8_t align = 1;      // elements between boundaries of the output, a power of 2
  uint8_t size_log2 = 0;  // of the output's element
  bool flat = true;
  bool own_past = false;  // rows begin at different places between boundaries
  // A thread's units lie side by side, those of its neighbours in other rows.
  bool adjacent = false;
  bool dense_out = true;  // along the row
  bool halved = false;    // units of 32 bytes of the output may lie in two halves: Place::second
  // The first blocks, which move aligned accesses of 16 bytes between operands that are dense, of
  // one size of elements, and aligned; or numbers. 0 where the operands are not so.
  uint32_t plain_blocks = 0;
  Form form[N] = {};
  uint8_t bytes[N] = {};  // of an input's element
  DType dtype[N + 1] = {};
  DType held[N] = {};   // of what is loaded: dtype, or the compute type where loading converts
  DType round[N] = {};  // a 16-bit float to which elements are rounded first, else held
};

// Where a unit lies. Offsets are those of its row, in bytes.
template <int N>
struct Place {
  int64_t offset[N + 1];
  int64_t start;   // flat: of the first element in the pass. May be negative
  int64_t col;     // rows: of the first element in the row. May be negative
  int64_t second;  // of a whole unit: elements from its first half to its second
  bool whole;
};

OFL_HOST_DEVICE uint32_t HighWord(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __umulhi(a, b);
#else
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
#endif
}

// Divides an index into coordinates and sums up offsets; gives the coordinate along the row. Not
// unrolled over dims, which would make kernels longer and none faster (elementwise.cuh).
template <int N>
OFL_HOST_DEVICE uint32_t Divide(const Pass<N>& p, uint32_t index, int64_t (&offset)[N + 1]) {
  uint32_t along = 0;
  for (int m = 0; m <= N; ++m) offset[m] = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (int d = 0; d < p.ndim; ++d) {
    uint32_t coordinate = index;
    if (d + 1 < p.ndim) {
      const uint32_t rest = (HighWord(index, p.multiplier[d]) + index) >> p.shift[d];
      coordinate = index - rest * p.dims[d];
      index = rest;
    }
    if (d == p.row_dim) along = coordinate;
    for (int m = 0; m <= N; ++m) offset[m] += static_cast<int64_t>(coordinate) * p.strides[m][d];
  }
  return along;
}

// The unit in halves, where the units of its warp lie in one row. Precondition: flat.
template <int kPack, int N>
OFL_HOST_DEVICE bool FindHalves(const Pass<N>& p, uint32_t unit, Place<N>* place) {
  const uint32_t lane = unit % kPassLanes;
  const int64_t start = static_cast<int64_t>(unit - lane) * kPack - p.past;
  if (start < 0) return false;
  int64_t col = start;
  if (p.ndim > 1) {
    col = Divide(p, static_cast<uint32_t>(start), place->offset);
  } else {
    for (int m = 0; m <= N; ++m) place->offset[m] = 0;
  }
  if (col + kPassLanes * kPack > p.length) return false;
  place->start = start;
  place->col = col + lane * (kPack / 2);
  place->second = kPassLanes * (kPack / 2);
  place->whole = true;
  return true;
}

// The k-th unit of a thread. False where there is none.
template <int kPack, int N>
OFL_HOST_DEVICE bool FindPlace(const Pass<N>& p, uint32_t block, uint32_t thread, int k,
                               Place<N>* place) {
  const uint32_t unit = p.adjacent ? block * kPassThreads + thread
                                   : (block * kPassDepth<N> + k) * kPassThreads + thread;
  place->whole = false;
  place->second = kPack / 2;
  if (unit >= p.units) return false;
  if (p.halved && FindHalves<kPack>(p, unit, place)) return true;
  if (p.flat) {
    const int64_t start = static_cast<int64_t>(unit) * kPack - p.past;
    int64_t col = start;
    if (p.ndim > 1) {
      col = Divide(p, static_cast<uint32_t>(start < 0 ? 0 : start), place->offset);
    } else {
      for (int m = 0; m <= N; ++m) place->offset[m] = 0;
    }
    place->start = start, place->col = col;
    place->whole = start >= 0 && col + kPack <= p.length;
    return true;
  }
  int64_t in_row = Divide(p, unit, place->offset);
  if (p.adjacent) in_row = in_row * kPassDepth<N> + k;
  int past = p.past;
  if (p.own_past) {
    const auto address = reinterpret_cast<uintptr_t>(p.out + place->offset[N]);
    past = static_cast<int>(address >> p.size_log2) & (p.align - 1);
  }
  place->start = 0, place->col = in_row * kPack - past;
  place->whole = p.dense_out && place->col >= 0 && place->col + kPack <= p.length;
  return true;
}

// Calls f(operands' byte offsets) for each element of a unit that is not whole.
template <int kPack, int N, class F>
OFL_HOST_DEVICE void ForEachInUnit(const Pass<N>& p, Place<N> place, F f) {
  const bool crosses = p.flat && p.ndim > 1;
  int64_t col = place.col;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (int e = 0; e < kPack; ++e) {
    if (crosses) {
      const int64_t i = place.start + e;
      if (i < 0) continue;
      if (i >= p.numel) return;
      if (col == p.length) col = Divide(p, static_cast<uint32_t>(i), place.offset);
    } else if (col >= p.length) {
      return;
    }
    if (col >= 0) {
      int64_t at[N + 1];
      for (int m = 0; m <= N; ++m) at[m] = place.offset[m] + col * p.step[m];
      f(at);
    }
    ++col;
  }
}

// Blocks of the launch.
template <int N>
int64_t PassBlocks(const Pass<N>& pass) {
  const int64_t of_block = pass.adjacent ? kPassThreads : kPassThreads * kPassDepth<N>;
  return (pass.units + of_block - 1) / of_block;
}

}  // namespace cuda
}  // namespace oneflow_lite
