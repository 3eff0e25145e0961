// SPDX-License-Identifier: Apache-2.0
#include "functional/numerical.h"

#include <numbers>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/matmul.h"
#include "functional/products.h"
#include "functional/reduce.h"
#include "functional/scan.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/statistics.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// The widths of the trapezoids between the places x, so that they broadcast to y's.
StatusOr<Tensor> WidthsOf(const char* name, const Tensor& x, const Tensor& y, int64_t axis) {
  const int64_t size = y.shape()[static_cast<int>(axis)];
  const bool line = x.ndim() == 1;
  const int own = line ? 0 : static_cast<int>(axis) - (y.ndim() - x.ndim());
  if (own < 0 || own >= x.ndim() || x.shape()[own] != size) {
    return ShapeMismatch(name, "x", x.shape(), absl::StrCat("[", size, "] or the shape of y"));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor later, Narrow(x, own, 1, size - 1));
  OFL_ASSIGN_OR_RETURN(const Tensor earlier, Narrow(x, own, 0, size - 1));
  OFL_ASSIGN_OR_RETURN(const Tensor widths, Sub(later, earlier));
  if (!line) return widths;
  Dims shape(y.ndim() - axis, 1);
  shape[0] = size - 1;
  return Reshape(widths, shape);
}

// Twice the area of each trapezoid along an axis.
StatusOr<Tensor> Areas(const char* name, const Tensor& y, const Tensor& x, double dx,
                       int64_t axis) {
  const int64_t size = y.shape()[static_cast<int>(axis)];
  OFL_ASSIGN_OR_RETURN(const Tensor wide, Cast(y, ComputeType(y.dtype())));
  OFL_ASSIGN_OR_RETURN(const Tensor later, Narrow(wide, axis, 1, size - 1));
  OFL_ASSIGN_OR_RETURN(const Tensor earlier, Narrow(wide, axis, 0, size - 1));
  OFL_ASSIGN_OR_RETURN(const Tensor heights, Add(later, earlier));
  if (!x.defined()) return Mul(heights, Scalar(dx));
  OFL_ASSIGN_OR_RETURN(const Tensor places, Cast(x, ComputeType(x.dtype())));
  OFL_ASSIGN_OR_RETURN(const Tensor widths, WidthsOf(name, places, y, axis));
  return Mul(heights, widths);
}

// Half of sums of such areas, in the dtype of y and x; of integers as it is.
StatusOr<Tensor> HalfOf(const Tensor& sums, const Tensor& y, const Tensor& x) {
  OFL_ASSIGN_OR_RETURN(const Tensor half, Div(sums, Scalar(2.0)));
  const DType dtype = x.defined() ? PromoteTypes(y.dtype(), x.dtype()) : y.dtype();
  return IsFloating(dtype) ? Cast(half, dtype) : half;
}

StatusOr<int64_t> AxisOf(const char* name, const Tensor& y, int64_t dim) {
  if (!y.defined()) return NotDefined(name, "y");
  if (y.ndim() == 0) return ShapeMismatch(name, "y", y.shape(), "at least 1 dim");
  return WrapDim(name, dim, y);
}

}  // namespace

