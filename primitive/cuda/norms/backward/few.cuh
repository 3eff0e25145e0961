// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward where few bytes are to be moved. Then latency counts, and the parts of
// dweight and dbias that blocks leave in memory (norms/backward/lean.cuh) would be as large as the
// rows. So one launch has two kinds of blocks that run side by side and need nothing of each other:
// row blocks compute dx, and column blocks, or clusters of them, add up
//
//   dweight[j] = sum over rows of dy * x_hat,   dbias[j] = sum over rows of dy
//
// for which mean and rstd of a row are enough. x and dy are read twice, once from the L2.
//
// Where the rounding of a stored mean counts (kRecentre), the row blocks leave what it lacks, and a
// second small kernel corrects dweight by it, unless it is negligible in every row. (Of up to four
// rows it never is: see norms/backward/sums.cuh.)
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/cluster_exchange.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/norms/backward/few_policy.h"
#include "primitive/cuda/norms/backward/sums.cuh"
#include "primitive/cuda/norms/math.cuh"

namespace oneflow_lite::cuda {

// How a launch's blocks are shared out. Rows are whole packs; every row of every tensor, weight and
// bias start at multiples of 16 bytes; dx is not dy.
template <class T>
struct NormFewGrid {
  using C = ComputeType<T>;
  int column_blocks;  // the first of the grid: whole clusters
  int lanes;          // packs side by side of a column block: 1, 2, 4 or 8
  int team;           // threads of a row: whole warps
  C share;            // 1 / cols
  C* residual;        // [rows]: receives r * rstd (norms/math.cuh) where kRecentre, unless null
};

// LoadWeights of N whole, aligned elements from column `col` on.
template <class C, int N, class T>
OFL_DEVICE Pack<C, N> AlignedWeights(const void* weights, bool is_float, int64_t col, C missing) {
  Pack<C, N> pack;
  if (!weights) {
    Unroll(pack.v, [&](C& w) { w = missing; });
    return pack;
  }
  if constexpr (!std::is_same_v<T, float>) {
    if (is_float) {
      constexpr int kPart = N < 4 ? N : 4;
#pragma unroll
      for (int i = 0; i < N; i += kPart) {
        const auto part = LoadAlignedPack<kPart>(static_cast<const float*>(weights) + col + i);
        Unroll<kPart>([&](int j) { pack.v[i + j] = ConvertTo<C>(part.v[j]); });
      }
      return pack;
    }
  }
  return ConvertPack<C>(LoadAlignedPack<N>(static_cast<const T*>(weights) + col));
}

// Over the warps of a team; `shared` has a place for each warp of the block.
template <class Sums>
OFL_DEVICE Sums SumOfTeam(const Sums& mine, int team, int warps, char* shared) {
  Sums sums = ReduceLanes<kWarp>(mine, Plus{});
  if (warps > 1) {
    Sums* const slots = reinterpret_cast<Sums*>(shared);
    if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = sums;
    __syncthreads();
    sums = slots[team * warps];
#pragma unroll 1
    for (int w = 1; w < warps; ++w) sums = sums + slots[team * warps + w];
  }
  return sums;
}

// The lane's packs of dx, from v and g (norms/math.cuh).
template <class T, int kPacks, bool kCentre, bool kFromOutput, class Values>
OFL_DEVICE void StoreFewRow(const NormBackward<T>& a,
                            const NormGradient<T, kCentre, kFromOutput>& gradient, int64_t row,
                            int lane, int lanes, const Values (&v)[kPacks],
                            const Values (&g)[kPacks]) {
  using C = ComputeType<T>;
  constexpr int N = kPackSize<T>;
  const C by_v = gradient.scale * gradient.by_x_hat;
  const C constant = gradient.offset * gradient.by_x_hat + gradient.constant;
  Unroll<kPacks>([&](int k) {
    const int64_t col = int64_t{lane + k * lanes} * N;
    if (col >= a.cols) return;
    Values dx;
    Unroll<N>([&](int i) {
      const C by_row = kCentre ? v[k].v[i] * by_v + constant : v[k].v[i] * by_v;
      dx.v[i] = g[k].v[i] * gradient.rstd + by_row;
    });
    const int64_t at = row * a.cols + col;
    if (a.dsum) dx += ConvertPack<C>(LoadAlignedPack<N>(a.dsum + at));
    StoreAlignedPack(a.dx + at, ConvertPack<T>(dx));
  });
}

// dx of a block's rows: a team of threads to each.
template <class T, int kPacks, bool kCentre, bool kFromOutput>
OFL_DEVICE void FewRows(const NormBackward<T>& a, const NormFewGrid<T>& grid, char* shared) {
  using C = ComputeType<T>;
  using Sums = NormSums<T, kCentre>;
  constexpr int N = kPackSize<T>;
  using Values = Pack<C, N>;
  const int team = threadIdx.x / grid.team, lane = threadIdx.x % grid.team;
  const int64_t row = int64_t{blockIdx.x - grid.column_blocks} * (blockDim.x / grid.team) + team;
  const bool there = row < a.rows;
  const T* const x = a.x + row * a.x_stride;
  const T* const dy = a.dy + row * a.cols;
  const C mean = kCentre && !kFromOutput && there && a.mean ? a.mean[row] : C(0);
  const C rstd = there && a.rstd ? a.rstd[row] : C(0);
  // Weights of T are asked for together with the row; others, rarer, when they are used.
  const bool late = a.weight && a.float_weight && !std::is_same_v<T, float>;
  StowedPack<T, N> held_x[kPacks], held_dy[kPacks], held_w[kPacks];
  Unroll<kPacks>([&](int k) {
    const int64_t col = int64_t{lane + k * grid.team} * N;
    held_x[k] = held_dy[k] = StowedPack<T, N>::Of(Pack<T, N>{});
    if (there && col < a.cols) {
      held_x[k] = StowedPack<T, N>::Of(LoadAlignedPack<N>(x + col));
      held_dy[k] = StowedPack<T, N>::Of(LoadAlignedPack<N>(dy + col));
    }
  });
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int64_t col = int64_t{lane + k * grid.team} * N;
    Pack<T, N> ones;
    Unroll(ones.v, [&](T& one) { one = ConvertTo<T>(1.0f); });
    held_w[k] = StowedPack<T, N>::Of(ones);
    if (a.weight && !late && col < a.cols) {
      held_w[k] = StowedPack<T, N>::Of(LoadAlignedPack<N>(static_cast<const T*>(a.weight) + col));
    }
  }
  Unroll<kPacks>([&](int k) { held_w[k].Pin(); });
  // v and g (norms/math.cuh) are kept in the compute type: converting twice would cost more.
  Values v[kPacks], g[kPacks];
  Sums sums;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int64_t col = int64_t{lane + k * grid.team} * N;
    const bool has = there && col < a.cols;
    Values w, bias;
    if (late) {
      w = AlignedWeights<C, N, T>(has ? a.weight : nullptr, true, col, C(1));
    } else {
      w = ConvertPack<C>(held_w[k].Get());
    }
    if (kFromOutput) {
      bias = AlignedWeights<C, N, T>(has ? a.bias : nullptr, a.float_weight, col, C(0));
    }
    v[k] = ConvertPack<C>(held_x[k].Get());
    g[k] = ConvertPack<C>(held_dy[k].Get());
    ToValues<kCentre, kFromOutput>(v[k], w, bias, mean);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      g[k].v[i] *= w.v[i];
      if (has) sums.Add(g[k].v[i], v[k].v[i]);
      PinRegister(v[k].v[i]);
      PinRegister(g[k].v[i]);
    }
  }
  sums = SumOfTeam(sums, team, grid.team / kWarp, shared);
  if (!there) return;
  const NormGradient<T, kCentre, kFromOutput> gradient(sums, rstd, grid.share);
  if (kRecentre<T, kCentre> && !kFromOutput && grid.residual && lane == 0) {
    grid.residual[row] = -gradient.offset;
  }
  if (a.dx) StoreFewRow(a, gradient, row, lane, grid.team, v, g);
}

