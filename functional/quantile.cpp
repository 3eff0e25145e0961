// SPDX-License-Identifier: Apache-2.0
//
// quantile and nanquantile: the elements around each share by selection, then what lies between
// them.
#include <cmath>
#include <limits>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/index.h"
#include "functional/ranks.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// What both functions are told.
struct Request {
  const char* name;
  bool skip_nan;
  std::optional<int64_t> dim;
  bool keepdim;
  absl::string_view interpolation;

  bool TakesOne() const {
    return interpolation == "lower" || interpolation == "higher" || interpolation == "nearest";
  }
};

Status CheckRequest(const Request& r, const Tensor& x) {
  if (!x.defined()) return NotDefined(r.name, "input");
  if (!r.TakesOne() && r.interpolation != "linear" && r.interpolation != "midpoint") {
    return BadValue(r.name, "interpolation", absl::StrCat("\"", r.interpolation, "\""),
                    "\"linear\", \"lower\", \"higher\", \"midpoint\" or \"nearest\"");
  }
  if (!IsFloating(x.dtype())) return UnsupportedDType(r.name, "input", x.dtype(), kFloatingDTypes);
  return OkStatus();
}

// The shares as float64 on x's device; ValueError for one outside [0, 1], which waits for the
// device that a tensor of them is on.
StatusOr<Tensor> SharesOf(const Request& r, const Tensor& x, const Operand& q) {
  const auto outside = [&] { return Error(ErrorKind::kValue, r.name, "(): q must be in [0, 1]"); };
  if (const Scalar* number = std::get_if<Scalar>(&q)) {
    const double share = number->to<double>();
    if (!(share >= 0 && share <= 1)) return outside();
    return Full(Shape{}, Scalar(share), DType::kFloat64, x.device());
  }
  const Tensor& t = std::get<Tensor>(q);
  if (!t.defined()) return NotDefined(r.name, "q");
  if (t.ndim() > 1) return ShapeMismatch(r.name, "q", t.shape(), "at most 1 dim");
  OFL_ASSIGN_OR_RETURN(Tensor shares, Cast(t, DType::kFloat64));
  if (ChecksValues(shares)) {
    OFL_ASSIGN_OR_RETURN(const Tensor host, ReadBack(r.name, shares));
    for (int64_t i = 0; i < host.numel(); ++i) {
      const double share = host.data<double>()[i];
      if (!(share >= 0 && share <= 1)) return outside();
    }
  }
  return To(shares, x.device(), {});
}

// low (1 - weight) + high weight, but low where weight is 0.
StatusOr<Tensor> BetweenEndless(const Tensor& low, const Tensor& high, const Tensor& weight) {
  OFL_ASSIGN_OR_RETURN(Tensor rest, Sub(Scalar(1), weight));
  OFL_ASSIGN_OR_RETURN(Tensor sum, Mul(low, rest));
  OFL_ASSIGN_OR_RETURN(Tensor above, Mul(high, weight));
  OFL_ASSIGN_OR_RETURN(sum, Add(sum, above));
  OFL_ASSIGN_OR_RETURN(Tensor at_low, Eq(weight.Detach(), Scalar(0)));
  return Where(at_low, low, sum);
}