StatusOr<Tensor> Trapezoid(const Tensor& y, const Tensor& x, double dx, int64_t dim) {
  constexpr char kName[] = "trapezoid";
  OFL_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(kName, y, dim));
  if (y.shape()[static_cast<int>(axis)] == 0) return Sum(y, Dims{axis}, false, y.dtype());
  // Of equal widths: all elements but half of the ends.
  if (!x.defined() && IsFloating(y.dtype())) {
    const DType wide = ComputeType(y.dtype());
    OFL_ASSIGN_OR_RETURN(const Tensor sum, Sum(y, Dims{axis}, false, wide));
    OFL_ASSIGN_OR_RETURN(Tensor first, Select(y, axis, 0));
    OFL_ASSIGN_OR_RETURN(Tensor last, Select(y, axis, -1));
    OFL_ASSIGN_OR_RETURN(first, Cast(first, wide));
    OFL_ASSIGN_OR_RETURN(last, Cast(last, wide));
    OFL_ASSIGN_OR_RETURN(Tensor ends, Add(first, last));
    OFL_ASSIGN_OR_RETURN(ends, Mul(ends, Scalar(0.5)));
    OFL_ASSIGN_OR_RETURN(Tensor area, Sub(sum, ends));
    OFL_ASSIGN_OR_RETURN(area, Mul(area, Scalar(dx)));
    return Cast(area, y.dtype());
  }
  OFL_ASSIGN_OR_RETURN(const Tensor areas, Areas(kName, y, x, dx, axis));
  OFL_ASSIGN_OR_RETURN(const Tensor sum, Sum(areas, Dims{axis}, false, areas.dtype()));
  return HalfOf(sum, y, x);
}
StatusOr<Tensor> CumulativeTrapezoid(const Tensor& y, const Tensor& x, double dx, int64_t dim) {
  constexpr char kName[] = "cumulative_trapezoid";
  OFL_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(kName, y, dim));
  if (y.shape()[static_cast<int>(axis)] == 0) return Div(y, Scalar(2.0));
  OFL_ASSIGN_OR_RETURN(const Tensor areas, Areas(kName, y, x, dx, axis));
  OFL_ASSIGN_OR_RETURN(const Tensor sums, CumSum(areas, axis));
  return HalfOf(sums, y, x);
}

