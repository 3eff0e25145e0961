// SPDX-License-Identifier: Apache-2.0
//
// Gather: a thread per element. Scatter: whoever writes an element of the result is one thread, so
// that the order is that of the index and the result the same every time. A column's places are
// dealt out to `buckets` threads by their lowest bits; each reads the whole column of the index.
#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class T>
struct GatherRun {
  const int64_t* index;
  const T* x;
  T* y;
  int64_t size, stride;
  T missing;

  __device__ void At(const int64_t (&offset)[3]) const {
    const int64_t place = index[offset[0]];
    const bool inside = place >= 0 && place < size;
    y[offset[2]] = inside ? x[offset[1] + place * stride] : missing;
  }
};

template <class T>
cudaError_t LaunchGather(const Strided<3>& g, int64_t size, int64_t stride, const int64_t* index,
                         const void* x, ScalarBits missing, void* y, cudaStream_t stream) {
  const GatherRun<T> run{index,  static_cast<const T*>(x), static_cast<T*>(y), size,
                         stride, static_cast<T>(missing)};
  return ForElements(g, run, stream);
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

template <class T, class Store>
cudaError_t LaunchScatter(const Strided<3>& g, const ScatterProblem& p, const int64_t* index,
                          const void* src, void* dst, cudaStream_t stream) {
  if (g.numel <= 0 || p.count <= 0) return cudaSuccess;
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
