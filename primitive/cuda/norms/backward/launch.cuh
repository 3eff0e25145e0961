// SPDX-License-Identifier: Apache-2.0
//
// The launch of the norms' backward.
#pragma once

#include "primitive/cuda/norms/backward/columns.cuh"
#include "primitive/cuda/norms/backward/lean.cuh"
#include "primitive/cuda/norms/backward/narrow.cuh"
#include "primitive/cuda/norms/backward/policy.h"
#include "primitive/cuda/norms/backward/small.cuh"
#include "primitive/cuda/norms/backward/sums.cuh"
#include "primitive/cuda/norms/backward/wide.cuh"

namespace oneflow_lite::cuda {

namespace internal {

// How the rows lie within 16 bytes.
struct RowsLie {
  bool aligned, lines;  // all at multiples of 16 bytes, weights too; x and dy of 128
  int period;           // rows after which they lie as before
};
// Rows of dense tensors after which they lie as before within 16 bytes.
template <class T>
int PeriodOf(int64_t stride) {
  int period = 1;
  while (stride * period % kPackSize<T> != 0) period *= 2;
  return period;
}
template <class T>
RowsLie HowRowsLie(const NormBackward<T>& a) {
  RowsLie lie;
  const void* const bias = a.from_output ? a.bias : nullptr;  // else it is not read
  lie.aligned = AreMultiplesOf16({AddressOf(a.x), AddressOf(a.dy), AddressOf(a.dsum),
                                  AddressOf(a.dx), AddressOf(a.weight), AddressOf(bias),
                                  a.cols * sizeof(T), a.x_stride * sizeof(T)});
  lie.lines = lie.aligned &&
              (AddressOf(a.x) | AddressOf(a.dy) | a.cols * sizeof(T) | a.x_stride * sizeof(T)) %
                      kNormLineBytes ==
                  0;
  lie.period = static_cast<int>(Max(PeriodOf<T>(a.cols), PeriodOf<T>(a.x_stride)));
  return lie;
}

template <class T>
NormTraits BackwardTraits(bool centre, bool from_output, bool float_weight, const RowsLie& lie) {
  NormTraits t;
  t.many = kManyPacks<T>;
  t.pack = kPackSize<T>;
  t.compute_bytes = sizeof(ComputeType<T>);
  t.weights = from_output ? 2 : 1;
  t.kinds = centre ? 2 : 1;
  t.scratch_bytes = kNarrowWeightBytes;
  t.aligned = lie.aligned;
  t.lines = lie.lines;
  t.period = lie.period;
  t.weight_bytes = float_weight ? 4 : sizeof(T);
  t.from_output = from_output;
  return t;
}

// The launch of one of the kernels of teams, as planned.
template <class T, bool kCentre>
struct TeamsLaunch {
  const NormBackward<T>& a;
  const NormPlan& plan;
  const NormBackwardGrid<T, kCentre>& grid;
  const LaunchSite& site;

  template <auto kernel>
  cudaError_t Of() const {
    return LaunchLarge<kernel>({}, plan.units, plan.threads, static_cast<size_t>(plan.shared), site,
                               a, grid);
  }
};

// Narrow rows, and those of the lean kernel.
template <class T, bool kCentre>
cudaError_t LaunchNarrow(const TeamsLaunch<T, kCentre>& launch) {
  return VisitBool(launch.a.from_output, [&](auto from_output) {
    constexpr bool kFromOutput = decltype(from_output)::value;
    if constexpr (kManyPacks<T> == 2 && !kCentre) {
      if (launch.plan.packs == 1) {
        return launch.template Of<NormNarrowKernel<T, 1, kCentre, kFromOutput>>();
      }
    }
    return launch
        .template Of<NormNarrowKernel<T, NormPolicy::kNarrowPacks, kCentre, kFromOutput>>();
  });
}
template <class T, bool kCentre>
cudaError_t LaunchLean(const TeamsLaunch<T, kCentre>& launch) {
  const auto with = [&](auto of_float, auto from_output, auto packs) {
    using W = std::conditional_t<decltype(of_float)::value, float, T>;
    constexpr auto kernel =
        NormLeanKernel<T, W, decltype(packs)::value, kCentre, decltype(from_output)::value>;
    return launch.template Of<kernel>();
  };
  return VisitBool(launch.a.float_weight && !std::is_same_v<T, float>, [&](auto of_float) {
    return VisitBool(launch.a.from_output, [&](auto from_output) {
      const auto of = [&](auto packs) { return with(of_float, from_output, packs); };
      if constexpr (kManyPacks<T> == 2) return VisitNumber<2, 3, 4>(launch.plan.packs, of);
      return VisitNumber<4>(4, of);
    });
  });
}

// A backward of rows of whole packs by a plan of the caller's.
template <bool kCentre, class T>
cudaError_t LaunchNormBackwardAs(const NormPlan& plan, const NormBackward<T>& a,
                                 const LaunchSite& site) {
  using C = ComputeType<T>;
  NormBackwardGrid<T, kCentre> grid;
  grid.team = plan.team;
  grid.step = static_cast<int>(plan.units * plan.teams());
  grid.stages = plan.stages;
  grid.slack = plan.slack;
  // Of two stages the lean kernel gives one back once a row's sums are known (IsTight), so it is
  // told to wait for them.
  grid.needs_sums = a.template needs_sums<kCentre>() || (!plan.narrow && plan.stages == 2);
  grid.last = plan.units == 1;
  grid.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  grid.parts = static_cast<C*>(site.workspace);
  const TeamsLaunch<T, kCentre> launch{a, plan, grid, site};
  const cudaError_t error = plan.narrow ? LaunchNarrow(launch) : LaunchLean(launch);
  if (error != cudaSuccess || grid.last) return error;
  return ReduceParts<kCentre>(a, grid.parts, plan.units, kPackSize<T> / kPackSize<C>, site);
}

// By a plan that is the same for any number of rows: cudaErrorNotSupported where there is none.
template <bool kCentre, class T>
cudaError_t LaunchAnyRows(const NormBackward<T>& a, const NormTraits& traits,
                          const LaunchSite& site) {
  NormColumnsPlan columns;
  if (PlanColumns(NormPolicy::kAnyRows, a.cols, traits, site.limits, &columns)) {
    columns.units = Min(columns.units, CeilDiv(a.rows, columns.threads / columns.team));
    return LaunchNormColumns<kCentre>(columns, a, site);
  }
  NormPlan plan;
  if (!PlanAnyRows(a.rows, a.cols, traits, site.limits, &plan)) return cudaErrorNotSupported;
  return LaunchNormBackwardAs<kCentre>(plan, a, site);
}

}  // namespace internal

// Bytes of workspace, aligned to 16, with which LaunchNormBackward can do, whatever its pointers.
template <class T, bool kCentre>
size_t NormBackwardWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  if (rows <= 0 || cols <= 0) return 0;
  if (limits.multiprocessors == 0) {
    return NormBackwardWorkspaceBytes<T, kCentre>(rows, cols, AnyRowsLimits(limits));
  }
  using C = ComputeType<T>;
  const auto traits = internal::BackwardTraits<T>(kCentre, false, false, {});
  const int64_t part = kNormKinds<kCentre> * PartPitch<C>(cols) * int64_t{sizeof(C)};
  const int64_t few = kRecentre<T, kCentre> ? rows * int64_t{sizeof(C)} : 0;  // residuals
  const int64_t many = MostNormParts(rows, cols, traits, limits) * part + MostNormSumBytes(limits);
  const int64_t exact = internal::ExactWorkspaceBytes<T, kCentre>(rows, cols);
  return static_cast<size_t>(Max(Max(few, many), exact));
}

