// SPDX-License-Identifier: Apache-2.0
//
// The library's side of the extension table, and the loading of libraries that use it.
#include "oneflow_lite/framework/extension.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/extension_internal.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/shared_library.h"

namespace oneflow_lite {
namespace {

using namespace extension_table;

int32_t RegisterOpC(const ofl_op* c) {
  if (!c) return SetError(OFL_VALUE_ERROR, "register_op: there is no op");
  auto op = ToOpDef(*c);
  if (!op.ok()) return CodeOf(op.status());
  if (!CurrentStage()) {
    std::vector<OpDef> ops;
    ops.push_back(*std::move(op));
    return CodeOf(RegisterAll(std::move(ops), {}));
  }
  CurrentStage()->ops.push_back(*std::move(op));
  return OFL_OK;
}

int32_t RegisterKernelC(const ofl_kernel* c) {
  if (!c) return SetError(OFL_VALUE_ERROR, "register_kernel: there is no kernel");
  auto kernel = ToKernelDef(*c);
  if (!kernel.ok()) return CodeOf(kernel.status());
  if (!CurrentStage()) return CodeOf(RegisterAll({}, {*std::move(kernel)}));
  CurrentStage()->kernels.push_back(*std::move(kernel));
  return OFL_OK;
}

using K = KernelContext;
using G = GradContext;

void* DataOf(ofl_tensor t) {  // Tensor::data() without counting a reference
  char* base = static_cast<char*>(Impl(t)->storage->data());
  return base ? base + Impl(t)->offset * static_cast<int64_t>(SizeOf(Impl(t)->dtype)) : nullptr;
}

void FillTensor(ofl_api& a) {
  a.tensor_retain = [](ofl_tensor t) { Impl(t)->AddRef(); };
  a.tensor_release = [](ofl_tensor t) { Impl(t)->Release(); };
  a.tensor_ndim = [](ofl_tensor t) { return Impl(t)->shape.ndim(); };
  a.tensor_shape = [](ofl_tensor t) { return std::as_const(Impl(t)->shape).dims().data(); };
  a.tensor_strides = [](ofl_tensor t) { return std::as_const(Impl(t)->strides).data(); };
  a.tensor_numel = [](ofl_tensor t) { return Impl(t)->numel; };
  a.tensor_dtype = [](ofl_tensor t) { return static_cast<int32_t>(Impl(t)->dtype); };
  a.tensor_device = [](ofl_tensor t, int32_t* index) {
    const Device d = Impl(t)->storage->device();
    if (index) *index = d.index;
    return static_cast<int32_t>(d.type);
  };
  a.tensor_data = DataOf;
  a.tensor_data_of = [](ofl_tensor t, uint32_t dtypes) -> void* {
    return dtypes >> static_cast<int>(Impl(t)->dtype) & 1 ? DataOf(t) : nullptr;
  };
  a.call = CallFunction;
}

bool Has(ofl_infer_context c, int32_t i) { return i >= 0 && As<InferCall>(c).context.has_input(i); }

int32_t NoSuchOutput(const char* function, int32_t i, const InferContext& c) {
  return CodeOf(Error(ErrorKind::kValue, function, ": no such output as ", i, ": the op has ",
                      c.num_outputs()));
}

void FillInfer(ofl_api& a) {
  a.infer_num_inputs = [](ofl_infer_context c) { return As<InferCall>(c).context.num_inputs(); };
  a.infer_ndim = [](ofl_infer_context c, int32_t i) {
    return Has(c, i) ? As<InferCall>(c).context.shape(i).ndim() : -1;
  };
  a.infer_shape = [](ofl_infer_context c, int32_t i) {
    return Has(c, i) ? std::as_const(As<InferCall>(c).context.shape(i)).dims().data() : nullptr;
  };
  a.infer_dtype = [](ofl_infer_context c, int32_t i) {
    return Has(c, i) ? static_cast<int32_t>(As<InferCall>(c).context.dtype(i)) : -1;
  };
  a.infer_attr = [](ofl_infer_context c, int32_t i, ofl_value* v) {
    return GetAttr(As<InferCall>(c).context.attrs(), i, v);
  };
  a.infer_set_output = [](ofl_infer_context c, int32_t i, int32_t ndim, const int64_t* shape,
                          int32_t dtype) {
    InferCall& call = As<InferCall>(c);
    InferContext& context = call.context;
    const absl::Span<const int64_t> dims(shape, ndim < 0 || !shape ? 0 : ndim);
    if (i < 0 || i >= context.num_outputs()) return NoSuchOutput("set_output", i, context);
    if (ndim < 0 || std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) {
      return CodeOf(Error(ErrorKind::kValue, "set_output: output ", i, " cannot have the shape ",
                          ndim < 0 ? "of a negative number of dims" : ToString(dims)));
    }
    if (ndim > 0 && !shape) {
      return CodeOf(Error(ErrorKind::kValue, "set_output: output ", i, " has ", ndim,
                          " dims, but their sizes are missing"));
    }
    if (dtype < 0 || dtype >= kNumDTypes) {
      return CodeOf(Error(ErrorKind::kValue, "set_output: output ", i, " cannot have the dtype ",
                          dtype, ": there is none of that number"));
    }
    context.SetOutput(i, Shape(dims), static_cast<DType>(dtype));
    call.set |= Bit(i);
    return static_cast<int32_t>(OFL_OK);
  };
  a.infer_set_output_like = [](ofl_infer_context c, int32_t i, int32_t input) {
    InferCall& call = As<InferCall>(c);
    if (i < 0 || i >= call.context.num_outputs()) {
      return NoSuchOutput("set_output_like", i, call.context);
    }
    if (!Has(c, input)) {
      return CodeOf(Error(ErrorKind::kValue, "set_output_like: there is no input ", input,
                          ": the call has ", call.context.num_inputs(),
                          ", and an optional one may be absent"));
    }
    call.context.SetOutput(i, call.context.shape(input), call.context.dtype(input));
    call.set |= Bit(i);
    return static_cast<int32_t>(OFL_OK);
  };
}

void FillKernel(ofl_api& a) {
  a.kernel_num_inputs = [](ofl_kernel_context c) { return As<K>(c).num_inputs(); };
  a.kernel_input = [](ofl_kernel_context c, int32_t i) {
    return i >= 0 && i < As<K>(c).num_inputs() ? Handle(As<K>(c).input(i)) : nullptr;
  };
  a.kernel_output = [](ofl_kernel_context c, int32_t i) {
    return i >= 0 && i < As<K>(c).num_outputs() ? Handle(As<K>(c).output(i)) : nullptr;
  };
  a.kernel_attr = [](ofl_kernel_context c, int32_t i, ofl_value* v) {
    return GetAttr(As<K>(c).attrs(), i, v);
  };
  a.kernel_stream = [](ofl_kernel_context c) { return As<K>(c).stream().native(); };
  a.kernel_workspace = [](ofl_kernel_context c, uint64_t nbytes, void** data) {
    auto workspace = As<K>(c).Workspace(nbytes);
    if (!workspace.ok()) return CodeOf(workspace.status());
    *data = *workspace;
    return static_cast<int32_t>(OFL_OK);
  };
}

void FillBackward(ofl_api& a) {
  a.grad_num_inputs = [](ofl_grad_context c) { return As<G>(c).num_inputs(); };
  a.grad_needs = [](ofl_grad_context c, int32_t i) -> int32_t {
    return i >= 0 && i < As<G>(c).num_inputs() && As<G>(c).needs(i);
  };
  a.grad_input = [](ofl_grad_context c, int32_t i) { return Handle(As<G>(c).input(i)); };
  a.grad_output = [](ofl_grad_context c, int32_t i) { return Handle(As<G>(c).output(i)); };
  a.grad_of_output = [](ofl_grad_context c, int32_t i) { return Handle(As<G>(c).grad(i)); };
  a.grad_attr = [](ofl_grad_context c, int32_t i, ofl_value* v) {
    return GetAttr(As<G>(c).attrs(), i, v);
  };
  a.grad_set = [](ofl_grad_context c, int32_t i, ofl_tensor g) {
    return CodeOf(As<G>(c).Set(i, Borrow(g)));
  };
}

void FillSbp(ofl_api& a) {
  a.sbp_ndim = [](ofl_sbp_context c, int32_t i) {
    const auto inputs = absl::MakeSpan(As<SbpCall>(c).context.inputs);
    return i >= 0 && static_cast<size_t>(i) < inputs.size() ? inputs[i].ndim() : -1;
  };
  a.sbp_attr = [](ofl_sbp_context c, int32_t i, ofl_value* v) {
    return GetAttr(As<SbpCall>(c).context.attrs, i, v);
  };
  a.sbp_add = [](ofl_sbp_context c, const ofl_sbp* entries, int32_t count) {
    SbpCall& call = As<SbpCall>(c);
    const size_t inputs = call.context.inputs.size();
    if (count < 0 || static_cast<size_t>(count) != inputs + call.outputs || !entries) {
      return SetError(OFL_VALUE_ERROR, "an SBP signature has one entry per input and output");
    }
    SbpSignature s;
    for (int32_t i = 0; i < count; ++i) {
      if (entries[i].kind == 0 || !absl::StrContains("SBP", entries[i].kind)) {
        return SetError(OFL_VALUE_ERROR, "an SBP entry is of kind 'S', 'B' or 'P'");
      }
      const Sbp sbp = entries[i].kind == 'S'   ? Sbp::Split(entries[i].axis)
                      : entries[i].kind == 'P' ? Sbp::PartialSum()
                                               : Sbp::Broadcast();
      if (static_cast<size_t>(i) < inputs)
        s.inputs.push_back(sbp);
      else
        s.outputs.push_back(sbp);
    }
    call.signatures->push_back(std::move(s));
    return static_cast<int32_t>(OFL_OK);
  };
}

const ofl_api* Api() {
  static const ofl_api api = [] {
    ofl_api a = {};
    a.version = OFL_EXTENSION_VERSION;
    a.size = sizeof(ofl_api);
    a.set_error = SetError;
    a.last_error = LastError;
    a.register_op = RegisterOpC;
    a.register_kernel = RegisterKernelC;
    FillTensor(a);
    FillInfer(a);
    FillKernel(a);
    FillBackward(a);
    FillSbp(a);
    return a;
  }();
  return &api;
}

bool IsIdentifier(absl::string_view s) {
  if (s.empty() || absl::ascii_isdigit(s[0]) || s.substr(0, 2) == "__") return false;
  return std::all_of(s.begin(), s.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// flow.ops.<namespace>.<name> must reach it, and its arguments must have names for Python.
Status CheckNames(const OpDef& op) {
  const auto refuse = [&](const auto&... what) {
    return Error(ErrorKind::kValue, "op ", op.name, " (", op.file, ":", op.line, "): ", what...);
  };
  const size_t colons = op.name.find("::");
  if (colons == std::string::npos || !IsIdentifier(op.name.substr(0, colons)) ||
      !IsIdentifier(op.name.substr(colons + 2))) {
    return refuse("the name must be \"namespace::name\" of two identifiers");
  }
  std::vector<absl::string_view> names(op.outputs.begin(), op.outputs.end());
  for (const InputDef& in : op.inputs) names.push_back(in.name);
  for (const AttrDef& attr : op.attrs) names.push_back(attr.name);
  for (const absl::string_view name : names) {
    if (!IsIdentifier(name)) return refuse("\"", name, "\" is no name of an argument or output");
  }
  return OkStatus();
}

// While it lasts, what this thread registers waits in the stage.
class StageScope {
 public:
  explicit StageScope(Staged* stage) { CurrentStage() = stage; }
  ~StageScope() { CurrentStage() = nullptr; }
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;
};

}  // namespace

Status RegisterAll(std::vector<OpDef> ops, std::vector<KernelDef> kernels) {
  std::vector<std::string> added;
  std::map<std::string, size_t> kernels_before;  // of each op that gets some
  for (const KernelDef& kernel : kernels) {
    kernels_before.emplace(kernel.op, ListKernels(kernel.op).size());
  }
  Status s;
  for (OpDef& op : ops) {
    s = CheckNames(op);
    if (!s.ok()) break;
    std::string name = op.name;
    s = RegisterOp(std::move(op));
    if (!s.ok()) break;
    added.push_back(std::move(name));
  }
  for (size_t i = 0; s.ok() && i < kernels.size(); ++i) {
    if (!FindOp(kernels[i].op).ok()) {
      s = Error(ErrorKind::kRuntime, "kernel (", kernels[i].file, ":", kernels[i].line,
                ") is for op ", kernels[i].op, ", which is not registered");
    } else {
      s = RegisterKernel(std::move(kernels[i]));
    }
  }
  if (s.ok()) return s;
  for (const auto& [op, before] : kernels_before) internal::EraseKernels(op, before);
  for (const std::string& name : added) internal::EraseOp(name);
  return s;
}

StatusOr<std::vector<std::string>> LoadExtension(const std::string& path) {
  static std::mutex mutex;
  static auto* loaded = new std::vector<void*>;
  std::lock_guard lock(mutex);
  OFL_RETURN_IF_ERROR(CheckSharedLibrary(path));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error(ErrorKind::kRuntime, "load_library(): ", dlerror());
  if (std::find(loaded->begin(), loaded->end(), library) != loaded->end()) {
    dlclose(library);
    return std::vector<std::string>{};
  }
  using Version = uint32_t (*)();
  using Init = int32_t (*)(const ofl_api*);
  const auto version = reinterpret_cast<Version>(dlsym(library, "ofl_extension_version"));
  const auto init = reinterpret_cast<Init>(dlsym(library, "ofl_extension_init"));
  if (!version || !init) {
    dlclose(library);
    return Error(ErrorKind::kRuntime, "load_library(): ", path,
                 " is no oneflow_lite extension: it does not export ofl_extension_init, which "
                 "OFL_EXTENSION defines");
  }
  if (version() != OFL_EXTENSION_VERSION) {
    const uint32_t built_for = version();
    dlclose(library);
    return Error(ErrorKind::kRuntime, "load_library(): ", path, " was built for version ",
                 built_for, " of the extension table, but this oneflow_lite has version ",
                 OFL_EXTENSION_VERSION, "; build it again");
  }
  Status s;
  std::vector<std::string> names;
  {
    Staged stage;
    {
      const StageScope scope(&stage);
      s = ToStatus(init(Api()), "load_library");
    }
    for (const OpDef& op : stage.ops) names.push_back(op.name);
    if (s.ok()) s = RegisterAll(std::move(stage.ops), std::move(stage.kernels));
  }
  if (!s.ok()) {
    // Nothing of it is left but perhaps its code, which some libraries keep.
    dlclose(library);
    void* kept = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (kept) dlclose(kept);
    constexpr absl::string_view kName = "load_library(): ";
    return Error(KindOf(s), kName, path, ": ", absl::StripPrefix(s.message(), kName),
                 kept ? "; this file's code stays in the process: after a change, load it under "
                        "another name"
                      : "");
  }
  loaded->push_back(library);
  return names;
}

}  // namespace oneflow_lite
