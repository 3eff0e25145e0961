// SPDX-License-Identifier: Apache-2.0
//
// Reduction over the middle axis of outer x axis x inner, in one launch where there are enough rows
// or columns to fill the device, else in two: `chunks` parts of the axis each leave a partial
// state, [outer][chunks][inner], and a warp per result merges those. The order of every merge is
// fixed by the shape and the device.
//
// A reducer says what is gathered (reducers.cuh):
//
//   using Value = float;                     // what elements are converted to
//   struct State { ... };
//   static constexpr bool kShifted;          // elements come less the first one of their slice
//   State Identity() const;
//   void Add(State&, Value, int64_t place) const;        // place: in the axis
//   void AddPack(State&, const Pack<In, N>&, Value shift, int64_t place) const;   // N neighbours
//   State Merge(const State& earlier, const State& later) const;
//   void Finish(const State&, Value shift, const ReduceOutputs&, int64_t item) const;
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/elementwise.cuh"
#include "primitive/cuda/reduce_axis.cuh"

namespace oneflow_lite {
namespace cuda {

struct ReducePolicy {
  static constexpr int kThreads = 256;
  static constexpr int kWarpAxis = 1024;              // rows up to here: a warp each, else a block
  static constexpr int kTileLanes = 32;               // at most, along inner
  static constexpr int kBlocksPerMultiprocessor = 8;  // of chunks of the axis
  static constexpr int kMaxChunks = 2048;
  static constexpr int kMergedByBlocks = 256;  // results up to here: a block merges one's chunks
  static constexpr int kMinRowChunk = 4096;    // elements of a row worth a block
  static constexpr int kMinAxisChunk = 64;     // positions of the axis worth a tile
  static constexpr int kTileBytes = 128;       // of states per thread of a tile, at most
};

// The results of a launch; `second` may be null. The dtype is one launch's, not the code's.
struct ReduceOutputs {
  void* y;
  void* second;
  DType dtype;  // of y; a second result has it too, or is int64
  int64_t axis;
};

template <class A>
__device__ __forceinline__ void StoreAs(void* y, DType dtype, int64_t i, A v) {
  switch (dtype) {
    case DType::kBool:
      static_cast<bool*>(y)[i] = ConvertTo<bool>(v);
      break;
    case DType::kUInt8:
      static_cast<uint8_t*>(y)[i] = ConvertTo<uint8_t>(v);
      break;
    case DType::kInt8:
      static_cast<int8_t*>(y)[i] = ConvertTo<int8_t>(v);
      break;
    case DType::kInt16:
      static_cast<int16_t*>(y)[i] = ConvertTo<int16_t>(v);
      break;
    case DType::kInt32:
      static_cast<int32_t*>(y)[i] = ConvertTo<int32_t>(v);
      break;
    case DType::kInt64:
      static_cast<int64_t*>(y)[i] = ConvertTo<int64_t>(v);
      break;
    case DType::kFloat16:
      static_cast<__half*>(y)[i] = ConvertTo<__half>(v);
      break;
    case DType::kBFloat16:
      static_cast<__nv_bfloat16*>(y)[i] = ConvertTo<__nv_bfloat16>(v);
      break;
    case DType::kFloat32:
      static_cast<float*>(y)[i] = ConvertTo<float>(v);
      break;
    case DType::kFloat64:
      static_cast<double*>(y)[i] = ConvertTo<double>(v);
      break;
  }
}

// Another lane's state, word by word.
template <class S>
__device__ __forceinline__ S ShuffleDownWords(const S& v, int delta) {
  static_assert(sizeof(S) % sizeof(uint32_t) == 0, "states are whole words");
  constexpr int kWords = sizeof(S) / sizeof(uint32_t);
  uint32_t words[kWords];
  memcpy(words, &v, sizeof(S));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_down_sync(0xffffffffu, words[i], delta);
  S other;
  memcpy(&other, words, sizeof(S));
  return other;
}

// Lane 0 gets the merge of the warp's states, in the order of the lanes. All lanes must call it.
template <class R>
__device__ __forceinline__ typename R::State MergeWarp(const R& r, typename R::State state) {
#pragma unroll
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const typename R::State other = ShuffleDownWords(state, delta);
    // Lanes that would read beyond the warp get their own state, which nobody asks for.
    state = r.Merge(state, other);
  }
  return state;
}

// Thread 0 gets the merge of the states that lane 0 of each warp has, in the order of the warps.
// All threads of the block must call it; `slots` are one per warp.
template <class R>
__device__ __forceinline__ typename R::State MergeBlock(const R& r, typename R::State state,
                                                        typename R::State* slots) {
  constexpr int kWarps = ReducePolicy::kThreads / kWarp;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  __syncthreads();  // the slots are free again
  if (lane == 0) slots[warp] = state;
  __syncthreads();
  if (warp != 0) return state;
  return MergeWarp(r, lane < kWarps ? slots[lane] : r.Identity());
}

// What the kernels have in common.
struct ReduceArguments {
  int64_t outer, axis, inner;
  int chunks;
  int lanes;  // of a tile, where inner > 1
};

template <class R, class In>
__device__ __forceinline__ typename R::Value ShiftAt(const In* slice) {
  if constexpr (R::kShifted) {
    return ConvertTo<typename R::Value>(*slice);
  } else {
    return typename R::Value(0);
  }
}
template <class R, class In>
__device__ __forceinline__ void AddOne(const R& r, typename R::State& state, In x,
                                       typename R::Value shift, int64_t place) {
  using A = typename R::Value;
  const A v = ConvertTo<A>(x);
  r.Add(state, R::kShifted ? static_cast<A>(v - shift) : v, place);
}

// inner = 1: the part of a row that is one thread's of `size`.
template <class In, class R>
__device__ __forceinline__ typename R::State GatherRow(const R& r, const In* row,
                                                       typename R::Value shift, int64_t begin,
                                                       int64_t end, int rank, int size) {
  constexpr int N = kPackSize<In>;
  typename R::State state = r.Identity();
  int64_t body = begin + ElementsToBoundary(row + begin);
  if (body > end) body = end;
  const int64_t tail = body + (end - body) / N * N;
  for (int64_t i = begin + rank; i < body; i += size) AddOne(r, state, row[i], shift, i);
#pragma unroll 4
  for (int64_t i = body + int64_t{rank} * N; i < tail; i += int64_t{size} * N) {
    r.AddPack(state, LoadPack<N>(row + i), shift, i);
  }
  for (int64_t i = tail + rank; i < end; i += size) AddOne(r, state, row[i], shift, i);
  return state;
}

template <class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    ReduceRowsKernel(const In* x, ReduceArguments a, R r, ReduceOutputs out,
                     typename R::State* partial, bool row_per_warp) {
  using State = typename R::State;
  constexpr int kWarps = ReducePolicy::kThreads / kWarp;
  __shared__ __align__(16) char slots_memory[kWarps * sizeof(State)];
  State* slots = reinterpret_cast<State*>(slots_memory);
  const int64_t items = a.outer * a.chunks;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int per_block = row_per_warp ? kWarps : 1;
  for (int64_t base = int64_t{blockIdx.x} * per_block; base < items;
       base += int64_t{gridDim.x} * per_block) {
    const int64_t item = base + (row_per_warp ? warp : 0);
    const bool active = item < items;
    State state = r.Identity();
    typename R::Value shift(0);
    if (active) {
      const int64_t row = item / a.chunks, chunk = item % a.chunks;
      const int64_t begin = a.axis * chunk / a.chunks, end = a.axis * (chunk + 1) / a.chunks;
      const In* p = x + row * a.axis;
      if (a.axis > 0) shift = ShiftAt<R>(p);
      state = GatherRow<In>(r, p, shift, begin, end, row_per_warp ? lane : int(threadIdx.x),
                            row_per_warp ? kWarp : int(blockDim.x));
    }
    state = MergeWarp(r, state);
    if (!row_per_warp) state = MergeBlock(r, state, slots);
    if (!active || lane != 0 || (!row_per_warp && warp != 0)) continue;
    if (partial) {
      partial[item] = state;
    } else {
      r.Finish(state, shift, out, item);
    }
  }
}

template <class R>
struct MergeOf {
  R r;
  __device__ __forceinline__ typename R::State operator()(const typename R::State& a,
                                                          const typename R::State& b) const {
    return r.Merge(a, b);
  }
};

// inner > 1: N columns from x on, of the part of the axis that is one thread's of `ways`: four
// neighbours of a column at a time, whose loads are under way together.
template <int N, class In, class R>
__device__ __forceinline__ void GatherColumns(const R& r, const In* x, int64_t inner,
                                              const typename R::Value (&shift)[N], int64_t begin,
                                              int64_t end, int way, int ways,
                                              typename R::State (&state)[N]) {
  constexpr int kRows = 4;
#pragma unroll 2
  for (int64_t k = begin + int64_t{way} * kRows; k < end; k += int64_t{ways} * kRows) {
    if (k + kRows > end) {
      for (; k < end; ++k) {
        const Pack<In, N> v = LoadPack<N>(x + k * inner);
#pragma unroll
        for (int i = 0; i < N; ++i) AddOne(r, state[i], v.v[i], shift[i], k);
      }
      return;
    }
    Pack<In, N> v[kRows];
#pragma unroll
    for (int j = 0; j < kRows; ++j) v[j] = LoadPack<N>(x + (k + j) * inner);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      Pack<In, kRows> column;
#pragma unroll
      for (int j = 0; j < kRows; ++j) column.v[j] = v[j].v[i];
      r.AddPack(state[i], column, shift[i], k);
    }
  }
}

