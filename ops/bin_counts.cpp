// SPDX-License-Identifier: Apache-2.0
//
// bin_counts: what histc, histogram and bincount come to.
#include <cmath>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

Status InferBinCounts(InferContext& c) {
  const DType dtype = c.dtype(0);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kInt64) {
    return UnsupportedDType(c.op(), "in", dtype, "float32, float64 or int64");
  }
  if (c.dtype(1) != dtype) return DTypeMismatch(c.op(), "edges", c.dtype(1), Name(dtype));
  const int64_t bins = c.attr<int64_t>(0);
  if (bins < 1) return BadValue(c.op(), "bins", absl::StrCat(bins), "at least 1");
  const Shape& edges = c.shape(1);
  if (edges.ndim() != 1 || (edges[0] != 0 && edges[0] != bins + 1)) {
    return ShapeMismatch(c.op(), "edges", edges, absl::StrCat("[", bins + 1, "] or [0]"));
  }
  const bool weighted = c.has_input(2);
  if (weighted && c.dtype(2) != dtype) {
    return DTypeMismatch(c.op(), "weights", c.dtype(2), Name(dtype));
  }
  if (weighted && c.shape(2) != c.shape(0)) {
    return ShapeMismatch(c.op(), "weights", c.shape(2), c.shape(0).ToString());
  }
  const double low = c.attr<double>(1), high = c.attr<double>(2);
  if (!std::isfinite(low) || !std::isfinite(high)) {
    return BadValue(c.op(), std::isfinite(low) ? "high" : "low",
                    absl::StrCat(std::isfinite(low) ? high : low), "finite");
  }
  c.SetOutput(0, Shape{bins}, weighted ? dtype : DType::kInt64);
  return OkStatus();
}

void DefineBinCounts(OpDef& op) {
  op.Input("in").Input("edges").Input("weights", InputDef::Kind::kOptional).Output("out");
  op.Attr("bins", AttrType::kInt);
  op.Attr("low", AttrType::kFloat).Attr("high", AttrType::kFloat);
  op.doc =
      "How many elements are in each of `bins` parts of [low, high] of one width, or, if there are "
      "edges, between each two of them; the last one has both ends. With weights their sum.";
  op.differentiable = false;
  op.infer = InferBinCounts;
}

OFL_REGISTER_OP("bin_counts", DefineBinCounts);

}  // namespace
}  // namespace oneflow_lite