namespace {

StatusOr<Tensor> CheckedWeights(const char* argument, const Tensor& w, int64_t n, DType dtype) {
  if (w.ndim() != 1 || w.numel() != n) {
    return ShapeMismatch("cov", argument, w.shape(), absl::StrCat("[", n, "]"));
  }
  if (ChecksValues(w)) {
    OFL_ASSIGN_OR_RETURN(const Tensor least, Amin(w.Detach(), Dims{0}));
    OFL_ASSIGN_OR_RETURN(const double number, ValueOf<double>("cov", least));
    if (number < 0)
      return BadValue("cov", argument, absl::StrCat("less than 0 somewhere, ", number),
                      "at least 0 everywhere");
  }
  return Cast(w, dtype);
}

// The weight of each observation, undefined where all are 1, and what the sum is divided by.
StatusOr<TensorList> Weights(const Tensor& rows, int64_t correction, const Tensor& fweights,
                             const Tensor& aweights) {
  const int64_t n = rows.shape()[1];
  const DType dtype = rows.dtype();
  Tensor w, a;
  if (fweights.defined()) {
    if (!IsIntegral(fweights.dtype()) || fweights.dtype() == DType::kBool) {
      return DTypeMismatch("cov", "fweights", fweights.dtype(), "an integer dtype");
    }
    OFL_ASSIGN_OR_RETURN(w, CheckedWeights("fweights", fweights, n, dtype));
  }
  if (aweights.defined()) {
    if (!IsFloating(aweights.dtype())) {
      return DTypeMismatch("cov", "aweights", aweights.dtype(), "a floating dtype");
    }
    OFL_ASSIGN_OR_RETURN(a, CheckedWeights("aweights", aweights, n, dtype));
    OFL_ASSIGN_OR_RETURN(w, w.defined() ? Mul(w, a) : StatusOr<Tensor>(a));
  }
  Tensor total;
  if (!w.defined()) {
    OFL_ASSIGN_OR_RETURN(total, Full({}, Scalar(static_cast<double>(n)), dtype, rows.device()));
    OFL_ASSIGN_OR_RETURN(total, Sub(total, Scalar(static_cast<double>(correction))));
  } else {
    OFL_ASSIGN_OR_RETURN(const Tensor sum, Sum(w, {}, false, dtype));
    Tensor less;
    if (a.defined() && correction != 0) {
      OFL_ASSIGN_OR_RETURN(const Tensor weighed, Mul(w, a));
      OFL_ASSIGN_OR_RETURN(const Tensor both, Sum(weighed, {}, false, dtype));
      OFL_ASSIGN_OR_RETURN(const Tensor share, Div(both, sum));
      OFL_ASSIGN_OR_RETURN(less, Mul(share, Scalar(static_cast<double>(correction))));
    } else {
      OFL_ASSIGN_OR_RETURN(less,
                           Full({}, Scalar(static_cast<double>(correction)), dtype, rows.device()));
    }
    OFL_ASSIGN_OR_RETURN(total, Sub(sum, less));
  }
  OFL_ASSIGN_OR_RETURN(total, Clamp(total, Operand(Scalar(0.0))));
  return TensorList{w, total};
}

// The covariances in the compute type, and the dtype that they are to have.
struct WideCov {
  Tensor y;
  DType dtype;
};

StatusOr<WideCov> CovOf(const Tensor& x, int64_t correction, const Tensor& fweights,
                        const Tensor& aweights) {
  constexpr char kName[] = "cov";
  if (!x.defined()) return NotDefined(kName, "input");
  if (x.ndim() > 2) return ShapeMismatch(kName, "input", x.shape(), "at most 2 dims");
  if (x.dtype() == DType::kBool) {
    return UnsupportedDType(kName, "the input", x.dtype(), "one of " + ToString(kNumericSet));
  }
  DType dtype = IsFloating(x.dtype()) ? x.dtype() : DType::kFloat32;
  if (aweights.defined() && IsFloating(aweights.dtype())) {
    dtype = PromoteTypes(dtype, aweights.dtype());
  }
  OFL_ASSIGN_OR_RETURN(Tensor rows, Cast(x, ComputeType(dtype)));
  if (x.ndim() < 2) {
    OFL_ASSIGN_OR_RETURN(rows, Reshape(rows, {1, -1}));
  }
  OFL_ASSIGN_OR_RETURN(const TensorList weights, Weights(rows, correction, fweights, aweights));
  const Tensor &w = weights[0], &total = weights[1];
  const Dims last = {1};
  Tensor mean;
  if (w.defined()) {
    OFL_ASSIGN_OR_RETURN(const Tensor weighed, Mul(rows, w));
    OFL_ASSIGN_OR_RETURN(const Tensor sum, Sum(weighed, last, true));
    OFL_ASSIGN_OR_RETURN(const Tensor all, Sum(w));
    OFL_ASSIGN_OR_RETURN(mean, Div(sum, all));
  } else {
    OFL_ASSIGN_OR_RETURN(mean, Mean(rows, last, true));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor off, Sub(rows, mean));
  OFL_ASSIGN_OR_RETURN(const Tensor weighed, w.defined() ? Mul(off, w) : StatusOr<Tensor>(off));
  OFL_ASSIGN_OR_RETURN(const Tensor turned, Transpose(off, 0, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor products, Matmul(weighed, turned));
  OFL_ASSIGN_OR_RETURN(const Tensor whole, Div(products, total));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Squeeze(whole));
  return WideCov{y, dtype};
}

}  // namespace

StatusOr<Tensor> Cov(const Tensor& x, int64_t correction, const Tensor& fweights,
                     const Tensor& aweights) {
  OFL_ASSIGN_OR_RETURN(const WideCov c, CovOf(x, correction, fweights, aweights));
  return Cast(c.y, c.dtype);
}

StatusOr<Tensor> Corrcoef(const Tensor& x) {
  StatusOr<WideCov> found = CovOf(x, 1, {}, {});
  if (!found.ok()) return Renamed("corrcoef", found.status());
  const auto& [c, dtype] = *found;
  if (c.ndim() == 0) {
    OFL_ASSIGN_OR_RETURN(const Tensor one, Div(c, c));
    return Cast(one, dtype);
  }
  OFL_ASSIGN_OR_RETURN(const Tensor variances, Diagonal(c));
  OFL_ASSIGN_OR_RETURN(const Tensor spread, Sqrt(variances));
  OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(spread, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor half, Div(c, column));
  OFL_ASSIGN_OR_RETURN(const Tensor whole, Div(half, spread));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Clamp(whole, Operand(Scalar(-1.0)), Operand(Scalar(1.0))));
  return Cast(y, dtype);
}