// inner > 1: a block per tile of columns and chunk of the axis.
template <int N, class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    ReduceColumnsKernel(const In* x, ReduceArguments a, R r, ReduceOutputs out,
                        typename R::State* partial) {
  using State = typename R::State;
  __shared__ __align__(16) char slots_memory[ReducePolicy::kThreads * N * sizeof(State)];
  State* slots = reinterpret_cast<State*>(slots_memory);
  const AxisProblem p{a.outer, a.axis, a.inner, a.lanes};
  const int64_t tiles = TilesPerOuter(p, N);
  for (int64_t item = blockIdx.x; item < a.outer * tiles * a.chunks; item += gridDim.x) {
    const int64_t tile = item / a.chunks, chunk = item % a.chunks;
    const AxisColumns<N> c(p, tile, tiles);
    const int64_t begin = a.axis * chunk / a.chunks, end = a.axis * (chunk + 1) / a.chunks;
    State state[N];
    typename R::Value shift[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      state[i] = r.Identity();
      shift[i] = c.active && a.axis > 0 ? ShiftAt<R>(x + c.offset + i) : typename R::Value(0);
    }
    if (c.active) GatherColumns(r, x + c.offset, a.inner, shift, begin, end, c.way, c.ways, state);
    MergeWays<N>(state, p, c.ways, slots, MergeOf<R>{r});
    if (!c.active || c.way != 0) continue;
    const int64_t outer = tile / tiles;
    const int64_t column = c.offset - outer * a.axis * a.inner;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (partial) {
        partial[(outer * a.chunks + chunk) * a.inner + column + i] = state[i];
      } else {
        r.Finish(state[i], shift[i], out, outer * a.inner + column + i);
      }
    }
  }
}

