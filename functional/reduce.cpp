// SPDX-License-Identifier: Apache-2.0
#include "functional/reduce.h"

#include <algorithm>

#include "functional/copy.h"
#include "functional/device_traits.h"
#include "functional/reduce_call.h"
#include "functional/select.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite::functional {

StatusOr<Dims> WrapDims(const char* name, const Tensor& x, const std::optional<Dims>& dims) {
  Dims wrapped;
  if (!dims || dims->empty()) {
    for (int d = 0; d < x.ndim(); ++d) wrapped.push_back(d);
    return wrapped;
  }
  for (int64_t d : *dims) {
    OFL_ASSIGN_OR_RETURN(const int64_t w, WrapDim(name, d, x));
    wrapped.push_back(w);
  }
  std::sort(wrapped.begin(), wrapped.end());
  if (std::adjacent_find(wrapped.begin(), wrapped.end()) != wrapped.end()) {
    return BadValue(name, "dim", ToString(*dims), "a list without repetition");
  }
  if (x.ndim() == 0) wrapped.clear();  // it may be said to have one dim
  return wrapped;
}

const OpExpr& ReduceExpr(const char* op, std::initializer_list<const char*> outputs,
                         std::initializer_list<const char*> more) {
  OpBuilder b(op);
  b.Input("in");
  for (const char* name : outputs) b.Output(name);
  b.Attr("dims").Attr("keepdim");
  for (const char* name : more) b.Attr(name);
  return b.Get();
}

namespace {

Attrs AttrsOf(const Dims& dims, bool keepdim, std::initializer_list<AttrValue> more) {
  Attrs attrs{dims, keepdim};
  for (const AttrValue& v : more) attrs.push_back(v);
  return attrs;
}

bool AreNeighbours(const Dims& dims) {
  const auto n = static_cast<int64_t>(dims.size());
  return n == 0 || dims[n - 1] - dims[0] == n - 1;
}

// Whether the op takes these dims as they are.
bool TakesDims(const Tensor& x, const Dims& dims) {
  return AreNeighbours(dims) || ReducesDimsApart(x);
}

// x with the dims at its end.
StatusOr<Tensor> BroughtToEnd(const Tensor& x, const Dims& dims, Dims* last) {
  Dims order;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) order.push_back(d);
  }
  const int kept = static_cast<int>(order.size());
  order.insert(order.end(), dims.begin(), dims.end());
  for (int d = kept; d < x.ndim(); ++d) last->push_back(d);
  return Permute(x, order);
}

StatusOr<Tensor> WithDimsBack(const Tensor& y, const Tensor& x, const Dims& dims) {
  Shape shape = x.shape();
  for (int64_t d : dims) shape[static_cast<int>(d)] = 1;
  return Reshape(y, shape);
}

}  // namespace

StatusOr<TensorList> CallReduceAll(const OpExpr& op, const Tensor& x, const Dims& dims,
                                   bool keepdim, std::initializer_list<AttrValue> more) {
  const Tensor inputs[] = {x};
  if (TakesDims(x, dims)) return CallAll(op, inputs, AttrsOf(dims, keepdim, more));
  Dims last;
  OFL_ASSIGN_OR_RETURN(const Tensor moved, BroughtToEnd(x, dims, &last));
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {moved}, AttrsOf(last, false, more)));
  for (Tensor& t : y) {
    if (keepdim) {
      OFL_ASSIGN_OR_RETURN(t, WithDimsBack(t, x, dims));
    }
  }
  return y;
}

StatusOr<Tensor> CallReduce(const OpExpr& op, const Tensor& x, const Dims& dims, bool keepdim,
                            std::initializer_list<AttrValue> more) {
  if (TakesDims(x, dims)) return Call(op, {x}, AttrsOf(dims, keepdim, more));
  Dims last;
  OFL_ASSIGN_OR_RETURN(const Tensor moved, BroughtToEnd(x, dims, &last));
  OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, {moved}, AttrsOf(last, false, more)));
  return keepdim ? WithDimsBack(y, x, dims) : y;
}

