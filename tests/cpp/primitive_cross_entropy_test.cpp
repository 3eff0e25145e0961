// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy, its gradient and both in place, whole and with the classes in parts, against
// float64, at widths around every dispatch boundary of CPU and CUDA.
#include "primitive/cross_entropy.h"
#include "primitive/cross_entropy_split.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

// Around vectors, rows that 4, 16 or 32 lanes hold (16, 64 and 128 packs of 2 to 8 elements), or a
// block (512 and 2048 packs), the chunks of the elementwise kernels (4096 packs) and the parts of a
// split row.
constexpr int64_t kWidths[] = {1,     2,     3,     7,     31,    32,     33,     63,     64,
                               65,    127,   128,   129,   255,   256,    257,    511,    512,
                               513,   1000,  1023,  1024,  1025,  2047,   2048,   2049,   4095,
                               4096,  4097,  8191,  8192,  8193,  16384,  16385,  16392,  32000,
                               32768, 32769, 50257, 65536, 65537, 128256, 131073, 1000003};
constexpr int64_t kIgnored = -100;

struct Expected {
  std::vector<double> loss, dx;
};

// In long double, for dloss[r] on the rows that count.
Expected Reference(const CrossEntropyShape& s, const HostArray& x,
                   const std::vector<int64_t>& target, const std::vector<double>& dloss) {
  Expected want{std::vector<double>(s.rows), std::vector<double>(s.rows * s.classes)};
  for (int64_t r = 0; r < s.rows; ++r) {
    const int64_t first = r * s.classes, t = target[r];
    if (t == s.ignore_index) continue;
    double max = -kInf;
    for (int64_t c = 0; c < s.classes; ++c) max = std::max(max, x.Float(first + c));
    long double sum = 0, mean = 0;
    for (int64_t c = 0; c < s.classes; ++c) {
      sum += std::exp(static_cast<long double>(x.Float(first + c)) - max);
      mean += static_cast<long double>(x.Float(first + c)) / s.classes;
    }
    const long double lse = max + std::log(sum);
    const double sharp = 1 - s.smoothing;
    long double loss = sharp * (lse - x.Float(first + t));
    if (s.smoothing > 0) loss += s.smoothing * (lse - mean);
    want.loss[r] = static_cast<double>(loss);
    for (int64_t c = 0; c < s.classes; ++c) {
      const long double p = std::exp(static_cast<long double>(x.Float(first + c)) - lse);
      const long double hot = c == t ? sharp : 0;
      want.dx[first + c] = static_cast<double>((p - hot - s.smoothing / s.classes) * dloss[r]);
    }
  }
  return want;
}

HostArray Array(DType dtype, const std::vector<double>& values) {
  HostArray a(dtype, static_cast<int64_t>(values.size()));
  for (int64_t i = 0; i < a.size(); ++i) a.Set(i, values[i]);
  return a;
}
HostArray Targets(const std::vector<int64_t>& values) {
  HostArray a(DType::kInt64, static_cast<int64_t>(values.size()));
  for (int64_t i = 0; i < a.size(); ++i) a.SetInt(i, values[i]);
  return a;
}

// Losses have the compute type, gradients are rounded to the logits' type.
double LossTolerance(DType dtype, double want) {
  return (dtype == DType::kFloat64 ? 1e-13 : 4e-6) * std::max(1.0, std::abs(want));
}
double GradientTolerance(DType dtype, double want, double dloss) {
  if (dtype == DType::kFloat64) return 1e-13 * std::abs(dloss);
  return 4e-6 * std::abs(dloss) + (SizeOf(dtype) == 2 ? StepOf(dtype, want) : 0);
}

class CrossEntropyTest : public PrimitiveTest {
 protected:
  struct Result {
    HostArray loss, dx;
  };

