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
#include "primitive/cuda/norms/backward/teams.cuh"
#include "primitive/cuda/norms/backward/wide.cuh"

namespace oneflow_lite::cuda {

namespace internal {

// How the rows lie within 16 bytes.
struct RowsLie {
  bool aligned, lines;              // all at multiples of 16 bytes, x and dy of 128
  bool like_x, like_dy, like_dsum;  // as those of dx
  int period;                       // rows after which they lie as before
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
  const uint64_t anchor = AddressOf(a.anchor()), pad = (a.x_stride - a.cols) * sizeof(T);
  RowsLie lie;
  lie.aligned = AreMultiplesOf16({AddressOf(a.x), AddressOf(a.dy), AddressOf(a.dsum),
                                  AddressOf(a.dx), a.cols * sizeof(T), a.x_stride * sizeof(T)});
  lie.lines = lie.aligned &&
              (AddressOf(a.x) | AddressOf(a.dy) | a.cols * sizeof(T) | a.x_stride * sizeof(T)) %
                      kNormLineBytes ==
                  0;
  lie.like_x = AreMultiplesOf16({AddressOf(a.x) - anchor, pad});
  lie.like_dy = AreMultiplesOf16({AddressOf(a.dy) - anchor});
  lie.like_dsum = !a.dsum || AreMultiplesOf16({AddressOf(a.dsum) - anchor});
  lie.period = static_cast<int>(Max(PeriodOf<T>(a.cols), PeriodOf<T>(a.x_stride)));
  return lie;
}

// Whether narrow rows of whole packs have a kernel of their own.
template <class T>
inline constexpr bool kHasNarrow = sizeof(T) <= 4;

template <class T>
NormTraits BackwardTraits(bool centre, bool from_output, bool float_weight, const RowsLie& lie) {
  NormTraits t;
  t.many = kManyPacks<T>;
  t.pack = kPackSize<T>;
  t.compute_bytes = sizeof(ComputeType<T>);
  t.weights = from_output ? 2 : 1;
  t.kinds = centre ? 2 : 1;
  t.scratch_bytes = kNormScratchBytes;
  t.aligned = lie.aligned;
  t.lines = lie.lines;
  t.packs_weight = sizeof(T) == 2 && !from_output && !float_weight;
  t.period = lie.period;
  t.narrow = kHasNarrow<T> && !from_output;
  t.lean = sizeof(T) <= 4;
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
    return LaunchLarge<kernel>({plan.cluster ? static_cast<int>(plan.slices) : 1},
                               plan.units * plan.slices, plan.threads,
                               static_cast<size_t>(plan.shared), site, a, grid);
  }
};

// Narrow rows of whole packs, and those of the lean kernel.
template <class T, bool kCentre>
cudaError_t LaunchNarrow(const TeamsLaunch<T, kCentre>& launch) {
  if constexpr (kManyPacks<T> == 2 && !kCentre) {
    if (launch.plan.packs == 1) return launch.template Of<NormNarrowKernel<T, 1, kCentre>>();
  }
  return launch.template Of<NormNarrowKernel<T, NormPolicy::kNarrowPacks, kCentre>>();
}
template <class T, bool kCentre>
cudaError_t LaunchLean(const TeamsLaunch<T, kCentre>& launch) {
  const auto with = [&](auto of_float, auto from_output, auto packs) {
    using W = std::conditional_t<decltype(of_float)::value, float, T>;
    constexpr auto kernel =
        NormLeanKernel<T, W, decltype(packs)::value, kCentre, decltype(from_output)::value>;
    return launch.template Of<kernel>();
  };
  return VisitBool(launch.a.float_weight && sizeof(T) < 4, [&](auto of_float) {
    return VisitBool(launch.a.from_output, [&](auto from_output) {
      const auto of = [&](auto packs) { return with(of_float, from_output, packs); };
      if constexpr (kManyPacks<T> == 2) return VisitNumber<2, 3, 4>(launch.plan.packs, of);
      return VisitNumber<4>(4, of);
    });
  });
}
// Other rows.
template <class T, bool kCentre>
cudaError_t LaunchInstance(const TeamsLaunch<T, kCentre>& launch, bool aligned) {
  return VisitBool(launch.a.from_output, [&](auto from_output) {
    return VisitBool(aligned, [&](auto of_packs) {
      constexpr bool kFromOutput = decltype(from_output)::value;
      return VisitNumber<1, kManyPacks<T>, 4>(launch.plan.packs, [&](auto packs) {
        constexpr int kPacks = decltype(packs)::value;
        constexpr bool kAligned =
            decltype(of_packs)::value && (kPacks > 1 || kFromOutput || !kHasNarrow<T>);
        return launch.template Of<NormBackwardKernel<T, kPacks, kCentre, kFromOutput, kAligned>>();
      });
    });
  });
}

// A backward by a plan of the caller's.
template <bool kCentre, class T>
cudaError_t LaunchNormBackwardAs(const NormPlan& plan, const NormBackward<T>& a,
                                 const LaunchSite& site) {
  using C = ComputeType<T>;
  using Sums = NormSums<T, kCentre>;
  const bool sums_first = plan.knows_sums() && a.template needs_sums<kCentre>();
  auto* sums = static_cast<Sums*>(site.workspace);
  C* parts = reinterpret_cast<C*>(sums + (plan.knows_sums() ? a.rows * plan.chunks : 0));
  cudaError_t error = cudaSuccess;
  if (sums_first) {
    const int64_t most = int64_t{NormPolicy::kSumBlocks} * site.limits.multiprocessors;
    error = Launch(NormBackwardSumsKernel<T, kCentre>, Min(a.rows * plan.chunks, most),
                   NormPolicy::kSumThreads, 0, site.stream, a, plan.chunks, sums);
    if (error != cudaSuccess) return error;
  }
  NormBackwardGrid<T, kCentre> grid;
  grid.team = plan.team;
  grid.slices = static_cast<int>(plan.slices);
  grid.stages = plan.stages;
  grid.slack = plan.slack;
  grid.packed_weight = plan.packed_weight;
  grid.chunks = plan.chunks;
  // Of two stages the lean kernel gives one back once a row's sums are known (IsTight), so it is
  // told to wait for them.
  grid.needs_sums = a.template needs_sums<kCentre>() || (plan.lean && plan.stages == 2);
  grid.cluster = plan.cluster && grid.needs_sums;  // a cluster that starts must exchange
  const RowsLie lie = HowRowsLie(a);
  grid.like_x = lie.like_x;
  grid.like_dy = lie.like_dy;
  grid.like_dsum = lie.like_dsum;
  grid.last = plan.units == 1;
  grid.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  grid.sums = sums_first ? sums : nullptr;
  grid.parts = parts;
  // Where narrow rows have a kernel of their own, teams with one pack per thread are those of a few
  // very wide rows, and the kernel for rows of any kind serves them.
  const bool any = kHasNarrow<T> && !a.from_output && plan.packs == 1 && !plan.narrow;
  const bool packs = lie.aligned && !any;
  const TeamsLaunch<T, kCentre> launch{a, plan, grid, site};
  if (plan.narrow || plan.lean) {
    if constexpr (sizeof(T) <= 4) {
      error = plan.narrow ? LaunchNarrow(launch) : LaunchLean(launch);
    }
  } else {
    error = LaunchInstance(launch, a.from_output ? lie.aligned : packs);
  }
  if (error != cudaSuccess || grid.last) return error;
  return ReduceParts<kCentre>(a, parts, plan.units, packs ? kPackSize<T> / kPackSize<C> : 1, site);
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
  const int64_t many = MostNormParts(rows, cols, traits, limits) * part +
                       MostNormSumBytes(rows, cols, sizeof(NormSums<T, kCentre>), traits, limits);
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
  const void* const bias = a.from_output ? a.bias : nullptr;  // else it is not read
  traits.tensors = a.dsum ? 3 : 2;
  traits.lean = traits.lean && AreMultiplesOf16({AddressOf(a.weight), AddressOf(bias)});
  if (limits.multiprocessors == 0) {
    const DeviceLimits any = AnyRowsLimits(limits);
    return LaunchAnyRows<kCentre>(a, traits, {any, stream, workspace});
  }
  const bool apart = a.dx != a.dy && a.dx != a.x;  // what is read is read again
  const bool aligned = AreMultiplesOf16({AddressOf(a.weight), AddressOf(a.bias)});
  NormFewPlan few;
  if (apart && aligned && PlanFew(a.rows, a.cols, traits, limits, &few)) {
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
  // Of whole packs, rows that others have on chip are theirs.
  const bool may_be_wide = !lie.aligned || a.cols > NormPolicy::kBlockPacks * kPackSize<T>;
  NormWidePlan wide;
  if (may_be_wide && PlanWideFor<T, kCentre>(a.rows, a.cols, traits, limits, &wide)) {
    return LaunchNormWide<kCentre>(wide, a, site);
  }
  const auto plan = PlanNormBackward(a.rows, a.cols, traits, limits, [&](int blocks) {
    return MaxClusters<NormBackwardKernel<T, 4, kCentre, false, true>>(  // the same for all
        blocks, NormPolicy::kThreads, limits);
  });
  return LaunchNormBackwardAs<kCentre>(plan, a, site);
}

}  // namespace oneflow_lite::cuda
