// SPDX-License-Identifier: Apache-2.0
//
// One function object per unary op; the table in FindUnary names them.
#include "primitive/cuda/elementwise.cuh"
#include "primitive/cuda/elementwise_launchers.h"
#include "primitive/cuda/elementwise_pass.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Each takes and gives the compute type of the dtype.
struct Neg {
  template <class C>
  __device__ C operator()(C x) const {
    return -x;
  }
};
struct Exp {
  __device__ float operator()(float x) const { return expf(x); }
  __device__ double operator()(double x) const { return exp(x); }
};
struct Log {
  __device__ float operator()(float x) const { return logf(x); }
  __device__ double operator()(double x) const { return log(x); }
};
struct Relu {
  template <class C>
  __device__ C operator()(C x) const {
    return x > C(0) || x != x ? x : C(0);  // NaN stays
  }
};

struct Abs {
  template <class C>
  __device__ C operator()(C x) const {
    return x < C(0) ? -x : x;
  }
  __device__ float operator()(float x) const { return fabsf(x); }
  __device__ double operator()(double x) const { return fabs(x); }
};
struct Sqrt {
  __device__ float operator()(float x) const { return sqrtf(x); }
  __device__ double operator()(double x) const { return sqrt(x); }
};
struct Rsqrt {
  __device__ float operator()(float x) const { return rsqrtf(x); }
  __device__ double operator()(double x) const { return rsqrt(x); }
};
struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
  __device__ double operator()(double x) const { return tanh(x); }
};
struct Sigmoid {  // from the exp that is at most 1
  template <class C>
  __device__ C operator()(C x) const {
    const C e = Exp{}(-Abs{}(x));
    return (x < C(0) ? e : C(1)) / (C(1) + e);
  }
};

struct Sin {
  __device__ float operator()(float x) const { return sinf(x); }
  __device__ double operator()(double x) const { return sin(x); }
};
struct Cos {
  __device__ float operator()(float x) const { return cosf(x); }
  __device__ double operator()(double x) const { return cos(x); }
};
struct Erf {
  __device__ float operator()(float x) const { return erff(x); }
  __device__ double operator()(double x) const { return erf(x); }
};
struct Floor {
  __device__ float operator()(float x) const { return floorf(x); }
  __device__ double operator()(double x) const { return floor(x); }
};
struct Silu {
  template <class C>
  __device__ C operator()(C x) const {
    return x == -C(INFINITY) ? C(0) : x * Sigmoid{}(x);  // not -inf times 0
  }
};
// x (1 + tanh(u)) / 2 without cancellation: x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715
// x^3).
struct GeluTanh {
  template <class C>
  __device__ C operator()(C x) const {
    const C v = x * (C(1.5957691216057308) + C(0.07135481627260025) * x * x);
    return x < C(-40) ? C(0) : x * Sigmoid{}(v);
  }
};
// x P(N <= x) of a standard normal N; erfc keeps its digits where that is small.
struct Gelu {
  __device__ float operator()(float x) const {
    return x < -40.0f ? 0.0f : 0.5f * x * erfcf(x * -0.70710678f);
  }
  __device__ double operator()(double x) const {
    return x < -40.0 ? 0.0 : 0.5 * x * erfc(x * -0.70710678118654752440);
  }
};

// Of elements of T: one kernel for all that share a compute type.
template <class T, class Op>
cudaError_t LaunchUnary(const Pass<1>& pass, cudaStream_t stream) {
  return LaunchPass<1, SharedType<T>, Op>(pass, stream);
}

template <class Op>
UnaryLauncher Floats(DType dtype) {
  return VisitDeviceFloating<UnaryLauncher>(dtype, [](auto tag) -> UnaryLauncher {
    return &LaunchUnary<typename decltype(tag)::type, Op>;
  });
}
template <class Op>
UnaryLauncher Numbers(DType dtype) {
  return VisitDeviceNumeric<UnaryLauncher>(dtype, [](auto tag) -> UnaryLauncher {
    return &LaunchUnary<typename decltype(tag)::type, Op>;
  });
}

}  // namespace

UnaryLauncher FindUnary(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kNeg:
      return Numbers<Neg>(dtype);
    case UnaryOp::kExp:
      return Floats<Exp>(dtype);
    case UnaryOp::kLog:
      return Floats<Log>(dtype);
    case UnaryOp::kRelu:
      return Numbers<Relu>(dtype);
    case UnaryOp::kAbs:
      return Numbers<Abs>(dtype);
    case UnaryOp::kSqrt:
      return Floats<Sqrt>(dtype);
    case UnaryOp::kRsqrt:
      return Floats<Rsqrt>(dtype);
    case UnaryOp::kTanh:
      return Floats<Tanh>(dtype);
    case UnaryOp::kSigmoid:
      return Floats<Sigmoid>(dtype);
    case UnaryOp::kSin:
      return Floats<Sin>(dtype);
    case UnaryOp::kCos:
      return Floats<Cos>(dtype);
    case UnaryOp::kErf:
      return Floats<Erf>(dtype);
    case UnaryOp::kFloor:
      return Floats<Floor>(dtype);
    case UnaryOp::kSilu:
      return Floats<Silu>(dtype);
    case UnaryOp::kGeluTanh:
      return Floats<GeluTanh>(dtype);
    case UnaryOp::kGelu:
      return Floats<Gelu>(dtype);
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace oneflow_lite
