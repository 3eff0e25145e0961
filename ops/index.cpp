// SPDX-License-Identifier: Apache-2.0
//
// gather, its adjoints scatter_ and scatter_add_, and their kin, which change their first input.
#include "functional/index.h"

#include "functional/copy.h"
#include "functional/creation.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

constexpr int kDim = 0, kFromEnd = 1;  // the attributes
constexpr char kSplitOthers[] = "split on any other dim that the index has in full";

// The dim, and an index that lies within the tensor in all the others.
Status CheckIndex(const InferContext& c) {
  const Shape &x = c.shape(0), &index = c.shape(1);
  const int64_t dim = c.attr<int64_t>(kDim);
  if (dim < 0 || dim >= x.ndim()) {
    return Error(ErrorKind::kIndex, c.op(), "(): dim ", dim, " is out of range [0, ", x.ndim() - 1,
                 "] for shape ", x.ToString());
  }
  if (c.dtype(1) != DType::kInt64) return DTypeMismatch(c.op(), "index", c.dtype(1), "int64");
  bool fits = index.ndim() == x.ndim();
  for (int d = 0; fits && d < x.ndim(); ++d) fits = d == dim || index[d] <= x[d];
  if (fits) return OkStatus();
  return ShapeMismatch(
      c.op(), "index", index,
      absl::StrCat("as many dims as ", x.ToString(), ", and none larger but for dim ", dim));
}

SbpSignatures SplitOthers(const SbpContext& c) {
  SbpSignatures out;
  const Shape &x = c.inputs[0], &index = c.inputs[1];
  for (int d = 0; d < x.ndim(); ++d) {
    if (d == c.attrs.get<int64_t>(kDim) || x[d] != index[d]) continue;
    SbpSignature s;
    s.inputs.assign(c.inputs.size(), Sbp::Split(d));
    s.outputs.push_back(Sbp::Split(d));
    out.push_back(std::move(s));
  }
  return out;
}

// Besides, an index split along the dim gives that part of the result.
SbpSignatures GatherSignatures(const SbpContext& c) {
  const int dim = static_cast<int>(c.attrs.get<int64_t>(kDim));
  SbpSignatures out = SplitOthers(c);
  out.push_back({{Sbp::Broadcast(), Sbp::Split(dim)}, {Sbp::Split(dim)}});
  return out;
}

// The sum of what goes to one place is rounded once.
StatusOr<Tensor> GatherGradient(const GradContext& c) {
  const Tensor& g = c.grad(0);
  OFL_ASSIGN_OR_RETURN(
      Tensor zeros, functional::Zeros(c.spec(0).shape, ComputeType(g.dtype()), c.spec(0).device));
  OFL_ASSIGN_OR_RETURN(Tensor sum,
                       functional::AddPlacesWide(zeros, c.attr<int64_t>(kDim), c.input(1), g,
                                                 c.attr<bool>(kFromEnd)));
  return functional::Cast(sum, g.dtype());
}

SavePlan SaveIndex(const Attrs&, Needs) { return {.inputs = Bit(1)}; }

void DefineGather(OpDef& op) {
  op.Input("in").Input("index").Output("out").Attr("dim", AttrType::kInt);
  op.Attr("from_end", AttrType::kBool, false);
  op.doc =
      "The elements of in at the places that index gives along a dim; negative ones count from the "
      "end, if so asked.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckIndex(c));
    c.SetOutput(0, c.shape(1), c.dtype(0));
    return OkStatus();
  };
  op.sbp = GatherSignatures;
  op.sbp_text = absl::StrCat(kSplitOthers, "; the index and the result on the dim");
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double n = static_cast<double>(c.shape(1).numel());
    return Cost{.bytes = n * (2 * SizeOf(c.dtype(0)) + SizeOf(DType::kInt64)), .flops = n};
  };
  op.cost_text = "index is read once, as many elements read and written; one operation for each";
  op.save = SaveIndex;
  op.backward = [](GradContext& c) -> Status { return c.Set(0, GatherGradient(c)); };
}

// Of the ops that put src into self: what happens to what is there.
enum class ScatterKind { kPut, kAdd, kMul, kMax, kMin };

