// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm, forward and backward, against float64 within the bounds of accuracy that
// the project promises, at widths and numbers of rows around every dispatch boundary.
#include "primitive/layer_norm.h"
#include "primitive/rms_norm.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

// Around vectors, warps, blocks of registers and shared memory, parts of a split row.
constexpr int64_t kWidths[] = {1,    2,     3,     31,    32,    33,    63,    64,     65,
                               127,  128,   129,   255,   256,   257,   1000,  1023,   1024,
                               1025, 2047,  2048,  2049,  4095,  4096,  4097,  8191,   8192,
                               8193, 16384, 32768, 50257, 65535, 65536, 65537, 131072, 1000003};

struct Problem {
  int64_t rows, cols;
  NormSpec spec;
  bool centred;
  double eps = 1e-5;
  int64_t gap = 0;  // between rows of x
  bool weight = true, bias = true, residual = false;

  int64_t size() const { return rows * cols; }
  NormShape shape() const {
    return {.rows = rows, .cols = cols, .eps = eps, .x_stride = gap ? cols + gap : 0};
  }
  std::string Describe() const {
    return std::string(centred ? "layer_norm" : "rms_norm") + " of " + std::to_string(rows) +
           " x " + std::to_string(cols) + (residual ? ", residual" : "") +
           (gap ? ", strided" : "") + (weight ? "" : ", no weight") + (bias ? "" : ", no bias");
  }
};

struct Inputs {
  HostArray x, residual, weight, bias, dy, dsum;

  Inputs(const Problem& p, Numbers n, double mean = 0, double spread = 1)
      : x(n.NormalArray(p.spec.dtype, p.size(), spread, mean)),
        residual(n.NormalArray(p.spec.dtype, p.size(), spread)),
        weight(n.NormalArray(p.spec.weight_dtype, p.cols)),
        bias(n.NormalArray(p.spec.weight_dtype, p.cols)),
        dy(n.NormalArray(p.spec.dtype, p.size())),
        dsum(n.NormalArray(p.spec.dtype, p.size())) {
    for (int64_t i = 0; i < p.cols; ++i) {  // away from 0, so that y gives x_hat back
      const double w = weight.Float(i);
      weight.Set(i, w + (w < 0 ? -0.5 : 0.5));
    }
  }
};

struct Outputs {
  HostArray y, sum, mean, rstd;
};
struct Gradients {
  HostArray dx, dweight, dbias;
};

// With the sizes of the terms whose sums the elements are: float32 cannot be more exact than those.
struct Reference {
  std::vector<double> x_hat, rstd, y, mean;
  std::vector<double> dx, dx_size, dweight, dweight_size, dbias, dbias_size;
};

// `s` is what is normalised.
Reference Expected(const Problem& p, const Inputs& in, const HostArray& s, bool dsum) {
  Reference r;
  r.dweight.resize(p.cols), r.dweight_size.resize(p.cols);
  r.dbias.resize(p.cols), r.dbias_size.resize(p.cols);
  const auto n = static_cast<double>(p.cols);
  const auto weight = [&](int64_t c) { return p.weight ? in.weight.Float(c) : 1; };
  for (int64_t row = 0; row < p.rows; ++row) {
    const auto at = [&](int64_t c) { return row * p.cols + c; };
    long double mean = 0, square = 0;
    for (int64_t c = 0; c < p.cols && p.centred; ++c) mean += s.Float(at(c)) / n;
    for (int64_t c = 0; c < p.cols; ++c) square += std::pow(s.Float(at(c)) - mean, 2) / n;
    const double rstd = 1 / std::sqrt(static_cast<double>(square) + p.eps);
    r.mean.push_back(static_cast<double>(mean)), r.rstd.push_back(rstd);
    double g_mean = 0, gx_mean = 0, g_size = 0, gx_size = 0;
    for (int64_t c = 0; c < p.cols; ++c) {
      r.x_hat.push_back(static_cast<double>(s.Float(at(c)) - mean) * rstd);
      r.y.push_back(r.x_hat.back() * weight(c) + (p.centred && p.bias ? in.bias.Float(c) : 0));
      const double dy = in.dy.Float(at(c)), g = dy * weight(c), gx = g * r.x_hat.back();
      g_mean += p.centred ? g / n : 0, g_size += p.centred ? std::abs(g) / n : 0;
      gx_mean += gx / n, gx_size += std::abs(gx) / n;
      r.dweight[c] += dy * r.x_hat.back(), r.dbias[c] += dy;
      r.dweight_size[c] += std::abs(dy) * (std::abs(r.x_hat.back()) + 0.02);
      r.dbias_size[c] += std::abs(dy);
    }
    for (int64_t c = 0; c < p.cols; ++c) {
      const double g = in.dy.Float(at(c)) * weight(c), h = r.x_hat[at(c)];
      const double more = dsum ? in.dsum.Float(at(c)) : 0;
      r.dx.push_back(rstd * (g - g_mean - h * gx_mean) + more);
      r.dx_size.push_back(rstd * (std::abs(g) + g_size + std::abs(h) * gx_size) + std::abs(more));
    }
  }
  return r;
}

