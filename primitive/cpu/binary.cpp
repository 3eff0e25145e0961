// SPDX-License-Identifier: Apache-2.0
//
// One expression per function over contiguous chunks of the compute type, which the compiler
// vectorises; the table in FindBinary names them. Broadcast, strided and 16-bit operands are
// brought into that form chunk by chunk.
#include "primitive/binary.h"

#include <algorithm>
#include <cmath>

#include "oneflow_lite/core/elementwise_order.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/chunk_conversion.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/strided.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/binary.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/gelu-inl.h"
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_BINARY_ONCE_
#define OFL_PRIMITIVE_CPU_BINARY_ONCE_
namespace oneflow_lite {
// out may be a or b.
using BinaryLoop = void (*)(int64_t n, const void* a, const void* b, void* out);

// An operand in which arithmetic wraps around instead of overflowing: unsigned, and at least as
// wide as int, to which C++ would promote it.
template <class T>
constexpr auto Raw(T v) {
  if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T>)
    return v;
  else if constexpr (sizeof(T) == 8)
    return static_cast<uint64_t>(v);
  else
    return static_cast<uint32_t>(v);
}

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
namespace {

template <class T, class R, class F>
void Loop(int64_t n, const void* a_data, const void* b_data, void* out_data) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  R* out = static_cast<R*>(out_data);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(F()(a[i], b[i]));
}

template <class T, class F>
BinaryLoop Make(F) {
  constexpr bool kCompares =
      std::is_same_v<decltype(F()(T(), T())), bool> && !std::is_same_v<T, bool>;
  return &Loop<T, std::conditional_t<kCompares, bool, T>, F>;
}

// f for the compute types float32 and float64; for integers; both; all of them and bool; integers
// and bool. Null for the rest.
template <class F>
BinaryLoop Floats(DType dtype, F f) {
  if (dtype == DType::kFloat32) return Make<float>(f);
  return dtype == DType::kFloat64 ? Make<double>(f) : nullptr;
}
// f on vectors, where the compiler would not vectorise it.
template <class T, class F>
void VectorLoop(int64_t n, const void* a_data, const void* b_data, void* out_data) {
  const TagOf<T> d;
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* out = static_cast<T*>(out_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto y = F()(d, LoadUpTo(d, a + i, count, zero), LoadUpTo(d, b + i, count, zero));
    StoreUpTo(y, d, out + i, count);
  });
}
template <class F>
BinaryLoop Vectors(DType dtype, F) {
  if (dtype == DType::kFloat32) return &VectorLoop<float, F>;
  return dtype == DType::kFloat64 ? &VectorLoop<double, F> : nullptr;
}
template <class F>
BinaryLoop Integers(DType dtype, F f) {
  switch (dtype) {
    case DType::kUInt8:
      return Make<uint8_t>(f);
    case DType::kInt8:
      return Make<int8_t>(f);
    case DType::kInt16:
      return Make<int16_t>(f);
    case DType::kInt32:
      return Make<int32_t>(f);
    case DType::kInt64:
      return Make<int64_t>(f);
    default:
      return nullptr;
  }
}
template <class F>
BinaryLoop Numbers(DType dtype, F f) {
  return IsFloating(dtype) ? Floats(dtype, f) : Integers(dtype, f);
}
template <class F>
BinaryLoop All(DType dtype, F f) {
  return dtype == DType::kBool ? Make<bool>(f) : Numbers(dtype, f);
}
template <class F>
BinaryLoop Bits(DType dtype, F f) {
  return dtype == DType::kBool ? Make<bool>(f) : Integers(dtype, f);
}

}  // namespace

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
  }
#undef OFL_FN
  return nullptr;
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
        a_(spec.a.value_or(spec.dtype), spec.dtype),
        b_(spec.b.value_or(spec.dtype), spec.dtype),
        out_item_(IsComparison(spec.op) ? 1 : SizeOf(spec.dtype)) {
    if (compute_ != spec.dtype && !IsComparison(spec.op))
      narrow_ = FindConvert(compute_, spec.dtype);
  }

  Status Launch(Stream&, const Elementwise<3>& given, const void* a, const void* b,
                void* out) const override {
    const Elementwise<3> g = OrderedBy(given, 2);
    const bool direct = g.contiguous && !a_.widen && !b_.widen && !narrow_;
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      if (direct) {
        loop_(end - begin, a_.At(a, begin), b_.At(b, begin),
              static_cast<char*>(out) + begin * static_cast<int64_t>(out_item_));
        return;
      }
      Operand in_a(a_, StridedReader(g, 0, a_.item, a, begin));
      Operand in_b(b_, StridedReader(g, 1, b_.item, b, begin));
      Run(
          StridedWriter(g, 2, out_item_, out, begin), end - begin,
          [&](int64_t n) { return in_a.Next(n); }, [&](int64_t n) { return in_b.Next(n); });
    });
    return OkStatus();
  }

  Status LaunchScalar(Stream&, const Elementwise<2>& given, const void* x, Scalar scalar,
                      bool scalar_first, void* out) const override {
    const Elementwise<2> g = OrderedBy(given, 1);
    const OperandType& type = scalar_first ? b_ : a_;
    ChunkBuffer repeated;
    Repeat(scalar, std::min(g.numel, kChunk), repeated);
    const auto number = [&](int64_t) -> const void* { return repeated.bytes; };
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      Operand in(type, StridedReader(g, 0, type.item, x, begin));
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
  // How an operand gets from memory to the compute type.
  struct OperandType {
    OperandType(DType dtype, DType common)
        : widen(dtype, common, ComputeType(common)), item(SizeOf(dtype)) {}
    const void* At(const void* p, int64_t i) const {
      return static_cast<const char*>(p) + i * static_cast<int64_t>(item);
    }
    ChunkConversion widen;
    size_t item;
  };

  // An operand's chunks, widened to the compute type.
  class Operand {
   public:
    Operand(const OperandType& type, const StridedReader& reader) : type_(type), reader_(reader) {}
    const void* Next(int64_t n) { return type_.widen(n, reader_.Read(n, gathered_), widened_); }

   private:
    const OperandType& type_;
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

  BinaryLoop loop_;
  DType compute_;
  OperandType a_, b_;
  ConvertFunction narrow_ = nullptr;  // compute type to the result's, where they differ
  size_t out_item_;
};

StatusOr<std::unique_ptr<Binary>> NewBinary(const Binary::Spec& spec) {
  BinaryLoop loop = HWY_DYNAMIC_DISPATCH(FindBinary)(spec.op, ComputeType(spec.dtype));
  if (!loop) return NoPrimitiveFor(Binary::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuBinary>(spec, loop);
}

const bool registered = RegisterPrimitive<Binary>(DeviceType::kCPU, &NewBinary);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
