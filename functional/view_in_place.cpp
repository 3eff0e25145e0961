// SPDX-License-Identifier: Apache-2.0
#include "functional/view_in_place.h"

#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {
namespace {

Status CheckMayTurn(const char* name, const Tensor& self) {
  if (!self.defined()) return NotDefined(name, "self");
  const char* why = nullptr;
  if (self.impl()->global_spec) {
    why = "a global tensor keeps its dims";
  } else if (autograd::RequiresGrad(self)) {
    if (autograd::IsLeaf(self)) {
      if (GradEnabled()) why = "a leaf that requires grad keeps its dims outside no_grad()";
    } else if (autograd::Base(self).defined()) {
      why = "a view with a history keeps its dims";
    } else if (!GradEnabled()) {
      why = "a tensor with a history keeps its dims under no_grad()";
    }
  }
  if (!why) return OkStatus();
  return Error(ErrorKind::kRuntime, name, "(): ", why,
               "; the function without the underscore gives a view");
}

// Calls view(self, arguments...), and gives self the geometry and the history of what it gives.
template <class... Parameters, class... Arguments>
StatusOr<Tensor> Turn(const char* name, const Tensor& self,
                      StatusOr<Tensor> (*view)(const Tensor&, Parameters...),
                      const Arguments&... arguments) {
  OFL_RETURN_IF_ERROR(CheckMayTurn(name, self));
  const StatusOr<Tensor> turned = view(self, arguments...);
  if (!turned.ok()) return Renamed(name, turned.status());
  if (turned->IsSame(self)) return self;
  const bool recorded = GradEnabled() && autograd::RequiresGrad(self);
  if (recorded) {
    autograd::SetHistory(self, autograd::GradFn(*turned), autograd::MetaOf(*turned).output_nr);
  }
  TensorImpl& impl = *self.impl();
  impl.shape = turned->shape();
  impl.strides = turned->strides();
  impl.contiguous = turned->is_contiguous();
  self.storage()->BumpVersion();  // a graph may have saved it, or a view of it
  return self;
}

}  // namespace

StatusOr<Tensor> TransposeInto(const Tensor& self, int64_t dim0, int64_t dim1) {
  return Turn("transpose_", self, Transpose, dim0, dim1);
}
StatusOr<Tensor> TInto(const Tensor& self) { return Turn("t_", self, T); }
StatusOr<Tensor> SqueezeInto(const Tensor& self, std::optional<Dims> dims) {
  return Turn("squeeze_", self, Squeeze, dims);
}
StatusOr<Tensor> UnsqueezeInto(const Tensor& self, int64_t dim) {
  return Turn("unsqueeze_", self, Unsqueeze, dim);
}

OFL_REGISTER_FUNCTION("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor", TransposeInto,
                      kMethodOnly, "As transpose, of the tensor itself: its elements stay.");
OFL_REGISTER_FUNCTION("t_(Tensor(a!) self) -> Tensor", TInto, kMethodOnly,
                      "As t, of the tensor itself: its elements stay.");
OFL_REGISTER_FUNCTION("squeeze_(Tensor(a!) self, int[]? dim=None) -> Tensor", SqueezeInto,
                      kMethodOnly, "As squeeze, of the tensor itself.");
OFL_REGISTER_FUNCTION("unsqueeze_(Tensor(a!) self, int dim) -> Tensor", UnsqueezeInto, kMethodOnly,
                      "As unsqueeze, of the tensor itself.");
OFL_REGISTER_ALIAS("swapaxes_", "transpose_");
OFL_REGISTER_ALIAS("swapdims_", "transpose_");

}  // namespace oneflow_lite::functional
