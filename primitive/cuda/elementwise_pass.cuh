// SPDX-License-Identifier: Apache-2.0
//
// The kernel of every elementwise function: one per function and compute type.
//
//   struct Add { template <class C> __device__ C operator()(C a, C b) const { return a + b; } };
//   return LaunchPass<2, float>(Add{}, pass, stream);
//
// Numbers that a function takes are its object's members. A function that takes more than some
// hundred instructions has the base Long or LongInDouble: it is called, and not repeated for each
// element of a unit.
#pragma once

#include <utility>

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/elementwise_io.cuh"
#include "primitive/cuda/elementwise_tags.h"

namespace oneflow_lite {
namespace cuda {

template <class Op, class C>
inline constexpr bool kIsLong = std::is_base_of_v<Long, Op> ||
                                (std::is_base_of_v<LongInDouble, Op> && std::is_same_v<C, double>);

// bool of a function that gives bool, else the compute type; what a cast gives.
template <class Op, class C, class... Rest>
using GivenBy = decltype(std::declval<const Op&>()(std::declval<C>(), std::declval<Rest>()...));
template <class Op, class C, class Given>
using ResultOf = std::conditional_t<std::is_same_v<Given, bool> || kChangesType<Op>, Given, C>;

#pragma nv_exec_check_disable
template <class Op, class C, class... Rest>
#ifdef __CUDACC__
__host__ __device__ __noinline__
#endif
    ResultOf<Op, C, GivenBy<Op, C, Rest...>>
    CallLong(Op op, C x, Rest... rest) {
  return static_cast<ResultOf<Op, C, GivenBy<Op, C, Rest...>>>(op(x, rest...));
}
#pragma nv_exec_check_disable
template <class Op, class C, class... Rest>
OFL_HOST_DEVICE ResultOf<Op, C, GivenBy<Op, C, Rest...>> CallOp(const Op& op, C x, Rest... rest) {
  if constexpr (kIsLong<Op, C>) {
    return CallLong<Op, C, Rest...>(op, x, rest...);
  } else {
    return static_cast<ResultOf<Op, C, GivenBy<Op, C, Rest...>>>(op(x, rest...));
  }
}
template <class Op, class C>
OFL_HOST_DEVICE auto Compute(const Op& op, const C (&x)[1]) {
  return CallOp(op, x[0]);
}
template <class Op, class C>
OFL_HOST_DEVICE auto Compute(const Op& op, const C (&x)[2]) {
  return CallOp(op, x[0], x[1]);
}
template <class Op, class C>
OFL_HOST_DEVICE auto Compute(const Op& op, const C (&x)[3]) {
  return CallOp(op, x[0], x[1], x[2]);
}

// The elements of a unit that is not whole.
template <int N, class C, class Op>
OFL_HOST_DEVICE void RunElements(const Pass<N>& pass, const Op& op, const Place<N>& place) {
  ForEachInUnit<kPassPack<C>>(pass, place, [&](const int64_t(&at)[N + 1]) {
    C of[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (pass.form[i] == Form::kValue) {
        memcpy(&of[i], &pass.value[i], sizeof(C));
      } else {
        of[i] = LoadOne<C>(pass.dtype[i], pass.in[i] + at[i]);
      }
      if (pass.round[i] != pass.held[i]) of[i] = Rounded(pass.round[i], of[i]);
    }
    StoreOne(pass.dtype[N], pass.out + at[N], Compute(op, of));
  });
}

// The units of a thread as memory has them.
template <int N>
struct LoadedUnits {
  RawUnit raw[kPassDepth<N>][N];
  int64_t out[kPassDepth<N>];      // bytes from the output's begin
  uint32_t second[kPassDepth<N>];  // bytes from the first half to the second, of 32 bytes
  uint32_t whole = 0;              // bit k: unit k is whole, and loaded
};

template <class C, int N>
OFL_HOST_DEVICE void LoadPlainUnits(const Pass<N>& pass, uint32_t block, uint32_t thread,
                                    LoadedUnits<N>& units) {
  const uint32_t unit = block * (kPassDepth<N> * kPassThreads) + thread;
  const uint32_t lane = thread % kPassLanes;
  const uint64_t begin = pass.halved ? uint64_t{unit - lane} * 32 + lane * 16 : uint64_t{unit} * 16;
  const uint32_t step = kPassThreads * (pass.halved ? 32 : 16);
  units.whole = (1u << kPassDepth<N>)-1;
#pragma unroll
  for (int k = 0; k < kPassDepth<N>; ++k) {
    units.out[k] = static_cast<int64_t>(begin + k * step);
    units.second[k] = 16 * kPassLanes;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      LoadPlain<C>(pass, i, begin + k * step, units.second[k], units.raw[k][i]);
    }
  }
}
template <class C, int N>
OFL_HOST_DEVICE void LoadUnits(const Pass<N>& pass, uint32_t block, uint32_t thread,
                               LoadedUnits<N>& units) {
  constexpr int kPack = kPassPack<C>;
#pragma unroll
  for (int k = 0; k < kPassDepth<N>; ++k) {
    Place<N> place;
    if (!FindPlace<kPack>(pass, block, thread, k, &place) || !place.whole) continue;
    units.whole |= 1u << k;
    units.out[k] = place.offset[N] + place.col * pass.step[N];
    units.second[k] = static_cast<uint32_t>(place.second * pass.step[N]);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const char* p = pass.in[i] + place.offset[i] + place.col * pass.step[i];
      LoadUnit<C>(pass, i, p, p + place.second * pass.step[i], place.second != kPack / 2,
                  units.raw[k][i]);
    }
  }
}

