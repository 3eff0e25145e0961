// SPDX-License-Identifier: Apache-2.0
//
// Gather: some elements a thread, read before any is written. Scatter gives the same result every
// time: the order is that of the index. Of short columns, and of sums, whoever writes an element of
// the result is one thread: a column's places are dealt out to `buckets` threads by their lowest
// bits; each reads the whole column of the index. Where elements overwrite each other in longer
// columns, the greatest number of those that go to a place is found first, by atomics, and that one
// is written.
#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kGathered = 4;  // elements of a thread, read before any is written

template <class T, class Index>
__global__ void __launch_bounds__(kElementwiseThreads)
    GatherKernel(Strided<3> g, int64_t size, int64_t stride, const int64_t* index, const T* x,
                 T missing, T* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < g.numel; i += kGathered * step) {
    int64_t offsets[kGathered][3], places[kGathered];
#pragma unroll
    for (int k = 0; k < kGathered; ++k) {
      places[k] = -1;
      if (i + k * step >= g.numel) continue;
      OffsetsOf<3, Index>(g, static_cast<Index>(i + k * step), offsets[k]);
      places[k] = index[offsets[k][0]];
    }
    T values[kGathered];
#pragma unroll
    for (int k = 0; k < kGathered; ++k) {
      const bool inside = places[k] >= 0 && places[k] < size;
      values[k] = inside ? x[offsets[k][1] + places[k] * stride] : missing;
    }
#pragma unroll
    for (int k = 0; k < kGathered; ++k) {
      if (i + k * step < g.numel) y[offsets[k][2]] = values[k];
    }
  }
}

template <class T>
cudaError_t LaunchGather(const Strided<3>& g, int64_t size, int64_t stride, const int64_t* index,
                         const void* x, ScalarBits missing, void* y, cudaStream_t stream) {
  if (g.numel <= 0) return cudaSuccess;
  const int64_t blocks = CeilDiv(g.numel, int64_t{kGathered} * kElementwiseThreads);
  const auto kernel =
      g.numel < (int64_t{1} << 31) ? GatherKernel<T, uint32_t> : GatherKernel<T, int64_t>;
  return Launch(kernel, blocks, kElementwiseThreads, 0, stream, g, size, stride, index,
                static_cast<const T*>(x), static_cast<T>(missing), static_cast<T*>(y));
}

struct Put {
  template <class T>
  __device__ T operator()(T, T from) const {
    return from;
  }
};
struct AddTo {
  template <class T>
  __device__ T operator()(T to, T from) const {
    using C = ComputeType<T>;
    return ConvertTo<T>(static_cast<C>(ConvertTo<C>(to) + ConvertTo<C>(from)));
  }
};

constexpr int64_t kScatterThreads = 1 << 17;  // enough to fill any GPU

// Buckets are a power of two, so that a place's bucket is its lowest bits.
int64_t BucketsFor(int64_t columns, const ScatterProblem& p) {
  int64_t buckets = 1;
  while (2 * buckets * columns <= kScatterThreads && 2 * buckets <= p.size &&
         2 * buckets <= p.count) {
    buckets *= 2;
  }
  return buckets;
}

template <class T, class Store>
__global__ void __launch_bounds__(kElementwiseThreads)
    ScatterKernel(Strided<3> g, ScatterProblem p, int64_t buckets, const int64_t* index,
                  const T* src, T* dst) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < g.numel * buckets;
       i += step) {
    const int64_t bucket = i / g.numel;
    int64_t offsets[3];
    OffsetsOf<3, int64_t>(g, i - bucket * g.numel, offsets);
    for (int64_t k = 0; k < p.count; ++k) {
      const int64_t place = index[offsets[0] + k * p.index_stride];
      if ((place & (buckets - 1)) != bucket || place < 0 || place >= p.size) continue;
      T* to = dst + offsets[2] + place * p.dst_stride;
      *to = Store{}(*to, src[offsets[1] + k * p.src_stride]);
    }
  }
}

// Columns from here on are longer than what one thread should read.
constexpr int64_t kLongColumn = 512;

bool FindsLast(int64_t columns, const ScatterProblem& p) {
  constexpr int64_t kMost = int64_t{1} << 31;
  return columns < kMost && kLongColumn <= p.count && p.count < kMost && p.size <= 64 * p.count;
}

// The i-th element of all columns: neighbours are those that lie side by side in the index.
struct ScatterItem {
  int64_t column, k, place;
  bool inside;
};
struct ScatterWalk {
  Strided<3> g;
  ScatterProblem p;
  const int64_t* index;
  bool along;  // the column

