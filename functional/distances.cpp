// SPDX-License-Identifier: Apache-2.0
#include "functional/distances.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/device_traits.h"
#include "functional/index.h"
#include "functional/matmul.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/statistics.h"
#include "functional/ternary.h"
#include "functional/triangle.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// Whether one op gives the distances: of floats that are not recorded, where it has a kernel.
// `dtype`: the one in which they are asked for.
bool HasDistances(const Tensor& a, const Tensor& b, double p, DType dtype) {
  static const KernelSet kernels("distances");
  const bool norm = p == 0 || p == 1 || p == 2 || std::isinf(p);
  const bool recorded = GradEnabled() && (autograd::RequiresGrad(a) || autograd::RequiresGrad(b));
  return norm && !recorded && !GlobalOf(a) && !GlobalOf(b) && a.dtype() == b.dtype() &&
         kernels.Has(a.device().type, dtype);
}
StatusOr<Tensor> CallDistances(const Tensor& a, const Tensor& b, double p, bool pairs) {
  static const OpExpr& op =
      OpBuilder("distances").Input("a").Input("b").Output("out").Attr("p").Attr("pairs").Get();
  return Call(op, {a, b}, {p, pairs});
}

// Above how many rows Euclidean distances come from a product of matrices.
struct Mode {
  absl::string_view name;
  double rows;
};
constexpr Mode kModes[] = {
    {"use_mm_for_euclid_dist_if_necessary", 25},
    {"use_mm_for_euclid_dist", -1},
    {"donot_use_mm_for_euclid_dist", std::numeric_limits<double>::infinity()},
    {"", 25},
};
StatusOr<double> RowsOfProducts(absl::string_view mode) {
  for (const Mode& m : kModes) {
    if (m.name == mode) return m.rows;
  }
  return BadValue(
      "cdist", "compute_mode", absl::StrCat("\"", mode, "\""),
      absl::StrCat("\"", kModes[0].name, "\", \"", kModes[1].name, "\", \"", kModes[2].name, "\""));
}

// Of a and b that broadcast to one batch.
StatusOr<Tensor> InOneCall(Tensor a, Tensor b, double p, const Shape& batch) {
  const int64_t m = a.shape()[a.ndim() - 2], n = b.shape()[b.ndim() - 2];
  for (Tensor* t : {&a, &b}) {
    const Dims rows = {t->shape()[t->ndim() - 2], t->shape()[t->ndim() - 1]};
    if (batch.ndim() > 0) {
      Dims whole = batch.dims();
      whole.insert(whole.end(), rows.begin(), rows.end());
      OFL_ASSIGN_OR_RETURN(*t, Expand(*t, whole));
    }
    OFL_ASSIGN_OR_RETURN(*t, Reshape(*t, {batch.numel(), rows[0], rows[1]}));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor y, CallDistances(a, b, p, false));
  Dims shape = batch.dims();
  shape.insert(shape.end(), {m, n});
  return Reshape(y, shape);
}

