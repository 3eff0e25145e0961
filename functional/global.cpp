// SPDX-License-Identifier: Apache-2.0
#include "functional/global.h"

#include <algorithm>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/world.h"
#include "oneflow_lite/framework/engine.h"

namespace oneflow_lite::functional {
namespace {

using Kind = Sbp::Kind;

// Sums stand for whole gradients: that of each term is that of the sum.
NdSbp GradientOf(NdSbp sbp) {
  for (Sbp& s : sbp) {
    if (s.kind == Kind::kPartialSum) s = Sbp::Broadcast();
  }
  return sbp;
}

Tensor AsGlobal(const Tensor& shard, const Shape& shape, DType dtype, PlacementRef placement,
                const NdSbp& sbp) {
  const bool here = !placement->Here().empty();
  return MakeGlobal(shape, dtype, {placement, sbp, here ? shard.Detach() : Tensor(), false});
}

// The way of a gradient through one of these functions.
class BoxingNode final : public Node {
 public:
  enum class Way : uint8_t { kFromLocal, kBoxed, kToLocal };
  BoxingNode(Way way, PlacementRef placement, std::optional<NdSbp> sbp, NdSbp went, Shape shape)
      : way_(way),
        placement_(placement),
        sbp_(std::move(sbp)),
        went_(std::move(went)),
        shape_(std::move(shape)) {}

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    OFL_ASSIGN_OR_RETURN(Tensor g, BackwardOf(grads[0]));
    return TensorList{std::move(g)};
  }
  std::string name() const override {
    return way_ == Way::kToLocal ? "to_local_backward" : "to_global_backward";
  }

 private:
  StatusOr<Tensor> BackwardOf(const Tensor& g) {
    switch (way_) {
      case Way::kFromLocal: {
        OFL_ASSIGN_OR_RETURN(const Tensor moved, Boxed(g, placement_, *sbp_));
        // As many terms make up its own gradient as x was of.
        return ToLocal(moved, went_);
      }
      case Way::kBoxed: {
        const GlobalSpec* spec = GlobalOf(g);
        if (!sbp_ && spec->placement == placement_) return g;
        const NdSbp whole(placement_->ndim(), Sbp::Broadcast());
        return Boxed(g, placement_, sbp_.value_or(whole));
      }
      default:
        return FromShard(g, shape_, placement_, *sbp_);
    }
  }

