// SPDX-License-Identifier: Apache-2.0
//
// The backward pass: nodes in the order of their dependencies, the latest forward first. All state
// of a pass is local to it, so that passes may run in several threads and inside each other.
#include "oneflow_lite/framework/engine.h"

#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"

namespace oneflow_lite::autograd {
namespace {

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
  }

  Status Run() {
    CountDependencies();
    if (!captures_.empty()) FindWanted();
    for (const Ref<Node>& root : roots_) {
      if (dependencies_[root.get()] == 0) Enqueue(root);
    }
    while (!ready_.empty()) {
      const Ref<Node> node = ready_.top().node;
      ready_.pop();
      OFL_RETURN_IF_ERROR(RunNode(node));
    }
    return OkStatus();
  }

 private:
  struct Ready {
    Ref<Node> node;
    bool operator<(const Ready& o) const { return node->sequence < o.node->sequence; }
  };
  struct CaptureSlot {
    uint32_t slot;
    Tensor* out;
  };

  void Enqueue(const Ref<Node>& node) {
    if (queued_.insert(node.get()).second) ready_.push({node});
  }

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

  // Nodes from which a captured edge can be reached: the others need not run.
  void FindWanted() {
    std::unordered_map<Node*, std::vector<Node*>> users;
    for (Node* node : order_) {
      for (const Edge& e : node->edges) {
        if (e.node) users[e.node.get()].push_back(node);
      }
    }
    std::vector<Node*> stack;
    for (const auto& [node, unused] : captures_) stack.push_back(node);
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
    *grad = std::move(changed);
    return OkStatus();
  }

  Status RunNode(const Ref<Node>& node) {
    TensorList grads = std::move(buffers_[node.get()]);
    buffers_.erase(node.get());
    grads.resize(node->num_outputs);
    for (const auto& [slot, hook] : node->hooks) OFL_RETURN_IF_ERROR(RunHook(hook, &grads[slot]));
    if (const Tensor leaf = LeafOf(*node); leaf.defined()) {
      for (const GradHook& hook : MetaOf(leaf).hooks) {
        OFL_RETURN_IF_ERROR(RunHook(hook, &grads[0]));
      }
    }
    bool run = captures_.empty() || NeedsRun(*node);
    if (auto it = captures_.find(node.get()); it != captures_.end()) {
      OFL_RETURN_IF_ERROR(GiveOut(*node, grads, it->second));
    }
    bool any = false;
    for (const Tensor& g : grads) any = any || g.defined();
    TensorList results;
    if (run && any) {
      OFL_ASSIGN_OR_RETURN(results, RunBackward(*node, grads));
    }
    grads.clear();
    for (size_t i = 0; i < node->edges.size(); ++i) {
      const Edge& e = node->edges[i];
      if (!e.node) continue;
      if (i < results.size() && results[i].defined()) {
        OFL_RETURN_IF_ERROR(Deliver(e, std::move(results[i]), node->stream.get()));
      }
      if (--dependencies_[e.node.get()] == 0) Enqueue(e.node);
    }
    return OkStatus();
  }

  // The gradients that Gradients() was asked for, for the caller's stream.
  static Status GiveOut(const Node& node, const TensorList& grads,
                        const std::vector<CaptureSlot>& slots) {
    for (const CaptureSlot& c : slots) {
      const Tensor& grad = grads[c.slot];
      if (grad.defined() && node.stream) {
        OFL_ASSIGN_OR_RETURN(Stream * current, CurrentStream(grad.device()));
        OFL_RETURN_IF_ERROR(HandOver(grad, *node.stream, *current));
      }
      *c.out = grad;
    }
    return OkStatus();
  }

  // Whether a captured edge lies beyond this node.
  bool NeedsRun(const Node& node) const {
    for (const Edge& e : node.edges) {
      if (e.node && wanted_.count(e.node.get())) return true;
    }
    return false;
  }

