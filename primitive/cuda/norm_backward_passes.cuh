// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward in two passes over x and dy, the second of which finds them in the L2. With
// mean and rstd known, a first kernel computes, tile by tile, what columns give to the rows' sums
// and rows to the gradients of weight and bias; a second one adds up both, and computes dx. No
// block waits for another. x may lie otherwise between multiples of 16 bytes than dx and dy.
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/norm_passes_tile.cuh"

namespace oneflow_lite {
namespace cuda {

// First pass.
template <class T, int kPacks, int kRing, bool kCentre>
class NormSumTile : NormTile<T, kPacks, kCentre> {
  using Base = NormTile<T, kPacks, kCentre>;
  using Base::a_;
  using Base::count_;
  using Base::grid_;
  using Base::kKinds;
  using Base::N;
  using typename Base::C;
  using typename Base::Grid;
  using typename Base::Row;
  using typename Base::Sums;
  using typename Base::Values;
  static constexpr int kPosts = 8;  // of a warp and row

 public:
  static constexpr int SharedBytes(const NormPassTiles& tiles) {
    const int posts = tiles.rows * tiles.wide * kPosts * static_cast<int>(sizeof(Sums));
    const int threads = tiles.wide * tiles.tall * kWarp;
    const int parts = threads * kPacks * N * kKinds * static_cast<int>(sizeof(C));
    return posts > parts ? posts : parts;
  }
  __device__ __forceinline__ NormSumTile(const NormBackward<T>& a, const Grid& grid, char* shared)
      : Base(a, grid, static_cast<int>(blockIdx.x)), shared_(shared) {}

  __device__ __forceinline__ void Run() {
    Row ring[kRing];
    const int tall = grid_.tiles.tall;
    int turn = 0;
    // The turn before the first only loads.
#pragma unroll 1
    for (int i = this->down_ - kRing * tall; i < count_; i += kRing * tall) {
#pragma unroll
      for (int u = 0; u < kRing; ++u) {
        const int at = i + u * tall;
        if (at >= 0 && at < count_) Visit(ring[u], at, turn++);
        if (at + kRing * tall < count_) Base::Load(ring[u]);
      }
      if (i >= 0) continue;
#pragma unroll
      for (int k = 0; k < kPacks; ++k) weight_[k] = Base::Weights(k);
      LoadNumbers(0);
    }
    __syncthreads();
    StoreRows();
    __syncthreads();
    StoreParts();
  }

 private:
  // mean and rstd of the warp's next rows, one a lane.
  __device__ __forceinline__ void LoadNumbers(int turn) {
    const int i = this->down_ + (turn + Base::Lane()) * grid_.tiles.tall;
    const int64_t row = Base::RowOf(i);
    mean_ = kCentre && i < count_ ? a_.mean[row] : C(0);
    rstd_ = i < count_ ? a_.rstd[row] : C(0);
  }
  __device__ __forceinline__ void Visit(Row& row, int i, int turn) {
    if (turn > 0 && turn % kWarp == 0) LoadNumbers(turn);
    const C rstd = __shfl_sync(0xffffffffu, rstd_, turn % kWarp);
    C mean = 0;
    if (kCentre) mean = __shfl_sync(0xffffffffu, mean_, turn % kWarp);
    if (!this->whole_) Base::Clear(row);
    Sums sums;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      Values v = row.x[k].GetWide();
      const Values dy = row.dy[k].GetWide();
#pragma unroll
      for (int e = 0; e < N; ++e) {
        if (kCentre) v.v[e] -= mean;
        const C product = dy.v[e] * v.v[e];
        sums.v[0] += product * weight_[k].v[e];
        dweight_[k].v[e] += product * rstd;
        if constexpr (kCentre) {
          sums.v[1] += dy.v[e] * weight_[k].v[e];
          dbias_[k].v[e] += dy.v[e];
        }
      }
    }
#pragma unroll
    for (int mask = kWarp / 2; mask >= kPosts; mask /= 2) sums = sums + ShuffleXor(sums, mask);
    if (Base::Lane() < kPosts) {
      const int place = (i * grid_.tiles.wide + this->across_) * kPosts + Base::Lane();
      cuda::StoreSums(reinterpret_cast<Sums*>(shared_) + place, sums);
    }
  }
  __device__ __forceinline__ void StoreRows() const {
    const int posts = grid_.tiles.wide * kPosts;
#pragma unroll 1
    for (int i = threadIdx.x; i < count_; i += blockDim.x) {
      const Sums* const post = reinterpret_cast<const Sums*>(shared_) + i * posts;
      Sums sums = LoadSums(post);
#pragma unroll 4
      for (int p = 1; p < posts; ++p) sums = sums + LoadSums(post + p);
      cuda::StoreSums(grid_.sums + Base::RowOf(i) * grid_.tiles.stripes + this->stripe_, sums);
    }
  }
  // Shared memory: [tall][kinds][wide's columns].
  __device__ __forceinline__ void StoreParts() const {
    using Part = Pack<C, kPackSize<C>>;
    constexpr int kOfPack = N / kPackSize<C>;
    const int wide = grid_.tiles.wide * kWarp * kPacks * kOfPack;  // words
    uint4* const memory = reinterpret_cast<uint4*>(shared_);
    const int first = this->stripe_ * wide;  // of the block
    const int mine = this->pack_ * kOfPack - first + this->down_ * kKinds * wide;
#pragma unroll
    for (int kind = 0; kind < kKinds; ++kind) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
#pragma unroll
        for (int p = 0; p < kOfPack; ++p) {
          uint4 word;
          memcpy(&word, (kind == 0 ? dweight_[k].v : dbias_[k].v) + p * kPackSize<C>, sizeof(word));
          memory[mine + kind * wide + k * kWarp * kOfPack + p] = word;
        }
      }
    }
    __syncthreads();
    const int64_t pitch = Grid::Pitch(a_.cols);
    const int words = static_cast<int>(pitch / kPackSize<C>) - first;
#pragma unroll 1
    for (int i = threadIdx.x; i < kKinds * wide; i += blockDim.x) {
      const int kind = kKinds > 1 && i >= wide ? 1 : 0, at = i - kind * wide;
      if (at >= words) continue;
      Part sum;
      memcpy(&sum, memory + i, sizeof(sum));
#pragma unroll 1
      for (int d = 1; d < grid_.tiles.tall; ++d) {
        Part more;
        memcpy(&more, memory + i + d * kKinds * wide, sizeof(more));
#pragma unroll
        for (int e = 0; e < kPackSize<C>; ++e) sum.v[e] += more.v[e];
      }
      C* const to = grid_.parts + (int64_t{this->unit_} * kKinds + kind) * pitch;
      StoreAlignedPack(to + (first + at) * kPackSize<C>, sum);
    }
  }

  char* const shared_;
  C mean_, rstd_;  // see LoadNumbers
  Values weight_[kPacks], dweight_[kPacks] = {}, dbias_[kPacks] = {};
};

