// SPDX-License-Identifier: Apache-2.0
//
// Rows summed by their places, the same bits every time: the places are sorted with the rows'
// numbers (stably), so that rows of one place are neighbours in their order. A thread owns some
// columns of kRows sorted rows: it adds up runs of one place. A run that lies within its rows goes
// to the result at once. One that crosses into the next thread's goes to the workspace, and a
// second kernel adds up such parts in order.
#include <cub/device/device_radix_sort.cuh>

#include "primitive/cuda/moves/index_rows_launch.h"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/places.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int64_t kTooMany = (int64_t{1} << 32) - 1;  // the place of rows that go nowhere fits
constexpr int kAtOnce = 4;                            // rows in flight

// Sorted rows that a thread adds up: few where there are few columns to share out.
int64_t RowsPerThread(const RowsProblem& p) {
  const int64_t columns = p.outer * p.inner;
  int64_t rows = 8;
  while (rows < 128 && p.count * columns / (2 * rows) > (int64_t{1} << 18)) rows *= 2;
  return rows;
}

// The workspace, in parts that begin at multiples of 256 bytes.
struct Layout {
  size_t keys, rows, sorted_keys, sorted_rows, partial, sort, total;
};
size_t Rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

int KeyBits(int64_t size) {
  int bits = 1;
  while (bits < 32 && (int64_t{1} << bits) <= size) ++bits;  // `size` itself is a key
  return bits;
}

cudaError_t Sort(void* workspace, size_t* bytes, const uint32_t* keys, uint32_t* sorted_keys,
                 const uint32_t* rows, uint32_t* sorted_rows, const RowsProblem& p,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(workspace, *bytes, keys, sorted_keys, rows, sorted_rows,
                                         p.count, 0, KeyBits(p.size), stream);
}

cudaError_t LayoutOf(size_t compute_bytes, const RowsProblem& p, Layout* l) {
  size_t sort = 0;
  const cudaError_t error = Sort(nullptr, &sort, nullptr, nullptr, nullptr, nullptr, p, nullptr);
  if (error != cudaSuccess) return error;
  const size_t list = Rounded(static_cast<size_t>(p.count) * sizeof(uint32_t));
  const int64_t chunks = CeilDiv(p.count, RowsPerThread(p));
  l->keys = 0;
  l->rows = list;
  l->sorted_keys = 2 * list;
  l->sorted_rows = 3 * list;
  l->partial = 4 * list;
  l->sort =
      l->partial + Rounded(static_cast<size_t>(2 * chunks * p.outer * p.inner) * compute_bytes);
  l->total = l->sort + Rounded(sort);
  return cudaSuccess;
}

__global__ void __launch_bounds__(kElementwiseThreads)
    KeysKernel(RowsProblem p, int64_t skipped, const int64_t* index, uint32_t* keys,
               uint32_t* rows) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t k = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < p.count; k += step) {
    const int64_t place = FindPlace(index[k], p.size, p.from_end);
    const bool goes = place >= 0 && place != skipped;
    keys[k] = static_cast<uint32_t>(goes ? place : p.size);
    rows[k] = static_cast<uint32_t>(k);
  }
}

template <class T>
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

  __device__ int64_t columns() const { return p.outer * p.inner; }
  __device__ C* Part(int64_t chunk, int which, int64_t column) const {
    return partial + (2 * chunk + which) * columns() + column;
  }
};

// y[place] = or += alpha sum.
template <int N, class T, class C>
__device__ __forceinline__ void Finish(const SumShape<T>& s, uint32_t place, int64_t column,
                                       const C (&sum)[N]) {
  const int64_t outer = column / s.p.inner, within = column - outer * s.p.inner;
  T* to = s.y + (outer * s.p.size + place) * s.p.inner + within;
  Pack<T, N> pack;
  if (s.add) pack = LoadPack<N>(static_cast<const T*>(to));
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const C scaled = static_cast<C>(sum[i] * s.alpha);
    pack.v[i] = ConvertTo<T>(s.add ? static_cast<C>(ConvertTo<C>(pack.v[i]) + scaled) : scaled);
  }
  StorePack<N>(to, pack);
}

template <int N, class T>
__global__ void __launch_bounds__(kElementwiseThreads) SumKernel(SumShape<T> s) {
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
    C sum[N] = {};
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
          for (int i = 0; i < N; ++i) sum[i] = C(0);
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
          sum[i] = static_cast<C>(sum[i] + ConvertTo<C>(packs_of[k].v[i]));
        }
      }
    }
    flush(end < s.p.count && s.keys[end] == place);
  }
}

