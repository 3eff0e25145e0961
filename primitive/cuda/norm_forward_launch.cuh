// SPDX-License-Identifier: Apache-2.0
//
// The two ways in which the norms' forward is launched: by the tiers of row.cuh, by teams.
#pragma once

#include "primitive/cuda/norm_forward.cuh"
#include "primitive/cuda/norm_forward_team.cuh"
#include "primitive/cuda/norm_team_launch.cuh"
#include "primitive/cuda/row.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

template <bool kCentre, class T>
cudaError_t LaunchForwardRows(const NormForward<T>& a, const DeviceLimits& limits,
                              cudaStream_t stream, void* workspace) {
  using C = ComputeType<T>;
  const DirectLoad<T> load{a.x, a.x_stride};
  const DirectStore<T> store{a.y, a.cols};
  NormExtras<T, C> extras;
  extras.weight = a.weight, extras.bias = a.bias, extras.float_weight = a.float_weight;
  extras.sum = a.sum, extras.cols = a.cols, extras.mean = a.mean, extras.rstd = a.rstd;
  extras.eps = static_cast<C>(a.eps);
  extras.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  if (!a.residual) {
    using Row = NormRow<kCentre, DirectLoad<T>, NoResidual, DirectStore<T>>;
    return LaunchRows(Row{load, {}, store, extras}, a.rows, a.cols, limits, stream, workspace);
  }
  using Row = NormRow<kCentre, DirectLoad<T>, DirectLoad<T>, DirectStore<T>>;
  const DirectLoad<T> residual{a.residual, a.cols};
  return LaunchRows(Row{load, residual, store, extras}, a.rows, a.cols, limits, stream, workspace);
}

template <class T>
NormTraits ForwardTraits(const NormForward<T>& a) {
  NormTraits t;
  t.pack = kPackSize<T>;
  t.compute_bytes = sizeof(ComputeType<T>);
  t.inputs = a.residual ? 2 : 1;
  t.many = t.most = a.residual ? kForwardPacks<T, true> : kForwardPacks<T, false>;
  t.weights = (a.weight ? 1 : 0) + (a.bias ? 1 : 0);
  t.scratch_bytes = kNormScratchBytes;
  t.aligned = AreMultiplesOf16({AddressOf(a.x), AddressOf(a.residual), AddressOf(a.y),
                                AddressOf(a.sum), a.cols * sizeof(T), a.x_stride * sizeof(T)});
  return t;
}

template <bool kCentre, class T>
auto ForwardClusters(const DeviceLimits& limits) {
  return [&limits](int blocks, const NormPlan& plan) {
    // The same for all instances: a block fills a multiprocessor.
    return MaxClusters<NormForwardTeamKernel<T, kCentre, false, true>>(
        blocks, plan.threads, static_cast<size_t>(plan.shared), limits);
  };
}

template <bool kCentre, class T>
cudaError_t LaunchForwardTeams(const NormPlan& plan, const NormForward<T>& a,
                               const DeviceLimits& limits, cudaStream_t stream) {
  using C = ComputeType<T>;
  NormForwardGrid<T> grid;
  grid.team = plan.team;
  grid.slices = static_cast<int>(plan.slices);
  grid.stages = plan.stages;
  grid.cluster = plan.cluster;
  grid.aligned_sum = AreMultiplesOf16({AddressOf(a.sum) - AddressOf(a.y)});
  grid.eps = static_cast<C>(a.eps);
  grid.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  const bool aligned = ForwardTraits(a).aligned;
  const auto launch = [&](auto residual, auto is_aligned) {
    return LaunchTeams<
        NormForwardTeamKernel<T, kCentre, decltype(residual)::value, decltype(is_aligned)::value>>(
        plan, limits, stream, a, grid);
  };
  using Yes = std::true_type;
  using No = std::false_type;
  if (a.residual) return aligned ? launch(Yes{}, Yes{}) : launch(Yes{}, No{});
  return aligned ? launch(No{}, Yes{}) : launch(No{}, No{});
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
