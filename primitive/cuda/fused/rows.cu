// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/fused/copies.cuh"
#include "primitive/cuda/fused/rows_launch.h"
#include "primitive/cuda/rows/streamed.cuh"

namespace oneflow_lite::cuda {
namespace {

// All operands' copies for the rows whose first boundary is at column blockIdx.y * step: each
// thread 16 bytes of the operand blockIdx.z.
__global__ void CopyFusedOperandsKernel(const __grid_constant__ FusedCopies copies) {
  AllowNextKernel();
  const FusedCopies::Operand& operand = copies.operands[blockIdx.z];
  const int head = static_cast<int>(blockIdx.y) * copies.step, size = operand.element_bytes;
  const auto* from = static_cast<const uint8_t*>(operand.from);
  auto* to = static_cast<uint8_t*>(operand.to) + CopyStart(head, copies.pack, copies.cols, size);
  // Units are counted from the second boundary on, which is on a line.
  const int64_t bytes = copies.cols * size, boundary = (head + copies.pack) * size;
  const int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t before = (boundary + kPackBytes - 1) / kPackBytes;
  const int64_t at = boundary + (unit - before) * kPackBytes;
  if (at >= bytes) return;
  Pack<uint8_t, kPackBytes> pack = {};
  if (at >= kPackBytes && at + 2 * kPackBytes <= bytes) {
    pack = LoadShiftedPack<kPackBytes>(from + at);
  } else {
    for (int i = 0; i < kPackBytes; ++i) {
      if (at + i >= 0 && at + i < bytes) pack.v[i] = from[at + i];
    }
  }
  StoreAlignedPack<kPackBytes>(to + at, pack);
}

LaunchConfig ConfigOf(const FusedRowsLaunch& launch, cudaStream_t stream) {
  return LaunchConfig({launch.cluster, launch.cooperative, launch.after}, GridOf(launch.blocks),
                      launch.threads, launch.shared, stream);
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
  traits.has_workspace = true;
  traits.is_double = p.is_double;
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
    const LaunchConfig config = ConfigOf(launch, nullptr);
    int clusters = 0;
    *fits = cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed,
                                 1) == cudaSuccess &&
            cudaOccupancyMaxActiveClusters(&clusters, launch.kernel, config.get()) == cudaSuccess &&
            clusters > 0;
    if (!*fits) cudaGetLastError();  // "no" is an answer, not an error of the caller's
  }
  return cudaSuccess;
}

cudaError_t LaunchFusedRows(const FusedRowsLaunch& launch, void** args, cudaStream_t stream) {
  const LaunchConfig config = ConfigOf(launch, stream);
  return cudaLaunchKernelExC(config.get(), launch.kernel, args);
}

size_t FusedCopiesBytes(int64_t cols, int pack, int element_bytes) {
  return static_cast<size_t>(pack * CopyPitch(cols, element_bytes));
}

cudaError_t CopyFusedOperands(const FusedCopies& copies, cudaStream_t stream) {
  constexpr int kThreads = 256;
  int64_t units = 0;  // of one copy, and those in front of its second boundary
  for (int i = 0; i < copies.count; ++i) {
    const int size = copies.operands[i].element_bytes;
    const int64_t columns = CeilDiv(copies.cols * size, kPackBytes);
    units = Max(units, columns + CeilDiv(2 * copies.pack * size, kPackBytes));
  }
  const dim3 blocks(static_cast<unsigned>(CeilDiv(units, kThreads)),
                    static_cast<unsigned>(copies.pack / copies.step),
                    static_cast<unsigned>(copies.count));
  CopyFusedOperandsKernel<<<blocks, kThreads, 0, stream>>>(copies);
  return cudaGetLastError();
}

}  // namespace oneflow_lite::cuda
