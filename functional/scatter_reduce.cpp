// SPDX-License-Identifier: Apache-2.0
#include "functional/scatter_reduce.h"

#include <limits>
#include <type_traits>

#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/select.h"
#include "functional/sort.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {
namespace {

// Where the elements of `src` go: index has src's shape, axis >= 0.
struct Meeting {
  Tensor x, index, src;
  int64_t axis = 0;
};

// Whether something goes to each place.
StatusOr<Tensor> Met(const Meeting& m) {
  OFL_ASSIGN_OR_RETURN(const Tensor none, Zeros(m.x.shape().dims(), DType::kBool, m.x.device()));
  return Scatter(none, m.axis, m.index, Scalar(true));
}

// The product of what meets in each place; 0 where nothing does. Sorted by their places, those of
// one place are neighbours: log2(count) steps of twice the distance multiply each by all before it,
// and the last goes to its place.
StatusOr<Tensor> Product(const Meeting& m) {
  const int axis = static_cast<int>(m.axis);
  const int64_t size = m.x.shape()[axis], count = m.index.shape()[axis];
  OFL_ASSIGN_OR_RETURN(const TensorList sorted, Sort(m.index, m.axis));
  const Tensor& places = sorted[0];
  OFL_ASSIGN_OR_RETURN(Tensor values, Gather(m.src, m.axis, sorted[1]));
  for (int64_t distance = 1; distance < count; distance *= 2) {
    const int64_t rest = count - distance;
    OFL_ASSIGN_OR_RETURN(const Tensor later, Narrow(values, axis, distance, rest));
    OFL_ASSIGN_OR_RETURN(const Tensor earlier, Narrow(values, axis, 0, rest));
    OFL_ASSIGN_OR_RETURN(const Tensor here, Narrow(places, axis, distance, rest));
    OFL_ASSIGN_OR_RETURN(const Tensor there, Narrow(places, axis, 0, rest));
    OFL_ASSIGN_OR_RETURN(const Tensor same, Eq(here, there));
    // Times 1, not a choice after the product: its gradient is 0 * inf beside another place's inf.
    OFL_ASSIGN_OR_RETURN(const Tensor factor, Where(same, earlier, Scalar(1)));
    OFL_ASSIGN_OR_RETURN(const Tensor pairs, Mul(later, factor));
    OFL_ASSIGN_OR_RETURN(const Tensor first, Narrow(values, axis, 0, distance));
    OFL_ASSIGN_OR_RETURN(values, Cat({{first, pairs}}, axis));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor here, Narrow(places, axis, 1, count - 1));
  OFL_ASSIGN_OR_RETURN(const Tensor there, Narrow(places, axis, 0, count - 1));
  OFL_ASSIGN_OR_RETURN(const Tensor same, Eq(here, there));
  // Those before the last go to a place too many.
  OFL_ASSIGN_OR_RETURN(const Tensor last, Where(same, Scalar(size), there));
  OFL_ASSIGN_OR_RETURN(const Tensor end, Narrow(places, axis, count - 1, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor target, Cat({{last, end}}, axis));
  Dims shape = m.x.shape().dims();
  shape[axis] = size + 1;
  OFL_ASSIGN_OR_RETURN(const Tensor none, Zeros(shape, m.src.dtype(), m.src.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor found, Scatter(none, m.axis, target, values));
  return Narrow(found, axis, 0, size);
}

// Whether a is b, NaN among them.
StatusOr<Tensor> IsSame(const Tensor& a, const Tensor& b) {
  OFL_ASSIGN_OR_RETURN(const Tensor equal, Eq(a, b));
  OFL_ASSIGN_OR_RETURN(const Tensor a_nan, IsNan(a));
  OFL_ASSIGN_OR_RETURN(const Tensor b_nan, IsNan(b));
  OFL_ASSIGN_OR_RETURN(const Tensor both_nan, LogicalAnd(a_nan, b_nan));
  return LogicalOr(equal, both_nan);
}

// y, as the mean of the elements of x and src that equal it: so it has their gradients.
StatusOr<Tensor> AsMeanOfWinners(const Meeting& m, const Tensor& met, const Tensor& y,
                                 bool include_self) {
  OFL_ASSIGN_OR_RETURN(Tensor own, LogicalNot(met));
  if (include_self) {
    OFL_ASSIGN_OR_RETURN(const Tensor equal, IsSame(m.x.Detach(), y));
    OFL_ASSIGN_OR_RETURN(own, LogicalOr(own, equal));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor there, Gather(y, m.axis, m.index));
  OFL_ASSIGN_OR_RETURN(const Tensor wins, IsSame(m.src.Detach(), there));
  OFL_ASSIGN_OR_RETURN(const Tensor own_count, Cast(own, y.dtype()));
  OFL_ASSIGN_OR_RETURN(const Tensor win_count, Cast(wins, y.dtype()));
  OFL_ASSIGN_OR_RETURN(Tensor count, ScatterAdd(own_count, m.axis, m.index, win_count));
  OFL_ASSIGN_OR_RETURN(count, Maximum(count, Scalar(1.0)));
  // Over the count before they are summed: two of the largest numbers have no sum.
  OFL_ASSIGN_OR_RETURN(const Tensor kept, Where(own, m.x, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor winners, Where(wins, m.src, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor count_there, Gather(count, m.axis, m.index));
  OFL_ASSIGN_OR_RETURN(const Tensor own_share, Div(kept, count));
  OFL_ASSIGN_OR_RETURN(const Tensor share, Div(winners, count_there));
  OFL_ASSIGN_OR_RETURN(const Tensor mean, ScatterAdd(own_share, m.axis, m.index, share));
  // What the mean was rounded by.
  OFL_ASSIGN_OR_RETURN(const Tensor off, Sub(y, mean.Detach()));
  OFL_ASSIGN_OR_RETURN(const Tensor infinite, IsInf(y));
  OFL_ASSIGN_OR_RETURN(const Tensor rest, Where(infinite, Scalar(0.0), off));
  return Add(mean, rest);
}

StatusOr<Tensor> SumOrMean(const Meeting& m, bool mean, bool include_self) {
  Tensor x = m.x;
  if (!include_self) {
    OFL_ASSIGN_OR_RETURN(x, Scatter(x, m.axis, m.index, Scalar(0)));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor sum, ScatterAdd(x, m.axis, m.index, m.src));
  if (!mean) return sum;
  const Dims &places = m.index.shape().dims(), &shape = x.shape().dims();
  OFL_ASSIGN_OR_RETURN(const Tensor ones, Ones(places, DType::kInt64, x.device()));
  OFL_ASSIGN_OR_RETURN(Tensor count,
                       Full(shape, Scalar(int64_t{include_self}), DType::kInt64, x.device()));
  OFL_ASSIGN_OR_RETURN(count, ScatterAdd(count, m.axis, m.index, ones));
  OFL_ASSIGN_OR_RETURN(count, Maximum(count, Scalar(1)));
  OFL_ASSIGN_OR_RETURN(count, Cast(count, x.dtype()));
  return IsFloating(x.dtype()) ? Div(sum, count) : FloorDivide(sum, count);
}

// The product of what meets in each place, composed: it has a gradient.
StatusOr<Tensor> RecordedProduct(const Meeting& m, bool include_self) {
  OFL_ASSIGN_OR_RETURN(const Tensor met, Met(m));
  OFL_ASSIGN_OR_RETURN(Tensor found, Product(m));
  if (include_self) {
    OFL_ASSIGN_OR_RETURN(found, Mul(m.x, found));
  }
  return Where(met, found, m.x);
}

// What joins with any element to that element.
Scalar NeutralOf(absl::string_view reduce, DType dtype) {
  Scalar neutral(1);
  if (reduce == "prod") return neutral;
  VisitAll(dtype, [&]<class T>(Tag<T>) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      neutral = Scalar(static_cast<int64_t>(reduce == "amax" ? Limits::min() : Limits::max()));
    } else {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      neutral = Scalar(reduce == "amax" ? -kInfinity : kInfinity);
    }
  });
  return neutral;
}

// A product or extreme in one pass over src, without a gradient.
StatusOr<Tensor> InPlaces(const Meeting& m, absl::string_view reduce, bool include_self) {
  OFL_ASSIGN_OR_RETURN(const Tensor y, Clone(m.x));
  if (!include_self) {
    const Scalar neutral = NeutralOf(reduce, y.dtype());
    OFL_RETURN_IF_ERROR(ScatterInto(y, m.axis, m.index, neutral).status());
  }
  return ScatterJoinInto(y, m.axis, m.index, m.src, reduce);
}

StatusOr<Tensor> Reduce(const Meeting& m, absl::string_view reduce, bool include_self) {
  if (reduce == "sum" || reduce == "mean") return SumOrMean(m, reduce == "mean", include_self);
  const bool recorded =
      GradEnabled() && (autograd::RequiresGrad(m.x) || autograd::RequiresGrad(m.src));
  if (reduce == "prod" && recorded) return RecordedProduct(m, include_self);
  const Meeting plain = {m.x.Detach(), m.index, m.src.Detach(), m.axis};
  OFL_ASSIGN_OR_RETURN(const Tensor y, InPlaces(plain, reduce, include_self));
  if (!recorded) return y;
  OFL_ASSIGN_OR_RETURN(const Tensor met, Met(m));
  return AsMeanOfWinners(m, met, y, include_self);
}

Status CheckReduce(const char* name, absl::string_view reduce, bool sum) {
  if (reduce == "mean" || reduce == "prod" || reduce == "amax" || reduce == "amin") {
    return OkStatus();
  }
  if (sum && reduce == "sum") return OkStatus();
  return BadValue(name, "reduce", absl::StrCat("\"", reduce, "\""),
                  sum ? "\"sum\", \"prod\", \"mean\", \"amax\" or \"amin\""
                      : "\"prod\", \"mean\", \"amax\" or \"amin\"");
}

// src as large as the index; a larger one is cut.
StatusOr<Tensor> FitTo(const char* name, const Tensor& src, const Tensor& index) {
  Tensor y = src;
  bool fits = src.ndim() == index.ndim();
  for (int d = 0; fits && d < src.ndim(); ++d) {
    fits = src.shape()[d] >= index.shape()[d];
    if (!fits) break;
    OFL_ASSIGN_OR_RETURN(y, Narrow(y, d, 0, index.shape()[d]));
  }
  if (fits) return y;
  return ShapeMismatch(name, "src", src.shape(),
                       absl::StrCat("at least ", index.shape().ToString(), ", the index's"));
}

}  // namespace

StatusOr<Tensor> ScatterReduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                               absl::string_view reduce, bool include_self) {
  constexpr char kName[] = "scatter_reduce";
  if (!x.defined()) return NotDefined(kName, "input");
  if (!index.defined()) return NotDefined(kName, "index");
  if (!src.defined()) return NotDefined(kName, "src");
  if (src.dtype() != x.dtype()) return DTypeMismatch(kName, "src", src.dtype(), Name(x.dtype()));
  if (index.device() != x.device()) {
    return DeviceMismatch(kName, "input", x.device(), "index", index.device());
  }
  if (src.device() != x.device()) {
    return DeviceMismatch(kName, "input", x.device(), "src", src.device());
  }
  Meeting m = {x, index, src};
  OFL_ASSIGN_OR_RETURN(m.axis, WrapDim(kName, dim, x));
  OFL_RETURN_IF_ERROR(CheckReduce(kName, reduce, /*sum=*/true));
  for (Tensor* t : {&m.x, &m.index, &m.src}) {
    if (t->ndim() > 0) continue;
    OFL_ASSIGN_OR_RETURN(*t, Reshape(*t, {1}));
  }
  if (index.numel() == 0) return Clone(x);
  OFL_ASSIGN_OR_RETURN(m.src, FitTo(kName, m.src, m.index));
  const DType wide = IsFloating(x.dtype()) ? ComputeType(x.dtype()) : x.dtype();
  OFL_ASSIGN_OR_RETURN(m.x, Cast(m.x, wide));
  OFL_ASSIGN_OR_RETURN(m.src, Cast(m.src, wide));
  StatusOr<Tensor> y = Reduce(m, reduce, include_self);
  if (!y.ok()) return Renamed(kName, y.status());
  OFL_ASSIGN_OR_RETURN(*y, Cast(*y, x.dtype()));
  return x.ndim() == 0 ? Reshape(*y, {}) : y;
}

StatusOr<Tensor> IndexReduce(const Tensor& x, int64_t dim, const Tensor& index,
                             const Tensor& source, absl::string_view reduce, bool include_self) {
  constexpr char kName[] = "index_reduce";
  if (!x.defined()) return NotDefined(kName, "input");
  if (!index.defined()) return NotDefined(kName, "index");
  if (!source.defined()) return NotDefined(kName, "source");
  OFL_RETURN_IF_ERROR(CheckReduce(kName, reduce, /*sum=*/false));
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(kName, dim, x));
  if (index.ndim() > 1) return ShapeMismatch(kName, "index", index.shape(), "at most 1 dim");
  Shape expected = x.shape();
  if (x.ndim() > 0) expected[static_cast<int>(axis)] = index.numel();
  const bool one = source.ndim() == 0 && expected.numel() == 1;
  if (source.shape() != expected && !one) {
    return ShapeMismatch(kName, "source", source.shape(), expected.ToString());
  }
  OFL_ASSIGN_OR_RETURN(Tensor from, Reshape(source, expected));
  Tensor places = index;
  if (x.ndim() > 0) {
    Dims line(x.ndim(), 1);
    line[axis] = -1;
    OFL_ASSIGN_OR_RETURN(places, Reshape(index, line));
    OFL_ASSIGN_OR_RETURN(places, Expand(places, expected));
  }
  StatusOr<Tensor> y = ScatterReduce(x, axis, places, from, reduce, include_self);
  return y.ok() ? y : Renamed(kName, y.status());
}

