// SPDX-License-Identifier: Apache-2.0
//
// NCCL, opened by name at first use. The declarations are our own, of the part of its stable ABI
// that is called here: no header of NVIDIA's is needed to build.
//
//   OFL_ASSIGN_OR_RETURN(const Nccl* nccl, GetNccl());
//   OFL_RETURN_IF_ERROR(NcclStatus(nccl->AllReduce(...), nullptr, "all_reduce"));
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite::cuda {

struct ncclComm;
using ncclComm_t = ncclComm*;
struct ncclUniqueId {  // passed by value
  char internal[128];
};

enum class NcclResult : int { kSuccess = 0, kSystemError = 2, kRemoteError = 6, kInProgress = 7 };
enum class NcclType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
enum class NcclOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };  // kAvg: since 2.10

// The functions we call, under their names without the prefix.
struct Nccl {
  NcclResult (*GetUniqueId)(ncclUniqueId* id);
  NcclResult (*CommInitRank)(ncclComm_t* comm, int size, ncclUniqueId id, int rank);
  NcclResult (*CommAbort)(ncclComm_t comm);
  const char* (*GetErrorString)(NcclResult result);
  const char* (*GetLastError)(ncclComm_t comm);  // since 2.13
  NcclResult (*AllReduce)(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                          ncclComm_t comm, cudaStream_t stream);
  NcclResult (*Reduce)(const void* in, void* out, size_t count, NcclType type, NcclOp op, int root,
                       ncclComm_t comm, cudaStream_t stream);
  NcclResult (*ReduceScatter)(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                              ncclComm_t comm, cudaStream_t stream);
  NcclResult (*AllGather)(const void* in, void* out, size_t count, NcclType type, ncclComm_t comm,
                          cudaStream_t stream);
  NcclResult (*Broadcast)(const void* in, void* out, size_t count, NcclType type, int root,
                          ncclComm_t comm, cudaStream_t stream);
  NcclResult (*Send)(const void* in, size_t count, NcclType type, int peer, ncclComm_t comm,
                     cudaStream_t stream);
  NcclResult (*Recv)(void* out, size_t count, NcclType type, int peer, ncclComm_t comm,
                     cudaStream_t stream);
  NcclResult (*GroupStart)();
  NcclResult (*GroupEnd)();
};

// Opens the library once, that of OFL_NCCL_LIBRARY where this is set; a RuntimeError says what to
// install where it is not found.
// NCCL_NVLS_ENABLE is 0 from then on, unless the environment says otherwise: NVLink multicast has
// left GPUs in need of a reset.
StatusOr<const Nccl*> GetNccl();

// OK, or an error that names `what` was tried; comm may be null.
Status NcclStatus(NcclResult result, ncclComm_t comm, const char* what);

}  // namespace oneflow_lite::cuda
