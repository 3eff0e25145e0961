// SPDX-License-Identifier: Apache-2.0
//
// Scatter gives the same result every time: the order is that of the index. Of short columns
// whoever writes an element of the result is one thread: a column's places are dealt out to
// `buckets` threads by their lowest bits; each reads the whole column of the index. Longer columns
// of the result are held in shared memory. Where elements overwrite each other in columns too long
// for that, the greatest number of those that go to a place is found first, by atomics, and that
// one is written.
#include "oneflow_lite/core/held_columns.h"
#include "primitive/cuda/moves/index_launch.h"
#include "primitive/cuda/moves/index_stores.cuh"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/places.h"
#include "primitive/word.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// An element of src as one of the result.
template <class T, class X>
__device__ __forceinline__ T Widened(X v) {
  if constexpr (std::is_same_v<T, X>) {
    return v;
  } else {
    return ConvertTo<T>(v);
  }
}

constexpr int64_t kScatterThreads = 1 << 17;  // enough to fill any GPU

// Buckets are a power of two, so that a place's bucket is its lowest bits.
int64_t BucketsFor(int64_t columns, const ScatterDim& p) {
  int64_t buckets = 1;
  while (2 * buckets * columns <= kScatterThreads && 2 * buckets <= p.size &&
         2 * buckets <= p.count) {
    buckets *= 2;
  }
  return buckets;
}

template <class T, class X, class Store>
__global__ void __launch_bounds__(kElementwiseThreads)
    ScatterKernel(Strided<3> g, ScatterDim p, int64_t buckets, const int64_t* index, const X* src,
                  T* dst) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < g.numel * buckets;
       i += step) {
    const int64_t bucket = i / g.numel;
    int64_t offsets[3];
    OffsetsOf<3, int64_t>(g, i - bucket * g.numel, offsets);
    for (int64_t k = 0; k < p.count; ++k) {
      const int64_t place = FindPlace(index[offsets[0] + k * p.index_stride], p.size, p.from_end);
      if ((place & (buckets - 1)) != bucket || place < 0) continue;
      T* to = dst + offsets[2] + place * p.dst_stride;
      *to = Store{}(*to, Widened<T>(src[offsets[1] + k * p.src_stride]));
    }
  }
}

// Columns from here on are longer than what one thread should read.
constexpr int64_t kLongColumn = 512;

bool FindsLast(int64_t columns, const ScatterDim& p) {
  constexpr int64_t kMost = int64_t{1} << 31;
  return columns < kMost && kLongColumn <= p.count && p.count < kMost && p.size <= 64 * p.count;
}

// The i-th element of all columns: neighbours are those that lie side by side in the index.
struct ScatterItem {
  int64_t column, k, place;  // -1: none
};
struct ScatterWalk {
  Strided<3> g;
  ScatterDim p;
  const int64_t* index;
  bool along;  // the column

  __device__ __forceinline__ ScatterItem At(int64_t i, int64_t (&offsets)[3]) const {
    ScatterItem item;
    item.column = along ? i / p.count : i % g.numel;
    item.k = along ? i - item.column * p.count : i / g.numel;
    OffsetsOf<3, uint32_t>(g, static_cast<uint32_t>(item.column), offsets);
    item.place = FindPlace(index[offsets[0] + item.k * p.index_stride], p.size, p.from_end);
    return item;
  }
};

// last[column][place]: one more than the number of the last element that goes there, or 0.
__global__ void __launch_bounds__(kElementwiseThreads) LastKernel(ScatterWalk walk, int32_t* last) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= walk.g.numel * walk.p.count) return;
  int64_t offsets[3];
  const ScatterItem item = walk.At(i, offsets);
  if (item.place < 0) return;
  atomicMax(&last[item.column * walk.p.size + item.place], static_cast<int32_t>(item.k) + 1);
}
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    PutLastKernel(ScatterWalk walk, const int32_t* last, const T* src, T* dst) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= walk.g.numel * walk.p.count) return;
  int64_t offsets[3];
  const ScatterItem item = walk.At(i, offsets);
  if (item.place < 0 || last[item.column * walk.p.size + item.place] != item.k + 1) return;
  dst[offsets[2] + item.place * walk.p.dst_stride] = src[offsets[1] + item.k * walk.p.src_stride];
}

