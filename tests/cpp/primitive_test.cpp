// SPDX-License-Identifier: Apache-2.0
//
// The elementwise primitives (unary, binary, copy) against plain references on the host, for every
// device there is, every dtype, and geometries that take each path: contiguous, broadcast, strided,
// transposed.
#include "primitive/binary.h"
#include "primitive/copy.h"
#include "primitive/unary.h"
#include "primitive_geometry.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

// ---- Unary ----

class UnaryTest : public PrimitiveTest {
 protected:
  HostArray Run(UnaryOp op, const HostArray& x, int64_t offset, bool in_place) {
    auto unary = New<UnaryFactory>({op, x.dtype});
    Buffer in(*this, x, offset), out(*this, x.dtype, x.size(), offset);
    const Buffer& y = in_place ? in : out;
    EXPECT_TRUE(unary->Launch(*stream_, x.size(), in.data(), y.data()).ok());
    return y.Read();
  }
};

double UnaryReference(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::kNeg:
      return -x;
    case UnaryOp::kExp:
      return std::exp(x);
    case UnaryOp::kLog:
      return std::log(x);
    case UnaryOp::kRelu:
      return x < 0 ? 0 : x;
    case UnaryOp::kAbs:
      return std::abs(x);
    case UnaryOp::kSqrt:
      return std::sqrt(x);
    case UnaryOp::kRsqrt:
      return 1 / std::sqrt(x);
    case UnaryOp::kTanh:
      return std::tanh(x);
    case UnaryOp::kSigmoid:
      return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    case UnaryOp::kSin:
      return std::sin(x);
    case UnaryOp::kCos:
      return std::cos(x);
    case UnaryOp::kErf:
      return std::erf(x);
    case UnaryOp::kFloor:
      return std::floor(x);
    case UnaryOp::kSilu:
      return x == -kInf ? 0 : x * UnaryReference(UnaryOp::kSigmoid, x);
    case UnaryOp::kGelu:
      return x == -kInf ? 0 : 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  }
  return kNan;
}

// 4e-6 relative in float32 (subnormals: one step), and one step of the dtype more. Far below 0,
// silu and gelu are products with a factor that has lost digits: there it is an absolute error.
double ElementTolerance(DType dtype, double want, UnaryOp op = UnaryOp::kNeg) {
  const bool wide = dtype == DType::kFloat64;
  const bool product = op == UnaryOp::kSilu || op == UnaryOp::kGelu;
  return (wide ? 4e-15 : 4e-6) * std::abs(want) + StepOf(dtype, want) +
         (product ? (wide ? 1e-18 : 1e-9) : 0);
}

TEST_P(UnaryTest, FloatsAndTheirCornerCases) {
  for (const UnaryOp op :
       {UnaryOp::kNeg, UnaryOp::kExp, UnaryOp::kLog, UnaryOp::kRelu, UnaryOp::kAbs, UnaryOp::kSqrt,
        UnaryOp::kRsqrt, UnaryOp::kTanh, UnaryOp::kSigmoid, UnaryOp::kSin, UnaryOp::kCos,
        UnaryOp::kErf, UnaryOp::kFloor, UnaryOp::kSilu, UnaryOp::kGelu}) {
    for (const DType dtype : kFloatingTypes) {
      for (const int64_t n : {0, 1, 7, 33, 1000, 100003}) {
        Numbers numbers(1);
        HostArray x = numbers.NormalArray(dtype, n, op == UnaryOp::kExp ? 4 : 30);
        const double corners[] = {0,    -0.0,  1,    -1,   kInf, -kInf, kNan,   88.7,
                                  89.5, -87.5, -100, -104, -110, 1e-40, 1e-310, 6e-8,
                                  709,  710.5, -720, -745, -800, 1e300, -1e300, 60000};
        for (size_t i = 0; i < std::size(corners) && 100 < n; ++i) x.Set(20 + i, corners[i]);
        std::vector<double> want(n);
        const double largest = dtype == DType::kFloat16    ? 65504
                               : dtype == DType::kFloat64  ? 1.7976931348623157e308
                               : dtype == DType::kBFloat16 ? 3.3895313892515355e38
                                                           : 3.4028234663852886e38;
        for (int64_t i = 0; i < n; ++i) {
          want[i] = UnaryReference(op, x.Float(i));
          if (want[i] > largest + StepOf(dtype, largest) / 2) want[i] = kInf;
        }
        for (const bool in_place : {false, true}) {
          ExpectNear(
              Run(op, x, n % 2, in_place), want,
              [&](int64_t i) { return ElementTolerance(dtype, want[i], op); },
              "unary " + std::to_string(static_cast<int>(op)));
        }
      }
    }
  }
}