  __device__ __forceinline__ ScatterItem At(int64_t i, int64_t (&offsets)[3]) const {
    ScatterItem item;
    item.column = along ? i / p.count : i % g.numel;
    item.k = along ? i - item.column * p.count : i / g.numel;
    OffsetsOf<3, uint32_t>(g, static_cast<uint32_t>(item.column), offsets);
    item.place = index[offsets[0] + item.k * p.index_stride];
    item.inside = item.place >= 0 && item.place < p.size;
    return item;
  }
};

// last[column][place]: one more than the number of the last element that goes there, or 0.
__global__ void __launch_bounds__(kElementwiseThreads) LastKernel(ScatterWalk walk, int32_t* last) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= walk.g.numel * walk.p.count) return;
  int64_t offsets[3];
  const ScatterItem item = walk.At(i, offsets);
  if (!item.inside) return;
  atomicMax(&last[item.column * walk.p.size + item.place], static_cast<int32_t>(item.k) + 1);
}
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    PutLastKernel(ScatterWalk walk, const int32_t* last, const T* src, T* dst) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= walk.g.numel * walk.p.count) return;
  int64_t offsets[3];
  const ScatterItem item = walk.At(i, offsets);
  if (!item.inside || last[item.column * walk.p.size + item.place] != item.k + 1) return;
  dst[offsets[2] + item.place * walk.p.dst_stride] = src[offsets[1] + item.k * walk.p.src_stride];
}

template <class T>
cudaError_t LaunchPutLast(const Strided<3>& g, const ScatterProblem& p, const int64_t* index,
                          const void* src, void* dst, void* workspace, cudaStream_t stream) {
  auto* last = static_cast<int32_t*>(workspace);
  cudaError_t error = cudaMemsetAsync(last, 0, ScatterWorkspace(g.numel, p), stream);
  if (error != cudaSuccess) return error;
  bool along = p.index_stride == 1;
  for (int d = 0; d < g.ndim; ++d) along = along || g.strides[0][d] == 0;  // of a repeated index
  const ScatterWalk walk{g, p, index, along || g.ndim == 0};
  const int64_t blocks = CeilDiv(g.numel * p.count, kElementwiseThreads);
  error = Launch(LastKernel, blocks, kElementwiseThreads, 0, stream, walk, last);
  if (error != cudaSuccess) return error;
  return Launch(PutLastKernel<T>, blocks, kElementwiseThreads, 0, stream, walk,
                static_cast<const int32_t*>(last), static_cast<const T*>(src),
                static_cast<T*>(dst));
}

template <class T, class Store>
cudaError_t LaunchScatter(const Strided<3>& g, const ScatterProblem& p, const int64_t* index,
                          const void* src, void* dst, void* workspace, cudaStream_t stream) {
  if (g.numel <= 0 || p.count <= 0) return cudaSuccess;
  if constexpr (std::is_same_v<Store, Put>) {
    if (FindsLast(g.numel, p)) {
      return LaunchPutLast<T>(g, p, index, src, dst, workspace, stream);
    }
  }
  const int64_t buckets = BucketsFor(g.numel, p);
  return Launch(ScatterKernel<T, Store>, CeilDiv(g.numel * buckets, kElementwiseThreads),
                kElementwiseThreads, 0, stream, g, p, buckets, index, static_cast<const T*>(src),
                static_cast<T*>(dst));
}

// Only the size of an element matters to a move.
template <class R, class F>
R VisitSize(DType dtype, F&& f) {
  switch (SizeOf(dtype)) {
    case 1:
      return f(Tag<uint8_t>{});
    case 2:
      return f(Tag<uint16_t>{});
    case 4:
      return f(Tag<uint32_t>{});
    default:
      return f(Tag<uint64_t>{});
  }
}

}  // namespace

GatherLauncher FindGather(DType dtype) {
  return VisitSize<GatherLauncher>(dtype, [](auto tag) -> GatherLauncher {
    return &LaunchGather<typename decltype(tag)::type>;
  });
}

size_t ScatterWorkspace(int64_t columns, const ScatterProblem& p) {
  return FindsLast(columns, p) ? sizeof(int32_t) * columns * p.size : 0;
}

ScatterLauncher FindScatter(DType dtype, bool add) {
  if (add) {
    return VisitDeviceNumeric<ScatterLauncher>(dtype, [](auto tag) -> ScatterLauncher {
      return &LaunchScatter<typename decltype(tag)::type, AddTo>;
    });
  }
  return VisitSize<ScatterLauncher>(dtype, [](auto tag) -> ScatterLauncher {
    return &LaunchScatter<typename decltype(tag)::type, Put>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
