// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward of which dx of a row depends on that row alone, and dweight and dbias on the
// batch, but not on the device: by own_wide.cuh, or else by teams (norm_teams.cuh). Where neither
// serves, dx as an algorithm of the row kernels (primitive/cuda/rows/row.cuh), and a kernel that
// sums columns in a number of parts that follows from the width.
#pragma once

#include <algorithm>

#include "primitive/cuda/rows/io.cuh"
#include "python/torch/invariant/column_rows.cuh"
#include "python/torch/invariant/norm_teams.cuh"
#include "python/torch/invariant/own_wide.cuh"

namespace oneflow_lite {
namespace cuda {

// v and g as in norms/math.cuh. `a.x` is the forward's input.
template <class T, bool kCentre>
struct NormGradientRow {
  using Element = T;
  using Output = T;
  using C = ComputeType<T>;
  static constexpr int kPack = kPackSize<T>, kInputs = 2;
  static constexpr unsigned kOffers = RowOffers::kNothing;
  using Statistics = NormSums<T, kCentre>;
  using Merge = Plus;

  NormBackward<T> a;
  C share;    // 1 / cols
  C* offset;  // [rows]: receives that of x_hat; may be null

  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];  // x, dy
  };
  template <int N>
  struct Value {
    Pack<C, N> v, g;
  };
  struct Total {
    C mean = 0, rstd = 0;
    C by_v = 0, constant = 0, scale = 0, offset = 0;  // dx = g * scale + v * by_v + constant
  };

  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(DirectLoad<T>{a.x, a.x_stride}, row, col),
             LoadFrom<kAccess, N>(DirectLoad<T>{a.dy, a.cols}, row, col)}};
  }
  __device__ __forceinline__ Total Begin(int64_t row) const {
    Total total;
    if (kCentre) total.mean = a.mean[row];
    total.rstd = a.rstd[row];
    return total;
  }
  __device__ __forceinline__ void Look(int64_t, Total&) const {}
  __device__ __forceinline__ void End(int64_t row, const Total& total) const {
    if (offset) offset[row] = total.offset;
  }

  static constexpr int kRounds = 1, kMaxima = 0;
  static constexpr bool kClusterRegisters = false;
  template <int N>
  __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present, int64_t col,
                                           const Total& total) const {
    Value<N> value = {};
    if (!present) return value;
    value.v = ConvertPack<C>(raw.input[0]);
    value.g = ConvertPack<C>(raw.input[1]);
    ToValues<kCentre, false>(value.v, value.g, value.g, total.mean);
    if (a.weight) {
      const auto w = LoadWeights<C, N, T>(a.weight, a.float_weight, col, 0, N, C(1));
#pragma unroll
      for (int i = 0; i < N; ++i) value.g.v[i] *= w.v[i];
    }
    return value;
  }
  template <int, int N>
  static __device__ __forceinline__ Statistics Visit(const Value<N>& value, bool present,
                                                     const Total&) {
    Statistics sums;
    if (present) AddTo(value, sums);
    return sums;
  }
  template <int>
  __device__ __forceinline__ void Finish(const Statistics& sums, Total& total) const {
    Conclude(sums, total);
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    if (!a.dx) return;
    const int64_t at = row * a.cols + col;
    Pack<C, N> dx, dsum = {};
    if (a.dsum) dsum = LoadPart<C, N>(a.dsum + at, 0, N, C(0));
#pragma unroll
    for (int i = 0; i < N; ++i) {
      dx.v[i] = value.g.v[i] * total.scale + (value.v.v[i] * total.by_v + total.constant);
      dx.v[i] += dsum.v[i];
    }
    StorePack(a.dx + at, ConvertPack<T>(dx));
  }

  // Streamed.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t col, const Total& start,
                                      Statistics& sums) const {
    AddTo(Open(raw, true, col, start), sums);
  }
  __device__ __forceinline__ void Conclude(const Statistics& sums, Total& total) const {
    const NormGradient<T, kCentre, false> gradient(sums, total.rstd, share);
    total.scale = gradient.rstd;
    total.by_v = gradient.scale * gradient.by_x_hat;
    total.constant = gradient.offset * gradient.by_x_hat + gradient.constant;
    total.offset = gradient.offset;
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    Store<N>(row, col, Open(raw, true, col, total), total);
  }

 private:
  template <int N>
  static __device__ __forceinline__ void AddTo(const Value<N>& value, Statistics& sums) {
#pragma unroll
    for (int i = 0; i < N; ++i) sums.Add(value.g.v[i], value.v.v[i]);
  }
};

