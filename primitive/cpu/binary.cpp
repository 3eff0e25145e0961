// SPDX-License-Identifier: Apache-2.0
//
// One expression per function over contiguous chunks of the compute type, which the compiler
// vectorises; the table in FindBinary names them. Broadcast, strided and 16-bit operands are
// brought into that form chunk by chunk.
#include "primitive/binary.h"

#include <algorithm>
#include <cmath>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/strided.h"
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
// a to the power of b; of integers by squaring, wrapping around.
template <class T>
T Power(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(a, b);
  } else {
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
      return Numbers(dtype, OFL_FN(Power(a, b)));
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
        compute_(ComputeType(spec.dtype)),
        item_(SizeOf(spec.dtype)),
        out_item_(IsComparison(spec.op) ? 1 : item_) {
    if (compute_ == spec.dtype) return;
    widen_ = FindConvert(spec.dtype, compute_);
    if (!IsComparison(spec.op)) narrow_ = FindConvert(compute_, spec.dtype);
  }

  Status Launch(Stream&, const Elementwise<3>& g, const void* a, const void* b,
                void* out) const override {
    const bool direct = g.contiguous && !widen_;
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      if (direct) {
        loop_(end - begin, At(a, begin), At(b, begin),
              static_cast<char*>(out) + begin * static_cast<int64_t>(out_item_));
        return;
      }
      Operand in_a(*this, StridedReader(g, 0, item_, a, begin));
      Operand in_b(*this, StridedReader(g, 1, item_, b, begin));
      Run(
          StridedWriter(g, 2, out_item_, out, begin), end - begin,
          [&](int64_t n) { return in_a.Next(n); }, [&](int64_t n) { return in_b.Next(n); });
    });
    return OkStatus();
  }

  Status LaunchScalar(Stream&, const Elementwise<2>& g, const void* x, Scalar scalar,
                      bool scalar_first, void* out) const override {
    ChunkBuffer repeated;
    Repeat(scalar, std::min(g.numel, kChunk), repeated);
    const auto number = [&](int64_t) -> const void* { return repeated.bytes; };
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      Operand in(*this, StridedReader(g, 0, item_, x, begin));
      const auto operand = [&](int64_t n) { return in.Next(n); };
      StridedWriter writer(g, 1, out_item_, out, begin);
      if (scalar_first) {
        Run(writer, end - begin, number, operand);
      } else {
        Run(writer, end - begin, operand, number);
      }
    });
    return OkStatus();
  }

 private:
  // An operand's chunks, widened to the compute type.
  class Operand {
   public:
    Operand(const CpuBinary& binary, const StridedReader& reader)
        : widen_(binary.widen_), reader_(reader) {}
    const void* Next(int64_t n) {
      const void* chunk = reader_.Read(n, gathered_);
      if (!widen_) return chunk;
      widen_(n, chunk, widened_.bytes);
      return widened_.bytes;
    }

   private:
    ConvertFunction widen_;
    StridedReader reader_;
    ChunkBuffer gathered_, widened_;
  };

  // `count` elements, chunk by chunk.
  template <class A, class B>
  void Run(StridedWriter writer, int64_t count, A next_a, B next_b) const {
    ChunkBuffer result, narrowed;
    for (int64_t i = 0; i < count; i += kChunk) {
      const int64_t n = std::min(kChunk, count - i);
      const void* a = next_a(n);
      const void* b = next_b(n);
      if (narrow_) {
        loop_(n, a, b, result.bytes);
        narrow_(n, result.bytes, writer.Start(n, narrowed));
        writer.Finish(n, narrowed);
      } else {
        loop_(n, a, b, writer.Start(n, result));
        writer.Finish(n, result);
      }
    }
  }

  // n copies of the number in the compute type.
  void Repeat(Scalar scalar, int64_t n, ChunkBuffer& buffer) const {
    VisitAll(compute_, [&]<class C>(Tag<C>) {
      const C value = CastScalar<C>(scalar);
      for (int64_t i = 0; i < n; ++i) {
        std::memcpy(buffer.bytes + i * static_cast<int64_t>(sizeof(C)), &value, sizeof(C));
      }
    });
  }

  const void* At(const void* p, int64_t i) const {
    return static_cast<const char*>(p) + i * static_cast<int64_t>(item_);
  }

  BinaryLoop loop_;
  ConvertFunction widen_ = nullptr;   // dtype to compute type, where they differ
  ConvertFunction narrow_ = nullptr;  // and back, unless the result is bool
  DType compute_;
  size_t item_, out_item_;
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