// A warp or a block per result merges the chunks' states.
template <class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    MergeChunksKernel(const In* x, ReduceArguments a, R r, ReduceOutputs out,
                      const typename R::State* partial, bool result_per_block) {
  using State = typename R::State;
  constexpr int kWarps = ReducePolicy::kThreads / kWarp;
  __shared__ __align__(16) char slots_memory[kWarps * sizeof(State)];
  State* slots = reinterpret_cast<State*>(slots_memory);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int per_block = result_per_block ? 1 : kWarps;
  const int rank = result_per_block ? int(threadIdx.x) : lane;
  const int size = result_per_block ? ReducePolicy::kThreads : kWarp;
  for (int64_t base = int64_t{blockIdx.x} * per_block; base < a.outer * a.inner;
       base += int64_t{gridDim.x} * per_block) {
    const int64_t item = base + (result_per_block ? 0 : warp);
    if (item >= a.outer * a.inner) continue;  // of a warp, and so of no block with one result
    const int64_t outer = item / a.inner, column = item % a.inner;
    State state = r.Identity();
    for (int chunk = rank; chunk < a.chunks; chunk += size) {
      state = r.Merge(state, partial[(outer * a.chunks + chunk) * a.inner + column]);
    }
    state = MergeWarp(r, state);
    if (result_per_block) state = MergeBlock(r, state, slots);
    if (lane != 0 || (result_per_block && warp != 0)) continue;
    r.Finish(state, ShiftAt<R>(x + outer * a.axis * a.inner + column), out, item);
  }
}