struct NormColumnSums {
  static constexpr int kThreads = 128;  // of a block; each has one column
  static constexpr int kUnroll = 4;     // rows on their way to a thread
  // Sums of a column that are added up in the end; of the widest rows fewer, which take less
  // memory.
  static constexpr int64_t Parts(int64_t cols) {
    const int64_t parts = (int64_t{1} << 22) / cols;
    return parts < 1 ? 1 : parts > 64 ? 64 : parts;
  }
};

// parts[gridDim.y][kinds] at PartPitch(cols): dweight, and dbias where kCentre. Part p sums rows p,
// p + parts and so on. offset: of x_hat in each row; null where it is none.
template <class T, bool kCentre>
__global__ void __launch_bounds__(NormColumnSums::kThreads)
    NormColumnSumsKernel(const __grid_constant__ NormBackward<T> a, const ComputeType<T>* offset,
                         ComputeType<T>* parts) {
  using C = ComputeType<T>;
  constexpr int kUnroll = NormColumnSums::kUnroll, kKinds = kCentre ? 2 : 1;
  const int64_t col = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, step = gridDim.y;
  if (col >= a.cols) return;
  C dweight = 0, dbias = 0;
#pragma unroll 1
  for (int64_t row = blockIdx.y; row < a.rows; row += kUnroll * step) {
    C v[kUnroll], dy[kUnroll], scale[kUnroll], more[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t at = row + u * step;
      v[u] = dy[u] = scale[u] = more[u] = 0;
      if (at >= a.rows) continue;
      v[u] = ConvertTo<C>(a.x[at * a.x_stride + col]);
      dy[u] = ConvertTo<C>(a.dy[at * a.cols + col]);
      if (kCentre) v[u] -= a.mean[at];
      scale[u] = a.rstd[at];
      if (offset) more[u] = offset[at];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      dweight += dy[u] * (v[u] * scale[u] + more[u]);
      dbias += dy[u];
    }
  }
  const int64_t pitch = PartPitch<C>(a.cols);
  C* const to = parts + int64_t{blockIdx.y} * kKinds * pitch + col;
  to[0] = dweight;
  if (kCentre) to[pitch] = dbias;
}

// By width and dtype; false where that does not serve.
template <class T, bool kCentre>
bool PlanOwnWide(int64_t rows, int64_t cols, const DeviceLimits& limits, NormWidePlan* plan) {
  if constexpr (sizeof(T) > 4) {
    return false;
  } else {
    using P = NormWidePolicy;
    // Clusters of so many blocks that an H200 holds at once (norms/backward/policy.h).
    constexpr int kClusters[] = {0, 132, 66, 39, 30, 22, 17, 15, 15, 9, 7, 7, 7, 7, 7, 7, 7};
    NormTraits t;
    t.many = kWidePacks<T>, t.pack = kPackSize<T>;
    t.weights = 2, t.kinds = kCentre ? 2 : 1;
    t.scratch_bytes = sizeof(NormWideScratch<ComputeType<T>, NormSums<T, kCentre>>);
    t.aligned = cols % t.pack == 0;
    while (cols * t.period % t.pack != 0) t.period *= 2;
    t.more_lines = 1;
    DeviceLimits any = AnyRowsLimits(limits);
    any.cooperative = false;  // slices are a cluster's blocks
    const auto clusters = [&](int blocks) {
      constexpr auto kKernel = &NormOwnWideKernel<T, kCentre>;
      const int held = MaxClusters<kKernel>(blocks, P::kMaxWorkers + P::kOtherThreads, any);
      return held > 0 ? kClusters[blocks] : 0;
    };
    if (!PlanWide(NormPolicy::kAnyRows, cols, t, any, clusters, plan)) return false;
    if (plan->units >= rows) plan->units = rows, plan->period = 1;
    return true;
  }
}

// Bytes of workspace, aligned to 16.
template <class T, bool kCentre>
size_t ColumnGradientBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  using C = ComputeType<T>;
  if (rows <= 0 || cols <= 0) return 0;
  const int64_t parts = NormColumnSums::Parts(cols) * (kCentre ? 2 : 1) * PartPitch<C>(cols);
  const int64_t offsets = kRecentre<T, kCentre> ? PartPitch<C>(rows) : 0;
  const int64_t bytes = (parts + offsets) * static_cast<int64_t>(sizeof(C));
  const int64_t exact = internal::ExactWorkspaceBytes<T, kCentre>(rows, cols);
  NormWidePlan wide;
  if (PlanOwnWide<T, kCentre>(rows, cols, limits, &wide)) {
    const int64_t each = (kCentre ? 2 : 1) * PartPitch<C>(cols) * static_cast<int64_t>(sizeof(C));
    return static_cast<size_t>(std::max(exact, wide.parts() * each));
  }
  return static_cast<size_t>(std::max({bytes, exact, NormTeamsBytes<T, kCentre>(cols)}));
}