const char* VerbOf(ScatterKind kind) {
  switch (kind) {
    case ScatterKind::kAdd:
      return "Adds src to self";
    case ScatterKind::kMul:
      return "Multiplies self by src";
    case ScatterKind::kMax:
      return "Keeps the larger of self and src, or NaN, in self";
    case ScatterKind::kMin:
      return "Keeps the smaller of self and src, or NaN, in self";
    default:
      return "Writes src into self";
  }
}

template <ScatterKind kKind>
Status InferScatter(InferContext& c) {
  OFL_RETURN_IF_ERROR(CheckIndex(c));
  if (c.shape(2) != c.shape(1)) {
    return ShapeMismatch(c.op(), "src", c.shape(2), c.shape(1).ToString());
  }
  const bool summed =
      kKind == ScatterKind::kAdd && IsFloating(c.dtype(2)) && ComputeType(c.dtype(2)) == c.dtype(0);
  if (c.dtype(2) != c.dtype(0) && !summed) {
    return DTypeMismatch(c.op(), "src", c.dtype(2), Name(c.dtype(0)));
  }
  if (kKind == ScatterKind::kAdd && c.dtype(0) == DType::kBool) {
    return UnsupportedDType(c.op(), "self", DType::kBool, "an integer or a floating dtype");
  }
  c.SetOutput(0, c.shape(0), c.dtype(0));
  return OkStatus();
}

// What was overwritten has no gradient; of several elements that go to one place, each gets that
// place's.
template <bool kAdd>
Status ScatterBackward(GradContext& c) {
  const int64_t dim = c.attr<int64_t>(kDim);
  const bool from_end = c.attr<bool>(kFromEnd);
  if (c.needs(0)) {
    StatusOr<Tensor> g = c.grad(0);
    if (!kAdd) {
      g = functional::Clone(*g);
      if (g.ok()) g = functional::ScatterPlaces(*g, dim, c.input(1), Scalar(0), from_end);
    }
    OFL_RETURN_IF_ERROR(c.Set(0, std::move(g)));
  }
  if (!c.needs(2)) return OkStatus();
  OFL_ASSIGN_OR_RETURN(const Tensor g,
                       functional::GatherPlaces(c.grad(0), dim, c.input(1), from_end));
  return c.Set(2, functional::Cast(g, c.spec(2).dtype));
}

// Products and extremes have no gradient of their own: scatter_reduce composes it.
template <ScatterKind kKind>
void DefineScatter(OpDef& op) {
  constexpr bool kPut = kKind == ScatterKind::kPut, kAdd = kKind == ScatterKind::kAdd;
  op.Input("self", InputDef::Kind::kMutated).Input("index").Input("src").Output("out");
  op.Attr("dim", AttrType::kInt).Attr("from_end", AttrType::kBool, false);
  op.doc = absl::StrCat(VerbOf(kKind),
                        " at the places that index gives along a dim; negative ones count from "
                        "the end, if so asked.");
  op.infer = InferScatter<kKind>;
  op.sbp = SplitOthers;
  op.sbp_text = kSplitOthers;
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double n = static_cast<double>(c.shape(1).numel());
    const size_t bytes =
        SizeOf(DType::kInt64) + SizeOf(c.dtype(2)) + (kPut ? 1 : 2) * SizeOf(c.dtype(0));
    return Cost{.bytes = n * static_cast<double>(bytes), .flops = n};
  };
  op.cost_text = kPut ? "index and src are read once, what they meet written; one operation for "
                        "each"
                      : "index and src are read once, what they meet read and written; one "
                        "operation for each";
  if constexpr (kPut || kAdd) {
    op.save = SaveIndex;
    op.backward = ScatterBackward<kAdd>;
  }
}

OFL_REGISTER_OP("gather", DefineGather);
OFL_REGISTER_OP("scatter_", DefineScatter<ScatterKind::kPut>);
OFL_REGISTER_OP("scatter_add_", DefineScatter<ScatterKind::kAdd>);
OFL_REGISTER_OP("scatter_mul_", DefineScatter<ScatterKind::kMul>);
OFL_REGISTER_OP("scatter_max_", DefineScatter<ScatterKind::kMax>);
OFL_REGISTER_OP("scatter_min_", DefineScatter<ScatterKind::kMin>);

}  // namespace
}  // namespace oneflow_lite