  const Way way_;
  const PlacementRef placement_;
  const std::optional<NdSbp> sbp_;  // of the gradient that goes on
  const NdSbp went_;                // how a local tensor became global
  const Shape shape_;               // logical
};

// Makes the node the producer of y, where x asks for a gradient.
Status Record(const Tensor& x, const Tensor& y, BoxingNode::Way way, PlacementRef placement,
              std::optional<NdSbp> sbp, const Shape& shape, NdSbp went = {}) {
  if (!GradEnabled() || !autograd::RequiresGrad(x)) return OkStatus();
  OFL_RETURN_IF_ERROR(autograd::RefreshView(x));
  auto node = MakeRef<BoxingNode>(way, placement, std::move(sbp), std::move(went), shape);
  node->edges.push_back(autograd::GradientEdge(x));
  OFL_RETURN_IF_ERROR(autograd::KeepStream(node.get(), y.device()));
  autograd::SetHistory(y, std::move(node), 0);
  return OkStatus();
}

// The same number for the same text in all processes (FNV-1a).
int64_t Digest(const std::string& text) {
  uint64_t h = 14695981039346656037u;
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return static_cast<int64_t>(h);
}

// What each rank tells the others of its shard: its dtype, its dims, and what it was asked for.
Dims Description(const Tensor& x, const Placement& p, const NdSbp& sbp) {
  Dims words{static_cast<int64_t>(x.dtype()), x.ndim(), Digest(p.ToString())};
  for (const Sbp& s : sbp) words.push_back(static_cast<int64_t>(s.kind) * 100 + s.axis);
  words.resize(5);
  for (int d = 0; d < 16; ++d) words.push_back(d < x.ndim() ? x.shape()[d] : 0);
  return words;
}
constexpr int kAsked = 2, kDims = 5;

Shape ShapeIn(const Dims& words) {
  return Shape(absl::MakeConstSpan(words).subspan(kDims, words[1]));
}

// The logical shape of which these are the shards, the same answer on every rank.
StatusOr<Shape> ShapeOfWhole(const std::vector<Dims>& all, const Placement& p, const NdSbp& sbp) {
  const int first = p.ranks()[0];
  const Dims& model = all[first];
  Shape whole = ShapeIn(model);
  for (int axis = 0; axis < whole.ndim(); ++axis) {
    int64_t size = 0;
    for (int k = 0; k < p.size(); ++k) {
      const GridPlace place = p.PlaceOf(k);
      bool counts = all[p.ranks()[k]][1] == model[1];
      for (int d = 0; d < p.ndim(); ++d) {
        const bool split = sbp[d].kind == Kind::kSplit && sbp[d].axis == axis;
        counts = counts && (split || place[d] == 0);
      }
      if (counts) size += all[p.ranks()[k]][kDims + axis];
    }
    whole[axis] = size;
  }
  for (int k = 0; k < p.size(); ++k) {
    const int rank = p.ranks()[k];
    const Dims& words = all[rank];
    if (words[0] != model[0]) {
      return Error(ErrorKind::kDType, "to_global(): rank ", rank, " has a shard of ",
                   Name(static_cast<DType>(words[0])), ", but rank ", first, " of ",
                   Name(static_cast<DType>(model[0])));
    }
    for (int i = kAsked; i < kDims; ++i) {
      if (words[i] != model[i]) {
        return Error(ErrorKind::kValue, "to_global(): rank ", rank, " and rank ", first,
                     " asked for different placements or SBPs");
      }
    }
    const Shape expected = ShardOf(whole, p, sbp, p.PlaceOf(k));
    if (words[1] == whole.ndim() && ShapeIn(words) == expected) continue;
    return Error(ErrorKind::kShape, "to_global(): rank ", rank, " has a shard of shape ",
                 ShapeIn(words).ToString(), ", but of a tensor of shape ", whole.ToString(),
                 " that is ", ToString(sbp), " on ", p.ToString(), " it is ", expected.ToString(),
                 ": parts are as even as can be, the first ones larger");
  }
  return whole;
}

}  // namespace

StatusOr<Tensor> LocalToGlobal(const Tensor& x, PlacementRef placement, NdSbp sbp,
                               std::optional<NdSbp> grad_sbp) {
  constexpr char kName[] = "to_global";
  if (!x.defined()) return NotDefined(kName, "input");
  if (!placement) return NotDefined(kName, "placement");
  if (x.ndim() > 16) return ShapeMismatch(kName, "input", x.shape(), "at most 16 dims");
  const Placement& p = *placement;
  const bool here = !p.Here().empty();
  if (here && x.device() != p.device()) {
    return DeviceMismatch(kName, "the placement", p.device(), "input", x.device());
  }
  if (here) OFL_RETURN_IF_ERROR(CheckSbp(kName, p, x.shape(), &sbp));
  std::vector<Dims> all;
  if (p.type() == DeviceType::kMeta) {  // as if all had what is here
    all.assign(*std::max_element(p.ranks().begin(), p.ranks().end()) + 1, Description(x, p, sbp));
  } else {
    OFL_ASSIGN_OR_RETURN(all, internal::GetMovers().exchange(p.type(), Description(x, p, sbp)));
  }
  const Dims& model = all[p.ranks()[0]];
  OFL_RETURN_IF_ERROR(CheckSbp(kName, p, ShapeIn(model), &sbp));
  OFL_ASSIGN_OR_RETURN(const Shape shape, ShapeOfWhole(all, p, sbp));
  if (grad_sbp) OFL_RETURN_IF_ERROR(CheckSbp(kName, p, shape, &*grad_sbp));
  Tensor y = AsGlobal(x, shape, static_cast<DType>(model[0]), placement, sbp);
  if (here) {
    OFL_RETURN_IF_ERROR(Record(x, y, BoxingNode::Way::kFromLocal, placement,
                               grad_sbp.value_or(GradientOf(sbp)), shape, sbp));
  }
  return y;
}

