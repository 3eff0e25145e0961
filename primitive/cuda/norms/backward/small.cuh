// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward of few bytes where rows are not whole aligned packs. As in
// norms/backward/few.cuh, one launch has blocks for rows, which compute dx, and blocks for columns,
// which add up dweight and dbias. Everything moves element by element: what counts is how many
// loads are under way, and that nothing waits for another kernel. The blocks of a cluster may share
// the columns of a row, or the rows of some columns.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/cluster_exchange.cuh"
#include "primitive/cuda/norms/backward/few.cuh"

namespace oneflow_lite::cuda {

// How a launch's blocks are shared out. dx is neither dy nor x.
template <class T>
struct NormSmallGrid {
  using C = ComputeType<T>;
  int column_blocks;  // the first of the grid: whole clusters
  int lanes, team;    // see NormSmallPlan
  bool columns_split, rows_split;
  C share;      // 1 / cols
  C* residual;  // [rows]: receives r * rstd (norms/math.cuh) where kRecentre, unless null
};

template <class T, bool kCentre>
class NormSmall {
  using P = NormSmallPolicy;
  using C = ComputeType<T>;
  using Sums = NormSums<T, kCentre>;
  static constexpr int kHeld = P::kHeld, kColumns = P::kColumns;
  // Rows on their way to a thread of a column block.
  static constexpr int kRows = sizeof(T) == 2 ? 8 : sizeof(T) == 4 ? 6 : 4;
  static constexpr int kSums = kNormKinds<kCentre> * kColumns;  // of a thread of a column block

 public:
  // Shared memory of a block.
  static constexpr size_t SharedBytes(const NormSmallPlan& plan) {
    const int values = kSums * plan.lanes;
    const size_t columns = ClusterGather<C>::Bytes(plan.columns_split ? plan.cluster : 1, values) +
                           sizeof(C) * kSums * P::kThreads;
    const size_t rows = ClusterExchange::kScratchBytes + P::kThreads / kWarp * sizeof(Sums);
    return columns > rows ? columns : rows;
  }

  OFL_DEVICE NormSmall(const NormBackward<T>& a, const NormSmallGrid<T>& grid, char* shared)
      : a_(a), grid_(grid), shared_(shared) {}

  // dx of the block's rows, or of its part of one.
  OFL_DEVICE void Rows() const {
    const int blocks = grid_.rows_split ? ClusterExchange::size() : 1;
    const int rank = grid_.rows_split ? ClusterExchange::rank() : 0;
    const int team = static_cast<int>(threadIdx.x) / grid_.team;
    const int lane = static_cast<int>(threadIdx.x) - team * grid_.team + rank * grid_.team;
    const int step = grid_.team * blocks;
    const int64_t block = (static_cast<int>(blockIdx.x) - grid_.column_blocks) / blocks;
    const int teams = static_cast<int>(blockDim.x) / grid_.team;
    const int64_t row = block * teams + team;
    if (block * teams >= a_.rows) return;
    ClusterExchange exchange;
    if (blocks > 1) exchange.Start(shared_);
    const bool there = row < a_.rows && team < teams;
    const int cols = there ? static_cast<int>(a_.cols) : 0;
    const C mean = kCentre && !a_.from_output && there && a_.mean ? a_.mean[row] : C(0);
    const C rstd = there && a_.rstd ? a_.rstd[row] : C(0);
    // What is not there reads the first row, and adds nothing.
    const int64_t here = there ? row : 0;
    const T* x = a_.x + here * a_.x_stride;
    const T* dy = a_.dy + here * a_.cols;
    Pin(x);
    Pin(dy);
    const int visit = kHeld * step;  // columns
    const int visits = (static_cast<int>(a_.cols) + visit - 1) / visit;
    C v[kHeld], g[kHeld];
    Sums sums;
#pragma unroll 1
    for (int i = visits - 1; i >= 0; --i) {  // the first stay in registers
      Load(x, dy, i * visit + lane, step, cols, mean, v, g);
#pragma unroll
      for (int k = 0; k < kHeld; ++k) sums.Add(g[k], v[k]);  // zeros where there is no column
    }
    sums = SumOfTeam(sums, team < teams ? team : 0, grid_.team / kWarp,
                     shared_ + ClusterExchange::kScratchBytes);
    if (blocks > 1) sums = exchange.Sum(sums);
    if (!there) return;
    C by_v, constant, factor = rstd;
    if (a_.from_output) {
      const NormGradient<T, kCentre, true> of(sums, rstd, grid_.share);
      by_v = of.by_x_hat, constant = of.constant, factor = of.rstd;
    } else {
      const NormGradient<T, kCentre, false> of(sums, rstd, grid_.share);
      by_v = of.scale * of.by_x_hat, constant = of.offset * of.by_x_hat + of.constant;
      factor = of.rstd;
      if (kRecentre<T, kCentre> && grid_.residual && lane == 0) grid_.residual[row] = -of.offset;
    }
    if (!a_.dx) return;
#pragma unroll 1
    for (int i = 0;;) {
      Store(row, i * visit + lane, step, cols, v, g, factor, by_v, constant);
      if (++i == visits) break;
      Load(x, dy, i * visit + lane, step, cols, mean, v, g);
    }
  }

