// SPDX-License-Identifier: Apache-2.0
//
// The global mode: a tensor that is spread over a placement. Its TensorImpl has the logical shape
// and storage without memory; what lies on this process is `local`. Autograd stands above the mode
// and sees logical tensors alone. The mode chooses one of the op's signatures for each dim of the
// grid, moves the inputs where it wants them (boxing), and runs the op on the shards.
//
//   OFL_ASSIGN_OR_RETURN(Tensor x, functional::ToGlobal(shard, p, {Sbp::Split(0)}));
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Matmul(x, w));   // y is global
#pragma once

#include <atomic>

#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/placement.h"

namespace oneflow_lite {

struct GlobalSpec {
  PlacementRef placement;
  NdSbp sbp;
  Tensor local;              // undefined where this process takes no part
  bool copied = false;       // a view whose elements had to move, in memory of its own
  mutable uint32_t cut = 0;  // the version whose elements it has: a later one is not in them
  // Of a view, the tensor that it and what it was cut from are views of. Null of other tensors.
  std::shared_ptr<const GlobalSpec> root = nullptr;
  Shape root_shape = {};
};

// Null for a local tensor.
inline const GlobalSpec* GlobalOf(const Tensor& t) {
  return t.defined() ? t.impl()->global_spec.get() : nullptr;
}

// Whether this process holds elements of t: false on a rank that is not of t's placement.
inline bool TakesPart(const Tensor& t) {
  const GlobalSpec* g = GlobalOf(t);
  return !g || g->local.defined();
}

// "a local tensor", or "on" its placement.
OFL_API std::string PlaceOf(const Tensor& t);
// RuntimeError where a gradient of t is not as local as t, or on another placement.
OFL_API Status CheckOnePlacement(absl::string_view op, const Tensor& grad, const Tensor& t);

// RuntimeError for a view whose elements had to move, and are others by now: for what may not talk
// to other ranks. Ops cut it anew.
OFL_API Status CheckFresh(absl::string_view op, const Tensor& t);

// A tensor of that logical shape; `local` is this process's shard.
OFL_API Tensor MakeGlobal(const Shape& shape, DType dtype, GlobalSpec spec);

// The tensor in another placement or SBP, outside autograd; itself where nothing changes. All ranks
// of both placements call it.
OFL_API StatusOr<Tensor> Box(const Tensor& t, PlacementRef placement, const NdSbp& sbp);
// All elements, dense, in a local tensor: a collective where t is global, t itself where it is not.
// RuntimeError on a rank that is not of t's placement.
OFL_API StatusOr<Tensor> Whole(absl::string_view op, const Tensor& t);

// While it stands, what ops of no tensors make on this thread (full, arange, randn) is global, on
// this placement: split as `sbp` says where the op can be, else whole everywhere. So what a
// function makes for its global arguments goes with them. A null placement: it
// is local.
class OFL_API GlobalScope {
 public:
  GlobalScope(PlacementRef placement, NdSbp sbp);
  // Of the first global one among them, whole everywhere; undefined tensors count as local.
  explicit GlobalScope(absl::Span<const Tensor> tensors);
  ~GlobalScope();
  GlobalScope(const GlobalScope&) = delete;

  struct Target {
    PlacementRef placement = nullptr;
    NdSbp sbp;
  };
  // Null where there is none.
  static const Target* Current();

 private:
  Target target_;
  const Target* previous_;
};

// Whether this process has made a global tensor so far: until then nobody looks for one.
OFL_API extern std::atomic<bool> any_global;

// How an op with these inputs runs: for flow.ops.describe and for tests.
struct GlobalPlan {
  PlacementRef placement = nullptr;
  absl::InlinedVector<NdSbp, 4> inputs;      // what each is moved to
  absl::InlinedVector<NdSbp, 2> outputs;     // what comes out
  absl::InlinedVector<TensorSpec, 2> specs;  // of the logical outputs
  Attrs attrs;                               // of this process's shard
  double weight = 1;                         // what its partial sums are multiplied by
  double bytes = 0;                          // that each rank sends for it
  bool aside = false;  // the input that changes is moved, and the result moved back into it
};
OFL_API StatusOr<std::shared_ptr<const GlobalPlan>> PlanOf(const OpCall& call);

// The bytes that each of `parts` ranks sends to bring a tensor of `bytes` from one SBP to another.
// Infinite for what is never done unasked, to make partial sums of what is none.
OFL_API double BoxingBytes(const Shape& shape, double bytes, const Sbp& from, const Sbp& to,
                           int parts);

namespace internal {

Status DispatchGlobal(OpCall& call);       // global.cpp
Status DispatchGlobalLists(OpCall& call);  // global_lists.cpp

// global_views.cpp. All ranks of the placement call both.
// Brings a view whose elements had to move up to date; of other tensors there is nothing to do.
Status CutAnew(const Tensor& t);
// An op wrote t's shard: t has a new version, and what it is a view of has the elements.
Status Changed(const Tensor& t);

// Moves shards; set once by the layer that knows the collectives. Undefined tensors stand for the
// shards of ranks that take no part.
struct Boxing {
  const Shape& shape;  // logical
  DType dtype;
  PlacementRef from;
  const NdSbp& from_sbp;
  PlacementRef to;
  const NdSbp& to_sbp;
};
struct Movers {
  StatusOr<Tensor> (*box)(const Tensor& local, const Boxing& move) = nullptr;
  // What each rank of the world gives, by rank; all of them call it. As many numbers from each.
  StatusOr<std::vector<Dims>> (*exchange)(DeviceType type, const Dims& numbers) = nullptr;
  // Each element becomes the largest that a rank of the placement has; all of them call it.
  Status (*maximum)(const Tensor& local, PlacementRef placement) = nullptr;
};
OFL_API bool SetMovers(Movers movers);
OFL_API const Movers& GetMovers();
// Undefined for a process that takes no part.
StatusOr<Tensor> Move(const Tensor& local, const Boxing& move);

// Runs an op of one output on local tensors, below autograd and every mode.
OFL_API StatusOr<Tensor> RunLocal(const OpExpr& op, absl::Span<const Tensor> inputs,
                                  const Attrs& attrs = {});
// A copy, and the tensor itself where it is dense.
OFL_API StatusOr<Tensor> CopyOf(const Tensor& local);
OFL_API StatusOr<Tensor> DenseOf(const Tensor& local);
OFL_API Status CopyLocal(const Tensor& to, const Tensor& from);

}  // namespace internal
}  // namespace oneflow_lite