double Bound(DType dtype, double relative, double size, double want) {
  if (dtype == DType::kFloat64) return 1e-9 * relative * size + 1e-300;
  const double base = relative * size + 1e-30;
  return dtype == DType::kFloat32 ? base : base + StepOf(dtype, want);
}

class NormTest : public PrimitiveTest {
 protected:
  // x with gaps of poison between the rows.
  static HostArray Spread(const Problem& p, const HostArray& x) {
    if (p.gap == 0) return x;
    HostArray wide(x.dtype, p.rows * (p.cols + p.gap));
    std::fill(wide.bytes.begin(), wide.bytes.end(), '\xff');
    const size_t row = p.cols * SizeOf(x.dtype), step = (p.cols + p.gap) * SizeOf(x.dtype);
    for (int64_t i = 0; i < p.rows; ++i) {
      std::copy_n(x.bytes.begin() + i * row, row, wide.bytes.begin() + i * step);
    }
    return wide;
  }

  template <class Factory, class Args>
  void Run(const Problem& p, const Args& args) {
    auto primitive = New<Factory>(p.spec);
    Workspace workspace(*this, primitive->WorkspaceBytes(*stream_, p.shape()));
    const Status s = primitive->Launch(*stream_, p.shape(), args, workspace.data());
    EXPECT_TRUE(s.ok()) << s << " " << p.Describe();
  }

  Outputs Forward(const Problem& p, const Inputs& in, int64_t offset, bool in_place = false) {
    const DType compute = ComputeType(p.spec.dtype);
    Buffer x(*this, Spread(p, in.x), offset), residual(*this, in.residual, offset);
    Buffer weight(*this, in.weight, offset), bias(*this, in.bias, offset);
    Buffer out(*this, p.spec.dtype, p.size(), offset), sum(*this, p.spec.dtype, p.size(), offset);
    Buffer mean(*this, compute, p.rows), rstd(*this, compute, p.rows);
    const Buffer& y = in_place && !p.residual ? x : out;
    const Buffer& s = in_place ? residual : sum;
    const auto common = [&](auto args) {
      args.x = x.data(), args.y = y.data(), args.rstd = rstd.data();
      if (p.weight) args.weight = weight.data();
      if (p.residual) args.residual = residual.data(), args.sum = s.data();
      return args;
    };
    if (p.centred) {
      auto args = common(LayerNorm::Args{});
      if (p.bias) args.bias = bias.data();
      args.mean = mean.data();
      Run<LayerNormFactory>(p, args);
    } else {
      Run<RmsNormFactory>(p, common(RmsNorm::Args{}));
    }
    return {y.Read(), p.residual ? s.Read() : in.x, mean.Read(), rstd.Read()};
  }

