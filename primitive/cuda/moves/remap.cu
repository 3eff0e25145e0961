// SPDX-License-Identifier: Apache-2.0
//
// flip, roll and pad.
//
// Runs: most columns of most rows are neighbours in what is read (remap_spans.cuh; long rows:
// remap_long.cuh).
//
// Packs: a thread writes 16 bytes of any other result. Neighbours that are read forwards or
// backwards are one access, or two. A pack of others is read element by element, and its whole warp
// waits for it.
//
// Spans: where other rows are so short that most warps would meet such a pack, a block gathers a
// run of the result element by element in shared memory, and writes it in packs.
#include "primitive/cuda/moves/remap_launch.h"
#include "primitive/cuda/moves/remap_long.cuh"
#include "primitive/cuda/moves/remap_spans.cuh"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// What a result is indexed with, and the signed type of places in what is read.
struct Near {
  using Index = uint32_t;
  using Int = int32_t;
};
struct Far {
  using Index = int64_t;
  using Int = int64_t;
};

struct RemapRun {
  RemapShape shape;
  Divisor out[RemapShape::kMost];
  int64_t extent = 1;  // elements from the first to the last that may be read

  explicit RemapRun(const RemapShape& s) : shape(s) {
    for (int d = 0; d < s.ndim; ++d) {
      out[d] = Divisor(s.dims[d].out);
      extent += (s.dims[d].size - 1) * s.dims[d].stride;
    }
  }
  // Whether Near has the bits; a thread's last index may lie past the last element.
  bool IsNear() const {
    constexpr int64_t kDim = int64_t{1} << 30, kAll = (int64_t{1} << 31) - (1 << 16);
    bool near = shape.numel < kAll && extent < kAll;
    for (int d = 0; d < shape.ndim; ++d) {
      near = near && shape.dims[d].size < kDim && shape.dims[d].out < kDim;
    }
    return near;
  }
  OFL_HOST_DEVICE const RemapDim& last() const { return shape.dims[shape.ndim - 1]; }
  // The row of an index of the result, and the column in it.
  template <class As>
  __device__ __forceinline__ typename As::Index RowOf(typename As::Index i,
                                                      typename As::Int* column) const {
    using Index = typename As::Index;
    const Index row = out[shape.ndim - 1].Quotient(i);
    *column = static_cast<typename As::Int>(i - row * static_cast<Index>(last().out));
    return row;
  }
  template <class As>
  __device__ __forceinline__ typename As::Int StrideOf(int d) const {
    return static_cast<typename As::Int>(shape.dims[d].stride);
  }

  // Where the row of a linear index of the outer dims begins in what is read; -1: nowhere.
  template <class As>
  __device__ typename As::Int OffsetOf(typename As::Index row) const {
    using Int = typename As::Int;
    Int offset = 0;
    bool inside = true;
#pragma unroll 1
    for (int d = shape.ndim - 2; d >= 0; --d) {
      const auto rest = out[d].Quotient(row);
      const auto i = row - rest * static_cast<typename As::Index>(shape.dims[d].out);
      const Int place = shape.dims[d].PlaceAs(static_cast<Int>(i));
      inside = inside && place >= 0;
      offset += place * StrideOf<As>(d);
      row = rest;
    }
    return inside ? offset : -1;
  }
};

// N elements from x + at on, at any alignment.
template <int N, class Word>
__device__ __forceinline__ Pack<Word, N> LoadNeighbours(const RemapRun& run, const Word* x,
                                                        int64_t at) {
  if constexpr (N > 1) {
    if (at >= N && at + 2 * N <= run.extent) return LoadShiftedPack<N>(x + at);
  }
  return LoadPack<N>(x + at);
}

// The elements from index i on, element by element: from `column` of a row that begins at `offset`.
template <class As, int N, class Word>
__device__ __forceinline__ Pack<Word, N> LoadApart(const RemapRun& run, int64_t i,
                                                   typename As::Index row, typename As::Int column,
                                                   typename As::Int offset, Word fill,
                                                   const Word* x) {
  using Int = typename As::Int;
  const RemapDim& last = run.last();
  const Int out = static_cast<Int>(last.out), stride = static_cast<Int>(last.stride);
  Pack<Word, N> pack;
  if (out < N) {  // several rows
#pragma unroll 1
    for (int k = 0; k < N; ++k) {
      if (column == out) {
        column = 0;
        offset = run.OffsetOf<As>(++row);
      }
      const bool there = i + k < run.shape.numel && offset >= 0;
      const Int place = there ? last.PlaceAs(column) : -1;
      const Word v = place >= 0 ? x[offset + place * stride] : fill;
#pragma unroll
      for (int e = 0; e < N; ++e) {
        if (e == k) pack.v[e] = v;
      }
      ++column;
    }
    return pack;
  }
  const bool crosses = column + N > out;
  const Int next = crosses && i + N <= run.shape.numel ? run.OffsetOf<As>(++row) : -1;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const bool over = column + k >= out;
    const Int begin = over ? next : offset;
    const Int place = begin >= 0 ? last.PlaceAs(column + k - (over ? out : 0)) : -1;
    pack.v[k] = place >= 0 ? x[begin + place * stride] : fill;
  }
  return pack;
}

