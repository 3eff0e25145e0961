// SPDX-License-Identifier: Apache-2.0
//
// The kernel of every elementwise function: one per function and compute type.
//
//   struct Add { template <class C> __device__ C operator()(C a, C b) const { return a + b; } };
//   return LaunchPass<2, float, Add>(pass, stream);
//
// A function that takes more than some hundred instructions says so, and is called rather than
// repeated for each element of a unit:
//
//   template <> inline constexpr bool kIsLong<Pow> = true;
#pragma once

#include <utility>

#include "primitive/cuda/elementwise_io.cuh"
#include "primitive/cuda/launch.cuh"

namespace oneflow_lite {
namespace cuda {

template <class Op>
inline constexpr bool kIsLong = false;
// Whether its result has a type of its own, and not the compute type.
template <class Op>
inline constexpr bool kChangesType = false;

#pragma nv_exec_check_disable
template <class Op, class C>
OFL_HOST_DEVICE auto CallOp(const C (&x)[1]) {
  return Op{}(x[0]);
}
#pragma nv_exec_check_disable
template <class Op, class C>
OFL_HOST_DEVICE auto CallOp(const C (&x)[2]) {
  return Op{}(x[0], x[1]);
}
#pragma nv_exec_check_disable
template <class Op, class C>
OFL_HOST_DEVICE auto CallOp(const C (&x)[3]) {
  return Op{}(x[0], x[1], x[2]);
}

// bool of a function that gives bool, else the compute type; what a cast gives.
template <class Op, class C, int N>
using GivenBy = decltype(CallOp<Op, C>(std::declval<const C (&)[N]>()));
template <class Op, class C, int N>
using ResultOf = std::conditional_t<std::is_same_v<GivenBy<Op, C, N>, bool> || kChangesType<Op>,
                                    GivenBy<Op, C, N>, C>;

template <class Op, class C, int N>
#ifdef __CUDACC__
__host__ __device__ __noinline__
#endif
    ResultOf<Op, C, N>
    CallLong(const C (&x)[N]) {
  return static_cast<ResultOf<Op, C, N>>(CallOp<Op, C>(x));
}
template <class Op, class C, int N>
OFL_HOST_DEVICE ResultOf<Op, C, N> Compute(const C (&x)[N]) {
  if constexpr (kIsLong<Op>) return CallLong<Op, C, N>(x);
  return static_cast<ResultOf<Op, C, N>>(CallOp<Op, C>(x));
}

// What one thread does.
template <int N, class C, class Op>
OFL_HOST_DEVICE void RunPass(const Pass<N>& pass, uint32_t block, uint32_t thread) {
  constexpr int kPack = kPassPack<C>;
  using R = ResultOf<Op, C, N>;
  RawUnit raw[kPassDepth][N];
  int64_t out[kPassDepth];
  uint32_t whole = 0;  // bit k: unit k
#pragma unroll
  for (int k = 0; k < kPassDepth; ++k) {
    Place<N> place;
    if (!FindPlace<kPack>(pass, block, thread, k, &place) || !place.whole) continue;
    whole |= 1u << k;
    out[k] = place.offset[N] + place.col * pass.step[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      LoadUnit<C>(pass, i, pass.in[i] + place.offset[i] + place.col * pass.step[i], raw[k][i]);
    }
  }
  // Rolled, so that the function's code is here once; the units move up instead of being indexed.
#pragma unroll 1
  for (int k = 0; k < kPassDepth; ++k) {
    if (whole >> k & 1) {
      Unit<C> x[N];
#pragma unroll
      for (int i = 0; i < N; ++i) x[i] = WidenUnit<C>(pass.held[i], pass.round[i], raw[0][i]);
      R y[kPack];
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        C of[N];
#pragma unroll
        for (int i = 0; i < N; ++i) of[i] = x[i].v[e];
        y[e] = Compute<Op, C, N>(of);
      }
      StoreUnit<kPack>(pass.dtype[N], pass.out + out[0], y);
    } else {
      Place<N> place;
      if (!FindPlace<kPack>(pass, block, thread, k, &place)) return;
      ForEachInUnit<kPack>(pass, place, [&](const int64_t(&at)[N + 1]) {
        C of[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
          if (pass.form[i] == Form::kValue) {
            memcpy(&of[i], &pass.value, sizeof(C));
          } else {
            of[i] = LoadOne<C>(pass.dtype[i], pass.in[i] + at[i]);
          }
          if (pass.round[i] != pass.held[i]) of[i] = Rounded(pass.round[i], of[i]);
        }
        StoreOne(pass.dtype[N], pass.out + at[N], Compute<Op, C, N>(of));
      });
    }
#pragma unroll
    for (int j = 0; j + 1 < kPassDepth; ++j) {
      out[j] = out[j + 1];
#pragma unroll
      for (int i = 0; i < N; ++i) raw[j][i] = raw[j + 1][i];
    }
  }
}

#ifdef __CUDACC__
template <int N, class C, class Op>
__global__ void __launch_bounds__(kPassThreads, sizeof(C) == 4 ? 4 : 2)
    PassKernel(const __grid_constant__ Pass<N> pass) {
  RunPass<N, C, Op>(pass, blockIdx.x, threadIdx.x);
}

template <int N, class C, class Op>
cudaError_t LaunchPass(const Pass<N>& pass, cudaStream_t stream) {
  return Launch(PassKernel<N, C, Op>, PassBlocks(pass), kPassThreads, 0, stream, pass);
}
#endif

// The compute type in which a kernel serves elements or results of C: integers of up to 4 bytes and
// bool share one.
template <class C>
struct SharedTypeOf {
  using type = std::conditional_t<
      std::is_floating_point_v<C>, C,
      std::conditional_t<sizeof(C) == 8, std::conditional_t<std::is_signed_v<C>, int64_t, uint64_t>,
                         std::conditional_t<std::is_same_v<C, uint32_t>, uint32_t, int32_t>>>;
};
template <>
struct SharedTypeOf<__half> {
  using type = float;
};
template <>
struct SharedTypeOf<__nv_bfloat16> {
  using type = float;
};
template <class C>
using SharedType = typename SharedTypeOf<C>::type;

}  // namespace cuda
}  // namespace oneflow_lite
