// SPDX-License-Identifier: Apache-2.0
//
// Gather. Where all rows share one index, its places stay in registers (index_columns.cuh). Where
// rows of x are short and read often enough, a block holds a row in shared memory, in
// which elements far apart are read at once. Else a thread has some elements, read before any is
// written: neighbours in pairs, if they are so in the index and the result. The elements of a block
// lie side by side, so that it meets few rows.
#include "primitive/cuda/moves/index_columns.cuh"
#include "primitive/cuda/moves/index_launch.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/places.h"
#include "primitive/word.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// The dim of x: negative places count from the end, if `from_end`.
struct GatherDim {
  int64_t size, stride;
  bool from_end;

  __device__ __forceinline__ int64_t Find(int64_t place) const {
    return FindPlace(place, size, from_end);
  }
};

constexpr int kGathered = 4;  // accesses of a thread

// The geometry counts groups of kWide neighbours; those of x are `step` apart.
template <int kWide, class T, class Index>
__global__ void __launch_bounds__(kElementwiseThreads)
    GatherKernel(const __grid_constant__ Strided<3> g, GatherDim p, int64_t step,
                 const int64_t* index, const T* x, T missing, T* y) {
  const int64_t first = int64_t{blockIdx.x} * (kGathered * kElementwiseThreads) + threadIdx.x;
  const T* from[kGathered];
  T* to[kGathered];
  Pack<int64_t, kWide> places[kGathered];
#pragma unroll
  for (int k = 0; k < kGathered; ++k) {
    const int64_t i = first + k * kElementwiseThreads;
    to[k] = nullptr;
    if (i >= g.numel) continue;
    int64_t offsets[3];
    OffsetsOf<3, Index>(g, static_cast<Index>(i), offsets);
    places[k] = LoadAlignedPack<kWide>(index + offsets[0]);
    from[k] = x + offsets[1];
    to[k] = y + offsets[2];
  }
  Pack<T, kWide> values[kGathered];
#pragma unroll
  for (int k = 0; k < kGathered; ++k) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      values[k].v[e] = missing;
      if (to[k] == nullptr) continue;
      const int64_t place = p.Find(places[k].v[e]);
      if (place >= 0) values[k].v[e] = from[k][e * step + place * p.stride];
    }
  }
#pragma unroll
  for (int k = 0; k < kGathered; ++k) {
    if (to[k] != nullptr) StorePack<kWide>(to[k], values[k]);
  }
}

// Whether a thread may take pairs of neighbours; then the geometry counts those.
template <class T>
bool TakesPairs(const int64_t* index, const T* y, Strided<3>* g) {
  if (g->ndim == 0 || g->dims[0] % 2 != 0 || g->strides[0][0] != 1 || g->strides[2][0] != 1) {
    return false;
  }
  int64_t odd = static_cast<int64_t>(reinterpret_cast<uintptr_t>(index) / sizeof(*index)) |
                static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) / sizeof(T));
  for (int d = 1; d < g->ndim; ++d) odd |= g->strides[0][d] | g->strides[2][d];
  if (odd % 2 != 0) return false;
  g->numel /= 2, g->dims[0] /= 2;
  for (int m = 0; m < 3; ++m) g->strides[m][0] *= 2;
  const Divisor pairs(g->dims[0]);
  g->multiplier[0] = pairs.multiplier, g->shift[0] = pairs.shift;
  return true;
}

// Rows of `count` elements of the index and the result for each row of x.
struct GatherRows {
  int64_t rows, count;
  int64_t index_row, x_row, y_row;  // strides
  int together;  // rows of a block: several share an index that is one row for all, which is larger

  // Of a row in shared memory.
  template <class T>
  static int64_t HeldBytes(int64_t size) {
    return CeilDiv(size, int64_t{kPackSize<T>}) * kPackBytes;
  }
  template <class T>
  static bool Fits(const Strided<3>& g, const GatherDim& p, GatherRows* r) {
    constexpr int64_t kMostBytes = 48 << 10, kFewRows = 256, kFewElements = 256;
    if (g.ndim != 2 || g.strides[0][0] != 1 || g.strides[1][0] != 0 || g.strides[2][0] != 1) {
      return false;
    }
    *r = {g.dims[1], g.dims[0], g.strides[0][1], g.strides[1][1], g.strides[2][1], 1};
    if (r->index_row == 0) {
      const int64_t fit = kMostBytes / HeldBytes<T>(p.size > 0 ? p.size : 1);
      r->together = fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
    }
    return p.stride == 1 && p.size * static_cast<int64_t>(sizeof(T)) <= kMostBytes &&
           p.size <= 4 * r->count && r->rows >= kFewRows && r->count >= kFewElements &&
           r->rows <= kMaxBlocks;
  }
};