// The Euclidean distances, as one product of [-2 a, |a|^2, 1] and [b, 1, |b|^2], which is none to
// autocast.
StatusOr<Tensor> ByProducts(const Tensor& a, const Tensor& b) {
  const AutocastPause pause;
  const Dims last = {-1};
  Tensor sides[2];
  for (const bool left : {true, false}) {
    const Tensor& x = left ? a : b;
    OFL_ASSIGN_OR_RETURN(Tensor squares, Mul(x, x));
    OFL_ASSIGN_OR_RETURN(squares, Sum(squares, last, true));
    OFL_ASSIGN_OR_RETURN(const Tensor ones, OnesLike(squares));
    OFL_ASSIGN_OR_RETURN(const Tensor scaled, left ? Mul(x, Scalar(-2)) : StatusOr<Tensor>(x));
    OFL_ASSIGN_OR_RETURN(
        sides[!left], left ? Cat({scaled, squares, ones}, -1) : Cat({scaled, ones, squares}, -1));
  }
  OFL_ASSIGN_OR_RETURN(sides[1], Transpose(sides[1], -1, -2));
  OFL_ASSIGN_OR_RETURN(Tensor squares, Matmul(sides[0], sides[1]));
  if (!autograd::RequiresGrad(squares)) {
    OFL_ASSIGN_OR_RETURN(squares, Clamp(squares, Operand(Scalar(0))));
    return Sqrt(squares);
  }
  // The slope is 0 where the distance is.
  OFL_ASSIGN_OR_RETURN(const Tensor nothing, Le(squares, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(squares, Where(nothing, Scalar(1.0), squares));
  OFL_ASSIGN_OR_RETURN(squares, Sqrt(squares));
  return Where(nothing, Scalar(0.0), squares);
}

// The largest size along the last dim; of several that are alike each has the whole slope.
StatusOr<Tensor> Longest(const Tensor& x) {
  OFL_ASSIGN_OR_RETURN(const Tensor sizes, Abs(x));
  OFL_ASSIGN_OR_RETURN(const Tensor longest, Amax(sizes.Detach(), Dims{-1}));
  OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(longest, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor alike, Eq(sizes, column));
  OFL_ASSIGN_OR_RETURN(Tensor terms, Where(alike, sizes, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(terms, Sum(terms, Dims{-1}));
  OFL_ASSIGN_OR_RETURN(const Tensor nothing, Sub(terms, terms.Detach()));
  OFL_ASSIGN_OR_RETURN(const Tensor finite, IsFinite(longest));
  OFL_ASSIGN_OR_RETURN(const Tensor exact, Add(longest, nothing));
  OFL_ASSIGN_OR_RETURN(const Tensor infinite, Add(longest, terms));
  return Where(finite, exact, infinite);
}

StatusOr<Tensor> NormOfLast(const char* name, const Tensor& off, double p) {
  if (off.shape()[off.ndim() - 1] == 0) return Sum(off, Dims{-1});  // which has no largest one
  StatusOr<Tensor> y = VectorNorm(off, p, Dims{-1});
  return y.ok() ? y : Renamed(name, y.status());
}

}  // namespace

StatusOr<Tensor> Pdist(const Tensor& x, double p) {
  constexpr char kName[] = "pdist";
  if (!x.defined()) return NotDefined(kName, "input");
  if (x.ndim() != 2) return ShapeMismatch(kName, "input", x.shape(), "2 dims");
  if (!(p >= 0)) return BadValue(kName, "p", absl::StrCat(p), "at least 0");
  if (const DType wide = ComputeType(x.dtype()); HasDistances(x, x, p, wide)) {
    OFL_ASSIGN_OR_RETURN(Tensor rows, Cast(x, wide));
    OFL_ASSIGN_OR_RETURN(rows, Unsqueeze(rows, 0));
    OFL_ASSIGN_OR_RETURN(const Tensor y, CallDistances(rows, rows, p, true));
    return Cast(y, x.dtype());
  }
  const int64_t n = x.shape()[0];
  OFL_ASSIGN_OR_RETURN(const Tensor pairs, TriuIndices(n, n, 1, DType::kInt64, x.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor i, Select(pairs, 0, 0));
  OFL_ASSIGN_OR_RETURN(const Tensor j, Select(pairs, 0, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor a, IndexSelect(x, 0, i));
  OFL_ASSIGN_OR_RETURN(const Tensor b, IndexSelect(x, 0, j));
  OFL_ASSIGN_OR_RETURN(const Tensor off, Sub(a, b));
  return NormOfLast(kName, off, p);
}

StatusOr<Tensor> Cdist(const Tensor& x1, const Tensor& x2, double p,
                       absl::string_view compute_mode) {
  constexpr char kName[] = "cdist";
  // Squares of so many differences cost no more than a product of matrices.
  constexpr int64_t kMostSquares = 64;
  if (!x1.defined()) return NotDefined(kName, "x1");
  if (!x2.defined()) return NotDefined(kName, "x2");
  if (!(p >= 0)) return BadValue(kName, "p", absl::StrCat(p), "at least 0");
  OFL_ASSIGN_OR_RETURN(const double most, RowsOfProducts(compute_mode));
  const Shape &s1 = x1.shape(), &s2 = x2.shape();
  if (s1.ndim() < 2 || s2.ndim() < 2 || s1[s1.ndim() - 1] != s2[s2.ndim() - 1]) {
    return Error(ErrorKind::kShape, kName, "(): rows of shapes ", s1.ToString(), " and ",
                 s2.ToString(), " do not go together");
  }
  const Shape batches[] = {Shape(Dims(s1.begin(), s1.end() - 2)),
                           Shape(Dims(s2.begin(), s2.end() - 2))};
  OFL_ASSIGN_OR_RETURN(const Shape batch, CommonShape(kName, absl::MakeConstSpan(batches)));
  const DType dtype = x1.dtype(), compute = ComputeType(dtype);
  if (compute != dtype && HasDistances(x1, x2, p, compute)) {  // 16-bit floats, rounded once
    OFL_ASSIGN_OR_RETURN(const Tensor a, Cast(x1, compute));
    OFL_ASSIGN_OR_RETURN(const Tensor b, Cast(x2, compute));
    OFL_ASSIGN_OR_RETURN(const Tensor y, InOneCall(a, b, p, batch));
    return Cast(y, dtype);
  }
  const bool squares = most > 0 && (s1[s1.ndim() - 1] <= kMostSquares || std::isinf(most));
  if ((p != 2 || squares) && HasDistances(x1, x2, p, dtype)) return InOneCall(x1, x2, p, batch);
  const bool wide = x1.dtype() == DType::kFloat32 || x1.dtype() == DType::kFloat64;
  const int64_t rows = std::max(s1[s1.ndim() - 2], s2[s2.ndim() - 2]);
  if (p == 2 && x1.dtype() == x2.dtype() && wide && static_cast<double>(rows) > most) {
    return ByProducts(x1, x2);
  }
  OFL_ASSIGN_OR_RETURN(const Tensor a, Unsqueeze(x1, -2));
  OFL_ASSIGN_OR_RETURN(const Tensor b, Unsqueeze(x2, -3));
  OFL_ASSIGN_OR_RETURN(const Tensor off, Sub(a, b));
  const bool longest = std::isinf(p) && autograd::RequiresGrad(off);
  return longest && s1[s1.ndim() - 1] > 0 ? Longest(off) : NormOfLast(kName, off, p);
}

OFL_REGISTER_FUNCTION("pdist(Tensor input, float p=2.0) -> Tensor", Pdist, kFunction,
                      "The p-norms of the distances between each two rows, i < j.");
OFL_REGISTER_FUNCTION(
    "cdist(Tensor x1, Tensor x2, float p=2.0, str compute_mode='') -> Tensor", Cdist, kFunction,
    "The p-norms of the differences of all pairs of rows, [..., m, n] of [..., m, d] and "
    "[..., n, d].\n"
    "Euclidean distances of float32 and float64 come from a product of matrices, "
    "|a|^2 + |b|^2 - 2 a b, which loses the digits that rows near each other share, where m or n "
    "is "
    "above 25: that is compute_mode \"use_mm_for_euclid_dist_if_necessary\", the default. With "
    "\"use_mm_for_euclid_dist\" they always do, with \"donot_use_mm_for_euclid_dist\" never. "
    "ShapeError for rows of different lengths; ValueError for another mode, and for p below 0.");

}  // namespace oneflow_lite::functional
