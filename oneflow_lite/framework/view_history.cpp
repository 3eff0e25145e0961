// SPDX-License-Identifier: Apache-2.0
//
// Views and the rebasing of history when one is changed in place.
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/engine.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/owned.h"

namespace oneflow_lite::autograd {
namespace {

// What both a base and a view of it are views of: the base itself where it is contiguous, else the
// stretch of storage from its first element to its last, as one dim.
struct Frame {
  Dims shape;
  Dims base_shape, base_strides;  // the base in the stretch; no strides where it is the frame
};

// A view in its frame.
struct ViewInBase {
  Frame frame;
  Dims shape, strides;
  int64_t offset;
};

Frame FrameOf(const Tensor& base) {
  const Dims shape = base.shape().dims();
  if (base.is_contiguous()) return {shape, shape, Dims()};
  int64_t last = 0;
  for (int d = 0; d < base.ndim(); ++d) last += base.strides()[d] * (shape[d] - 1);
  return {Dims{last + 1}, shape, base.strides()};
}

StatusOr<ViewInBase> RelativeView(const Tensor& view, const Tensor& base) {
  for (int d = 0; d < base.ndim(); ++d) {
    if (base.strides()[d] == 0 && base.shape()[d] > 1) {
      return Error(ErrorKind::kNotImplemented,
                   "in-place change of a view of an expanded tensor cannot be recorded; clone the "
                   "base first");
    }
  }
  ViewInBase found{FrameOf(base), view.shape().dims(), view.strides(),
                   view.offset() - base.offset()};
  const int64_t end = found.offset + SpannedElements(found.shape, found.strides);
  if (view.numel() > 0 && (found.offset < 0 || end > Shape(found.frame.shape).numel())) {
    return Error(ErrorKind::kNotImplemented,
                 "in-place change of a view by as_strided() of what lies outside of the tensor it "
                 "was cut from cannot be recorded");
  }
  return found;
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

// Zeros of the frame with `grad` put in as the view.
StatusOr<Tensor> IntoFrame(const Tensor& grad, const ViewInBase& view) {
  return Call(AsStridedBackward(), {grad},
              {view.frame.shape, view.shape, view.strides, view.offset});
}

const Dims kContiguous;  // no strides to tell the gradient

// A contiguous gradient of the base as one of the frame, and back.
StatusOr<Tensor> FrameFromBase(const Tensor& grad, const Frame& frame) {
  if (frame.base_strides.empty()) return grad;
  return IntoFrame(grad, {frame, frame.base_shape, frame.base_strides, 0});
}
StatusOr<Tensor> BaseFromFrame(const Tensor& grad, const Frame& frame) {
  if (frame.base_strides.empty()) return grad;
  return Call(AsStrided(), {grad}, {frame.base_shape, frame.base_strides, int64_t{0}, kContiguous});
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

// History of a view that was cut anew from a changed base.
class ViewNode final : public Node {
 public:
  explicit ViewNode(ViewInBase view) : view_(std::move(view)) {}
  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    ViewInBase view = view_;
    OFL_ASSIGN_OR_RETURN(Tensor g, SumRepeated(grads[0], &view));
    OFL_ASSIGN_OR_RETURN(g, IntoFrame(g, view));
    OFL_ASSIGN_OR_RETURN(g, BaseFromFrame(g, view.frame));
    return TensorList{std::move(g)};
  }
  std::string name() const override { return "as_strided_backward"; }

 private:
  ViewInBase view_;
};

// History of a base after an in-place op on a view of it: the region under the view goes through
// the op's node, the rest passes.
class ViewUpdate final : public Node {
 public:
  ViewUpdate(ViewInBase view, Ref<Node> inner) : view_(std::move(view)), inner_(std::move(inner)) {}

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    OFL_ASSIGN_OR_RETURN(Tensor grad, CloneTensor(grads[0]));
    OFL_ASSIGN_OR_RETURN(grad, FrameFromBase(grad, view_.frame));
    OFL_ASSIGN_OR_RETURN(
        Tensor region,
        Call(AsStrided(), {grad}, {view_.shape, view_.strides, view_.offset, kContiguous}));
    OFL_ASSIGN_OR_RETURN(TensorList result, inner_->Backward({region}));
    OFL_ASSIGN_OR_RETURN(grad, Replaced(grad, region, result[0]));
    OFL_ASSIGN_OR_RETURN(result[0], BaseFromFrame(grad, view_.frame));
    return result;
  }
  // Where the op saved its output, a second derivative leads to the inner node, too, later in the
  // pass: then that node's own turn frees what it saved.
  void ReleaseSaved() override {
    if (inner_->use_count() == 1) inner_->ReleaseSaved();
  }
  std::string name() const override { return "view_update(" + inner_->name() + ")"; }
  void VisitOwned(OwnedWalk& walk) const override {
    Node::VisitOwned(walk);
    walk.Visit(inner_);
  }
  void ClearOwned() override {
    hooks.Clear();
    edges.clear();
    if (inner_->use_count() == 1) inner_->ClearOwned();
  }

 private:
  // `grad` with `inside` (undefined: zeros) in place of the region under the view. It is chosen and
  // not subtracted: what the region held may be infinite.
  StatusOr<Tensor> Replaced(const Tensor& grad, const Tensor& region, const Tensor& inside) const {
    static const OpExpr& where =
        OpBuilder("where").Input("condition").Input("input").Input("other").Output("out").Get();
    const GlobalScope scope(absl::MakeConstSpan(&region, 1));
    Tensor filled;
    if (inside.defined()) {
      OFL_ASSIGN_OR_RETURN(filled, IntoFrame(inside, view_));
      if (region.numel() == grad.numel()) return filled;
    } else {
      OFL_ASSIGN_OR_RETURN(filled, ZerosOf({Shape{}, grad.dtype(), grad.device()}));
    }
    OFL_ASSIGN_OR_RETURN(Tensor covered,
                         FullOf({region.shape(), DType::kBool, region.device()}, 1));
    OFL_ASSIGN_OR_RETURN(covered, IntoFrame(covered, view_));
    return Call(where, {covered, filled, grad});
  }

  ViewInBase view_;
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
  auto update = MakeRef<ViewUpdate>(std::move(view), node);
  update->edges = node->edges;
  update->edges[0] = GradientEdge(base);
  update->stream = node->stream;
  SetHistory(base, std::move(update), 0);
  meta.view_version = self.version() - 1;  // stale on purpose: cut anew at the next use
  return RefreshView(self);
}

void KeepViewOfFunction(const Tensor& view, bool shared) {
  AutogradMeta& meta = MetaOf(view);
  if (!shared) meta.base = Tensor();
  meta.of_function = shared;
  meta.view_version = view.version();
}

Status RefreshView(const Tensor& t) {
  AutogradMeta* meta = Find(t);
  if (!meta || !meta->base.defined() || meta->view_version == t.version()) return OkStatus();
  if (meta->of_function) {
    return Error(ErrorKind::kRuntime, "a view that a Function gave, ", Describe(t),
                 ", is used after its memory was changed in place: its gradient by the Function's "
                 "backward is lost; clone the view before the change, or in forward");
  }
  if (Edge edge = GradientEdge(meta->base); edge.node) {
    OFL_ASSIGN_OR_RETURN(ViewInBase view, RelativeView(t, meta->base));
    auto node = MakeRef<ViewNode>(std::move(view));
    node->edges.push_back(std::move(edge));
    SetHistory(t, std::move(node), 0);
  }
  meta->view_version = t.version();  // where nothing was refused: what is refused stays so
  return OkStatus();
}

}  // namespace oneflow_lite::autograd