// For `rows` rows of x, `held` elements apart.
template <int kWide, class T>
__device__ __forceinline__ void GatherHeld(int64_t count, const GatherDim& p, int rows,
                                           const T* row, int held, const int64_t* index, T missing,
                                           T* y, int64_t y_row) {
  for (int64_t first = int64_t{threadIdx.x} * kWide; first < count;
       first += kGathered * kElementwiseThreads * kWide) {
    Pack<int64_t, kWide> places[kGathered];
#pragma unroll
    for (int k = 0; k < kGathered; ++k) {
      const int64_t i = first + k * kElementwiseThreads * kWide;
      if (i < count) places[k] = LoadAlignedPack<kWide>(index + i);
    }
#pragma unroll
    for (int k = 0; k < kGathered; ++k) {
      const int64_t i = first + k * kElementwiseThreads * kWide;
      if (i >= count) break;
      int at[kWide];
#pragma unroll
      for (int e = 0; e < kWide; ++e) at[e] = static_cast<int>(p.Find(places[k].v[e]));
      for (int r = 0; r < rows; ++r) {
        Pack<T, kWide> values;
#pragma unroll
        for (int e = 0; e < kWide; ++e) values.v[e] = at[e] >= 0 ? row[r * held + at[e]] : missing;
        StorePack<kWide>(y + r * y_row + i, values);
      }
    }
  }
}

// A block per `together` rows.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    GatherRowsKernel(GatherRows r, GatherDim p, const int64_t* index, const T* x, T missing, T* y) {
  extern __shared__ uint4 memory[];
  T* row = reinterpret_cast<T*>(memory);
  constexpr int kPack = kPackSize<T>;
  const int64_t at = int64_t{blockIdx.x} * r.together;
  const int rows = r.rows - at < r.together ? static_cast<int>(r.rows - at) : r.together;
  const int size = static_cast<int>(p.size), whole = size / kPack * kPack;
  const int held = (size + kPack - 1) / kPack * kPack;
  for (int k = 0; k < rows; ++k) {
    const T* from = x + (at + k) * r.x_row;
    T* to = row + k * held;
    for (int i = static_cast<int>(threadIdx.x) * kPack; i < whole;
         i += kElementwiseThreads * kPack) {
      const Pack<T, kPack> pack = LoadPack<kPack>(from + i);
      memcpy(to + i, &pack, sizeof(pack));
    }
    for (int i = whole + static_cast<int>(threadIdx.x); i < size; i += kElementwiseThreads) {
      to[i] = from[i];
    }
  }
  __syncthreads();
  const int64_t* places = index + at * r.index_row;
  T* to = y + at * r.y_row;
  if (r.count % 2 == 0 && IsAlignedFor<longlong2>(places)) {
    GatherHeld<2>(r.count, p, rows, row, held, places, missing, to, r.y_row);
  } else {
    GatherHeld<1>(r.count, p, rows, row, held, places, missing, to, r.y_row);
  }
}

// Whether the elements are those of whole rows, all of which read one index.
bool SharesIndex(const Strided<3>& g, const GatherDim& p, ColumnsShape* s) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (g.ndim != 2 || g.strides[0][0] != 1 || g.strides[0][1] != 0 || g.strides[1][0] != 0 ||
      g.strides[2][0] != 1 || p.stride != 1 || g.dims[0] >= kMost || g.dims[1] >= kMost ||
      p.size >= kMost) {
    return false;
  }
  *s = {static_cast<int>(g.dims[1]),
        static_cast<int>(p.size),
        static_cast<int>(g.dims[0]),
        g.strides[1][1],
        g.strides[2][1],
        p.from_end,
        0};
  return true;
}

