// SPDX-License-Identifier: Apache-2.0
//
// Functors as a C++ program calls them, by their values: forms in place, random fills, views like
// another tensor, extremes along a dim, splits. Python reaches the same functions through their
// registrations, which tests/python/test_cpp_api.py compares with the headers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "functional/activation.h"
#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/in_place.h"
#include "functional/numerical.h"
#include "functional/products.h"
#include "functional/random.h"
#include "functional/ranks.h"
#include "functional/rearrange.h"
#include "functional/reduce.h"
#include "functional/scan.h"
#include "functional/scatter_reduce.h"
#include "functional/searches.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/stacks.h"
#include "functional/ternary.h"
#include "functional/triangle.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "functional/view_dtype.h"
#include "functional/view_in_place.h"

namespace oneflow_lite::functional {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Numbers = std::vector<double>;

Tensor Of(const Numbers& numbers, DType dtype = DType::kFloat64) {
  const auto n = static_cast<int64_t>(numbers.size());
  Tensor t = *Empty({n}, DType::kFloat64);
  for (int64_t i = 0; i < n; ++i) t.data<double>()[i] = numbers[i];
  return *Cast(t, dtype);
}
Tensor Of(const Numbers& numbers, const Dims& shape, DType dtype = DType::kFloat64) {
  return *Reshape(Of(numbers, dtype), shape);
}
Tensor Places(const Numbers& numbers) { return Of(numbers, DType::kInt64); }

Numbers In(const Tensor& t) {
  const Tensor wide = *Contiguous(*Cast(t, DType::kFloat64));
  return Numbers(wide.data<double>(), wide.data<double>() + wide.numel());
}
Numbers In(const StatusOr<Tensor>& t) {
  EXPECT_TRUE(t.ok()) << t.status();
  return t.ok() ? In(*t) : Numbers{};
}
Numbers In(const StatusOr<TensorList>& list, size_t i) {
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? In((*list)[i]) : Numbers{};
}

// What a form in place left in its tensor, which it must return.
template <class F>
Numbers After(const Tensor& self, const F& form) {
  const StatusOr<Tensor> y = form(self);
  EXPECT_TRUE(y.ok()) << y.status();
  if (y.ok()) EXPECT_TRUE(y->IsSame(self));
  return In(self);
}

template <class T>
concept TakesNoDims = requires(const T& x) {
  Max(x, {});
}
|| requires(const T& x) { Min(x, {}); };
static_assert(!TakesNoDims<Tensor>, "of all dims, as Amax(x, {}), or of dim 0");

TEST(FunctorTest, UnaryInPlace) {
  using One = StatusOr<Tensor> (*)(const Tensor&);
  const struct {
    One into, plain;
    double x;
  } cases[] = {
      {AbsInto, Abs, -2},
      {AcosInto, Acos, 0.3},
      {AcoshInto, Acosh, 1.3},
      {AsinInto, Asin, 0.3},
      {AsinhInto, Asinh, 0.3},
      {AtanInto, Atan, 0.3},
      {AtanhInto, Atanh, 0.3},
      {CeilInto, Ceil, 0.3},
      {CosInto, Cos, 0.3},
      {CoshInto, Cosh, 0.3},
      {Deg2radInto, Deg2rad, 90},
      {DigammaInto, Digamma, 0.3},
      {ErfInto, Erf, 0.3},
      {ErfcInto, Erfc, 0.3},
      {ErfinvInto, Erfinv, 0.3},
      {ExpInto, Exp, 0.3},
      {Exp2Into, Exp2, 0.3},
      {Expm1Into, Expm1, 0.3},
      {FloorInto, Floor, 1.3},
      {FracInto, Frac, 1.3},
      {I0Into, I0, 0.3},
      {LgammaInto, Lgamma, 0.3},
      {LogInto, Log, 0.3},
      {Log10Into, Log10, 0.3},
      {Log1pInto, Log1p, 0.3},
      {Log2Into, Log2, 0.3},
      {NegInto, Neg, 0.3},
      {Rad2degInto, Rad2deg, 0.3},
      {RsqrtInto, Rsqrt, 0.3},
      {ReciprocalInto, Reciprocal, 4},
      {SigmoidInto, Sigmoid, 0.3},
      {SignInto, Sign, -3},
      {SinInto, Sin, 0.3},
      {SincInto, Sinc, 0.3},
      {SinhInto, Sinh, 0.3},
      {SqrtInto, Sqrt, 0.3},
      {SquareInto, Square, 3},
      {TanInto, Tan, 0.3},
      {TanhInto, Tanh, 0.3},
      {TruncInto, Trunc, -1.3},
      {LogicalNotInto, LogicalNot, 3},
  };
  for (const auto& c : cases) {
    const Numbers expected = In(c.plain(Of({c.x})));
    EXPECT_NE(expected[0], c.x);
    EXPECT_EQ(After(Of({c.x}), c.into), expected) << &c - cases;
  }
  EXPECT_THAT(After(Of({5, -1}, DType::kInt32), BitwiseNotInto), ElementsAre(-6, 0));
  EXPECT_EQ(KindOf(ExpInto(Of({1}, DType::kInt32)).status()), ErrorKind::kDType);
}

TEST(FunctorTest, UnaryInPlaceWithArguments) {
  EXPECT_THAT(After(Of({1.25, 2.5}), [](auto& x) { return RoundInto(x, 1); }),
              ElementsAre(1.2, 2.5));
  EXPECT_THAT(After(Of({0.5, 2}), [](auto& x) { return LogitInto(x, 0.25); }),
              ElementsAre(0, std::log(3.0)));
  EXPECT_THAT(
      After(Of({NAN, INFINITY, -INFINITY}), [](auto& x) { return NanToNumInto(x, 1, 2, 3); }),
      ElementsAre(1, 2, 3));
  EXPECT_THAT(After(Of({1, 2, 3, 4}, {2, 2}), [](auto& x) { return TrilInto(x); }),
              ElementsAre(1, 0, 3, 4));
  EXPECT_THAT(After(Of({1, 2, 3, 4}, {2, 2}), [](auto& x) { return TriuInto(x, 1); }),
              ElementsAre(0, 2, 0, 0));
  EXPECT_THAT(After(Of({1, 2, 3}), [](auto& x) { return CumSumInto(x, 0); }), ElementsAre(1, 3, 6));
  EXPECT_THAT(After(Of({2, 2, 3}), [](auto& x) { return CumProdInto(x, 0); }),
              ElementsAre(2, 4, 12));
}

TEST(FunctorTest, ActivationsInPlace) {
  const Numbers x = {-2, 3};
  EXPECT_THAT(After(Of(x), [](auto& t) { return Relu(t, true); }), ElementsAre(0, 3));
  EXPECT_THAT(In(Relu(Of(x))), ElementsAre(0, 3));
  EXPECT_THAT(After(Of(x), [](auto& t) { return HardtanhInto(t); }), ElementsAre(-1, 1));
  EXPECT_THAT(After(Of(x), [](auto& t) { return LeakyReluInto(t, 0.5); }), ElementsAre(-1, 3));
  EXPECT_EQ(After(Of(x), [](auto& t) { return EluInto(t, 2); }), In(Elu(Of(x), 2)));
  EXPECT_EQ(After(Of(x), [](auto& t) { return CeluInto(t, 2); }), In(Celu(Of(x), 2)));
  EXPECT_EQ(After(Of(x), SeluInto), In(Selu(Of(x))));
  EXPECT_THAT(After(Of(x), [](auto& t) { return ThresholdInto(t, 0, 7); }), ElementsAre(7, 3));
}

TEST(FunctorTest, ScaledSums) {
  EXPECT_THAT(In(Add(Of({1, 2}), Of({10, 20}), 3)), ElementsAre(31, 62));
  EXPECT_THAT(In(Sub(Of({1, 2}), Of({10, 20}), 3)), ElementsAre(-29, -58));
  EXPECT_THAT(In(Rsub(Of({1, 2}), Scalar(10.0), 3)), ElementsAre(7, 4));
  EXPECT_THAT(After(Of({1, 2}),
                    [](auto& x) {
                      return AddInto(x, Of({10, 20}), 3);
                    }),
              ElementsAre(31, 62));
  EXPECT_THAT(After(Of({1, 2}),
                    [](auto& x) {
                      return SubInto(x, Of({10, 20}), 3);
                    }),
              ElementsAre(-29, -58));
  EXPECT_FALSE(Add(Places({1}), Places({1}), 0.5).ok());  // a fraction of integers
}

TEST(FunctorTest, BinaryInPlace) {
  using Two = StatusOr<Tensor> (*)(const Operand&, const Operand&);
  using Into = StatusOr<Tensor> (*)(const Tensor&, const Operand&);
  const struct {
    Into into;
    Two plain;
    double x, y;
  } cases[] = {
      {FmodInto, Fmod, -7, 4},          {TruncDivideInto, TruncDivide, -7, 4},
      {HypotInto, Hypot, 3, 4},         {Atan2Into, Atan2, 3, -4},
      {XLogYInto, XLogY, 3, 4},         {CopySignInto, CopySign, 3, -4},
      {NextAfterInto, NextAfter, 3, 4}, {LdexpInto, Ldexp, 3, 4},
      {HeavisideInto, Heaviside, 0, 4}, {LogicalAndInto, LogicalAnd, 3, 0},
      {LogicalOrInto, LogicalOr, 0, 4}, {LogicalXorInto, LogicalXor, 3, 4},
  };
  for (const auto& c : cases) {
    const Numbers expected = In(c.plain(Of({c.x}), Of({c.y})));
    EXPECT_NE(expected[0], c.x);
    EXPECT_EQ(After(Of({c.x}), [&](auto& x) { return c.into(x, Of({c.y})); }), expected)
        << &c - cases;
  }
  EXPECT_THAT(After(Places({12}), [](auto& x) { return GcdInto(x, Scalar(18)); }), ElementsAre(6));
  EXPECT_THAT(After(Places({12}), [](auto& x) { return LcmInto(x, Scalar(18)); }), ElementsAre(36));
  EXPECT_THAT(In(BitwiseLeftShift(Places({3}), Scalar(4))), ElementsAre(48));
  EXPECT_THAT(After(Places({-9}), [](auto& x) { return BitwiseRightShiftInto(x, Scalar(1)); }),
              ElementsAre(-5));
  EXPECT_THAT(In(Div(Of({-7}), Of({2}), "floor")), ElementsAre(-4));
  EXPECT_THAT(In(Div(Of({-7}), Of({2}), "trunc")), ElementsAre(-3));
  EXPECT_FALSE(Div(Of({-7}), Of({2}), "up").ok());
  EXPECT_THAT(After(Of({-7}), [](auto& x) { return DivInto(x, Of({2}), "floor"); }),
              ElementsAre(-4));
}

TEST(FunctorTest, TernaryInPlace) {
  EXPECT_THAT(After(Of({1, 2}),
                    [](auto& x) {
                      return LerpInto(x, Of({3, 6}), Scalar(0.5));
                    }),
              ElementsAre(2, 4));
  EXPECT_THAT(After(Of({1, 2}),
                    [](auto& x) {
                      return AddCMulInto(x, Of({3, 6}), Of({2, 2}), 2);
                    }),
              ElementsAre(13, 26));
  EXPECT_THAT(After(Of({1, 2}),
                    [](auto& x) {
                      return AddCDivInto(x, Of({3, 6}), Of({2, 2}), 2);
                    }),
              ElementsAre(4, 8));
  EXPECT_THAT(After(Of({1, 5}), [](auto& x) { return ClampInto(x, Scalar(2), Scalar(4)); }),
              ElementsAre(2, 4));
  EXPECT_THAT(After(Of({1, 5}),
                    [](auto& x) {
                      return ClampMinInto(x, Of({3, 3}));
                    }),
              ElementsAre(3, 5));
  EXPECT_THAT(After(Of({1, 5}), [](auto& x) { return ClampMaxInto(x, Scalar(3)); }),
              ElementsAre(1, 3));
  EXPECT_THAT(In(ClampMin(Of({1, 5}), Scalar(3))), ElementsAre(3, 5));
  EXPECT_THAT(In(ClampMax(Of({1, 5}), Of({3, 3}))), ElementsAre(1, 3));
}

TEST(FunctorTest, MasksAndFills) {
  const Tensor mask = Of({1, 0, 1}, DType::kBool);
  EXPECT_THAT(After(Of({1, 2, 3}), [&](auto& x) { return MaskedFillInto(x, mask, Scalar(9)); }),
              ElementsAre(9, 2, 9));
  EXPECT_THAT(After(Of({1, 2, 3}),
                    [&](auto& x) {
                      return MaskedScatterInto(x, mask, Of({7, 8}));
                    }),
              ElementsAre(7, 2, 8));
  EXPECT_THAT(In(Fill(Of({1, 2}), Scalar(3))), ElementsAre(3, 3));
  EXPECT_THAT(After(Of({1, 2}), [](auto& x) { return FillInto(x, *Full({}, 4.0)); }),
              ElementsAre(4, 4));
  EXPECT_FALSE(FillInto(Of({1, 2}), Of({1, 2})).ok());
  EXPECT_THAT(After(Of({1, 2, 3, 4, 5, 6}, {3, 2}), [](auto& x) { return FillDiagonalInto(x, 0); }),
              ElementsAre(0, 2, 3, 0, 5, 6));
  EXPECT_THAT(After(Of({1, 2, 3}),
                    [](auto& x) {
                      return PutInto(x, Places({2, 2}), Of({5, 6}), true);
                    }),
              ElementsAre(1, 2, 14));
  EXPECT_THAT(In(ConstantPadNd(Of({1, 2}), {1, 0}, 9)), ElementsAre(9, 1, 2));
}

TEST(FunctorTest, ProductsInPlace) {
  const Tensor ones = Of({1, 1, 1, 1}, {2, 2}), eye = Of({1, 0, 0, 1}, {2, 2});
  const Tensor batch = Of({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  const Tensor two = Of({1, 0, 0, 1, 1, 0, 0, 1}, {2, 2, 2}), v = Of({1, 2});
  EXPECT_THAT(After(*Clone(eye), [&](auto& x) { return AddmmInto(x, ones, ones, 10, 1); }),
              ElementsAre(12, 2, 2, 12));
  EXPECT_THAT(After(*Clone(two), [&](auto& x) { return BaddbmmInto(x, batch, two, 0, 2); }),
              ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
  EXPECT_THAT(After(Of({1, 1}), [&](auto& x) { return AddmvInto(x, ones, v); }), ElementsAre(4, 4));
  EXPECT_THAT(After(*Clone(eye), [&](auto& x) { return AddbmmInto(x, batch, two); }),
              ElementsAre(7, 8, 10, 13));
  EXPECT_THAT(After(*Clone(eye), [&](auto& x) { return AddrInto(x, v, v); }),
              ElementsAre(2, 2, 2, 5));
  EXPECT_THAT(In(Vdot(v, Of({3, 4}))), ElementsAre(11));
}

TEST(FunctorTest, Scatters) {
  const Tensor index = Places({0, 0, 2}), src = Of({3, 4, 5});
  const auto scattered = [&](absl::string_view how, bool self) {
    return After(Of({1, 1, 1}),
                 [&](auto& x) { return ScatterReduceInto(x, 0, index, src, how, self); });
  };
  EXPECT_THAT(scattered("sum", true), ElementsAre(8, 1, 6));
  EXPECT_THAT(scattered("prod", false), ElementsAre(12, 1, 5));
  EXPECT_THAT(scattered("amax", true), ElementsAre(4, 1, 5));
  EXPECT_FALSE(ScatterReduceInto(Of({1}), 0, index, src, "median").ok());
  EXPECT_THAT(
      After(Of({1, 1, 1}), [&](auto& x) { return IndexReduceInto(x, 0, index, src, "amin"); }),
      ElementsAre(1, 1, 1));
}

TEST(FunctorTest, RandomFills) {
  constexpr int64_t kCount = 100000;
  const auto drawn = [](const auto& fill) {
    const Tensor x = *Zeros({kCount}, DType::kFloat64);
    EXPECT_TRUE(fill(x).ok());
    return x;
  };
  const auto middle = [](const Tensor& x) { return In(Median(x))[0]; };
  // Half of Cauchy's numbers lie within sigma of the median.
  const Tensor cauchy = drawn([](auto& x) { return CauchyInto(x, 5, 2); });
  EXPECT_NEAR(middle(cauchy), 5, 0.05);
  EXPECT_NEAR(middle(*Abs(*Sub(cauchy, Scalar(5.0)))), 2, 0.05);
  const Tensor log_normal = drawn([](auto& x) { return LogNormalInto(x, 1, 0.5); });
  EXPECT_NEAR(middle(log_normal), std::exp(1.0), 0.05);
  const Tensor trials = drawn([](auto& x) { return GeometricInto(x, 0.25); });
  EXPECT_NEAR(In(Mean(trials))[0], 4, 0.1);
  EXPECT_EQ(In(Min(trials))[0], 1);
  EXPECT_FALSE(GeometricInto(trials, 1.5).ok());
  const Tensor dice = *RandIntLike(*Zeros({kCount}, DType::kInt32), 1, 7);
  EXPECT_EQ(dice.dtype(), DType::kInt32);
  EXPECT_EQ(In(Min(dice))[0], 1);
  EXPECT_EQ(In(Max(dice))[0], 6);
}

TEST(FunctorTest, ExtremesAndMiddles) {
  const Tensor x = Of({1, 5, 2, 9, 3, 4}, {2, 3});
  EXPECT_THAT(In(Max(x)), ElementsAre(9));
  EXPECT_THAT(In(Min(x)), ElementsAre(1));
  EXPECT_THAT(In(Max(x, 1), 0), ElementsAre(5, 9));
  EXPECT_THAT(In(Max(x, 1), 1), ElementsAre(1, 0));
  EXPECT_THAT(In(Min(x, 0), 0), ElementsAre(1, 3, 2));
  EXPECT_THAT(In(Min(x, 0), 1), ElementsAre(0, 1, 0));
  EXPECT_EQ((*Max(x, 1, /*keepdim=*/true))[0].shape(), (Shape{2, 1}));
  EXPECT_THAT(In(Median(x)), ElementsAre(3));
  EXPECT_THAT(In(Median(x, 1), 0), ElementsAre(2, 4));
  EXPECT_THAT(In(Median(x, 1), 1), ElementsAre(2, 2));
  EXPECT_THAT(In(NanMedian(Of({NAN, 4, 2, 7}), 0), 0), ElementsAre(4));
  EXPECT_FALSE(Max(x, 2).ok());  // no such dim
  EXPECT_THAT(In(Unique(Of({3, 1, 3}))), ElementsAre(1, 3));
  EXPECT_THAT(In(UniqueConsecutive(Of({3, 3, 1, 3}))), ElementsAre(3, 1, 3));
  EXPECT_THAT(In(SearchSorted(Of({3, 1, 2}), Of({2.5}), false, false, Places({1, 2, 0}))),
              ElementsAre(2));
}

TEST(FunctorTest, LikeAnotherTensor) {
  const Tensor x = Of({1, 2, 3, 4}, {2, 2}), other = Of({0, 0, 0, 0}, {4, 1});
  EXPECT_EQ(ViewAs(x, other)->shape(), (Shape{4, 1}));
  EXPECT_THAT(In(ReshapeAs(*Transpose(x, 0, 1), other)), ElementsAre(1, 3, 2, 4));
  EXPECT_FALSE(ViewAs(*Transpose(x, 0, 1), other).ok());
  EXPECT_THAT(In(ExpandAs(Of({1, 2}), x)), ElementsAre(1, 2, 1, 2));
  EXPECT_FALSE(ExpandAs(Of({1, 2, 3}), x).ok());
  EXPECT_THAT(In(TypeAs(Of({1.5}), Places({0}))), ElementsAre(1));
  EXPECT_THAT(In(View(Of({1}, DType::kFloat32), DType::kInt32)), ElementsAre(0x3f800000));
  EXPECT_EQ(View(Of({1}), {})->shape(), Shape{});  // a shape, no dtype
  EXPECT_EQ(View(Of({1}), {})->dtype(), DType::kFloat64);
  EXPECT_EQ(View(x, {4, -1})->shape(), (Shape{4, 1}));
  for (const auto& f : {ViewAs, ReshapeAs, ExpandAs, TypeAs}) EXPECT_FALSE(f(x, Tensor()).ok());
}

TEST(FunctorTest, DimsOfItsOwn) {
  const Tensor x = Of({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(After(x, [](auto& t) { return TransposeInto(t, 0, 1); }),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(x.shape(), (Shape{3, 2}));
  EXPECT_THAT(After(x, TInto), ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_TRUE(UnsqueezeInto(x, 1).ok());
  EXPECT_EQ(x.shape(), (Shape{2, 1, 3}));
  ASSERT_TRUE(SqueezeInto(x).ok());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
}

TEST(FunctorTest, SplitsAtPlaces) {
  const Tensor x = *Reshape(*Arange(12), {2, 3, 2});
  const auto sizes = [](const StatusOr<TensorList>& parts, int dim) {
    EXPECT_TRUE(parts.ok()) << parts.status();
    std::vector<int64_t> all;
    for (const Tensor& t : *parts) all.push_back(t.shape()[dim]);
    return all;
  };
  EXPECT_THAT(sizes(HsplitAt(x, {1}), 1), ElementsAre(1, 2));
  EXPECT_THAT(sizes(VsplitAt(x, {1}), 0), ElementsAre(1, 1));
  EXPECT_THAT(sizes(DsplitAt(x, {2}), 2), ElementsAre(2, 0));
  EXPECT_THAT(sizes(TensorSplit(x, Places({1, 2}), 1), 1), ElementsAre(1, 1, 1));
  EXPECT_THAT(sizes(TensorSplit(x, *Full({}, int64_t{2}), 1), 1), ElementsAre(2, 1));
  EXPECT_FALSE(TensorSplit(x, Of({1}), 1).ok());  // no integers
}

}  // namespace
}  // namespace oneflow_lite::functional
