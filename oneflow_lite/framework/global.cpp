// SPDX-License-Identifier: Apache-2.0
//
// Global tensors, and how one op runs on them once global_plan.cpp has said how.
#include "oneflow_lite/framework/global.h"

#include <utility>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

thread_local const GlobalScope::Target* scope = nullptr;

// What an op's shards need is local, wherever the call came from.
class WithoutScope {
 public:
  WithoutScope() : previous_(std::exchange(scope, nullptr)) {}
  ~WithoutScope() { scope = previous_; }
  WithoutScope(const WithoutScope&) = delete;

 private:
  const GlobalScope::Target* previous_;
};

NdSbp WholeOn(const Placement& p) { return NdSbp(p.ndim(), Sbp::Broadcast()); }

StatusOr<Tensor> Zero(DType dtype) {
  OFL_ASSIGN_OR_RETURN(Tensor zero, Tensor::Empty(Shape{}, dtype, Device{}));
  VisitAll(dtype, [&]<class T>(Tag<T>) { *zero.data<T>() = static_cast<T>(0); });
  return zero;
}

// Multiplies in place; what counts nothing becomes 0, whatever it was.
Status Weigh(const Tensor& t, double weight) {
  static const OpExpr& fill = OpBuilder("fill_").Input("self").Output("out").Attr("value").Get();
  static const OpExpr& mul = OpBuilder("mul_").Input("self").Input("other").Output("out").Get();
  if (weight == 0) return internal::RunLocal(fill, {&t, 1}, {Scalar(0)}).status();
  OFL_ASSIGN_OR_RETURN(Tensor factor, Tensor::Empty(Shape{}, ComputeType(t.dtype()), Device{}));
  VisitAll(factor.dtype(), [&]<class T>(Tag<T>) { *factor.data<T>() = static_cast<T>(weight); });
  const Tensor inputs[] = {t, factor};
  return internal::RunLocal(mul, inputs).status();
}

// Whether this process is one that gives 0 to a sum of what lies whole on the first rank.
bool GivesZero(const NdSbp& sbp, const Placement& p) {
  const GridPlace here = p.Here();
  for (size_t d = 0; d < here.size(); ++d) {
    if (sbp[d].kind == Sbp::Kind::kPartialSum && here[d] > 0) return true;
  }
  return false;
}

// The shard of an input as the plan wants it. A number, the same on all ranks, counts once in a
// sum.
StatusOr<Tensor> ShardFor(const Tensor& t, const NdSbp& want, PlacementRef placement) {
  const GlobalSpec* g = GlobalOf(t);
  if (!g) return t.defined() && GivesZero(want, *placement) ? Zero(t.dtype()) : t;
  OFL_RETURN_IF_ERROR(internal::CutAnew(t));
  if (g->sbp == want) return g->local;
  return internal::Move(g->local, {t.shape(), t.dtype(), placement, g->sbp, placement, want});
}

// The view on the shard. A shard that lies in other strides than the logical tensor may have to be
// copied; `copied` says so.
Status RunView(OpCall& call, bool* copied) {
  Tensor shard = call.inputs[0];
  const bool by_strides = !call.op.def().sbp;  // as_strided: they are those of a dense tensor
  if (by_strides && !shard.is_contiguous()) {
    OFL_ASSIGN_OR_RETURN(shard, internal::DenseOf(shard));
    *copied = true;
  }
  OpCall again{call.op, absl::MakeConstSpan(&shard, 1), call.attrs, call.outputs};
  const Status s = internal::DispatchBackend(again);
  if (s.ok() || shard.is_contiguous()) return s;
  OFL_ASSIGN_OR_RETURN(shard, internal::DenseOf(shard));
  *copied = true;
  return internal::DispatchBackend(again);
}

// Infer promised this for the shard, and every rank counts on it.
Status CheckShard(const OpDef& def, const Tensor& shard, const Shape& whole, const Placement& p,
                  const NdSbp& sbp) {
  const Shape expected = ShardOf(whole, p, sbp, p.Here());
  if (shard.shape() == expected) return OkStatus();
  return Error(ErrorKind::kRuntime, def.name, "(): the signature to ", ToString(sbp), " (",
               def.file, ":", def.line, ") promises a shard of shape ", expected.ToString(),
               ", but the op gave ", shard.shape().ToString());
}

class GlobalCall {
 public:
  GlobalCall(OpCall& call, const GlobalPlan& plan)
      : call_(call), def_(call.op.def()), plan_(plan), here_(!plan.placement->Here().empty()) {}

