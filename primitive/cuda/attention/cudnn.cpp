// SPDX-License-Identifier: Apache-2.0
//
// The one file that includes cuDNN's frontend.
#include "primitive/cuda/attention/cudnn.h"

#include <dlfcn.h>

#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "oneflow_lite/core/cuda/cuda_status.h"
#include "oneflow_lite/core/launches.h"
#include "oneflow_lite/core/recent_table.h"
#include "primitive/cudnn_library.h"
#include "primitive/library.h"

namespace oneflow_lite::cuda {
namespace {

// What the frontend opens by itself, where we find libraries: it would take libcudart from the
// system alone, of another release if that is there.
void* OpenForFrontend(const char* name, int flags) {
  if (std::strncmp(name, "libcudart.so.", 13) != 0) return dlopen(name, flags);
  if (std::strcmp(name, "libcudart.so.13") != 0) return nullptr;
  return Library({name}, {"nvidia/cu13/lib", "nvidia/cuda_runtime/lib"}).handle();
}

}  // namespace
}  // namespace oneflow_lite::cuda

#define dlopen(name, flags) oneflow_lite::cuda::OpenForFrontend(name, flags)
#include <cudnn_frontend.h>
#undef dlopen

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace oneflow_lite::cuda {

namespace fe = cudnn_frontend;

class CudnnPlan {
 public:
  fe::graph::Graph graph;
  int64_t workspace = 0;
  bool captured = false;  // a graph's replay runs its kernels
};

namespace {

// Older ones read beyond the tensors where a length is no multiple of 128.
constexpr int64_t kLowestVersion = 91501;
constexpr char kNeeds[] =
    "cuDNN 9.15.1 or newer for CUDA 13 (libcudnn.so.9, from the system or `pip install "
    "nvidia-cudnn-cu13`)";
// Of a plan's workspace. The deterministic gradient takes batch x heads x queries x keys x 2 bytes.
constexpr int64_t kMostWorkspace = int64_t{8} << 30;

CudnnLibrary* Load() {
  auto* library = new CudnnLibrary(OpenCudnn(kLowestVersion));
  if (!library->handle) {
    library->problem = absl::StrCat("there is no ", kNeeds, ": ", library->problem);
    return library;
  }
  fe::cudnn_dlhandle = library->handle;
  // Its kernels are compiled at run time; one that is open already is found by its name.
  Library({"libnvrtc.so.13"}, {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"});
  return library;
}

StatusOr<const CudnnLibrary*> GetLibrary() {
  static const CudnnLibrary* library = [] {
    const CudnnLibrary* loaded = Load();
    WithAttentionUse([&](AttentionUse& use) {
      use.library = loaded->problem.empty() ? loaded->name : loaded->problem;
    });
    return loaded;
  }();
  if (library->problem.empty()) return library;
  return Error(ErrorKind::kNotImplemented, library->problem);
}

// One handle per device, made at first use, kept forever. It holds a stream, so that one thread at
// a time uses it.
struct Handle {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};
Handle& HandleOf(int device) {
  static auto* mutex = new std::mutex;
  static auto* handles = new std::map<int, Handle>;
  std::lock_guard lock(*mutex);
  return (*handles)[device];
}
Status Open(Handle& h) {
  if (h.handle) return OkStatus();
  const cudnnStatus_t status = fe::detail::create_handle(&h.handle);
  if (status == CUDNN_STATUS_SUCCESS) return OkStatus();
  h.handle = nullptr;
  return Error(ErrorKind::kNotImplemented,
               "cuDNN could not start: ", fe::detail::get_error_string(status));
}

// The frontend's errors as Status. It throws where a symbol is missing.
template <class F>
Status Guarded(const char* what, F f) {
  try {
    fe::error_object error = f();
    if (error.is_good()) return OkStatus();
    return Error(ErrorKind::kNotImplemented, "cuDNN: ", what, ": ", error.get_message());
  } catch (const std::exception& e) {
    return Error(ErrorKind::kNotImplemented, "cuDNN: ", what, ": ", e.what());
  }
}

enum Uid : int64_t {
  kQ = 1,
  kK,
  kV,
  kBias,
  kSeed,
  kOffset,
  kQueries,
  kKeys,
  kOut,
  kLse,
  kDOut,
  kDQ,
  kDK,
  kDV
};

using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;
using Strides = AttentionShape::Strides;

// Tensors of one problem in a graph.
class GraphTensors {
 public:
  GraphTensors(fe::graph::Graph& graph, const CudnnProblem& p)
      : graph_(graph), s_(p.shape), p_(p) {}

  TensorPtr Heads(const char* name, Uid uid, int64_t heads, int64_t tokens, int64_t dim,
                  const Strides& strides) {
    return Input(name, uid, {s_.batch, heads, tokens, dim},
                 {strides.batch, strides.head, strides.token, 1}, Io());
  }
  TensorPtr Q() { return Heads("q", kQ, s_.heads, s_.queries, s_.head_dim, s_.q); }
  TensorPtr K() { return Heads("k", kK, s_.kv_heads, s_.keys, s_.head_dim, s_.k); }
  TensorPtr V() { return Heads("v", kV, s_.kv_heads, s_.keys, s_.value_dim, s_.v); }
  TensorPtr Out() { return Heads("out", kOut, s_.heads, s_.queries, s_.value_dim, s_.out); }
  TensorPtr DOut() { return Heads("dout", kDOut, s_.heads, s_.queries, s_.value_dim, s_.dout); }
  TensorPtr Lse() {
    return Input("lse", kLse, {s_.batch, s_.heads, s_.queries, 1}, LseStrides(),
                 fe::DataType_t::FLOAT);
  }
  TensorPtr Bias() {
    const int64_t row = p_.bias_stride, matrix = s_.queries * row;
    return Input("bias", kBias, {s_.mask_batches, s_.mask_heads, s_.queries, s_.keys},
                 {s_.mask_heads * matrix, matrix, row, 1}, Io());
  }
  TensorPtr Number(const char* name, Uid uid) {
    return Input(name, uid, {1, 1, 1, 1}, {1, 1, 1, 1}, fe::DataType_t::INT64);
  }
  TensorPtr Lengths(const char* name, Uid uid) {
    return Input(name, uid, {s_.batch, 1, 1, 1}, {1, 1, 1, 1}, fe::DataType_t::INT32);
  }
  std::vector<int64_t> LseStrides() const { return {s_.heads * s_.queries, s_.queries, 1, 1}; }
  void SetOutput(const TensorPtr& t, Uid uid, int64_t heads, int64_t tokens, int64_t dim,
                 const Strides& strides) {
    t->set_output(true).set_uid(uid).set_data_type(Io());
    t->set_dim({s_.batch, heads, tokens, dim});
    t->set_stride({strides.batch, strides.head, strides.token, 1});
  }
  fe::DataType_t Io() const {
    return p_.dtype == DType::kFloat16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
  }

 private:
  TensorPtr Input(const char* name, Uid uid, std::vector<int64_t> dim, std::vector<int64_t> stride,
                  fe::DataType_t type) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_uid(uid)
                             .set_dim(dim)
                             .set_stride(stride)
                             .set_data_type(type));
  }

  fe::graph::Graph& graph_;
  const AttentionShape& s_;
  const CudnnProblem& p_;
};

// What both passes are told alike.
template <class Options>
void SetOptions(const CudnnProblem& p, GraphTensors& t, Options* options) {
  const AttentionShape& s = p.shape;
  options->set_name("attention").set_attn_scale(static_cast<float>(s.scale));
  if (s.causal != Causal::kNone) {
    options->set_diagonal_alignment(s.causal == Causal::kTopLeft
                                        ? fe::DiagonalAlignment_t::TOP_LEFT
                                        : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
    options->set_diagonal_band_right_bound(0);
  }
  if (s.masked) options->set_bias(t.Bias());
  if (s.dropout > 0) {
    options->set_dropout(static_cast<float>(s.dropout), t.Number("seed", kSeed),
                         t.Number("offset", kOffset));
  }
  if (p.padded) {
    options->set_padding_mask(true);
    options->set_seq_len_q(t.Lengths("queries", kQueries));
    options->set_seq_len_kv(t.Lengths("keys", kKeys));
  }
}

void Describe(const CudnnProblem& p, fe::graph::Graph& graph) {
  const AttentionShape& s = p.shape;
  GraphTensors t(graph, p);
  graph.set_io_data_type(t.Io());
  graph.set_intermediate_data_type(fe::DataType_t::FLOAT);
  graph.set_compute_data_type(fe::DataType_t::FLOAT);
  if (!p.backward) {
    fe::graph::SDPA_attributes options;
    options.set_generate_stats(true);
    SetOptions(p, t, &options);
    const auto [out, lse] = graph.sdpa(t.Q(), t.K(), t.V(), options);
    t.SetOutput(out, kOut, s.heads, s.queries, s.value_dim, s.out);
    lse->set_output(true).set_uid(kLse).set_data_type(fe::DataType_t::FLOAT);
    lse->set_dim({s.batch, s.heads, s.queries, 1}).set_stride(t.LseStrides());
    return;
  }
  fe::graph::SDPA_backward_attributes options;
  options.set_deterministic_algorithm(s.deterministic);
  SetOptions(p, t, &options);
  const auto [dq, dk, dv] =
      graph.sdpa_backward(t.Q(), t.K(), t.V(), t.Out(), t.DOut(), t.Lse(), options);
  t.SetOutput(dq, kDQ, s.heads, s.queries, s.head_dim, s.dq);
  t.SetOutput(dk, kDK, s.kv_heads, s.keys, s.head_dim, s.dk);
  t.SetOutput(dv, kDV, s.kv_heads, s.keys, s.value_dim, s.dv);
}

Status CheckWorkspace(const CudnnProblem& p, int64_t bytes) {
  if (bytes <= kMostWorkspace) return OkStatus();
  const auto gib = [](int64_t b) { return absl::StrCat(b >> 30, " GiB"); };
  return Error(
      ErrorKind::kRuntime, "attention(): cuDNN's ",
      p.shape.deterministic && p.backward ? "deterministic " : "",
      "kernel for this shape needs a workspace of ", gib(bytes),
      " (batch x heads x queries x keys), more than the limit of ", gib(kMostWorkspace),
      "; take a smaller batch or shorter rows",
      p.shape.deterministic && p.backward ? ", or use_deterministic_algorithms(False)" : "");
}

Status Build(cudnnHandle_t handle, const CudnnProblem& p, CudnnPlan* plan) {
  fe::graph::Graph& graph = plan->graph;
  OFL_RETURN_IF_ERROR(Guarded("description", [&] {
    Describe(p, graph);
    return graph.validate();
  }));
  OFL_RETURN_IF_ERROR(
      Guarded("operation graph", [&] { return graph.build_operation_graph(handle); }));
  OFL_RETURN_IF_ERROR(Guarded("choice of a kernel",
                              [&] { return graph.create_execution_plans({fe::HeurMode_t::A}); }));
  OFL_RETURN_IF_ERROR(Guarded("support", [&] { return graph.check_support(); }));
  OFL_RETURN_IF_ERROR(Guarded("plan", [&] { return graph.build_plans(); }));
  OFL_RETURN_IF_ERROR(
      Guarded("workspace", [&] { return graph.get_workspace_size(plan->workspace); }));
  return CheckWorkspace(p, plan->workspace);
}

using Key = std::vector<int64_t>;

Key KeyOf(int device, const CudnnProblem& p) {
  const AttentionShape& s = p.shape;
  Key key = {device,
             static_cast<int64_t>(p.dtype),
             p.backward,
             p.padded,
             s.batch,
             s.heads,
             s.kv_heads,
             s.queries,
             s.keys,
             s.head_dim,
             s.value_dim,
             std::bit_cast<int64_t>(s.scale),
             static_cast<int64_t>(s.causal),
             s.masked,
             s.masked ? s.mask_batches : 0,
             s.masked ? s.mask_heads : 0,
             p.bias_stride,
             std::bit_cast<int64_t>(s.dropout),
             p.backward && s.deterministic};
  const auto add = [&](const Strides& x) { key.insert(key.end(), {x.batch, x.token, x.head}); };
  for (const Strides* x : {&s.q, &s.k, &s.v, &s.out}) add(*x);
  if (p.backward) {
    for (const Strides* x : {&s.dout, &s.dq, &s.dk, &s.dv}) add(*x);
  }
  return key;
}

// The process's plans; also, for problems that cuDNN has no kernel for, why.
struct Plans {
  struct Entry {
    Status refused;
    std::shared_ptr<CudnnPlan> plan;  // where it was not refused
  };
  std::mutex mutex;
  RecentTable<Key, Entry> table{kMostPlans};

  static Plans& Get() {
    static auto* plans = new Plans;
    return *plans;
  }
  const Entry* Add(const Key& key, Entry entry) {
    const Entry* added =
        table.Add(key, std::move(entry), [](const Entry& e) { return e.plan && e.plan->captured; });
    int64_t kept = 0;
    table.ForEach([&](const Entry& e) { kept += e.plan != nullptr; });
    WithAttentionUse([&](AttentionUse& use) {
      use.plans_built += added->plan != nullptr;
      use.plans_kept = kept;
    });
    return added;
  }
};

}  // namespace

bool KnowsCudnnProblem(const Stream& stream, const CudnnProblem& problem) {
  Plans& plans = Plans::Get();
  std::lock_guard lock(plans.mutex);
  return plans.table.Find(KeyOf(stream.device().index, problem)) != nullptr;
}

StatusOr<std::shared_ptr<CudnnPlan>> FindCudnnPlan(const Stream& stream,
                                                   const CudnnProblem& problem) {
  OFL_RETURN_IF_ERROR(GetLibrary().status());
  const int device = stream.device().index;
  const Key key = KeyOf(device, problem);
  Plans& plans = Plans::Get();
  std::lock_guard lock(plans.mutex);
  const Plans::Entry* entry = plans.table.Find(key);
  if (!entry) {
    if (stream.capturing()) {
      return Error(ErrorKind::kRuntime,
                   "attention(): cuDNN's plan for this shape has not been built, and cannot be "
                   "while a graph captures; warm up first: run the step once before the capture");
    }
    DeviceGuard guard(device);
    Handle& h = HandleOf(device);
    std::lock_guard use(h.mutex);
    Plans::Entry made{.refused = OkStatus(), .plan = std::make_shared<CudnnPlan>()};
    made.refused = Open(h);
    if (made.refused.ok()) made.refused = Build(h.handle, problem, made.plan.get());
    if (!made.refused.ok()) made.plan = nullptr;
    entry = plans.Add(key, std::move(made));
  }
  OFL_RETURN_IF_ERROR(entry->refused);
  if (stream.capturing()) entry->plan->captured = true;
  return entry->plan;
}

int64_t WorkspaceBytesOf(const CudnnPlan& plan) { return plan.workspace; }

Status RunCudnnPlan(const Stream& stream, CudnnPlan& plan, const CudnnPointers& p,
                    void* workspace) {
  std::unordered_map<int64_t, void*> pack;
  const auto add = [&](Uid uid, const void* pointer) {
    if (pointer) pack.emplace(uid, const_cast<void*>(pointer));
  };
  add(kQ, p.q), add(kK, p.k), add(kV, p.v), add(kBias, p.bias);
  add(kSeed, p.seed), add(kOffset, p.offset), add(kQueries, p.queries), add(kKeys, p.keys);
  add(kOut, p.out), add(kLse, p.lse), add(kDOut, p.dout);
  add(kDQ, p.dq), add(kDK, p.dk), add(kDV, p.dv);
  DeviceGuard guard(stream.device().index);
  Handle& h = HandleOf(stream.device().index);
  std::lock_guard use(h.mutex);
  const cudnnStatus_t status = fe::detail::set_stream(h.handle, NativeStream(stream));
  if (status != CUDNN_STATUS_SUCCESS) {
    return Error(ErrorKind::kRuntime,
                 "cuDNN: choice of a stream: ", fe::detail::get_error_string(status));
  }
  const LaunchScope launch("cudnnBackendExecute");
  const Status ran =
      Guarded("launch", [&] { return plan.graph.execute(h.handle, pack, workspace); });
  if (ran.ok()) return ran;
  return Error(ErrorKind::kRuntime, "attention(): ", std::string(ran.message()));
}

}  // namespace oneflow_lite::cuda