// Adds up `sums` over the block's threads that share a lane, in a fixed order: use(i, lane, sum).
template <class C, int kSums, class Use>
OFL_DEVICE void AddUpColumns(C (&sums)[kSums], int lanes, char* shared, Use use) {
#pragma unroll 1
  for (int mask = kWarp / 2; mask >= lanes; mask /= 2) {
    Unroll(sums, [&](C& s) { s += ShuffleXor(s, mask); });
  }
  C* const slots = reinterpret_cast<C*>(shared);  // [warps][kSums][lanes]
  const int lane = threadIdx.x % kWarp, warps = static_cast<int>(blockDim.x) / kWarp;
  if (lane < lanes) {
    Unroll<kSums>(
        [&](int i) { slots[(threadIdx.x / kWarp * kSums + i) * lanes + lane] = sums[i]; });
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < kSums * lanes; i += blockDim.x) {
    C sum = slots[i];
#pragma unroll 1
    for (int w = 1; w < warps; ++w) sum += slots[w * kSums * lanes + i];
    use(i, sum);
  }
}

// dweight and dbias of a block's columns.
template <class T, int kUnroll, bool kCentre, bool kFromOutput>
OFL_DEVICE void FewColumns(const NormBackward<T>& a, const NormFewGrid<T>& grid, char* shared) {
  using C = ComputeType<T>;
  constexpr int N = kPackSize<T>;
  using Values = Pack<C, N>;
  constexpr int kSums = kNormKinds<kCentre> * N;
  const int values = kSums * grid.lanes;
  ClusterGather<C> gather(shared, values);
  const int blocks = gather.blocks();
  const int lane = threadIdx.x % grid.lanes;
  const int ways = static_cast<int>(blockDim.x) / grid.lanes * blocks;
  const int way = threadIdx.x / grid.lanes * blocks + gather.block();
  const int64_t first = int64_t{blockIdx.x / blocks} * grid.lanes * N, col = first + lane * N;
  const bool has = col < a.cols;
  C sums[kSums] = {};
  Values w, bias;
  if (kFromOutput) {
    w = AlignedWeights<C, N, T>(has ? a.weight : nullptr, a.float_weight, col, C(1));
    bias = AlignedWeights<C, N, T>(has ? a.bias : nullptr, a.float_weight, col, C(0));
  }
  const int64_t end = has ? a.rows : 0;
#pragma unroll 1
  for (int64_t row = way; row < end; row += kUnroll * ways) {
    StowedPack<T, N> held_x[kUnroll], held_dy[kUnroll];
    C mean[kUnroll], rstd[kUnroll];
    Unroll<kUnroll>([&](int u) {
      const int64_t at = row + u * ways;
      held_x[u] = held_dy[u] = StowedPack<T, N>::Of(Pack<T, N>{});
      mean[u] = rstd[u] = 0;
      if (at >= end) return;
      held_x[u] = StowedPack<T, N>::Of(LoadAlignedPack<N>(a.x + at * a.x_stride + col));
      held_dy[u] = StowedPack<T, N>::Of(LoadAlignedPack<N>(a.dy + at * a.cols + col));
      if (kCentre && !kFromOutput && a.mean) mean[u] = a.mean[at];
      if (!kFromOutput && a.rstd) rstd[u] = a.rstd[at];
    });
    Unroll<kUnroll>([&](int u) {
      Values v = ConvertPack<C>(held_x[u].Get());
      const Values dy = ConvertPack<C>(held_dy[u].Get());
      ToValues<kCentre, kFromOutput>(v, w, bias, mean[u]);
      Unroll<N>([&](int i) {
        sums[i] += kFromOutput ? dy.v[i] * v.v[i] : dy.v[i] * (v.v[i] * rstd[u]);
        if constexpr (kCentre) sums[N + i] += dy.v[i];
      });
    });
  }
  gather.Meet();
  AddUpColumns(sums, grid.lanes, shared + gather.Bytes(blocks, values),
               [&](int i, C sum) { gather.Give(i, sum); });
  if (!gather.Take()) return;
#pragma unroll 1
  for (int i = threadIdx.x; i < values; i += blockDim.x) {
    C sum = gather.Value(0, i);
#pragma unroll 1
    for (int b = 1; b < blocks; ++b) sum += gather.Value(b, i);
    const int sum_of = i / grid.lanes;
    const int64_t at = first + i % grid.lanes * N + sum_of % N;
    void* const gradient = sum_of < N ? a.dweight : a.dbias;
    if (gradient && at < a.cols) StoreWeightGradient<T>(gradient, a.float_weight, at, sum);
  }
}

