// SPDX-License-Identifier: Apache-2.0
//
// One function object per unary op; the table in FindUnary names them. Exponentials, trigonometric
// and special functions are in unary_elementary.cu.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/float_normal_math.cuh"
#include "primitive/cuda/functions/gelu_tanh.cuh"
#include "primitive/cuda/functions/narrow_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Each takes and gives the compute type.
struct Neg {
  template <class C>
  __device__ C operator()(C x) const {
    return -x;
  }
};
struct Exp : LongInDouble {
  __device__ float operator()(float x) const { return expf(x); }
  __device__ double operator()(double x) const { return exp(x); }
};
struct Log : LongInDouble {
  __device__ float operator()(float x) const { return logf(x); }
  __device__ double operator()(double x) const { return log(x); }
  __device__ float Narrow(float x) const { return narrow::Log(x); }
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
  __device__ float Narrow(float x) const { return narrow::RootDown(x); }
};
struct Rsqrt {
  __device__ float operator()(float x) const { return rsqrtf(x); }
  __device__ double operator()(double x) const { return rsqrt(x); }
};
struct Sigmoid : LongInDouble {  // from the exp that is at most 1
  __device__ float operator()(float x) const { return fast::Sigmoid(x); }
  __device__ double operator()(double x) const {
    const double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
  }
  __device__ float Narrow(float x) const { return narrow::Sigmoid(x); }
};

struct Floor {
  __device__ float operator()(float x) const { return floorf(x); }
  __device__ double operator()(double x) const { return floor(x); }
};
struct GeluTanh : LongInDouble {
  template <class C>
  __device__ C operator()(C x) const {
    return GeluTanhOf(x);
  }
  __device__ float Narrow(float x) const { return narrow::GeluTanh(x); }
};
// x P(N <= x) of a standard normal N; erfc keeps its digits where that is small.
struct Gelu : LongInDouble {
  __device__ float operator()(float x) const { return fast::Gelu(x); }
  __device__ double operator()(double x) const {
    return x < -40.0 ? 0.0 : 0.5 * x * erfc(x * -0.70710678118654752440);
  }
  __device__ float Narrow(float x) const { return narrow::Gelu(x); }
};

// One expression for the floats.
#define OFL_FLOAT_FUNCTION(Name, expression) \
  struct Name {                              \
    template <class C>                       \
    __device__ C operator()(C x) const {     \
      return expression;                     \
    }                                        \
  }
OFL_FLOAT_FUNCTION(Ceil, ceil(x));
OFL_FLOAT_FUNCTION(Trunc, trunc(x));
OFL_FLOAT_FUNCTION(Round, rint(x));
OFL_FLOAT_FUNCTION(Frac, copysign(x - trunc(x), x));
OFL_FLOAT_FUNCTION(Deg2rad, x* C(0.01745329251994329577));
OFL_FLOAT_FUNCTION(Rad2deg, x* C(57.2957795130823208768));
#undef OFL_FLOAT_FUNCTION

struct Reciprocal {
  template <class C>
  __device__ C operator()(C x) const {
    return C(1) / x;
  }
  __device__ float Narrow(float x) const { return narrow::ReciprocalDown(x); }
};
struct Sign {  // 0 of NaN
  template <class C>
  __device__ C operator()(C x) const {
    return x < C(0) ? C(-1) : x > C(0) ? C(1) : C(0);
  }
};
struct Square {
  template <class C>
  __device__ C operator()(C x) const {
    if constexpr (std::is_floating_point_v<C>) {
      return x * x;
    } else {  // unsigned, where overflow wraps around
      using Wrapping = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
      return static_cast<C>(static_cast<Wrapping>(x) * static_cast<Wrapping>(x));
    }
  }
};
// A number as float and as double.
struct Number {
  explicit Number(double v) : single(static_cast<float>(v)), wide(v) {}
  float single;
  double wide;
  template <class C>
  __device__ C As() const {
    if constexpr (sizeof(C) == 4) return single;
    return wide;
  }
};
// params: 10^|decimals|, and whether the digits are before the point. Powers beyond 1e30 are for
// numbers near the ends of the format alone.
struct RoundDecimals {
  explicit RoundDecimals(const UnaryParams& params)
      : p(params),
        far(p.v[0] > 1e30),
        single(static_cast<float>(p.v[0]), before()),
        wide(p.v[0], before()) {}
  UnaryParams p;
  bool far;
  fast::DecimalRounding<float> single;
  fast::DecimalRounding<double> wide;
  bool before() const { return p.v[1] != 0; }
  __device__ float operator()(float x) const { return far ? Far(p, x) : single(x); }
  __device__ double operator()(double x) const { return far ? Far(p, x) : wide(x); }
  template <class C>
  __device__ __noinline__ static C Far(const UnaryParams& p, C x) {
    const C scale = static_cast<C>(p.v[0]);
    const bool before = p.v[1] != 0;
    const C scaled = before ? x / scale : x * scale, whole = rint(scaled);
    if (!isfinite(scaled)) return x;
    if (whole == C(0)) return copysign(C(0), x);
    return before ? whole * scale : whole / scale;
  }
};
// params: what replaces NaN, inf and -inf.
struct NanToNum {
  explicit NanToNum(const UnaryParams& p) : none(p.v[0]), most(p.v[1]), least(p.v[2]) {}
  Number none, most, least;
  template <class C>
  __device__ C operator()(C x) const {
    if (isfinite(x)) return x;
    return x != x ? none.As<C>() : x > C(0) ? most.As<C>() : least.As<C>();
  }
};

