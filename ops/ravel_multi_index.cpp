// SPDX-License-Identifier: Apache-2.0
//
// ravel_multi_index: indices of several dims as places of the flattened dims, as NumPy's.
#include "oneflow_lite/framework/op_registry.h"
#include "ops/broadcast.h"

namespace oneflow_lite {
namespace {

constexpr int kSizes = 0, kDims = 1;  // the attributes

Status InferRavel(InferContext& c) {
  const auto count = static_cast<size_t>(c.num_inputs());
  if (c.attr<Dims>(kSizes).size() != count || c.attr<Dims>(kDims).size() != count) {
    return BadValue(
        c.op(), "sizes",
        absl::StrCat(c.attr<Dims>(kSizes).size(), " with ", c.attr<Dims>(kDims).size(), " dims"),
        absl::StrCat("one of each for each of the ", count, " indices"));
  }
  Shape out = c.shape(0);
  for (int i = 0; i < c.num_inputs(); ++i) {
    const std::string name = absl::StrCat("index ", i);
    if (c.dtype(i) != DType::kInt64) return DTypeMismatch(c.op(), name, c.dtype(i), "int64");
    OFL_ASSIGN_OR_RETURN(out, Broadcast(c, out, i, name.c_str()));
  }
  c.SetOutput(0, out, DType::kInt64);
  return OkStatus();
}

void DefineRavel(OpDef& op) {
  op.Input("indices", InputDef::Kind::kVariadic).Output("out");
  op.Attr("sizes", AttrType::kInts).Attr("dims", AttrType::kInts);
  op.doc =
      "Indices of dims of the given sizes, broadcast, as places of those dims flattened; negative "
      "ones count from the end. Of a place outside, an error names the dim by `dims`.";
  op.differentiable = false;
  op.infer = InferRavel;
  op.sbp = BroadcastSignatures;
  op.sbp_text = kBroadcastSbpText;
}

OFL_REGISTER_OP("ravel_multi_index", DefineRavel);

}  // namespace
}  // namespace oneflow_lite
