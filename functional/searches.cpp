// SPDX-License-Identifier: Apache-2.0
#include "functional/searches.h"

#include <cmath>
#include <limits>

#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/device_traits.h"
#include "functional/host_value.h"
#include "functional/index.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/sort.h"
#include "functional/ternary.h"
#include "functional/view.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// What both are compared in: that which they are promoted to, and where a number does not fit it,
// one that has room for it.
DType ComparedIn(const Tensor& t, const Operand& o) {
  const DType dtype = ResultDType(t, o);
  const Scalar* number = std::get_if<Scalar>(&o);
  if (!number || number->Fits(dtype)) return dtype;
  return number->is_float() ? DType::kFloat64 : PromoteTypes(t.dtype(), DType::kInt64);
}

// The number that stands beside integers, none of which may be rounded to compare it.
const Scalar* NumberBesideIntegers(const Tensor& t, const Operand& o) {
  return IsFloating(t.dtype()) ? nullptr : std::get_if<Scalar>(&o);
}

// What divides integers as a number does that may be no integer: those below x are those below the
// next integer, those not above it not above the one before. NaN is above all.
struct Divider {
  Scalar number;
  bool right;
};
Divider AmongIntegers(const Scalar& x, bool right) {
  if (!x.is_float()) return {x, right};
  const double value = right ? std::floor(x.to<double>()) : std::ceil(x.to<double>());
  const bool beyond = x.kind() == Scalar::Kind::kLargeInt;  // which a double may round to an end
  if (value < -0x1p63 || (beyond && value < 0)) return {Scalar(int64_t{INT64_MIN}), false};
  if (value < 0x1p63) return {Scalar(static_cast<int64_t>(value)), right};
  return {Scalar(int64_t{INT64_MAX}), true};
}

StatusOr<Tensor> AsTensor(const char* name, const Operand& o, DType dtype, Device device) {
  if (const Tensor* t = std::get_if<Tensor>(&o)) {
    if (!t->defined()) return NotDefined(name, "input");
    return Cast(t->Detach(), dtype);
  }
  return Full(Shape{}, std::get<Scalar>(o), dtype, device);
}

StatusOr<Tensor> SearchFunction(const Tensor& sorted_sequence, const Operand& x, bool out_int32,
                                bool right, const std::optional<std::string>& side,
                                const Tensor& sorter) {
  if (side && *side != "right" && (*side != "left" || right)) {
    return BadValue("searchsorted", "side", absl::StrCat("\"", *side, "\""),
                    right ? "\"right\", as right is True" : "\"left\" or \"right\"");
  }
  return SearchSorted(sorted_sequence, x, right || side == "right", out_int32, sorter);
}

StatusOr<Tensor> BucketizeFunction(const Operand& x, const Tensor& boundaries, bool out_int32,
                                   bool right) {
  return Bucketize(x, boundaries, right, out_int32);
}

StatusOr<Tensor> IsInFunction(const Operand& elements, const Operand& others,
                              bool /*assume_unique*/, bool invert) {
  return IsIn(elements, others, invert);
}

// Whether elements are one of a line, at least one, or are none of it.
StatusOr<Tensor> IsOneOf(const Tensor& sought, const Tensor& among, bool invert) {
  Tensor found;
  for (int64_t i = 0; i < among.numel(); ++i) {
    OFL_ASSIGN_OR_RETURN(const Tensor one, Select(among, 0, i));
    OFL_ASSIGN_OR_RETURN(Tensor here, invert ? Ne(sought, one) : Eq(sought, one));
    if (found.defined()) {
      OFL_ASSIGN_OR_RETURN(here, invert ? LogicalAnd(found, here) : LogicalOr(found, here));
    }
    found = here;
  }
  return found;
}

}  // namespace

