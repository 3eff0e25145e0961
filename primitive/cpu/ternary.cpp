// SPDX-License-Identifier: Apache-2.0
//
// One expression per function of three operands, over contiguous chunks of the compute type; what
// lies otherwise, 16-bit floats and numbers are brought into that form chunk by chunk. Functions of
// few instructions take floats as they lie: ternary_dense.cpp.
#include "primitive/ternary.h"

#include <cmath>
#include <limits>

#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/chunked_pass.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/ternary.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/ternary.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_TERNARY_ONCE_
#define OFL_PRIMITIVE_CPU_TERNARY_ONCE_
namespace oneflow_lite {
// out may be an operand.
using TernaryLoop = void (*)(int64_t n, const void* a, const void* b, const void* c,
                             const TernaryNumbers& v, void* out);

// From the end that is nearer, so that weights 0 and 1 give the ends.
template <class T>
T Lerp(T a, T b, T w) {
  const T way = b - a;
  return std::abs(w) < T(0.5) ? a + w * way : b - way * (T(1) - w);
}
template <class T>
T LargerOf(T a, T b) {
  return (a > b) | (a != a) ? a : b;
}
template <class T>
T SmallerOf(T a, T b) {
  return (a < b) | (a != a) ? a : b;
}
template <class T>
bool IsInside(T x, T low, T high) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  return ((x > low) | (low == -kInf)) & ((x < high) | (high == kInf)) & (x == x);
}
// functional/ternary.h says what the shares are. `kWhich` is known to the compiler, which keeps
// branches in a loop that chooses.
template <int kWhich, class T>
T ClampShare(T x, T low, T high) {
  constexpr T kNone = 0, kHalf = T(0.5), kAll = 1;
  if (kWhich == 1) {
    const T tied = (x == low) & (low < high) ? kHalf : kNone;
    return (x < low) & !(low > high) ? kAll : tied;
  }
  if (kWhich == 2) {
    const T tied = (x == high) & (low < high) ? kHalf : kNone;
    return (x > high) | (low > high) ? kAll : tied;
  }
  const T whole = ((x == low) | (x == high)) & (low < high) ? kHalf : kAll;
  return (x < low) | (x > high) | (low > high) ? kNone : whole;
}
template <class T>
bool IsClose(T a, T b, const TernaryNumbers& v) {
  using Wide = std::conditional_t<std::is_integral_v<T>, double, T>;
  const Wide x = static_cast<Wide>(a), y = static_cast<Wide>(b);
  const bool within = std::abs(x - y) <= Wide(v.v) + Wide(v.rtol) * std::abs(y);
  const bool finite = std::abs(y) <= std::numeric_limits<Wide>::max();
  return (a == b) | (within & finite) | (v.equal_nan & (a != a) & (b != b));
}
template <class T>
T PowSlopeB(T g, T a, T b) {
  return a == 0 && b >= 0 ? T(0) : g * (std::pow(a, b) * std::log(a));
}
// Of a and b equal the one half; g also beside NaN.
template <class T>
T Share(T g, bool beaten, bool equal) {
  return beaten ? T(0) : equal ? g * T(0.5) : g;
}
// The quotient of fmod, exact where it fits.
template <class T>
T FmodSlopeB(T g, T a, T b) {
  return -g * std::nearbyint((a - std::fmod(a, b)) / b);
}
template <class T>
T Atan2SlopeA(T g, T a, T b) {
  if (std::isinf(b) && a == a) return T(0);
  const T length = std::hypot(a, b);
  return length == 0 ? g * b : g * (b / length) / length;  // at the origin it is 0, as in PyTorch
}
template <class T>
T LogAddExpSlope(T g, T a, T b, T scale) {
  const T lead = a == b ? T(0) : scale * (b - a);
  return g / (T(1) + std::exp(lead));
}
template <class T>
T XLogYSlopeA(T g, T a, T b, T plus) {
  if (a == 0 && !(b + plus > 0 && b <= std::numeric_limits<T>::max()) && b == b) return T(0);
  return g * (plus != 0 ? std::log1p(b) : std::log(b));
}
template <class T>
T XLogYSlopeB(T g, T a, T b, T plus) {
  return a == 0 && b == b ? T(0) : g * (a / (b + plus));
}
template <class T>
T CopySignSlope(T g, T a, T b) {
  return a == 0 ? T(0) : std::signbit(a) == std::signbit(b) ? g : -g;
}
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T, class R, class F>
void Loop(int64_t n, const void* a_data, const void* b_data, const void* c_data,
          const TernaryNumbers& numbers, void* out_data) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  const T* c = static_cast<const T*>(c_data);
  R* out = static_cast<R*>(out_data);
  const TernaryNumbers v = numbers;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(F()(a[i], b[i], c[i], v));
}
template <class T, class F>
TernaryLoop Make(F) {
  constexpr bool kCompares = std::is_same_v<decltype(F()(T(), T(), T(), TernaryNumbers())), bool>;
  return &Loop<T, std::conditional_t<kCompares, bool, T>, F>;
}
template <class F>
TernaryLoop Floats(DType dtype, F f) {
  if (dtype == DType::kFloat32) return Make<float>(f);
  return dtype == DType::kFloat64 ? Make<double>(f) : nullptr;
}
// The bounds on vectors: the compiler keeps branches in that loop.
template <class T>
void ClampLoop(int64_t n, const void* a_data, const void* b_data, const void* c_data,
               const TernaryNumbers&, void* out_data) {
  const hn::ScalableTag<T> d;
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  const T* c = static_cast<const T*>(c_data);
  T* out = static_cast<T*>(out_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto x = LoadUpTo(d, a + i, count, zero), low = LoadUpTo(d, b + i, count, zero);
    const auto high = LoadUpTo(d, c + i, count, zero);
    const auto y = hn::IfThenElse(hn::Or(hn::Gt(x, low), hn::IsNaN(x)), x, low);
    const auto z = hn::IfThenElse(hn::Or(hn::Lt(y, high), hn::IsNaN(y)), y, high);
    StoreUpTo(z, d, out + i, count);
  });
}
template <class T>
void ClampShareLoop(int64_t n, const void* a, const void* b, const void* c, const TernaryNumbers& v,
                    void* out) {
  const auto loop = [&]<int kWhich>(std::integral_constant<int, kWhich>) {
    const auto share = [](T x, T low, T high, const TernaryNumbers&) {
      return ClampShare<kWhich>(x, low, high);
    };
    Loop<T, T, decltype(share)>(n, a, b, c, v, out);
  };
  if (v.whole == 1) return loop(std::integral_constant<int, 1>());
  if (v.whole == 2) return loop(std::integral_constant<int, 2>());
  loop(std::integral_constant<int, 0>());
}
// g b a^(b - 1), 0 where b is 0; the powers by vectors.
template <class T>
void PowSlopeLoop(int64_t n, const void* g_data, const void* a_data, const void* b_data,
                  const TernaryNumbers&, void* out_data) {
  static const BinaryLoop power = FindBinaryMath(BinaryOp::kPow, DTypeOf<T>());
  const T* g = static_cast<const T*>(g_data);
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* out = static_cast<T*>(out_data);
  T powers[kChunk];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t length = std::min(kChunk, n - begin);
    for (int64_t i = 0; i < length; ++i) powers[i] = b[begin + i] - 1;
    power(length, a + begin, powers, powers);
    for (int64_t i = 0; i < length; ++i) {
      const T times = b[begin + i];
      out[begin + i] = times == 0 ? T(0) : g[begin + i] * (times * powers[i]);
    }
  }
}
template <class F>
TernaryLoop All(DType dtype, F f) {
  return VisitAll(ComputeType(dtype), [&]<class T>(Tag<T>) -> TernaryLoop {
    if constexpr (std::is_same_v<T, ComputeOf<T>>) return Make<T>(f);
    return nullptr;
  });
}