StatusOr<Tensor> Renorm(const Tensor& x, double p, int64_t dim, double maxnorm) {
  constexpr char kName[] = "renorm";
  if (!x.defined()) return NotDefined(kName, "input");
  if (x.ndim() < 2) return ShapeMismatch(kName, "input", x.shape(), "at least 2 dims");
  if (!(p > 0)) return BadValue(kName, "p", absl::StrCat(p), "positive");
  if (!(maxnorm >= 0)) return BadValue(kName, "maxnorm", absl::StrCat(maxnorm), "at least 0");
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(kName, dim, x));
  Dims others;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (d != axis) others.push_back(d);
  }
  const DType wide = IsFloating(x.dtype()) ? ComputeType(x.dtype()) : x.dtype();
  OFL_ASSIGN_OR_RETURN(const Tensor given, Cast(x, wide));
  const bool recorded = GradEnabled() && autograd::RequiresGrad(given);
  StatusOr<Tensor> norm = VectorNorm(recorded ? given.Detach() : given, p, others, true);
  if (!norm.ok()) return Renamed(kName, norm.status());
  OFL_ASSIGN_OR_RETURN(const Tensor above, Gt(*norm, Scalar(maxnorm)));
  if (recorded) {  // the norm of a slice that stays has no slope, which would be NaN where it is
    OFL_ASSIGN_OR_RETURN(const Tensor scaled, Where(above, given, Scalar(1.0)));
    OFL_ASSIGN_OR_RETURN(norm, VectorNorm(scaled, p, others, true));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor bounded, Add(*norm, Scalar(1e-7)));
  OFL_ASSIGN_OR_RETURN(const Tensor share, Div(Scalar(maxnorm), bounded));
  OFL_ASSIGN_OR_RETURN(const Tensor factor, Where(above, share, Scalar(1.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Mul(given, factor));
  return Cast(y, x.dtype());
}

namespace {

bool IsZero(const Scalar& s) { return s.to<double>() == 0; }

Status NotTwoDims(const char* name, const char* argument, const Tensor& t) {
  if (!t.defined()) return NotDefined(name, argument);
  return ShapeMismatch(name, argument, t.shape(), "2 dims");
}

}  // namespace

StatusOr<Tensor> Addmv(const Tensor& x, const Tensor& a, const Tensor& v, Scalar beta,
                       Scalar alpha) {
  constexpr char kName[] = "addmv";
  if (!a.defined() || a.ndim() != 2) return NotTwoDims(kName, "mat", a);
  if (!v.defined()) return NotDefined(kName, "vec");
  if (v.ndim() != 1) return ShapeMismatch(kName, "vec", v.shape(), "1 dim");
  if (!x.defined()) return NotDefined(kName, "input");
  OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(v, 1));
  StatusOr<Tensor> own = Expand(x, {a.shape()[0]});
  if (!own.ok())
    return ShapeMismatch(kName, "input", x.shape(), absl::StrCat("[", a.shape()[0], "]"));
  OFL_ASSIGN_OR_RETURN(const Tensor given, Unsqueeze(*own, 1));
  StatusOr<Tensor> y = Addmm(given, a, column, beta, alpha);
  return y.ok() ? Squeeze(*y, Dims{1}) : Renamed(kName, y.status());
}
StatusOr<Tensor> Addbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta,
                        Scalar alpha) {
  constexpr char kName[] = "addbmm";
  if (!a.defined()) return NotDefined(kName, "batch1");
  if (!b.defined()) return NotDefined(kName, "batch2");
  if (a.ndim() != 3) return ShapeMismatch(kName, "batch1", a.shape(), "3 dims");
  const Shape expected = {a.shape()[0], a.shape()[2], b.ndim() == 3 ? b.shape()[2] : 1};
  if (b.shape() != expected) {
    return ShapeMismatch(kName, "batch2", b.shape(),
                         absl::StrCat("[", expected[0], ", ", expected[1], ", any]"));
  }
  // The sum over the batch is one over a longer inner dim.
  const int64_t inner = expected[0] * expected[1];
  OFL_ASSIGN_OR_RETURN(const Tensor turned, Permute(a, {1, 0, 2}));
  OFL_ASSIGN_OR_RETURN(const Tensor rows, Reshape(turned, {a.shape()[1], inner}));
  OFL_ASSIGN_OR_RETURN(const Tensor columns, Reshape(b, {inner, expected[2]}));
  StatusOr<Tensor> y = Addmm(x, rows, columns, beta, alpha);
  return y.ok() ? y : Renamed(kName, y.status());
}
StatusOr<Tensor> Addr(const Tensor& x, const Tensor& u, const Tensor& v, Scalar beta,
                      Scalar alpha) {
  constexpr char kName[] = "addr";
  if (u.ndim() != 1 || v.ndim() != 1) return Renamed(kName, Outer(u, v).status());
  if (!x.defined()) return NotDefined(kName, "input");
  const Shape shape{u.numel(), v.numel()};
  const StatusOr<Tensor> whole = Expand(x, shape.dims());
  if (!whole.ok()) return ShapeMismatch(kName, "input", x.shape(), shape.ToString());
  const DType dtype = PromoteTypes(x.dtype(), PromoteTypes(u.dtype(), v.dtype()));
  if (dtype == DType::kBool) {
    OFL_ASSIGN_OR_RETURN(const Tensor product, Outer(u, v));
    OFL_ASSIGN_OR_RETURN(const Tensor added, Mul(*whole, Scalar(!IsZero(beta))));
    OFL_ASSIGN_OR_RETURN(const Tensor scaled, Mul(product, Scalar(!IsZero(alpha))));
    return BitwiseOr(added, scaled);
  }
  const DType wide = ComputeType(dtype);
  OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(u, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor rows, Cast(column, wide));
  OFL_ASSIGN_OR_RETURN(const Tensor cols, Cast(v, wide));
  Operand added = Scalar(0);
  if (!IsZero(beta)) {
    OFL_ASSIGN_OR_RETURN(Tensor given, Cast(*whole, wide));
    if (beta.to<double>() != 1) {
      OFL_ASSIGN_OR_RETURN(given, Mul(given, beta));
    }
    added = given;
  }
  const StatusOr<Tensor> y = AddCMul(added, rows, cols, alpha);
  if (!y.ok()) return Renamed(kName, y.status());
  return IsFloating(dtype) ? Cast(*y, dtype) : y;
}

