// SPDX-License-Identifier: Apache-2.0
//
// The different elements, or slices, of a tensor. In order, equal ones are neighbours: the number
// of a run of them is how many changes there are before it.
#include <utility>

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/compact.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/index.h"
#include "functional/reduce.h"
#include "functional/scan.h"
#include "functional/searches.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/sort.h"
#include "functional/view.h"
#include "functional/view_dtype.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// For each of n neighbours but the first whether it differs from the one before it; `items` are
// elements [n] or rows [n, m].
StatusOr<Tensor> Changes(const Tensor& items) {
  const int64_t n = items.shape()[0];
  OFL_ASSIGN_OR_RETURN(Tensor later, Narrow(items, 0, 1, n - 1));
  OFL_ASSIGN_OR_RETURN(Tensor earlier, Narrow(items, 0, 0, n - 1));
  OFL_ASSIGN_OR_RETURN(Tensor changes, Ne(later, earlier));
  return items.ndim() > 1 ? Any(changes, Dims{1}) : changes;
}

struct Runs {
  Tensor first;   // the place of each run's first item
  Tensor of;      // each item's run, if it is wanted
  Tensor counts;  // each run's length, if it is wanted
};
struct Wants {
  bool inverse = true, counts = true;
};

StatusOr<Runs> FindRuns(const Tensor& items, Wants wants) {
  const int64_t n = items.shape()[0];
  const Device device = items.device();
  if (n == 0) {
    OFL_ASSIGN_OR_RETURN(Tensor none, Zeros(Shape{0}, DType::kInt64, device));
    OFL_ASSIGN_OR_RETURN(Tensor of, Zeros(Shape{0}, DType::kInt64, device));
    OFL_ASSIGN_OR_RETURN(Tensor counts, Zeros(Shape{0}, DType::kInt64, device));
    return Runs{none, of, counts};
  }
  Runs runs;
  OFL_ASSIGN_OR_RETURN(const Tensor changes, Changes(items));
  OFL_ASSIGN_OR_RETURN(const Tensor zero, Zeros(Shape{1}, DType::kInt64, device));
  if (wants.inverse) {
    OFL_ASSIGN_OR_RETURN(const Tensor later_runs, CumSum(changes, 0));
    OFL_ASSIGN_OR_RETURN(runs.of, Cat(TensorList{zero, later_runs}, 0));
  }
  // A run begins one behind each change, and ends where the next one begins.
  OFL_ASSIGN_OR_RETURN(Tensor later, Argwhere(changes));
  OFL_ASSIGN_OR_RETURN(later, Reshape(later, Shape{-1}));
  OFL_ASSIGN_OR_RETURN(later, Add(later, Scalar(1)));
  OFL_ASSIGN_OR_RETURN(runs.first, Cat(TensorList{zero, later}, 0));
  if (!wants.counts) return runs;
  OFL_ASSIGN_OR_RETURN(const Tensor end, Full(Dims{1}, Scalar(n), DType::kInt64, device));
  OFL_ASSIGN_OR_RETURN(const Tensor behind, Cat(TensorList{later, end}, 0));
  OFL_ASSIGN_OR_RETURN(runs.counts, Sub(behind, runs.first));
  return runs;
}

// The numbers of the rows [n, m] in order.
StatusOr<Tensor> OrderOfRows(const Tensor& rows) {
  static const OpExpr& op = OpBuilder("sort_rows").Input("in").Output("order").Get();
  return Call(op, {rows});
}

// The different elements of a line, in order.
StatusOr<Tensor> UniqueOf(const char* name, const Tensor& line) {
  static const OpExpr& op =
      OpBuilder("unique_values").Input("in").Output("values").Output("count").Get();
  OFL_ASSIGN_OR_RETURN(TensorList found, CallAll(op, {line}));
  OFL_ASSIGN_OR_RETURN(const int64_t count, ValueOf<int64_t>(name, found[1]));
  OFL_ASSIGN_OR_RETURN(Tensor values, Narrow(found[0], 0, 0, count));
  // Few of many do not keep the memory of all.
  return count > line.numel() / 4 ? values : Clone(values);
}

// The run of each item where it stood before it was sorted.
StatusOr<Tensor> Unsorted(const Tensor& of, const Tensor& order) {
  OFL_ASSIGN_OR_RETURN(Tensor zeros, Zeros(of.shape(), DType::kInt64, of.device()));
  return ScatterInto(zeros, 0, order, of);
}

StatusOr<TensorList> UniqueElements(const Tensor& x, bool consecutive, Wants wants) {
  OFL_ASSIGN_OR_RETURN(Tensor items, Reshape(x, Shape{-1}));
  Tensor order;
  if (!consecutive) {
    OFL_ASSIGN_OR_RETURN(TensorList pair, Sort(items));
    items = pair[0];
    order = pair[1];
  }
  OFL_ASSIGN_OR_RETURN(Runs runs, FindRuns(items, wants));
  OFL_ASSIGN_OR_RETURN(Tensor values, Gather(items, 0, runs.first));
  if (!wants.inverse) return TensorList{values, Tensor(), runs.counts};
  if (!consecutive) {
    OFL_ASSIGN_OR_RETURN(runs.of, Unsorted(runs.of, order));
  }
  OFL_ASSIGN_OR_RETURN(runs.of, Reshape(runs.of, x.shape()));
  return TensorList{values, runs.of, runs.counts};
}

