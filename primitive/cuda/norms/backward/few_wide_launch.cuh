// SPDX-License-Identifier: Apache-2.0
//
// The launches of the norms' backward where few bytes are to be moved, of whole rows and of any,
// and of wide rows.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/norms/backward/few.cuh"
#include "primitive/cuda/norms/backward/small.cuh"
#include "primitive/cuda/norms/backward/sums.cuh"
#include "primitive/cuda/norms/backward/wide.cuh"

namespace oneflow_lite::cuda::internal {

// dweight's correction by the rows' residuals, behind the launch that wrote them; null where none
// is needed.
template <bool kCentre, class T>
cudaError_t LaunchCorrection(const NormBackward<T>& a, const ComputeType<T>* residual,
                             const LaunchSite& site) {
  if constexpr (kRecentre<T, kCentre>) {
    using P = NormPolicy;
    if (!residual) return cudaSuccess;
    const dim3 columns(static_cast<unsigned>(CeilDiv(a.cols, P::kCorrectColumns)));
    return LaunchAfter(site, NormFewCorrectKernel<T>, columns, P::kCorrectColumns * P::kCorrectWays,
                       a, residual);
  }
  return cudaSuccess;
}

// What both kinds of grid have of a plan; returns their blocks.
template <bool kCentre, class Plan, class Grid, class T>
int64_t FillGrid(const Plan& plan, const NormBackward<T>& a, void* workspace, Grid* grid) {
  using C = ComputeType<T>;
  const bool corrects = kRecentre<T, kCentre> && a.dweight && !a.from_output;
  grid->column_blocks = a.dweight || a.dbias ? static_cast<int>(plan.column_blocks) : 0;
  grid->lanes = plan.lanes;
  grid->team = plan.team;
  grid->share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  grid->residual = corrects ? static_cast<C*>(workspace) : nullptr;
  return grid->column_blocks + (a.dx || corrects ? plan.row_blocks : 0);
}

template <bool kCentre, class T>
cudaError_t LaunchNormFew(const NormFewPlan& plan, const NormBackward<T>& a,
                          const LaunchSite& site) {
  NormFewGrid<T> grid;
  const int64_t blocks = FillGrid<kCentre>(plan, a, site.workspace, &grid);
  const int cluster = grid.column_blocks > 0 ? plan.blocks : 1;
  const auto launch = [&](auto kernel) {
    return LaunchAs({cluster}, kernel, CeilDiv(blocks, cluster) * cluster, plan.threads,
                    FewSharedBytes<T, kCentre>(plan.threads, plan.lanes, plan.blocks), site.stream,
                    a, grid);
  };
  const cudaError_t error = VisitBool(a.from_output, [&](auto from_output) {
    constexpr bool kFromOutput = decltype(from_output)::value;
    return plan.packs == 2 ? launch(NormFewKernel<T, 2, kCentre, kFromOutput>)
                           : launch(NormFewKernel<T, 4, kCentre, kFromOutput>);
  });
  if (error != cudaSuccess) return error;
  return LaunchCorrection<kCentre>(a, grid.residual, site);
}

template <bool kCentre, class T>
cudaError_t LaunchNormSmall(const NormSmallPlan& plan, const NormBackward<T>& a,
                            const LaunchSite& site) {
  NormSmallGrid<T> grid;
  const int64_t blocks = FillGrid<kCentre>(plan, a, site.workspace, &grid);
  grid.columns_split = plan.columns_split;
  grid.rows_split = plan.rows_split;
  const cudaError_t error =
      LaunchAs({plan.cluster}, NormSmallKernel<T, kCentre>, blocks, NormSmallPolicy::kThreads,
               NormSmall<T, kCentre>::SharedBytes(plan), site.stream, a, grid);
  if (error != cudaSuccess) return error;
  return LaunchCorrection<kCentre>(a, grid.residual, site);
}

template <class T, bool kCentre>
bool PlanWideFor(int64_t rows, int64_t cols, NormTraits traits, const DeviceLimits& limits,
                 NormWidePlan* plan) {
  if constexpr (sizeof(T) > 4) {
    return false;
  } else {
    using C = ComputeType<T>;
    traits.scratch_bytes = sizeof(NormWideScratch<C, NormSums<T, kCentre>>);
    return PlanWide(
        rows, cols, traits, limits,
        [&](int blocks) {
          return MaxClusters<NormWideKernel<T, kCentre, false>>(  // the same for all
              blocks, NormWidePolicy::kMaxWorkers + NormWidePolicy::kOtherThreads, limits);
        },
        plan);
  }
}

// Where in the workspace the parts of the gradients of weight and bias are, in bytes: behind what
// slices exchange.
template <class T, bool kCentre>
int64_t WidePartsAt(const NormWidePlan& plan) {
  using Exchange = NormSliceExchange<NormSums<T, kCentre>, kNormSumCount<T, kCentre>>;
  return plan.grid ? 8 * Exchange::Words(plan.units, plan.slices) : 0;  // turns are even
}

template <bool kCentre, auto kernel, class T>
cudaError_t LaunchNormWideAs(const NormWidePlan& plan, const NormBackward<T>& a,
                             const LaunchSite& site) {
  NormWideGrid<T> grid;
  static_cast<NormWideShape&>(grid) = plan;
  grid.needs_sums = a.template needs_sums<kCentre>();
  grid.share = static_cast<ComputeType<T>>(1.0 / static_cast<double>(a.cols));
  char* const memory = static_cast<char*>(site.workspace);
  grid.words = plan.grid ? reinterpret_cast<uint64_t*>(memory) : nullptr;
  grid.parts = reinterpret_cast<ComputeType<T>*>(memory + WidePartsAt<T, kCentre>(plan));
  return LaunchLarge<kernel>({plan.grid ? 1 : plan.slices, plan.grid}, plan.units * plan.slices,
                             plan.workers + NormWidePolicy::kOtherThreads,
                             static_cast<size_t>(plan.shared), site, a, grid);
}
// Leaves plan.parts() parts in the workspace.
template <bool kCentre, class T>
cudaError_t LaunchNormWide(const NormWidePlan& plan, const NormBackward<T>& a,
                           const LaunchSite& site) {
  if constexpr (sizeof(T) > 4) {
    return cudaErrorInvalidValue;  // has no such plan
  } else {
    return VisitBool(a.from_output, [&](auto from_output) {
      constexpr auto kernel = NormWideKernel<T, kCentre, decltype(from_output)::value>;
      return LaunchNormWideAs<kCentre, kernel>(plan, a, site);
    });
  }
}

}  // namespace oneflow_lite::cuda::internal