TEST_P(UnaryTest, IntegersWrapAround) {
  for (const DType dtype :
       {DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    Numbers numbers(2);
    HostArray x = numbers.AnyArray(dtype, 1003), neg(dtype, 1003), relu(dtype, 1003);
    HostArray size(dtype, 1003);
    x.SetInt(5, int64_t{1} << (8 * SizeOf(dtype) - 1));  // the smallest of a signed dtype
    for (int64_t i = 0; i < x.size(); ++i) {
      neg.SetInt(i, static_cast<int64_t>(0 - static_cast<uint64_t>(x.Int(i))));
      relu.SetInt(i, std::max<int64_t>(0, x.Int(i)));
      size.SetInt(i, x.Int(i) < 0 ? neg.Int(i) : x.Int(i));
    }
    EXPECT_TRUE(Run(UnaryOp::kNeg, x, 1, false) == neg) << Name(dtype);
    EXPECT_TRUE(Run(UnaryOp::kRelu, x, 1, true) == relu) << Name(dtype);
    EXPECT_TRUE(Run(UnaryOp::kAbs, x, 1, false) == size) << Name(dtype);
    EXPECT_FALSE(NewPrimitive<UnaryFactory>(GetParam(), {UnaryOp::kExp, dtype}).ok());
  }
  EXPECT_FALSE(NewPrimitive<UnaryFactory>(GetParam(), {UnaryOp::kNeg, DType::kBool}).ok());
}

// ---- Binary ----

// All that are correctly rounded: not kPow.
constexpr BinaryOp kBinaryOps[] = {
    BinaryOp::kAdd,     BinaryOp::kSub, BinaryOp::kMul,          BinaryOp::kDiv,
    BinaryOp::kEq,      BinaryOp::kNe,  BinaryOp::kLt,           BinaryOp::kLe,
    BinaryOp::kGt,      BinaryOp::kGe,  BinaryOp::kReluBackward, BinaryOp::kMaximum,
    BinaryOp::kMinimum, BinaryOp::kAnd, BinaryOp::kOr,           BinaryOp::kXor};

bool HasCode(BinaryOp op, DType dtype) {
  if (op == BinaryOp::kDiv || op == BinaryOp::kReluBackward) return IsFloating(dtype);
  if (op >= BinaryOp::kAnd) return !IsFloating(dtype);
  return op != BinaryOp::kSub || dtype != DType::kBool;
}

// V is double or a 64-bit unsigned integer that holds the operand's value.
template <class V>
V BinaryReference(BinaryOp op, V a, V b) {
  using Ordered = std::conditional_t<std::is_same_v<V, double>, double, int64_t>;
  const Ordered x = static_cast<Ordered>(a), y = static_cast<Ordered>(b);
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kEq:
      return x == y;
    case BinaryOp::kNe:
      return x != y;
    case BinaryOp::kLt:
      return x < y;
    case BinaryOp::kLe:
      return x <= y;
    case BinaryOp::kGt:
      return x > y;
    case BinaryOp::kGe:
      return x >= y;
    case BinaryOp::kReluBackward:
      return y > 0 ? a : V(0);
    case BinaryOp::kMaximum:
      return x > y ? a : b;
    case BinaryOp::kMinimum:
      return x < y ? a : b;
    case BinaryOp::kPow:  // see Powers
      break;
    default:
      if constexpr (std::is_integral_v<V>) {
        return op == BinaryOp::kAnd ? a & b : op == BinaryOp::kOr ? a | b : a ^ b;
      }
  }
  return V(0);
}

