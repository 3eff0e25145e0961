// SPDX-License-Identifier: Apache-2.0
//
// Beyond primitive_norm_test.cpp: layer_norm and rms_norm on CUDA at the widths where their kernels
// change hands (primitive/cuda/row_policy.h, primitive/cuda/norm_policy.h), at odd offsets and
// strides, for every subset of gradients, against float64 on the CPU. Skips where there is no GPU.
#include "primitive/layer_norm.h"
#include "primitive/rms_norm.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

enum Wanted { kDx = 1, kDWeight = 2, kDBias = 4, kAll = 7 };

struct Case {
  int64_t rows, cols;
  int64_t x_pad = 0;                       // x_stride - cols
  int64_t x_offset = 0;                    // elements past an aligned address, of x ...
  int64_t offset = 0;                      // ... and of the other tensors
  int64_t dx_offset = 0, dsum_offset = 0;  // more than that
  int64_t weight_offset = 0;
  double mean = 0, spread = 1;
  bool weight = true, bias = true, mixed = false;
  bool residual = false, sum_in_residual = false;  // the backward then adds a gradient of the sum
  bool from_output = false;                        // memory-efficient
  bool in_place = false;                           // dx is dy
  double weight_spread = 0.5;
  int wanted = kAll;

  int64_t stride() const { return cols + x_pad; }
  int64_t numel() const { return rows * cols; }
  std::string Describe() const {
    std::string text = std::to_string(rows) + " x " + std::to_string(cols);
    for (const int64_t v : {x_pad, x_offset, offset, dx_offset, dsum_offset, weight_offset}) {
      text += ", " + std::to_string(v);
    }
    for (const bool v : {weight, bias, mixed, residual, from_output, in_place}) {
      text += v ? " 1" : " 0";
    }
    return text + ", wanted " + std::to_string(wanted);
  }
};

// The two norms differ in what their arguments have.
struct LayerNormOp {
  static constexpr bool kCentre = true;
  using Forward = LayerNorm;
  using Backward = LayerNormBackward;
};
struct RmsNormOp {
  static constexpr bool kCentre = false;
  using Forward = RmsNorm;
  using Backward = RmsNormBackward;
};

using Doubles = std::vector<double>;
double At(const Doubles& v, int64_t i, double missing) { return v.empty() ? missing : v[i]; }

