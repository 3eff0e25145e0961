// SPDX-License-Identifier: Apache-2.0
#include "primitive/fused_rows.h"

#include <map>
#include <mutex>
#include <numeric>

#include "primitive/cuda/fused/names.h"
#include "primitive/cuda/fused/rows_launch.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

bool PlanWhole(int64_t rows, int64_t cols, const FusedRowsTraits& traits, int most_clustered,
               const cuda::DeviceLimits& limits, FusedRowsPlan* result) {
  if (!traits.is_whole) return false;
  const cuda::HeldTraits held{.value_bytes = traits.pack * (traits.is_double ? 8 : 4),
                              .is_lean = traits.is_lean,
                              .is_norm = traits.is_norm,
                              .most_blocks = limits.clusters ? most_clustered : 1,
                              .common_bytes = traits.common_bytes,
                              .late_bytes = traits.late_bytes,
                              .is_double = traits.is_double,
                              .is_single = traits.is_single,
                              .is_centred = traits.is_norm && !traits.shares_registers,
                              .is_log = traits.is_log,
                              .stores_costly = traits.stores_costly};
  cuda::HeldPlan plan;
  if (traits.is_odd) {
    cuda::OddPlan odd;
    if (traits.operands.size() > cuda::FusedCopies::kMost) return false;
    if (!cuda::PlanOddRows(rows, cols, traits.pack, held, limits, &odd)) return false;
    plan = odd.held;
    result->kernel = cuda::KernelName(odd);
    result->pack = traits.pack;
    for (const int element_bytes : odd.copied ? traits.operands : std::vector<int>()) {
      result->copies.push_back({element_bytes, result->workspace_bytes});
      result->workspace_bytes += cuda::FusedCopiesBytes(cols, traits.pack, element_bytes);
    }
  } else {
    if (!cuda::PlanHeldRows(rows, cols / traits.pack, held, limits, &plan)) return false;
    result->kernel = cuda::KernelName(plan);
  }
  const int late_bytes = plan.rows > 1 || plan.stays ? traits.late_bytes : 0;
  result->shared = plan.SharedBytes(traits.common_bytes + late_bytes);
  result->whole = true;
  result->threads = plan.threads;
  result->cluster = plan.blocks;
  const int alike = traits.is_odd ? traits.pack : 1;
  result->blocks = plan.lanes > 0 ? plan.LaneBlocks(rows, alike, limits)
                                  : plan.Clusters(rows, alike) * plan.blocks;
  return true;
}

cuda::FusedRowsLaunch LaunchOf(const FusedRowsPlan& p, const void* kernel) {
  return {.kernel = kernel,
          .blocks = p.blocks,
          .threads = p.threads,
          .cluster = p.cluster,
          .shared = p.shared,
          .cooperative = p.grid};
}

cuda::FusedCopies CopiesOf(const FusedRowsPlan& plan, int64_t cols,
                           absl::Span<const void* const> operands, void* workspace) {
  cuda::FusedCopies copies = {};
  for (size_t i = 0; i < operands.size(); ++i) {
    const FusedRowsCopies& to = plan.copies[i];
    copies.operands[i] = {operands[i], static_cast<char*>(workspace) + to.offset, to.element_bytes};
  }
  copies.count = static_cast<int>(operands.size());
  copies.cols = cols;
  copies.pack = plan.pack;
  copies.step = static_cast<int>(std::gcd<int64_t>(plan.pack, cols));
  return copies;
}

class CudaFusedRows final : public FusedRows {
 public:
  FusedRowsPlan Plan(const Stream& stream, int64_t rows, int64_t cols,
                     const FusedRowsTraits& traits, int most_clustered) const override {
    FusedRowsPlan whole;
    if (PlanWhole(rows, cols, traits, most_clustered, cuda::LimitsOf(stream), &whole)) return whole;
    const cuda::RowPlan plan = cuda::PlanFusedRows({.rows = rows,
                                                    .cols = cols,
                                                    .pack = traits.pack,
                                                    .bytes_per_pack = traits.bytes_per_pack,
                                                    .is_double = traits.is_double,
                                                    .shares_registers = traits.shares_registers,
                                                    .is_lean = traits.is_lean,
                                                    .most_clustered = most_clustered},
                                                   cuda::LimitsOf(stream));
    FusedRowsPlan result{.kernel = cuda::KernelName(plan),
                         .blocks = rows * plan.blocks_per_row,
                         .threads = plan.threads,
                         .shared = plan.shared};
    if (plan.tier == cuda::RowTier::kGroup) {
      result.blocks = cuda::CeilDiv(rows, plan.threads / plan.lanes);
    } else if (plan.tier == cuda::RowTier::kGrid) {
      result.grid = true;
      result.parts = plan.blocks_per_row;
      result.kept = plan.kept;
      result.workspace_bytes = static_cast<size_t>(result.blocks) * traits.statistics_bytes;
    } else {
      result.cluster = plan.blocks_per_row;
      result.kept = plan.kept;
    }
    return result;
  }

  StatusOr<const void*> Load(const Stream& stream, const FusedRowsPlan& plan,
                             const CompiledKernel& compiled) const override {
    const std::lock_guard lock(mutex_);
    const void*& kernel = loaded_[{stream.device().index, compiled.key}];
    bool fits = false;
    OFL_RETURN_IF_ERROR(cuda::RunOn(stream, kName, [&](cudaStream_t) {
      if (!kernel) {
        const cudaError_t error =
            cuda::LoadFusedRows(compiled.image.data(), compiled.name.c_str(), &kernel);
        if (error != cudaSuccess) return error;
      }
      return cuda::PrepareFusedRows(LaunchOf(plan, kernel), cuda::LimitsOf(stream), &fits);
    }));
    return fits ? kernel : nullptr;
  }

  Status Launch(Stream& stream, const FusedRowsPlan& plan, const void* kernel, int64_t rows,
                int64_t cols, absl::Span<const uint64_t> words,
                absl::Span<const void* const> operands, void* workspace) const override {
    if (operands.size() != plan.copies.size()) {
      return Error(ErrorKind::kValue, "fused_rows: one operand is wanted for each that is copied");
    }
    int parts = plan.parts;
    int64_t kept = plan.kept;
    void* algorithm = const_cast<uint64_t*>(words.data());
    void* of_rows[] = {algorithm, &rows, &cols, &kept};  // most kernels take the first three
    void* of_grid[] = {algorithm, &cols, &parts, &kept, &workspace};
    cuda::FusedRowsLaunch launch = LaunchOf(plan, kernel);
    launch.after = !operands.empty() && cuda::LimitsOf(stream).clusters;
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      if (!operands.empty()) {
        const cudaError_t error =
            cuda::CopyFusedOperands(CopiesOf(plan, cols, operands, workspace), s);
        if (error != cudaSuccess) return error;
      }
      return cuda::LaunchFusedRows(launch, plan.grid ? of_grid : of_rows, s);
    });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::pair<int, std::string>, const void*> loaded_;  // by device and key
};

StatusOr<std::unique_ptr<FusedRows>> NewFusedRows(const FusedRows::Spec&) {
  return std::make_unique<CudaFusedRows>();
}

const bool registered = RegisterPrimitive<FusedRows>(DeviceType::kCUDA, &NewFusedRows);

}  // namespace
}  // namespace oneflow_lite