struct BinaryCase {
  Strides shape, a, b, out;
};

class BinaryTest : public PrimitiveTest {
 protected:
  static HostArray Expected(BinaryOp op, const HostArray& a, const std::vector<int64_t>& at_a,
                            const HostArray& b, const std::vector<int64_t>& at_b, HostArray out,
                            const std::vector<int64_t>& at_out) {
    for (size_t i = 0; i < at_out.size(); ++i) {
      if (IsFloating(a.dtype)) {
        out.Set(at_out[i], BinaryReference<double>(op, a.Float(at_a[i]), b.Float(at_b[i])));
      } else {
        const auto x = static_cast<uint64_t>(a.Int(at_a[i])),
                   y = static_cast<uint64_t>(b.Int(at_b[i]));
        out.SetInt(at_out[i], static_cast<int64_t>(BinaryReference<uint64_t>(op, x, y)));
      }
    }
    return out;
  }

  static DType OutType(BinaryOp op, DType dtype) { return IsComparison(op) ? DType::kBool : dtype; }

  // Bits are compared: every operation here is correctly rounded.
  void Check(BinaryOp op, DType dtype, const BinaryCase& c) {
    const auto at_a = Offsets(c.shape, c.a), at_b = Offsets(c.shape, c.b);
    const auto at_out = Offsets(c.shape, c.out);
    Numbers numbers(7);
    HostArray a = numbers.AnyArray(dtype, Extent(at_a)), b = numbers.AnyArray(dtype, Extent(at_b));
    for (int64_t i = 0; i < std::min(a.size(), b.size()); i += 3) b.SetInt(i, a.Int(i));
    const DType out_type = OutType(op, dtype);
    Buffer in_a(*this, a, 1), in_b(*this, b, 1), out(*this, out_type, Extent(at_out), 1);
    const HostArray before = out.Read();
    auto binary = New<BinaryFactory>({op, dtype});
    const auto g = MakeElementwise<3>(c.shape, {c.a, c.b, c.out});
    ASSERT_TRUE(binary->Launch(*stream_, g, in_a.data(), in_b.data(), out.data()).ok());
    EXPECT_TRUE(Same(out.Read(), Expected(op, a, at_a, b, at_b, before, at_out)))
        << "binary " << static_cast<int>(op) << " on " << Name(dtype) << ", shape "
        << ToString(c.shape);
  }

  // Equal bits, or both NaN.
  static bool Same(const HostArray& a, const HostArray& b) {
    if (a == b) return true;
    for (int64_t i = 0; i < a.size(); ++i) {
      if (a.Float(i) != b.Float(i) && !(std::isnan(a.Float(i)) && std::isnan(b.Float(i)))) {
        return false;
      }
    }
    return a.size() == b.size();
  }
};

TEST_P(BinaryTest, EveryOpAndDTypeInEveryGeometry) {
  const BinaryCase kCases[] = {
      {{1}, {1}, {1}, {1}},
      {{1037}, {1}, {1}, {1}},
      {{0}, {1}, {1}, {1}},
      {{}, {}, {}, {}},
      {{37, 65}, {65, 1}, {0, 1}, {65, 1}},    // a row for all rows
      {{37, 65}, {65, 1}, {1, 0}, {65, 1}},    // a column for all columns
      {{37, 65}, {0, 0}, {65, 1}, {65, 1}},    // one number
      {{37, 65}, {1, 37}, {65, 1}, {65, 1}},   // a transposed
      {{37, 65}, {65, 1}, {130, 2}, {70, 1}},  // every other, padded rows
      {{3, 5, 7, 11}, {385, 11, 55, 1}, {77, 0, 11, 0}, {385, 77, 11, 1}},
      {{2, 600}, {600, 1}, {0, 1}, {1, 2}},  // out transposed
  };
  for (const BinaryOp op : kBinaryOps) {
    for (const DType dtype : kAllTypes) {
      if (HasCode(op, dtype)) {
        for (const BinaryCase& c : kCases) Check(op, dtype, c);
      } else {
        EXPECT_FALSE(NewPrimitive<BinaryFactory>(GetParam(), {op, dtype}).ok());
      }
    }
  }
}