  // dweight and dbias of the block's columns.
  OFL_DEVICE void Columns() const {
    const int values = kSums * grid_.lanes;
    ClusterGather<C> gather(shared_, values, grid_.columns_split);
    const int blocks = gather.blocks();
    const int way_of = static_cast<int>(threadIdx.x) / grid_.lanes;
    const int lane = static_cast<int>(threadIdx.x) - way_of * grid_.lanes;
    const int block_ways = static_cast<int>(blockDim.x) / grid_.lanes, ways = block_ways * blocks;
    const int64_t tile = blockIdx.x / static_cast<unsigned>(blocks);
    const int64_t first = tile * grid_.lanes * kColumns;
    C sums[kSums] = {};
    SumColumns(first + lane, way_of * blocks + gather.block(), ways, sums);
    C* const slots =  // [block_ways][kSums][lanes]
        reinterpret_cast<C*>(shared_ + ClusterGather<C>::Bytes(blocks, values));
    Unroll<kSums>([&](int i) { slots[(way_of * kSums + i) * grid_.lanes + lane] = sums[i]; });
    gather.Meet();
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < values; i += blockDim.x) {
      C sum = slots[i];
#pragma unroll 1
      for (int w = 1; w < block_ways; ++w) sum += slots[w * values + i];
      gather.Give(i, sum);
    }
    if (!gather.Take()) return;
#pragma unroll 1
    for (int i = threadIdx.x; i < values; i += blockDim.x) {
      C sum = gather.Value(0, i);
#pragma unroll 1
      for (int b = 1; b < blocks; ++b) sum += gather.Value(b, i);
      Finish(first, i, sum);
    }
  }

 private:
  // The compiler would work out the address of a row anew for each element.
  template <class E>
  OFL_DEVICE static void Pin(E*& pointer) {
    asm volatile("" : "+l"(pointer));
  }

