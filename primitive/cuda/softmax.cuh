// SPDX-License-Identifier: Apache-2.0
//
// Row-wise softmax and log_softmax, forward and backward, as a header-only library: C++17, no
// dependency but the CUDA Toolkit. Rows may have any width and any alignment.
//
//   using namespace oneflow_lite::cuda;
//   DeviceLimits limits;
//   QueryDeviceLimits(device, &limits);              // once; keep it
//   DirectLoad<__half> load{x, cols};
//   DirectStore<__half> store{y, cols};
//   cudaError_t error = LaunchSoftmax<false>(load, store, rows, cols, limits, stream);
//
// A launch neither allocates nor synchronises and may be captured into a graph. `workspace` is
// optional device memory of SoftmaxWorkspaceBytes, aligned to 16 bytes, which few wide rows use to
// spread over the device. The output may be the input. The same call gives the same bits.
#pragma once

#include "primitive/cuda/launch.cuh"
#include "primitive/cuda/softmax_backward.cuh"
#include "primitive/cuda/softmax_forward.cuh"
#include "primitive/cuda/softmax_io.cuh"
#include "primitive/cuda/softmax_policy.h"

namespace oneflow_lite {
namespace cuda {

// Bytes of workspace that rows x cols elements of T can make use of, forward or backward.
template <class T>
size_t SoftmaxWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  if (rows <= 0) return 0;
  const int chunks = SplitChunks(rows, cols / kPackSize<T>, limits);
  static_assert(sizeof(OnlineSum<ComputeType<T>>) == sizeof(CompensatedSum<ComputeType<T>>));
  return chunks > 1 ? sizeof(OnlineSum<ComputeType<T>>) * rows * chunks : 0;
}

namespace internal {

// Calls f(GroupShape) for the plan's one of the seven instances of the group tier.
template <int kLanes, int kPacks>
struct GroupShape {
  static constexpr int lanes = kLanes, packs = kPacks;
};
template <class F>
cudaError_t VisitGroupShape(const SoftmaxPlan& plan, F&& f) {
  switch (plan.lanes * plan.packs) {
    case 4:
      return f(GroupShape<4, 1>{});
    case 8:
      return f(GroupShape<8, 1>{});
    case 16:
      return f(GroupShape<16, 1>{});
    case 32:
      return f(GroupShape<32, 1>{});
    case 64:
      return f(GroupShape<32, 2>{});
    case 128:
      return f(GroupShape<32, 4>{});
    default:
      return f(GroupShape<32, 8>{});
  }
}
static_assert(SoftmaxPolicy::kGroupPacks == 8, "VisitGroupShape lists the shapes");

inline int64_t GroupBlocks(int64_t rows, int lanes) {
  return CeilDiv(rows, SoftmaxPolicy::kGroupThreads / lanes);
}

}  // namespace internal

template <bool kLog, class Load, class Store>
cudaError_t LaunchSoftmax(const Load& load, const Store& store, int64_t rows, int64_t cols,
                          const DeviceLimits& limits, cudaStream_t stream,
                          void* workspace = nullptr) {
  using T = typename Store::Element;
  using P = SoftmaxPolicy;
  constexpr int N = kPackSize<T>;
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const SoftmaxPlan plan =
      ChooseSoftmaxPlan(rows, cols, N, P::kBlockPacks<N>, sizeof(Pack<typename Load::Element, N>),
                        Block::kScratchBytes, workspace != nullptr, limits);
  switch (plan.tier) {
    case SoftmaxTier::kGroup:
      return internal::VisitGroupShape(plan, [&](auto shape) {
        using Shape = decltype(shape);
        return Launch(SoftmaxGroupKernel<Shape::lanes, Shape::packs, kLog, Load, Store>,
                      internal::GroupBlocks(rows, Shape::lanes), P::kGroupThreads, 0, stream, load,
                      store, rows, cols);
      });
    case SoftmaxTier::kBlock:
      return Launch(SoftmaxBlockKernel<P::kBlockPacks<N>, kLog, Load, Store>, rows, plan.threads, 0,
                    stream, load, store, rows, cols);
    case SoftmaxTier::kShared: {
      constexpr auto kernel = SoftmaxWideKernel<true, kLog, Load, Store>;
      const cudaError_t error = AllowAllShared<kernel>(limits);
      if (error != cudaSuccess) return error;
      return Launch(kernel, rows, plan.threads, plan.shared, stream, load, store, rows, cols);
    }
    case SoftmaxTier::kSplit: {
      auto* partial = static_cast<OnlineSum<ComputeType<T>>*>(workspace);
      const int64_t blocks = rows * plan.chunks;
      const cudaError_t error = Launch(SoftmaxChunkKernel<Load, Store>, blocks, P::kSplitThreads, 0,
                                       stream, load, store, cols, plan.chunks, partial);
      if (error != cudaSuccess) return error;
      return Launch(SoftmaxApplyKernel<kLog, Load, Store>, blocks, P::kSplitThreads, 0, stream,
                    load, store, cols, plan.chunks, partial);
    }
    case SoftmaxTier::kWide:
      break;
  }
  return Launch(SoftmaxWideKernel<false, kLog, Load, Store>, rows, plan.threads, plan.shared,
                stream, load, store, rows, cols);
}

// y is the forward's output. dx may be dy (or y); otherwise no two may overlap.
template <bool kLog, class Load, class Store>
cudaError_t LaunchSoftmaxBackward(const Load& y, const Load& dy, const Store& dx, int64_t rows,
                                  int64_t cols, const DeviceLimits& limits, cudaStream_t stream,
                                  void* workspace = nullptr) {
  using T = typename Store::Element;
  using P = SoftmaxPolicy;
  constexpr int N = kPackSize<T>;
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const SoftmaxPlan plan = ChooseSoftmaxPlan(rows, cols, N, P::kBlockPacksBackward,
                                             2 * sizeof(Pack<typename Load::Element, N>),
                                             Block::kScratchBytes, workspace != nullptr, limits);
  switch (plan.tier) {
    case SoftmaxTier::kGroup:
      return internal::VisitGroupShape(plan, [&](auto shape) {
        using Shape = decltype(shape);
        return Launch(SoftmaxBackwardGroupKernel<Shape::lanes, Shape::packs, kLog, Load, Store>,
                      internal::GroupBlocks(rows, Shape::lanes), P::kGroupThreads, 0, stream, y, dy,
                      dx, rows, cols);
      });
    case SoftmaxTier::kBlock:
      return Launch(SoftmaxBackwardBlockKernel<P::kBlockPacksBackward, kLog, Load, Store>, rows,
                    plan.threads, 0, stream, y, dy, dx, rows, cols);
    case SoftmaxTier::kShared: {
      constexpr auto kernel = SoftmaxBackwardWideKernel<true, kLog, Load, Store>;
      const cudaError_t error = AllowAllShared<kernel>(limits);
      if (error != cudaSuccess) return error;
      return Launch(kernel, rows, plan.threads, plan.shared, stream, y, dy, dx, rows, cols);
    }
    case SoftmaxTier::kSplit: {
      auto* partial = static_cast<CompensatedSum<ComputeType<T>>*>(workspace);
      const int64_t blocks = rows * plan.chunks;
      const cudaError_t error =
          Launch(SoftmaxBackwardChunkKernel<kLog, Load, Store>, blocks, P::kSplitThreads, 0, stream,
                 y, dy, dx, cols, plan.chunks, partial);
      if (error != cudaSuccess) return error;
      return Launch(SoftmaxBackwardApplyKernel<kLog, Load, Store>, blocks, P::kSplitThreads, 0,
                    stream, y, dy, dx, cols, plan.chunks, partial);
    }
    case SoftmaxTier::kWide:
      break;
  }
  return Launch(SoftmaxBackwardWideKernel<false, kLog, Load, Store>, rows, plan.threads,
                plan.shared, stream, y, dy, dx, rows, cols);
}

}  // namespace cuda
}  // namespace oneflow_lite
