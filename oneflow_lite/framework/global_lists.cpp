// SPDX-License-Identifier: Apache-2.0
//
// Ops over lists of tensors (steps of optimizers) in the global mode: one launch over the shards.
// What belongs to a tensor of the first list is brought to that one's SBP; nothing else moves.
#include <set>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite {
namespace {

// A tensor that changes, computed aside because its SBP was not the one that was wanted.
struct Aside {
  const Tensor* logical;
  Tensor moved;  // global, in the SBP that was wanted
};

class ListCall {
 public:
  explicit ListCall(OpCall& call) : call_(call), def_(call.op.def()) {
    alone_ = def_.inputs.size() - 1;
    length_ = (call.inputs.size() - alone_) / def_.lists.size();
  }

  Status Run() {
    for (size_t i = 0; i < alone_; ++i) {
      OFL_ASSIGN_OR_RETURN(Tensor t, Number(call_.inputs[i]));
      shards_.push_back(std::move(t));
    }
    shards_.resize(call_.inputs.size());
    for (size_t k = 0; k < length_; ++k) OFL_RETURN_IF_ERROR(Gather(k));
    OFL_RETURN_IF_ERROR(Launch());
    if (def_.name == "multi_unscale_") OFL_RETURN_IF_ERROR(ShareFlags());
    return WriteBack();
  }

 private:
  size_t IndexOf(size_t list, size_t k) const { return alone_ + list * length_ + k; }

  // A number that all shards need, whole.
  static StatusOr<Tensor> Number(const Tensor& t) {
    const GlobalSpec* g = GlobalOf(t);
    if (!g) return t;
    OFL_ASSIGN_OR_RETURN(const Tensor whole,
                         Box(t, g->placement, NdSbp(g->placement->ndim(), Sbp::Broadcast())));
    return GlobalOf(whole)->local;
  }

  // The shards of place k of every list.
  Status Gather(size_t k) {
    const Tensor& first = call_.inputs[IndexOf(0, k)];
    const GlobalSpec* anchor = GlobalOf(first);
    NdSbp want;
    if (anchor) want = anchor->sbp;
    for (Sbp& s : want) {  // steps are not linear
      if (s.kind == Sbp::Kind::kPartialSum) s = Sbp::Broadcast();
    }
    for (size_t l = 0; l < def_.lists.size(); ++l) {
      const size_t i = IndexOf(l, k);
      const Tensor& t = call_.inputs[i];
      const GlobalSpec* g = GlobalOf(t);
      if (!t.defined()) continue;
      if (!g && (!anchor || t.ndim() == 0)) {
        shards_[i] = t;
        continue;
      }
      if (!g || !anchor || g->placement != anchor->placement) {
        return Error(ErrorKind::kRuntime, def_.name, "(): ", def_.lists[l].name, "[", k, "] is ",
                     PlaceOf(t), ", but ", def_.lists[0].name, "[", k, "] ", PlaceOf(first),
                     "; make it global with to_global()");
      }
      const NdSbp whole(want.size(), Sbp::Broadcast());
      OFL_ASSIGN_OR_RETURN(const Tensor moved,
                           Box(t, g->placement, t.shape() == first.shape() ? want : whole));
      shards_[i] = GlobalOf(moved)->local;
      if (!def_.lists[l].mutated) continue;
      if (!moved.IsSame(t)) aside_.push_back({&t, moved});
    }
    return OkStatus();
  }

  // Over the places of which this process has a shard.
  Status Launch() {
    TensorList inputs(shards_.begin(), shards_.begin() + alone_);
    for (size_t l = 0; l < def_.lists.size(); ++l) {
      for (size_t k = 0; k < length_; ++k) {
        const Tensor& first = shards_[IndexOf(0, k)];
        if (first.defined()) inputs.push_back(shards_[IndexOf(l, k)]);
      }
    }
    if (inputs.size() == alone_) return OkStatus();
    OpCall local{call_.op, inputs, call_.attrs, call_.outputs};
    return internal::DispatchBackend(local);
  }

  // A number that is not finite is in one shard: the ranks of all tensors are told, so that a step
  // over several placements is taken by all of them or by none.
  Status ShareFlags() {
    constexpr size_t kFlags = 1;  // the list
    for (size_t k = 0; k < length_; ++k) {
      const Tensor& flag = shards_[IndexOf(kFlags, k)];
      if (!flag.defined() || !IsFirstOf(flag, kFlags, k)) continue;
      OFL_ASSIGN_OR_RETURN(const PlacementRef all, PlacementOf(flag, kFlags));
      if (!all || all->Here().empty()) continue;
      OFL_RETURN_IF_ERROR(internal::GetMovers().maximum(flag, all));
    }
    return OkStatus();
  }

  // Whether a tensor of a list has not come before place k.
  bool IsFirstOf(const Tensor& t, size_t list, size_t k) const {
    for (size_t before = 0; before < k; ++before) {
      const Tensor& other = shards_[IndexOf(list, before)];
      if (other.defined() && other.storage() == t.storage()) return false;
    }
    return true;
  }

  // The ranks of all tensors of the first list beside which t stands; null where none is global.
  StatusOr<PlacementRef> PlacementOf(const Tensor& t, size_t list) const {
    PlacementRef only = nullptr;
    std::set<int> ranks;
    bool several = false;
    for (size_t k = 0; k < length_; ++k) {
      const Tensor& beside = shards_[IndexOf(list, k)];
      const GlobalSpec* g = GlobalOf(call_.inputs[IndexOf(0, k)]);
      if (!g || !beside.defined() || beside.storage() != t.storage()) continue;
      several = several || (only && only != g->placement);
      only = g->placement;
      ranks.insert(only->ranks().begin(), only->ranks().end());
    }
    if (!several) return only;
    return Placement::Get(only->type(), {ranks.begin(), ranks.end()},
                          {static_cast<int>(ranks.size())});
  }

  Status WriteBack() {
    for (const Aside& a : aside_) {
      const GlobalSpec& g = *GlobalOf(*a.logical);
      OFL_ASSIGN_OR_RETURN(const Tensor back, Box(a.moved, g.placement, g.sbp));
      if (!g.local.defined()) continue;
      OFL_RETURN_IF_ERROR(internal::CopyLocal(g.local, GlobalOf(back)->local));
    }
    for (size_t i = alone_; i < call_.inputs.size(); ++i) {
      const Tensor& t = call_.inputs[i];
      if (!GlobalOf(t) || !def_.MutatesInput(i, call_.inputs.size())) continue;
      OFL_RETURN_IF_ERROR(internal::Changed(t));
    }
    return OkStatus();
  }

  OpCall& call_;
  const OpDef& def_;
  size_t alone_, length_;
  TensorList shards_;
  std::vector<Aside> aside_;
};

}  // namespace

Status internal::DispatchGlobalLists(OpCall& call) { return ListCall(call).Run(); }

}  // namespace oneflow_lite
