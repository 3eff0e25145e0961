// SPDX-License-Identifier: Apache-2.0
//
// The elementwise primitives of two operands against plain references on the host, for every device
// there is, every dtype, and geometries that take each path: contiguous, broadcast, strided,
// transposed; numbers on either side.
#include "primitive/binary.h"
#include "primitive_geometry.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

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

  HostArray Powers(const HostArray& a, const HostArray& b) {
    Buffer in_a(*this, a), in_b(*this, b), out(*this, a.dtype, a.size());
    const Strides shape = {a.size()}, one = {1};
    const auto g = MakeElementwise<3>(shape, {one, one, one});
    auto pow = New<BinaryFactory>({BinaryOp::kPow, a.dtype});
    EXPECT_TRUE(pow->Launch(*stream_, g, in_a.data(), in_b.data(), out.data()).ok());
    return out.Read();
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
          const Strides shape = {n}, one = {1}, none = {0};
          const auto g = first ? MakeElementwise<3>(shape, {none, one, one})
                               : MakeElementwise<3>(shape, {one, none, one});
          const Binary::Operand a = first ? Binary::Operand(scalar) : in.data();
          const Binary::Operand b = first ? in.data() : Binary::Operand(scalar);
          ASSERT_TRUE(binary->Launch(*stream_, g, a, b, out.data()).ok());
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
      const Strides none = {0, 0};
      const auto g = first ? MakeElementwise<3>(shape, {none, transposed, rows})
                           : MakeElementwise<3>(shape, {transposed, none, rows});
      const Binary::Operand elements = in.data(), scalar = Scalar(0.75);
      ASSERT_TRUE(New<BinaryFactory>({op, x.dtype})
                      ->Launch(*stream_, g, first ? scalar : elements, first ? elements : scalar,
                               out.data())
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
    const HostArray got = Powers(a, b);
    std::vector<double> want(1037);
    for (int64_t i = 0; i < 1037; ++i) {
      want[i] = std::pow(a.Float(i), b.Float(i));
      if (dtype == DType::kFloat16 && std::abs(want[i]) > 65519)
        want[i] = want[i] < 0 ? -kInf : kInf;
    }
    ExpectNear(
        got, want, [&](int64_t i) { return ElementTolerance(dtype, want[i]); }, "pow");
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
    const HostArray got = Powers(a, b);
    EXPECT_TRUE(got == want) << Name(dtype);
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

INSTANTIATE_TEST_SUITE_P(, BinaryTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