Doubles ToDoubles(const HostArray& a) {
  Doubles v(a.size());
  VisitAll(a.dtype, [&]<class T>(Tag<T>) {
    const auto* p = reinterpret_cast<const T*>(a.bytes.data());
    for (size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<double>(static_cast<ComputeOf<T>>(p[i]));
  });
  return v;
}

struct Row {
  double mean = 0, rstd = 0;
};
Row RowOf(const double* s, int64_t cols, double eps, bool centre) {
  Row row;
  for (int64_t c = 0; c < cols && centre; ++c) row.mean += s[c];
  row.mean /= static_cast<double>(cols);
  double left = 0;  // of the sum's rounding, which a tiny spread would show
  for (int64_t c = 0; c < cols && centre; ++c) left += s[c] - row.mean;
  row.mean += left / static_cast<double>(cols);
  double squares = 0;
  for (int64_t c = 0; c < cols; ++c) squares += (s[c] - row.mean) * (s[c] - row.mean);
  row.rstd = 1 / std::sqrt(squares / static_cast<double>(cols) + eps);
  return row;
}

class CudaNormTest : public PrimitiveTest {
 protected:
  static constexpr double kEps = 1e-9;

  // float16, bfloat16: one step besides; see SEMANTICS.
  static double Unit(DType dtype) { return dtype == DType::kFloat64 ? 1e-12 : 4e-6; }
  static double Rounding(DType dtype, double v) {
    return SizeOf(dtype) == 2 ? StepOf(dtype, v) : 0;
  }
  static DType StatisticsOf(DType dtype) {
    return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  }

  template <class Op>
  void Run(DType dtype, const Case& k) {
    if (LeftOut(dtype, k.rows * k.stride())) return;
    SCOPED_TRACE(std::string(Op::kCentre ? "layer_norm " : "rms_norm ") + Name(dtype) + " " +
                 k.Describe());
    const DType weight_dtype = k.mixed ? DType::kFloat32 : dtype;
    const NormSpec spec{.dtype = dtype, .weight_dtype = weight_dtype};
    const NormShape shape{.rows = k.rows, .cols = k.cols, .eps = kEps, .x_stride = k.stride()};
    x_ = numbers_.NormalArray(dtype, k.rows * k.stride(), k.spread, k.mean);
    residual_ = numbers_.NormalArray(dtype, k.residual ? k.numel() : 0);
    weight_ = numbers_.NormalArray(weight_dtype, k.cols, k.weight_spread, 1);
    bias_ = numbers_.NormalArray(weight_dtype, k.cols, 0.5);
    if (!k.weight) weight_ = HostArray(weight_dtype, 0);
    if (!k.bias || !Op::kCentre) bias_ = HostArray(weight_dtype, 0);
    Forward<Op>(spec, shape, k);
    if (HasFailure()) return;
    Backward<Op>(spec, shape, k);
  }

  template <class Op>
  void Forward(const NormSpec& spec, const NormShape& shape, const Case& k) {
    const DType statistics = StatisticsOf(spec.dtype);
    Buffer x(*this, x_, k.x_offset), residual(*this, residual_, k.offset);
    Buffer weight(*this, weight_, k.weight_offset), bias(*this, bias_, k.weight_offset);
    Buffer y(*this, spec.dtype, k.numel(), k.offset), sum(*this, spec.dtype, k.numel(), k.offset);
    Buffer mean(*this, statistics, k.rows), rstd(*this, statistics, k.rows);
    typename Op::Forward::Args args;
    args.x = x.data(), args.y = y.data(), args.rstd = rstd.data();
    if (k.weight) args.weight = weight.data();
    if (k.residual) args.residual = residual.data();
    if (k.residual) args.sum = k.sum_in_residual ? residual.data() : sum.data();
    if constexpr (Op::kCentre) {
      args.mean = mean.data();
      if (k.bias) args.bias = bias.data();
    }
    const auto forward = New<PrimitiveFactory<typename Op::Forward>>(spec);
    ASSERT_TRUE(forward);
    const Workspace workspace(*this, forward->WorkspaceBytes(*stream_, shape));
    const Status status = forward->Launch(*stream_, shape, args, workspace.data());
    ASSERT_TRUE(status.ok()) << status;

    y_ = y.Read(), rstd_ = rstd.Read(), mean_ = HostArray(statistics, 0);
    if (Op::kCentre) mean_ = mean.Read();
    s_ = HostArray(spec.dtype, k.numel());
    const Doubles xs = ToDoubles(x_), rs = ToDoubles(residual_);
    for (int64_t i = 0; i < k.numel(); ++i) {
      s_.Set(i, xs[i / k.cols * k.stride() + i % k.cols] + At(rs, i, 0));
    }
    if (k.residual) {
      const HostArray got = k.sum_in_residual ? residual.Read() : sum.Read();
      EXPECT_EQ(got, s_) << "sum";
    }
    const Doubles s = ToDoubles(s_), ws = ToDoubles(weight_), bs = ToDoubles(bias_);
    rows_.resize(k.rows);
    Doubles want(k.numel()), scale(k.numel()), means(k.rows), rstds(k.rows);
    for (int64_t r = 0; r < k.rows; ++r) {
      rows_[r] = RowOf(&s[r * k.cols], k.cols, shape.eps, Op::kCentre);
      means[r] = rows_[r].mean, rstds[r] = rows_[r].rstd;
      for (int64_t c = 0; c < k.cols; ++c) {
        const double w = At(ws, c, 1), b = At(bs, c, 0);
        const double x_hat = (s[r * k.cols + c] - means[r]) * rstds[r];
        want[r * k.cols + c] = x_hat * w + b;
        scale[r * k.cols + c] = std::max(1.0, std::abs(x_hat * w) + std::abs(w) + std::abs(b));
      }
    }
    // Where the mean is far above the spread, float64 itself has so many digits less.
    const double unit = Unit(spec.dtype) * (k.mean > 0 && spec.dtype == DType::kFloat64 ? 1e4 : 1);
    ExpectNear(
        y_, want, [&](int64_t i) { return Rounding(spec.dtype, want[i]) + unit * scale[i]; }, "y");
    ExpectNear(
        rstd_, rstds, [&](int64_t r) { return 4 * unit * rstds[r]; }, "rstd");
    if (!Op::kCentre) return;
    ExpectNear(
        mean_, means, [&](int64_t r) { return unit * (std::abs(means[r]) + 1 / rstds[r]); },
        "mean");
  }

  template <class Op>
  void Backward(const NormSpec& spec, const NormShape& forward_shape, const Case& k) {
    NormShape shape = forward_shape;
    if (k.residual) shape.x_stride = 0;  // the sum is dense
    dy_ = numbers_.NormalArray(spec.dtype, k.numel());
    dsum_ = numbers_.NormalArray(spec.dtype, k.residual ? k.numel() : 0);
    Buffer x(*this, k.residual ? s_ : x_, k.x_offset), y(*this, y_, k.x_offset);
    Buffer dy(*this, dy_, k.offset), dsum(*this, dsum_, k.offset + k.dsum_offset);
    Buffer weight(*this, weight_, k.weight_offset), bias(*this, bias_, k.weight_offset),
        mean(*this, mean_), rstd(*this, rstd_);
    Buffer dx(*this, spec.dtype, k.numel(), k.offset + k.dx_offset);
    Buffer dweight(*this, spec.weight_dtype, k.cols, 1), dbias(*this, spec.weight_dtype, k.cols, 1);
    typename Op::Backward::Args args;
    args.dy = dy.data(), args.rstd = rstd.data();
    (k.from_output ? args.y : args.x) = k.from_output ? y.data() : x.data();
    if (k.weight) args.weight = weight.data();
    if (k.residual) args.dsum = dsum.data();
    const bool wants_bias = Op::kCentre && (k.wanted & kDBias);
    if (k.wanted & kDx) args.dx = k.in_place ? dy.data() : dx.data();
    if (k.wanted & kDWeight) args.dweight = dweight.data();
    if constexpr (Op::kCentre) {
      if (!k.from_output) args.mean = mean.data();
      if (k.bias) args.bias = bias.data();
      if (wants_bias) args.dbias = dbias.data();
    }
    const auto backward = New<PrimitiveFactory<typename Op::Backward>>(spec);
    ASSERT_TRUE(backward);
    const Workspace workspace(*this, backward->WorkspaceBytes(*stream_, shape));
    const auto launch = [&] {
      const Status status = backward->Launch(*stream_, shape, args, workspace.data());
      ASSERT_TRUE(status.ok()) << status;
    };
    launch();
    const HostArray first_dx = k.in_place ? dy.Read() : dx.Read(), first_dweight = dweight.Read(),
                    first_dbias = dbias.Read();
    CheckGradients<Op>(spec, k, first_dx, first_dweight, first_dbias);
    if (HasFailure() || k.in_place) return;
    launch();
    EXPECT_EQ(first_dx, dx.Read()) << "not the same bits";
    EXPECT_EQ(first_dweight, dweight.Read()) << "not the same bits";
    EXPECT_EQ(first_dbias, dbias.Read()) << "not the same bits";
  }

  template <class Op>
  void CheckGradients(const NormSpec& spec, const Case& k, const HostArray& dx,
                      const HostArray& dweight, const HostArray& dbias) {
    const Doubles s = ToDoubles(s_), y = ToDoubles(y_), dy = ToDoubles(dy_),
                  dsum = ToDoubles(dsum_);
    const Doubles ws = ToDoubles(weight_), bs = ToDoubles(bias_), rstd = ToDoubles(rstd_);
    Doubles want(k.numel()), scale(k.numel());
    Doubles dw(k.cols), dw_terms(k.cols), db(k.cols), db_terms(k.cols), x_hat(k.cols), g(k.cols);
    const auto cols = static_cast<double>(k.cols);
    for (int64_t r = 0; r < k.rows; ++r) {
      const double scale_of_row = k.from_output ? rstd[r] : rows_[r].rstd;
      double mean_g = 0, mean_gx = 0;
      for (int64_t c = 0; c < k.cols; ++c) {
        const int64_t i = r * k.cols + c;
        const double w = At(ws, c, 1);
        const double divisor = std::abs(w) >= kWeightClamp ? w : std::copysign(kWeightClamp, w);
        x_hat[c] = k.from_output ? (y[i] - At(bs, c, 0)) / divisor
                                 : (s[i] - rows_[r].mean) * rows_[r].rstd;
        g[c] = dy[i] * w;
        mean_g += Op::kCentre ? g[c] / cols : 0;
        mean_gx += g[c] * x_hat[c] / cols;
        dw[c] += dy[i] * x_hat[c];
        db[c] += dy[i];
        dw_terms[c] += std::abs(dy[i]) * (std::abs(x_hat[c]) + 0.1);
        db_terms[c] += std::abs(dy[i]);
      }
      for (int64_t c = 0; c < k.cols; ++c) {
        const int64_t i = r * k.cols + c;
        want[i] = scale_of_row * (g[c] - mean_g - x_hat[c] * mean_gx) + At(dsum, i, 0);
        scale[i] = std::max(1.0, std::abs(At(dsum, i, 0)) +
                                     scale_of_row * (std::abs(g[c]) + std::abs(mean_g) +
                                                     std::abs(x_hat[c]) * (std::abs(mean_gx) + 1)));
      }
    }
    const double more = k.mean > 0 && spec.dtype == DType::kFloat64 ? 1e4 : 1;
    const double unit = Unit(spec.dtype) * more;
    if (k.wanted & kDx) {
      ExpectNear(
          dx, want, [&](int64_t i) { return Rounding(spec.dtype, want[i]) + unit * scale[i]; },
          "dx");
    }
    const auto weight_bound = [&](const Doubles& value, const Doubles& terms) {
      return [&](int64_t c) {
        const double weight_unit = std::max(unit, Unit(spec.weight_dtype));
        return Rounding(spec.weight_dtype, value[c]) + 2.5 * weight_unit * terms[c];
      };
    };
    if (k.wanted & kDWeight) ExpectNear(dweight, dw, weight_bound(dw, dw_terms), "dweight");
    if (Op::kCentre && (k.wanted & kDBias)) {
      ExpectNear(dbias, db, weight_bound(db, db_terms), "dbias");
    }
  }

  void RunBoth(DType dtype, const Case& k) {
    if (!HasFailure()) Run<LayerNormOp>(dtype, k);
    if (!HasFailure()) Run<RmsNormOp>(dtype, k);
  }
  void RunAll(const Case& k) {
    for (const DType dtype : kFloatingTypes) RunBoth(dtype, k);
  }
  static int64_t PackOf(DType dtype) { return 16 / static_cast<int64_t>(SizeOf(dtype)); }

  Numbers numbers_{7};
  HostArray x_{DType::kFloat32, 0}, residual_{DType::kFloat32, 0}, s_{DType::kFloat32, 0};
  HostArray weight_{DType::kFloat32, 0}, bias_{DType::kFloat32, 0}, y_{DType::kFloat32, 0};
  HostArray mean_{DType::kFloat32, 0}, rstd_{DType::kFloat32, 0};
  HostArray dy_{DType::kFloat32, 0}, dsum_{DType::kFloat32, 0};
  std::vector<Row> rows_;
};

TEST_P(CudaNormTest, NarrowRowsOfEveryWidth) {
  for (int64_t cols = 1; cols <= 40; ++cols) RunAll({.rows = 70, .cols = cols});
}

// Packs of 16 bytes: lanes of a group and packs per lane (4 to 256), a block's registers (2048,
// 4096), shares of 2, 4 and 8 blocks (16384), 16 blocks (32768); rows of whole packs and others.
TEST_P(CudaNormTest, WidthsAroundTheTiersBoundaries) {
  for (const DType dtype : kFloatingTypes) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t packs : {4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
      for (const int64_t extra : {-1, 0, 1, static_cast<int>(pack)}) {
        RunBoth(dtype, {.rows = packs > 1000 ? 3 : 20, .cols = packs * pack + extra});
      }
    }
  }
}

