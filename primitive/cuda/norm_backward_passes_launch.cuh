// SPDX-License-Identifier: Apache-2.0
//
// The launch of the norms' backward in two passes (norm_backward_passes.cuh).
#pragma once

#include "primitive/cuda/launch.cuh"
#include "primitive/cuda/launch_after.cuh"
#include "primitive/cuda/norm_backward_passes.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Packs of a lane, rows on their way to it, and blocks per multiprocessor, by registers.
struct NormPassesShape {
  static constexpr int kPacks = 1, kSumRing = 3, kGradientRing = 2, kBlocks = 3;
};

// Whether PlanPasses's plan serves these pointers. like_dy: dy lies like dx.
template <bool kCentre, class T>
bool ServesPasses(const NormBackward<T>& a, bool like_dy) {
  return sizeof(T) == 2 && like_dy && a.dx && a.dx != a.dy && a.dx != a.x && !a.from_output &&
         !a.dsum && a.rstd && (a.mean || !kCentre) && (a.dweight || a.dbias);
}

// What the passes leave in the workspace: sums, and parts from these bytes on.
template <class T, bool kCentre>
struct NormPassesWorkspace {
  using Grid = NormPassesGrid<T, kCentre>;
  int64_t parts, end;

  NormPassesWorkspace(const NormPassesPlan& plan, int64_t rows, int64_t cols) {
    constexpr int64_t kSumBytes = sizeof(typename Grid::Sums), kBytes = sizeof(ComputeType<T>);
    parts = CeilDiv(rows * plan.sums.stripes * kSumBytes, 16) * 16;
    end = parts + plan.units() * Grid::kKinds * Grid::Pitch(cols) * kBytes;
  }
};

template <bool kCentre, class Shape = NormPassesShape, class T>
cudaError_t LaunchNormPasses(const NormPassesPlan& plan, const NormBackward<T>& a,
                             const DeviceLimits& limits, cudaStream_t stream, void* workspace) {
  if constexpr (sizeof(T) != 2) {
    return cudaErrorInvalidValue;  // has no such plan
  } else {
    using Grid = NormPassesGrid<T, kCentre>;
    using C = ComputeType<T>;
    constexpr int kPacks = Shape::kPacks, kBlocks = Shape::kBlocks;
    const NormPassesWorkspace<T, kCentre> places(plan, a.rows, a.cols);
    char* const memory = static_cast<char*>(workspace);
    Grid grid;
    grid.period = plan.period;
    grid.tiles = plan.sums;
    grid.stripes = plan.sums.stripes;
    grid.units = static_cast<int>(plan.units());
    grid.tile_blocks = static_cast<int>(plan.BlocksOf(plan.gradient));
    grid.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
    grid.sums = reinterpret_cast<typename Grid::Sums*>(memory);
    grid.parts = reinterpret_cast<C*>(memory + places.parts);
    using Sum = NormSumTile<T, kPacks, Shape::kSumRing, kCentre>;
    const cudaError_t error = Launch(
        NormSumPassKernel<T, kPacks, Shape::kSumRing, kBlocks, kCentre>, plan.BlocksOf(plan.sums),
        plan.sums.wide * plan.sums.tall * kWarp, Sum::SharedBytes(plan.sums), stream, a, grid);
    if (error != cudaSuccess) return error;
    grid.tiles = plan.gradient;
    using Gradient = NormGradientTile<T, kPacks, Shape::kGradientRing, kCentre>;
    const int threads = plan.gradient.wide * plan.gradient.tall * kWarp;
    const dim3 blocks(static_cast<unsigned>(grid.tile_blocks + CeilDiv(a.cols, kWarp)));
    return LaunchAfter(
        limits, NormGradientPassKernel<T, kPacks, Shape::kGradientRing, kBlocks, kCentre>, blocks,
        threads, Gradient::SharedBytes(plan.gradient, threads), stream, a, grid);
  }
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