// Columns of a thread: one 16-byte load, or fewer where the states would not fit in a tile.
template <class In, class State>
constexpr int ColumnPack() {
  int n = kPackSize<In>;
  while (n > 1 && n * static_cast<int>(sizeof(State)) > ReducePolicy::kTileBytes) n /= 2;
  return n;
}

struct ReducePlan {
  int chunks, lanes;
  bool row_per_warp;
};
// n: columns of a thread.
inline ReducePlan PlanReduce(const ReduceProblem& p, int n, int multiprocessors) {
  using P = ReducePolicy;
  ReducePlan plan{1, 1, p.inner == 1 && p.axis <= P::kWarpAxis};
  if (plan.row_per_warp) return plan;
  while (p.inner > 1 && plan.lanes < P::kTileLanes && int64_t{plan.lanes} * n < p.inner) {
    plan.lanes *= 2;
  }
  const int64_t blocks = p.outer * CeilDiv(p.inner, int64_t{plan.lanes} * n);
  const int64_t wanted = int64_t{P::kBlocksPerMultiprocessor} * multiprocessors / blocks;
  const int64_t most = p.axis / (p.inner == 1 ? P::kMinRowChunk : P::kMinAxisChunk);
  int64_t chunks = wanted < most ? wanted : most;
  if (chunks > P::kMaxChunks) chunks = P::kMaxChunks;
  if (chunks > 1) plan.chunks = static_cast<int>(chunks);
  return plan;
}

// Columns of a thread in this problem: rows know none.
template <class In, class R>
int ColumnsOf(const ReduceProblem& p) {
  constexpr int N = ColumnPack<In, typename R::State>();
  return p.inner > 1 && p.inner % N == 0 ? N : 1;
}

template <class In, class R>
size_t ReduceWorkspace(const ReduceProblem& p, const DeviceLimits& limits) {
  if (p.outer <= 0 || p.inner <= 0) return 0;
  const int chunks = PlanReduce(p, ColumnsOf<In, R>(p), limits.multiprocessors).chunks;
  return chunks > 1 ? sizeof(typename R::State) * p.outer * p.inner * chunks : 0;
}

template <class In, class R>
cudaError_t LaunchReduce(const ReduceRun& run, const R& r, const DeviceLimits& limits,
                         cudaStream_t stream) {
  using P = ReducePolicy;
  using State = typename R::State;
  constexpr int N = ColumnPack<In, State>();
  const ReduceProblem& p = run.problem;
  if (p.outer <= 0 || p.inner <= 0) return cudaSuccess;
  const int n = ColumnsOf<In, R>(p);
  const ReducePlan plan = PlanReduce(p, n, limits.multiprocessors);
  const ReduceArguments a{p.outer, p.axis, p.inner, plan.chunks, plan.lanes};
  const ReduceOutputs out{run.y, run.second, run.out, p.axis};
  const In* x = static_cast<const In*>(run.x);
  State* partial = plan.chunks > 1 ? static_cast<State*>(run.workspace) : nullptr;
  cudaError_t error;
  if (p.inner == 1) {
    const int64_t items = p.outer * plan.chunks;
    const int64_t blocks = plan.row_per_warp ? CeilDiv(items, P::kThreads / kWarp) : items;
    error = Launch(ReduceRowsKernel<In, R>, blocks, P::kThreads, 0, stream, x, a, r, out, partial,
                   plan.row_per_warp);
  } else {
    const int64_t blocks = p.outer * CeilDiv(p.inner, int64_t{plan.lanes} * n) * plan.chunks;
    error = n == 1 ? Launch(ReduceColumnsKernel<1, In, R>, blocks, P::kThreads, 0, stream, x, a, r,
                            out, partial)
                   : Launch(ReduceColumnsKernel<N, In, R>, blocks, P::kThreads, 0, stream, x, a, r,
                            out, partial);
  }
  if (error != cudaSuccess || !partial) return error;
  const int64_t results = p.outer * p.inner;
  const bool result_per_block = results <= P::kMergedByBlocks;
  return Launch(MergeChunksKernel<In, R>,
                result_per_block ? results : CeilDiv(results, P::kThreads / kWarp), P::kThreads, 0,
                stream, x, a, r, out, static_cast<const State*>(partial), result_per_block);
}

}  // namespace cuda
}  // namespace oneflow_lite