  // From s and the forward's statistics, or from y.
  Gradients Backward(const Problem& p, const Inputs& in, const Outputs& f, int64_t offset,
                     bool from_y, bool dsum, int wanted = 7) {
    Buffer x(*this, Spread(p, f.sum), offset), y(*this, f.y, offset), dy(*this, in.dy, offset);
    Buffer weight(*this, in.weight, offset), bias(*this, in.bias, offset);
    Buffer more(*this, in.dsum, offset), mean(*this, f.mean), rstd(*this, f.rstd);
    Buffer dx(*this, p.spec.dtype, p.size(), offset);
    Buffer dweight(*this, p.spec.weight_dtype, p.cols, offset);
    Buffer dbias(*this, p.spec.weight_dtype, p.cols, offset);
    const auto common = [&](auto args) {
      (from_y ? args.y : args.x) = (from_y ? y : x).data();
      args.dy = dy.data(), args.rstd = rstd.data();
      if (p.weight) args.weight = weight.data();
      if (dsum) args.dsum = more.data();
      if (wanted & 1) args.dx = dx.data();
      if (wanted & 2) args.dweight = dweight.data();
      return args;
    };
    if (p.centred) {
      auto args = common(LayerNormBackward::Args{});
      if (p.bias) args.bias = bias.data();
      if (!from_y) args.mean = mean.data();
      if (wanted & 4) args.dbias = dbias.data();
      Run<LayerNormBackwardFactory>(p, args);
    } else {
      Run<RmsNormBackwardFactory>(p, common(RmsNormBackward::Args{}));
    }
    return {dx.Read(), dweight.Read(), dbias.Read()};
  }

  void ExpectGradients(const Problem& p, const Gradients& got, const Reference& want, double looser,
                       const std::string& what) {
    const DType dtype = p.spec.dtype, columns = p.spec.weight_dtype;
    ExpectNear(
        got.dx, want.dx,
        [&](int64_t i) {
          return Bound(dtype, looser * 4e-6, std::max(1.0, want.dx_size[i]), want.dx[i]);
        },
        what + ", dx");
    ExpectNear(
        got.dweight, want.dweight,
        [&](int64_t i) {
          return Bound(columns, looser * 1e-5, want.dweight_size[i], want.dweight[i]);
        },
        what + ", dweight");
    if (!p.centred) return;
    ExpectNear(
        got.dbias, want.dbias,
        [&](int64_t i) { return Bound(columns, 1e-5, want.dbias_size[i], want.dbias[i]); },
        what + ", dbias");
  }

  // Everything against the reference; the same bits in place and again.
  void Check(const Problem& p, int64_t offset, uint32_t seed, bool from_y = false) {
    if (LeftOut(p.spec.dtype, p.size())) return;
    const Inputs in(p, Numbers(seed));
    const Outputs out = Forward(p, in, offset);
    if (p.residual) {
      for (int64_t i = 0; i < p.size(); ++i) {
        HostArray rounded(p.spec.dtype, 1);
        rounded.Set(0, static_cast<double>(in.x.Float(i) + in.residual.Float(i)));
        ASSERT_NEAR(out.sum.Float(i), rounded.Float(0), 0) << p.Describe() << ", sum " << i;
      }
    }
    const Reference want = Expected(p, in, out.sum, p.residual);
    const DType dtype = p.spec.dtype;
    ExpectNear(
        out.y, want.y,
        [&](int64_t i) {
          return Bound(dtype, 4e-6, std::max(1.0, std::abs(want.y[i])), want.y[i]);
        },
        p.Describe());
    const DType compute = ComputeType(dtype);
    ExpectNear(
        out.rstd, want.rstd, [&](int64_t i) { return Bound(compute, 4e-6, want.rstd[i], 1); },
        p.Describe() + ", rstd");
    if (p.centred) {
      ExpectNear(
          out.mean, want.mean,
          [&](int64_t i) { return Bound(compute, 1e-6, std::max(1.0, std::abs(want.mean[i])), 1); },
          p.Describe() + ", mean");
    }
    if (p.gap == 0) {
      const Outputs again = Forward(p, in, offset, /*in_place=*/true);
      EXPECT_TRUE(again.y == out.y && again.sum == out.sum) << p.Describe() << ": in place differs";
    }
    // From a rounded y, x_hat is what the rounding left of it.
    if (from_y && SizeOf(dtype) == 2) return;
    const Gradients grads = Backward(p, in, out, offset, from_y, p.residual);
    ExpectGradients(p, grads, want, from_y ? 8 : 1, p.Describe() + (from_y ? " from y" : ""));
    for (const int wanted : {1, 2, 4, 6}) {
      const Gradients some = Backward(p, in, out, offset, from_y, p.residual, wanted);
      EXPECT_TRUE(!(wanted & 1) || some.dx == grads.dx) << p.Describe() << ", only " << wanted;
      EXPECT_TRUE(!(wanted & 2) || some.dweight == grads.dweight) << p.Describe();
      EXPECT_TRUE(!(wanted & 4) || some.dbias == grads.dbias) << p.Describe();
    }
  }