// Backward, where few bytes are moved: from 32 packs a row to 1024, 2 packs a thread or 4, where
// the blocks for columns are narrow, alone and in clusters, and rows enough for every turn of
// theirs. In place, and in great number, rows are other kernels' all the same.
TEST_P(CudaNormTest, BackwardOfFewBytes) {
  for (const DType dtype : kFloatingTypes) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t packs : {31, 32, 33, 64, 96, 192, 320, 512, 513, 1024, 1025}) {
      for (const int64_t rows : {1, 40}) {
        for (const bool from_output : {false, true}) {
          RunBoth(dtype, {.rows = rows,
                          .cols = packs * pack,
                          .x_pad = from_output ? 0 : pack,
                          .from_output = from_output,
                          .weight_spread = 0.1});
        }
      }
      RunBoth(dtype, {.rows = 40, .cols = packs * pack, .in_place = true});
      RunBoth(dtype, {.rows = 40, .cols = packs * pack, .residual = true});
    }
    RunBoth(dtype, {.rows = 1100, .cols = 96 * pack});
    RunBoth(dtype, {.rows = 4100, .cols = 32 * pack});
  }
  RunBoth(DType::kFloat32, {.rows = 700, .cols = 768, .mean = 1e4, .spread = 1e-3});
}

// Backward by the lean kernel, in place, so that the one for few bytes does not serve it: teams of
// a warp and more, 2 to 4 packs a thread, one team and several, up to 2048 packs; rows that start
// at multiples of 128 bytes and others, too few for all teams, and enough to fill the rings of
// stages.
TEST_P(CudaNormTest, BackwardOfWholePacksInPlace) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t packs : {31,  32,  64,  65,  96,   127,  128,  129,  320,  511,
                                512, 513, 640, 896, 1024, 1025, 1536, 1537, 2048, 2049}) {
      RunBoth(dtype, {.rows = 3, .cols = packs * pack, .in_place = true});
      RunBoth(dtype, {.rows = 150, .cols = packs * pack, .x_pad = pack, .in_place = true});
    }
    for (const int64_t packs : {136, 1032, 2056}) {
      RunBoth(dtype, {.rows = 150, .cols = packs * pack, .residual = true, .in_place = true});
    }
    RunBoth(dtype, {.rows = 9000, .cols = 64 * pack, .in_place = true});
    RunBoth(dtype, {.rows = 1500, .cols = 520 * pack, .in_place = true});
    RunBoth(dtype, {.rows = 1200, .cols = 1032 * pack, .in_place = true});
    for (int wanted = 1; wanted <= kAll; ++wanted) {
      for (const int64_t packs : {136, 1032}) {
        const bool weight = wanted % 2 == 1;
        RunBoth(dtype, {.rows = 200,
                        .cols = packs * pack,
                        .weight = weight,
                        .in_place = true,
                        .wanted = wanted});
      }
    }
    RunBoth(dtype, {.rows = 20, .cols = 128 * pack, .weight_offset = 1, .in_place = true});
    RunBoth(dtype, {.rows = 20, .cols = 128 * pack, .mixed = true, .in_place = true});
  }
  for (const int64_t cols : {768, 5120}) {
    RunBoth(DType::kFloat32,
            {.rows = 700, .cols = cols, .mean = 1e4, .spread = 1e-3, .in_place = true});
  }
}

