// SPDX-License-Identifier: Apache-2.0
//
// The tiles of the norms' backward in two passes (norm_backward_passes.cuh): some rows by some
// columns, a block each. A block's rows start alike between multiples of 16 bytes, so that its
// lanes have whole packs of the same columns in all of them, and what these gather stays in
// registers.
#pragma once

#include "primitive/cuda/norm_math.cuh"
#include "primitive/cuda/norm_passes_policy.h"

namespace oneflow_lite {
namespace cuda {

// T has 16 bits: wider elements would need a row's centre corrected as well (norm_math.cuh), and
// gain nothing. dx lies like dy between multiples of 16 bytes, and is neither x nor dy.
template <class T, bool kCentre>
struct NormPassesGrid {
  using C = ComputeType<T>;
  static constexpr int kKinds = kCentre ? 2 : 1;  // of gradients per column, and sums per row
  using Sums = SumOf<C, kKinds>;
  int period;           // rows after which rows start alike
  NormPassTiles tiles;  // of this pass
  int stripes;          // of the first pass
  int units;            // parts of the gradients of weight and bias
  int tile_blocks;      // of the second pass; its other blocks add up parts
  C share;              // 1 / cols
  Sums* sums;           // [rows][stripes]
  C* parts;             // [units][kinds] rows of Pitch(cols): columns from the first word on
  __host__ __device__ static constexpr int64_t Pitch(int64_t cols) {
    return (cols / kPackSize<T> + 2) * kPackSize<T>;
  }
};

// A row's sums, or a stripe's part of them, in one access where they are two numbers.
template <class Sums>
__device__ __forceinline__ Sums LoadSums(const Sums* from) {
  if constexpr (sizeof(Sums) == 8) {
    const uint2 word = *reinterpret_cast<const uint2*>(from);
    Sums sums;
    memcpy(&sums, &word, sizeof(word));
    return sums;
  } else {
    return *from;
  }
}
template <class Sums>
__device__ __forceinline__ void StoreSums(Sums* to, const Sums& sums) {
  if constexpr (sizeof(Sums) == 8) {
    uint2 word;
    memcpy(&word, &sums, sizeof(word));
    *reinterpret_cast<uint2*>(to) = word;
  } else {
    *to = sums;
  }
}

// Where a thread's packs are, and how they are loaded.
template <class T, int kPacks, bool kCentre>
class NormTile {
 protected:
  using C = ComputeType<T>;
  using Grid = NormPassesGrid<T, kCentre>;
  using Sums = typename Grid::Sums;
  static constexpr int N = kPackSize<T>;
  static constexpr int kKinds = Grid::kKinds;
  using Values = Pack<C, N>;
  struct Row {
    StowedPack<T, N> x[kPacks], dy[kPacks];
  };

  __device__ __forceinline__ NormTile(const NormBackward<T>& a, const Grid& grid, int block)
      : a_(a), grid_(grid) {
    const NormPassTiles& tiles = grid.tiles;
    stripe_ = block % tiles.stripes;
    unit_ = block / tiles.stripes;
    kind_ = unit_ % grid.period;
    const int alike = (static_cast<int>(a.rows) - kind_ + grid.period - 1) / grid.period;
    begin_ = unit_ / grid.period * tiles.rows;
    count_ = alike - begin_ < tiles.rows ? alike - begin_ : tiles.rows;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    across_ = warp % tiles.wide;
    down_ = warp / tiles.wide;
    const auto lead = BytesPastBoundary(a.dx + kind_ * a.cols) / sizeof(T);
    pack_ = (stripe_ * tiles.wide + across_) * kWarp * kPacks + Lane();
    col_ = pack_ * N - static_cast<int>(lead);
    // A pack more on either side is there, too, for words that are shifted.
    const bool inner = col_ >= N && Column(kPacks - 1) + 2 * N <= Cols();
    whole_ = __all_sync(0xffffffffu, inner);
    const int64_t row = RowOf(down_), step = int64_t{tiles.tall} * grid.period;
    x_ = a.x + row * a.x_stride + col_;
    dy_ = a.dy + row * a.cols + col_;
    x_step_ = step * a.x_stride;
    step_ = step * a.cols;
  }
  static __device__ __forceinline__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ __forceinline__ int Cols() const { return static_cast<int>(a_.cols); }
  __device__ __forceinline__ int Column(int k) const { return col_ + k * kWarp * N; }
  // The elements [First, Last) of a pack are the row's.
  __device__ __forceinline__ int First(int k) const { return Column(k) < 0 ? -Column(k) : 0; }
  __device__ __forceinline__ int Last(int k) const {
    return Cols() - Column(k) < N ? Cols() - Column(k) : N;
  }
  __device__ __forceinline__ bool Full(int k) const { return First(k) == 0 && Last(k) == N; }
  // Of the i-th of the block's rows.
  __device__ __forceinline__ int64_t RowOf(int i) const {
    return kind_ + int64_t{begin_ + i} * grid_.period;
  }

