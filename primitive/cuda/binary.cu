// SPDX-License-Identifier: Apache-2.0
//
// One function object per binary op; the table in FindBinary names them.
#include "primitive/cuda/binary_functions.cuh"
#include "primitive/cuda/division_functions.cuh"
#include "primitive/cuda/elementwise.cuh"
#include "primitive/cuda/math_functions.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

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
  C value;

  // The single operand, where it is the one at p.
  __device__ C Number(const T* p, Single role) const {
    if (single != role) return C{};
    return by_value ? value : ConvertTo<C>(*p);
  }

  template <int N>
  __device__ void Run(int64_t i) const {
    Pack<T, N> pa{}, pb{};
    if (single != Single::kFirst) pa = LoadPack<N>(a + i);
    if (single != Single::kSecond) pb = LoadPack<N>(b + i);
    const C first = Number(a, Single::kFirst), second = Number(b, Single::kSecond);
    Pack<Out, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C x = single == Single::kFirst ? first : ConvertTo<C>(pa.v[k]);
      const C y = single == Single::kSecond ? second : ConvertTo<C>(pb.v[k]);
      result.v[k] = ConvertTo<Out>(Op{}(x, y));
    }
    StorePack<N>(out + i, result);
  }

  // Offsets of a, b, out.
  __device__ void At(const int64_t (&offset)[3]) const {
    const C x = by_value && single == Single::kFirst ? value : ConvertTo<C>(a[offset[0]]);
    const C y = by_value && single == Single::kSecond ? value : ConvertTo<C>(b[offset[1]]);
    out[offset[2]] = ConvertTo<Out>(Op{}(x, y));
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

// kSwapped: computes Op(b, a), so that a > b needs no kernel beside b < a.
template <class T, class Out, class C, class Op, bool kSwapped>
cudaError_t LaunchTensors(const Strided<3>& given, const void* given_a, const void* given_b,
                          void* out, cudaStream_t stream) {
  Strided<3> g = given;
  if (kSwapped) memcpy(g.strides, given.strides[1], sizeof(g.strides[0]));
  if (kSwapped) memcpy(g.strides[1], given.strides, sizeof(g.strides[0]));
  const void *a = kSwapped ? given_b : given_a, *b = kSwapped ? given_a : given_b;
  BinaryRun<T, Out, C, Op> run{static_cast<const T*>(a),
                               static_cast<const T*>(b),
                               static_cast<Out*>(out),
                               Single::kNone,
                               false,
                               C{}};
  const bool dense_out = IsDense(g, 2);
  if (dense_out && IsNumber(g, 0) && IsDense(g, 1)) run.single = Single::kFirst;
  if (dense_out && IsNumber(g, 1) && IsDense(g, 0)) run.single = Single::kSecond;
  if (g.contiguous || run.single != Single::kNone) {
    return ForPacks<kBinaryPack<T, Out>>(g.numel, run, stream);
  }
  return ForElements(g, run, stream);
}

// The geometry of x and out as one of a, b, out, so that both forms share their kernels.
inline Strided<3> WithTwoInputs(const Strided<2>& g) {
  Strided<3> wide;
  wide.ndim = g.ndim;
  wide.contiguous = g.contiguous;
  wide.numel = g.numel;
  memcpy(wide.dims, g.dims, sizeof(g.dims));
  memcpy(wide.strides, g.strides, sizeof(g.strides[0]));
  memcpy(wide.strides[1], g.strides, sizeof(g.strides));
  memcpy(wide.multiplier, g.multiplier, sizeof(g.multiplier));
  memcpy(wide.shift, g.shift, sizeof(g.shift));
  return wide;
}

template <class T, class Out, class C, class Op, bool kSwapped>
cudaError_t LaunchScalar(const Strided<2>& g, const void* x, ScalarBits scalar, bool scalar_first,
                         void* out, cudaStream_t stream) {
  ComputeType<T> value;
  memcpy(&value, &scalar, sizeof(value));
  const T* p = static_cast<const T*>(x);
  const Single single = scalar_first != kSwapped ? Single::kFirst : Single::kSecond;
  const BinaryRun<T, Out, C, Op> run{p,      p,    static_cast<Out*>(out),
                                     single, true, static_cast<C>(value)};
  if (g.contiguous) return ForPacks<kBinaryPack<T, Out>>(g.numel, run, stream);
  return ForElements(WithTwoInputs(g), run, stream);
}

template <class T, class Out, class C, class Op, bool kSwapped = false>
BinaryLaunchers Launchers() {
  return {&LaunchTensors<T, Out, C, Op, kSwapped>, &LaunchScalar<T, Out, C, Op, kSwapped>};
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

template <class Op>
struct IntegerFinder {
  template <class T>
  BinaryLaunchers operator()(Tag<T>) const {
    if constexpr (std::is_integral_v<T>) return Launchers<T, T, T, Op>();
    return {};
  }
};
template <class Op>
BinaryLaunchers Integers(DType t) {
  return VisitDeviceNumeric<BinaryLaunchers>(t, IntegerFinder<Op>{});
}
// Steps are those of the dtype in memory.
BinaryLaunchers NextAfters(DType t) {
  if (t == DType::kFloat16) return Launchers<__half, __half, float, NextHalf>();
  if (t == DType::kBFloat16) return Launchers<__nv_bfloat16, __nv_bfloat16, float, NextBFloat>();
  return Floats<NextAfter>(t);
}

// Functions in headers of their own.
BinaryLaunchers FindMath(BinaryOp op, DType t) {
  switch (op) {
    // Divisions and functions of integers: division_functions.cuh.
    // clang-format off
    case BinaryOp::kFmod: return Powers<Fmod>(t);
    case BinaryOp::kRemainder: return Powers<Remainder>(t);
    case BinaryOp::kFloorDivide: return Powers<FloorDivide>(t);
    case BinaryOp::kTruncDivide: return Powers<TruncDivide>(t);
    case BinaryOp::kGcd: return Integers<Gcd>(t);
    case BinaryOp::kLcm: return Integers<Lcm>(t);
    case BinaryOp::kShiftLeft: return Integers<ShiftLeft>(t);
    case BinaryOp::kShiftRight: return Integers<ShiftRight>(t);
    case BinaryOp::kLogicalAnd: return Comparison<LogicalAnd>(t);
    case BinaryOp::kLogicalOr: return Comparison<LogicalOr>(t);
    case BinaryOp::kLogicalXor: return Comparison<LogicalXor>(t);
    // Functions of floats: math_functions.cuh.
    case BinaryOp::kFmax: return Floats<Fmax>(t);
    case BinaryOp::kFmin: return Floats<Fmin>(t);
    case BinaryOp::kHypot: return Floats<Hypot>(t);
    case BinaryOp::kAtan2: return Floats<Atan2>(t);
    case BinaryOp::kLogAddExp: return Floats<LogAddExp>(t);
    case BinaryOp::kLogAddExp2: return Floats<LogAddExp2>(t);
    case BinaryOp::kXLogY: return Floats<XLogY>(t);
    case BinaryOp::kXLog1PY: return Floats<XLog1PY>(t);
    case BinaryOp::kCopySign: return Floats<CopySign>(t);
    case BinaryOp::kNextAfter: return NextAfters(t);
    case BinaryOp::kLdexp: return Floats<Ldexp>(t);
    case BinaryOp::kHeaviside: return Selection<Heaviside>(t);
      // clang-format on
    default:
      return {};
  }
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
    default:
      return FindMath(op, t);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
