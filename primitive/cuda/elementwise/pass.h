// SPDX-License-Identifier: Apache-2.0
//
// One elementwise launch as a kernel argument, and which elements a thread of it handles. C++17 for
// .cu files; nothing here needs a GPU, so tests walk through launches on the host.
//
// A launch walks in one of these ways:
//
//   units: all operands are dense along the output's rows, or have one number for each row. A unit
//          is kPassPack elements that follow each other, and begins where all operands are aligned
//          to the accesses that move it. A thread takes one. Where a block's units are all in one
//          row and 32 bytes each, a warp's take turns by 16 bytes: the first halves of all lie side
//          by side, then the second ones, so that each access of the warp is one dense block.
//   lines: rows are long. A thread takes kPassPack elements of a row, each side by side with those
//          of the block's other threads.
//   tiles: the output is dense along its rows, and an input across them. A block reads the input's
//          tile along the input's dense dim, and its threads exchange elements in shared memory.
//   each:  everything else. A thread takes one element after the other, and divides its index.
//   plain rows, plain tiles: of one 16-bit float and nothing else (plain_rows.h).
//
// Units have a kernel of their own, which needs fewer registers; dense units of one 16-bit float
// (Pass::plain) have another, of half as many instructions, and so have plain rows.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/functions/tags.h"