  static NormSpec Mixed(DType dtype) { return {dtype, DType::kFloat32}; }
};

TEST_P(NormTest, AccuracyAtEveryWidth) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : kWidths) {
      const int64_t rows = cols > 100000 ? 1 : cols > 10000 ? 2 : 5;
      for (const bool centred : {false, true}) {
        // The offset alternates, so that every other width starts at an odd element.
        Check({rows, cols, {dtype, dtype}, centred}, (cols + centred) % 2,
              static_cast<uint32_t>(cols));
      }
    }
  }
}

TEST_P(NormTest, ManyRows) {
  for (const bool centred : {false, true}) {
    for (const int64_t rows : {15, 16, 17, 64, 65, 1023, 1025, 8193}) {
      for (const int64_t cols : {1, 7, 64, 100}) {
        Check({rows, cols, {}, centred}, 1, 5, rows % 2 == 0);
      }
    }
  }
}

TEST_P(NormTest, AbsentColumnsMixedDtypesResidualAndStride) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : {5, 128, 1000, 4099, 140000}) {
      for (int bits = 0; bits < 32; ++bits) {
        if (cols > 1000 && bits % 5 != 0) continue;  // seconds
        const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
        const Problem p{.rows = cols > 10000 ? 1 : 9,
                        .cols = cols,
                        .spec = bit(4) ? Mixed(dtype) : NormSpec{dtype, dtype},
                        .centred = bit(3),
                        .gap = bit(2) ? 3 : 0,
                        .weight = bit(0),
                        .bias = bit(1),
                        .residual = bit(0) != bit(1)};
        Check(p, bits % 2, 7 + bits, bit(2));
      }
    }
  }
}

// One step of float32 at 1e4 is the spread itself.
TEST_P(NormTest, SmallSpreadAboutALargeMean) {
  for (const int64_t cols : {2, 33, 1000, 4096, 16385, 70001, 300000}) {
    const Problem p{.rows = 3, .cols = cols, .spec = {}, .centred = true, .eps = 1e-12};
    const Inputs in(p, Numbers(21), 1e4, 1e-3);
    const Outputs out = Forward(p, in, 1);
    const Reference want = Expected(p, in, in.x, false);
    ExpectNear(
        out.y, want.y, [&](int64_t i) { return 1e-3 * std::max(1.0, std::abs(want.y[i])); },
        p.Describe());
    const Gradients grads = Backward(p, in, out, 1, false, false);
    ExpectGradients(p, grads, want, 100, p.Describe());
  }
}

TEST_P(NormTest, WeightsNearZeroGiveFiniteGradientsFromY) {
  for (const bool centred : {false, true}) {
    const Problem p{70, 300, {}, centred};
    Inputs in(p, Numbers(22));
    for (int64_t i = 0; i < 100; ++i) in.weight.Set(i, i % 2 ? 0 : (i % 4 ? -1e-7 : 1e-30));
    const Gradients grads = Backward(p, in, Forward(p, in, 0), 0, true, false);
    for (int64_t i = 0; i < p.size(); ++i) ASSERT_TRUE(std::isfinite(grads.dx.Float(i))) << i;
    for (int64_t i = 0; i < p.cols; ++i) {
      ASSERT_TRUE(std::isfinite(grads.dweight.Float(i))) << i;
      if (i < 100 && i % 2) ASSERT_EQ(grads.dweight.Float(i), 0) << i;
    }
  }
}

