// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/kernel_registry.h"

#include <list>
#include <mutex>

#include "absl/strings/str_join.h"

namespace oneflow_lite {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<KernelDef> pending;
  std::list<KernelDef> kernels;  // addresses stay
};
Registry& GetRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

bool SameDevice(const KernelDef& a, const KernelDef& b) {
  return !a.device || !b.device || *a.device == *b.device;
}

// Precondition: the registry's mutex is held.
Status Insert(Registry& r, KernelDef kernel) {
  if (!kernel.bind) {
    return Error(ErrorKind::kRuntime, "kernel for ", kernel.op, " (", kernel.file, ":", kernel.line,
                 ") has no bind function");
  }
  for (const KernelDef& other : r.kernels) {
    if (other.op == kernel.op && SameDevice(other, kernel) && (other.dtypes & kernel.dtypes)) {
      return Error(ErrorKind::kRuntime, "two kernels match op ", kernel.op, " for ",
                   ToString(other.dtypes & kernel.dtypes), ": at ", other.file, ":", other.line,
                   " and at ", kernel.file, ":", kernel.line);
    }
  }
  r.kernels.push_back(std::move(kernel));
  return OkStatus();
}

void InsertPending(Registry& r) {
  for (KernelDef& kernel : std::exchange(r.pending, {})) {
    const char* file = kernel.file;
    const int line = kernel.line;
    if (Status s = Insert(r, std::move(kernel)); !s.ok()) {
      CheckFailed(file, line, std::string(s.message()).c_str());  // a bug of this library
    }
  }
}

std::string DeviceText(const KernelDef& k) { return k.device ? Name(*k.device) : "any device"; }

}  // namespace

StatusOr<void*> KernelContext::Workspace(size_t nbytes) {
  if (nbytes == 0) return nullptr;
  OFL_ASSIGN_OR_RETURN(workspace_, Storage::Allocate(nbytes, stream_.device()));
  return workspace_->data();
}

std::string ToString(DTypeSet set) {
  if (set == kAllDTypes) return "all dtypes";
  std::vector<const char*> names;
  for (int i = 0; i < kNumDTypes; ++i) {
    if (set & (DTypeSet{1} << i)) names.push_back(Name(static_cast<DType>(i)));
  }
  return absl::StrJoin(names, ", ");
}

Status RegisterKernel(KernelDef kernel) {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  InsertPending(r);
  return Insert(r, std::move(kernel));
}

StatusOr<const KernelDef*> FindKernel(absl::string_view op, DeviceType device, DType dtype) {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  InsertPending(r);
  std::vector<std::string> there;
  for (const KernelDef& k : r.kernels) {
    if (k.op != op) continue;
    if ((!k.device || *k.device == device) && (k.dtypes & SetOf(dtype))) return &k;
    there.push_back(absl::StrCat(DeviceText(k), ": ", ToString(k.dtypes)));
  }
  return Error(ErrorKind::kNotImplemented, op, "(): no kernel for ", Name(dtype), " on ",
               Name(device), "; registered are ",
               there.empty() ? std::string("none") : absl::StrJoin(there, "; "));
}

std::vector<const KernelDef*> ListKernels(absl::string_view op) {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  InsertPending(r);
  std::vector<const KernelDef*> list;
  for (const KernelDef& k : r.kernels) {
    if (k.op == op) list.push_back(&k);
  }
  return list;
}

namespace internal {
void EraseKernels(absl::string_view op, size_t keep) {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  size_t seen = 0;
  r.kernels.remove_if([&](const KernelDef& k) { return k.op == op && seen++ >= keep; });
}

bool AppendKernel(KernelDef kernel, const char* file, int line) {
  kernel.file = file;
  kernel.line = line;
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  r.pending.push_back(std::move(kernel));
  return true;
}
}  // namespace internal

}  // namespace oneflow_lite