namespace oneflow_lite {
namespace cuda {

// Elements of a unit by the compute type: 32 bytes of it, so that 16-bit elements are 16 bytes.
template <class C>
inline constexpr int kPassPack = 32 / static_cast<int>(sizeof(C));
inline constexpr int kPassThreads = 256;
inline constexpr int kMaxPassDims = 16;
inline constexpr int kPassLanes = 32;  // threads of a warp, and rows of a tile
template <int kPack>
inline constexpr int kTileCols = kPassThreads* kPack / kPassLanes;

enum class Walk : uint32_t { kUnits, kLines, kTiles, kEach, kPlainRows, kPlainTiles };

// How an input lies along a row.
enum class Form : uint32_t {
  kPacked,   // dense
  kStepped,  // every so many elements
  kNumber,   // one element for the whole row
  kValue,    // one number for everything, given by value
};

// Operands 0 .. N - 1 are inputs, N is the output. All strides are bytes. No operand reaches 2^32
// bytes from its first element, so that offsets have 32 bits.
template <int N>
struct Pass {
  const char* in[N] = {};  // units: `past` elements before the first one, as out
  char* out = nullptr;
  uint64_t value[N] = {};  // of kValue inputs: an element of the compute type
  int numel = 0;
  int length = 0;  // of a row, in elements
  int rows = 0;    // tiles and plain rows: of a matrix, in elements
  uint32_t step[N + 1] = {};
  uint32_t across[N + 1] = {};  // the same: from one row to the next
  // The dims that an index is divided into, innermost first. The index is that of a unit; of a
  // block, whose first dim is the blocks of a row, or the tiles along a row and then across rows;
  // or of an element.
  uint32_t strides[N + 1][kMaxPassDims] = {};
  uint32_t dims[kMaxPassDims] = {};
  uint32_t multiplier[kMaxPassDims] = {};  // as Strided (strided/strided.h) has them
  uint32_t shift[kMaxPassDims] = {};
  int ndim = 0;
  uint32_t blocks = 0;  // of the launch
  Walk walk = Walk::kEach;
  // Of units:
  uint32_t straight = 0;    // all units of a block are in one row
  uint32_t units = 0;       // of a row where straight, else of the launch
  uint32_t whole_from = 0;  // of a row, the first whole one, and the one behind the last
  uint32_t whole_to = 0;
  uint32_t halved = 0;  // they are 32 bytes of the output, and straight
  // Blocks whose units are whole and follow each other in all operands, which are dense.
  uint32_t dense_from = 0, dense_to = 0;
  int past = 0;  // elements from the last boundary to the begin of each row
  // Of inputs:
  uint32_t crossed = 0;  // bit i: tiles read input i along columns
  Form form[N] = {};
  uint32_t bytes[N] = {};   // of an element
  uint32_t packed[N] = {};  // bytes of a unit of an input that is packed, or 0
  DType dtype[N + 1] = {};
  uint32_t held[N] = {};   // dtype of what is loaded: of memory, or of the compute type where
                           // loading converts
  uint32_t round[N] = {};  // a 16-bit float to which elements are rounded first, else held
  uint32_t stored = 0;     // dtype of the output
  uint32_t narrow = 0;     // inputs are rounded to 16 bits, and results stored in them; or the
                           // common dtype is an integer of up to 16 bits
  // A 16-bit float, or 0: all inputs are elements of it or kValue, and results elements of it or
  // bool. Units follow each other from a boundary on.
  uint32_t plain = 0;
  // Whole units are float32 in memory, of all inputs and of the output, and computed as they are.
  uint32_t single = 0;
  // Of plain rows: rows of a thread, and whether all packs are whole and at boundaries.
  uint32_t taken = 1, whole = 0;
};

// The pass with its inputs exchanged: everything that it has for each of them.
inline Pass<2> WithInputsExchanged(const Pass<2>& given) {
  Pass<2> p = given;
  for (int i = 0; i < 2; ++i) {
    const int from = 1 - i;
    p.in[i] = given.in[from], p.value[i] = given.value[from];
    p.step[i] = given.step[from], p.across[i] = given.across[from];
    for (int d = 0; d < kMaxPassDims; ++d) p.strides[i][d] = given.strides[from][d];
    p.form[i] = given.form[from], p.bytes[i] = given.bytes[from], p.packed[i] = given.packed[from];
    p.dtype[i] = given.dtype[from], p.held[i] = given.held[from], p.round[i] = given.round[from];
  }
  p.crossed = (given.crossed & 1) << 1 | given.crossed >> 1;
  return p;
}

OFL_HOST_DEVICE uint32_t HighWord(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __umulhi(a, b);
#else
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
#endif
}

// An index among a pass's dims: the operands' offsets, and coordinates of the first two dims.
template <int N>
struct Position {
  uint32_t offset[N + 1];
  uint32_t first, second;
};

// Most passes have two dims at most, and need no loop. It is not unrolled, which would make kernels
// longer and none faster (strided/elements.cuh).
template <int N>
OFL_HOST_DEVICE Position<N> Divide(const Pass<N>& p, uint32_t index) {
  Position<N> at;
  at.first = index, at.second = 0;
  if (p.ndim > 1) {
    at.second = (HighWord(index, p.multiplier[0]) + index) >> p.shift[0];
    at.first = index - at.second * p.dims[0];
  }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int m = 0; m <= N; ++m) at.offset[m] = at.first * p.strides[m][0];
  index = at.second;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (int d = 1; d < p.ndim; ++d) {
    uint32_t coordinate = index;
    if (d + 1 < p.ndim) {
      const uint32_t rest = (HighWord(index, p.multiplier[d]) + index) >> p.shift[d];
      coordinate = index - rest * p.dims[d];
      index = rest;
      if (d == 1) at.second = coordinate;
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int m = 0; m <= N; ++m) at.offset[m] += coordinate * p.strides[m][d];
  }
  return at;
}

// A unit. Its first half begins at the offset, and the second one `second` elements behind it:
// right behind it, or behind the first halves of its warp.
template <int N>
struct UnitPlace {
  uint32_t offset[N + 1];
  uint32_t first;  // its number in the row
  uint32_t second;
  bool whole;
};
// The column of element e of a unit that is not whole, or -1 where it is none of the row's.
template <int kPack, int N>
OFL_HOST_DEVICE int ColumnInUnit(const Pass<N>& p, const UnitPlace<N>& place, int e) {
  const int col = static_cast<int>(place.first) * kPack - p.past + e;
  return col < p.length ? col : -1;
}

// The elements from thread 0's unit to that of a thread of the same block, and place->second.
template <int kPack, int N>
OFL_HOST_DEVICE uint32_t ElementsToUnit(uint32_t thread, bool apart, UnitPlace<N>* place) {
  const uint32_t lane = thread % kPassLanes;
  place->second = (apart ? kPassLanes : 1) * (kPack / 2);
  return thread * kPack - (apart ? lane * (kPack / 2) : 0);
}

// The unit of a thread. False where there is none.
template <int kPack, int N>
OFL_HOST_DEVICE bool FindUnit(const Pass<N>& p, uint32_t block, uint32_t thread,
                              UnitPlace<N>* place) {
  if (p.dense_from <= block && block < p.dense_to) {
    const uint32_t before =
        block * (kPassThreads * kPack) + ElementsToUnit<kPack>(thread, p.halved != 0, place);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int m = 0; m <= N; ++m) place->offset[m] = before * p.step[m];
    place->first = block * kPassThreads + thread;
    place->whole = true;
    return true;
  }
  const Position<N> at = Divide(p, p.straight ? block : block * kPassThreads + thread);
  place->first = at.first;
  uint32_t before = 0;
  if (p.straight) {
    const uint32_t begin = at.first * kPassThreads;
    place->first = begin + thread;
    if (place->first >= p.units) return false;
    const bool full = begin >= p.whole_from && begin + kPassThreads <= p.whole_to;
    before = ElementsToUnit<kPack>(thread, p.halved && full, place);
  } else {
    if (block * kPassThreads + thread >= p.units) return false;
    place->second = kPack / 2;
  }
  place->whole = place->first >= p.whole_from && place->first < p.whole_to;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int m = 0; m <= N; ++m) place->offset[m] = at.offset[m] + before * p.step[m];
  return true;
}