// Rows of whole packs by the block, of 2, 4 and 8 packs a thread, full or not, and by clusters; the
// residual's have 2 or 4.
TEST_P(CudaNormTest, ManyRowsOfWholePacks) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const auto& [rows, packs] : {std::pair<int64_t, int64_t>{20, 3},
                                      {70, 30},
                                      {90, 100},
                                      {200, 129},
                                      {200, 192},
                                      {150, 2048},
                                      {300, 1500},
                                      {270, 2500},
                                      {270, 2560},
                                      {140, 5120}}) {
      for (const bool residual : {false, true}) {
        RunBoth(dtype, {.rows = rows, .cols = packs * PackOf(dtype), .residual = residual});
      }
    }
  }
}

// More rows than teams, fewer than multiprocessors, one; wider than any cluster.
TEST_P(CudaNormTest, ManyRowsAndFewRows) {
  for (const Case& k : {Case{20000, 16}, Case{3000, 33}, Case{1000, 1000}, Case{133, 4097},
                        Case{9, 300001}, Case{1, 600000}, Case{8, 140000}, Case{1, 7}}) {
    RunAll(k);
  }
}

// Wider than a block, with rows enough to fill the device; so few that a cluster's blocks are
// small.
TEST_P(CudaNormTest, ManyWideRows) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const bool residual : {false, true}) {
      RunBoth(dtype, {.rows = 140, .cols = 5000 * PackOf(dtype), .residual = residual});
    }
  }
  RunBoth(DType::kFloat16, {.rows = 70, .cols = 65536});
  RunBoth(DType::kFloat16, {.rows = 16, .cols = 262144});
  RunBoth(DType::kBFloat16, {.rows = 70, .cols = 65536});
  for (const bool in_place : {false, true}) {
    RunBoth(DType::kFloat16, {.rows = 2700, .cols = 2048, .in_place = in_place});
  }
  RunBoth(DType::kFloat16, {.rows = 1100, .cols = 4097, .residual = true});
}

