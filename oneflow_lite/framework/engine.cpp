// SPDX-License-Identifier: Apache-2.0
//
// The backward pass: nodes in the order of their dependencies, the latest forward first. All state
// of a pass is local to it, so that passes may run in several threads and inside each other.
#include "oneflow_lite/framework/engine.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/profiler.h"

namespace oneflow_lite::autograd {
namespace {

// The passes of this thread that are inside each other, and what follows the outermost.
struct PassesHere {
  int depth = 0;
  std::vector<PassEnd> ends;
};
thread_local PassesHere passes_here;

class PassScope {
 public:
  PassScope() { ++passes_here.depth; }
  ~PassScope() {
    if (--passes_here.depth == 0) passes_here.ends.clear();
  }
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;
  // What a pass gives that ends as `s` says.
  static Status End(Status s) {
    if (passes_here.depth > 1) return s;
    // One that is added by another comes after it.
    for (size_t i = 0; i < passes_here.ends.size(); ++i) {
      const PassEnd end = std::move(passes_here.ends[i]);
      const Status ended = end(s.ok());
      if (s.ok()) s = ended;
    }
    return s;
  }
};

class Pass {
 public:
  Pass(bool retain_graph, bool create_graph) : retain_graph_(retain_graph), grad_(create_graph) {}

  // A gradient that enters the graph at an output's edge.
  Status AddRoot(const Edge& edge, Tensor grad) {
    roots_.push_back(edge.node);
    return Deliver(edge, std::move(grad), nullptr);
  }
  // Gradients() wants what arrives at this edge; leaves it does not name stay alone.
  void Capture(const Edge& edge, Tensor* out) {
    captures_[edge.node.get()].push_back({edge.slot, out});
    limited_ = true;
  }
  // Backward() names this accumulator; others do not run.
  void Accumulate(const Ref<Node>& accumulator) {
    accumulators_.insert(accumulator.get());
    limited_ = true;
  }

  Status Run() {
    const PassScope scope;
    return PassScope::End(RunNodes());
  }

 private:
  Status RunNodes() {
    const AutocastPause as_recorded;
    CountDependencies();
    if (limited_) FindWanted();
    std::unordered_set<Node*> started;  // a node may be the root of several outputs
    for (const Ref<Node>& root : roots_) {
      if (dependencies_[root.get()] == 0 && started.insert(root.get()).second) ready_.push({root});
    }
    while (!ready_.empty()) {
      const Ref<Node> node = ready_.top().node;
      ready_.pop();
      OFL_RETURN_IF_ERROR(RunNode(node));
    }
    return OkStatus();
  }

  struct Ready {
    Ref<Node> node;
    bool operator<(const Ready& o) const { return node->sequence < o.node->sequence; }
  };
  struct CaptureSlot {
    uint32_t slot;
    Tensor* out;
  };

  // How many edges of the graph below the roots lead to each node.
  void CountDependencies() {
    std::vector<Node*> stack;
    std::unordered_set<Node*> seen;
    for (const Ref<Node>& root : roots_) {
      if (seen.insert(root.get()).second) stack.push_back(root.get());
    }
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      order_.push_back(node);
      for (const Edge& e : node->edges) {
        if (!e.node) continue;
        ++dependencies_[e.node.get()];
        if (seen.insert(e.node.get()).second) stack.push_back(e.node.get());
      }
    }
  }

  // Nodes from which what was named can be reached: the others need not run.
  void FindWanted() {
    std::unordered_map<Node*, std::vector<Node*>> users;
    for (Node* node : order_) {
      for (const Edge& e : node->edges) {
        if (e.node) users[e.node.get()].push_back(node);
      }
    }
    std::vector<Node*> stack;
    for (const auto& [node, unused] : captures_) stack.push_back(node);
    stack.insert(stack.end(), accumulators_.begin(), accumulators_.end());
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (!wanted_.insert(node).second) continue;
      for (Node* user : users[node]) stack.push_back(user);
    }
  }

  static Status RunHook(const GradHook& hook, Tensor* grad) {
    if (!grad->defined()) return OkStatus();
    OFL_ASSIGN_OR_RETURN(Tensor changed, hook(*grad));
    if (!changed.defined()) return OkStatus();
    if (changed.shape() != grad->shape()) {
      return ShapeMismatch("register_hook", "what the hook gave", changed.shape(),
                           grad->shape().ToString());
    }
    if (changed.dtype() != grad->dtype()) {
      return DTypeMismatch("register_hook", "what the hook gave", changed.dtype(),
                           Name(grad->dtype()));
    }
    if (changed.device() != grad->device()) {
      return DeviceMismatch("register_hook", "what the hook gave", changed.device(), "the gradient",
                            grad->device());
    }
    OFL_RETURN_IF_ERROR(CheckOnePlacement("register_hook", changed, *grad));
    *grad = std::move(changed);
    return OkStatus();
  }