// kCentre: layer_norm, else rms_norm. Neither allocates nor synchronises; may be captured into a
// graph. The same call gives the same bits. Where `limits` has no multiprocessors, dx of a row
// depends on that row alone, and rows that no such plan serves are cudaErrorNotSupported.
template <bool kCentre, class T>
cudaError_t LaunchNormBackward(NormBackward<T> a, const DeviceLimits& limits, cudaStream_t stream,
                               void* workspace) {
  using namespace internal;
  if (a.rows <= 0 || a.cols <= 0) return cudaSuccess;
  if (!a.dx) a.dsum = nullptr;  // what would be added to it
  const LaunchSite site{limits, stream, workspace};
  if (WantsExact<kCentre>(a)) {
    const cudaError_t error = LaunchExact<kCentre>(a, site);
    if (error != cudaSuccess) return error;
    a.dweight = nullptr;
  }
  if (!(a.dx || a.dweight || a.dbias)) return cudaSuccess;
  if (!a.x) a.x = a.dy, a.x_stride = a.cols;  // dbias alone: what is read is not used
  const auto lie = HowRowsLie(a);
  auto traits = BackwardTraits<T>(kCentre, a.from_output, a.float_weight, lie);
  traits.tensors = a.dsum ? 3 : 2;
  if (limits.multiprocessors == 0) {
    const DeviceLimits any = AnyRowsLimits(limits);
    return LaunchAnyRows<kCentre>(a, traits, {any, stream, workspace});
  }
  const bool apart = a.dx != a.dy && a.dx != a.x;  // what is read is read again
  NormFewPlan few;
  if (apart && PlanFew(a.rows, a.cols, traits, limits, &few)) {
    return LaunchNormFew<kCentre>(few, a, site);
  }
  NormSmallPlan small;
  if (apart && PlanSmall(a.rows, a.cols, traits, limits, &small)) {
    return LaunchNormSmall<kCentre>(small, a, site);
  }
  NormColumnsPlan columns;
  if (PlanColumns(a.rows, a.cols, traits, limits, &columns)) {
    return LaunchNormColumns<kCentre>(columns, a, site);
  }
  NormPlan plan;
  if (PlanTeams(a.rows, a.cols, traits, limits, &plan)) {
    return LaunchNormBackwardAs<kCentre>(plan, a, site);
  }
  NormWidePlan wide;
  if (PlanWideFor<T, kCentre>(a.rows, a.cols, traits, limits, &wide)) {
    return LaunchNormWide<kCentre>(wide, a, site);
  }
  small = LayOutSmall(a.rows, a.cols, limits);
  if (apart) return LaunchNormSmall<kCentre>(small, a, site);
  // Columns, then rows: what is read is written over.
  NormBackward<T> columns_of = a;
  columns_of.dx = nullptr;
  a.dweight = a.dbias = nullptr;
  const cudaError_t error = LaunchNormSmall<kCentre>(small, columns_of, site);
  return error != cudaSuccess ? error : LaunchNormSmall<kCentre>(small, a, site);
}

}  // namespace oneflow_lite::cuda
