// SPDX-License-Identifier: Apache-2.0
//
// index_select and index_copy: rows moved by words of up to 16 bytes. A word's row and place come
// from one division by multiplication.
#include "primitive/cuda/moves/index_rows_launch.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/places.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// Of index_select: threads of a block, and words of a thread, which lie side by side in the block
// (docs/lab/55-rearrangements-in-packs.md).
constexpr int kSelectThreads = 128;
constexpr int kWords = 2;

// Counted in words.
struct SelectShape {
  int64_t total;
  Divisor inner, count;  // words of a row, rows of an outer one
  int64_t size, outer_stride, row_stride;
  bool from_end;

  __device__ __forceinline__ int64_t Find(int64_t place) const {
    return FindPlace(place, size, from_end);
  }
};
SelectShape ShapeOf(const RowsProblem& p, int64_t per) {  // elements of a word
  return {p.outer * p.count * (p.inner / per),
          Divisor(p.inner / per),
          Divisor(p.count),
          p.size,
          p.outer_stride / per,
          p.row_stride / per,
          p.from_end};
}

// The grid covers all words. `from` is null where a place is outside.
template <class Index, class Word>
__global__ void __launch_bounds__(kSelectThreads)
    SelectKernel(SelectShape s, Word missing, const int64_t* index, const Word* x, Word* y) {
  const int64_t first = int64_t{blockIdx.x} * (kSelectThreads * kWords) + threadIdx.x;
  const Word* from[kWords];
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    const int64_t at = first + w * kSelectThreads;
    from[w] = nullptr;
    if (at >= s.total) continue;
    const Index row = s.inner.Quotient(static_cast<Index>(at));
    const Index column = static_cast<Index>(at) - row * static_cast<Index>(s.inner.value);
    const Index outer = s.count.Quotient(row);
    const int64_t place = s.Find(index[row - outer * static_cast<Index>(s.count.value)]);
    if (place < 0) continue;
    from[w] = x + static_cast<int64_t>(outer) * s.outer_stride + place * s.row_stride +
              static_cast<int64_t>(column);
  }
  Word words[kWords];
#pragma unroll
  for (int w = 0; w < kWords; ++w) words[w] = from[w] ? *from[w] : missing;
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    const int64_t at = first + w * kSelectThreads;
    if (at < s.total) StoreWord(y + at, words[w]);
  }
}

template <class Word>
cudaError_t SelectWords(int item, const RowsProblem& p, const MissingElements& missing,
                        const int64_t* index, const void* x, void* y, cudaStream_t stream) {
  const SelectShape s = ShapeOf(p, static_cast<int64_t>(sizeof(Word)) / item);
  if (s.total <= 0) return cudaSuccess;
  Word absent;
  memcpy(&absent, &missing, sizeof(Word));
  const auto kernel =
      s.total < (int64_t{1} << 31) ? SelectKernel<uint32_t, Word> : SelectKernel<int64_t, Word>;
  return Launch(kernel, CeilDiv(s.total, int64_t{kWords} * kSelectThreads), kSelectThreads, 0,
                stream, s, absent, index, static_cast<const Word*>(x), static_cast<Word*>(y));
}

// Of few rows each looks at those behind it: last[k] is k + 1 where none of them has its place.
__global__ void __launch_bounds__(kElementwiseThreads)
    FewRowsKernel(SelectShape s, const int64_t* index, unsigned long long* last) {
  const int64_t k = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t count = s.count.value;
  if (k >= count) return;
  const int64_t place = s.Find(index[k]);
  bool wins = true;
  for (int64_t later = k + 1; later < count; ++later) wins = wins && s.Find(index[later]) != place;
  last[k] = wins ? static_cast<unsigned long long>(k + 1) : 0;
}

// The last row that names each place: their numbers grow, so that the order in which threads come
// does not matter. 0: none.
__global__ void __launch_bounds__(kElementwiseThreads)
    LastRowKernel(SelectShape s, const int64_t* index, unsigned long long* last) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t k = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < s.count.value; k += step) {
    const int64_t place = s.Find(index[k]);
    if (place < 0) continue;
    atomicMax(last + place, static_cast<unsigned long long>(k + 1));
  }
}

// Whether no row behind the k-th goes to its place.
__device__ __forceinline__ bool IsLast(const SelectShape& s, const int64_t* index, int64_t k,
                                       int64_t place) {
  for (int64_t later = k + 1; later < s.count.value; ++later) {
    if (s.Find(index[later]) == place) return false;
  }
  return true;
}