  static Status RunHooks(const HookTable::Hooks* hooks, TensorList* grads) {
    if (!hooks) return OkStatus();
    for (const auto& hook : *hooks) {
      OFL_RETURN_IF_ERROR(RunHook(hook->call, &(*grads)[hook->slot]));
    }
    return OkStatus();
  }

  // On the node's stream, which made the gradients and goes on with what the hooks give. The
  // caller's may read what they kept.
  static Status RunHooksOf(const Node& node, TensorList* grads) {
    const auto list = node.hooks.Get();
    if (!list) return OkStatus();
    {
      std::optional<StreamGuard> on_stream;
      if (node.stream) on_stream.emplace(node.stream);
      OFL_RETURN_IF_ERROR(RunHooks(list.get(), grads));
    }
    if (!node.stream) return OkStatus();
    for (const Tensor& g : *grads) OFL_RETURN_IF_ERROR(HandToCaller(g, *node.stream));
    for (const auto& hook : *list) {
      if (!hook->tensor) continue;
      OFL_RETURN_IF_ERROR(HandToCaller(ReadSlot(*hook->tensor), *node.stream));
    }
    return OkStatus();
  }

  Status RunNode(const Ref<Node>& node) {
    GradGuard grad_mode(grad_);  // of hooks, too
    TensorList grads = std::move(buffers_[node.get()]);
    buffers_.erase(node.get());
    grads.resize(node->num_outputs);
    OFL_RETURN_IF_ERROR(RunHooksOf(*node, &grads));
    const Tensor leaf = LeafOf(*node);
    if (leaf.defined()) {
      const auto hooks = MetaOf(leaf).hooks.Get();
      OFL_RETURN_IF_ERROR(RunHooks(hooks.get(), &grads));
    }
    const bool run = !limited_ || accumulators_.count(node.get()) || NeedsRun(*node);
    if (auto it = captures_.find(node.get()); it != captures_.end()) {
      OFL_RETURN_IF_ERROR(GiveOut(*node, grads, it->second));
    }
    bool any = false;
    for (const Tensor& g : grads) any = any || g.defined();
    TensorList results;
    if (run && any) {
      OFL_ASSIGN_OR_RETURN(results, RunBackward(*node, grads));
      if (leaf.defined() && RequiresGrad(leaf)) {
        grads.clear();  // a hook may find that .grad is all that holds the gradient
        OFL_RETURN_IF_ERROR(RunPostHooks(leaf));
      }
    }
    grads.clear();
    for (size_t i = 0; i < node->edges.size(); ++i) {
      const Edge& e = node->edges[i];
      if (!e.node) continue;
      if (i < results.size() && results[i].defined()) {
        OFL_RETURN_IF_ERROR(Deliver(e, std::move(results[i]), node->stream.get()));
      }
      if (--dependencies_[e.node.get()] == 0) ready_.push({e.node});
    }
    return OkStatus();
  }

  static Status RunPostHooks(const Tensor& leaf) {
    const auto list = MetaOf(leaf).post_hooks.Get();
    if (!list) return OkStatus();
    for (const auto& hook : *list) OFL_RETURN_IF_ERROR(hook->call(leaf).status());
    return OkStatus();
  }

  // The gradients that Gradients() was asked for, for the caller's stream.
  static Status GiveOut(const Node& node, const TensorList& grads,
                        const std::vector<CaptureSlot>& slots) {
    for (const CaptureSlot& c : slots) {
      const Tensor& grad = grads[c.slot];
      if (node.stream) OFL_RETURN_IF_ERROR(HandToCaller(grad, *node.stream));
      *c.out = grad;
    }
    return OkStatus();
  }

  // Whether something that was named lies beyond this node.
  bool NeedsRun(const Node& node) const {
    for (const Edge& e : node.edges) {
      if (e.node && wanted_.count(e.node.get())) return true;
    }
    return false;
  }