template <class T>
cudaError_t LaunchPutLast(const ScatterRun& run, cudaStream_t stream) {
  const Strided<3>& g = run.g;
  const ScatterDim& p = run.dim;
  auto* last = static_cast<int32_t*>(run.workspace);
  cudaError_t error = cudaMemsetAsync(last, 0, ScatterRunWorkspace(g.numel, p), stream);
  if (error != cudaSuccess) return error;
  bool along = p.index_stride == 1;
  for (int d = 0; d < g.ndim; ++d) along = along || g.strides[0][d] == 0;  // of a repeated index
  const ScatterWalk walk{g, p, run.index, along || g.ndim == 0};
  const int64_t blocks = CeilDiv(g.numel * p.count, kElementwiseThreads);
  error = Launch(LastKernel, blocks, kElementwiseThreads, 0, stream, walk, last);
  if (error != cudaSuccess) return error;
  return Launch(PutLastKernel<T>, blocks, kElementwiseThreads, 0, stream, walk,
                static_cast<const int32_t*>(last), static_cast<const T*>(run.src),
                static_cast<T*>(run.dst));
}

// A warp holds a column of the result, or a part of it, in shared memory and goes through the
// column's elements in their order, 32 at a time. Of those that meet in a place the last one stays,
// or they are added one after the other, so that the sums are those of one thread. M: what the
// result has in memory; T: what is held, which is wider where 16-bit floats are summed.
template <class T, class X, class M>
struct HeldColumns {
  Strided<3> g;
  ScatterDim p;
  int part;       // places that a warp holds
  int64_t parts;  // of a column
  bool in_step;   // the warps of a block read beside each other
  const int64_t* index;
  const X* src;
  M* dst;
};
constexpr int kHeldWarps = 8;  // of a block, at most
// Of 32 elements, read before they are needed: few warps of a multiprocessor have room for columns,
// and each of them waits for memory once in so many steps.
constexpr int kHeldSteps = 8;
constexpr unsigned kAllLanes = 0xffffffffu;

// The elements of kHeldSteps steps, from this lane's first one on. `left` of them are the column's.
template <class T, class X, class M>
struct HeldElements {
  int64_t found[kHeldSteps];
  int place[kHeldSteps];  // among those held, or a number below 0 that no other lane has
  X value[kHeldSteps];

  // Loads that nothing waits for before Find. Where the whole column is held, all of src is wanted.
  __device__ __forceinline__ void Load(const HeldColumns<T, X, M>& s, const int64_t* index,
                                       const X* src, int64_t left) {
    const int n = Count(left);
#pragma unroll
    for (int step = 0; step < kHeldSteps; ++step) {
      found[step] = step * 32 < n ? index[step * 32 * s.p.index_stride] : 0;
      value[step] = step * 32 < n && s.parts == 1 ? src[step * 32 * s.p.src_stride] : X(0.0f);
    }
  }
  __device__ __forceinline__ void Find(const HeldColumns<T, X, M>& s, const X* src, int64_t begin,
                                       int size, int64_t left) {
    const int n = Count(left);
#pragma unroll
    for (int step = 0; step < kHeldSteps; ++step) {
      const int64_t at = FindPlace(found[step], s.p.size, s.p.from_end) - begin;
      const bool held = static_cast<uint64_t>(at) < static_cast<uint64_t>(size);
      place[step] = held && step * 32 < n ? static_cast<int>(at) : -1 - Lane();
    }
    if (s.parts == 1) return;
#pragma unroll
    for (int step = 0; step < kHeldSteps; ++step) {
      if (place[step] >= 0) value[step] = src[step * 32 * s.p.src_stride];
    }
  }
  template <class Store>
  __device__ __forceinline__ void GoTo(T* held, int64_t left) const {
#pragma unroll
    for (int step = 0; step < kHeldSteps; ++step) {
      if (step * 32 >= left) break;
      T* const to = place[step] >= 0 ? held + place[step] : nullptr;
      T before = to && !std::is_same_v<Store, Put> ? *to : T(0.0f);
      const T from = Widened<T>(value[step]);
      before = Meet(to) ? InTurn<Store>(place[step], before, from) : Store{}(before, from);
      if (to) *to = before;
      __syncwarp();
    }
  }

