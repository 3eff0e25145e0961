// SPDX-License-Identifier: Apache-2.0
//
// flip, roll and pad: a thread writes 16 bytes of the result. It works out the coordinates once; of
// the innermost dim, places that follow each other, forwards or backwards, are one access, or two
// that are aligned. Where rows are not whole packs, each warp meets the end of one: then two
// coordinates.
#include "primitive/cuda/moves/remap_launch.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

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
  __device__ const RemapDim& last() const { return shape.dims[shape.ndim - 1]; }

  // Where the row of a linear index of the outer dims begins in what is read; -1: nowhere.
  template <class Index>
  __device__ int64_t OffsetOf(Index row) const {
    int64_t offset = 0;
    bool inside = true;
#pragma unroll 1
    for (int d = shape.ndim - 2; d >= 0; --d) {
      const Index rest = out[d].Quotient(row);
      const int64_t i = static_cast<int64_t>(row - rest * static_cast<Index>(shape.dims[d].out));
      const int64_t place = shape.dims[d].Place(i);
      inside = inside && place >= 0;
      offset += place * shape.dims[d].stride;
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
template <int N, class Word, class Index>
__device__ __forceinline__ Pack<Word, N> LoadApart(const RemapRun& run, int64_t i, Index row,
                                                   int64_t column, int64_t offset, Word fill,
                                                   const Word* x) {
  const RemapDim& last = run.last();
  Pack<Word, N> pack;
  if (last.out < N) {  // several rows
#pragma unroll 1
    for (int k = 0; k < N; ++k) {
      if (column == last.out) {
        column = 0;
        offset = run.OffsetOf(++row);
      }
      const bool there = i + k < run.shape.numel && offset >= 0;
      const int64_t place = there ? last.Place(column) : -1;
      const Word v = place >= 0 ? x[offset + place * last.stride] : fill;
#pragma unroll
      for (int e = 0; e < N; ++e) {
        if (e == k) pack.v[e] = v;
      }
      ++column;
    }
    return pack;
  }
  const bool crosses = column + N > last.out;
  const int64_t next = crosses && i + N <= run.shape.numel ? run.OffsetOf(++row) : -1;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const bool over = column + k >= last.out;
    const int64_t begin = over ? next : offset;
    const int64_t place = begin >= 0 ? last.Place(column + k - (over ? last.out : 0)) : -1;
    pack.v[k] = place >= 0 ? x[begin + place * last.stride] : fill;
  }
  return pack;
}

template <int N, class Word, class Index>
__global__ void __launch_bounds__(kElementwiseThreads)
    RemapKernel(const __grid_constant__ RemapRun run, Word fill, const Word* x, Word* y) {
  const RemapDim& last = run.last();
  const Divisor& row_of = run.out[run.shape.ndim - 1];
  const int64_t step = int64_t{gridDim.x} * blockDim.x * N;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; i < run.shape.numel;
       i += step) {
    const Index row = row_of.Quotient(static_cast<Index>(i));
    const int64_t column =
        static_cast<int64_t>(static_cast<Index>(i) - row * static_cast<Index>(last.out));
    const int64_t offset = run.OffsetOf(row);
    Pack<Word, N> pack;
    const int64_t first = last.Place(column), end = last.Place(column + N - 1);
    const bool in_row = column + N <= last.out;
    const bool packs = N > 1 && in_row && last.stride == 1 && offset >= 0 && first >= 0 && end >= 0;
    if (packs && end - first == N - 1) {
      pack = LoadNeighbours<N>(run, x, offset + first);
    } else if (packs && first - end == N - 1 && last.mode != RemapMode::kWrap) {
      const Pack<Word, N> turned = LoadNeighbours<N>(run, x, offset + end);
#pragma unroll
      for (int k = 0; k < N; ++k) pack.v[k] = turned.v[N - 1 - k];
    } else {
      pack = LoadApart<N>(run, i, row, column, offset, fill, x);
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

template <class Word>
cudaError_t RemapWords(const RemapShape& s, const FillElements& fill, const void* x, void* y,
                       cudaStream_t stream) {
  constexpr int kPack = kPackBytes / static_cast<int>(sizeof(Word));
  Word element;
  memcpy(&element, &fill, sizeof(Word));
  const RemapRun run(s);
  const auto* from = static_cast<const Word*>(x);
  auto* to = static_cast<Word*>(y);
  const int64_t blocks = CeilDiv(s.numel, int64_t{kPack} * kElementwiseThreads);
  // A thread's last index may lie past the last element.
  if (s.numel < (int64_t{1} << 31) - kPack) {
    return Launch(RemapKernel<kPack, Word, uint32_t>, blocks, kElementwiseThreads, 0, stream, run,
                  element, from, to);
  }
  return Launch(RemapKernel<kPack, Word, int64_t>, blocks, kElementwiseThreads, 0, stream, run,
                element, from, to);
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