  StatusOr<TensorList> RunBackward(Node& node, absl::Span<const Tensor> grads) {
    GradGuard grad_mode(grad_);  // whatever a hook left
    std::optional<StreamGuard> on_stream;
    if (node.stream) on_stream.emplace(node.stream);
    const NodeSpan span(node);
    const GlobalScope scope(grads);  // what a gradient's formula makes goes with it
    OFL_ASSIGN_OR_RETURN(TensorList results, node.Backward(grads));
    if (!retain_graph_) node.ReleaseSaved();
    return results;
  }

  // What is given to `to` from now on waits for what `from` was given so far, which made grad.
  static Status HandOver(const Tensor& grad, Stream& from, Stream& to) {
    if (&from == &to) return OkStatus();
    OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(from.device()));
    OFL_ASSIGN_OR_RETURN(Ref<Event> event, backend->NewEvent(from.device().index, false));
    OFL_RETURN_IF_ERROR(event->Record(from));
    OFL_RETURN_IF_ERROR(event->Wait(to));
    return backend->RecordStream(grad.storage()->data(), to);
  }

  static Status HandToCaller(const Tensor& grad, Stream& from) {
    if (!grad.defined()) return OkStatus();
    OFL_ASSIGN_OR_RETURN(Stream * current, CurrentStream(grad.device()));
    return HandOver(grad, from, *current);
  }

  // Adds a gradient into the buffer of the node that the edge leads to; `from` is the stream it
  // was made on. What has none, a root's gradient or a leaf, is on the caller's.
  Status Deliver(const Edge& edge, Tensor grad, Stream* from) {
    TensorList& buffer = buffers_[edge.node.get()];
    if (buffer.size() < edge.node->num_outputs) buffer.resize(edge.node->num_outputs);
    if (grad.device().type == DeviceType::kCUDA) {
      OFL_ASSIGN_OR_RETURN(Stream * current, CurrentStream(grad.device()));
      Stream* const to = edge.node->stream.get();
      OFL_RETURN_IF_ERROR(HandOver(grad, from ? *from : *current, to ? *to : *current));
    }
    Tensor& slot = buffer[edge.slot];
    if (!slot.defined()) {
      slot = std::move(grad);
      return OkStatus();
    }
    GradGuard grad_mode(grad_);
    std::optional<StreamGuard> on_stream;
    if (edge.node->stream) on_stream.emplace(edge.node->stream);
    OFL_ASSIGN_OR_RETURN(slot, AddTensors(slot, grad));
    return OkStatus();
  }

  bool retain_graph_;
  bool grad_;
  bool limited_ = false;  // to what captures_ and accumulators_ name
  std::vector<Ref<Node>> roots_;
  std::vector<Node*> order_;
  std::unordered_map<Node*, int64_t> dependencies_;
  std::unordered_map<Node*, TensorList> buffers_;
  std::unordered_map<Node*, std::vector<CaptureSlot>> captures_;
  std::unordered_set<Node*> accumulators_, wanted_;
  std::priority_queue<Ready> ready_;
};

StatusOr<Tensor> RootGradient(const char* function, const Tensor& output,
                              absl::Span<const Tensor> grads, size_t i) {
  if (!grads.empty() && grads[i].defined()) {
    const Tensor& g = grads[i];
    if (g.shape() != output.shape()) {
      return ShapeMismatch(function, "the gradient", g.shape(), output.shape().ToString());
    }
    if (g.dtype() != output.dtype()) {
      return DTypeMismatch(function, "the gradient", g.dtype(), Name(output.dtype()));
    }
    if (g.device() != output.device()) {
      return DeviceMismatch(function, "the gradient", g.device(), "the output", output.device());
    }
    OFL_RETURN_IF_ERROR(CheckOnePlacement(function, g, output));
    return g;
  }
  if (output.numel() != 1) {
    return Error(ErrorKind::kRuntime, function, "(): a gradient must be given for ",
                 Describe(output), ": only one with a single element has a gradient of its own");
  }
  const GlobalScope scope(absl::MakeConstSpan(&output, 1));
  return FullOf(SpecOf(output), 1);
}

Status AddRoots(const char* function, absl::Span<const Tensor> outputs,
                absl::Span<const Tensor> grads, Pass* pass) {
  if (!grads.empty() && grads.size() != outputs.size()) {
    return Error(ErrorKind::kValue, function, "(): ", grads.size(), " gradients for ",
                 outputs.size(), " outputs");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) return NotDefined(function, absl::StrCat("output ", i));
    OFL_RETURN_IF_ERROR(RefreshView(outputs[i]));
    const Edge edge = GradientEdge(outputs[i]);
    if (!edge.node) {
      return Error(ErrorKind::kRuntime, function, "(): ", Describe(outputs[i]),
                   " does not require grad and has no history");
    }
    OFL_ASSIGN_OR_RETURN(Tensor grad, RootGradient(function, outputs[i], grads, i));
    OFL_RETURN_IF_ERROR(pass->AddRoot(edge, std::move(grad)));
  }
  return OkStatus();
}