// Second pass.
template <class T, int kPacks, int kRing, bool kCentre>
class NormGradientTile : NormTile<T, kPacks, kCentre> {
  using Base = NormTile<T, kPacks, kCentre>;
  using Base::a_;
  using Base::count_;
  using Base::grid_;
  using Base::N;
  using typename Base::C;
  using typename Base::Grid;
  using typename Base::Row;
  using typename Base::Sums;
  using typename Base::Values;
  static constexpr int kSumLanes = 8;
  struct alignas(16) Factors {  // dx = dy * weight * rstd + v * by_v + constant
    C mean, rstd, by_v, constant;
  };

 public:
  // Of its tiles, or of blocks that add up parts.
  static constexpr int SharedBytes(const NormPassTiles& tiles, int threads) {
    const int factors = tiles.rows * static_cast<int>(sizeof(Factors));
    const int sums = threads * Grid::kKinds * static_cast<int>(sizeof(C));
    return factors > sums ? factors : sums;
  }
  __device__ __forceinline__ NormGradientTile(const NormBackward<T>& a, const Grid& grid, int block,
                                              char* shared)
      : Base(a, grid, block), factors_(reinterpret_cast<Factors*>(shared)) {}

  __device__ __forceinline__ void Run() {
    Row ring[kRing];
    const int tall = grid_.tiles.tall;
    Values weight[kPacks];
    T* out = a_.dx + Base::RowOf(this->down_) * a_.cols + this->col_;
    // The turn before the first only loads. All warps of the block take it.
#pragma unroll 1
    for (int i = this->down_ - kRing * tall; i < count_; i += kRing * tall) {
#pragma unroll
      for (int u = 0; u < kRing; ++u) {
        const int at = i + u * tall;
        if (at >= count_) continue;
        StowedPack<T, N> dx[kPacks];
        if (at >= 0) Apply(ring[u], factors_[at], weight, dx);
        if (at + kRing * tall < count_) Base::Load(ring[u]);
        if (at < 0) continue;
        Store(out, dx);
        out += this->step_;
      }
      if (i >= 0) continue;
#pragma unroll
      for (int k = 0; k < kPacks; ++k) weight[k] = Base::Weights(k);
      WaitForPreviousKernel();
      FindFactors();
      __syncthreads();
    }
  }

