// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm on CUDA against float64 on the CPU: a case, and the fixture that runs it.
#pragma once

#include "primitive/layer_norm.h"
#include "primitive/rms_norm.h"
#include "primitive_testing.h"

namespace oneflow_lite {

enum Wanted { kDx = 1, kDWeight = 2, kDBias = 4, kAll = 7 };

struct Case {
  int64_t rows, cols;
  int64_t x_pad = 0;                       // x_stride - cols
  int64_t x_offset = 0;                    // elements past an aligned address, of x ...
  int64_t offset = 0;                      // ... and of the other tensors
  int64_t dx_offset = 0, dsum_offset = 0;  // more than that
  int64_t weight_offset = 0;
  int64_t bias_behind = 0;  // more than that, of the forward's bias
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
    for (const int64_t v :
         {x_pad, x_offset, offset, dx_offset, dsum_offset, weight_offset, bias_behind}) {
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
inline double At(const Doubles& v, int64_t i, double missing) { return v.empty() ? missing : v[i]; }

struct Row {
  double mean = 0, rstd = 0;
};
inline Row RowOf(const double* s, int64_t cols, double eps, bool centre) {
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

  // The relative error that is allowed; results of float16 and bfloat16 may be off by one step
  // of their type besides (Rounding).
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
    Buffer weight(*this, weight_, k.weight_offset);
    Buffer bias(*this, bias_, k.weight_offset + k.bias_behind);
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
    const Doubles xs = x_.Floats(), rs = residual_.Floats();
    s_.SetAll([&](int64_t i) { return xs[i / k.cols * k.stride() + i % k.cols] + At(rs, i, 0); });
    if (k.residual) {
      const HostArray got = k.sum_in_residual ? residual.Read() : sum.Read();
      EXPECT_EQ(got, s_) << "sum";
    }
    const Doubles s = s_.Floats(), ws = weight_.Floats(), bs = bias_.Floats();
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
    const Doubles s = s_.Floats(), y = y_.Floats(), dy = dy_.Floats(), dsum = dsum_.Floats();
    const Doubles ws = weight_.Floats(), bs = bias_.Floats(), rstd = rstd_.Floats();
    Doubles want(k.numel()), scale(k.numel());
    Doubles dw(k.cols), dw_terms(k.cols), db(k.cols), db_terms(k.cols), x_hat(k.cols), g(k.cols);
    const auto cols = static_cast<double>(k.cols);
    // The rows of 16-bit types are centred on the mean that forward returned, in float32: x_hat is
    // off by half a step of that over the spread, here in units of the bound below.
    const double lost = 0.1 + (SizeOf(spec.dtype) == 2 ? 6e-8 / 1e-5 * k.mean / k.spread : 0);
    for (int64_t r = 0; r < k.rows; ++r) {
      const double scale_of_row = k.from_output ? rstd[r] : rows_[r].rstd;
      double mean_g = 0, mean_gx = 0, terms_g = 0;
      for (int64_t c = 0; c < k.cols; ++c) {
        const int64_t i = r * k.cols + c;
        const double w = At(ws, c, 1);
        const double divisor = std::abs(w) >= kWeightClamp ? w : std::copysign(kWeightClamp, w);
        x_hat[c] = k.from_output ? (y[i] - At(bs, c, 0)) / divisor
                                 : (s[i] - rows_[r].mean) * rows_[r].rstd;
        g[c] = dy[i] * w;
        mean_g += Op::kCentre ? g[c] / cols : 0;
        terms_g += Op::kCentre ? std::abs(g[c]) / cols : 0;
        mean_gx += g[c] * x_hat[c] / cols;
        dw[c] += dy[i] * x_hat[c];
        db[c] += dy[i];
        dw_terms[c] += std::abs(dy[i]) * (std::abs(x_hat[c]) + lost);
        db_terms[c] += std::abs(dy[i]);
      }
      // A tiny spread makes rstd large, and with it the rounding of a mean whose terms cancel.
      const double size_g = k.mean > 0 ? terms_g : std::abs(mean_g);
      for (int64_t c = 0; c < k.cols; ++c) {
        const int64_t i = r * k.cols + c;
        want[i] = scale_of_row * (g[c] - mean_g - x_hat[c] * mean_gx) + At(dsum, i, 0);
        scale[i] = std::max(1.0, std::abs(At(dsum, i, 0)) +
                                     scale_of_row * (std::abs(g[c]) + size_g +
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

}  // namespace oneflow_lite