TEST_P(BinaryTest, ScalarOnEitherSide) {
  for (const BinaryOp op : kBinaryOps) {
    for (const DType dtype : kAllTypes) {
      if (!HasCode(op, dtype)) continue;
      for (const int64_t n : {1, 5, 513, 70001}) {
        Numbers numbers(8);
        const HostArray x = numbers.AnyArray(dtype, n);
        HostArray number(ComputeType(dtype), 1);  // not rounded to 16 bits
        const Scalar scalar = IsFloating(dtype) ? Scalar(0.7) : Scalar(1);
        if (IsFloating(dtype)) {
          number.Set(0, 0.7);
        } else {
          number.SetInt(0, 1);
        }
        const auto at = Offsets({n}, {1}), same = Offsets({n}, {0});
        for (const bool first : {false, true}) {
          const DType out_type = OutType(op, dtype);
          Buffer in(*this, x), out(*this, out_type, n);
          auto binary = New<BinaryFactory>({op, dtype});
          const Strides shape = {n}, one = {1};
          const auto g = MakeElementwise<2>(shape, {one, one});
          ASSERT_TRUE(binary->LaunchScalar(*stream_, g, in.data(), scalar, first, out.data()).ok());
          const HostArray want = first ? Expected(op, number, same, x, at, out.Read(), at)
                                       : Expected(op, x, at, number, same, out.Read(), at);
          EXPECT_TRUE(Same(out.Read(), want))
              << "binary " << static_cast<int>(op) << " on " << Name(dtype) << ", " << n;
        }
      }
    }
  }
}

TEST_P(BinaryTest, ScalarAndATransposedTensor) {
  const Strides shape = {37, 65}, transposed = {1, 37}, rows = {65, 1};
  const auto at = Offsets(shape, transposed), at_out = Offsets(shape, rows);
  const auto same = Offsets(shape, {0, 0});
  for (const BinaryOp op : kBinaryOps) {
    if (!HasCode(op, DType::kFloat32)) continue;
    Numbers numbers(8);
    const HostArray x = numbers.AnyArray(DType::kFloat32, 37 * 65);
    HostArray number(DType::kFloat32, 1);
    number.Set(0, 0.75);
    for (const bool first : {false, true}) {
      Buffer in(*this, x), out(*this, OutType(op, x.dtype), x.size());
      const auto g = MakeElementwise<2>(shape, {transposed, rows});
      ASSERT_TRUE(New<BinaryFactory>({op, x.dtype})
                      ->LaunchScalar(*stream_, g, in.data(), Scalar(0.75), first, out.data())
                      .ok());
      const HostArray want = first ? Expected(op, number, same, x, at, out.Read(), at_out)
                                   : Expected(op, x, at, number, same, out.Read(), at_out);
      EXPECT_TRUE(Same(out.Read(), want)) << "binary " << static_cast<int>(op) << " " << first;
    }
  }
}

TEST_P(BinaryTest, ExtremaOfNaN) {
  for (const DType dtype : kFloatingTypes) {
    HostArray a(dtype, 100), b(dtype, 100);
    for (int64_t i = 0; i < 100; ++i) {
      a.Set(i, i % 3 == 0 ? kNan : i);
      b.Set(i, i % 5 == 0 ? kNan : -i);
    }
    Buffer in_a(*this, a), in_b(*this, b), out(*this, dtype, 100);
    const Strides shape = {100}, one = {1};
    const auto g = MakeElementwise<3>(shape, {one, one, one});
    for (const BinaryOp op : {BinaryOp::kMaximum, BinaryOp::kMinimum}) {
      const auto binary = New<BinaryFactory>({op, dtype});
      ASSERT_TRUE(binary->Launch(*stream_, g, in_a.data(), in_b.data(), out.data()).ok());
      const HostArray y = out.Read();
      for (int64_t i = 0; i < 100; ++i) {
        if (i % 3 == 0 || i % 5 == 0) {
          EXPECT_TRUE(std::isnan(y.Float(i))) << i;
        } else {
          EXPECT_EQ(y.Float(i), op == BinaryOp::kMaximum ? i : -i);
        }
      }
    }
  }
}