namespace {

// The dims that do not follow each other, one group of neighbours after the other, where the result
// is that of all of them at once: sums, means and products. No copy is made, and 16-bit floats stay
// float32 between the groups. `to`: the result's dtype, or none for the op's own.
StatusOr<Tensor> CallByGroups(const OpExpr& op, const Tensor& x, const Dims& dims, bool keepdim,
                              const AttrValue& to) {
  // Integers are added in int64 by the op itself.
  const AttrValue own;
  const bool floating = IsFloating(x.dtype()), narrow = floating && SizeOf(x.dtype()) == 2;
  const AttrValue between = narrow ? AttrValue(DType::kFloat32) : own;
  AttrValue last = to;
  if (!floating) last = own;
  if (floating && !std::holds_alternative<DType>(to)) last = x.dtype();
  Tensor y = x;
  for (size_t end = dims.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && dims[begin - 1] + 1 == dims[begin]) --begin;
    const Dims group(dims.begin() + begin, dims.begin() + end);
    OFL_ASSIGN_OR_RETURN(y, Call(op, {y}, {group, true, begin == 0 ? last : between}));
    end = begin;
  }
  if (keepdim) return y;
  Dims shape;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) shape.push_back(x.shape()[d]);
  }
  return Reshape(y, shape);
}

// A sum or its like in `dtype`: the op rounds floats to a narrower one, others are cast first.
// `groups`: where CallByGroups is called for dims that are no neighbours.
enum class Groups { kNowhere, kWhereDimsAreNotTaken, kEverywhere };
StatusOr<Tensor> CallWithDType(const char* name, const OpExpr& op, const Tensor& input,
                               const std::optional<Dims>& dims, bool keepdim,
                               std::optional<DType> dtype, Groups groups) {
  OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims(name, input, dims));
  const bool by_groups = groups == Groups::kEverywhere ? !AreNeighbours(wrapped)
                                                       : groups == Groups::kWhereDimsAreNotTaken &&
                                                             !TakesDims(input, wrapped);
  const auto call = [&](const Tensor& x, const AttrValue& to) {
    return by_groups ? CallByGroups(op, x, wrapped, keepdim, to)
                     : CallReduce(op, x, wrapped, keepdim, {to});
  };
  const DType to = dtype.value_or(input.dtype());
  if (to == input.dtype()) {
    OFL_ASSIGN_OR_RETURN(Tensor y, call(input, AttrValue()));
    return dtype ? Cast(y, to) : y;  // integers are added up in int64
  }
  if (IsFloating(input.dtype()) && IsFloating(to) && to != DType::kFloat64) return call(input, to);
  OFL_ASSIGN_OR_RETURN(Tensor x, Cast(input, to));
  OFL_ASSIGN_OR_RETURN(Tensor y, call(x, AttrValue()));
  return Cast(y, to);
}

// One without a dtype of its own.
StatusOr<Tensor> CallPlain(const char* name, const OpExpr& op, const Tensor& x,
                           const std::optional<Dims>& dims, bool keepdim) {
  OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims(name, x, dims));
  return CallReduce(op, x, wrapped, keepdim);
}

const OpExpr& AlongExpr(const char* op) {
  return OpBuilder(op)
      .Input("in")
      .Output("values")
      .Output("indices")
      .Attr("dim")
      .Attr("keepdim")
      .Get();
}
const OpExpr& PlaceExpr(const char* op) {
  return OpBuilder(op).Input("in").Output("indices").Attr("dim").Attr("keepdim").Get();
}

StatusOr<TensorList> CallAlong(const char* name, const OpExpr& op, const Tensor& x, int64_t dim,
                               bool keepdim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, dim, x));
  const Tensor inputs[] = {x};
  return CallAll(op, inputs, {axis, keepdim});
}

StatusOr<Tensor> CallPlace(const char* name, const OpExpr& op, const Tensor& x,
                           std::optional<int64_t> dim, bool keepdim) {
  if (dim) {
    OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, *dim, x));
    return Call(op, {x}, {axis, keepdim});
  }
  OFL_ASSIGN_OR_RETURN(Tensor flat, Reshape(x, Shape{-1}));
  OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, {flat}, {int64_t{0}, false}));
  if (!keepdim) return y;
  return Reshape(y, Shape(Dims(x.ndim(), 1)));
}

}  // namespace

StatusOr<Tensor> Sum(const Tensor& x, std::optional<Dims> dims, bool keepdim,
                     std::optional<DType> dtype) {
  static const OpExpr& op = ReduceExpr("sum", {"out"}, {"dtype"});
  return CallWithDType("sum", op, x, dims, keepdim, dtype, Groups::kWhereDimsAreNotTaken);
}

