// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/fused_rows_launch.h"
#include "primitive/cuda/launch.cuh"
#include "primitive/cuda/row_streamed.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class T>
struct ComputesIn {
  using C = T;
};

// A launch's configuration; the attribute must outlive it.
cudaLaunchConfig_t Configure(const FusedRowsLaunch& launch, cudaLaunchAttribute* attribute) {
  cudaLaunchConfig_t config = {};
  int64_t blocks = launch.blocks < kMaxBlocks ? launch.blocks : kMaxBlocks;
  blocks -= blocks % launch.cluster;
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(launch.threads));
  config.dynamicSmemBytes = launch.shared;
  *attribute = {};
  config.attrs = attribute;
  if (launch.cluster > 1) {
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim = {static_cast<unsigned>(launch.cluster), 1, 1};
    config.numAttrs = 1;
  } else if (launch.cooperative) {
    attribute->id = cudaLaunchAttributeCooperative;
    attribute->val.cooperative = 1;
    config.numAttrs = 1;
  }
  return config;
}

}  // namespace

RowPlan PlanFusedRows(const FusedRowsProblem& p, const DeviceLimits& limits) {
  using P = RowPolicy;
  // Unless it is lean, a fused row keeps several inputs, or what it computes of them: half as many
  // packs as a plain one (BlockShape of FusedRow).
  RowTraits traits;
  traits.pack = p.pack;
  traits.bytes_per_pack = p.bytes_per_pack;
  traits.scratch_bytes = kRowScratchBytes;
  traits.group_packs = P::kGroupPacks;
  traits.block_packs = P::kBlockPacks / (p.is_lean ? 1 : 2);
  traits.block_threads = p.is_double ? BlockBounds<double>::kThreads : BlockBounds<float>::kThreads;
  traits.shared_threads = p.is_double ? StreamedBounds<ComputesIn<double>>::kSharedThreads
                                      : StreamedBounds<ComputesIn<float>>::kSharedThreads;
  traits.has_workspace = true;
  if (limits.clusters && p.cols > 32 * P::kGroupPacks * p.pack) {
    traits.shared_cluster = p.most_clustered;
    if (p.shares_registers) traits.register_cluster = p.most_clustered;
  }
  RowPlan plan = ChooseRowPlan(p.rows, p.cols, traits, limits);
  if (plan.tier == RowTier::kGroup) plan.threads = P::kGroupThreads;
  return plan;
}

cudaError_t LoadFusedRows(const void* image, const char* name, const void** kernel) {
  cudaLibrary_t library;
  cudaError_t error =
      cudaLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error != cudaSuccess) return error;
  cudaKernel_t loaded;
  error = cudaLibraryGetKernel(&loaded, library, name);
  if (error == cudaSuccess) *kernel = reinterpret_cast<const void*>(loaded);
  return error;
}

cudaError_t PrepareFusedRows(const FusedRowsLaunch& launch, const DeviceLimits& limits,
                             bool* fits) {
  *fits = true;
  if (launch.shared > (48 << 10)) {
    const cudaError_t error = cudaFuncSetAttribute(
        launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limits.shared_per_block);
    if (error != cudaSuccess) return error;
  }
  if (launch.cluster > 8) {
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = Configure(launch, &attribute);
    int clusters = 0;
    *fits = cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed,
                                 1) == cudaSuccess &&
            cudaOccupancyMaxActiveClusters(&clusters, launch.kernel, &config) == cudaSuccess &&
            clusters > 0;
    if (!*fits) cudaGetLastError();  // "no" is an answer, not an error of the caller's
  }
  return cudaSuccess;
}

cudaError_t LaunchFusedRows(const FusedRowsLaunch& launch, void** args, cudaStream_t stream) {
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config = Configure(launch, &attribute);
  config.stream = stream;
  return cudaLaunchKernelExC(&config, launch.kernel, args);
}

}  // namespace cuda
}  // namespace oneflow_lite
