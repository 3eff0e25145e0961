// SPDX-License-Identifier: Apache-2.0
//
// The kernels of every elementwise function: two per function and compute type, one for passes
// that are divided into units and one for the others; and two for plain passes.
//
//   struct Add { template <class C> __device__ C operator()(C a, C b) const { return a + b; } };
//   return LaunchPass<2, float>(Add{}, pass, stream);
//
// Numbers that a function takes are its object's members.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/elementwise/compute.cuh"
#include "primitive/cuda/elementwise/io.cuh"
#include "primitive/cuda/elementwise/plain.cuh"
#include "primitive/cuda/elementwise/plain_rows.cuh"

namespace oneflow_lite {
namespace cuda {

// One element, at such offsets.
template <int N, class C, class Op>
OFL_HOST_DEVICE void RunElement(const Pass<N>& pass, const Op& op, const uint32_t (&at)[N + 1]) {
  C of[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (pass.form[i] == Form::kValue) {
      memcpy(&of[i], &pass.value[i], sizeof(C));
    } else {
      of[i] = LoadOne<C>(pass.dtype[i], pass.in[i] + at[i]);
    }
    if (pass.round[i] != pass.held[i]) of[i] = Rounded(static_cast<DType>(pass.round[i]), of[i]);
  }
  char* p = pass.out + at[N];
  const auto stored = static_cast<DType>(pass.stored);
  if constexpr (kHasNarrow<Op, C>) {
    if (pass.narrow != 0) return StoreOne(stored, p, Compute<true>(op, of));
  }
  StoreOne(stored, p, Compute<false>(op, of));
}

// The elements of a unit that is not whole.
template <int N, class C, class Op>
OFL_HOST_DEVICE void RunRaggedUnit(const Pass<N>& pass, const Op& op, const UnitPlace<N>& place) {
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (int e = 0; e < kPassPack<C>; ++e) {
    if (ColumnInUnit<kPassPack<C>>(pass, place, e) < 0) continue;
    uint32_t at[N + 1];
#pragma unroll
    for (int m = 0; m <= N; ++m) at[m] = place.offset[m] + e * pass.step[m];
    RunElement<N, C>(pass, op, at);
  }
}

// The elements x of a whole unit at such a place.
template <int N, class C, int kPack>
OFL_HOST_DEVICE void ReadUnit(const Pass<N>& pass, const UnitPlace<N>& place, C (&x)[N][kPack]) {
  RawUnit raw[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    LoadUnit<C>(pass, i, pass.in[i] + place.offset[i], place.second, raw[i]);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) WidenUnit<C>(pass, i, raw[i], x[i]);
}
// The same of Pass::single and a dense block, `at` bytes from the first element of each operand.
constexpr uint32_t kSingleHalves = kPassLanes * 16;  // bytes from a unit's first half to its second
template <int N, int kPack>
OFL_HOST_DEVICE void ReadSingleUnit(const Pass<N>& pass, uint32_t at, float (&x)[N][kPack]) {
  RawUnit raw[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const char* p = pass.in[i] + at;
    LoadHalves<32>(p, p + kSingleHalves, raw[i]);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) memcpy(x[i], raw[i].w, sizeof(x[i]));
}

// What one thread does where the pass is divided into units. Around a function of one float, stored
// as such, there are 4 instructions for each element in dense blocks, else 10 (sm_90).
template <int N, class C, class Op>
OFL_HOST_DEVICE void RunUnits(const Pass<N>& pass, const Op& op, uint32_t block, uint32_t thread) {
  constexpr int kPack = kPassPack<C>;
  using R = Computed<Op, C, N>;
  constexpr bool kMayBeSingle = std::is_same_v<C, float> && std::is_same_v<R, float>;
  UnitPlace<N> place;
  C x[N][kPack];
  R y[kPack];
  bool single = false;
  uint32_t at = 0;
  if constexpr (kMayBeSingle) {
    single = pass.single != 0 && pass.dense_from <= block && block < pass.dense_to;
    at = (block * kPassThreads + thread) * 32 - thread % kPassLanes * 16;
    if (single) ReadSingleUnit(pass, at, x);
  }
  if (!single) {
    if (!FindUnit<kPack>(pass, block, thread, &place)) return;
    if (!place.whole) return RunRaggedUnit<N, C>(pass, op, place);
    ReadUnit(pass, place, x);
  }
  ComputeAll(op, pass.narrow != 0, x, y);
  if constexpr (kMayBeSingle) {
    if (single) {
      uint32_t w[kPack];
      memcpy(w, y, sizeof(w));
      return StoreBytes<32>(pass.out + at, kSingleHalves, w);
    }
  }
  StoreUnit<kPack>(static_cast<DType>(pass.stored), pass.out + place.offset[N], place.second, y);
}

#ifdef __CUDACC__
// The threads of a block exchange the elements of an input that they have read along columns.
template <class C, int kPack>
__device__ __forceinline__ void Exchange(uint32_t thread, RawElement<C> (&raw)[kPack]) {
  __shared__ C tile[kTileCols<kPack>][kPassLanes + 1];
  uint32_t row, col;
  InTile<kPack>(thread, true, &row, &col);
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
    memcpy(&tile[col + e * TileHop<kPack>(true)][row], raw[e], sizeof(C));
  }
  __syncthreads();
  InTile<kPack>(thread, false, &row, &col);
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
    memcpy(raw[e], &tile[col][row + e * TileHop<kPack>(false)], sizeof(C));
  }
}
#endif