namespace internal {

template <bool kCentre, class T>
cudaError_t LaunchOwnWide(const NormWidePlan& plan, NormBackward<T> a, const LaunchSite& site) {
  if constexpr (sizeof(T) > 4) {
    return cudaErrorInvalidValue;  // has no such plan
  } else {
    if (!a.dx) a.dsum = nullptr;                // what would be added to it
    if (!a.x) a.x = a.dy, a.x_stride = a.cols;  // dbias alone: what is read is not used
    const cudaError_t error =
        LaunchNormWideAs<kCentre, NormOwnWideKernel<T, kCentre>>(plan, a, site);
    if (error != cudaSuccess) return error;
    return ReduceParts<kCentre>(a, site.workspace, plan.parts(), 1, site);
  }
}

template <bool kCentre, class T>
cudaError_t LaunchTeams(const NormBackward<T>& a, const NormTeams<T>& teams, int tensors,
                        const LaunchSite& site) {
  using C = ComputeType<T>;
  const int64_t count = a.rows < teams.teams ? a.rows : teams.teams;
  const bool sums = a.dweight || a.dbias;
  C* const parts = sums ? static_cast<C*>(site.workspace) : nullptr;
  const auto launch =
      teams.blocks > 1 ? &LaunchTeamsOf<true, kCentre, T> : &LaunchTeamsOf<false, kCentre, T>;
  const cudaError_t error = launch(a, teams, tensors, count, site.limits, site.stream, parts);
  if (error != cudaSuccess) return error;
  return ReduceParts<kCentre>(a, parts, count, 1, site);
}

}  // namespace internal

// Rows of any width and alignment; `a.x` is the forward's input.
template <bool kCentre, class T>
cudaError_t LaunchColumnGradient(const NormBackward<T>& given, const DeviceLimits& limits,
                                 cudaStream_t stream, void* workspace) {
  using C = ComputeType<T>;
  NormBackward<T> a = given;
  if (a.rows <= 0 || a.cols <= 0) return cudaSuccess;
  const LaunchSite site{limits, stream, workspace};
  if (internal::WantsExact<kCentre>(a)) {
    const cudaError_t error = internal::LaunchExact<kCentre>(a, site);
    if (error != cudaSuccess) return error;
    a.dweight = nullptr;
  }
  if (!a.dx && !a.dweight && !a.dbias) return cudaSuccess;
  NormWidePlan wide;
  if (PlanOwnWide<T, kCentre>(a.rows, a.cols, limits, &wide)) {
    return internal::LaunchOwnWide<kCentre>(wide, a, site);
  }
  const NormTeams<T> teams(a.cols);
  const int tensors = a.dsum && a.dx ? 3 : 2;
  if (teams.Serves(tensors, limits)) {
    return internal::LaunchTeams<kCentre>(a, teams, tensors, site);
  }
  const int64_t parts = NormColumnSums::Parts(a.cols), pitch = PartPitch<C>(a.cols);
  C* const sums = static_cast<C*>(workspace);
  C* const offset =
      kRecentre<T, kCentre> && a.dweight ? sums + parts * (kCentre ? 2 : 1) * pitch : nullptr;
  if (a.dx || offset) {
    const NormGradientRow<T, kCentre> row{a, static_cast<C>(1.0 / static_cast<double>(a.cols)),
                                          offset};
    const cudaError_t error = LaunchByColumns(row, a.rows, a.cols, stream);
    if (error != cudaSuccess) return error;
  }
  if (!a.dweight && !a.dbias) return cudaSuccess;
  constexpr int kThreads = NormColumnSums::kThreads;
  const dim3 blocks(static_cast<unsigned>(CeilDiv(a.cols, kThreads)), static_cast<unsigned>(parts));
  NormColumnSumsKernel<T, kCentre><<<blocks, kThreads, 0, stream>>>(a, offset, sums);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  return internal::ReduceParts<kCentre>(a, sums, parts, 1, site);
}

}  // namespace cuda
}  // namespace oneflow_lite