// The same in words of 16 bytes, where neighbours in whole ones of x and y share a place.
bool InWords(int item, const GatherRun& run, GatherRun* words) {
  const int64_t per = kPackBytes / item;
  const Strided<3>& g = run.g;
  if (g.ndim == 0 || g.strides[0][0] != 0 || g.strides[1][0] != 1 || g.strides[2][0] != 1) {
    return false;
  }
  int64_t odd = g.dims[0] | run.stride;
  for (int d = 1; d < g.ndim; ++d) odd |= g.strides[1][d] | g.strides[2][d];
  const auto past = reinterpret_cast<uintptr_t>(run.x) | reinterpret_cast<uintptr_t>(run.y);
  if (odd % per != 0 || past % kPackBytes != 0) return false;
  *words = run;
  words->stride /= per;
  words->g.numel /= per, words->g.dims[0] /= per;
  for (int d = 1; d < g.ndim; ++d) {
    words->g.strides[1][d] /= per, words->g.strides[2][d] /= per;
  }
  const Divisor packs(words->g.dims[0]);
  words->g.multiplier[0] = packs.multiplier, words->g.shift[0] = packs.shift;
  return true;
}
cudaError_t LaunchWords(int item, const GatherRun& run, cudaStream_t stream) {
  uint4 missing;
  for (int i = 0; i < kPackBytes; i += item) {
    memcpy(reinterpret_cast<char*>(&missing) + i, &run.missing, item);
  }
  const auto launch = [&](auto kernel) {
    return Launch(kernel, CeilDiv(run.g.numel, int64_t{kGathered} * kElementwiseThreads),
                  kElementwiseThreads, 0, stream, run.g,
                  GatherDim{run.size, run.stride, run.from_end}, int64_t{1}, run.index,
                  static_cast<const uint4*>(run.x), missing, static_cast<uint4*>(run.y));
  };
  const bool near = run.g.numel < (int64_t{1} << 31);
  return near ? launch(GatherKernel<1, uint4, uint32_t>) : launch(GatherKernel<1, uint4, int64_t>);
}

template <class T>
cudaError_t LaunchGather(const GatherRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  if (run.g.numel <= 0) return cudaSuccess;
  const GatherDim p{run.size, run.stride, run.from_end};
  const auto missing = static_cast<T>(run.missing);
  const auto* x = static_cast<const T*>(run.x);
  auto* y = static_cast<T*>(run.y);
  GatherRun words;
  if (InWords(sizeof(T), run, &words)) return LaunchWords(sizeof(T), words, stream);
  GatherRows rows;
  if constexpr (sizeof(T) <= 4) {
    ColumnsShape columns;
    if (SharesIndex(run.g, p, &columns) && columns.Serve<T>(limits, run.index, x, y)) {
      return LaunchColumns(columns, limits, run.index, x, missing, y, stream);
    }
  }
  if (GatherRows::Fits<T>(run.g, p, &rows)) {
    const int64_t bytes = GatherRows::HeldBytes<T>(p.size) * rows.together;
    return Launch(GatherRowsKernel<T>, CeilDiv(rows.rows, int64_t{rows.together}),
                  kElementwiseThreads, static_cast<size_t>(bytes), stream, rows, p, run.index, x,
                  missing, y);
  }
  Strided<3> g = run.g;
  const int64_t step = g.ndim > 0 ? g.strides[1][0] : 0;
  const bool pairs = TakesPairs(run.index, y, &g);
  const int64_t blocks = CeilDiv(g.numel, int64_t{kGathered} * kElementwiseThreads);
  const auto launch = [&](auto kernel) {
    return Launch(kernel, blocks, kElementwiseThreads, 0, stream, g, p, step, run.index, x, missing,
                  y);
  };
  const bool near = g.numel < (int64_t{1} << 31);
  if (pairs) return launch(near ? GatherKernel<2, T, uint32_t> : GatherKernel<2, T, int64_t>);
  return launch(near ? GatherKernel<1, T, uint32_t> : GatherKernel<1, T, int64_t>);
}

}  // namespace

GatherRunLauncher FindGatherRun(DType dtype) {
  return VisitWord(SizeOf(dtype), [](auto tag) -> GatherRunLauncher {
    return &LaunchGather<typename decltype(tag)::type>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