TEST_P(BinaryTest, Powers) {
  for (const DType dtype : kFloatingTypes) {
    Numbers numbers(9);
    HostArray a = numbers.NormalArray(dtype, 1037), b = numbers.NormalArray(dtype, 1037, 2);
    for (int64_t i = 0; i < 1037; i += 2) a.Set(i, std::abs(a.Float(i)));
    for (int64_t i = 1; i < 1037; i += 4) b.Set(i, static_cast<double>(i % 7 - 3));
    a.Set(0, 0), b.Set(0, 0), a.Set(2, 0), b.Set(2, -1), a.Set(4, 1), b.Set(4, kNan);
    Buffer in_a(*this, a), in_b(*this, b), out(*this, dtype, 1037);
    const Strides shape = {1037}, one = {1};
    const auto g = MakeElementwise<3>(shape, {one, one, one});
    ASSERT_TRUE(New<BinaryFactory>({BinaryOp::kPow, dtype})
                    ->Launch(*stream_, g, in_a.data(), in_b.data(), out.data())
                    .ok());
    std::vector<double> want(1037);
    for (int64_t i = 0; i < 1037; ++i) {
      want[i] = std::pow(a.Float(i), b.Float(i));
      if (dtype == DType::kFloat16 && std::abs(want[i]) > 65519)
        want[i] = want[i] < 0 ? -kInf : kInf;
    }
    ExpectNear(
        out.Read(), want, [&](int64_t i) { return ElementTolerance(dtype, want[i]); }, "pow");
  }
}

