// SPDX-License-Identifier: Apache-2.0
//
// One function object per binary op; the table in FindBinary names them.
#include "primitive/cuda/elementwise.cuh"
#include "primitive/cuda/elementwise_launchers.h"
#include "primitive/cuda/elementwise_pass.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

__device__ inline float ExpOf(float x) { return expf(x); }
__device__ inline double ExpOf(double x) { return exp(x); }

// Integers and bool compute unsigned, where overflow wraps around.
template <class T, bool kInteger = std::is_integral_v<T>>
struct ArithmeticOf {
  using type = ComputeType<T>;
};
template <class T>
struct ArithmeticOf<T, true> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

struct Add {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};
struct Sub {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a - b;
  }
};
struct Mul {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a * b;
  }
};
struct Div {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a / b;
  }
};
struct ReluBackward {
  template <class C>
  __device__ C operator()(C dy, C y) const {
    return y <= C(0) ? C(0) : dy;
  }
};
// dy times the slope of gelu at x, and of its approximation by tanh: the formulas are those of
// primitive/cpu/gelu-inl.h.
struct GeluBackward {
  __device__ float Below(float x) const { return 0.5f * erfcf(x * -0.70710678f); }
  __device__ double Below(double x) const { return 0.5 * erfc(x * -0.70710678118654752440); }
  template <class C>
  __device__ C operator()(C dy, C x) const {
    if (x > C(40) || x < C(-40)) return dy * (x > C(0) ? C(1) : C(0));
    return dy * (Below(x) + x * C(0.39894228040143267794) * ExpOf(x * x * C(-0.5)));
  }
};
struct GeluTanhBackward {
  template <class C>
  __device__ C operator()(C dy, C x) const {
    if (x > C(40) || x < C(-40)) return dy * (x > C(0) ? C(1) : C(0));
    const C linear = C(1.5957691216057308), cubic = C(0.07135481627260025);
    const C v = x * (linear + cubic * x * x);
    const C e = ExpOf(v < C(0) ? v : -v), sum = C(1) + e;
    const C s = (v < C(0) ? e : C(1)) / sum;
    return dy * (s + x * (e / (sum * sum)) * (linear + C(3) * cubic * x * x));
  }
};
struct Eq {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a == b;
  }
};
struct Ne {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a != b;
  }
};
struct Lt {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a < b;
  }
};
struct Le {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a <= b;
  }
};
struct Maximum {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a < b || a != a ? a : b;
  }
};
struct Pow {
  __device__ float operator()(float a, float b) const { return powf(a, b); }
  __device__ double operator()(double a, double b) const { return pow(a, b); }
  // Of integers by squaring, wrapping around.
  template <class C>
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_signed_v<C>) {
      if (b < 0) return a == 1 || (a == -1 && b % 2 == 0) ? C(1) : a == -1 ? a : C(0);
    }
    typename ArithmeticOf<C>::type result = 1, square = a;
    for (; b > 0; b >>= 1) {
      if (b & 1) result *= square;
      square *= square;
    }
    return static_cast<C>(result);
  }
};
struct And {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a & b;
  }
};
struct Or {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a | b;
  }
};
struct Xor {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a ^ b;
  }
};

// kSwapped: computes Op(b, a), so that a > b needs no kernel beside b < a.
template <class C, class Op, bool kSwapped>
cudaError_t LaunchBinary(const Pass<2>& given, cudaStream_t stream) {
  if (!kSwapped) return LaunchPass<2, C, Op>(given, stream);
  Pass<2> pass = given;
  const auto swap = [](auto& of_operands) {
    const auto first = of_operands[0];
    of_operands[0] = of_operands[1], of_operands[1] = first;
  };
  swap(pass.in), swap(pass.step), swap(pass.form), swap(pass.dtype), swap(pass.held);
  swap(pass.round), swap(pass.bytes);
  memcpy(pass.strides[0], given.strides[1], sizeof(given.strides[1]));
  memcpy(pass.strides[1], given.strides[0], sizeof(given.strides[0]));
  return LaunchPass<2, C, Op>(pass, stream);
}