// By clusters of 2, 4, 8 and 16 blocks, full or not, with 4 packs a thread or 8; weights of T that
// are aligned wait in shared memory, others do not.
TEST_P(CudaNormTest, WideRowsWithStagedWeights) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    const int64_t pack = PackOf(dtype);
    for (const auto& [rows, packs] : {std::pair<int64_t, int64_t>{5, 2048},
                                      {40, 1032},
                                      {140, 4096},
                                      {140, 4104},
                                      {70, 8192},
                                      {140, 9000},
                                      {70, 16392},
                                      {34, 33000}}) {
      RunBoth(dtype, {.rows = rows, .cols = packs * pack});
    }
    const Case k{.rows = 140, .cols = 4136 * pack, .mean = 8, .spread = 0.25};
    RunBoth(dtype, k);
    for (int which = 0; which < 4; ++which) {
      Case other = k;
      if (which == 0) other.weight = false;
      if (which == 1) other.bias = false;
      if (which == 2) other.weight_offset = 1;
      if (which == 3) other.x_pad = pack, other.mixed = true;
      RunBoth(dtype, other);
    }
  }
  RunBoth(DType::kFloat32, {.rows = 70, .cols = 34000, .mean = 1e4, .spread = 1e-3});
}

TEST_P(CudaNormTest, OddOffsetsAndStrides) {
  for (const int64_t cols : {5, 64, 257, 2000, 20001, 150000}) {
    for (const auto& [x, other] : {std::pair{1, 0}, {0, 1}, {1, 1}, {3, 2}}) {
      RunAll({.rows = 9, .cols = cols, .x_pad = x, .x_offset = x, .offset = other});
    }
    RunAll({.rows = 9, .cols = cols, .x_pad = 64});
    RunAll({.rows = 9, .cols = cols, .weight_offset = 1});
  }
}