// From so many elements on it is worth asking what they are one of; more than kFewNumbers.
constexpr int64_t kLongLine = 1 << 17;
constexpr int64_t kFewNumbers = 1 << 16;

// The first and the last number that elements of an integer dtype may be.
StatusOr<std::pair<int64_t, int64_t>> RangeOf(const char* name, const Tensor& line) {
  switch (line.dtype()) {
    case DType::kUInt8:
      return std::pair<int64_t, int64_t>{0, 255};
    case DType::kInt8:
      return std::pair<int64_t, int64_t>{-128, 127};
    case DType::kInt16:
      return std::pair<int64_t, int64_t>{-32768, 32767};
    default: {
      OFL_ASSIGN_OR_RETURN(TensorList ends, AMinMax(line));
      OFL_ASSIGN_OR_RETURN(const int64_t least, ValueOf<int64_t>(name, ends[0]));
      OFL_ASSIGN_OR_RETURN(const int64_t most, ValueOf<int64_t>(name, ends[1]));
      return std::pair<int64_t, int64_t>{least, most};
    }
  }
}

// The different numbers of a long line, in order, without a sort; undefined where the line is short
// or its numbers lie too far apart.
StatusOr<Tensor> FewNumbers(const char* name, const Tensor& line) {
  static const OpExpr& op =
      OpBuilder("presence").Input("in").Output("out").Attr("low").Attr("size").Get();
  if (line.numel() < kLongLine || !IsIntegral(line.dtype())) return Tensor();
  OFL_ASSIGN_OR_RETURN(const auto range, RangeOf(name, line));
  const auto [least, most] = range;
  if (static_cast<uint64_t>(most) - static_cast<uint64_t>(least) >= uint64_t{kFewNumbers}) {
    return Tensor();
  }
  const int64_t size = most - least + 1;
  OFL_ASSIGN_OR_RETURN(Tensor seen, Call(op, {line}, {least, size}));
  OFL_ASSIGN_OR_RETURN(Tensor numbers,
                       Arange(Scalar(int64_t{0}), Scalar(size), {}, DType::kInt64, line.device()));
  OFL_ASSIGN_OR_RETURN(numbers, Add(numbers, Scalar(least)));
  OFL_ASSIGN_OR_RETURN(numbers, MaskedSelect(numbers, seen));
  return Cast(numbers, line.dtype());
}

StatusOr<Tensor> UniqueValues(const Tensor& x, bool consecutive);

// The same of a long line of 16-bit floats, whose bits are few numbers. Each NaN is an element of
// its own: a line with one is sorted. Of zeros the first one counts.
StatusOr<Tensor> FewFloats(const char* name, const Tensor& line) {
  if (line.numel() < kLongLine || !IsFloating(line.dtype()) || SizeOf(line.dtype()) != 2) {
    return Tensor();
  }
  OFL_ASSIGN_OR_RETURN(Tensor bits, View(line, DType::kInt16));
  OFL_ASSIGN_OR_RETURN(bits, FewNumbers(name, bits));
  OFL_ASSIGN_OR_RETURN(const Tensor values, View(bits, line.dtype()));
  OFL_ASSIGN_OR_RETURN(Tensor is_nan, Ne(values, values));
  OFL_ASSIGN_OR_RETURN(const Tensor nans, MaskedSelect(values, is_nan));
  if (nans.numel() > 0) return Tensor();
  OFL_ASSIGN_OR_RETURN(Tensor sorted, UniqueValues(values, /*consecutive=*/false));
  OFL_ASSIGN_OR_RETURN(Tensor is_zero, Eq(values, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor zeros, MaskedSelect(values, is_zero));
  if (zeros.numel() < 2) return sorted;
  OFL_ASSIGN_OR_RETURN(is_zero, Eq(line, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor place, ArgMax(is_zero));
  OFL_ASSIGN_OR_RETURN(const Tensor first, IndexSelect(line, 0, place));
  OFL_ASSIGN_OR_RETURN(is_zero, Eq(sorted, Scalar(0.0)));
  return Where(is_zero, first, sorted);
}

// The different elements alone.
StatusOr<Tensor> UniqueValues(const Tensor& x, bool consecutive) {
  OFL_ASSIGN_OR_RETURN(Tensor items, Reshape(x.Detach(), Shape{-1}));
  if (items.numel() == 0) return Clone(items);
  if (!consecutive) {
    OFL_ASSIGN_OR_RETURN(Tensor few, FewNumbers("unique", items));
    if (few.defined()) return few;
    OFL_ASSIGN_OR_RETURN(few, FewFloats("unique", items));
    if (few.defined()) return few;
    return UniqueOf("unique", items);
  }
  OFL_ASSIGN_OR_RETURN(Tensor changes, Changes(items));
  OFL_ASSIGN_OR_RETURN(Tensor first, Narrow(items, 0, 0, 1));
  OFL_ASSIGN_OR_RETURN(Tensor later, Narrow(items, 0, 1, items.numel() - 1));
  OFL_ASSIGN_OR_RETURN(Tensor others, MaskedSelect(later, changes));
  return Cat(TensorList{first, others}, 0);
}

StatusOr<TensorList> UniqueSlices(const Tensor& x, int64_t axis, bool consecutive, Wants wants) {
  OFL_ASSIGN_OR_RETURN(Tensor rows, x.ndim() == 0 ? Unsqueeze(x, 0) : Movedim(x, {axis}, {0}));
  const int64_t n = rows.shape()[0];
  int64_t m = 1;
  for (int d = 1; d < rows.ndim(); ++d) m *= rows.shape()[d];
  OFL_ASSIGN_OR_RETURN(rows, Reshape(rows, Shape{n, m}));
  Tensor order;
  if (!consecutive) {
    OFL_ASSIGN_OR_RETURN(order, OrderOfRows(rows));
    OFL_ASSIGN_OR_RETURN(rows, IndexSelect(rows, 0, order));
  }
  OFL_ASSIGN_OR_RETURN(Runs runs, FindRuns(rows, wants));
  Tensor first = runs.first;
  if (!consecutive) {
    OFL_ASSIGN_OR_RETURN(first, Gather(order, 0, first));
  }
  if (!consecutive && wants.inverse) {
    OFL_ASSIGN_OR_RETURN(runs.of, Unsorted(runs.of, order));
  }
  OFL_ASSIGN_OR_RETURN(Tensor values, IndexSelect(x, axis, first));
  return TensorList{values, runs.of, runs.counts};
}

// The different ones, each one's number among them, and how often they occur; what is not wanted
// may be undefined.
StatusOr<TensorList> Parts(const Tensor& x, std::optional<int64_t> dim, bool consecutive,
                           Wants wants) {
  const char* name = consecutive ? "unique_consecutive" : "unique";
  if (!x.defined()) return NotDefined(name, "input");
  if (!dim) return UniqueElements(x.Detach(), consecutive, wants);
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, *dim, x));
  return UniqueSlices(x.Detach(), axis, consecutive, wants);
}