template <class T>
T NumberOf(const TernaryNumbers& v) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(v.whole);
  return static_cast<T>(v.v);
}

}  // namespace

// Null where there is no code for the compute type.
TernaryLoop FindTernary(TernaryOp op, DType dtype) {
#define OFL_FN(expression) \
  [](auto a, auto b, auto c, const TernaryNumbers& v) { return expression; }
#define OFL_V NumberOf<decltype(a)>(v)
  switch (op) {
    case TernaryOp::kLerp:
      return Floats(dtype, OFL_FN(((void)v, Lerp(a, b, c))));
    case TernaryOp::kAddCMul:
      return All(dtype, OFL_FN(static_cast<decltype(a)>(Raw(a) + Raw(OFL_V) * Raw(b) * Raw(c))));
    case TernaryOp::kAddCDiv:
      return Floats(dtype, OFL_FN(a + OFL_V * (b / c)));
    case TernaryOp::kMulDiv:
      return Floats(dtype, OFL_FN(OFL_V * a * (b / c)));
    case TernaryOp::kClamp:
      if (dtype == DType::kFloat32) return &ClampLoop<float>;
      if (dtype == DType::kFloat64) return &ClampLoop<double>;
      return All(dtype, OFL_FN(((void)v, SmallerOf(LargerOf(a, b), c))));
    case TernaryOp::kClampInside:
      return Floats(dtype, OFL_FN(((void)v, IsInside(a, b, c))));
    case TernaryOp::kClampShare:
      if (dtype == DType::kFloat32) return &ClampShareLoop<float>;
      return dtype == DType::kFloat64 ? &ClampShareLoop<double> : nullptr;
    case TernaryOp::kIsClose:
      return All(dtype, OFL_FN(((void)c, IsClose(a, b, v))));
    case TernaryOp::kPowSlopeA:
      if (dtype == DType::kFloat32) return &PowSlopeLoop<float>;
      return dtype == DType::kFloat64 ? &PowSlopeLoop<double> : nullptr;
    case TernaryOp::kPowSlopeB:
      return Floats(dtype, OFL_FN(((void)v, PowSlopeB(a, b, c))));
    case TernaryOp::kMaximumSlope:
      return Floats(dtype, OFL_FN(((void)v, Share(a, c > b, c == b))));
    case TernaryOp::kMinimumSlope:
      return Floats(dtype, OFL_FN(((void)v, Share(a, c < b, c == b))));
    case TernaryOp::kFmaxSlope:
      return Floats(dtype, OFL_FN(((void)v, Share(a, c > b || (b != b && c == c), c == b))));
    case TernaryOp::kFminSlope:
      return Floats(dtype, OFL_FN(((void)v, Share(a, c < b || (b != b && c == c), c == b))));
    case TernaryOp::kFmodSlopeB:
      return Floats(dtype, OFL_FN(((void)v, FmodSlopeB(a, b, c))));
    case TernaryOp::kAtan2SlopeA:
      return Floats(dtype, OFL_FN(((void)v, Atan2SlopeA(a, b, c))));
    case TernaryOp::kLogAddExpSlope:
      return Floats(dtype, OFL_FN(LogAddExpSlope(a, b, c, OFL_V)));
    case TernaryOp::kXLogYSlopeA:
      return Floats(dtype, OFL_FN(XLogYSlopeA(a, b, c, OFL_V)));
    case TernaryOp::kXLogYSlopeB:
      return Floats(dtype, OFL_FN(XLogYSlopeB(a, b, c, OFL_V)));
    case TernaryOp::kCopySignSlope:
      return Floats(dtype, OFL_FN(((void)v, CopySignSlope(a, b, c))));
    case TernaryOp::kPreluSlopeA:
      return Floats(dtype, OFL_FN(((void)v, b > 0 ? a : a * c)));
    case TernaryOp::kPreluSlopeB:
      return Floats(dtype, OFL_FN(((void)v, b > 0 ? decltype(a)(0) : a * c)));
  }
#undef OFL_V
#undef OFL_FN
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindTernary);