// What one thread does.
template <int N, class C, class Op>
OFL_HOST_DEVICE void RunPass(const Pass<N>& pass, const Op& op, uint32_t block, uint32_t thread) {
  constexpr int kPack = kPassPack<C>, kDepth = kPassDepth<N>;
  LoadedUnits<N> units;
  if (block < pass.plain_blocks)
    LoadPlainUnits<C>(pass, block, thread, units);
  else
    LoadUnits<C>(pass, block, thread, units);
    // Rolled, so that the function's code is here once; the units move up instead of being indexed.
#pragma unroll 1
  for (uint32_t left = units.whole; left != 0; left >>= 1) {
    if (left & 1) {
      Unit<C> x[N];
#pragma unroll
      for (int i = 0; i < N; ++i) {
        x[i] = WidenUnit<C>(pass.held[i], pass.round[i], units.raw[0][i]);
      }
      decltype(Compute(op, std::declval<const C(&)[N]>())) y[kPack];
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        C of[N];
#pragma unroll
        for (int i = 0; i < N; ++i) of[i] = x[i].v[e];
        y[e] = Compute(op, of);
      }
      char* p = pass.out + units.out[0];
      StoreUnit<kPack>(pass.dtype[N], p, p + units.second[0], y);
    }
#pragma unroll
    for (int j = 0; j + 1 < kDepth; ++j) {
      units.out[j] = units.out[j + 1], units.second[j] = units.second[j + 1];
#pragma unroll
      for (int i = 0; i < N; ++i) units.raw[j][i] = units.raw[j + 1][i];
    }
  }
  if (units.whole == (1u << kDepth) - 1) return;
#pragma unroll 1
  for (int k = 0; k < kDepth; ++k) {
    Place<N> place;
    if (units.whole >> k & 1 || !FindPlace<kPack>(pass, block, thread, k, &place)) continue;
    RunElements<N, C>(pass, op, place);
  }
}

#ifdef __CUDACC__
template <int N, class C, class Op>
__global__ void __launch_bounds__(kPassThreads, sizeof(C) == 4 ? 4 : 2)
    PassKernel(const __grid_constant__ Pass<N> pass, const __grid_constant__ Op op) {
  RunPass<N, C>(pass, op, blockIdx.x, threadIdx.x);
}

template <int N, class C, class Op>
cudaError_t LaunchPass(const Op& op, const Pass<N>& pass, cudaStream_t stream) {
  return Launch(PassKernel<N, C, Op>, PassBlocks(pass), kPassThreads, 0, stream, pass, op);
}
#endif

}  // namespace cuda
}  // namespace oneflow_lite
