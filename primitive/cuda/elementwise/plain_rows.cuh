// SPDX-License-Identifier: Apache-2.0
//
// What a thread does of plain passes of rows and of tiles (plain_rows.h).
#pragma once

#include "primitive/cuda/elementwise/plain.cuh"
#include "primitive/cuda/elementwise/plain_rows.h"
#include "primitive/cuda/strided/wanted.cuh"

namespace oneflow_lite {
namespace cuda {

using PlainWords = uint32_t[kPlainPack / 2];  // a pack as memory has it

// The number at p, in both halves of a word.
OFL_HOST_DEVICE uint32_t LoadPlainNumber(const char* p) {
  uint32_t bits;
  LoadAccess<2>(p, &bits);
  return bits | bits << 16;
}
OFL_HOST_DEVICE bool IsUpper(uint32_t plain) {
  return plain == static_cast<uint32_t>(DType::kBFloat16);
}

// The packs of all inputs at `place`, of which not more than the row's elements are wanted.
template <bool kWhole, int N>
OFL_HOST_DEVICE void LoadPlainPacks(const Pass<N>& pass, const PlainPlace<N>& place,
                                    PlainWords (&raw)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const char* p = place.in[i];
    if (pass.form[i] == Form::kPacked) {
      if constexpr (kWhole) {
        LoadAccess<16>(p, raw[i]);
      } else {
        const auto pack = LoadWanted<kPlainPack>(reinterpret_cast<const uint16_t*>(p), place.From(),
                                                 place.To(pass.length));
        memcpy(raw[i], &pack, sizeof(raw[i]));
      }
    } else if (pass.form[i] == Form::kNumber) {
      const uint32_t word = LoadPlainNumber(p);
#pragma unroll
      for (uint32_t& w : raw[i]) w = word;
    }
  }
}

// The function of a pack of each input, in the elements of the output's pack that are the row's.
template <int N, class Op>
OFL_HOST_DEVICE void ComputePlainPack(const Pass<N>& pass, const Op& op, const PlainWords (&raw)[N],
                                      char* out, int from, int to) {
  const bool upper = IsUpper(pass.plain);
  float x[N][kPlainPack];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (pass.form[i] != Form::kValue) {
      WidenPlain(upper, raw[i], x[i]);
    } else {
      FillPlain(pass.value[i], x[i]);
    }
  }
  Computed<Op, float, N> y[kPlainPack];
  ComputeForm<kHasNarrow<Op, float>>(op, x, y);
  StorePlain(upper, out, from, to, y);
}

// A whole pack in several rows. Inputs that are dense are the same in all of them.
template <int N, class Op>
OFL_HOST_DEVICE void RunRowsTogether(const Pass<N>& pass, const Op& op, const Position<N>& at) {
  const bool upper = IsUpper(pass.plain);
  float x[N][kPlainPack];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (pass.form[i] == Form::kValue) FillPlain(pass.value[i], x[i]);
    if (pass.form[i] != Form::kPacked) continue;
    PlainWords raw;
    LoadAccess<16>(pass.in[i] + at.offset[i], raw);
    WidenPlain(upper, raw, x[i]);
  }
  const uint32_t below = static_cast<uint32_t>(pass.rows) - at.second * pass.taken;
  const uint32_t rows = below < pass.taken ? below : pass.taken;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (uint32_t r = 0; r < rows; ++r) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (pass.form[i] != Form::kNumber) continue;
      const uint32_t word[] = {LoadPlainNumber(pass.in[i] + (at.offset[i] + r * pass.across[i]))};
      float number[2];
      WidenPlain(upper, word, number);
#pragma unroll
      for (float& v : x[i]) v = number[0];
    }
    Computed<Op, float, N> y[kPlainPack];
    ComputeForm<kHasNarrow<Op, float>>(op, x, y);
    StorePlain(upper, pass.out + (at.offset[N] + r * pass.across[N]), 0, kPlainPack, y);
  }
}