class CpuTernary final : public Ternary {
 public:
  CpuTernary(const Spec& spec, TernaryLoop loop)
      : loop_(loop),
        dense_(FindDenseTernary(spec.op, spec.dtype)),
        op_(spec.op),
        dtype_(spec.dtype),
        item_(static_cast<int64_t>(SizeOf(spec.dtype))),
        pass_(TypesOf(spec, ComputeType(spec.dtype))),
        dense_pass_(TypesOf(spec, spec.dtype)) {}

  Status Launch(Stream&, const Elementwise<4>& g, const Ternary::Operand (&operands)[3],
                const TernaryNumbers& numbers, void* out) const override {
    if (dense_ && TakesDense(operands)) {
      LaunchDense(g, operands, DenseNumber(dtype_, numbers.v).number, out);
      return OkStatus();
    }
    ChunkedPass<3>::Operands in;
    for (int i = 0; i < 3; ++i) in[i] = {operands[i].data, &operands[i].number};
    pass_.Run(g, in, out, [&](int64_t n, const auto& chunks, void* y) {
      loop_(n, chunks[0], chunks[1], chunks[2], numbers, y);
    });
    return OkStatus();
  }

 private:
  static ChunkedTypes<3> TypesOf(const Spec& spec, DType loop) {
    const bool truth = IsComparison(spec.op);
    return {.in = {spec.dtype, spec.dtype, spec.dtype},
            .common = spec.dtype,
            .loop = loop,
            .result = truth ? DType::kBool : loop,
            .out = truth ? DType::kBool : spec.dtype};
  }