StatusOr<Tensor> SearchSorted(const Tensor& sorted_sequence, const Operand& x, bool right,
                              bool out_int32, const Tensor& sorter) {
  static const OpExpr& op = OpBuilder("searchsorted")
                                .Input("sorted")
                                .Input("in")
                                .Output("out")
                                .Attr("right")
                                .Attr("out_int32")
                                .Get();
  if (!sorted_sequence.defined()) return NotDefined("searchsorted", "sorted_sequence");
  if (sorter.defined()) {
    if (sorter.shape() != sorted_sequence.shape()) {
      return ShapeMismatch("searchsorted", "sorter", sorter.shape(),
                           sorted_sequence.shape().ToString());
    }
    OFL_ASSIGN_OR_RETURN(const Tensor line, Gather(sorted_sequence.Detach(), -1, sorter));
    return SearchSorted(line, x, right, out_int32);
  }
  Operand given = x;
  if (const Scalar* number = NumberBesideIntegers(sorted_sequence, x)) {
    const Divider divider = AmongIntegers(*number, right);
    given = divider.number;
    right = divider.right;
  }
  const DType dtype = ComparedIn(sorted_sequence, given);
  OFL_ASSIGN_OR_RETURN(Tensor line, Cast(sorted_sequence.Detach(), dtype));
  OFL_ASSIGN_OR_RETURN(Tensor sought, AsTensor("searchsorted", given, dtype, line.device()));
  return Call(op, {line, sought}, {right, out_int32});
}

StatusOr<Tensor> Bucketize(const Operand& x, const Tensor& boundaries, bool right, bool out_int32) {
  if (!boundaries.defined()) return NotDefined("bucketize", "boundaries");
  if (boundaries.ndim() != 1) {
    return ShapeMismatch("bucketize", "boundaries", boundaries.shape(), "1 dim");
  }
  return SearchSorted(boundaries, x, right, out_int32);
}

namespace {

constexpr int64_t kFew = 16;  // elements among which comparisons of all beat a search for each

// Whether each is compared with each, which is fewer calls than a search where there are few pairs.
bool ComparesAll(const Tensor& sought, const Tensor& among) {
  constexpr int64_t kFewPairs = 1 << 14;
  return among.numel() <= kFew && sought.numel() * among.numel() <= kFewPairs;
}

}  // namespace

StatusOr<Tensor> IsIn(const Operand& elements, const Operand& others, bool invert) {
  const Tensor* x = std::get_if<Tensor>(&elements);
  const Tensor* y = std::get_if<Tensor>(&others);
  if (!x && !y) {
    return Error(ErrorKind::kType,
                 "isin(): elements or test_elements must be a Tensor, but both "
                 "are numbers");
  }
  if (x && !x->defined()) return NotDefined("isin", "elements");
  if (y && !y->defined()) return NotDefined("isin", "test_elements");
  if (x && y && x->device() != y->device()) {
    return DeviceMismatch("isin", "elements", x->device(), "test_elements", y->device());
  }
  if (NumberBesideIntegers(x ? *x : *y, x ? others : elements)) {  // compared with its value
    StatusOr<Tensor> each = invert ? Ne(elements, others) : Eq(elements, others);
    if (x || !each.ok()) return each;
    return invert ? All(*each, {}) : Any(*each, {});
  }
  const DType dtype = x ? ComparedIn(*x, others) : ComparedIn(*y, elements);
  const Device device = (x ? x : y)->device();
  OFL_ASSIGN_OR_RETURN(Tensor sought, AsTensor("isin", elements, dtype, device));
  OFL_ASSIGN_OR_RETURN(Tensor among, AsTensor("isin", others, dtype, device));
  if (among.numel() == 0) return Full(sought.shape(), Scalar(invert), DType::kBool, device);
  OFL_ASSIGN_OR_RETURN(among, Reshape(among, Shape{-1}));
  if (ComparesAll(sought, among)) {
    OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(sought, -1));
    OFL_ASSIGN_OR_RETURN(const Tensor pairs, invert ? Ne(column, among) : Eq(column, among));
    return invert ? All(pairs, Dims{-1}) : Any(pairs, Dims{-1});
  }
  // Comparisons of all, which vectors make, beat a search for each; of few they are as many calls.
  constexpr int64_t kMany = 8192;
  const bool compares = among.numel() <= kFew && sought.numel() >= kMany;
  if (compares && CallsAreCheap(sought)) return IsOneOf(sought, among, invert);
  OFL_ASSIGN_OR_RETURN(TensorList ordered, Sort(among));
  OFL_ASSIGN_OR_RETURN(Tensor place, SearchSorted(ordered[0], sought));
  OFL_ASSIGN_OR_RETURN(place, Reshape(place, Shape{-1}));
  OFL_ASSIGN_OR_RETURN(place, Clamp(place, {}, Operand(Scalar(among.numel() - 1))));
  OFL_ASSIGN_OR_RETURN(Tensor found, Gather(ordered[0], 0, place));
  OFL_ASSIGN_OR_RETURN(found, Reshape(found, sought.shape()));
  return invert ? Ne(found, sought) : Eq(found, sought);
}

