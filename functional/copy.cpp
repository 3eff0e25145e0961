// SPDX-License-Identifier: Apache-2.0
#include "functional/copy.h"

#include <algorithm>
#include <numeric>

#include "functional/creation.h"
#include "functional/global.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/output_layout.h"

namespace oneflow_lite::functional {
namespace {

StatusOr<Tensor> CallCast(const Tensor& x, DType dtype) {
  static const OpExpr& op = OpBuilder("cast").Input("in").Output("out").Attr("dtype").Get();
  return Call(op, {x}, {dtype});
}

// The dims of a tensor as they lie in memory, outermost first; none where that is their order.
Dims OrderInMemory(const Tensor& x) {
  if (x.is_contiguous() || GlobalOf(x)) return {};
  const Dims strides = StridesLike(absl::MakeConstSpan(&x, 1), x.shape());
  if (strides.empty()) return {};
  Dims order(x.ndim());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return order;
}

// A cast of which the result lies as x does, as that of an elementwise function.
StatusOr<Tensor> CastAsItLies(const Tensor& x, DType dtype) {
  const Dims order = OrderInMemory(x);
  if (order.empty()) return CallCast(x, dtype);
  Dims back(order.size(), 0);
  for (size_t d = 0; d < order.size(); ++d) back[order[d]] = static_cast<int64_t>(d);
  OFL_ASSIGN_OR_RETURN(Tensor dense, Permute(x, order));
  OFL_ASSIGN_OR_RETURN(Tensor y, CallCast(dense, dtype));
  return Permute(y, back);
}

StatusOr<Tensor> ToDevice(const Tensor& x, Device device) {
  static const OpExpr& op = OpBuilder("to_device").Input("in").Output("out").Attr("device").Get();
  return Call(op, {x}, {device});
}

}  // namespace

StatusOr<Tensor> Cast(const Tensor& x, DType dtype) {
  // An undefined one stays, so that the op it is for names it.
  return x.dtype() == dtype || !x.defined() ? StatusOr<Tensor>(x) : CallCast(x, dtype);
}

StatusOr<Tensor> Clone(const Tensor& x) { return CastAsItLies(x, x.dtype()); }

StatusOr<Tensor> Contiguous(const Tensor& x) {
  return x.is_contiguous() ? StatusOr<Tensor>(x) : CallCast(x, x.dtype());
}

StatusOr<Tensor> Detach(const Tensor& x) { return x.Detach(); }

StatusOr<Tensor> To(const Tensor& x, std::optional<Device> device, std::optional<DType> dtype,
                    bool copy) {
  const bool move = device && *device != x.device();
  Tensor y = x;
  if (dtype && *dtype != x.dtype()) {
    OFL_ASSIGN_OR_RETURN(y, move ? CallCast(y, *dtype) : CastAsItLies(y, *dtype));
  } else if (copy && !move) {
    return Clone(x);
  }
  return move ? ToDevice(y, *device) : StatusOr<Tensor>(y);
}

StatusOr<Tensor> CopyInto(const Tensor& self, const Tensor& src) {
  static const OpExpr& op = OpBuilder("copy_").Input("self").Input("src").Output("out").Get();
  if (!self.defined()) return NotDefined("copy_", "self");
  OFL_ASSIGN_OR_RETURN(Tensor from, To(src, self.device(), self.dtype()));
  if (const GlobalSpec* g = GlobalOf(self); g && from.ndim() == 0 && !GlobalOf(from)) {  // a number
    const NdSbp whole(g->placement->ndim(), Sbp::Broadcast());
    OFL_ASSIGN_OR_RETURN(from, FromShard(from, Shape{}, g->placement, whole));
  }
  if (from.shape() != self.shape()) {
    OFL_ASSIGN_OR_RETURN(from, Expand(from, self.shape()));
  }
  return Call(op, {self, from});
}

StatusOr<Tensor> TypeAs(const Tensor& x, const Tensor& other) {
  if (!other.defined()) return NotDefined("type_as", "other");
  return Cast(x, other.dtype());
}

namespace {

StatusOr<Tensor> CopyIntoOf(const Tensor& self, const Tensor& src, bool /*non_blocking*/) {
  return CopyInto(self, src);
}
StatusOr<Tensor> FillIntoOf(const Tensor& self, Scalar src, bool /*non_blocking*/) {
  return FillInto(self, src);
}

}  // namespace

OFL_REGISTER_FUNCTION("contiguous(Tensor self) -> Tensor", Contiguous, kMethodOnly,
                      "The tensor itself where contiguous, else a contiguous copy.");
OFL_REGISTER_FUNCTION("clone(Tensor input) -> Tensor", Clone, kMethod,
                      "A contiguous copy that autograd follows.");
OFL_REGISTER_FUNCTION("detach(Tensor(a) input) -> Tensor", Detach, kMethod,
                      "The same data outside autograd.");
OFL_REGISTER_FUNCTION(
    "to(Tensor self, Device? device=None, dtype? dtype=None, bool copy=False) -> Tensor", To,
    kMethodOnly,
    "The tensor on a device and in a dtype; itself where nothing changes. In another dtype on the "
    "same device its dims lie as they did.");
OFL_REGISTER_FUNCTION("type_as(Tensor self, Tensor other) -> Tensor", TypeAs, kMethodOnly,
                      "The tensor with the dtype of another.");
OFL_REGISTER_FUNCTION("copy_(Tensor(a!) self, Tensor src) -> Tensor", CopyInto, kMethodOnly,
                      "Copies src into self in place, broadcast and cast.");
// PyTorch's, which means nothing: copies between devices wait as to()'s do. An overload costs the
// calls without it no time.
OFL_REGISTER_ADAPTER("copy_.waits(Tensor(a!) self, Tensor src, bool non_blocking) -> Tensor",
                     CopyIntoOf, CopyInto, kMethodOnly, "");
OFL_REGISTER_ADAPTER("copy_.number(Tensor(a!) self, Scalar src, bool non_blocking=False) -> Tensor",
                     FillIntoOf, CopyInto, kMethodOnly, "");

}  // namespace oneflow_lite::functional