  // Clamp's loop takes numbers as bounds, that of a power's slope a short exponent.
  bool TakesDense(const Operand (&operands)[3]) const {
    if (op_ == TernaryOp::kClamp) return AreBounds(operands[1], operands[2]);
    if (op_ != TernaryOp::kPowSlopeA) return true;
    return operands[1].data && !operands[2].data && IsShortPower(operands[2].number);
  }
  // Numbers other than NaN.
  static bool AreBounds(const Operand& least, const Operand& most) {
    if (least.data || most.data) return false;
    return !std::isnan(least.number.to<double>()) && !std::isnan(most.number.to<double>());
  }
  // Whether the result and all elements lie in a row.
  static bool AreRows(const Elementwise<4>& g, const Operand (&operands)[3]) {
    const auto row = [&](int i) { return g.strides[i][0] == 1; };
    bool rows = g.ndim <= 1 && (g.ndim == 0 || row(3));
    for (int i = 0; i < 3; ++i) rows = rows && (g.ndim == 0 || !operands[i].data || row(i));
    return rows;
  }
  void LaunchDense(const Elementwise<4>& g, const Operand (&operands)[3], double number,
                   void* out) const {
    DenseOperand all[3];
    ChunkedPass<3>::Operands in;
    for (int i = 0; i < 3; ++i) {
      all[i] = DenseNumber(dtype_, operands[i].number);
      all[i].data = operands[i].data;
      in[i] = {operands[i].data};
    }
    if (!AreRows(g, operands)) {
      dense_pass_.Run(g, in, out, [&](int64_t n, const auto& chunks, void* y) {
        DenseOperand here[3];
        for (int i = 0; i < 3; ++i) here[i] = {all[i].data ? chunks[i] : nullptr, all[i].number};
        dense_(n, here, number, y);
      });
      return;
    }
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      const auto from = [&](const void* p) { return static_cast<const char*>(p) + begin * item_; };
      DenseOperand here[3];
      for (int i = 0; i < 3; ++i) {
        here[i] = {all[i].data ? from(all[i].data) : nullptr, all[i].number};
      }
      dense_(end - begin, here, number, static_cast<char*>(out) + begin * item_);
    });
  }

  TernaryLoop loop_;
  DenseTernaryLoop dense_;
  TernaryOp op_;
  DType dtype_;
  int64_t item_;
  ChunkedPass<3> pass_, dense_pass_;
};

StatusOr<std::unique_ptr<Ternary>> NewTernary(const Ternary::Spec& spec) {
  TernaryLoop loop = HWY_DYNAMIC_DISPATCH(FindTernary)(spec.op, ComputeType(spec.dtype));
  if (!loop) return NoPrimitiveFor(Ternary::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuTernary>(spec, loop);
}

const bool registered = RegisterPrimitive<Ternary>(DeviceType::kCPU, &NewTernary);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