 private:
  __device__ __forceinline__ void Apply(const Row& row, const Factors& f,
                                        const Values (&weight)[kPacks],
                                        StowedPack<T, N> (&dx)[kPacks]) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      Values v = row.x[k].GetWide(), d = row.dy[k].GetWide();
#pragma unroll
      for (int e = 0; e < N; ++e) {
        if (kCentre) v.v[e] -= f.mean;
        const C scaled = d.v[e] * f.rstd;
        d.v[e] =
            scaled * weight[k].v[e] + (kCentre ? v.v[e] * f.by_v + f.constant : v.v[e] * f.by_v);
      }
      dx[k] = StowedPack<T, N>::Of(ConvertPack<T>(d));
    }
  }
  // Some lanes, a power of two, share a row's stripes: few, so that all rows are asked for at once,
  // and the same whatever the number of rows.
  __device__ __forceinline__ void FindFactors() const {
    int lanes = 1;
    while (lanes < kSumLanes && lanes < grid_.stripes) lanes *= 2;
    const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
    const int at_once = static_cast<int>(blockDim.x) / lanes;
#pragma unroll 1
    for (int first = 0; first < count_; first += at_once) {
      const int i = first + static_cast<int>(threadIdx.x) / lanes;
      const bool there = i < count_;
      const int64_t row = Base::RowOf(there ? i : 0);
      const Sums* const from = grid_.sums + row * grid_.stripes;
      const C mean = kCentre ? a_.mean[row] : C(0), rstd = a_.rstd[row];
      Sums sums;
#pragma unroll 8
      for (int s = lane; s < grid_.stripes; s += lanes) sums = sums + LoadSums(from + s);
#pragma unroll 1
      for (int mask = lanes / 2; mask > 0; mask /= 2) sums = sums + ShuffleXor(sums, mask);
      if (!there || lane != 0) continue;
      NormSums<T, kCentre> all;
      all.gv = sums.v[0];
      if constexpr (kCentre) all.g = sums.v[1];
      const NormGradient<T, kCentre, false> g(all, rstd, grid_.share);
      factors_[i] = {mean, g.rstd, g.scale * g.by_x_hat, g.constant};
    }
  }
  __device__ __forceinline__ void Store(T* out, const StowedPack<T, N> (&dx)[kPacks]) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      T* const to = out + k * kWarp * N;
      if (this->whole_ || Base::Full(k)) {
        StoreAlignedPack(to, dx[k].Get());
      } else {
        const Pack<T, N> part = dx[k].Get();
#pragma unroll
        for (int e = 0; e < N; ++e) {
          if (e >= Base::First(k) && e < Base::Last(k)) to[e] = part.v[e];
        }
      }
    }
  }

  Factors* const factors_;
};

// dweight and dbias of some columns, from the units' parts in their order.
template <class T, bool kCentre>
__device__ __forceinline__ void AddUpParts(const NormBackward<T>& a,
                                           const NormPassesGrid<T, kCentre>& grid, int block,
                                           char* shared) {
  using C = ComputeType<T>;
  constexpr int kKinds = NormPassesGrid<T, kCentre>::kKinds, kLanes = kWarp;
  const int ways = static_cast<int>(blockDim.x) / kLanes;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, way = thread / kLanes;
  const int64_t col = int64_t{block} * kLanes + lane;
  const int64_t pitch = NormPassesGrid<T, kCentre>::Pitch(a.cols);
  C sums[kKinds] = {};
  WaitForPreviousKernel();
  if (col < a.cols) {
#pragma unroll 4
    for (int unit = way; unit < grid.units; unit += ways) {
      const T* const start = a.dx + unit % grid.period * a.cols;
      const auto lead = BytesPastBoundary(start) / sizeof(T);
      const C* const part = grid.parts + unit * kKinds * pitch + col + lead;
      sums[0] += part[0];
      if constexpr (kCentre) sums[1] += part[pitch];
    }
  }
  C* const slots = reinterpret_cast<C*>(shared);
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    slots[(way * kKinds + kind) * kLanes + lane] = sums[kind];
  }
  __syncthreads();
  if (way > 0 || col >= a.cols) return;
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    C sum = sums[kind];
#pragma unroll 1
    for (int w = 1; w < ways; ++w) sum += slots[(w * kKinds + kind) * kLanes + lane];
    void* const gradient = kind == 0 ? a.dweight : a.dbias;
    if (gradient) StoreWeightGradient<T>(gradient, a.float_weight, col, sum);
  }
}

template <class T, int kPacks, int kRing, int kBlocks, bool kCentre>
__global__ void __launch_bounds__(NormPassesPolicy::kWarps* kWarp, kBlocks)
    NormSumPassKernel(const __grid_constant__ NormBackward<T> a,
                      const __grid_constant__ NormPassesGrid<T, kCentre> grid) {
  extern __shared__ __align__(16) char passes_memory[];
  AllowNextKernel();
  NormSumTile<T, kPacks, kRing, kCentre>(a, grid, passes_memory).Run();
}

template <class T, int kPacks, int kRing, int kBlocks, bool kCentre>
__global__ void __launch_bounds__(NormPassesPolicy::kWarps* kWarp, kBlocks)
    NormGradientPassKernel(const __grid_constant__ NormBackward<T> a,
                           const __grid_constant__ NormPassesGrid<T, kCentre> grid) {
  extern __shared__ __align__(16) char passes_memory[];
  AllowNextKernel();
  const int block = static_cast<int>(blockIdx.x);
  if (block < grid.tile_blocks) {
    NormGradientTile<T, kPacks, kRing, kCentre>(a, grid, block, passes_memory).Run();
  } else {
    AddUpParts<T, kCentre>(a, grid, block - grid.tile_blocks, passes_memory);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