namespace {

// self, or a copy of it: what a product keeps of it for the gradient of the source is written over.
StatusOr<Tensor> AsKept(const Tensor& self, const Tensor& source, absl::string_view reduce) {
  const bool kept = reduce == "prod" && GradEnabled() && self.defined() && source.defined() &&
                    autograd::RequiresGrad(source);
  return kept ? Clone(self) : StatusOr<Tensor>(self);
}

}  // namespace

StatusOr<Tensor> ScatterReduceInto(const Tensor& self, int64_t dim, const Tensor& index,
                                   const Tensor& src, absl::string_view reduce, bool include_self) {
  OFL_ASSIGN_OR_RETURN(const Tensor x, AsKept(self, src, reduce));
  StatusOr<Tensor> y = ScatterReduce(x, dim, index, src, reduce, include_self);
  return y.ok() ? CopyInto(self, *y) : Renamed("scatter_reduce_", y.status());
}
StatusOr<Tensor> IndexReduceInto(const Tensor& self, int64_t dim, const Tensor& index,
                                 const Tensor& source, absl::string_view reduce,
                                 bool include_self) {
  OFL_ASSIGN_OR_RETURN(const Tensor x, AsKept(self, source, reduce));
  StatusOr<Tensor> y = IndexReduce(x, dim, index, source, reduce, include_self);
  return y.ok() ? CopyInto(self, *y) : Renamed("index_reduce_", y.status());
}

OFL_REGISTER_FUNCTION(
    "scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True) -> Tensor",
    ScatterReduce, kMethod,
    "input with all elements of src that meet in a place along a dim, joined, there.\n"
    "reduce is \"sum\", \"prod\", \"mean\" (of integers rounded down), \"amax\" or \"amin\";\n"
    "index and src are as for scatter. include_self: the input's element is one of those joined;\n"
    "where nothing goes, it stays.");
OFL_REGISTER_FUNCTION(
    "scatter_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True) -> Tensor",
    ScatterReduceInto, kMethodOnly, "scatter_reduce, in place.");
OFL_REGISTER_FUNCTION(
    "index_reduce(Tensor input, int dim, Tensor index, Tensor source, str reduce, *, "
    "bool include_self=True) -> Tensor",
    IndexReduce, kMethod,
    "scatter_reduce of the slices of source along dim, by \"prod\", \"mean\", \"amax\" or "
    "\"amin\",\n"
    "at the places of a 1-D index.");
OFL_REGISTER_FUNCTION(
    "index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, "
    "bool include_self=True) -> Tensor",
    IndexReduceInto, kMethodOnly, "index_reduce, in place.");

}  // namespace oneflow_lite::functional