 private:
  __device__ static int Lane() { return static_cast<int>(threadIdx.x % 32); }
  // Whether lanes go to one place: each leaves its number there, and of two one finds the other's.
  // A warp that matches 32 different places takes several times as long.
  __device__ __forceinline__ static bool Meet(T* to) {
    using Mark = std::conditional_t<sizeof(T) == 1, uint8_t,
                                    std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;
    auto* mark = reinterpret_cast<volatile Mark*>(to);
    const auto own = static_cast<Mark>(Lane());
    __syncwarp();
    if (to) *mark = own;
    __syncwarp();
    const bool lost = to && *mark != own;
    return __any_sync(kAllLanes, lost) != 0;
  }
  // What is in a place after the elements of all lanes that go there, the lowest lane's first.
  template <class Store>
  __device__ __noinline__ static T InTurn(int place, T before, T value) {
    const unsigned peers = __match_any_sync(kAllLanes, place);
    if constexpr (std::is_same_v<Store, Put>) {
      return static_cast<T>(__shfl_sync(kAllLanes, value, 31 - __clz(static_cast<int>(peers))));
    }
    unsigned rest = peers;
    do {
      const int from = rest ? __ffs(static_cast<int>(rest)) - 1 : 0;
      const auto other = static_cast<T>(__shfl_sync(kAllLanes, value, from));
      if (rest) before = Store{}(before, other);
      rest &= rest - 1;
    } while (__any_sync(kAllLanes, rest != 0));
    return before;
  }
  // The elements from this lane's first one on.
  __device__ static int Count(int64_t left) {
    constexpr int kStep = 32 * kHeldSteps;
    return (left < kStep ? static_cast<int>(left) : kStep) - Lane();
  }
};

template <class T, class X, class M, class Store>
__global__ void __launch_bounds__(kHeldWarps * 32)
    HeldKernel(const __grid_constant__ HeldColumns<T, X, M> s) {
  extern __shared__ uint4 memory[];
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  T* held = reinterpret_cast<T*>(memory) + warp * s.part;
  const int64_t task = int64_t{blockIdx.x} * (blockDim.x / 32) + warp;
  const int64_t part = task / s.g.numel;
  int64_t offsets[3];
  OffsetsOf<3, int64_t>(s.g, task - part * s.g.numel, offsets);
  const int64_t begin = part * s.part, rest = s.p.size - begin;
  const int size = part >= s.parts ? 0 : rest < s.part ? static_cast<int>(rest) : s.part;
  M* to = s.dst + offsets[2] + begin * s.p.dst_stride;
  constexpr int kStep = 32 * kHeldSteps;
  for (int first = lane; first < size; first += kStep) {
    T there[kHeldSteps];
#pragma unroll
    for (int k = 0; k < kHeldSteps; ++k) {
      const int j = first + k * 32;
      if (j < size) there[k] = Widened<T>(to[j * s.p.dst_stride]);
    }
#pragma unroll
    for (int k = 0; k < kHeldSteps; ++k) {
      if (first + k * 32 < size) held[first + k * 32] = there[k];
    }
  }
  __syncwarp();
  const int64_t* index = s.index + offsets[0] + lane * s.p.index_stride;
  const X* src = s.src + offsets[1] + lane * s.p.src_stride;
  HeldElements<T, X, M> now, next;
  now.Load(s, index, src, s.p.count);
  for (int64_t left = s.p.count; left > 0; left -= kStep) {
    now.Find(s, src, begin, size, left);
    index += kStep * s.p.index_stride;
    src += kStep * s.p.src_stride;
    next.Load(s, index, src, left - kStep);
    now.template GoTo<Store>(held, left);
    now = next;
    if (s.in_step) __syncthreads();
  }
  for (int j = lane; j < size; j += 32) to[j * s.p.dst_stride] = Widened<M>(held[j]);
}

constexpr int64_t kFewParts = 4;          // of a column that is overwritten
constexpr int64_t kHeldBytes = 16 << 10;  // of a block whose warps read each a column of its own

// How many elements of a column a warp holds, and in how many parts the column is.
struct HeldPlan {
  int64_t part, parts;
  int warps;

  HeldPlan(const ScatterDim& p, int64_t item, const DeviceLimits& limits) {
    const int64_t most = limits.shared_per_block / item;
    part = p.size < most / 4 ? p.size : most / 4;
    parts = CeilDiv(p.size, part);
    const int64_t room = p.index_stride == 1 && kHeldBytes / item < most ? kHeldBytes / item : most;
    const int64_t fit = room / part;
    warps = static_cast<int>(fit < 1 ? 1 : fit < kHeldWarps ? fit : kHeldWarps);
  }
};

