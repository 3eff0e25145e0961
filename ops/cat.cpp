// SPDX-License-Identifier: Apache-2.0
//
// cat: tensors after each other along a dim.
#include "functional/cat.h"

#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

Status InferCat(InferContext& c) {
  const int64_t dim = c.attr<int64_t>(0);
  Shape out = c.shape(0);
  if (dim < 0 || dim >= out.ndim()) {
    return Error(ErrorKind::kIndex, c.op(), "(): dim ", dim, " is out of range for shape ",
                 out.ToString());
  }
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.dtype(i) != c.dtype(0)) {
      return DTypeMismatch(c.op(), absl::StrCat("tensor ", i), c.dtype(i), Name(c.dtype(0)));
    }
    Shape like = c.shape(0);
    const bool fits = c.shape(i).ndim() == like.ndim();
    if (fits) like[dim] = c.shape(i)[dim];
    if (!fits || like != c.shape(i)) {
      return ShapeMismatch(c.op(), absl::StrCat("tensor ", i), c.shape(i),
                           absl::StrCat(c.shape(0).ToString(), " but for dim ", dim));
    }
    out[dim] += like[dim];
  }
  c.SetOutput(0, out, c.dtype(0));
  return OkStatus();
}

void DefineCat(OpDef& op) {
  op.Input("tensors", InputDef::Kind::kVariadic).Output("out").Attr("dim", AttrType::kInt);
  op.doc = "The tensors after each other along a dim.";
  op.infer = InferCat;
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    for (int d = 0; d < c.inputs[0].ndim(); ++d) {
      if (d == c.attrs.get<int64_t>(0)) continue;
      SbpSignature s;
      s.inputs.assign(c.inputs.size(), Sbp::Split(d));
      s.outputs.push_back(Sbp::Split(d));
      out.push_back(std::move(s));
    }
    return out;
  };
  op.sbp_text = "split on any other dim";
  op.backward = [](GradContext& c) -> Status {
    const int64_t dim = c.attr<int64_t>(0);
    int64_t start = 0;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const int64_t length = c.spec(i).shape[static_cast<int>(dim)];
      if (c.needs(i)) {
        OFL_RETURN_IF_ERROR(c.Set(i, functional::Narrow(c.grad(0), dim, start, length)));
      }
      start += length;
    }
    return OkStatus();
  };
}

OFL_REGISTER_OP("cat", DefineCat);

}  // namespace
}  // namespace oneflow_lite