namespace {

// By the op that counts, where it is for x's device and dtype; else no tensor.
StatusOr<Tensor> CountsByOp(const Tensor& x, int64_t bins, double min, double max) {
  static const OpExpr& op = OpBuilder("bin_counts")
                                .Input("in")
                                .Input("edges")
                                .Input("weights")
                                .Output("out")
                                .Attr("bins")
                                .Attr("low")
                                .Attr("high")
                                .Get();
  static const KernelSet kernels("bin_counts");
  if (!kernels.Has(x)) return Tensor();
  OFL_ASSIGN_OR_RETURN(const Tensor none, Empty(Shape{0}, x.dtype(), x.device()));
  return Call(op, {x, none, Tensor()}, {bins, min, max});
}

// How many elements of a line are in each bin, int64.
StatusOr<Tensor> CountsOf(const Tensor& x, int64_t bins, double min, double max) {
  OFL_ASSIGN_OR_RETURN(const Tensor counted, CountsByOp(x, bins, min, max));
  if (counted.defined()) return counted;
  OFL_ASSIGN_OR_RETURN(Tensor inside, Ge(x, Scalar(min)));
  OFL_ASSIGN_OR_RETURN(Tensor below, Le(x, Scalar(max)));
  OFL_ASSIGN_OR_RETURN(inside, BitwiseAnd(inside, below));
  OFL_ASSIGN_OR_RETURN(Tensor place, Sub(x, Scalar(min)));
  OFL_ASSIGN_OR_RETURN(place, Mul(place, Scalar(static_cast<double>(bins))));
  OFL_ASSIGN_OR_RETURN(place, Div(place, Scalar(max - min)));
  OFL_ASSIGN_OR_RETURN(place, Where(inside, place, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(place, Cast(place, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(place, Clamp(place, {}, Operand(Scalar(bins - 1))));
  OFL_ASSIGN_OR_RETURN(place, Where(inside, place, Scalar(bins)));  // one more bin for the rest
  OFL_ASSIGN_OR_RETURN(Tensor ones, Ones(place.shape(), DType::kInt64, x.device()));
  OFL_ASSIGN_OR_RETURN(Tensor counts, Zeros(Shape{bins + 1}, DType::kInt64, x.device()));
  OFL_ASSIGN_OR_RETURN(counts, ScatterAdd(counts, 0, place, ones));
  return Narrow(counts, 0, 0, bins);
}

}  // namespace

StatusOr<Tensor> BinCount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  if (!x.defined()) return NotDefined("bincount", "input");
  if (x.ndim() != 1 || IsFloating(x.dtype())) {
    return Error(ErrorKind::kValue, "bincount(): takes a 1-D tensor of integers, not shape ",
                 x.shape().ToString(), " (", Name(x.dtype()), ")");
  }
  if (minlength < 0) {
    return Error(ErrorKind::kValue, "bincount(): minlength is ", minlength,
                 ", but it must not be negative");
  }
  if (weights.defined() && weights.shape() != x.shape()) {
    return ShapeMismatch("bincount", "weights", weights.shape(), x.shape().ToString());
  }
  OFL_ASSIGN_OR_RETURN(Tensor places, Cast(x, DType::kInt64));
  int64_t count = minlength;
  if (x.numel() > 0) {
    OFL_ASSIGN_OR_RETURN(TensorList ends, AMinMax(places));
    OFL_ASSIGN_OR_RETURN(const int64_t least, ValueOf<int64_t>("bincount", ends[0]));
    OFL_ASSIGN_OR_RETURN(const int64_t most, ValueOf<int64_t>("bincount", ends[1]));
    if (least < 0) return Error(ErrorKind::kValue, "bincount(): input must not be negative");
    if (most == std::numeric_limits<int64_t>::max()) {
      return Error(ErrorKind::kOutOfMemory, "bincount(): there is no room for 2^63 counts");
    }
    count = std::max(count, most + 1);
  }
  Tensor added = weights;
  if (!weights.defined()) {
    if (count > 0) {
      // Within [0, count - 0.5] an integer is its own bin.
      const double most = static_cast<double>(count) - 0.5;
      OFL_ASSIGN_OR_RETURN(const Tensor counted, CountsByOp(places, count, 0, most));
      if (counted.defined()) return counted;
    }
    OFL_ASSIGN_OR_RETURN(added, Ones(places.shape(), DType::kInt64, x.device()));
  } else if (!IsFloating(weights.dtype())) {
    OFL_ASSIGN_OR_RETURN(added, Cast(weights, DType::kFloat64));
  }
  OFL_ASSIGN_OR_RETURN(Tensor zeros, Zeros(Shape{count}, added.dtype(), x.device()));
  return ScatterAdd(zeros, 0, places, added);
}

StatusOr<Tensor> Histc(const Tensor& input, int64_t bins, double min, double max) {
  if (!input.defined()) return NotDefined("histc", "input");
  if (input.dtype() == DType::kBool) {
    return UnsupportedDType("histc", "input", input.dtype(), "an integer or a floating dtype");
  }
  if (bins < 1) {
    return Error(ErrorKind::kValue, "histc(): bins is ", bins, ", but it must be positive");
  }
  const DType wide = IsFloating(input.dtype()) ? ComputeType(input.dtype()) : DType::kFloat64;
  OFL_ASSIGN_OR_RETURN(Tensor x, Reshape(input.Detach(), Shape{-1}));
  OFL_ASSIGN_OR_RETURN(x, Cast(x, wide));
  if (min == max && x.numel() > 0 && TakesPart(x)) {
    OFL_ASSIGN_OR_RETURN(TensorList ends, AMinMax(x));
    OFL_ASSIGN_OR_RETURN(min, ValueOf<double>("histc", ends[0]));
    OFL_ASSIGN_OR_RETURN(max, ValueOf<double>("histc", ends[1]));
  }
  if (min == max) {
    min -= 1;
    max += 1;
  }
  if (!(min < max) || !std::isfinite(max - min)) {
    return Error(ErrorKind::kValue, "histc(): the range from ", min, " to ", max,
                 " must be finite and not reversed");
  }
  OFL_ASSIGN_OR_RETURN(const Tensor counts, CountsOf(x, bins, min, max));
  return To(counts, {}, input.dtype(), /*copy=*/true);
}

OFL_REGISTER_ADAPTER(
    "searchsorted(Tensor sorted_sequence, Operand input, *, bool out_int32=False, bool "
    "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    SearchFunction, SearchSorted, kFunction,
    "Where to put elements so that a sequence stays in order: int64 places, or int32.\n"
    "The sequence is [n], or [..., n] with the leading dims of input (ShapeError for others); "
    "sorter has places that bring it into order. Before elements that are equal, or with right, "
    "which side=\"right\" means too, after them. NaN counts as the largest.");
OFL_REGISTER_ADAPTER(
    "bucketize(Operand input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
    "Tensor",
    BucketizeFunction, Bucketize, kFunction,
    "The number of the bucket, between boundaries, of each element; see searchsorted.");
OFL_REGISTER_ADAPTER(
    "isin(Operand elements, Operand test_elements, *, bool assume_unique=False, bool invert=False) "
    "-> Tensor",
    IsInFunction, IsIn, kFunction,
    "Whether each element is among the others; with invert, whether it is not.");
OFL_REGISTER_FUNCTION(
    "bincount(Tensor input, Tensor? weights=None, int minlength=0) -> Tensor", BinCount, kMethod,
    "How often each number from 0 on occurs, or the sum of the weights there.\n"
    "input is 1-D, of integers that are not negative (ValueError). There are at least minlength "
    "results; otherwise the largest number says, which waits for the device.");
OFL_REGISTER_FUNCTION(
    "histc(Tensor input, int bins=100, float min=0, float max=0) -> Tensor", Histc, kMethod,
    "How many elements lie in each of so many parts of [min, max] of one size, in input's dtype.\n"
    "Where min equals max, from the smallest to the largest element, which waits for the device.");

}  // namespace oneflow_lite::functional