  // Asks for the next of the warp's rows. Where the warp is not whole, packs have elements of other
  // rows (see Clear).
  __device__ __forceinline__ void Load(Row& row) {
    const unsigned past = BytesPastBoundary(x_);
    if (whole_) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        row.dy[k] = StowedPack<T, N>::Of(LoadAlignedPack<N>(dy_ + k * kWarp * N));
      }
      if (past == 0) {
#pragma unroll
        for (int k = 0; k < kPacks; ++k) {
          row.x[k] = StowedPack<T, N>::Of(LoadAlignedPack<N>(x_ + k * kWarp * N));
        }
      } else {
        Pack<T, N> low[kPacks], high[kPacks];
#pragma unroll
        for (int k = 0; k < kPacks; ++k) {
          const T* const words = x_ - past / sizeof(T) + k * kWarp * N;
          low[k] = LoadAlignedPack<N>(words);
          high[k] = LoadAlignedPack<N>(words + N);
        }
#pragma unroll
        for (int k = 0; k < kPacks; ++k) {
          row.x[k] = StowedPack<T, N>::Of(ShiftPacks(low[k], high[k], past));
        }
      }
    } else {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        const T* const x_end = a_.x + (a_.rows - 1) * a_.x_stride + a_.cols;
        row.x[k] = LoadAtEnd(x_ + k * kWarp * N, k, a_.x, x_end);
        row.dy[k] = LoadAtEnd(dy_ + k * kWarp * N, k, a_.dy, a_.dy + a_.rows * a_.cols);
      }
    }
    x_ += x_step_, dy_ += step_;
  }
  // Makes what is not the row's zero.
  __device__ __forceinline__ void Clear(Row& row) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      Pack<T, N> x = row.x[k].Get(), dy = row.dy[k].Get();
      const int first = First(k), last = Last(k);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const bool has = i >= first && i < last;
        x.v[i] = has ? x.v[i] : ConvertTo<T>(C(0));
        dy.v[i] = has ? dy.v[i] : ConvertTo<T>(C(0));
      }
      row.x[k] = StowedPack<T, N>::Of(x);
      row.dy[k] = StowedPack<T, N>::Of(dy);
    }
  }
  __device__ __forceinline__ Values Weights(int k) const {
    return LoadWeights<C, N, T>(a_.weight, a_.float_weight, Column(k), First(k), Last(k), C(1));
  }

 private:
  // The pack at p of a tensor [begin, end), whose other memory is not touched.
  __device__ __forceinline__ StowedPack<T, N> LoadAtEnd(const T* p, int k, const T* begin,
                                                        const T* end) const {
    const int first = First(k), last = Last(k);
    StowedPack<T, N> pack = StowedPack<T, N>::Of(Pack<T, N>{});
    if (first >= last) return pack;
    const unsigned past = BytesPastBoundary(p);
    const T* const words = p - past / sizeof(T);
    if (words >= begin && words + (past == 0 ? N : 2 * N) <= end) {
      const Pack<T, N> low = LoadAlignedPack<N>(words);
      if (past == 0) return StowedPack<T, N>::Of(low);
      return StowedPack<T, N>::Of(ShiftPacks(low, LoadAlignedPack<N>(words + N), past));
    }
    // By a loop, which is short: this is rare.
    uint64_t halves[2] = {};
#pragma unroll 1
    for (int i = first; i < last; ++i) {
      const uint64_t bits = uint64_t{reinterpret_cast<const uint16_t*>(p)[i]} << i % 4 * 16;
      halves[0] |= i < N / 2 ? bits : 0;
      halves[1] |= i < N / 2 ? 0 : bits;
    }
    memcpy(&pack, halves, sizeof(pack));
    return pack;
  }

 protected:
  const NormBackward<T>& a_;
  const Grid& grid_;
  int stripe_, unit_, kind_;  // which block, and which of the rows that start alike
  int begin_, count_;         // of these, the block's
  int across_, down_;         // which warp
  int pack_, col_;            // the first pack, and its first column, which may be in front of 0
  bool whole_;                // the warp's packs are all there and whole
  const T *x_, *dy_;          // of the next row
  int64_t x_step_, step_;     // elements to the one after it
};

}  // namespace cuda
}  // namespace oneflow_lite
