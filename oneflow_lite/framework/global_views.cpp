// SPDX-License-Identifier: Apache-2.0
//
// Views of global tensors whose elements had to move between ranks. Such a view has memory of its
// own: what is written into it is carried to its root, the tensor that it was cut from, and where
// the root has changed the view is cut anew when it is next used. Strides and offset of a view
// count in the root's elements as they lie densely, so that the way between the two needs no other
// views.
#include <utility>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite {
namespace {

// The part of a dense tensor of the root's shape of which this process has the shard.
Tensor PartHere(const Tensor& whole, const GlobalSpec& root) {
  const Placement& p = *root.placement;
  int64_t offset = 0;
  for (int d = 0; d < whole.ndim(); ++d) {
    offset += ShardStart(whole.shape(), p, root.sbp, p.Here(), d) * whole.strides()[d];
  }
  return whole.WithGeometry(ShardOf(whole.shape(), p, root.sbp, p.Here()), whole.strides(), offset);
}

// The elements of a view in a dense tensor of the root's shape.
Tensor Under(const Tensor& view, const Tensor& whole) {
  return whole.WithGeometry(view.shape(), view.strides(), whole.offset() + view.offset());
}

// What the view's shard has, written into the root's.
Status Carry(const Tensor& view) {
  const GlobalSpec& from = *GlobalOf(view);
  const GlobalSpec& root = *from.root;
  NdSbp whole = root.sbp;  // where the root is a sum, terms of one
  for (Sbp& s : whole) {
    if (s.kind == Sbp::Kind::kSplit) s = Sbp::Broadcast();
  }
  OFL_ASSIGN_OR_RETURN(const Tensor written,
                       internal::Move(from.local, {view.shape(), view.dtype(), from.placement,
                                                   from.sbp, from.placement, whole}));
  if (!root.local.defined()) return OkStatus();
  OFL_ASSIGN_OR_RETURN(const Tensor frame,
                       Tensor::Empty(from.root_shape, view.dtype(), root.local.device()));
  const Tensor here = PartHere(frame, root);
  OFL_RETURN_IF_ERROR(internal::CopyLocal(here, root.local));
  OFL_RETURN_IF_ERROR(internal::CopyLocal(Under(view, frame), written));
  return internal::CopyLocal(root.local, here);
}

}  // namespace

Status CheckFresh(absl::string_view op, const Tensor& t) {
  const GlobalSpec* g = GlobalOf(t);
  if (!g->copied || g->cut == t.version()) return OkStatus();
  return Error(ErrorKind::kRuntime, op, "(): ", Describe(t),
               " is a view of a global tensor whose elements had to move between ranks, and was "
               "cut before that tensor changed; cut it anew, or clone it before the change");
}

Status internal::Changed(const Tensor& t) {
  t.storage()->BumpVersion();
  const GlobalSpec& g = *GlobalOf(t);
  if (!g.copied) return OkStatus();
  OFL_RETURN_IF_ERROR(Carry(t));
  g.cut = t.version();
  return OkStatus();
}

Status internal::CutAnew(const Tensor& t) {
  const GlobalSpec& g = *GlobalOf(t);
  if (!g.copied || g.cut == t.version()) return OkStatus();
  const GlobalSpec& root = *g.root;
  NdSbp whole = root.sbp;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (whole[d] != g.sbp[d]) whole[d] = Sbp::Broadcast();
    if (whole[d].kind == Sbp::Kind::kSplit) whole[d] = Sbp::Broadcast();
  }
  OFL_ASSIGN_OR_RETURN(Tensor all, Move(root.local, {g.root_shape, t.dtype(), g.placement, root.sbp,
                                                     g.placement, whole}));
  if (all.defined()) {
    OFL_ASSIGN_OR_RETURN(all, DenseOf(all));
    OFL_ASSIGN_OR_RETURN(const Tensor part, Move(Under(t, all), {t.shape(), t.dtype(), g.placement,
                                                                 whole, g.placement, g.sbp}));
    OFL_RETURN_IF_ERROR(CopyLocal(g.local, part));
  }
  g.cut = t.version();
  return OkStatus();
}

}  // namespace oneflow_lite