// Of elements and the fraction of the way from the low to the high ones. Beside an infinity:
// itself, but the element where the fraction is 0 or both are the same. The slopes are 1 - weight
// and weight everywhere.
StatusOr<Tensor> Between(const Tensor& low, const Tensor& high, const Tensor& weight) {
  OFL_ASSIGN_OR_RETURN(Tensor finite, IsFinite(low.Detach()));
  OFL_ASSIGN_OR_RETURN(Tensor high_finite, IsFinite(high.Detach()));
  OFL_ASSIGN_OR_RETURN(finite, BitwiseAnd(finite, high_finite));
  OFL_ASSIGN_OR_RETURN(Tensor start, Where(finite, low, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor end, Where(finite, high, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor back, Sub(start, end));
  OFL_ASSIGN_OR_RETURN(back, Mul(back, weight));
  OFL_ASSIGN_OR_RETURN(Tensor inside, Sub(start, back));  // -0 - 0 is -0, but -0 + 0 is not
  OFL_ASSIGN_OR_RETURN(Tensor endless, BetweenEndless(low, high, weight));
  return Where(finite, inside, endless);
}

// The places, but that of the first NaN in rows that have one, whose gradient goes there.
StatusOr<Tensor> OrFirstNan(const Tensor& x, const Tensor& has_nan, const Tensor& places) {
  OFL_ASSIGN_OR_RETURN(const Tensor is_nan, IsNan(x.Detach()));
  OFL_ASSIGN_OR_RETURN(const Tensor number, Cast(is_nan, DType::kUInt8));
  OFL_ASSIGN_OR_RETURN(const Tensor first, ArgMax(number, -1, /*keepdim=*/true));
  return Where(has_nan, first, places);
}

// [..., m] values of x [..., n] for m shares.
StatusOr<Tensor> ValuesOf(const Request& r, const Tensor& x, const Tensor& shares) {
  static const OpExpr& op = OpBuilder("quantile_places")
                                .Input("in")
                                .Input("q")
                                .Output("places")
                                .Output("numbers")
                                .Attr("interpolation")
                                .Attr("skip_nan")
                                .Get();
  OFL_ASSIGN_OR_RETURN(TensorList found, CallAll(op, {x.Detach(), shares.Detach()},
                                                 {std::string(r.interpolation), r.skip_nan}));
  Tensor places = found[0], numbers = found[1], has_nan;
  const int64_t size = x.shape()[x.ndim() - 1], m = shares.numel();
  const bool recorded = GradEnabled() && autograd::RequiresGrad(x);
  if (!r.skip_nan) {
    OFL_ASSIGN_OR_RETURN(has_nan, Lt(numbers, Scalar(size)));
    if (recorded) {
      OFL_ASSIGN_OR_RETURN(places, OrFirstNan(x, has_nan, places));
    }
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, Gather(x, -1, places));
  if (!r.TakesOne()) {
    const DType wide = ComputeType(x.dtype());
    OFL_ASSIGN_OR_RETURN(Tensor low, Narrow(y, -1, 0, m));
    OFL_ASSIGN_OR_RETURN(low, Cast(low, wide));
    OFL_ASSIGN_OR_RETURN(Tensor high, Narrow(y, -1, m, m));
    OFL_ASSIGN_OR_RETURN(high, Cast(high, wide));
    Tensor place;
    if (r.skip_nan) {
      OFL_ASSIGN_OR_RETURN(Tensor last, Clamp(numbers, Operand(Scalar(1)), {}));
      OFL_ASSIGN_OR_RETURN(last, Sub(last, Scalar(1)));
      OFL_ASSIGN_OR_RETURN(place, Mul(shares, last));
    } else {
      OFL_ASSIGN_OR_RETURN(place, Mul(shares, Scalar(size - 1)));
    }
    OFL_ASSIGN_OR_RETURN(Tensor below, Floor(place.Detach()));
    OFL_ASSIGN_OR_RETURN(Tensor weight, Sub(place, below));
    if (r.interpolation == "midpoint") {
      OFL_ASSIGN_OR_RETURN(weight, Gt(weight.Detach(), Scalar(0)));
      OFL_ASSIGN_OR_RETURN(weight, Mul(weight, Scalar(0.5)));
    }
    OFL_ASSIGN_OR_RETURN(weight, Cast(weight, wide));
    OFL_ASSIGN_OR_RETURN(y, Between(low, high, weight));
    OFL_ASSIGN_OR_RETURN(y, Cast(y, x.dtype()));
  }
  if (r.skip_nan || recorded) return y;  // NaN are in their places
  return Where(has_nan, Scalar(std::numeric_limits<double>::quiet_NaN()), y);
}

StatusOr<Tensor> QuantileOf(const Request& r, const Tensor& input, const Operand& q) {
  OFL_RETURN_IF_ERROR(CheckRequest(r, input));
  OFL_ASSIGN_OR_RETURN(Tensor shares, SharesOf(r, input, q));
  const bool several = shares.ndim() > 0, whole = !r.dim || input.ndim() == 0;
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(r.name, r.dim.value_or(0), input));
  OFL_ASSIGN_OR_RETURN(Tensor x, whole ? Reshape(input, Shape{-1}) : Movedim(input, {axis}, {-1}));
  if (x.shape()[x.ndim() - 1] == 0) {
    return Error(ErrorKind::kShape, r.name, "(): there are no elements: shape ",
                 input.shape().ToString());
  }
  OFL_ASSIGN_OR_RETURN(shares, Reshape(shares, Shape{-1}));
  OFL_ASSIGN_OR_RETURN(Tensor y, ValuesOf(r, x, shares));
  OFL_ASSIGN_OR_RETURN(y, Movedim(y, {-1}, {0}));
  if (r.keepdim && whole) {
    Shape shape(Dims(input.ndim() + 1, 1));
    shape[0] = shares.numel();
    OFL_ASSIGN_OR_RETURN(y, Reshape(y, shape));
  } else if (r.keepdim) {
    OFL_ASSIGN_OR_RETURN(y, Unsqueeze(y, axis + 1));
  }
  return several ? StatusOr<Tensor>(y) : Select(y, 0, 0);
}

}  // namespace

StatusOr<Tensor> Quantile(const Tensor& x, const Operand& q, std::optional<int64_t> dim,
                          bool keepdim, absl::string_view interpolation) {
  return QuantileOf({"quantile", false, dim, keepdim, interpolation}, x, q);
}
StatusOr<Tensor> NanQuantile(const Tensor& x, const Operand& q, std::optional<int64_t> dim,
                             bool keepdim, absl::string_view interpolation) {
  return QuantileOf({"nanquantile", true, dim, keepdim, interpolation}, x, q);
}

OFL_REGISTER_FUNCTION(
    "quantile(Tensor input, Operand q, int? dim=None, bool keepdim=False, *, str "
    "interpolation='linear') -> Tensor",
    Quantile, kMethod,
    "What a share q, in [0, 1], of the elements is below, of all or along a dim; NaN where one of "
    "them is.\n"
    "A 1-D tensor of shares is a dim in front of the result. interpolation says what stands for a "
    "place between two elements: \"linear\" the line that joins them, \"lower\", \"higher\" or "
    "\"nearest\" one of them, \"midpoint\" their mean.\n"
    "ValueError for a share outside [0, 1] and another interpolation, DTypeError for integers.");
OFL_REGISTER_FUNCTION(
    "nanquantile(Tensor input, Operand q, int? dim=None, bool keepdim=False, *, str "
    "interpolation='linear') -> Tensor",
    NanQuantile, kMethod,
    "As quantile, of the elements that are not NaN; NaN where there are none.");

}  // namespace oneflow_lite::functional