StatusOr<Tensor> Mean(const Tensor& x, std::optional<Dims> dims, bool keepdim,
                      std::optional<DType> dtype) {
  static const OpExpr& op = ReduceExpr("mean", {"out"}, {"dtype"});
  return CallWithDType("mean", op, x, dims, keepdim, dtype, Groups::kWhereDimsAreNotTaken);
}

StatusOr<Tensor> NanSum(const Tensor& x, std::optional<Dims> dims, bool keepdim,
                        std::optional<DType> dtype) {
  static const OpExpr& op = ReduceExpr("nansum", {"out"}, {"dtype"});
  if (!IsFloating(x.dtype())) return Sum(x, std::move(dims), keepdim, dtype);
  if (dtype && !IsFloating(*dtype)) {  // as sum casts the elements, of which NaN is none
    OFL_ASSIGN_OR_RETURN(const Tensor nan, IsNan(x));
    OFL_ASSIGN_OR_RETURN(const Tensor numbers, Where(nan, Scalar(0), x));
    return Sum(numbers, std::move(dims), keepdim, dtype);
  }
  return CallWithDType("nansum", op, x, dims, keepdim, dtype, Groups::kNowhere);
}

StatusOr<Tensor> NanMean(const Tensor& x, std::optional<Dims> dims, bool keepdim,
                         std::optional<DType> dtype) {
  static const OpExpr& op = ReduceExpr("nanmean", {"out"}, {"dtype"});
  const DType result = dtype.value_or(x.dtype());
  if (!IsFloating(result)) {
    return Error(ErrorKind::kDType, "nanmean(): the dtype must be a float, not ", Name(result));
  }
  return CallWithDType("nanmean", op, x, dims, keepdim, dtype, Groups::kNowhere);
}

StatusOr<Tensor> Prod(const Tensor& x, std::optional<Dims> dims, bool keepdim,
                      std::optional<DType> dtype) {
  static const OpExpr& op = ReduceExpr("prod", {"out"}, {"dtype"});
  return CallWithDType("prod", op, x, dims, keepdim, dtype, Groups::kEverywhere);
}

StatusOr<Tensor> Amax(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  static const OpExpr& op = ReduceExpr("amax");
  return CallPlain("amax", op, x, dims, keepdim);
}

StatusOr<Tensor> Amin(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  static const OpExpr& op = ReduceExpr("amin");
  return CallPlain("amin", op, x, dims, keepdim);
}

StatusOr<TensorList> AMinMax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  static const OpExpr& op = ReduceExpr("aminmax", {"min", "max"});
  std::optional<Dims> given;
  if (dim) given = Dims{*dim};
  OFL_ASSIGN_OR_RETURN(const Dims dims, WrapDims("aminmax", x, given));
  return CallReduceAll(op, x, dims, keepdim);
}

StatusOr<Tensor> Max(const Tensor& x) { return Amax(x); }
StatusOr<Tensor> Min(const Tensor& x) { return Amin(x); }

StatusOr<TensorList> Max(const Tensor& x, int64_t dim, bool keepdim) {
  static const OpExpr& op = AlongExpr("max");
  return CallAlong("max", op, x, dim, keepdim);
}

StatusOr<TensorList> Min(const Tensor& x, int64_t dim, bool keepdim) {
  static const OpExpr& op = AlongExpr("min");
  return CallAlong("min", op, x, dim, keepdim);
}

StatusOr<Tensor> ArgMax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  static const OpExpr& op = PlaceExpr("argmax");
  return CallPlace("argmax", op, x, dim, keepdim);
}

StatusOr<Tensor> ArgMin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  static const OpExpr& op = PlaceExpr("argmin");
  return CallPlace("argmin", op, x, dim, keepdim);
}

namespace {

// A list of no dims reduces none: each element's own truth, in memory of its own. Of uint8, which
// PyTorch took for truths before it had bool, the result is uint8.
StatusOr<Tensor> CallTruth(const char* name, const OpExpr& op, const Tensor& x,
                           const std::optional<Dims>& dims, bool keepdim) {
  const bool each = dims && dims->empty();
  if (each && x.dtype() == DType::kBool) return Clone(x);
  OFL_ASSIGN_OR_RETURN(const Tensor truth,
                       each ? Cast(x, DType::kBool) : CallPlain(name, op, x, dims, keepdim));
  return x.dtype() == DType::kUInt8 ? Cast(truth, DType::kUInt8) : truth;
}

}  // namespace