// A backward whose tensors do not all lie alike within 16 bytes, with several rows per team of a
// warp's part, of warps and of a cluster: packs follow dx, and are made of two words of the others.
TEST_P(CudaNormTest, EachTensorOfABackwardAtAnOddOffset) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{4500, 33},
                                   {2300, 128},
                                   {1200, 1001},
                                   {400, 4097},
                                   {150, 20001}}) {
    for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
      const Case k{.rows = rows, .cols = cols, .residual = true};
      for (int which = 0; which < 4; ++which) {
        Case odd = k;
        if (which == 0) odd.x_offset = 1;
        if (which == 1) odd.offset = 3, odd.x_offset = 3, odd.dx_offset = -2;
        if (which == 2) odd.dx_offset = 1;
        if (which == 3) odd.dsum_offset = 1;
        RunBoth(dtype, odd);
      }
      RunBoth(dtype, {.rows = rows, .cols = cols, .x_pad = 1});
    }
  }
}

// Columns of 4, 8 and 16 lanes, a warp up to 128 packs, a block's registers up to 2048 (float64
// 1536), clusters of 2 and more; x, weight and what is written each at an offset of its own.
TEST_P(CudaNormTest, WidthsAroundTheTiersBoundariesAtOddOffsets) {
  for (const DType dtype : kFloatingTypes) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t cols : {31, 33, 63, 65, 127, 129, 137, 255, 257, 264}) {
      RunBoth(dtype, {.rows = 37, .cols = cols, .x_offset = 1});
      RunBoth(dtype, {.rows = 37, .cols = cols, .offset = pack - 1, .weight_offset = 1});
    }
    for (const int64_t packs : {33, 64, 128, 192, 256, 1536, 2048, 4096}) {
      for (const int64_t extra : {-1, 0, static_cast<int>(pack)}) {
        const int64_t cols = packs * pack + extra, rows = packs > 1000 ? 67 : 9;
        RunBoth(dtype, {.rows = rows, .cols = cols, .x_offset = 1});
        RunBoth(dtype, {.rows = rows, .cols = cols, .offset = pack - 1, .weight_offset = 1});
      }
    }
  }
}