// T is the operands' type, Out the result's, C what Op computes in. Types that are computed alike
// share a kernel.
template <class T, class Out, class C, class Op, bool kSwapped = false>
BinaryLaunchers Launchers() {
  return {&LaunchBinary<SharedType<C>, Op, kSwapped>};
}

template <class Op>
struct ArithmeticFinder {
  template <class T>
  BinaryLaunchers operator()(Tag<T>) const {
    return Launchers<T, T, typename ArithmeticOf<T>::type, Op>();
  }
};
template <class Op, bool kSwapped>
struct ComparisonFinder {
  template <class T>
  BinaryLaunchers operator()(Tag<T>) const {
    return Launchers<T, bool, ComputeType<T>, Op, kSwapped>();
  }
};

// As ArithmeticFinder, but signed integers stay signed.
template <class Op>
struct SelectionFinder {
  template <class T>
  BinaryLaunchers operator()(Tag<T>) const {
    return Launchers<T, T, ComputeType<T>, Op>();
  }
};

template <class Op>
BinaryLaunchers Selection(DType t) {
  return VisitDeviceAll<BinaryLaunchers>(t, SelectionFinder<Op>{});
}
template <class Op>
BinaryLaunchers Arithmetic(DType t) {
  return VisitDeviceAll<BinaryLaunchers>(t, ArithmeticFinder<Op>{});
}
template <class Op>
BinaryLaunchers Numbers(DType t) {
  return VisitDeviceNumeric<BinaryLaunchers>(t, ArithmeticFinder<Op>{});
}
template <class Op>
BinaryLaunchers Floats(DType t) {
  return VisitDeviceFloating<BinaryLaunchers>(t, ArithmeticFinder<Op>{});
}
template <class Op>
BinaryLaunchers Powers(DType t) {
  return VisitDeviceNumeric<BinaryLaunchers>(t, SelectionFinder<Op>{});
}
// Of integers and bool only the size matters.
template <class Op>
BinaryLaunchers Bits(DType t) {
  if (IsFloating(t)) return {};
  switch (SizeOf(t)) {
    case 1:
      return Launchers<uint8_t, uint8_t, uint32_t, Op>();
    case 2:
      return Launchers<uint16_t, uint16_t, uint32_t, Op>();
    case 4:
      return Launchers<uint32_t, uint32_t, uint32_t, Op>();
    default:
      return Launchers<uint64_t, uint64_t, uint64_t, Op>();
  }
}
template <class Op, bool kSwapped = false>
BinaryLaunchers Comparison(DType t) {
  return VisitDeviceAll<BinaryLaunchers>(t, ComparisonFinder<Op, kSwapped>{});
}

}  // namespace

BinaryLaunchers FindBinary(BinaryOp op, DType t) {
  switch (op) {
    case BinaryOp::kAdd:
      return Arithmetic<Add>(t);
    case BinaryOp::kSub:
      return Numbers<Sub>(t);
    case BinaryOp::kMul:
      return Arithmetic<Mul>(t);
    case BinaryOp::kDiv:
      return Floats<Div>(t);
    case BinaryOp::kEq:
      return Comparison<Eq>(t);
    case BinaryOp::kNe:
      return Comparison<Ne>(t);
    case BinaryOp::kLt:
      return Comparison<Lt>(t);
    case BinaryOp::kLe:
      return Comparison<Le>(t);
    case BinaryOp::kGt:
      return Comparison<Lt, /*kSwapped=*/true>(t);
    case BinaryOp::kGe:
      return Comparison<Le, /*kSwapped=*/true>(t);
    case BinaryOp::kReluBackward:
      return Floats<ReluBackward>(t);
    case BinaryOp::kGeluBackward:
      return Floats<GeluBackward>(t);
    case BinaryOp::kGeluTanhBackward:
      return Floats<GeluTanhBackward>(t);
    case BinaryOp::kMaximum:
      return Selection<Maximum>(t);
    case BinaryOp::kMinimum:
      return Selection<Minimum>(t);
    case BinaryOp::kPow:
      return Powers<Pow>(t);
    case BinaryOp::kAnd:
      return Bits<And>(t);
    case BinaryOp::kOr:
      return Bits<Or>(t);
    case BinaryOp::kXor:
      return Bits<Xor>(t);
  }
  return {};
}

}  // namespace cuda
}  // namespace oneflow_lite
