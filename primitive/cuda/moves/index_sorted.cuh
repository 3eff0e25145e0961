// SPDX-License-Identifier: Apache-2.0
//
// Rows joined by their places, the same bits every time: the places are sorted with the rows'
// numbers (stably), so that rows of one place are neighbours in their order. A thread owns some
// columns of so many sorted rows: it joins runs of one place. A run that lies within its rows goes
// to the result at once. One that crosses into the next thread's goes to the workspace, and a
// second kernel joins such parts in order.
#pragma once

#include "primitive/cuda/moves/index_rows_launch.h"
#include "primitive/cuda/moves/index_stores.cuh"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/places.h"

namespace oneflow_lite {
namespace cuda {

// The workspace, in parts that begin at multiples of 256 bytes.
struct SortedLayout {
  size_t keys, rows, sorted_keys, sorted_rows, partial, sort, total;
};
// Sorted rows that a thread joins.
int64_t RowsPerThread(const RowsProblem& p);
cudaError_t SortedLayoutOf(size_t compute_bytes, const RowsProblem& p, SortedLayout* l);
// Fills sorted_keys and sorted_rows. cudaErrorNotSupported for 2^32 - 1 places or rows and more.
cudaError_t SortPlaces(const IndexSumRun& run, const SortedLayout& l, cudaStream_t stream);

constexpr int kAtOnce = 4;     // rows in flight
constexpr int64_t kAlone = 4;  // chunks whose parts a thread joins without the others
constexpr unsigned kAllLanes = 0xffffffffu;

template <class T, class Join>
struct SumShape {
  using C = ComputeType<T>;
  RowsProblem p;
  int64_t rows;  // of a thread
  int64_t chunks;
  bool add;
  C alpha;
  const uint32_t* keys;
  const uint32_t* numbers;
  const T* x;
  T* y;
  C* partial;  // [chunks][2][outer * inner]: of the run that came in, of the run that goes on

  __host__ __device__ int64_t columns() const { return p.outer * p.inner; }
  __device__ C* Part(int64_t chunk, int which, int64_t column) const {
    return partial + (2 * chunk + which) * columns() + column;
  }
};

// y[place] = alpha sum, or is joined with it.
template <int N, class T, class Join, class C>
__device__ __forceinline__ void Finish(const SumShape<T, Join>& s, int64_t place, int64_t column,
                                       const C (&sum)[N]) {
  const int64_t outer = column / s.p.inner, within = column - outer * s.p.inner;
  T* to = s.y + (outer * s.p.size + place) * s.p.inner + within;
  Pack<T, N> pack;
  if (s.add) pack = LoadPack<N>(static_cast<const T*>(to));
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const C scaled = static_cast<C>(sum[i] * s.alpha);
    pack.v[i] = ConvertTo<T>(s.add ? Join{}(ConvertTo<C>(pack.v[i]), scaled) : scaled);
  }
  StorePack<N>(to, pack);
}

template <int N, class T, class Join>
__global__ void __launch_bounds__(kElementwiseThreads) SumKernel(SumShape<T, Join> s) {
  using C = ComputeType<T>;
  const int64_t packs = s.columns() / N, total = packs * s.chunks;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; t < total; t += step) {
    const int64_t chunk = t / packs, column = (t - chunk * packs) * N;
    const int64_t outer = column / s.p.inner;
    const T* from = s.x + outer * s.p.outer_stride + (column - outer * s.p.inner);
    const int64_t begin = chunk * s.rows;
    const int64_t end = begin + s.rows < s.p.count ? begin + s.rows : s.p.count;
    uint32_t place = s.keys[begin];
    bool came_in = begin > 0 && s.keys[begin - 1] == place;
    C sum[N];
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] = Join::template Neutral<C>();
    const auto flush = [&](bool goes_on) {
      if (place == static_cast<uint32_t>(s.p.size)) return;
      if (!came_in && !goes_on) {
        Finish<N>(s, place, column, sum);
        return;
      }
      C* part = s.Part(chunk, came_in ? 0 : 1, column);
#pragma unroll
      for (int i = 0; i < N; ++i) part[i] = sum[i];
    };
    for (int64_t r = begin; r < end; r += kAtOnce) {
      uint32_t places[kAtOnce];
      Pack<T, N> packs_of[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t at = r + k < end ? r + k : end - 1;
        places[k] = s.keys[at];
        packs_of[k] = LoadPack<N>(from + int64_t{s.numbers[at]} * s.p.row_stride);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (r + k >= end) break;
        if (places[k] != place) {
          flush(false);
          place = places[k];
          came_in = false;
#pragma unroll
          for (int i = 0; i < N; ++i) sum[i] = Join::template Neutral<C>();
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
          sum[i] = Join{}(sum[i], ConvertTo<C>(packs_of[k].v[i]));
        }
      }
    }
    flush(end < s.p.count && s.keys[end] == place);
  }
}