  // Forward and backward; with dloss_stride 0, dloss has one element.
  Result Run(const CrossEntropyShape& s, const HostArray& x, const std::vector<int64_t>& target,
             const std::vector<double>& dloss, int64_t dloss_stride, int64_t offset) {
    const DType wide = ComputeType(x.dtype);
    auto forward = New<CrossEntropyFactory>({x.dtype});
    auto backward = New<CrossEntropyBackwardFactory>({x.dtype});
    Buffer in(*this, x, offset), t(*this, Targets(target)), g(*this, Array(wide, dloss));
    Buffer loss(*this, wide, s.rows), stats(*this, wide, 2 * s.rows);
    Buffer dx(*this, x.dtype, s.rows * s.classes, offset);
    Workspace workspace(*this, forward->WorkspaceBytes(*stream_, s));
    const auto* labels = static_cast<const int64_t*>(t.data());
    Status status = forward->Launch(*stream_, s, in.data(), labels, loss.data(), stats.data(),
                                    workspace.data());
    EXPECT_TRUE(status.ok()) << status;
    status = backward->Launch(*stream_, s, in.data(), labels, stats.data(), g.data(), dloss_stride,
                              dx.data());
    EXPECT_TRUE(status.ok()) << status;
    return {loss.Read(), dx.Read()};
  }

  Result RunInPlace(const CrossEntropyShape& s, const HostArray& x,
                    const std::vector<int64_t>& target, double scale, int64_t offset) {
    const DType wide = ComputeType(x.dtype);
    auto primitive = New<CrossEntropyInPlaceFactory>({x.dtype});
    Buffer in(*this, x, offset), t(*this, Targets(target)), factor(*this, Array(wide, {scale}));
    Buffer loss(*this, wide, s.rows);
    Workspace workspace(*this, primitive->WorkspaceBytes(*stream_, s));
    const Status status =
        primitive->Launch(*stream_, s, in.data(), static_cast<const int64_t*>(t.data()),
                          scale == 1 ? nullptr : factor.data(), loss.data(), workspace.data());
    EXPECT_TRUE(status.ok()) << status;
    return {loss.Read(), in.Read()};
  }

  // The classes in so many parts, which begin anywhere; the gradient in place.
  Result RunInParts(const CrossEntropyShape& s, const HostArray& x,
                    const std::vector<int64_t>& target, const std::vector<double>& dloss,
                    int64_t dloss_stride, int64_t offset, int64_t parts) {
    const DType wide = ComputeType(x.dtype);
    auto split = New<CrossEntropySplitFactory>({x.dtype});
    Buffer in(*this, x, offset), t(*this, Targets(target)), g(*this, Array(wide, dloss));
    Buffer loss(*this, wide, s.rows), stats(*this, wide, 2 * s.rows);
    const int64_t numbers = s.rows * kPartNumbers;
    Buffer all(*this, wide, parts * numbers);
    const auto* labels = static_cast<const int64_t*>(t.data());
    const auto at = [](void* p, DType dtype, int64_t i) -> void* {
      return static_cast<char*>(p) + i * static_cast<int64_t>(SizeOf(dtype));
    };
    const auto for_parts = [&](const auto& f) {
      ClassPartShape part{s.rows, s.classes, 0, 0, s.ignore_index, s.smoothing, s.stride()};
      for (int64_t k = 0; k < parts; ++k, part.first += part.count) {
        part.count = s.classes / parts + (k < s.classes % parts ? 1 : 0);
        const Status status = f(k, part, at(in.data(), x.dtype, part.first));
        EXPECT_TRUE(status.ok()) << status;
      }
    };
    for_parts([&](int64_t k, const ClassPartShape& part, void* logits) {
      return split->Part(*stream_, part, logits, labels, at(all.data(), wide, k * numbers));
    });
    const Status status =
        split->Merge(*stream_, {s.rows, s.classes, parts, s.ignore_index, s.smoothing}, labels,
                     all.data(), loss.data(), stats.data());
    EXPECT_TRUE(status.ok()) << status;
    for_parts([&](int64_t, const ClassPartShape& part, void* logits) {
      return split->Gradient(*stream_, part, logits, labels, stats.data(), g.data(), dloss_stride,
                             logits, s.stride());
    });
    return {loss.Read(), in.Read()};
  }

