// SPDX-License-Identifier: Apache-2.0
//
// Functions of the bits: what gives bool, and bitwise_not. Floats are seen as unsigned integers, so
// that the compiler vectorises all loops alike, once per instruction set.
#include <type_traits>

#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/unary.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/unary_truth.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// The bits of a float, and those of its infinity.
template <class T>
struct BitsOf {
  using type = std::conditional_t<sizeof(T) == 2, uint16_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  static constexpr type kInf = std::is_same_v<T, float16>    ? type{0x7c00}
                               : std::is_same_v<T, bfloat16> ? type{0x7f80}
                               : sizeof(T) == 4              ? static_cast<type>(0x7f800000u)
                                                : static_cast<type>(0x7ff0000000000000u);
  static constexpr type kSign = static_cast<type>(type{1} << (8 * sizeof(T) - 1));
};

template <class From, class F>
void Loop(int64_t n, const void* x_data, void* y_data, const UnaryParams&) {
  const From* x = static_cast<const From*>(x_data);
  auto* y = static_cast<decltype(F()(From()))*>(y_data);
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}

// A bool is read as the byte that it is, 0 or 1: the compiler vectorises no loop over bool.
template <class T>
using ReadAs = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

// of_float(bits, of infinity, of the sign) for floats, of_integer(x) for the rest.
template <class OfFloat, class OfInteger>
UnaryCode Truth(DType dtype, OfFloat, OfInteger) {
  return VisitAll(dtype, []<class T>(Tag<T>) -> UnaryCode {
    if constexpr (std::is_integral_v<T>) {
      return {&Loop<ReadAs<T>, OfInteger>};
    } else {
      using Bits = BitsOf<T>;
      const auto f = [](typename Bits::type b) -> bool {
        return OfFloat()(b, Bits::kInf, Bits::kSign);
      };
      return {&Loop<typename Bits::type, decltype(f)>};
    }
  });
}

UnaryCode Inverted(DType dtype) {
  if (IsFloating(dtype)) return {};
  return VisitAll(dtype, []<class T>(Tag<T>) -> UnaryCode {
    if constexpr (std::is_same_v<T, bool>) {
      return {&Loop<uint8_t, decltype([](uint8_t x) -> bool { return x == 0; })>};
    } else if constexpr (std::is_integral_v<T>) {
      return {&Loop<T, decltype([](T x) -> T { return static_cast<T>(~x); })>};
    }
    return {};
  });
}

}  // namespace

UnaryCode FindTruthHere(UnaryOp op, DType dtype) {
#define OFL_BITS(expression) [](auto b, auto inf, auto sign) -> bool { return expression; }
  constexpr auto no = [](auto) -> bool { return false; };
  constexpr auto yes = [](auto) -> bool { return true; };
  switch (op) {
    case UnaryOp::kIsNan:
      return Truth(dtype, OFL_BITS((b & ~sign) > inf), no);
    case UnaryOp::kIsInf:
      return Truth(dtype, OFL_BITS((b & ~sign) == inf), no);
    case UnaryOp::kIsFinite:
      return Truth(dtype, OFL_BITS((b & ~sign) < inf), yes);
    case UnaryOp::kIsPosInf:
      return Truth(dtype, OFL_BITS(b == inf), no);
    case UnaryOp::kIsNegInf:
      return Truth(dtype, OFL_BITS(b == (inf | sign)), no);
    case UnaryOp::kIsSigned:
      return Truth(dtype, OFL_BITS((b & sign) != 0),
                   [](auto x) -> bool { return static_cast<int64_t>(x) < 0; });
    case UnaryOp::kLogicalNot:
      return Truth(dtype, OFL_BITS((b & ~sign) == 0), [](auto x) -> bool { return x == 0; });
    case UnaryOp::kBitwiseNot:
      return Inverted(dtype);
    default:
      return {};
  }
#undef OFL_BITS
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(FindTruthHere);

UnaryCode FindTruth(UnaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindTruthHere)(op, dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
