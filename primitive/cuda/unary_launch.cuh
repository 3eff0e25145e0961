// SPDX-License-Identifier: Apache-2.0
//
// How the function objects of one operand, and those of their gradients, become launchers:
//
//   struct Sin { template <class C> __device__ C operator()(C x) const { return sin(x); } };
//   return Floats<Sin>(dtype);
#pragma once

#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// The base of a function that takes numbers beside its element: p holds them.
struct WithParams {
  UnaryParams p;
};
template <class Op>
Op MakeOp(const UnaryParams& params) {
  Op op{};
  if constexpr (std::is_base_of_v<WithParams, Op>) op.p = params;
  return op;
}

// From elements of T to elements of R.
template <class T, class R, class Op>
struct UnaryRun {
  const T* x;
  R* y;
  Op op;

  template <int N>
  __device__ void Run(int64_t i) const {
    using C = ComputeType<T>;
    const Pack<T, N> p = LoadPack<N>(x + i);
    Pack<R, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if constexpr (std::is_same_v<R, bool>) {
        out.v[k] = op(ConvertTo<C>(p.v[k]));
      } else {
        out.v[k] = ConvertTo<R>(static_cast<C>(op(ConvertTo<C>(p.v[k]))));
      }
    }
    StorePack<N>(y + i, out);
  }
};

template <class T, class R, class Op>
cudaError_t LaunchUnary(int64_t n, const void* x, void* y, const UnaryParams& params,
                        cudaStream_t stream) {
  const UnaryRun<T, R, Op> run{static_cast<const T*>(x), static_cast<R*>(y), MakeOp<Op>(params)};
  return ForPacks<kPackSize<T>>(n, run, stream);
}

// Launchers of Op for the floats, for all dtypes but bool, and for all with a result of bool.
template <class Op>
UnaryLauncher Floats(DType dtype) {
  return VisitDeviceFloating<UnaryLauncher>(dtype, [](auto tag) -> UnaryLauncher {
    using T = typename decltype(tag)::type;
    return &LaunchUnary<T, T, Op>;
  });
}
template <class Op>
UnaryLauncher Numbers(DType dtype) {
  return VisitDeviceNumeric<UnaryLauncher>(dtype, [](auto tag) -> UnaryLauncher {
    using T = typename decltype(tag)::type;
    return &LaunchUnary<T, T, Op>;
  });
}
template <class Op>
UnaryLauncher Truths(DType dtype) {
  return VisitDeviceAll<UnaryLauncher>(dtype, [](auto tag) -> UnaryLauncher {
    return &LaunchUnary<typename decltype(tag)::type, bool, Op>;
  });
}

// dx = op(dy, s); with kNumber, dy is one element that stands for all.
template <class T, class Op, bool kNumber>
struct SlopeRun {
  const T* dy;
  const T* s;
  T* dx;
  Op op;

  template <int N>
  __device__ void Run(int64_t i) const {
    using C = ComputeType<T>;
    Pack<T, N> p = LoadPack<N>(s + i), g;
    if constexpr (kNumber) {
#pragma unroll
      for (int k = 0; k < N; ++k) g.v[k] = *dy;
    } else {
      g = LoadPack<N>(dy + i);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      p.v[k] = ConvertTo<T>(static_cast<C>(op(ConvertTo<C>(g.v[k]), ConvertTo<C>(p.v[k]))));
    }
    StorePack<N>(dx + i, p);
  }
};

template <class T, class Op>
cudaError_t LaunchSlope(int64_t n, const void* dy, bool dy_is_number, const void* s, void* dx,
                        const UnaryParams& params, cudaStream_t stream) {
  const T *g = static_cast<const T*>(dy), *from = static_cast<const T*>(s);
  T* to = static_cast<T*>(dx);
  const Op op = MakeOp<Op>(params);
  if (dy_is_number) {
    return ForPacks<kPackSize<T>>(n, SlopeRun<T, Op, true>{g, from, to, op}, stream);
  }
  return ForPacks<kPackSize<T>>(n, SlopeRun<T, Op, false>{g, from, to, op}, stream);
}

template <class Op>
UnaryBackwardLauncher Slopes(DType dtype) {
  return VisitDeviceFloating<UnaryBackwardLauncher>(dtype, [](auto tag) -> UnaryBackwardLauncher {
    return &LaunchSlope<typename decltype(tag)::type, Op>;
  });
}

}  // namespace
}  // namespace cuda
}  // namespace oneflow_lite
