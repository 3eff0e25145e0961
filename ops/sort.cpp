// SPDX-License-Identifier: Apache-2.0
//
// Along the last dim: elements in order, the first of them, searches among them.
#include "functional/sort.h"

#include <algorithm>
#include <cmath>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/place.h"

namespace oneflow_lite {
namespace {

// Comparisons of a sort.
Cost SortCost(const InferContext& c, absl::Span<const TensorSpec> outputs) {
  const double n = static_cast<double>(c.shape(0).numel());
  Cost cost{.bytes = n * static_cast<double>(SizeOf(c.dtype(0)))};
  for (const TensorSpec& out : outputs) {
    cost.bytes += static_cast<double>(out.shape.numel()) * static_cast<double>(SizeOf(out.dtype));
  }
  const int last = c.shape(0).ndim() - 1;
  const double cols = last < 0 ? 1 : static_cast<double>(c.shape(0)[last]);
  cost.flops = n * std::max(1.0, std::log2(std::max(1.0, cols)));
  return cost;
}
constexpr char kSortCost[] = "each tensor once; n log2(n) operations for a row of n";

void DefineSort(OpDef& op) {
  op.Input("in").Output("values").Output("indices");
  op.Attr("descending", AttrType::kBool, false);
  op.doc = "The elements in order along the last dim, and their places; equal ones keep theirs.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckHasLastDim(c));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    c.SetOutput(1, c.shape(0), DType::kInt64);
    return OkStatus();
  };
  SplitButLast(op);
  op.cost = SortCost;
  op.cost_text = kSortCost;
  TakeFromPlaces(op, /*keeps_dim=*/true);
}

void DefineUniqueValues(OpDef& op) {
  op.Input("in").Output("values").Output("count");
  op.doc =
      "The different elements of a line in order, and how many they are; the values behind them "
      "mean nothing. Of the zeros the first one counts, and each NaN is different.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    if (c.shape(0).ndim() != 1) return ShapeMismatch(c.op(), "input", c.shape(0), "1 dim");
    c.SetOutput(0, c.shape(0), c.dtype(0));
    c.SetOutput(1, Shape{1}, DType::kInt64);
    return OkStatus();
  };
  op.cost = SortCost;
  op.cost_text = kSortCost;
}

void DefineTopK(OpDef& op) {
  op.Input("in").Output("values").Output("indices");
  op.Attr("k", AttrType::kInt).Attr("largest", AttrType::kBool, true);
  op.doc = "The k largest, or smallest, elements along the last dim in order, and their places.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckHasLastDim(c));
    Shape shape = c.shape(0);
    int64_t& size = shape[shape.ndim() - 1];
    const int64_t k = c.attr<int64_t>(0);
    if (k < 0 || k > size) {
      return Error(ErrorKind::kIndex, c.op(), "(): k is ", k, ", but the last dim has size ", size);
    }
    size = k;
    c.SetOutput(0, shape, c.dtype(0));
    c.SetOutput(1, shape, DType::kInt64);
    return OkStatus();
  };
  SplitButLast(op);
  TakeFromPlaces(op, /*keeps_dim=*/true);
}

void DefineSortRows(OpDef& op) {
  op.Input("in").Output("order");
  op.doc = "The numbers of a matrix's rows in the order of their elements; equal rows keep theirs.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    if (c.shape(0).ndim() != 2) return ShapeMismatch(c.op(), "input", c.shape(0), "2 dims");
    c.SetOutput(0, Shape{c.shape(0)[0]}, DType::kInt64);
    return OkStatus();
  };
}

void DefineLongestRun(OpDef& op) {
  op.Input("sorted").Output("place");
  op.doc =
      "Where the longest run of equal elements along the last dim ends, of several the first; NaN "
      "equals NaN.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckHasLastDim(c));
    Shape shape = c.shape(0);
    if (shape[shape.ndim() - 1] == 0) return ShapeMismatch(c.op(), "sorted", shape, "some element");
    shape[shape.ndim() - 1] = 1;
    c.SetOutput(0, shape, DType::kInt64);
    return OkStatus();
  };
  SplitButLast(op);
}

Status InferSearch(InferContext& c) {
  OFL_RETURN_IF_ERROR(CheckHasLastDim(c, "sorted_sequence"));
  const Shape &sorted = c.shape(0), &x = c.shape(1);
  if (c.dtype(1) != c.dtype(0)) {
    return DTypeMismatch(c.op(), "input", c.dtype(1), Name(c.dtype(0)));
  }
  bool same = sorted.ndim() == 1 || sorted.ndim() == x.ndim();
  for (int d = 0; same && d + 1 < sorted.ndim(); ++d) same = sorted[d] == x[d];
  if (!same) {
    Shape leading = sorted;
    leading.dims().pop_back();
    return ShapeMismatch(c.op(), "input", x, leading.ToString() + " and one dim more");
  }
  c.SetOutput(0, x, c.attr<bool>(1) ? DType::kInt32 : DType::kInt64);
  return OkStatus();
}

void DefineSearchSorted(OpDef& op) {
  op.Input("sorted").Input("in").Output("out");
  op.Attr("right", AttrType::kBool, false).Attr("out_int32", AttrType::kBool, false);
  op.doc =
      "How many elements of the sorted ones along the last dim are below each element, and with "
      "right how many are not above it. NaN counts as the largest.";
  op.differentiable = false;
  op.infer = InferSearch;
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const int sorted = c.inputs[0].ndim(), ndim = c.inputs[1].ndim();
    for (int d = 0; d < ndim; ++d) {
      const bool along = sorted == 1 || d + 1 == ndim;
      out.push_back({{along ? Sbp::Broadcast() : Sbp::Split(d), Sbp::Split(d)}, {Sbp::Split(d)}});
    }
    return out;
  };
  op.sbp_text = "split on any dim, with the sorted ones where they have it too";
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec> outputs) {
    const double n = static_cast<double>(c.shape(1).numel());
    const Shape& sorted = c.shape(0);
    const double from = static_cast<double>(sorted[sorted.ndim() - 1]);
    const auto element = static_cast<double>(SizeOf(c.dtype(0)));
    return Cost{.bytes = (static_cast<double>(sorted.numel()) + n) * element +
                         n * static_cast<double>(SizeOf(outputs[0].dtype)),
                .flops = n * std::max(1.0, std::log2(std::max(1.0, from)))};
  };
  op.cost_text = "each tensor once; log2(n) operations for each element searched for among n";
}

OFL_REGISTER_OP("sort", DefineSort);
OFL_REGISTER_OP("unique_values", DefineUniqueValues);
OFL_REGISTER_OP("topk", DefineTopK);
OFL_REGISTER_OP("sort_rows", DefineSortRows);
OFL_REGISTER_OP("longest_run", DefineLongestRun);
OFL_REGISTER_OP("searchsorted", DefineSearchSorted);

}  // namespace
}  // namespace oneflow_lite