// The elements of one operand that a thread of the walks `lines` and `tiles` takes: so many, `hop`
// bytes apart.
struct Line {
  uint32_t offset, hop;
  int count;
};

// Where a thread's first element is in a tile. A thread goes on along a column or, `crossed`, along
// a row, by TileHop.
template <int kPack>
OFL_HOST_DEVICE void InTile(uint32_t thread, bool crossed, uint32_t* row, uint32_t* col) {
  *row = crossed ? thread % kPassLanes : thread / kTileCols<kPack>;
  *col = crossed ? thread / kPassLanes : thread % kTileCols<kPack>;
}
template <int kPack>
OFL_HOST_DEVICE constexpr uint32_t TileHop(bool crossed) {
  return kPassThreads / (crossed ? kPassLanes : kTileCols<kPack>);
}

// How many of kPack numbers first, first + hop, ... are below the limit.
template <int kPack>
OFL_HOST_DEVICE int CountBelow(int limit, uint32_t first, int hop) {
  const int left = limit - static_cast<int>(first);
  if (left >= kPack * hop) return kPack;
  return left <= 0 ? 0 : (left + hop - 1) / hop;
}

// at: Divide(p, block).
template <int kPack, int N>
OFL_HOST_DEVICE Line FindLine(const Pass<N>& p, const Position<N>& at, uint32_t thread, int m,
                              bool crossed) {
  Line line;
  if (p.walk == Walk::kLines) {
    const uint32_t col = at.first * (kPassThreads * kPack) + thread;
    line.offset = at.offset[m] + thread * p.step[m];
    line.hop = kPassThreads * p.step[m];
    line.count = CountBelow<kPack>(p.length, col, kPassThreads);
    return line;
  }
  uint32_t row, col;
  InTile<kPack>(thread, crossed, &row, &col);
  line.offset = at.offset[m] + row * p.across[m] + col * p.step[m];
  const auto hop = static_cast<int>(TileHop<kPack>(crossed));
  line.hop = hop * (crossed ? p.step[m] : p.across[m]);
  const uint32_t first_row = at.second * kPassLanes + row;
  const uint32_t first_col = at.first * kTileCols<kPack> + col;
  line.count = crossed ? CountBelow<kPack>(p.length, first_col, hop)
                       : CountBelow<kPack>(p.rows, first_row, hop);
  const bool none = crossed ? first_row >= static_cast<uint32_t>(p.rows)
                            : first_col >= static_cast<uint32_t>(p.length);
  if (none) line.count = 0;
  return line;
}

}  // namespace cuda
}  // namespace oneflow_lite