// last: by row where `few`, else by place; null where each thread looks for it.
template <class Index, class Word>
__global__ void __launch_bounds__(kElementwiseThreads)
    CopyRowsKernel(SelectShape s, bool few, const int64_t* index, const unsigned long long* last,
                   const Word* x, Word* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.total; i += step) {
    const Index row = s.inner.Quotient(static_cast<Index>(i));
    const Index column = static_cast<Index>(i) - row * static_cast<Index>(s.inner.value);
    const Index outer = s.count.Quotient(row);
    const int64_t k = static_cast<int64_t>(row - outer * static_cast<Index>(s.count.value));
    const int64_t place = s.Find(index[k]);
    if (place < 0) continue;
    if (last ? last[few ? k : place] != static_cast<unsigned long long>(k + 1)
             : !IsLast(s, index, k, place)) {
      continue;
    }
    const Word word = x[static_cast<int64_t>(outer) * s.outer_stride + k * s.row_stride +
                        static_cast<int64_t>(column)];
    StoreWord(y + (static_cast<int64_t>(outer) * s.size + place) * s.inner.value +
                  static_cast<int64_t>(column),
              word);
  }
}

template <class Word>
cudaError_t CopyWords(int item, const RowsProblem& p, const int64_t* index, const void* x, void* y,
                      void* workspace, cudaStream_t stream) {
  const SelectShape s = ShapeOf(p, static_cast<int64_t>(sizeof(Word)) / item);
  if (s.total <= 0 || p.size <= 0) return cudaSuccess;
  auto* last = static_cast<unsigned long long*>(workspace);
  const bool few = p.count <= kFewRows, at_once = InOneLaunch(p);
  const int64_t row_blocks = CeilDiv(p.count, int64_t{kElementwiseThreads});
  cudaError_t error = cudaSuccess;
  if (at_once) {
    last = nullptr;
  } else if (few) {
    error = Launch(FewRowsKernel, row_blocks, kElementwiseThreads, 0, stream, s, index, last);
  } else {
    error = cudaMemsetAsync(last, 0, static_cast<size_t>(p.size) * sizeof(*last), stream);
    if (error != cudaSuccess) return error;
    error = Launch(LastRowKernel, row_blocks, kElementwiseThreads, 0, stream, s, index, last);
  }
  if (error != cudaSuccess) return error;
  const int64_t blocks = CeilDiv(s.total, int64_t{kElementwiseThreads});
  const auto* from = static_cast<const Word*>(x);
  auto* to = static_cast<Word*>(y);
  const unsigned long long* named = last;
  if (s.total < (int64_t{1} << 31)) {
    return Launch(CopyRowsKernel<uint32_t, Word>, blocks, kElementwiseThreads, 0, stream, s, few,
                  index, named, from, to);
  }
  return Launch(CopyRowsKernel<int64_t, Word>, blocks, kElementwiseThreads, 0, stream, s, few,
                index, named, from, to);
}

// The most bytes, a power of two up to 16, that rows, strides and addresses are multiples of.
int WordBytes(int item, const RowsProblem& p, const void* x, const void* y) {
  const uint64_t all = static_cast<uint64_t>((p.inner | p.outer_stride | p.row_stride) * item) |
                       reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y) | 16;
  return static_cast<int>(all & (~all + 1));
}

}  // namespace

cudaError_t LaunchIndexSelect(int item, const RowsProblem& p, const MissingElements& missing,
                              const int64_t* index, const void* x, void* y, cudaStream_t stream) {
  switch (WordBytes(item, p, x, y)) {
    case 1:
      return SelectWords<uint8_t>(item, p, missing, index, x, y, stream);
    case 2:
      return SelectWords<uint16_t>(item, p, missing, index, x, y, stream);
    case 4:
      return SelectWords<uint32_t>(item, p, missing, index, x, y, stream);
    case 8:
      return SelectWords<uint2>(item, p, missing, index, x, y, stream);
    default:
      return SelectWords<uint4>(item, p, missing, index, x, y, stream);
  }
}

cudaError_t LaunchIndexCopy(int item, const RowsProblem& p, const int64_t* index, const void* x,
                            void* y, void* workspace, cudaStream_t stream) {
  switch (WordBytes(item, p, x, y)) {
    case 1:
      return CopyWords<uint8_t>(item, p, index, x, y, workspace, stream);
    case 2:
      return CopyWords<uint16_t>(item, p, index, x, y, workspace, stream);
    case 4:
      return CopyWords<uint32_t>(item, p, index, x, y, workspace, stream);
    case 8:
      return CopyWords<uint2>(item, p, index, x, y, workspace, stream);
    default:
      return CopyWords<uint4>(item, p, index, x, y, workspace, stream);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