  static void Compare(const Result& got, const Expected& want, const std::vector<double>& dloss,
                      double loss_scale, const CrossEntropyShape& s, const std::string& what) {
    std::vector<double> loss = want.loss;
    for (double& v : loss) v *= loss_scale;
    const DType dtype = got.dx.dtype;
    const auto loss_tolerance = [&](int64_t r) {
      return std::abs(loss_scale) * LossTolerance(dtype, want.loss[r]);
    };
    ExpectNear(got.loss, loss, loss_tolerance, what + " loss");
    const auto tolerance = [&](int64_t i) {
      return GradientTolerance(dtype, want.dx[i], dloss[i / s.classes]);
    };
    ExpectNear(got.dx, want.dx, tolerance, what + " gradient");
  }

  // Everything about one shape: both forms, with and without smoothing.
  void Check(DType dtype, int64_t rows, int64_t classes, int64_t offset, double mean = 0,
             double spread = 3) {
    if (LeftOut(dtype, rows * classes)) return;
    Numbers numbers(static_cast<uint32_t>(classes + 7 * rows));
    const HostArray x = numbers.NormalArray(dtype, rows * classes, spread, mean);
    std::vector<int64_t> target(rows);
    std::vector<double> dloss(rows);
    for (int64_t r = 0; r < rows; ++r) {
      target[r] = r % 5 == 3 ? kIgnored : numbers.Int(0, classes - 1);
      dloss[r] = 0.25 * (r % 4 + 1);
    }
    target[0] = classes - 1;
    for (const double smoothing : {0.0, 0.1}) {
      const CrossEntropyShape s{rows, classes, kIgnored, smoothing};
      const std::string what = std::to_string(rows) + " x " + std::to_string(classes) +
                               (smoothing > 0 ? " smoothed" : "");
      Compare(Run(s, x, target, dloss, 1, offset), Reference(s, x, target, dloss), dloss, 1, s,
              what);
      const std::vector<double> scale(rows, 0.5);
      const Expected want = Reference(s, x, target, scale);
      if (rows < 10) {
        const std::vector<double> negative(rows, -0.75);
        Compare(RunInPlace(s, x, target, -0.75, offset), Reference(s, x, target, negative),
                negative, -0.75, s, what + " in place, negative");
      }
      const Result in_place = RunInPlace(s, x, target, 0.5, offset);
      Compare(in_place, want, scale, 0.5, s, what + " in place");
      const Result again = RunInPlace(s, x, target, 0.5, offset);
      EXPECT_TRUE(again.loss == in_place.loss && again.dx == in_place.dx) << what << ": other bits";
      Compare(Run(s, x, target, {0.5}, 0, offset), want, scale, 1, s, what + " one dloss");
      Compare(RunInParts(s, x, target, {0.5}, 0, offset, 3), want, scale, 1, s, what + " in parts");
    }
  }
};

TEST_P(CrossEntropyTest, EveryWidth) {
  for (const int64_t classes : kWidths) {
    for (const DType dtype : kFloatingTypes) {
      if (classes > 200000 && dtype == DType::kBFloat16) continue;  // as float16
      Check(dtype, classes > 5000 ? 2 : 11, classes, classes % 3);
    }
  }
}

TEST_P(CrossEntropyTest, ManyRows) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
    Check(dtype, 5003, 10, 0);
    Check(dtype, 700, 1003, 1);
    Check(dtype, 1100, 2500, 0);
    Check(dtype, 600, 5001, 0);  // 8 packs a thread of bfloat16
  }
  Check(DType::kFloat64, 700, 511, 0);  // 8 packs a lane
  Check(DType::kFloat64, 600, 1101, 1);
}

// A vocabulary without its padding, which is NaN; rows of dx follow each other, so that most lie
// otherwise within 16 bytes than x's.
TEST_P(CrossEntropyTest, RowsThatLieApart) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t classes : {5, 64, 500, 1001, 3000, 32001}) {
      for (const int64_t stride : {classes + 1, classes / 64 * 64 + 128}) {
        CrossEntropyShape s{7, classes, kIgnored, 0.1};
        Numbers numbers(static_cast<uint32_t>(classes));
        const HostArray x = numbers.NormalArray(dtype, s.rows * classes, 3);
        HostArray apart(dtype, s.rows * stride);
        for (int64_t i = 0; i < apart.size(); ++i) apart.Set(i, kNan);
        for (int64_t i = 0; i < x.size(); ++i) {
          apart.Set(i / classes * stride + i % classes, x.Float(i));
        }
        const std::vector<int64_t> target = {classes - 1, 0, kIgnored, 2, 1, 3, 4};
        const std::vector<double> dloss(s.rows, 0.5);
        const Expected want = Reference(s, x, target, dloss);
        s.row_stride = stride;
        Compare(Run(s, apart, target, dloss, 1, 1), want, dloss, 1, s,
                std::to_string(classes) + " classes, " + std::to_string(stride) + " apart");
      }
    }
  }
}