// The parts of chunks from `next` on whose first row goes to `place`, joined in order by a warp.
template <class T, class Join>
__device__ __forceinline__ ComputeType<T> JoinParts(const SumShape<T, Join>& s, int64_t next,
                                                    int64_t column, uint32_t place) {
  using C = ComputeType<T>;
  C all = Join::template Neutral<C>();
  for (next += threadIdx.x % 32;; next += 32) {
    const bool goes_on = next < s.chunks && s.keys[next * s.rows] == place;
    C part = goes_on ? *s.Part(next, 0, column) : Join::template Neutral<C>();
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      part = Join{}(part, static_cast<C>(__shfl_down_sync(kAllLanes, part, lanes)));
    }
    all = Join{}(all, static_cast<C>(__shfl_sync(kAllLanes, part, 0)));
    if (!__all_sync(kAllLanes, goes_on)) return all;
  }
}

// The runs that cross from one thread's rows into the next: a thread per chunk in which one begins.
// Of few columns, the warp helps with a run of more than kAlone chunks.
template <class T, class Join>
__global__ void __launch_bounds__(kElementwiseThreads) JoinKernel(SumShape<T, Join> s) {
  using C = ComputeType<T>;
  const int64_t columns = s.columns(), total = columns * s.chunks;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t most = columns < 32 ? kAlone : s.chunks;
  for (int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; t - lane < total; t += step) {
    const int64_t chunk = t / columns, column = t - chunk * columns;
    const int64_t begin = chunk * s.rows, end = begin + s.rows;
    uint32_t place = 0;
    bool begins = t < total && end < s.p.count;
    if (begins) {
      place = s.keys[end];
      begins = s.keys[end - 1] == place && place != static_cast<uint32_t>(s.p.size) &&
               (begin == 0 || s.keys[begin - 1] != place);
    }
    C sum[1] = {Join::template Neutral<C>()};
    int64_t next = chunk + 1;
    bool goes_on = begins;
    if (begins) sum[0] = *s.Part(chunk, 1, column);
    for (int64_t k = 0; k < most && goes_on; ++k, ++next) {
      goes_on = next < s.chunks && s.keys[next * s.rows] == place;
      if (goes_on) sum[0] = Join{}(sum[0], *s.Part(next, 0, column));
    }
    for (unsigned rest = __ballot_sync(kAllLanes, goes_on); rest != 0; rest &= rest - 1) {
      const int from = __ffs(static_cast<int>(rest)) - 1;
      const C others =
          JoinParts(s, __shfl_sync(kAllLanes, next, from), __shfl_sync(kAllLanes, column, from),
                    __shfl_sync(kAllLanes, place, from));
      if (lane == from) sum[0] = Join{}(sum[0], others);
    }
    if (begins) Finish<1>(s, place, column, sum);
  }
}

