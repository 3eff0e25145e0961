// SPDX-License-Identifier: Apache-2.0
//
// Rows by places along a dim: index_select, its adjoint index_sum, and index_copy_ and index_add_,
// which change their first input.
#include "functional/index_rows.h"

#include "functional/binary.h"
#include "functional/index.h"
#include "functional/select.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

constexpr int kDim = 0;  // the attribute
constexpr char kSplitOthers[] = "split on any other dim";

// The dim of input `of`, and a 1-D index.
Status CheckPlaces(const InferContext& c, int of, int index) {
  const int64_t dim = c.attr<int64_t>(kDim), ndim = c.shape(of).ndim();
  if (dim < 0 || dim >= ndim) {
    return Error(ErrorKind::kIndex, c.op(), "(): dim ", dim, " is out of range [0, ", ndim - 1,
                 "] for shape ", c.shape(of).ToString());
  }
  if (c.dtype(index) != DType::kInt64) {
    return DTypeMismatch(c.op(), "index", c.dtype(index), "int64");
  }
  if (c.shape(index).ndim() == 1) return OkStatus();
  return ShapeMismatch(c.op(), "index", c.shape(index), "1 dim");
}

Status CheckSummable(const InferContext& c, int i, const char* argument) {
  if (c.dtype(i) != DType::kBool) return OkStatus();
  return UnsupportedDType(c.op(), argument, DType::kBool, "an integer or a floating dtype");
}

// Split on each dim of input `of` but the one of the places; the index is whole.
SbpSignatures SplitOthers(const SbpContext& c, int of, int index) {
  SbpSignatures out;
  for (int d = 0; d < c.inputs[of].ndim(); ++d) {
    if (d == c.attrs.get<int64_t>(kDim)) continue;
    SbpSignature s;
    s.inputs.assign(c.inputs.size(), Sbp::Split(d));
    s.inputs[index] = Sbp::Broadcast();
    s.outputs.push_back(Sbp::Split(d));
    out.push_back(std::move(s));
  }
  return out;
}

double Elements(const Shape& shape) { return static_cast<double>(shape.numel()); }

void DefineIndexSelect(OpDef& op) {
  op.Input("in").Input("index").Output("out").Attr("dim", AttrType::kInt);
  op.Attr("skipped", AttrType::kInt, int64_t{-1}).Attr("from_end", AttrType::kBool, false);
  op.doc =
      "The slices of in along a dim at the places, negative ones from the end, if so asked; those "
      "at `skipped` pass no gradient on.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckPlaces(c, 0, 1));
    Shape out = c.shape(0);
    out[static_cast<int>(c.attr<int64_t>(kDim))] = c.shape(1)[0];
    c.SetOutput(0, out, c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out = SplitOthers(c, 0, 1);
    const int dim = static_cast<int>(c.attrs.get<int64_t>(kDim));
    out.push_back({{Sbp::Broadcast(), Sbp::Split(0)}, {Sbp::Split(dim)}});
    return out;
  };
  op.sbp_text = absl::StrCat(kSplitOthers, "; the index, and the result on the dim");
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec> outputs) {
    const double n = Elements(outputs[0].shape);
    return Cost{.bytes = 2 * n * SizeOf(c.dtype(0)) + 8 * Elements(c.shape(1)), .flops = n};
  };
  op.cost_text =
      "index is read once, each element of the result read and written; one operation "
      "for each";
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    const int64_t dim = c.attr<int64_t>(kDim);
    return c.Set(
        0, functional::IndexSum(c.grad(0), dim, c.input(1), c.spec(0).shape[static_cast<int>(dim)],
                                c.attr<int64_t>(1), c.attr<bool>(2)));
  };
}

// The gradient of index_sum: rows of what flows back, zeros for those that were skipped.
StatusOr<Tensor> RowsBack(const GradContext& c, const Tensor& index) {
  const int64_t dim = c.attr<int64_t>(kDim), skipped = c.attr<int64_t>(2);
  OFL_ASSIGN_OR_RETURN(Tensor rows,
                       functional::SelectPlaces(c.grad(0), dim, index, c.attr<bool>(3)));
  if (skipped < 0) return rows;
  OFL_ASSIGN_OR_RETURN(Tensor keep, functional::Ne(index, Scalar(skipped)));
  Dims shape(c.spec(0).shape.ndim(), 1);
  shape[dim] = -1;
  OFL_ASSIGN_OR_RETURN(keep, functional::Reshape(keep, shape));
  return functional::Where(keep, rows, Scalar(0));
}

