// SPDX-License-Identifier: Apache-2.0
//
// Views and the rebasing of history when one is changed in place.
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/engine.h"

namespace oneflow_lite::autograd {
namespace {

// Geometry of a view relative to a contiguous tensor of the base's shape.
struct ViewInBase {
  Dims shape, strides;
  int64_t offset;
};
StatusOr<ViewInBase> RelativeView(const Tensor& view, const Tensor& base) {
  if (!base.is_contiguous()) {
    return Error(ErrorKind::kNotImplemented,
                 "in-place change of a view of a non-contiguous tensor cannot be recorded; clone "
                 "the base first");
  }
  return ViewInBase{view.shape().dims(), view.strides(), view.offset() - base.offset()};
}

const OpExpr& AsStrided() {
  static const OpExpr& op = OpBuilder("as_strided")
                                .Input("in")
                                .Output("out")
                                .Attr("shape")
                                .Attr("strides")
                                .Attr("offset")
                                .Attr("input_strides")
                                .Get();
  return op;
}
const OpExpr& AsStridedBackward() {
  static const OpExpr& op = OpBuilder("as_strided_backward")
                                .Input("grad")
                                .Output("out")
                                .Attr("base_shape")
                                .Attr("shape")
                                .Attr("strides")
                                .Attr("offset")
                                .Get();
  return op;
}

// Adds up what flowed back to the elements that an expanded view shows several times.
StatusOr<Tensor> SumRepeated(Tensor grad, ViewInBase* view) {
  static const OpExpr& sum =
      OpBuilder("sum").Input("in").Output("out").Attr("dims").Attr("keepdim").Attr("dtype").Get();
  for (size_t d = 0; d < view->shape.size(); ++d) {
    if (view->strides[d] != 0 || view->shape[d] < 2) continue;
    OFL_ASSIGN_OR_RETURN(grad, Call(sum, {grad}, {Dims{static_cast<int64_t>(d)}, true, {}}));
    view->shape[d] = 1;
  }
  return grad;
}

const Dims kContiguous;  // no strides to tell the gradient

// History of a view that was cut anew from a changed base.
class ViewNode final : public Node {
 public:
  ViewNode(ViewInBase view, Dims base_shape)
      : view_(std::move(view)), base_shape_(std::move(base_shape)) {}
  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    ViewInBase view = view_;
    OFL_ASSIGN_OR_RETURN(Tensor g, SumRepeated(grads[0], &view));
    OFL_ASSIGN_OR_RETURN(
        g, Call(AsStridedBackward(), {g}, {base_shape_, view.shape, view.strides, view.offset}));
    return TensorList{std::move(g)};
  }
  std::string name() const override { return "as_strided_backward"; }

 private:
  ViewInBase view_;
  Dims base_shape_;
};

// History of a base after an in-place op on a view of it: the region under the view goes through
// the op's node, the rest passes.
class ViewUpdate final : public Node {
 public:
  ViewUpdate(ViewInBase view, Dims base_shape, Ref<Node> inner)
      : view_(std::move(view)), base_shape_(std::move(base_shape)), inner_(std::move(inner)) {}

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    OFL_ASSIGN_OR_RETURN(Tensor grad, CloneTensor(grads[0]));
    OFL_ASSIGN_OR_RETURN(
        Tensor region,
        Call(AsStrided(), {grad}, {view_.shape, view_.strides, view_.offset, kContiguous}));
    OFL_ASSIGN_OR_RETURN(TensorList result, inner_->Backward({region}));
    // Base gradient = grad with the region replaced by the op's gradient for its old value:
    // grad - pad(region) + pad(result[0]).
    static const OpExpr& sub = OpBuilder("sub").Input("a").Input("b").Output("out").Get();
    const Attrs pad{base_shape_, view_.shape, view_.strides, view_.offset};
    OFL_ASSIGN_OR_RETURN(Tensor hole, Call(AsStridedBackward(), {region}, pad));
    OFL_ASSIGN_OR_RETURN(Tensor base_grad, Call(sub, {grad, hole}));
    if (result[0].defined()) {
      OFL_ASSIGN_OR_RETURN(Tensor filled, Call(AsStridedBackward(), {result[0]}, pad));
      OFL_ASSIGN_OR_RETURN(base_grad, AddTensors(base_grad, filled));
    }
    result[0] = std::move(base_grad);
    return result;
  }
  void ReleaseSaved() override { inner_->ReleaseSaved(); }
  std::string name() const override { return "view_update(" + inner_->name() + ")"; }

 private:
  ViewInBase view_;
  Dims base_shape_;
  Ref<Node> inner_;
};

}  // namespace

Status RebaseHistory(const Tensor& self, Ref<Node> node) {
  AutogradMeta& meta = MetaOf(self);
  if (!meta.base.defined()) {
    SetHistory(self, std::move(node), 0);
    return OkStatus();
  }
  const Tensor base = meta.base;
  OFL_ASSIGN_OR_RETURN(ViewInBase view, RelativeView(self, base));
  auto update = MakeRef<ViewUpdate>(view, base.shape().dims(), node);
  update->edges = node->edges;
  update->edges[0] = GradientEdge(base);
  update->stream = node->stream;
  SetHistory(base, std::move(update), 0);
  meta.view_version = self.version() - 1;  // stale on purpose: cut anew at the next use
  return RefreshView(self);
}

Status RefreshView(const Tensor& t) {
  AutogradMeta* meta = Find(t);
  if (!meta || !meta->base.defined() || meta->view_version == t.version()) return OkStatus();
  meta->view_version = t.version();
  Edge edge = GradientEdge(meta->base);
  if (!edge.node) return OkStatus();
  OFL_ASSIGN_OR_RETURN(ViewInBase view, RelativeView(t, meta->base));
  auto node = MakeRef<ViewNode>(std::move(view), meta->base.shape().dims());
  node->edges.push_back(std::move(edge));
  SetHistory(t, std::move(node), 0);
  return OkStatus();
}

}  // namespace oneflow_lite::autograd