TEST_P(CrossEntropyTest, LargeLogitsLoseNothing) {
  for (const double mean : {1e4, -1e4}) {
    Check(DType::kFloat32, 5, 1000, 0, mean);
    Check(DType::kFloat32, 2, 40000, 0, mean);
  }
}

// Where logits over ln 2 are further apart than any exponent.
TEST_P(CrossEntropyTest, LogitsBeyondAllExponents) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const double mean : {0.0, 3e9, 5e9, -1e10}) {  // as far as the reference goes
      for (const int64_t classes : {7, 1000, 40000}) {
        Check(dtype, 3, classes, 0, mean, mean == 0 ? 1e10 : 3);
      }
    }
  }
}

TEST_P(CrossEntropyTest, InfinitiesAndNaNStayInTheirRow) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t classes : {5, 300, 3000, 40000}) {
      const int64_t rows = 6;
      Numbers numbers(3);
      HostArray x = numbers.NormalArray(dtype, rows * classes);
      for (int64_t c = 0; c < classes; ++c) x.Set(c, -kInf);                          // masked
      for (int64_t c = 1; c < classes; ++c) x.Set(classes + c, -kInf);                // but one
      x.Set(2 * classes + 1, kInf);                                                   // NaN
      x.Set(3 * classes + classes - 1, kNan);                                         // NaN
      for (int64_t c = classes / 2; c < classes; ++c) x.Set(4 * classes + c, -kInf);  // half
      const std::vector<int64_t> target = {1, 0, 0, 0, 1, 2};
      const std::vector<double> ones(rows, 1.0);
      const CrossEntropyShape s{rows, classes, kIgnored, 0};
      Expected want = Reference(s, x, target, ones);
      for (const int64_t r : {0, 2, 3}) {
        want.loss[r] = kNan;
        for (int64_t c = 0; c < classes; ++c) want.dx[r * classes + c] = kNan;
      }
      Compare(Run(s, x, target, ones, 1, 0), want, ones, 1, s, "special rows");
      Compare(RunInPlace(s, x, target, 1, 0), want, ones, 1, s, "special rows in place");
      Compare(RunInParts(s, x, target, ones, 1, 0, 2), want, ones, 1, s, "special rows in parts");

      // A target of probability 0 has an infinite loss and a finite gradient.
      const std::vector<int64_t> impossible = {1, 1, 0, 0, classes - 1, 2};
      const HostArray loss = Run(s, x, impossible, ones, 1, 0).loss;
      EXPECT_EQ(loss.Float(1), kInf);
      EXPECT_EQ(loss.Float(4), kInf);
    }
  }
}

TEST_P(CrossEntropyTest, IgnoredRowsGiveZero) {
  for (const double smoothing : {0.0, 0.3}) {
    for (const int64_t classes : {3, 500, 20000}) {
      HostArray x(DType::kFloat32, 2 * classes);
      for (int64_t i = 0; i < x.size(); ++i) x.Set(i, kNan);
      const CrossEntropyShape s{2, classes, 7, smoothing};
      for (const Result& got :
           {Run(s, x, {7, 7}, {kNan, 1}, 1, 0), RunInPlace(s, x, {7, 7}, 3, 0)}) {
        for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(got.dx.Float(i), 0) << classes;
        EXPECT_EQ(got.loss.Float(0), 0);
        EXPECT_EQ(got.loss.Float(1), 0);
      }
    }
  }
}