StatusOr<Tensor> Real(const Tensor& x) {
  return x.defined() ? StatusOr<Tensor>(x) : NotDefined("real", "input");
}
StatusOr<Tensor> IsReal(const Tensor& x) {
  if (!x.defined()) return NotDefined("isreal", "input");
  return Ones(x.shape().dims(), DType::kBool, x.device());
}
StatusOr<Tensor> Angle(const Tensor& x) {
  if (!x.defined()) return NotDefined("angle", "input");
  OFL_ASSIGN_OR_RETURN(const Tensor given, IsFloating(x.dtype()) ? x : Cast(x, DType::kFloat32));
  OFL_ASSIGN_OR_RETURN(const Tensor below, Lt(given, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor none, Mul(given, Scalar(0.0)));  // NaN of NaN
  OFL_ASSIGN_OR_RETURN(const Tensor nan, IsNan(given));
  OFL_ASSIGN_OR_RETURN(const Tensor above, Where(nan, given, Scalar(0.0)));
  return Where(below, Scalar(std::numbers::pi), above);
}

namespace {

StatusOr<Tensor> TrapezoidOf(const Tensor& y, const Tensor& x, std::optional<double> dx,
                             int64_t dim) {
  return Trapezoid(y, x, dx.value_or(1), dim);
}
StatusOr<Tensor> CumulativeTrapezoidOf(const Tensor& y, const Tensor& x, std::optional<double> dx,
                                       int64_t dim) {
  return CumulativeTrapezoid(y, x, dx.value_or(1), dim);
}

}  // namespace

OFL_REGISTER_ADAPTER(
    "trapezoid(Tensor y, Tensor? x=None, *, float? dx=None, int dim=-1) -> Tensor", TrapezoidOf,
    Trapezoid, kFunction,
    "The integral of y along dim by trapezoids of width dx, or between the places x.");
OFL_REGISTER_ADAPTER(
    "cumulative_trapezoid(Tensor y, Tensor? x=None, *, float? dx=None, int dim=-1) -> Tensor",
    CumulativeTrapezoidOf, CumulativeTrapezoid, kFunction,
    "The integral up to each place but the first, by trapezoids.");
OFL_REGISTER_ALIAS("trapz", "trapezoid");
OFL_REGISTER_FUNCTION(
    "cov(Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
    "Tensor",
    Cov, kMethod,
    "The covariances of the rows of [variables, observations]: sums of products over\n"
    "n - correction. fweights, integers, count observations, aweights weigh them.");
OFL_REGISTER_FUNCTION("corrcoef(Tensor input) -> Tensor", Corrcoef, kMethod,
                      "The covariances over the standard deviations of both rows.");
OFL_REGISTER_FUNCTION("renorm(Tensor input, float p, int dim, float maxnorm) -> Tensor", Renorm,
                      kMethod,
                      "The slices along dim, those with a p-norm above maxnorm scaled down to it.");
OFL_REGISTER_FUNCTION(
    "addmv(Tensor input, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    Addmv, kMethod, "beta * input + alpha * (mat @ vec).");
OFL_REGISTER_OLDER_ORDER("addmv", "beta, input, alpha, mat, vec");
OFL_REGISTER_OLDER_ORDER("addmv", "beta, input, mat, vec");
OFL_REGISTER_OLDER_ORDER("addmv", "input, beta, alpha, mat, vec");
OFL_REGISTER_OLDER_ORDER("addmv", "input, beta, mat, vec");
OFL_REGISTER_FUNCTION(
    "addbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
    "Tensor",
    Addbmm, kMethod, "beta * input + alpha * (batch1 @ batch2).sum(0).");
OFL_REGISTER_OLDER_ORDER("addbmm", "beta, input, alpha, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("addbmm", "beta, input, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("addbmm", "input, beta, alpha, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("addbmm", "input, beta, batch1, batch2");
OFL_REGISTER_FUNCTION(
    "addr(Tensor input, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    Addr, kMethod, "beta * input + alpha * outer(vec1, vec2); of bool, `or` and `and`.");
OFL_REGISTER_OLDER_ORDER("addr", "beta, input, alpha, vec1, vec2");
OFL_REGISTER_OLDER_ORDER("addr", "beta, input, vec1, vec2");
OFL_REGISTER_OLDER_ORDER("addr", "input, beta, alpha, vec1, vec2");
OFL_REGISTER_OLDER_ORDER("addr", "input, beta, vec1, vec2");
OFL_REGISTER_FUNCTION("real(Tensor input) -> Tensor", Real, kFunction,
                      "The tensor itself: its numbers are real.");
OFL_REGISTER_FUNCTION("isreal(Tensor input) -> Tensor", IsReal, kMethod,
                      "True everywhere: all numbers are real.");
OFL_REGISTER_FUNCTION("angle(Tensor input) -> Tensor", Angle, kMethod,
                      "pi where the element is below 0, else 0; NaN where it is.");

}  // namespace oneflow_lite::functional