TEST_P(BinaryTest, PowersOfIntegers) {
  for (const DType dtype :
       {DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    Numbers numbers(10);
    const int64_t low = dtype == DType::kUInt8 ? 0 : -5;
    HostArray a(dtype, 1037), b(dtype, 1037), want(dtype, 1037);
    for (int64_t i = 0; i < 1037; ++i) {
      a.SetInt(i, numbers.Int(low, 9)), b.SetInt(i, numbers.Int(low, 70));
      if (i % 5 == 0) a.SetInt(i, low < 0 && i % 2 ? -1 : i % 3);
      uint64_t power = 1;
      for (int64_t k = 0; k < b.Int(i); ++k) power *= static_cast<uint64_t>(a.Int(i));
      if (b.Int(i) < 0) power = a.Int(i) * a.Int(i) != 1 ? 0 : b.Int(i) % 2 ? a.Int(i) : 1;
      want.SetInt(i, static_cast<int64_t>(power));
    }
    Buffer in_a(*this, a), in_b(*this, b), out(*this, dtype, 1037);
    const Strides shape = {1037}, one = {1};
    const auto g = MakeElementwise<3>(shape, {one, one, one});
    ASSERT_TRUE(New<BinaryFactory>({BinaryOp::kPow, dtype})
                    ->Launch(*stream_, g, in_a.data(), in_b.data(), out.data())
                    .ok());
    EXPECT_TRUE(out.Read() == want) << Name(dtype);
  }
  EXPECT_FALSE(NewPrimitive<BinaryFactory>(GetParam(), {BinaryOp::kPow, DType::kBool}).ok());
}

TEST_P(BinaryTest, InPlaceAndWrapAround) {
  HostArray a(DType::kInt64, 1000), b(DType::kInt64, 1000), want(DType::kInt64, 1000);
  for (int64_t i = 0; i < 1000; ++i) {
    a.SetInt(i, std::numeric_limits<int64_t>::max() - i);
    b.SetInt(i, 500 + i);
    want.SetInt(i, std::numeric_limits<int64_t>::min() + 499);
  }
  Buffer in_a(*this, a), in_b(*this, b);
  const Strides shape = {1000}, one = {1};
  auto add = New<BinaryFactory>({BinaryOp::kAdd, DType::kInt64});
  const auto g = MakeElementwise<3>(shape, {one, one, one});
  ASSERT_TRUE(add->Launch(*stream_, g, in_a.data(), in_b.data(), in_a.data()).ok());
  EXPECT_TRUE(in_a.Read() == want);
}

// ---- Copy ----

class CopyTest : public PrimitiveTest {};

TEST_P(CopyTest, EveryPairOfDTypesInEveryGeometry) {
  struct Case {
    Strides shape, src, dst;
  };
  const Case kCases[] = {
      {{1}, {1}, {1}},
      {{4099}, {1}, {1}},
      {{0, 3}, {3, 1}, {3, 1}},
      {{70, 45}, {1, 70}, {45, 1}},                 // transposed
      {{3, 40, 33}, {1320, 1, 40}, {1320, 33, 1}},  // batch of transposes
      {{5, 6, 7}, {1, 5, 30}, {42, 7, 1}},          // dims reversed
      {{33, 10}, {0, 1}, {10, 1}},                  // expanded
      {{33, 10}, {20, 2}, {11, 1}},                 // sliced to padded
      {{9, 3}, {3, 1}, {1, 9}},                     // into a transpose
  };
  for (const DType from : kAllTypes) {
    for (const DType to : kAllTypes) {
      auto copy = New<CopyFactory>({from, to});
      for (const Case& c : kCases) {
        const auto at_src = Offsets(c.shape, c.src), at_dst = Offsets(c.shape, c.dst);
        Numbers numbers(9);
        HostArray src = numbers.AnyArray(from, Extent(at_src));
        // Floats go to unsigned integers as non-negative numbers: C++ defines nothing else.
        for (int64_t i = 0; i < src.size() && IsFloating(from); ++i) {
          src.Set(i, std::abs(src.Float(i)) * 20);
        }
        Buffer in(*this, src, 1), out(*this, to, Extent(at_dst), 1);
        HostArray want = out.Read();
        for (size_t i = 0; i < at_dst.size(); ++i) {
          if (to == DType::kBool) {
            want.SetInt(at_dst[i], src.Float(at_src[i]) != 0);
          } else if (IsFloating(to)) {
            want.Set(at_dst[i], src.Float(at_src[i]));
          } else {
            want.SetInt(at_dst[i], src.Int(at_src[i]));
          }
        }
        const auto g = MakeElementwise<2>(c.shape, {c.src, c.dst});
        ASSERT_TRUE(copy->Launch(*stream_, g, in.data(), out.data()).ok());
        EXPECT_TRUE(out.Read() == want)
            << Name(from) << " to " << Name(to) << ", shape " << ToString(c.shape);
      }
    }
  }
}

TEST_P(CopyTest, RoundsToNearestEven) {
  // Every float16 and bfloat16 and the midpoints between them, and what lies beyond.
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    HostArray wide(DType::kFloat32, 65536 * 2), want(half, 65536 * 2);
    HostArray all(half, 65536);
    for (int64_t bits = 0; bits < 65536; ++bits) {
      const auto word = static_cast<uint16_t>(bits);
      std::memcpy(all.bytes.data() + 2 * bits, &word, 2);
      const double value = all.Float(bits);
      const double middle = value + StepOf(half, value) / 2;
      for (int64_t k = 0; k < 2; ++k) {
        wide.Set(2 * bits + k, std::isnan(value) ? 1.0 : k == 0 ? value : middle);
        want.Set(2 * bits + k, wide.Float(2 * bits + k));
      }
    }
    auto copy = New<CopyFactory>({DType::kFloat32, half});
    Buffer in(*this, wide), out(*this, half, want.size());
    const Strides shape = {want.size()}, one = {1};
    ASSERT_TRUE(
        copy->Launch(*stream_, MakeElementwise<2>(shape, {one, one}), in.data(), out.data()).ok());
    EXPECT_TRUE(out.Read() == want) << Name(half);
  }
}

INSTANTIATE_TEST_SUITE_P(, UnaryTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);
INSTANTIATE_TEST_SUITE_P(, BinaryTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);
INSTANTIATE_TEST_SUITE_P(, CopyTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