// What is held of a result of T.
template <class T, class Store>
using HeldOf = std::conditional_t<std::is_same_v<Store, AddTo>, ComputeType<T>, T>;

template <class T, class X, class Store>
cudaError_t LaunchHeld(const ScatterRun& run, const HeldPlan& plan, const DeviceLimits& limits,
                       cudaStream_t stream) {
  using H = HeldOf<T, Store>;
  const cudaError_t error = AllowAllShared<&HeldKernel<H, X, T, Store>>(limits);
  if (error != cudaSuccess) return error;
  const HeldColumns<H, X, T> columns{run.g,
                                     run.dim,
                                     static_cast<int>(plan.part),
                                     plan.parts,
                                     run.dim.index_stride != 1,
                                     run.index,
                                     static_cast<const X*>(run.src),
                                     static_cast<T*>(run.dst)};
  return Launch(HeldKernel<H, X, T, Store>, CeilDiv(run.g.numel * plan.parts, plan.warps),
                plan.warps * 32, static_cast<size_t>(plan.warps * plan.part) * sizeof(H), stream,
                columns);
}

template <class T, class X, class Store>
cudaError_t LaunchScatter(const ScatterRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  const Strided<3>& g = run.g;
  const ScatterDim& p = run.dim;
  if (g.numel <= 0 || p.count <= 0 || p.size <= 0) return cudaSuccess;
  constexpr bool kPut = std::is_same_v<Store, Put>;
  const HeldPlan plan(p, sizeof(HeldOf<T, Store>), limits);
  const bool held = HoldsColumns(p.count, p.size) && (!kPut || plan.parts <= kFewParts);
  if (held && g.numel * plan.parts < kMaxBlocks) {
    return LaunchHeld<T, X, Store>(run, plan, limits, stream);
  }
  if constexpr (kPut) {
    if (FindsLast(g.numel, p)) return LaunchPutLast<T>(run, stream);
  }
  const int64_t buckets = BucketsFor(g.numel, p);
  return Launch(ScatterKernel<T, X, Store>, CeilDiv(g.numel * buckets, kElementwiseThreads),
                kElementwiseThreads, 0, stream, g, p, buckets, run.index,
                static_cast<const X*>(run.src), static_cast<T*>(run.dst));
}

}  // namespace

size_t ScatterRunWorkspace(int64_t columns, const ScatterDim& p) {
  return FindsLast(columns, p) ? sizeof(int32_t) * columns * p.size : 0;
}

namespace {
template <class Store>
struct ScatterFinder {
  template <class T>
  ScatterRunLauncher operator()(Tag<T>) const {
    return &LaunchScatter<T, T, Store>;
  }
};
}  // namespace

ScatterRunLauncher FindScatterRun(DType dtype, DType src, ScatterStore store) {
  if (src != dtype) {
    if (store != ScatterStore::kAdd || dtype != DType::kFloat32) return nullptr;
    return VisitDeviceFloating<ScatterRunLauncher>(src, [](auto tag) -> ScatterRunLauncher {
      using X = typename decltype(tag)::type;
      if constexpr (sizeof(X) == 2) return &LaunchScatter<float, X, AddTo>;
      return nullptr;
    });
  }
  switch (store) {
    case ScatterStore::kAdd:
      return VisitDeviceNumeric<ScatterRunLauncher>(dtype, ScatterFinder<AddTo>{});
    case ScatterStore::kMul:
      return VisitDeviceAll<ScatterRunLauncher>(dtype, ScatterFinder<MultiplyBy>{});
    case ScatterStore::kMax:
      return VisitDeviceAll<ScatterRunLauncher>(dtype, ScatterFinder<Keep<true>>{});
    case ScatterStore::kMin:
      return VisitDeviceAll<ScatterRunLauncher>(dtype, ScatterFinder<Keep<false>>{});
    case ScatterStore::kPut:
      break;
  }
  return VisitWord(SizeOf(dtype), [](auto tag) -> ScatterRunLauncher {
    using T = typename decltype(tag)::type;
    return &LaunchScatter<T, T, Put>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