StatusOr<Tensor> FromShard(const Tensor& x, const Shape& shape, PlacementRef placement, NdSbp sbp) {
  if (!placement) return NotDefined("to_global", "placement");
  OFL_RETURN_IF_ERROR(CheckSbp("to_global", *placement, shape, &sbp));
  if (!placement->Here().empty()) {
    if (!x.defined()) return NotDefined("to_global", "the shard");
    const Shape expected = ShardOf(shape, *placement, sbp, placement->Here());
    if (x.shape() != expected) {
      return ShapeMismatch("to_global", "the shard", x.shape(),
                           absl::StrCat(expected.ToString(), ", a part of ", shape.ToString(),
                                        " by ", ToString(sbp)));
    }
  }
  Tensor y = AsGlobal(x, shape, x.dtype(), placement, sbp);
  OFL_RETURN_IF_ERROR(
      Record(x, y, BoxingNode::Way::kFromLocal, placement, GradientOf(sbp), shape, sbp));
  return y;
}

StatusOr<Tensor> Boxed(const Tensor& x, PlacementRef placement, NdSbp sbp,
                       std::optional<NdSbp> grad_sbp) {
  constexpr char kName[] = "to_global";
  if (!placement) return NotDefined(kName, "placement");
  if (!GlobalOf(x)) {
    return Error(ErrorKind::kRuntime, kName, "(): ", Describe(x), " is no global tensor");
  }
  const GlobalSpec& from = *GlobalOf(x);
  OFL_RETURN_IF_ERROR(CheckSbp(kName, *placement, x.shape(), &sbp));
  if (grad_sbp) OFL_RETURN_IF_ERROR(CheckSbp(kName, *from.placement, x.shape(), &*grad_sbp));
  const bool same = from.placement == placement && from.sbp == sbp;
  if (same && !grad_sbp) return x;
  OFL_ASSIGN_OR_RETURN(Tensor y, Box(x, placement, sbp));
  if (same) y = x.Detach();
  OFL_RETURN_IF_ERROR(
      Record(x, y, BoxingNode::Way::kBoxed, from.placement, std::move(grad_sbp), x.shape()));
  return y;
}

StatusOr<Tensor> ToGlobal(const Tensor& x, PlacementRef placement, NdSbp sbp,
                          std::optional<NdSbp> grad_sbp) {
  return GlobalOf(x) ? Boxed(x, placement, std::move(sbp), std::move(grad_sbp))
                     : LocalToGlobal(x, placement, std::move(sbp), std::move(grad_sbp));
}

StatusOr<Tensor> ToLocal(const Tensor& x, std::optional<NdSbp> grad_sbp) {
  const GlobalSpec* g = GlobalOf(x);
  if (!g) {
    return Error(ErrorKind::kRuntime, "to_local(): ", Describe(x), " is a local tensor already");
  }
  if (grad_sbp) OFL_RETURN_IF_ERROR(CheckSbp("to_local", *g->placement, x.shape(), &*grad_sbp));
  OFL_RETURN_IF_ERROR(CheckFresh("to_local", x));
  if (!g->local.defined()) return Tensor::Empty(Shape{0}, x.dtype(), x.device());
  Tensor y = g->local.Detach();
  OFL_RETURN_IF_ERROR(Record(x, y, BoxingNode::Way::kToLocal, g->placement,
                             grad_sbp.value_or(GradientOf(g->sbp)), x.shape()));
  return y;
}

}  // namespace oneflow_lite::functional