  StatusOr<TensorList> RunBackward(Node& node, absl::Span<const Tensor> grads) {
    GradGuard grad_mode(grad_);
    std::optional<StreamGuard> on_stream;
    if (node.stream) on_stream.emplace(node.stream);
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
  std::vector<Ref<Node>> roots_;
  std::vector<Node*> order_;
  std::unordered_map<Node*, int64_t> dependencies_;
  std::unordered_map<Node*, TensorList> buffers_;
  std::unordered_map<Node*, std::vector<CaptureSlot>> captures_;
  std::unordered_set<Node*> wanted_, queued_;
  std::priority_queue<Ready> ready_;
};

StatusOr<Tensor> RootGradient(const Tensor& output, absl::Span<const Tensor> grads, size_t i) {
  if (!grads.empty() && grads[i].defined()) {
    const Tensor& g = grads[i];
    if (g.shape() != output.shape()) {
      return ShapeMismatch("backward", "the gradient", g.shape(), output.shape().ToString());
    }
    if (g.dtype() != output.dtype()) {
      return DTypeMismatch("backward", "the gradient", g.dtype(), Name(output.dtype()));
    }
    if (g.device() != output.device()) {
      return DeviceMismatch("backward", "the gradient", g.device(), "the output", output.device());
    }
    return g;
  }
  if (output.numel() != 1) {
    return Error(ErrorKind::kRuntime, "backward(): a gradient must be given for ", Describe(output),
                 ": only one with a single element has a gradient of its own");
  }
  static const OpExpr& full = OpBuilder("full")
                                  .Output("out")
                                  .Attr("shape")
                                  .Attr("value")
                                  .Attr("dtype")
                                  .Attr("device")
                                  .Get();
  return Call(full, {}, {output.shape().dims(), Scalar(1.0), output.dtype(), output.device()});
}

Status AddRoots(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads, Pass* pass) {
  if (!grads.empty() && grads.size() != outputs.size()) {
    return Error(ErrorKind::kValue, "backward(): ", grads.size(), " gradients for ", outputs.size(),
                 " outputs");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) return NotDefined("backward", absl::StrCat("output ", i));
    OFL_RETURN_IF_ERROR(RefreshView(outputs[i]));
    const Edge edge = GradientEdge(outputs[i]);
    if (!edge.node) {
      return Error(ErrorKind::kRuntime, "backward(): ", Describe(outputs[i]),
                   " does not require grad and has no history");
    }
    OFL_ASSIGN_OR_RETURN(Tensor grad, RootGradient(outputs[i], grads, i));
    OFL_RETURN_IF_ERROR(pass->AddRoot(edge, std::move(grad)));
  }
  return OkStatus();
}

}  // namespace

Status Backward(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads, bool retain_graph,
                bool create_graph) {
  Pass pass(retain_graph || create_graph, create_graph);
  OFL_RETURN_IF_ERROR(AddRoots(outputs, grads, &pass));
  return pass.Run();
}

StatusOr<TensorList> Gradients(absl::Span<const Tensor> outputs, absl::Span<const Tensor> inputs,
                               absl::Span<const Tensor> grads, bool retain_graph, bool create_graph,
                               bool allow_unused) {
  Pass pass(retain_graph || create_graph, create_graph);
  TensorList results(inputs.size());
  absl::InlinedVector<Edge, 2> edges;  // keep the accumulators alive during the pass
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) return NotDefined("grad", absl::StrCat("input ", i));
    OFL_RETURN_IF_ERROR(RefreshView(inputs[i]));
    edges.push_back(GradientEdge(inputs[i]));
    if (!edges[i].node) {
      return Error(ErrorKind::kRuntime, "grad(): input ", i, ", ", Describe(inputs[i]),
                   ", does not require grad");
    }
    pass.Capture(edges[i], &results[i]);
  }
  OFL_RETURN_IF_ERROR(AddRoots(outputs, grads, &pass));
  OFL_RETURN_IF_ERROR(pass.Run());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!results[i].defined() && !allow_unused) {
      return Error(ErrorKind::kRuntime, "grad(): no output depends on input ", i,
                   "; pass allow_unused=True to get None for it");
    }
  }
  return results;
}

}  // namespace oneflow_lite::autograd