StatusOr<Edge> EdgeOfInput(const char* function, absl::Span<const Tensor> inputs, size_t i) {
  if (!inputs[i].defined()) return NotDefined(function, absl::StrCat("input ", i));
  OFL_RETURN_IF_ERROR(RefreshView(inputs[i]));
  Edge edge = GradientEdge(inputs[i]);
  if (edge.node) return edge;
  return Error(ErrorKind::kRuntime, function, "(): input ", i, ", ", Describe(inputs[i]),
               ", does not require grad");
}

}  // namespace

StatusOr<Tensor> FullOf(const TensorSpec& spec, double value) {
  static const OpExpr& full = OpBuilder("full")
                                  .Output("out")
                                  .Attr("shape")
                                  .Attr("value")
                                  .Attr("dtype")
                                  .Attr("device")
                                  .Get();
  return Call(full, {}, {spec.shape.dims(), Scalar(value), spec.dtype, spec.device});
}

StatusOr<Tensor> ZerosOf(const TensorSpec& spec) { return FullOf(spec, 0); }

Status AddPassEnd(PassEnd end) {
  if (passes_here.depth == 0) {
    return Error(ErrorKind::kRuntime, "after_backward(): no backward is under way on this thread");
  }
  if (!end) return BadValue("after_backward", "the function", "empty", "a function");
  passes_here.ends.push_back(std::move(end));
  return OkStatus();
}

Status Backward(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads, bool retain_graph,
                bool create_graph, absl::Span<const Tensor> inputs) {
  Pass pass(retain_graph || create_graph, create_graph);
  TensorList captured(inputs.size());
  std::vector<Ref<Node>> ends;  // keep the accumulators alive during the pass
  for (size_t i = 0; i < inputs.size(); ++i) {
    OFL_ASSIGN_OR_RETURN(const Edge edge, EdgeOfInput("backward", inputs, i));
    ends.push_back(edge.node);
    const auto before = inputs.first(i);
    if (LeafOf(*edge.node).defined()) {
      pass.Accumulate(edge.node);
    } else if (std::none_of(before.begin(), before.end(),
                            [&](const Tensor& t) { return t.IsSame(inputs[i]); })) {
      pass.Capture(edge, &captured[i]);
    }
  }
  OFL_RETURN_IF_ERROR(AddRoots("backward", outputs, grads, &pass));
  OFL_RETURN_IF_ERROR(pass.Run());
  GradGuard grad_mode(create_graph);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!captured[i].defined() || Find(inputs[i])->retained) continue;
    if (const Tensor before = Grad(inputs[i]); before.defined()) {
      OFL_ASSIGN_OR_RETURN(captured[i], AddTensors(before, captured[i]));
    }
    OFL_RETURN_IF_ERROR(SetGrad(inputs[i], std::move(captured[i])));
  }
  return OkStatus();
}

StatusOr<TensorList> Gradients(absl::Span<const Tensor> outputs, absl::Span<const Tensor> inputs,
                               absl::Span<const Tensor> grads, bool retain_graph, bool create_graph,
                               bool allow_unused) {
  Pass pass(retain_graph || create_graph, create_graph);
  TensorList results(inputs.size());
  absl::InlinedVector<Edge, 2> edges;  // keep the accumulators alive during the pass
  for (size_t i = 0; i < inputs.size(); ++i) {
    OFL_ASSIGN_OR_RETURN(Edge edge, EdgeOfInput("grad", inputs, i));
    edges.push_back(std::move(edge));
    pass.Capture(edges[i], &results[i]);
  }
  OFL_RETURN_IF_ERROR(AddRoots("grad", outputs, grads, &pass));
  OFL_RETURN_IF_ERROR(pass.Run());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (results[i].defined()) {
      OFL_RETURN_IF_ERROR(CheckOnePlacement("grad", results[i], inputs[i]));
    } else if (!allow_unused) {
      return Error(ErrorKind::kRuntime, "grad(): no output depends on input ", i,
                   "; pass allow_unused=True to get None for it");
    }
  }
  return results;
}

}  // namespace oneflow_lite::autograd