// A backward over wide rows (primitive/cuda/norm_wide_policy.h): from 256 packs a row and 16 rows;
// as many packs as a block has workers for (864; 1728 in float32), and as 2, 3, 8 and 16 blocks
// have, where a block's packs are whole lines; rows fewer and more than units, of which some begin
// with other elements of a pack than others.
TEST_P(CudaNormTest, WideRowsOfABackward) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const int64_t pack = PackOf(dtype), full = dtype == DType::kFloat32 ? 1728 : 864;
    for (const int64_t rows : {15, 16, 150}) {
      for (const int64_t packs : {int64_t{256}, full, 2 * full}) {
        for (const int64_t extra : {-1, 0, 1}) {
          RunBoth(dtype, {.rows = rows, .cols = packs * pack + extra, .x_offset = 1});
        }
      }
    }
    for (const int64_t slices : {3, 8, 16}) {
      for (const int64_t extra : {-8, -7, 1}) {
        RunBoth(dtype, {.rows = 17, .cols = (slices * full + extra) * pack + 1});
      }
    }
    for (const int64_t packs : {2049, 2560, 4100}) {
      RunBoth(dtype, {.rows = 90, .cols = packs * pack});
    }
    RunBoth(dtype, {.rows = 2500, .cols = 263 * pack + 1});
    RunBoth(dtype, {.rows = 200, .cols = 10007, .residual = true});
    RunBoth(dtype, {.rows = 137, .cols = 10001, .in_place = true});
    for (int which = 0; which < 4; ++which) {
      Case odd{.rows = 80, .cols = 20000 + which, .residual = true};
      if (which == 0) odd.x_offset = 1;
      if (which == 1) odd.x_pad = 3, odd.offset = 3, odd.x_offset = 3, odd.dx_offset = -2;
      if (which == 2) odd.dx_offset = 1, odd.mixed = true;
      if (which == 3) odd.dsum_offset = 1, odd.weight_offset = 1;
      RunBoth(dtype, odd);
      odd.residual = false;
      odd.from_output = true;
      odd.x_pad = 0;
      odd.weight_spread = 0.1;
      RunBoth(dtype, odd);
    }
    for (int wanted = 1; wanted <= kAll; ++wanted) {
      RunBoth(dtype, {.rows = 70, .cols = 9001, .wanted = wanted});
      RunBoth(dtype, {.rows = 70, .cols = 9001, .weight = false, .wanted = wanted});
    }
  }
  RunBoth(DType::kFloat32, {.rows = 140, .cols = 9001, .mean = 1e4, .spread = 1e-3});
}