  Status Run() {
    absl::InlinedVector<Tensor, 4> shards;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      OFL_ASSIGN_OR_RETURN(Tensor shard,
                           ShardFor(call_.inputs[i], plan_.inputs[i], plan_.placement));
      shards.push_back(std::move(shard));
    }
    TensorList outputs;
    bool copied = false;
    if (here_) {
      OpCall local{call_.op, shards, plan_.attrs, &outputs};
      OFL_RETURN_IF_ERROR(def_.views() ? RunView(local, &copied)
                                       : internal::DispatchBackend(local));
      if (plan_.weight != 1) {
        for (const Tensor& t : outputs) OFL_RETURN_IF_ERROR(Weigh(t, plan_.weight));
      }
    }
    outputs.resize(plan_.outputs.size());
    if (def_.mutates()) return WriteBack(std::move(outputs[0]));
    if (def_.views()) return WrapView(std::move(outputs[0]), copied);
    for (size_t i = 0; i < outputs.size(); ++i) {
      OFL_RETURN_IF_ERROR(Wrap(std::move(outputs[i]), static_cast<int>(i)));
    }
    return OkStatus();
  }

 private:
  Status Wrap(Tensor shard, int i) {
    Shape shape = plan_.specs[i].shape;
    if (here_ && def_.data_dependent_shape) {
      shape = shard.shape();  // whole everywhere
    } else if (here_) {
      OFL_RETURN_IF_ERROR(CheckShard(def_, shard, shape, *plan_.placement, plan_.outputs[i]));
    } else if (def_.data_dependent_shape) {
      return Error(ErrorKind::kRuntime, def_.name,
                   "(): the shape of its result is in the data, on ", plan_.placement->ToString(),
                   ", of which this rank is none");
    }
    call_.outputs->push_back(MakeGlobal(
        shape, plan_.specs[i].dtype, {plan_.placement, plan_.outputs[i], std::move(shard), false}));
    return OkStatus();
  }

  Status WrapView(Tensor shard, bool copied) {
    const Tensor& base = call_.inputs[0];
    const GlobalSpec& from = *GlobalOf(base);
    OFL_ASSIGN_OR_RETURN(Geometry g, def_.view(base, call_.attrs));
    if (here_) {
      OFL_RETURN_IF_ERROR(CheckShard(def_, shard, g.shape, *plan_.placement, plan_.outputs[0]));
    }
    Tensor view = base.WithGeometry(std::move(g.shape), std::move(g.strides), g.offset);
    copied = copied || from.copied || from.sbp != plan_.inputs[0];
    view.impl()->global_spec = std::make_shared<GlobalSpec>(
        GlobalSpec{plan_.placement, plan_.outputs[0], std::move(shard), copied, base.version(),
                   from.root ? from.root : base.impl()->global_spec,
                   from.root ? from.root_shape : base.shape()});
    call_.outputs->push_back(std::move(view));
    return OkStatus();
  }

  Status WriteBack(Tensor shard) {
    const Tensor& self = call_.inputs[0];
    const GlobalSpec& g = *GlobalOf(self);
    if (plan_.aside) {
      OFL_ASSIGN_OR_RETURN(Tensor moved,
                           internal::Move(shard, {self.shape(), self.dtype(), plan_.placement,
                                                  plan_.outputs[0], plan_.placement, g.sbp}));
      if (here_) OFL_RETURN_IF_ERROR(internal::CopyLocal(g.local, moved));
    }
    OFL_RETURN_IF_ERROR(internal::Changed(self));
    call_.outputs->push_back(self);
    return OkStatus();
  }

  OpCall& call_;
  const OpDef& def_;
  const GlobalPlan& plan_;
  const bool here_;  // whether this process has a shard
};

}  // namespace

std::atomic<bool> any_global{false};

Tensor MakeGlobal(const Shape& shape, DType dtype, GlobalSpec spec) {
  if (!any_global.load(std::memory_order_relaxed)) any_global = true;
  const size_t nbytes = static_cast<size_t>(shape.numel()) * SizeOf(dtype);
  auto storage = Storage::FromExternal(nullptr, nbytes, spec.placement->device(), nullptr, nullptr);
  auto impl = MakeRef<TensorImpl>(std::move(storage), shape, ContiguousStrides(shape), 0, dtype);
  impl->global_spec = std::make_shared<GlobalSpec>(std::move(spec));
  return Tensor(std::move(impl));
}

