// SPDX-License-Identifier: Apache-2.0
//
// One function object per binary op; the table in FindBinary names them.
#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Integers compute unsigned, where overflow wraps around.
template <class T, bool kInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>>
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
  __device__ bool operator()(bool a, bool b) const { return a || b; }
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
  __device__ bool operator()(bool a, bool b) const { return a && b; }
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
    return y > C(0) ? dy : C(0);
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
struct Gt {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a > b;
  }
};
struct Ge {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a >= b;
  }
};

// Which operand is one number: a value, or (in a dense launch) the element a pointer leads to.
enum class Single : int { kNone, kFirst, kSecond };

// T is the operands' type, Out the result's, C what Op computes in.
template <class T, class Out, class C, class Op>
struct BinaryRun {
  const T* a;
  const T* b;
  Out* out;
  Single single;
  bool by_value;  // the single operand is `value`, not at its pointer
  T value;

  __device__ T Number(const T* p) const { return by_value ? value : *p; }

  template <int N>
  __device__ void Run(int64_t i) const {
    Pack<T, N> pa, pb;
    if (single == Single::kFirst) {
      const T number = Number(a);
#pragma unroll
      for (int k = 0; k < N; ++k) pa.v[k] = number;
    } else {
      pa = LoadPack<N>(a + i);
    }
    if (single == Single::kSecond) {
      const T number = Number(b);
#pragma unroll
      for (int k = 0; k < N; ++k) pb.v[k] = number;
    } else {
      pb = LoadPack<N>(b + i);
    }
    Pack<Out, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      result.v[k] = ConvertTo<Out>(Op{}(ConvertTo<C>(pa.v[k]), ConvertTo<C>(pb.v[k])));
    }
    StorePack<N>(out + i, result);
  }

  // Offsets of a, b, out.
  __device__ void At(const int64_t (&offset)[3]) const {
    out[offset[2]] = ConvertTo<Out>(Op{}(ConvertTo<C>(a[offset[0]]), ConvertTo<C>(b[offset[1]])));
  }
  // Offsets of the operand that is not single, and out.
  __device__ void At(const int64_t (&offset)[2]) const {
    const C x = ConvertTo<C>((single == Single::kFirst ? b : a)[offset[0]]);
    const C number = ConvertTo<C>(value);
    out[offset[1]] = ConvertTo<Out>(single == Single::kFirst ? Op{}(number, x) : Op{}(x, number));
  }
};

// True where operand i is dense in one dim; a number where all its strides are 0.
template <int M>
bool IsDense(const Strided<M>& g, int i) {
  return g.ndim == 0 || (g.ndim == 1 && g.strides[i][0] == 1);
}
template <int M>
bool IsNumber(const Strided<M>& g, int i) {
  return g.ndim == 1 && g.strides[i][0] == 0;
}

template <class T, class Out>
constexpr int kBinaryPack = kPackSize<std::conditional_t<(sizeof(T) > sizeof(Out)), T, Out>>;

template <class T, class Out, class C, class Op>
cudaError_t LaunchTensors(const Strided<3>& g, const void* a, const void* b, void* out,
                          cudaStream_t stream) {
  BinaryRun<T, Out, C, Op> run{static_cast<const T*>(a),
                               static_cast<const T*>(b),
                               static_cast<Out*>(out),
                               Single::kNone,
                               false,
                               T{}};
  const bool dense_out = IsDense(g, 2);
  if (dense_out && IsNumber(g, 0) && IsDense(g, 1)) run.single = Single::kFirst;
  if (dense_out && IsNumber(g, 1) && IsDense(g, 0)) run.single = Single::kSecond;
  if (g.contiguous || run.single != Single::kNone) {
    return ForPacks<kBinaryPack<T, Out>>(g.numel, run, stream);
  }
  return ForElements(g, run, stream);
}

template <class T, class Out, class C, class Op>
cudaError_t LaunchScalar(const Strided<2>& g, const void* x, ScalarBits scalar, bool scalar_first,
                         void* out, cudaStream_t stream) {
  T value;
  memcpy(&value, &scalar, sizeof(T));
  const T* p = static_cast<const T*>(x);
  const BinaryRun<T, Out, C, Op> run{
      p, p, static_cast<Out*>(out), scalar_first ? Single::kFirst : Single::kSecond, true, value};
  if (g.contiguous) return ForPacks<kBinaryPack<T, Out>>(g.numel, run, stream);
  return ForElements(g, run, stream);
}

template <class T, class Out, class C, class Op>
BinaryLaunchers Launchers() {
  return {&LaunchTensors<T, Out, C, Op>, &LaunchScalar<T, Out, C, Op>};
}

template <class Op>
struct ArithmeticFinder {
  template <class T>
  BinaryLaunchers operator()(Tag<T>) const {
    return Launchers<T, T, typename ArithmeticOf<T>::type, Op>();
  }
};
template <class Op>
struct ComparisonFinder {
  template <class T>
  BinaryLaunchers operator()(Tag<T>) const {
    return Launchers<T, bool, ComputeType<T>, Op>();
  }
};

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
BinaryLaunchers Comparison(DType t) {
  return VisitDeviceAll<BinaryLaunchers>(t, ComparisonFinder<Op>{});
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
      return Comparison<Gt>(t);
    case BinaryOp::kGe:
      return Comparison<Ge>(t);
    case BinaryOp::kReluBackward:
      return Floats<ReluBackward>(t);
  }
  return {};
}

}  // namespace cuda
}  // namespace oneflow_lite