// Shared memory of a block.
template <class T, bool kCentre>
constexpr size_t FewSharedBytes(int threads, int lanes, int blocks) {
  using C = ComputeType<T>;
  const int values = kNormKinds<kCentre> * kPackSize<T> * lanes;
  const size_t columns =
      ClusterGather<C>::Bytes(blocks, values) + sizeof(C) * values * (threads / kWarp);
  const size_t rows = static_cast<size_t>(threads) / kWarp * kReduceSlotBytes;
  return columns > rows ? columns : rows;
}

// Registers, as blocks per multiprocessor: 64 with two packs per thread; with four, 80, or 128
// where a pack is 8 elements.
template <class T, int kPacks>
inline constexpr int kFewBlocks = kPacks == 2      ? 4
                                  : sizeof(T) == 2 ? 2
                                                   : 3;
// Rows on their way to a thread of a column block: as many as fit in 64.
template <class T, bool kFromOutput>
inline constexpr int kFewUnroll = (sizeof(T) == 2 ? 3 : 4) - (kFromOutput ? 1 : 0);

template <class T, int kPacks, bool kCentre, bool kFromOutput>
__global__ void __launch_bounds__(NormFewPolicy::kThreads, kFewBlocks<T, kPacks>)
    NormFewKernel(const __grid_constant__ NormBackward<T> a,
                  const __grid_constant__ NormFewGrid<T> grid) {
  extern __shared__ __align__(16) char shared[];
  AllowNextKernel();
  if (static_cast<int>(blockIdx.x) < grid.column_blocks) {
    FewColumns<T, kFewUnroll<T, kFromOutput>, kCentre, kFromOutput>(a, grid, shared);
  } else {
    FewRows<T, kPacks, kCentre, kFromOutput>(a, grid, shared);
  }
}