TEST_P(NormTest, NonFiniteRowsStayAlone) {
  for (const bool centred : {false, true}) {
    for (const int64_t cols : {1, 33, 1000, 4097, 131072}) {
      const Problem p{6, cols, {}, centred};
      Inputs in(p, Numbers(23));
      const Outputs clean = Forward(p, in, 0);
      const Gradients grads = Backward(p, in, clean, 0, false, false, 1);
      in.x.Set(2 * cols + cols / 2, kInf);
      in.x.Set(3 * cols + cols - 1, kNan);
      const Outputs out = Forward(p, in, 0);
      const Gradients spoilt = Backward(p, in, out, 0, false, false, 1);
      for (const int64_t row : {0, 1, 4, 5}) {
        for (int64_t i = row * cols; i < (row + 1) * cols; ++i) {
          ASSERT_EQ(out.y.Float(i), clean.y.Float(i)) << p.Describe();
          ASSERT_EQ(spoilt.dx.Float(i), grads.dx.Float(i)) << p.Describe();
        }
      }
      for (int64_t i = 3 * cols; i < 4 * cols; ++i) ASSERT_TRUE(std::isnan(out.y.Float(i)));
      EXPECT_TRUE(std::isnan(out.y.Float(2 * cols + cols / 2)));
    }
  }
}

// Enough rows that the caches cannot hold them, the same few over and over: a row's value does not
// depend on how many others there are. On CUDA, another number of rows may choose another kernel.
TEST_P(NormTest, MoreThanTheCachesHold) {
  for (const bool centred : {false, true}) {
    const Problem small{100, 4099, {}, centred};
    const Inputs in(small, Numbers(24));
    const Outputs out = Forward(small, in, 1);
    const Gradients grads = Backward(small, in, out, 1, false, false, 1);
    constexpr int64_t kCopies = 18;
    Problem large = small;
    large.rows *= kCopies;
    Inputs many(large, Numbers(24));
    many.weight = in.weight, many.bias = in.bias;
    for (int64_t i = 0; i < large.size(); ++i) {
      many.x.Set(i, in.x.Float(i % small.size()));
      many.dy.Set(i, in.dy.Float(i % small.size()));
    }
    const Outputs all = Forward(large, many, 1);
    const Gradients all_grads = Backward(large, many, all, 1, false, false, 1);
    const double bound = GetParam() == DeviceType::kCPU ? 0 : 1e-5;
    for (int64_t i = 0; i < large.size(); ++i) {
      const int64_t j = i % small.size();
      ASSERT_NEAR(all.y.Float(i), out.y.Float(j), bound * 10) << large.Describe() << " " << i;
      ASSERT_NEAR(all_grads.dx.Float(i), grads.dx.Float(j), bound * 10) << large.Describe();
    }
  }
}

TEST_P(NormTest, OnlyYIsRequired) {
  const Problem p{4, 50, {}, true};
  const Inputs in(p, Numbers(25));
  Buffer x(*this, in.x), y(*this, p.spec.dtype, p.size());
  Run<LayerNormFactory>(p, LayerNorm::Args{.x = x.data(), .y = y.data()});
  Problem plain = p;
  plain.weight = plain.bias = false;
  EXPECT_TRUE(y.Read() == Forward(plain, in, 0).y);
}

TEST_P(NormTest, NoRowsLaunchNothing) {
  const Problem p{0, 5, {}, true};
  EXPECT_EQ(Forward(p, Inputs(p, Numbers(1)), 0).y.size(), 0);
}

TEST_P(NormTest, OtherDtypesAreRefused) {
  const auto refused = [](const NormSpec& spec) {
    return !NewPrimitive<LayerNormFactory>(GetParam(), spec).ok() &&
           !NewPrimitive<RmsNormBackwardFactory>(GetParam(), spec).ok();
  };
  EXPECT_TRUE(refused({DType::kInt32, DType::kInt32}));
  EXPECT_TRUE(refused({DType::kFloat16, DType::kBFloat16}));
  EXPECT_TRUE(refused({DType::kFloat32, DType::kFloat64}));
}

INSTANTIATE_TEST_SUITE_P(, NormTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