std::string PlaceOf(const Tensor& t) {
  const GlobalSpec* g = GlobalOf(t);
  return g ? "on " + g->placement->ToString() : "a local tensor";
}

Status CheckOnePlacement(absl::string_view op, const Tensor& grad, const Tensor& t) {
  const GlobalSpec *g = GlobalOf(grad), *of = GlobalOf(t);
  if (g == of || (g && of && g->placement == of->placement)) return OkStatus();
  return Error(ErrorKind::kRuntime, op, "(): the gradient is ", PlaceOf(grad), ", but the tensor ",
               PlaceOf(t), "; local and global tensors do not mix");
}

StatusOr<Tensor> Box(const Tensor& t, PlacementRef placement, const NdSbp& sbp) {
  const GlobalSpec* g = GlobalOf(t);
  OFL_CHECK(g != nullptr);
  OFL_RETURN_IF_ERROR(internal::CutAnew(t));
  if (g->placement == placement && g->sbp == sbp) return t;
  OFL_ASSIGN_OR_RETURN(Tensor local, internal::Move(g->local, {t.shape(), t.dtype(), g->placement,
                                                               g->sbp, placement, sbp}));
  return MakeGlobal(t.shape(), t.dtype(), {placement, sbp, std::move(local), false});
}

StatusOr<Tensor> Whole(absl::string_view op, const Tensor& t) {
  const GlobalSpec* g = GlobalOf(t);
  if (!g) return t;
  OFL_RETURN_IF_ERROR(internal::CutAnew(t));
  OFL_ASSIGN_OR_RETURN(Tensor whole, Box(t, g->placement, WholeOn(*g->placement)));
  const Tensor& local = GlobalOf(whole)->local;
  if (local.defined()) return internal::DenseOf(local);
  return Error(ErrorKind::kRuntime, op, "(): ", Describe(t), " lies on ", g->placement->ToString(),
               ", of which this rank is none");
}

GlobalScope::GlobalScope(PlacementRef placement, NdSbp sbp)
    : target_{placement, std::move(sbp)}, previous_(scope) {
  scope = placement ? &target_ : nullptr;
}
GlobalScope::GlobalScope(absl::Span<const Tensor> tensors) : previous_(scope) {
  for (const Tensor& t : tensors) {
    if (const GlobalSpec* g = GlobalOf(t)) {
      target_ = {g->placement, WholeOn(*g->placement)};
      scope = &target_;
      return;
    }
  }
}
GlobalScope::~GlobalScope() { scope = previous_; }
const GlobalScope::Target* GlobalScope::Current() { return scope; }

namespace internal {
namespace {
Movers& TheMovers() {
  static Movers movers;
  return movers;
}
}  // namespace

bool SetMovers(Movers movers) {
  TheMovers() = movers;
  return true;
}
const Movers& GetMovers() { return TheMovers(); }

StatusOr<Tensor> Move(const Tensor& local, const Boxing& move) {
  OFL_CHECK(TheMovers().box != nullptr);
  return TheMovers().box(local, move);
}

StatusOr<Tensor> RunLocal(const OpExpr& op, absl::Span<const Tensor> inputs, const Attrs& attrs) {
  const WithoutScope local;
  TensorList outputs;
  OpCall call{op, inputs, attrs, &outputs};
  OFL_RETURN_IF_ERROR(DispatchBackend(call));
  return std::move(outputs[0]);
}

StatusOr<Tensor> CopyOf(const Tensor& local) {
  static const OpExpr& cast = OpBuilder("cast").Input("in").Output("out").Attr("dtype").Get();
  return RunLocal(cast, {&local, 1}, {local.dtype()});
}

StatusOr<Tensor> DenseOf(const Tensor& local) {
  return local.is_contiguous() ? StatusOr<Tensor>(local) : CopyOf(local);
}

Status CopyLocal(const Tensor& to, const Tensor& from) {
  static const OpExpr& copy = OpBuilder("copy_").Input("self").Input("src").Output("out").Get();
  const Tensor inputs[] = {to, from};
  return RunLocal(copy, inputs).status();
}

}  // namespace internal

Status internal::DispatchGlobal(OpCall& call) {
  std::shared_ptr<const GlobalPlan> plan;
  if (call.op.def().lists.empty()) {
    OFL_ASSIGN_OR_RETURN(plan, PlanOf(call));
  }
  const WithoutScope local;
  return plan ? GlobalCall(call, *plan).Run() : DispatchGlobalLists(call);
}

}  // namespace oneflow_lite