StatusOr<Tensor> Any(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  static const OpExpr& op = ReduceExpr("any");
  return CallTruth("any", op, x, dims, keepdim);
}

StatusOr<Tensor> All(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  static const OpExpr& op = ReduceExpr("all");
  return CallTruth("all", op, x, dims, keepdim);
}

StatusOr<Tensor> CountNonzero(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  static const OpExpr& op = ReduceExpr("count_nonzero");
  return CallPlain("count_nonzero", op, x, dims, keepdim);
}

namespace {

template <class T>
StatusOr<Value> Boxed(StatusOr<T> y) {
  if (!y.ok()) return y.status();
  return Value(*std::move(y));
}
StatusOr<Value> MaxFunction(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (!dim) return Boxed(Amax(x, {}, keepdim));
  return Boxed(Max(x, *dim, keepdim));
}
StatusOr<Value> MinFunction(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (!dim) return Boxed(Amin(x, {}, keepdim));
  return Boxed(Min(x, *dim, keepdim));
}
StatusOr<Tensor> CountFunction(const Tensor& x, std::optional<Dims> dims) {
  return CountNonzero(x, std::move(dims));
}

}  // namespace

OFL_REGISTER_FUNCTION(
    "sum(Tensor input, int[]? dim=None, bool keepdim=False, dtype? dtype=None) -> Tensor", Sum,
    kMethod, "Sum over the dims given, or over all; bool and integers are summed in int64.");
OFL_REGISTER_FUNCTION(
    "mean(Tensor input, int[]? dim=None, bool keepdim=False, dtype? dtype=None) -> Tensor", Mean,
    kMethod, "Mean over the dims given, or over all; input must be floating.");
OFL_REGISTER_FUNCTION(
    "nansum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    NanSum, kMethod, "The sum where NaN counts as 0.");
OFL_REGISTER_FUNCTION(
    "nanmean(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    NanMean, kMethod, "The mean of what is not NaN.");
OFL_REGISTER_FUNCTION(
    "prod(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", Prod,
    kMethod,
    "The product over the dims given, or of all, 1 of nothing; bool and integers are multiplied "
    "in int64.");
OFL_REGISTER_ADAPTER(
    "max(Tensor input, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)",
    MaxFunction, Max, kMethod,
    "The largest element; with a dim, the pair (values, indices) along it.");
OFL_REGISTER_ADAPTER(
    "min(Tensor input, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)",
    MinFunction, Min, kMethod,
    "The smallest element; with a dim, the pair (values, indices) along it.");
OFL_REGISTER_FUNCTION("amax(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", Amax,
                      kMethod, "The largest elements over the dims given, or over all.");
OFL_REGISTER_FUNCTION("amin(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", Amin,
                      kMethod, "The smallest elements over the dims given, or over all.");
OFL_REGISTER_FUNCTION(
    "aminmax(Tensor input, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    AMinMax, kMethod, "The smallest and the largest element, of all or along a dim.");
OFL_REGISTER_FUNCTION("argmax(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", ArgMax,
                      kMethod, "The place of the first maximum along dim, or in the flat tensor.");
OFL_REGISTER_FUNCTION("argmin(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", ArgMin,
                      kMethod, "The place of the first minimum along dim, or in the flat tensor.");
OFL_REGISTER_FUNCTION("any(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", Any,
                      kMethod,
                      "Whether any element over the dims given, or over all, is not 0; over none,\n"
                      "dim=(), of each element. Of uint8 it is 0 or 1 in uint8.");
OFL_REGISTER_FUNCTION("all(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", All,
                      kMethod,
                      "Whether no element over the dims given, or over all, is 0; over none,\n"
                      "dim=(), of each element. Of uint8 it is 0 or 1 in uint8.");
OFL_REGISTER_ADAPTER("count_nonzero(Tensor input, int[]? dim=None) -> Tensor", CountFunction,
                     CountNonzero, kMethod,
                     "How many elements over the dims given, or of all, are not 0.");

}  // namespace oneflow_lite::functional