// Of the floats as they say, of the rest `rest`.
#define OFL_TRUTH(Name, expression, rest)          \
  struct Name {                                    \
    template <class C>                             \
    __device__ bool operator()(C x) const {        \
      if constexpr (std::is_floating_point_v<C>) { \
        return expression;                         \
      } else {                                     \
        return rest;                               \
      }                                            \
    }                                              \
  }
OFL_TRUTH(IsNan, x != x, false);
OFL_TRUTH(IsInf, fabs(x) == C(INFINITY), false);
OFL_TRUTH(IsFinite, fabs(x) < C(INFINITY), true);
OFL_TRUTH(IsPosInf, x == C(INFINITY), false);
OFL_TRUTH(IsNegInf, x == -C(INFINITY), false);
OFL_TRUTH(IsSigned, signbit(x) != 0, static_cast<int64_t>(x) < 0);
OFL_TRUTH(LogicalNot, x == C(0), x == C(0));
#undef OFL_TRUTH
struct BitwiseNot {
  explicit BitwiseNot(DType out) : bits(out == DType::kBool ? 1 : -1) {}
  template <class C>
  __device__ C operator()(C x) const {
    return x ^ static_cast<C>(bits);
  }
  int32_t bits;
};

template <class Op>
UnaryLauncher Floats(DType common) {
  return FindFor<kFloats, 1, UnaryParams, Op>(common);
}
template <class Op>
UnaryLauncher Numbers(DType common) {
  return FindFor<kNumbers, 1, UnaryParams, Op>(common);
}
template <class Op>
UnaryLauncher Truths(DType common) {
  return FindFor<kAll, 1, UnaryParams, Op>(common);
}

UnaryLauncher FindTruth(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kIsNan:
      return Truths<IsNan>(dtype);
    case UnaryOp::kIsInf:
      return Truths<IsInf>(dtype);
    case UnaryOp::kIsFinite:
      return Truths<IsFinite>(dtype);
    case UnaryOp::kIsPosInf:
      return Truths<IsPosInf>(dtype);
    case UnaryOp::kIsNegInf:
      return Truths<IsNegInf>(dtype);
    case UnaryOp::kIsSigned:
      return Truths<IsSigned>(dtype);
    case UnaryOp::kLogicalNot:
      return Truths<LogicalNot>(dtype);
    case UnaryOp::kBitwiseNot:
      return FindFor<kIntegers | kBools, 1, UnaryParams, BitwiseNot>(dtype);
    default:
      return nullptr;
  }
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
    case UnaryOp::kSigmoid:
      return Floats<Sigmoid>(dtype);
    case UnaryOp::kFloor:
      return Floats<Floor>(dtype);
    case UnaryOp::kGeluTanh:
      return Floats<GeluTanh>(dtype);
    case UnaryOp::kGelu:
      return Floats<Gelu>(dtype);
    case UnaryOp::kCeil:
      return Floats<Ceil>(dtype);
    case UnaryOp::kTrunc:
      return Floats<Trunc>(dtype);
    case UnaryOp::kRound:
      return Floats<Round>(dtype);
    case UnaryOp::kRoundDecimals:
      return Floats<RoundDecimals>(dtype);
    case UnaryOp::kFrac:
      return Floats<Frac>(dtype);
    case UnaryOp::kSign:
      return Numbers<Sign>(dtype);
    case UnaryOp::kSquare:
      return Numbers<Square>(dtype);
    case UnaryOp::kReciprocal:
      return Floats<Reciprocal>(dtype);
    case UnaryOp::kDeg2rad:
      return Floats<Deg2rad>(dtype);
    case UnaryOp::kRad2deg:
      return Floats<Rad2deg>(dtype);
    case UnaryOp::kNanToNum:
      return Floats<NanToNum>(dtype);
    default:
      return FindTruth(op, dtype);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