  // use(column, is there, k) for the thread's columns of a visit. Where there is none, column 0 is
  // read instead: questions of the launch and of columns are no branches that loads wait behind.
  template <class Use>
  OFL_DEVICE static void Each(int col, int step, int cols, const Use& use) {
    Unroll<kHeld>([&](int k) { use(col + k * step, col + k * step < cols, k); });
  }
  template <class W>
  OFL_DEVICE static void LoadEach(const W* from, int col, int step, int cols, W (&held)[kHeld]) {
    Each(col, step, cols, [&](int c, bool has, int k) { held[k] = from[has ? c : 0]; });
  }
  template <class W>
  OFL_DEVICE static void LoadWeights(const void* weights, int col, int step, int cols,
                                     C (&w)[kHeld]) {
    W held[kHeld];
    LoadEach(static_cast<const W*>(weights), col, step, cols, held);
    Unroll<kHeld>([&](int k) { w[k] = ConvertTo<C>(held[k]); });
  }
  OFL_DEVICE void LoadWeights(const void* weights, int col, int step, int cols, C missing,
                              C (&w)[kHeld]) const {
    if (!weights) {
      Unroll(w, [&](C& one) { one = missing; });
    } else if (a_.float_weight) {
      LoadWeights<float>(weights, col, step, cols, w);
    } else {
      LoadWeights<T>(weights, col, step, cols, w);
    }
  }

  // v (norms/math.cuh) and dy * weight of columns col, col + step, ...; 0 from `cols` on.
  OFL_DEVICE void Load(const T* x, const T* dy, int col, int step, int cols, C mean, C (&v)[kHeld],
                       C (&g)[kHeld]) const {
    T held_x[kHeld], held_dy[kHeld];
    LoadEach(x, col, step, cols, held_x);
    LoadEach(dy, col, step, cols, held_dy);
    C w[kHeld], bias[kHeld];
    LoadWeights(a_.weight, col, step, cols, C(1), w);
    if (a_.from_output) LoadWeights(a_.bias, col, step, cols, C(0), bias);
    Each(col, step, cols, [&](int, bool has, int k) {
      v[k] = ConvertTo<C>(held_x[k]) - mean;
      g[k] = has ? ConvertTo<C>(held_dy[k]) * w[k] : C(0);
    });
    if (a_.from_output) {
      Unroll<kHeld>([&](int k) { v[k] = Quotient(v[k] - bias[k], ClampWeight(w[k])); });
    }
    Each(col, step, cols, [&](int, bool has, int k) { v[k] = has ? v[k] : C(0); });
  }
  OFL_DEVICE void Store(int64_t row, int col, int step, int cols, const C (&v)[kHeld],
                        const C (&g)[kHeld], C factor, C by_v, C constant) const {
    T* dx = a_.dx + row * a_.cols;
    Pin(dx);
    C d[kHeld] = {};
    if (a_.dsum) {
      const T* const dsum = a_.dsum + row * a_.cols;
      T held[kHeld];
      LoadEach(dsum, col, step, cols, held);
      Unroll<kHeld>([&](int k) { d[k] = ConvertTo<C>(held[k]); });
    }
    Each(col, step, cols, [&](int c, bool has, int k) {
      d[k] += g[k] * factor + (kCentre ? v[k] * by_v + constant : v[k] * by_v);
      if (has) dx[c] = ConvertTo<T>(d[k]);
    });
  }