TEST_P(CrossEntropyTest, TargetsOutOfRange) {
  for (const int64_t bad : {int64_t{-1}, int64_t{5}, std::numeric_limits<int64_t>::max(),
                            std::numeric_limits<int64_t>::min()}) {
    const CrossEntropyShape s{2, 5, kIgnored, 0.1};
    const HostArray x = Numbers(1).NormalArray(DType::kFloat32, 10);
    if (GetParam() == DeviceType::kCPU) {
      auto forward = New<CrossEntropyFactory>({DType::kFloat32});
      std::vector<float> loss(2), stats(4);
      const int64_t target[] = {0, bad};
      const Status status =
          forward->Launch(*stream_, s, x.bytes.data(), target, loss.data(), stats.data(), nullptr);
      EXPECT_EQ(KindOf(status), ErrorKind::kIndex);
      continue;
    }
    const Result got = Run(s, x, {0, bad}, {1, 1}, 1, 0);
    EXPECT_TRUE(std::isfinite(got.loss.Float(0)));
    EXPECT_TRUE(std::isnan(got.loss.Float(1)));
    for (int64_t i = 5; i < 10; ++i) EXPECT_EQ(got.dx.Float(i), 0);
  }
}

TEST_P(CrossEntropyTest, ScaleRowsLeavesOnesAlone) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : {1, 5, 257, 5000, 140000}) {
      auto primitive = New<ScaleRowsFactory>({dtype});
      const HostArray x = Numbers(9).NormalArray(dtype, 4 * cols);
      const std::vector<double> factor = {1, 0.5, 1, -2};
      Buffer y(*this, x, 1), f(*this, Array(ComputeType(dtype), factor));
      ASSERT_TRUE(primitive->Launch(*stream_, 4, cols, f.data(), 1, y.data()).ok());
      std::vector<double> want(x.size());
      for (int64_t i = 0; i < x.size(); ++i) want[i] = x.Float(i) * factor[i / cols];
      ExpectNear(
          y.Read(), want, [&](int64_t i) { return StepOf(dtype, want[i]); }, "scaled");
      const HostArray before = y.Read();
      ASSERT_TRUE(primitive->Launch(*stream_, 4, cols, f.data(), 0, y.data()).ok());
      EXPECT_TRUE(y.Read() == before) << "a factor of 1 changed something";
    }
  }
}

// Around what the threads of a block read at once: 8 rows each.
TEST_P(CrossEntropyTest, ReducedLosses) {
  for (const DType dtype : kFloatingTypes) {
    const DType wide = ComputeType(dtype);
    auto reduce = New<ReduceLossFactory>({dtype});
    auto weigh = New<MeanWeightFactory>({dtype});
    for (const int64_t rows : {0, 1, 31, 1025, 8191, 8192, 8193, 20000}) {
      Numbers numbers(5);
      const HostArray loss = numbers.NormalArray(wide, rows, 1, 0.5);
      std::vector<int64_t> target(rows);
      for (int64_t r = 0; r < rows; ++r) target[r] = r % 3 == 1 ? kIgnored : r;
      double sum = 0, count = 0;
      for (int64_t r = 0; r < rows; ++r) {
        sum += loss.Float(r);
        count += target[r] != kIgnored;
      }
      Buffer l(*this, loss, 0), t(*this, Targets(target));
      Buffer value(*this, dtype, 1), weight(*this, wide, 1);
      const auto* labels = static_cast<const int64_t*>(t.data());
      for (const bool mean : {false, true}) {
        ASSERT_TRUE(reduce
                        ->Launch(*stream_, rows, kIgnored, l.data(), mean ? labels : nullptr,
                                 value.data(), weight.data())
                        .ok());
        const double each = mean ? 1 / count : 1, want = sum * each;
        EXPECT_EQ(weight.Read().Float(0), Array(wide, {each}).Float(0));
        if (rows == 0 && mean) {
          EXPECT_TRUE(std::isnan(value.Read().Float(0)));
          continue;
        }
        EXPECT_NEAR(value.Read().Float(0), want,
                    1e-5 * std::abs(want) + (SizeOf(dtype) == 2 ? StepOf(dtype, want) : 0));
      }
      ASSERT_TRUE(weigh->Launch(*stream_, rows, kIgnored, labels, weight.data()).ok());
      EXPECT_EQ(weight.Read().Float(0), Array(wide, {1 / count}).Float(0));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CrossEntropyTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
