// SPDX-License-Identifier: Apache-2.0
//
// The elementwise primitives of one operand (unary, copy) against plain references on the host, for
// every device there is, every dtype, and geometries that take each path: contiguous, broadcast,
// strided, transposed.
#include <numbers>

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
    const Strides shape = {x.size()}, one = {1};
    const auto g = MakeElementwise<2>(shape, {one, one});
    EXPECT_TRUE(unary->Launch(*stream_, g, in.data(), y.data()).ok());
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
    case UnaryOp::kGeluTanh:
      return x < -40 ? 0
                     : x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) *
                                         (x + 0.044715 * x * x * x)));
    case UnaryOp::kGelu:
      return x == -kInf ? 0 : 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    default:  // tests/python/test_unary.py has the others
      return kNan;
  }
}

// Far below 0, gelu is a product with a factor that has lost digits: an absolute error.
double UnaryTolerance(UnaryOp op, DType dtype, double want) {
  const bool product = op == UnaryOp::kGeluTanh || op == UnaryOp::kGelu;
  return ElementTolerance(dtype, want) + (product ? (dtype == DType::kFloat64 ? 1e-18 : 1e-9) : 0);
}

TEST_P(UnaryTest, FloatsAndTheirCornerCases) {
  for (const UnaryOp op :
       {UnaryOp::kNeg, UnaryOp::kExp, UnaryOp::kLog, UnaryOp::kRelu, UnaryOp::kAbs, UnaryOp::kSqrt,
        UnaryOp::kRsqrt, UnaryOp::kTanh, UnaryOp::kSigmoid, UnaryOp::kSin, UnaryOp::kCos,
        UnaryOp::kErf, UnaryOp::kFloor, UnaryOp::kGeluTanh, UnaryOp::kGelu}) {
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
              [&](int64_t i) { return UnaryTolerance(op, dtype, want[i]); },
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
INSTANTIATE_TEST_SUITE_P(, CopyTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