  // What rows way, way + ways, ... add to the gradients of columns col, col + lanes, ...
  OFL_DEVICE void SumColumns(int64_t col, int way, int ways, C (&sums)[kSums]) const {
    bool has[kColumns];
    C w[kColumns], bias[kColumns];
    Unroll<kColumns>([&](int j) {
      const int64_t c = col + j * grid_.lanes;
      has[j] = c < a_.cols;
      w[j] = 1, bias[j] = 0;
      if (a_.from_output && has[j]) {
        w[j] = WeightAt(a_.weight, c, C(1));
        bias[j] = WeightAt(a_.bias, c, C(0));
      }
    });
    const T* x = a_.x + way * a_.x_stride + col;
    const T* dy = a_.dy + way * a_.cols + col;
    const int64_t x_step = ways * a_.x_stride, dy_step = ways * a_.cols;
    const C* const mean = kCentre && !a_.from_output ? a_.mean : nullptr;
    const C* const rstd = a_.from_output ? nullptr : a_.rstd;
    const int rows = static_cast<int>(a_.rows);
#pragma unroll 1
    for (int row = way; row < rows; row += kRows * ways) {
      T held_x[kRows][kColumns], held_dy[kRows][kColumns];
      C means[kRows], rstds[kRows];
      Unroll<kRows>([&](int u) {
        const int at = row + u * ways;
        const bool there = at < rows;
        Unroll<kColumns>([&](int j) {
          held_x[u][j] = held_dy[u][j] = ConvertTo<T>(C(0));
          if (there && has[j]) held_x[u][j] = x[j * grid_.lanes];
          if (there && has[j]) held_dy[u][j] = dy[j * grid_.lanes];
        });
        means[u] = 0, rstds[u] = 1;
        if (mean && there) means[u] = mean[at];
        if (rstd && there) rstds[u] = rstd[at];
        x += x_step, dy += dy_step;
      });
      C v[kRows][kColumns];
      Unroll<kRows>([&](int u) {
        Unroll<kColumns>([&](int j) { v[u][j] = ConvertTo<C>(held_x[u][j]) - means[u]; });
      });
      if (a_.from_output) {
        Unroll<kRows>([&](int u) {
          Unroll<kColumns>(
              [&](int j) { v[u][j] = Quotient(v[u][j] - bias[j], ClampWeight(w[j])); });
        });
      }
      Unroll<kRows>([&](int u) {
        Unroll<kColumns>([&](int j) {
          const C d = ConvertTo<C>(held_dy[u][j]);  // 0 where there is nothing
          sums[j] += d * (v[u][j] * rstds[u]);
          if constexpr (kCentre) sums[kColumns + j] += d;
        });
      });
    }
  }
  OFL_DEVICE C WeightAt(const void* weights, int64_t col, C missing) const {
    if (!weights) return missing;
    if (a_.float_weight) return static_cast<const float*>(weights)[col];
    return ConvertTo<C>(static_cast<const T*>(weights)[col]);
  }
  // Value i of a block that begins at column `first`.
  OFL_DEVICE void Finish(int64_t first, int i, C sum) const {
    const int sum_of = i / grid_.lanes, lane = i - sum_of * grid_.lanes;
    const int64_t col = first + sum_of % kColumns * grid_.lanes + lane;
    void* const gradient = sum_of < kColumns ? a_.dweight : a_.dbias;
    if (gradient && col < a_.cols) StoreWeightGradient<T>(gradient, a_.float_weight, col, sum);
  }

  const NormBackward<T>& a_;
  const NormSmallGrid<T>& grid_;
  char* const shared_;
};

template <class T, bool kCentre>
__global__ void __launch_bounds__(NormSmallPolicy::kThreads,
                                  NormSmallPolicy::Blocks(sizeof(T) == 8))
    NormSmallKernel(const __grid_constant__ NormBackward<T> a,
                    const __grid_constant__ NormSmallGrid<T> grid) {
  extern __shared__ __align__(16) char small_memory[];
  AllowNextKernel();
  const NormSmall<T, kCentre> norm(a, grid, small_memory);
  if (static_cast<int>(blockIdx.x) < grid.column_blocks) {
    norm.Columns();
  } else {
    norm.Rows();
  }
}

namespace internal {

template <bool kCentre, class T>
cudaError_t LaunchNormSmall(const NormSmallPlan& plan, const NormBackward<T>& a,
                            const LaunchSite& site) {
  NormSmallGrid<T> grid;
  const int64_t blocks = FillGrid<kCentre>(plan, a, site.workspace, &grid);
  grid.columns_split = plan.columns_split;
  grid.rows_split = plan.rows_split;
  const cudaError_t error =
      LaunchAs({plan.cluster}, NormSmallKernel<T, kCentre>, blocks, NormSmallPolicy::kThreads,
               NormSmall<T, kCentre>::SharedBytes(plan), site.stream, a, grid);
  if (error != cudaSuccess) return error;
  return LaunchCorrection<kCentre>(a, grid.residual, site);
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