StatusOr<Tensor> ValuesAlone(const Tensor& x, std::optional<int64_t> dim, bool consecutive) {
  if (x.defined() && !dim) return UniqueValues(x, consecutive);
  OFL_ASSIGN_OR_RETURN(TensorList all,
                       Parts(x, dim, consecutive, {.inverse = false, .counts = false}));
  return std::move(all[0]);
}

StatusOr<Value> Wanted(const Tensor& x, std::optional<int64_t> dim, bool consecutive, bool inverse,
                       bool counts) {
  if (!inverse && !counts) {
    OFL_ASSIGN_OR_RETURN(Tensor values, ValuesAlone(x, dim, consecutive));
    return Value(std::move(values));
  }
  OFL_ASSIGN_OR_RETURN(TensorList all, Parts(x, dim, consecutive, {inverse, counts}));
  TensorList some{all[0]};
  if (inverse) some.push_back(all[1]);
  if (counts) some.push_back(all[2]);
  return Value(std::move(some));
}
StatusOr<Value> UniqueFunction(const Tensor& x, bool /*sorted*/, bool inverse, bool counts,
                               std::optional<int64_t> dim) {
  return Wanted(x, dim, /*consecutive=*/false, inverse, counts);
}
StatusOr<Value> ConsecutiveFunction(const Tensor& x, bool inverse, bool counts,
                                    std::optional<int64_t> dim) {
  return Wanted(x, dim, /*consecutive=*/true, inverse, counts);
}

}  // namespace

StatusOr<TensorList> UniqueWithCounts(const Tensor& x, std::optional<int64_t> dim,
                                      bool consecutive) {
  return Parts(x, dim, consecutive, {});
}

StatusOr<Tensor> Unique(const Tensor& x, std::optional<int64_t> dim) {
  return ValuesAlone(x, dim, /*consecutive=*/false);
}
StatusOr<Tensor> UniqueConsecutive(const Tensor& x, std::optional<int64_t> dim) {
  return ValuesAlone(x, dim, /*consecutive=*/true);
}

OFL_REGISTER_ADAPTER(
    "unique(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False, "
    "int? dim=None) -> Tensor[]",
    UniqueFunction, Unique, kMethod,
    "The different elements in ascending order, or with a dim the different slices along it; how "
    "many there are waits for the device.\n"
    "With return_inverse and return_counts a tuple: them, the place among them of each element, "
    "and "
    "how often each occurs. They are sorted in any case.");
OFL_REGISTER_ADAPTER(
    "unique_consecutive(Tensor input, bool return_inverse=False, bool return_counts=False, int? "
    "dim=None) -> Tensor[]",
    ConsecutiveFunction, UniqueConsecutive, kMethod,
    "The elements that differ from the one before, or with a dim such slices; otherwise as "
    "unique.");

}  // namespace oneflow_lite::functional