template <class T, class Join, int kPack>
cudaError_t SumSorted(const IndexSumRun& run, const SortedLayout& l, cudaStream_t stream) {
  using C = ComputeType<T>;
  const RowsProblem& p = run.problem;
  char* workspace = static_cast<char*>(run.workspace);
  SumShape<T, Join> s{};
  s.p = p;
  s.rows = RowsPerThread(p);
  s.chunks = CeilDiv(p.count, s.rows);
  s.add = run.add;
  s.alpha = static_cast<C>(run.alpha);
  s.keys = reinterpret_cast<const uint32_t*>(workspace + l.sorted_keys);
  s.numbers = reinterpret_cast<const uint32_t*>(workspace + l.sorted_rows);
  s.x = static_cast<const T*>(run.x);
  s.y = static_cast<T*>(run.y);
  s.partial = reinterpret_cast<C*>(workspace + l.partial);
  const int64_t columns = p.outer * p.inner;
  const bool packs = p.inner % kPack == 0;
  const int64_t threads = s.chunks * (packs ? columns / kPack : columns);
  cudaError_t error =
      packs ? Launch(SumKernel<kPack, T, Join>, CeilDiv(threads, int64_t{kElementwiseThreads}),
                     kElementwiseThreads, 0, stream, s)
            : Launch(SumKernel<1, T, Join>, CeilDiv(threads, int64_t{kElementwiseThreads}),
                     kElementwiseThreads, 0, stream, s);
  if (error != cudaSuccess || s.chunks < 2) return error;
  return Launch(JoinKernel<T, Join>, CeilDiv(s.chunks * columns, int64_t{kElementwiseThreads}),
                kElementwiseThreads, 0, stream, s);
}

// Of few rows: a thread per row and column, which joins all rows that go to its row's place, if its
// row is the first of them.
template <class T, class Join>
__global__ void __launch_bounds__(kElementwiseThreads)
    FewRowsKernel(SumShape<T, Join> s, int64_t skipped, const int64_t* index) {
  using C = ComputeType<T>;
  const int64_t columns = s.columns();
  const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t row = t / columns, column = t - row * columns, outer = column / s.p.inner;
  if (row >= s.p.count) return;
  const auto place_of = [&](int64_t k) { return FindPlace(index[k], s.p.size, s.p.from_end); };
  const int64_t place = place_of(row);
  if (place < 0 || place == skipped) return;
  for (int64_t k = 0; k < row; ++k) {
    if (place_of(k) == place) return;
  }
  const T* from = s.x + outer * s.p.outer_stride + (column - outer * s.p.inner);
  C sum[1] = {Join::template Neutral<C>()};
  for (int64_t k = row; k < s.p.count; ++k) {
    if (place_of(k) == place) sum[0] = Join{}(sum[0], ConvertTo<C>(from[k * s.p.row_stride]));
  }
  Finish<1>(s, place, column, sum);
}
template <class T, class Join>
cudaError_t LaunchFewRows(const IndexSumRun& run, cudaStream_t stream) {
  SumShape<T, Join> s{};
  s.p = run.problem;
  s.add = run.add;
  s.alpha = static_cast<ComputeType<T>>(run.alpha);
  s.x = static_cast<const T*>(run.x);
  s.y = static_cast<T*>(run.y);
  return Launch(FewRowsKernel<T, Join>,
                CeilDiv(s.p.count * s.columns(), int64_t{kElementwiseThreads}), kElementwiseThreads,
                0, stream, s, run.skipped, run.index);
}

// kPack columns at a time where rows begin at multiples of so many.
template <class T, class Join, int kPack>
cudaError_t LaunchSorted(const IndexSumRun& run, cudaStream_t stream) {
  const RowsProblem& p = run.problem;
  if (p.count <= 0 || p.outer * p.inner <= 0 || p.size <= 0) return cudaSuccess;
  if (InOneLaunch(p)) return LaunchFewRows<T, Join>(run, stream);
  SortedLayout l;
  cudaError_t error = SortedLayoutOf(sizeof(ComputeType<T>), p, &l);
  if (error == cudaSuccess) error = SortPlaces(run, l, stream);
  return error == cudaSuccess ? SumSorted<T, Join, kPack>(run, l, stream) : error;
}

}  // namespace cuda
}  // namespace oneflow_lite