// What one thread does of lines and tiles.
template <int N, class C, class Op>
OFL_HOST_DEVICE void RunLines(const Pass<N>& pass, const Op& op, uint32_t block, uint32_t thread) {
  constexpr int kPack = kPassPack<C>;
  const Position<N> at = Divide(pass, block);
  RawElement<C> raw[N][kPack] = {};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (pass.form[i] == Form::kValue) continue;
    bool crossed = false;
#ifdef __CUDA_ARCH__
    crossed = pass.crossed >> i & 1;
#endif
    const Line line = FindLine<kPack>(pass, at, thread, i, crossed);
    LoadLine<C>(pass.dtype[i], pass.bytes[i], pass.in[i] + line.offset, line.hop, line.count,
                raw[i]);
  }
#ifdef __CUDA_ARCH__
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (pass.crossed >> i & 1) Exchange<C>(thread, raw[i]);
  }
#endif
  C x[N][kPack];
#pragma unroll
  for (int i = 0; i < N; ++i) WidenLine<C>(pass, i, raw[i], x[i]);
  Computed<Op, C, N> y[kPack];
  ComputeAll(op, pass.narrow != 0, x, y);
  const Line line = FindLine<kPack>(pass, at, thread, N, false);
  StoreLine(static_cast<DType>(pass.stored), pass.out + line.offset, line.hop, line.count, y);
}

// What one thread does where it divides the index of each element.
template <int N, class C, class Op>
OFL_HOST_DEVICE void RunEach(const Pass<N>& pass, const Op& op, uint32_t block, uint32_t thread) {
  uint32_t index = block * (kPassThreads * kPassPack<C>)+thread;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (int e = 0; e < kPassPack<C> && index < static_cast<uint32_t>(pass.numel);
       ++e, index += kPassThreads) {
    RunElement<N, C>(pass, op, Divide(pass, index).offset);
  }
}

#ifdef __CUDACC__
// Blocks that a multiprocessor holds. Functions of one float hide each other's latencies: float32
// gelu of 64 M elements on an H200 takes 151 us with 63 registers and 136 with 32. With two inputs
// the loads are enough in flight.
template <int N, class C, class Op>
constexpr int UnitBlocks() {
  if (sizeof(C) != 4) return 2;
  return N == 1 && !kIsLong<Op, C> ? 8 : 4;
}

template <int N, class C, class Op>
__global__ void __launch_bounds__(kPassThreads, (UnitBlocks<N, C, Op>()))
    UnitsKernel(const __grid_constant__ Pass<N> pass, const __grid_constant__ Op op) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;  // of blocks of all kPassThreads
  RunUnits<N, C>(pass, op, thread / kPassThreads, thread % kPassThreads);
}
template <int N, class C, class Op>
__global__ void __launch_bounds__(kPassThreads, sizeof(C) == 4 ? 4 : 2)
    ElementsKernel(const __grid_constant__ Pass<N> pass, const __grid_constant__ Op op) {
  if constexpr (kMayBePlain<N, C, Op>) {
    if (pass.walk == Walk::kPlainTiles) {
      return RunPlainTiles(pass, op, blockIdx.x, threadIdx.x);
    }
  }
  if (pass.walk == Walk::kEach) {
    RunEach<N, C>(pass, op, blockIdx.x, threadIdx.x);
  } else {
    RunLines<N, C>(pass, op, blockIdx.x, threadIdx.x);
  }
}
template <int N, class Op>
__global__ void __launch_bounds__(kPassThreads, 4)
    PlainKernel(const __grid_constant__ Pass<N> pass, const __grid_constant__ Op op) {
  RunPlain<N>(pass, op, blockIdx.x, threadIdx.x);
}
// As many threads as a multiprocessor has, but where a function would not do with 32 registers: of
// 64 M float16 on an H200, x + row takes 69 us with 33 registers and 64 with 30, atan2(x, row) 89
// with 39 and 120 with 32 (docs/lab/57-layouts-of-16-bit-passes.md).
template <int N, class Op>
constexpr int PlainRowsBlocks() {
  constexpr bool kManyRegisters = std::is_base_of_v<Long, Op> ||
                                  std::is_base_of_v<LongInDouble, Op> ||
                                  std::is_base_of_v<Spacious, Op>;
  return N < 3 && !kManyRegisters ? 16 : 12;
}
template <int N, class Op>
__global__ void __launch_bounds__(kPlainThreads, (PlainRowsBlocks<N, Op>()))
    PlainRowsKernel(const __grid_constant__ Pass<N> pass, const __grid_constant__ Op op) {
  RunPlainRows(pass, op, blockIdx.x, threadIdx.x);
}

template <int N, class C, class Op>
cudaError_t LaunchPass(const Op& op, const Pass<N>& pass, cudaStream_t stream) {
  if constexpr (kMayBePlain<N, C, Op>) {
    if (pass.walk == Walk::kPlainRows) {
      return Launch(PlainRowsKernel<N, Op>, pass.blocks, kPlainThreads, 0, stream, pass, op);
    }
    if (pass.walk == Walk::kPlainTiles) {
      return Launch(ElementsKernel<N, C, Op>, pass.blocks, kPassThreads, kPlainTileBytes, stream,
                    pass, op);
    }
    if (pass.plain != 0) {
      return Launch(PlainKernel<N, Op>, pass.blocks, kPassThreads, 0, stream, pass, op);
    }
  }
  if (pass.walk >= Walk::kPlainRows) return cudaErrorNotSupported;
  if (pass.walk != Walk::kUnits) {
    return Launch(ElementsKernel<N, C, Op>, pass.blocks, kPassThreads, 0, stream, pass, op);
  }
  // A unit of float32 has twice the bytes of one of 16 bits, so a block has half as many (lab 53).
  const int parts = pass.single != 0 ? 2 : 1;
  return Launch(UnitsKernel<N, C, Op>, pass.blocks * parts, kPassThreads / parts, 0, stream, pass,
                op);
}
#endif

}  // namespace cuda
}  // namespace oneflow_lite