template <class As, int N, class Word>
__global__ void __launch_bounds__(kElementwiseThreads)
    RemapKernel(const __grid_constant__ RemapRun run, Word fill, const Word* x, Word* y) {
  using Int = typename As::Int;
  const RemapDim& last = run.last();
  const int64_t step = int64_t{gridDim.x} * blockDim.x * N;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; i < run.shape.numel;
       i += step) {
    Int column;
    const auto row = run.RowOf<As>(static_cast<typename As::Index>(i), &column);
    const Int offset = run.OffsetOf<As>(row);
    Pack<Word, N> pack;
    const Int first = last.PlaceAs(column), end = last.PlaceAs(column + (N - 1));
    const bool in_row = column + N <= static_cast<Int>(last.out);
    const bool packs = N > 1 && in_row && last.stride == 1 && offset >= 0 && first >= 0 && end >= 0;
    if (packs && end - first == N - 1) {
      pack = LoadNeighbours<N>(run, x, offset + first);
    } else if (packs && first - end == N - 1 && last.mode != RemapMode::kWrap) {
      const Pack<Word, N> turned = LoadNeighbours<N>(run, x, offset + end);
#pragma unroll
      for (int k = 0; k < N; ++k) pack.v[k] = turned.v[N - 1 - k];
    } else {
      pack = LoadApart<As, N>(run, i, row, column, offset, fill, x);
    }
    if (i + N <= run.shape.numel) {
      StorePack<N>(y + i, pack);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (i + k < run.shape.numel) y[i + k] = pack.v[k];
      }
    }
  }
}

constexpr int kSpanned = 16;  // elements of a thread, all read before one is waited for
constexpr int kSpan = kSpanned * kElementwiseThreads;
constexpr int64_t kShortestSpanned = 8;  // elements of a row: the begins of a span's rows are held
// A warp of the other kernel has 32 packs: of rows shorter than four times that, every fourth warp
// would meet the end of one.
constexpr int64_t kLongestSpanned = 128;  // packs of a row

// Whether a block gathers a span. Rows of whole packs that are read in packs need it not.
template <class Word>
bool GathersSpans(const RemapRun& run) {
  constexpr int64_t kPack = kPackSize<Word>;
  const RemapDim& last = run.shape.dims[run.shape.ndim - 1];
  const bool whole = last.mode == RemapMode::kFlip ||
                     (last.mode == RemapMode::kShift && last.shift == 0 && last.size == last.out);
  if (whole && last.stride == 1 && last.out % kPack == 0) return false;
  return kShortestSpanned <= last.out && last.out < kLongestSpanned * kPack && run.IsNear();
}

template <class Word>
__global__ void __launch_bounds__(kElementwiseThreads)
    SpanKernel(const __grid_constant__ RemapRun run, Word fill, const Word* x, Word* y) {
  constexpr int kPack = kPackSize<Word>;
  __shared__ alignas(kPackBytes) Word span[kSpan];
  __shared__ int32_t begins[kSpan / kShortestSpanned + 2];
  const auto numel = static_cast<uint32_t>(run.shape.numel), begin = blockIdx.x * kSpan;
  const uint32_t count = numel - begin < kSpan ? numel - begin : kSpan;
  const RemapDim& last = run.last();
  int32_t column;
  const uint32_t first_row = run.RowOf<Near>(begin, &column);
  const uint32_t rows = run.RowOf<Near>(begin + count - 1, &column) - first_row + 1;
  for (uint32_t r = threadIdx.x; r < rows; r += kElementwiseThreads) {
    begins[r] = run.OffsetOf<Near>(first_row + r);
  }
  __syncthreads();
  Word values[kSpanned];
#pragma unroll
  for (int k = 0; k < kSpanned; ++k) {
    const uint32_t i = k * kElementwiseThreads + threadIdx.x;
    values[k] = fill;
    if (i >= count) continue;
    const uint32_t row = run.RowOf<Near>(begin + i, &column) - first_row;
    const int32_t place = last.PlaceAs(column), from = begins[row];
    if ((place | from) >= 0) values[k] = x[from + place * static_cast<int32_t>(last.stride)];
  }
#pragma unroll
  for (int k = 0; k < kSpanned; ++k) span[k * kElementwiseThreads + threadIdx.x] = values[k];
  __syncthreads();
  for (uint32_t i = threadIdx.x * kPack; i < count; i += kElementwiseThreads * kPack) {
    if (i + kPack <= count) {
      StorePack<kPack>(y + begin + i, LoadAlignedPack<kPack>(span + i));
    } else {
      for (uint32_t j = i; j < count; ++j) y[begin + j] = span[j];
    }
  }
}