void DefineIndexSum(OpDef& op) {
  op.Input("in").Input("index").Output("out").Attr("dim", AttrType::kInt);
  op.Attr("size", AttrType::kInt).Attr("skipped", AttrType::kInt, int64_t{-1});
  op.Attr("from_end", AttrType::kBool, false);
  op.doc =
      "The sums of the slices of in that go to each of `size` places along a dim, negative ones "
      "from the end, if so asked; those whose place is `skipped` go nowhere.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckPlaces(c, 0, 1));
    OFL_RETURN_IF_ERROR(CheckSummable(c, 0, "in"));
    const int dim = static_cast<int>(c.attr<int64_t>(kDim));
    Shape out = c.shape(0);
    if (out[dim] != c.shape(1)[0]) {
      return ShapeMismatch(c.op(), "index", c.shape(1), Shape{out[dim]}.ToString());
    }
    if (c.attr<int64_t>(1) < 0) {
      return BadValue(c.op(), "size", absl::StrCat(c.attr<int64_t>(1)), "0 or more");
    }
    out[dim] = c.attr<int64_t>(1);
    c.SetOutput(0, out, c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out = SplitOthers(c, 0, 1);
    const int dim = static_cast<int>(c.attrs.get<int64_t>(kDim));
    out.push_back({{Sbp::Split(dim), Sbp::Split(0)}, {Sbp::PartialSum()}});
    return out;
  };
  op.sbp_text = absl::StrCat(kSplitOthers, "; index and in on the dim, for partial sums");
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status { return c.Set(0, RowsBack(c, c.input(1))); };
}

template <bool kAdd>
void DefineIndexInto(OpDef& op) {
  op.Input("self", InputDef::Kind::kMutated).Input("index").Input("src").Output("out");
  op.Attr("dim", AttrType::kInt);
  if (kAdd) op.Attr("alpha", AttrType::kFloat, 1.0);
  op.doc = kAdd ? "Adds alpha times the slices of src to self at the places along a dim; negative "
                  "ones count from the end."
                : "Writes the slices of src into self at the places along a dim; negative ones "
                  "count from the end.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckPlaces(c, 0, 1));
    Shape expected = c.shape(0);
    expected[static_cast<int>(c.attr<int64_t>(kDim))] = c.shape(1)[0];
    if (c.shape(2) != expected) {
      return ShapeMismatch(c.op(), "source", c.shape(2), expected.ToString());
    }
    if (c.dtype(2) != c.dtype(0)) {
      return DTypeMismatch(c.op(), "source", c.dtype(2), Name(c.dtype(0)));
    }
    if (kAdd) OFL_RETURN_IF_ERROR(CheckSummable(c, 0, "self"));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SplitOthers(c, 0, 1); };
  op.sbp_text = kSplitOthers;
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double n = Elements(c.shape(2));
    return Cost{.bytes = (kAdd ? 3 : 2) * n * SizeOf(c.dtype(0)) + 8 * Elements(c.shape(1)),
                .flops = n};
  };
  op.cost_text = kAdd ? "index and src are read once, what they meet read and written; one "
                        "operation for each"
                      : "index and src are read once, what they meet written; one operation for "
                        "each";
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(1)}; };
  // What was overwritten has no gradient; of several slices that go to one place, each gets that
  // place's.
  op.backward = [](GradContext& c) -> Status {
    const int64_t dim = c.attr<int64_t>(kDim);
    if (c.needs(0)) {
      StatusOr<Tensor> g = c.grad(0);
      if (!kAdd) g = functional::IndexFill(*g, dim, c.input(1), Scalar(0));
      OFL_RETURN_IF_ERROR(c.Set(0, std::move(g)));
    }
    if (!c.needs(2)) return OkStatus();
    StatusOr<Tensor> rows = functional::SelectPlaces(c.grad(0), dim, c.input(1), true);
    if constexpr (kAdd) {
      const double alpha = c.attr<double>(1);
      if (rows.ok() && alpha != 1) rows = functional::Mul(*rows, Scalar(alpha));
    }
    return c.Set(2, std::move(rows));
  };
}

OFL_REGISTER_OP("index_select", DefineIndexSelect);
OFL_REGISTER_OP("index_sum", DefineIndexSum);
OFL_REGISTER_OP("index_copy_", DefineIndexInto<false>);
OFL_REGISTER_OP("index_add_", DefineIndexInto<true>);

}  // namespace
}  // namespace oneflow_lite
