// SPDX-License-Identifier: Apache-2.0
//
// One expression per function over contiguous chunks of the compute type, which the compiler
// vectorises; the table in FindBinary names them. Broadcast, strided and 16-bit operands are
// brought into that form chunk by chunk.
#include "primitive/binary.h"

#include <cmath>
#include <limits>

#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/chunked_pass.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/binary.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/binary-inl.h"
#include "primitive/cpu/gelu-inl.h"
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_BINARY_ONCE_
#define OFL_PRIMITIVE_CPU_BINARY_ONCE_
namespace oneflow_lite {
// a to the power of b by squaring, wrapping around.
template <class T>
T Power(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b < 0) return a == 1 || (a == -1 && b % 2 == 0) ? T(1) : a == -1 ? a : T(0);
  }
  auto result = Raw(T(1)), square = Raw(a);
  for (auto rest = Raw(b); rest > 0; rest >>= 1) {
    if (rest & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

// Null where there is no code for the compute type.
BinaryLoop FindBinary(BinaryOp op, DType dtype) {
#define OFL_FN(expression) [](auto a, auto b) { return expression; }
  switch (op) {
    case BinaryOp::kAdd:
      return All(dtype, OFL_FN(Raw(a) + Raw(b)));
    case BinaryOp::kSub:
      return Numbers(dtype, OFL_FN(Raw(a) - Raw(b)));
    case BinaryOp::kMul:
      return All(dtype, OFL_FN(Raw(a) * Raw(b)));
    case BinaryOp::kDiv:
      return Floats(dtype, OFL_FN(a / b));
    case BinaryOp::kEq:
      return All(dtype, OFL_FN(a == b));
    case BinaryOp::kNe:
      return All(dtype, OFL_FN(a != b));
    case BinaryOp::kLt:
      return All(dtype, OFL_FN(a < b));
    case BinaryOp::kLe:
      return All(dtype, OFL_FN(a <= b));
    case BinaryOp::kGt:
      return All(dtype, OFL_FN(a > b));
    case BinaryOp::kGe:
      return All(dtype, OFL_FN(a >= b));
    case BinaryOp::kReluBackward:
      return Floats(dtype, OFL_FN(b <= 0 ? decltype(a)(0) : a));
    case BinaryOp::kGeluBackward:
      return Vectors(dtype, [](auto d, auto a, auto b)
                                OFL_SIMD_LAMBDA { return hn::Mul(a, GeluSlope(d, b)); });
    case BinaryOp::kGeluTanhBackward:
      return Vectors(dtype, [](auto d, auto a, auto b)
                                OFL_SIMD_LAMBDA { return hn::Mul(a, GeluTanhSlope(d, b)); });
    case BinaryOp::kMaximum:
      return All(dtype, OFL_FN(a > b || a != a ? a : b));
    case BinaryOp::kMinimum:
      return All(dtype, OFL_FN(a < b || a != a ? a : b));
    case BinaryOp::kPow:
      return Integers(dtype, OFL_FN(Power(a, b)));
    case BinaryOp::kAnd:
      return Bits(dtype, OFL_FN(static_cast<decltype(a)>(a & b)));
    case BinaryOp::kOr:
      return Bits(dtype, OFL_FN(static_cast<decltype(a)>(a | b)));
    case BinaryOp::kXor:
      return Bits(dtype, OFL_FN(static_cast<decltype(a)>(a ^ b)));
    default:
      return nullptr;
  }
#undef OFL_FN
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindBinary);

class CpuBinary final : public Binary {
 public:
  CpuBinary(const Spec& spec, BinaryLoop loop)
      : loop_(loop),
        short_loop_(FindShortBinary(spec.op, spec.dtype)),
        pass_(TypesOf(spec, ComputeType(spec.dtype))),
        short_pass_(TypesOf(spec, spec.dtype)),
        as_it_lies_{spec.a.value_or(spec.dtype) == spec.dtype,
                    spec.b.value_or(spec.dtype) == spec.dtype} {}

  Status Launch(Stream&, const Elementwise<3>& g, const Operand& a, const Operand& b,
                void* out) const override {
    if (short_loop_ && a.data && b.data) {
      short_pass_.Run(g, {{{a.data}, {b.data}}}, out, [&](int64_t n, const auto& in, void* y) {
        short_loop_(n, {in[0]}, {in[1]}, y);
      });
    } else if (short_loop_ && IsDense(g, a, b)) {
      LaunchShort(g.numel, a, b, out);
    } else {
      pass_.Run(g, {{{a.data, &a.number}, {b.data, &b.number}}}, out,
                [&](int64_t n, const auto& in, void* y) { loop_(n, in[0], in[1], y); });
    }
    return OkStatus();
  }

 private:
  static ChunkedTypes<2> TypesOf(const Spec& spec, DType loop) {
    const bool truth = IsComparison(spec.op);
    return {.in = {spec.a.value_or(spec.dtype), spec.b.value_or(spec.dtype)},
            .common = spec.dtype,
            .loop = loop,
            .result = truth ? DType::kBool : loop,
            .out = truth ? DType::kBool : spec.dtype};
  }

  // Whether all elements in memory lie in a row, in the dtype.
  bool IsDense(const Elementwise<3>& g, const Operand& a, const Operand& b) const {
    if ((a.data && !as_it_lies_[0]) || (b.data && !as_it_lies_[1])) return false;
    if (g.ndim == 0) return true;
    const auto row = [&](int i) { return g.strides[i][0] == 1; };
    return g.ndim == 1 && row(2) && (!a.data || row(0)) && (!b.data || row(1));
  }
  void LaunchShort(int64_t numel, const Operand& a, const Operand& b, void* out) const {
    const auto from = [](const Operand& operand, int64_t begin) -> ShortOperand {
      if (operand.data) return {static_cast<const uint16_t*>(operand.data) + begin};
      const float number = CastScalar<float>(operand.number);
      return {nullptr, number == number ? number : std::numeric_limits<float>::quiet_NaN()};
    };
    ParallelFor(numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      short_loop_(end - begin, from(a, begin), from(b, begin), static_cast<uint16_t*>(out) + begin);
    });
  }

  BinaryLoop loop_;
  ShortBinaryLoop short_loop_;
  ChunkedPass<2> pass_, short_pass_;
  bool as_it_lies_[2];
};

StatusOr<std::unique_ptr<Binary>> NewBinary(const Binary::Spec& spec) {
  BinaryLoop loop = HWY_DYNAMIC_DISPATCH(FindBinary)(spec.op, ComputeType(spec.dtype));
  if (!loop) loop = FindDivision(spec.op, spec.dtype);
  if (!loop) loop = FindBinaryMath(spec.op, spec.dtype);
  if (!loop) return NoPrimitiveFor(Binary::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuBinary>(spec, loop);
}

const bool registered = RegisterPrimitive<Binary>(DeviceType::kCPU, &NewBinary);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