template <class Word>
cudaError_t RemapWords(const RemapShape& s, const FillElements& fill, const void* x, void* y,
                       cudaStream_t stream) {
  constexpr int kPack = kPackBytes / static_cast<int>(sizeof(Word));
  Word element;
  memcpy(&element, &fill, sizeof(Word));
  const RemapRun run(s);
  const auto* from = static_cast<const Word*>(x);
  auto* to = static_cast<Word*>(y);
  if constexpr (kPack > 1) {
    if (run.IsNear()) {
      const RemapRows rows(s, kPack);
      if (ServesLongRows(rows, kPack)) return LaunchLongRows(rows, element, from, to, stream);
      if (RemapSpans::Serve(rows, kPack)) {
        uint4 filled;
        memcpy(&filled, &fill, sizeof(filled));
        return LaunchRunSpans(RemapSpans(s, rows, sizeof(Word), from), filled, from, to, stream);
      }
    }
  }
  if constexpr (sizeof(Word) <= 4) {
    if (GathersSpans<Word>(run)) {
      return Launch(SpanKernel<Word>, CeilDiv(s.numel, int64_t{kSpan}), kElementwiseThreads, 0,
                    stream, run, element, from, to);
    }
  }
  const auto kernel = run.IsNear() ? RemapKernel<Near, kPack, Word> : RemapKernel<Far, kPack, Word>;
  return Launch(kernel, CeilDiv(s.numel, int64_t{kPack} * kElementwiseThreads), kElementwiseThreads,
                0, stream, run, element, from, to);
}

// Where the innermost dim's sizes and shift, all strides and the addresses are whole numbers of
// wider words, the same in those.
RemapShape Widen(int* item, const RemapShape& s, const void* x, const void* y) {
  RemapShape wide = s;
  RemapDim& last = wide.dims[wide.ndim - 1];
  if (last.stride != 1 || (last.mode != RemapMode::kShift && last.mode != RemapMode::kWrap)) {
    return wide;
  }
  const uint64_t bytes = static_cast<uint64_t>(*item);
  uint64_t all = static_cast<uint64_t>(last.size | last.out | last.shift) * bytes;
  for (int d = 0; d + 1 < s.ndim; ++d) all |= static_cast<uint64_t>(s.dims[d].stride) * bytes;
  all |= reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y) | kPackBytes;
  const auto word = static_cast<int64_t>(all & (~all + 1)), per = word / *item;
  if (per <= 1) return wide;
  last.size /= per, last.out /= per, last.shift /= per, wide.numel /= per;
  for (int d = 0; d + 1 < s.ndim; ++d) wide.dims[d].stride /= per;
  *item = static_cast<int>(word);
  return wide;
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    RemapBackwardKernel(const __grid_constant__ RemapShape s, int64_t numel, const T* dy, T* dx) {
  using C = ComputeType<T>;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < numel; i += step) {
    int64_t rest = i, count = 1;
#pragma unroll 1
    for (int d = s.ndim - 1; d >= 0; --d) {
      const int64_t next = rest / s.dims[d].size;
      count *= s.dims[d].Count(rest - next * s.dims[d].size);
      rest = next;
    }
    C sum = C(0);
#pragma unroll 1
    for (int64_t k = 0; k < count; ++k) {
      int64_t places = i, left = k, offset = 0, width = 1;
#pragma unroll 1
      for (int d = s.ndim - 1; d >= 0; --d) {
        const RemapDim& dim = s.dims[d];
        const int64_t next = places / dim.size, place = places - next * dim.size;
        const int64_t n = dim.Count(place), after = n > 1 ? left / n : left;
        offset += dim.Index(place, left - after * n) * width;
        left = after, places = next;
        width *= dim.out;
      }
      sum += ConvertTo<C>(dy[offset]);
    }
    dx[i] = ConvertTo<T>(sum);
  }
}

template <class T>
cudaError_t LaunchRemapBackward(const RemapShape& s, const void* dy, void* dx,
                                cudaStream_t stream) {
  int64_t numel = 1;
  for (int d = 0; d < s.ndim; ++d) numel *= s.dims[d].size;
  if (numel <= 0) return cudaSuccess;
  return Launch(RemapBackwardKernel<T>, CeilDiv(numel, int64_t{kElementwiseThreads}),
                kElementwiseThreads, 0, stream, s, numel, static_cast<const T*>(dy),
                static_cast<T*>(dx));
}

}  // namespace

cudaError_t LaunchRemap(int item, const RemapShape& shape, const FillElements& fill, const void* x,
                        void* y, cudaStream_t stream) {
  if (shape.numel <= 0) return cudaSuccess;
  const RemapShape s = Widen(&item, shape, x, y);
  switch (item) {
    case 1:
      return RemapWords<uint8_t>(s, fill, x, y, stream);
    case 2:
      return RemapWords<uint16_t>(s, fill, x, y, stream);
    case 4:
      return RemapWords<uint32_t>(s, fill, x, y, stream);
    case 8:
      return RemapWords<uint64_t>(s, fill, x, y, stream);
    default:
      return RemapWords<uint4>(s, fill, x, y, stream);
  }
}

RemapBackwardLauncher FindRemapBackward(DType dtype) {
  return VisitDeviceFloating<RemapBackwardLauncher>(dtype, [](auto tag) -> RemapBackwardLauncher {
    return &LaunchRemapBackward<typename decltype(tag)::type>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