TEST_P(CudaNormTest, AMeanFarAboveTheSpread) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t cols : {40, 768, 5000, 40000, 400000}) {
      RunBoth(dtype, {.rows = 4, .cols = cols, .mean = 1e4, .spread = 1e-3});
      RunBoth(dtype, {.rows = 4, .cols = cols, .x_offset = 1, .mean = 1e4, .spread = 1e-3});
    }
  }
}

TEST_P(CudaNormTest, EverySubsetOfGradientsAndWeights) {
  for (const int64_t cols : {48, 1000, 3000, 40000}) {
    for (int wanted = 1; wanted <= kAll; ++wanted) {
      for (const bool from_output : {false, true}) {
        RunBoth(DType::kFloat32, {.rows = 30,
                                  .cols = cols,
                                  .from_output = from_output,
                                  .weight_spread = 0.1,
                                  .wanted = wanted});
      }
    }
    for (int bits = 0; bits < 8; ++bits) {
      for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
        RunBoth(dtype, {.rows = 30,
                        .cols = cols,
                        .weight = (bits & 1) != 0,
                        .bias = (bits & 2) != 0,
                        .mixed = (bits & 4) != 0});
      }
    }
  }
}

TEST_P(CudaNormTest, ResidualsAndTheGradientOfTheSum) {
  for (const int64_t cols : {40, 1001, 9000, 70000, 400000}) {
    for (const bool in_place : {false, true}) {
      RunAll({.rows = 5, .cols = cols, .residual = true, .sum_in_residual = in_place});
      RunAll({.rows = 5,
              .cols = cols,
              .x_pad = 1,
              .offset = 1,
              .residual = true,
              .sum_in_residual = in_place});
    }
  }
}

// A graph's replay computes anew, for the two dependent kernels of a backward too.
TEST_P(CudaNormTest, ABackwardInAGraph) {
  constexpr int64_t kRows = 300, kCols = 1000;
  const NormShape shape{.rows = kRows, .cols = kCols, .eps = kEps};
  const HostArray x = numbers_.NormalArray(DType::kFloat32, kRows * kCols);
  const HostArray rstd = numbers_.NormalArray(DType::kFloat32, kRows, 0.1, 1);
  Buffer bx(*this, x), bdy(*this, x), brstd(*this, rstd);
  Buffer dx(*this, DType::kFloat32, kRows * kCols), dweight(*this, DType::kFloat32, kCols);
  const auto backward = New<RmsNormBackwardFactory>(NormSpec{});
  const Workspace workspace(*this, backward->WorkspaceBytes(*stream_, shape));
  RmsNormBackward::Args args;
  args.x = bx.data(), args.dy = bdy.data(), args.rstd = brstd.data();
  args.dx = dx.data(), args.dweight = dweight.data();
  const auto stream = backend_->NewStream(0);
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  const auto graph = backend_->NewGraph(0);
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE((*graph)->CaptureBegin(**stream).ok());
  ASSERT_TRUE(backward->Launch(**stream, shape, args, workspace.data()).ok());
  ASSERT_TRUE((*graph)->CaptureEnd().ok());
  ASSERT_TRUE((*graph)->Replay(**stream).ok());
  ASSERT_TRUE((*stream)->Synchronize().ok());
  const HostArray replayed_dx = dx.Read(), replayed_dweight = dweight.Read();
  ASSERT_TRUE(backward->Launch(*stream_, shape, args, workspace.data()).ok());
  EXPECT_EQ(replayed_dx, dx.Read());
  EXPECT_EQ(replayed_dweight, dweight.Read());
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaNormTest, testing::Values(DeviceType::kCUDA), DeviceName);

}  // namespace
}  // namespace oneflow_lite