// What one thread does of rows.
template <int N, class Op>
OFL_HOST_DEVICE void RunPlainRows(const Pass<N>& pass, const Op& op, uint32_t block,
                                  uint32_t thread) {
  const uint32_t index = block * kPlainThreads + thread;
  if (index >= pass.units) return;
  const Position<N> at = Divide(pass, index);
  if (pass.taken > 1) return RunRowsTogether(pass, op, at);
  PlainPlace<N> place;
  PlainWords raw[N];
  if (pass.whole != 0) {
#pragma unroll
    for (int i = 0; i < N; ++i) place.in[i] = pass.in[i] + at.offset[i];
    place.out = pass.out + at.offset[N], place.column = 0;
    LoadPlainPacks<true>(pass, place, raw);
  } else {
    if (!FindPlainPack(pass, at, &place)) return;
    LoadPlainPacks<false>(pass, place, raw);
  }
  ComputePlainPack(pass, op, raw, place.out, place.From(), place.To(pass.length));
}

#ifdef __CUDACC__
// The threads of a block exchange what they have read along columns for packs in two rows.
__device__ __forceinline__ void ExchangePlain(int thread, PlainWords& first, PlainWords& second) {
  using Tile = PlainTile;
  extern __shared__ uint4 plain_tile[];  // kPlainTileBytes
  auto* tile = reinterpret_cast<uint16_t*>(plain_tile);
  const auto put = [&](int col, const PlainWords& raw) {
    *reinterpret_cast<uint4*>(tile + Tile::At(Tile::CrossedRow(thread), col)) =
        make_uint4(raw[0], raw[1], raw[2], raw[3]);
  };
  __syncthreads();
  put(Tile::CrossedCol(thread), first);
  put(Tile::CrossedCol(thread) + Tile::kNextCol, second);
  __syncthreads();
  const uint16_t* from = tile + Tile::At(Tile::Row(thread), Tile::Col(thread));
#pragma unroll
  for (int k = 0; k < kPlainPack; k += 2) {  // of two columns both rows
    const uint32_t left = *reinterpret_cast<const uint32_t*>(from + k * Tile::kRows);
    const uint32_t right = *reinterpret_cast<const uint32_t*>(from + (k + 1) * Tile::kRows);
    first[k / 2] = __byte_perm(left, right, 0x5410);
    second[k / 2] = __byte_perm(left, right, 0x7632);
  }
}
// A thread's packs of a tile, in two rows, and where results of the first one go. Gives how many of
// the rows are there.
template <int N>
__device__ __forceinline__ int ReadPlainTile(const Pass<N>& pass, uint32_t block, int thread,
                                             PlainWords (&first)[N], PlainWords (&second)[N],
                                             char** out) {
  using Tile = PlainTile;
  const Position<N> at = Divide(pass, block);
  const int rows = pass.rows - static_cast<int>(at.second) * Tile::kRows;  // or more than a tile's
  const int cols = pass.length - static_cast<int>(at.first) * Tile::kCols;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (pass.form[i] == Form::kValue) continue;
    const bool crossed = pass.crossed >> i & 1;
    const int row = crossed ? Tile::CrossedRow(thread) : Tile::Row(thread);
    const int col = crossed ? Tile::CrossedCol(thread) : Tile::Col(thread);
    const int down = crossed ? 0 : 1, along = crossed ? Tile::kNextCol : 0;
    const char* p = pass.in[i] + (at.offset[i] + row * pass.across[i] + col * pass.step[i]);
    if (row < rows && col < cols) LoadAccess<16>(p, first[i]);
    p += down * pass.across[i] + along * pass.step[i];
    if (row + down < rows && col + along < cols) LoadAccess<16>(p, second[i]);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (pass.crossed >> i & 1) ExchangePlain(thread, first[i], second[i]);
  }
  const int row = Tile::Row(thread), col = Tile::Col(thread);
  *out = pass.out + (at.offset[N] + row * pass.across[N] + col * pass.step[N]);
  return col < cols ? min(rows - row, 2) : 0;
}

// What one thread does of tiles.
template <int N, class Op>
__device__ __forceinline__ void RunPlainTiles(const Pass<N>& pass, const Op& op, uint32_t block,
                                              uint32_t thread) {
  PlainWords first[N], second[N];
  char* out;
  const int rows = ReadPlainTile(pass, block, static_cast<int>(thread), first, second, &out);
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    ComputePlainPack(pass, op, first, out, 0, kPlainPack);
    memcpy(first, second, sizeof(first));
    out += pass.across[N];
  }
}
#endif

}  // namespace cuda
}  // namespace oneflow_lite
