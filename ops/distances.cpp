// SPDX-License-Identifier: Apache-2.0
//
// distances: of all pairs of rows, what cdist and pdist come to where nothing is recorded.
#include <limits>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

Status InferDistances(InferContext& c) {
  const Shape &a = c.shape(0), &b = c.shape(1);
  if (a.ndim() != 3) return ShapeMismatch(c.op(), "a", a, "3 dims");
  if (b.ndim() != 3 || b[0] != a[0] || b[2] != a[2]) {
    return ShapeMismatch(c.op(), "b", b, absl::StrCat("[", a[0], ", n, ", a[2], "]"));
  }
  const DType dtype = c.dtype(0);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    return UnsupportedDType(c.op(), "a", dtype, "float32 or float64");
  }
  if (c.dtype(1) != dtype) return DTypeMismatch(c.op(), "b", c.dtype(1), Name(dtype));
  const double p = c.attr<double>(0);
  if (p != 0 && p != 1 && p != 2 && p != std::numeric_limits<double>::infinity()) {
    return BadValue(c.op(), "p", absl::StrCat(p), "0, 1, 2 or inf");
  }
  const bool pairs = c.attr<bool>(1);
  if (pairs && (a[0] != 1 || a[1] != b[1])) {
    return ShapeMismatch(c.op(), "b", b, absl::StrCat("[1, ", a[1], ", ", a[2], "]"));
  }
  const int64_t n = b[1];
  c.SetOutput(0, pairs ? Shape{n * (n - 1) / 2} : Shape{a[0], a[1], n}, dtype);
  return OkStatus();
}

void DefineDistances(OpDef& op) {
  op.Input("a").Input("b").Output("out").Attr("p", AttrType::kFloat);
  op.Attr("pairs", AttrType::kBool, false);
  op.doc =
      "The p-norms of the differences of all pairs of rows of two batches of matrices, p 0, 1, 2 "
      "or inf; `pairs`: of each row of one matrix and those behind it, one after the other.";
  op.differentiable = false;
  op.infer = InferDistances;
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const Shape &a = c.shape(0), &b = c.shape(1);
    const double size = SizeOf(c.dtype(0)), results = static_cast<double>(a[0] * a[1] * b[1]);
    const double read = static_cast<double>(a.numel() + b.numel());
    return Cost{.bytes = (read + results) * size, .flops = 3 * results * static_cast<double>(a[2])};
  };
  op.cost_text = "each tensor once; 3 operations per difference";
}

OFL_REGISTER_OP("distances", DefineDistances);

}  // namespace
}  // namespace oneflow_lite