// The runs that cross from one thread's rows into the next: a thread per chunk in which one begins.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) JoinKernel(SumShape<T> s) {
  using C = ComputeType<T>;
  const int64_t columns = s.columns(), total = columns * s.chunks;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; t < total; t += step) {
    const int64_t chunk = t / columns, column = t - chunk * columns;
    const int64_t begin = chunk * s.rows, end = begin + s.rows;
    if (end >= s.p.count) continue;
    const uint32_t place = s.keys[end];
    if (s.keys[end - 1] != place || place == static_cast<uint32_t>(s.p.size)) continue;
    if (begin > 0 && s.keys[begin - 1] == place) continue;  // it began before
    C sum[1] = {*s.Part(chunk, 1, column)};
    for (int64_t next = chunk + 1; next < s.chunks && s.keys[next * s.rows] == place; ++next) {
      sum[0] = static_cast<C>(sum[0] + *s.Part(next, 0, column));
    }
    Finish<1>(s, place, column, sum);
  }
}

template <class T>
cudaError_t SumSorted(const IndexSumRun& run, const Layout& l, cudaStream_t stream) {
  using C = ComputeType<T>;
  const RowsProblem& p = run.problem;
  char* workspace = static_cast<char*>(run.workspace);
  SumShape<T> s{};
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
  // A pack of 8 bytes, whose rows then begin at multiples of it.
  constexpr int kPack = sizeof(T) < 8 ? 8 / static_cast<int>(sizeof(T)) : 1;
  const bool packs = p.inner % kPack == 0;
  const int64_t threads = s.chunks * (packs ? columns / kPack : columns);
  cudaError_t error =
      packs ? Launch(SumKernel<kPack, T>, CeilDiv(threads, int64_t{kElementwiseThreads}),
                     kElementwiseThreads, 0, stream, s)
            : Launch(SumKernel<1, T>, CeilDiv(threads, int64_t{kElementwiseThreads}),
                     kElementwiseThreads, 0, stream, s);
  if (error != cudaSuccess || s.chunks < 2) return error;
  return Launch(JoinKernel<T>, CeilDiv(s.chunks * columns, int64_t{kElementwiseThreads}),
                kElementwiseThreads, 0, stream, s);
}

template <class T>
cudaError_t LaunchIndexSum(const IndexSumRun& run, cudaStream_t stream) {
  const RowsProblem& p = run.problem;
  if (!run.add) {
    const auto bytes = static_cast<size_t>(p.outer * p.size * p.inner) * sizeof(T);
    const cudaError_t error = cudaMemsetAsync(run.y, 0, bytes, stream);
    if (error != cudaSuccess) return error;
  }
  if (p.count <= 0 || p.outer * p.inner <= 0 || p.size <= 0) return cudaSuccess;
  if (p.count >= kTooMany || p.size >= kTooMany) return cudaErrorNotSupported;
  Layout l;
  cudaError_t error = LayoutOf(sizeof(ComputeType<T>), p, &l);
  if (error != cudaSuccess) return error;
  char* workspace = static_cast<char*>(run.workspace);
  const auto list = [&](size_t at) { return reinterpret_cast<uint32_t*>(workspace + at); };
  error = Launch(KeysKernel, CeilDiv(p.count, int64_t{kElementwiseThreads}), kElementwiseThreads, 0,
                 stream, p, run.skipped, run.index, list(l.keys), list(l.rows));
  if (error != cudaSuccess) return error;
  size_t bytes = l.total - l.sort;
  error = Sort(workspace + l.sort, &bytes, list(l.keys), list(l.sorted_keys), list(l.rows),
               list(l.sorted_rows), p, stream);
  return error == cudaSuccess ? SumSorted<T>(run, l, stream) : error;
}

}  // namespace

cudaError_t IndexSumWorkspaceBytes(DType dtype, const RowsProblem& p, size_t* bytes) {
  *bytes = 0;
  if (p.count <= 0 || p.count >= kTooMany || p.size >= kTooMany) return cudaSuccess;
  Layout l;
  const cudaError_t error = LayoutOf(SizeOf(oneflow_lite::ComputeType(dtype)), p, &l);
  if (error == cudaSuccess) *bytes = l.total;
  return error;
}

IndexSumLauncher FindIndexSum(DType dtype) {
  return VisitDeviceNumeric<IndexSumLauncher>(dtype, [](auto tag) -> IndexSumLauncher {
    return &LaunchIndexSum<typename decltype(tag)::type>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