namespace internal {

// dweight's correction by the rows' residuals, behind the launch that wrote them; null where none
// is needed.
template <bool kCentre, class T>
cudaError_t LaunchCorrection(const NormBackward<T>& a, const ComputeType<T>* residual,
                             const LaunchSite& site) {
  if constexpr (kRecentre<T, kCentre>) {
    using P = NormPolicy;
    if (!residual) return cudaSuccess;
    const dim3 columns(static_cast<unsigned>(CeilDiv(a.cols, P::kCorrectColumns)));
    return LaunchAfter(site, NormFewCorrectKernel<T>, columns, P::kCorrectColumns * P::kCorrectWays,
                       a, residual);
  }
  return cudaSuccess;
}

// What both kinds of grid have of a plan; returns their blocks.
template <bool kCentre, class Plan, class Grid, class T>
int64_t FillGrid(const Plan& plan, const NormBackward<T>& a, void* workspace, Grid* grid) {
  using C = ComputeType<T>;
  const bool corrects = kRecentre<T, kCentre> && a.dweight && !a.from_output;
  grid->column_blocks = a.dweight || a.dbias ? static_cast<int>(plan.column_blocks) : 0;
  grid->lanes = plan.lanes;
  grid->team = plan.team;
  grid->share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  grid->residual = corrects ? static_cast<C*>(workspace) : nullptr;
  return grid->column_blocks + (a.dx || corrects ? plan.row_blocks : 0);
}

template <bool kCentre, class T>
cudaError_t LaunchNormFew(const NormFewPlan& plan, const NormBackward<T>& a,
                          const LaunchSite& site) {
  NormFewGrid<T> grid;
  const int64_t blocks = FillGrid<kCentre>(plan, a, site.workspace, &grid);
  const int cluster = grid.column_blocks > 0 ? plan.blocks : 1;
  const auto launch = [&](auto kernel) {
    return LaunchAs({cluster}, kernel, CeilDiv(blocks, cluster) * cluster, plan.threads,
                    FewSharedBytes<T, kCentre>(plan.threads, plan.lanes, plan.blocks), site.stream,
                    a, grid);
  };
  const cudaError_t error = VisitBool(a.from_output, [&](auto from_output) {
    constexpr bool kFromOutput = decltype(from_output)::value;
    return plan.packs == 2 ? launch(NormFewKernel<T, 2, kCentre, kFromOutput>)
                           : launch(NormFewKernel<T, 4, kCentre, kFromOutput>);
  });
  if (error != cudaSuccess) return error;
  return LaunchCorrection<kCentre>(a, grid.residual, site);
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
