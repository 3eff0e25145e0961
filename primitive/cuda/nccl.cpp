// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/nccl.h"

#include <cstdlib>
#include <string>

#include "primitive/library.h"

namespace oneflow_lite::cuda {
namespace {

struct Loaded {
  Nccl functions{};
  std::string problem;
};

Loaded Load() {
  setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
  Loaded loaded;
  const char* own = std::getenv("OFL_NCCL_LIBRARY");
  Library library = own && *own ? Library({own}, {})
                                : Library({"libnccl.so.2"}, {"nvidia/nccl/lib", "nvidia/cu13/lib"});
  Nccl& f = loaded.functions;
  library.Find("ncclGetUniqueId", f.GetUniqueId);
  library.Find("ncclCommInitRank", f.CommInitRank);
  library.Find("ncclCommAbort", f.CommAbort);
  library.Find("ncclGetErrorString", f.GetErrorString);
  library.Find("ncclGetLastError", f.GetLastError);
  library.Find("ncclAllReduce", f.AllReduce);
  library.Find("ncclReduce", f.Reduce);
  library.Find("ncclReduceScatter", f.ReduceScatter);
  library.Find("ncclAllGather", f.AllGather);
  library.Find("ncclBroadcast", f.Broadcast);
  library.Find("ncclSend", f.Send);
  library.Find("ncclRecv", f.Recv);
  library.Find("ncclGroupStart", f.GroupStart);
  library.Find("ncclGroupEnd", f.GroupEnd);
  loaded.problem = library.problem();
  return loaded;
}

const Loaded& GetLoaded() {
  static const Loaded loaded = Load();
  return loaded;
}

}  // namespace

StatusOr<const Nccl*> GetNccl() {
  const Loaded& loaded = GetLoaded();
  if (loaded.problem.empty()) return &loaded.functions;
  return Error(ErrorKind::kRuntime,
               "collectives on CUDA go through NCCL, which is not there: ", loaded.problem,
               ". `pip install nvidia-nccl-cu13`, or your system's libnccl2, "
               "installs it");
}

Status NcclStatus(NcclResult result, ncclComm_t comm, const char* what) {
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) return OkStatus();
  const Nccl& f = GetLoaded().functions;
  const char* detail = f.GetLastError(comm);
  const std::string message = absl::StrCat("NCCL's ", what, ": ", f.GetErrorString(result),
                                           detail && *detail ? ": " : "", detail ? detail : "");
  if (result == NcclResult::kRemoteError || result == NcclResult::kSystemError) {
    return absl::UnavailableError(message);
  }
  return Error(ErrorKind::kRuntime, message);
}

}  // namespace oneflow_lite::cuda
