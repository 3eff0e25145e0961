// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) with every kind of mask, forward and backward, header-only. Formulas
// and corner cases: primitive/scale_mask_softmax.h.
//
//   ScaleMaskProblem p;
//   p.rows = batch * heads * queries, p.cols = keys, p.queries = queries;
//   p.scale = 0.125, p.causal = true;
//   LaunchScaleMaskSoftmax<__half>(p, x, nullptr, y, limits, stream, workspace);
//   LaunchScaleMaskSoftmaxBackward<__half>(p, y, dy, dx, limits, stream, workspace);
//
// A fusion of your own is put together from softmax/fusions.cuh.
#pragma once

#include <stdint.h>

#include "primitive/cuda/rows/row.cuh"
#include "primitive/cuda/rows/whole.cuh"
#include "primitive/cuda/rows/whole_policy.h"
#include "primitive/cuda/scale_mask/backward.cuh"
#include "primitive/cuda/scale_mask/columns.cuh"
#include "primitive/cuda/scale_mask/formed.cuh"
#include "primitive/cuda/scale_mask/forward.cuh"
#include "primitive/cuda/scale_mask/launch.h"

namespace oneflow_lite::cuda {

// Which kernel serves which rows, by the measurements in docs/lab/40-tuning-narrow-rows.md.
struct ScaleMaskPolicy {
  static constexpr int kGroupPacks = 128;  // of a row for the lanes of a warp; a block has more
  // Matrices that share a mask of at least so many bytes take turns of so many rows.
  static constexpr int64_t kTiledBytes = 6 << 20;
  static constexpr int64_t kTileRows = 128;

  // Other rows. Beyond so many packs those without a mask, and those under one, are faster in
  // blocks.
  template <class T>
  static constexpr int kColumns = sizeof(T) == 2 ? 144 : 1088;  // column by column
  static constexpr int kPlainPacks = 96, kFormedPacks = 256;
};

// Blocks that hold whole rows. Doubles need registers for their exponential besides.
template <class C>
using MaskedBlock = WholeShape<4, sizeof(C) == 8 ? 256 : 512, sizeof(C) == 8 ? 3 : 2>;
// Blocks of rows that lie anyhow, of which scores are held in the compute type. Of 16 bits 16384 x
// 6145 under an additive mask takes 171 us by LateMaskRow, 219 as x and mask lie in memory; of
// float32 x 2047 takes 108 and 84 by FormedMaskRow.
template <class T>
struct FormedBlock : WholeShape<4,
                                sizeof(T) == 8   ? 256
                                : sizeof(T) == 4 ? 320
                                                 : 384,
                                2> {
  static constexpr bool kAligned = sizeof(T) > 2;  // FormedMaskRow asks itself
};
template <class T>
using InFormedBlocks =
    std::conditional_t<sizeof(T) == 2, LateMaskRow<T>, FormedMaskRow<T, uint32_t, false>>;

namespace internal {

// Whether every pack of the mask that goes with a pack of x is aligned to its size, or to 16 bytes.
template <class T, class Index>
bool HasAlignedMask(const MaskedRows<T, Index>& rows) {
  const int pack = kPackSize<T> * rows.mask_item, word = pack < kPackBytes ? pack : kPackBytes;
  bool aligned = rows.where.col_stride == 1 && reinterpret_cast<uintptr_t>(rows.mask) % word == 0;
  for (const int64_t stride : rows.where.strides) {
    aligned = aligned && stride * rows.mask_item % word == 0;
  }
  return aligned;
}

template <class T, class Index>
MaskedRows<T, Index> MakeMaskedRows(const ScaleMaskProblem& p, const T* x, const void* mask, T* y) {
  MaskedRows<T, Index> rows{x, p.cols, {y, p.cols}, static_cast<const char*>(mask)};
  rows.type = !mask                            ? MaskType::kNone
              : p.kind == ScaleMaskKind::kBool ? MaskType::kBool
              : p.wide_mask && sizeof(T) == 2  ? MaskType::kWide
                                               : MaskType::kOwn;
  rows.mask_item = rows.type == MaskType::kBool   ? 1
                   : rows.type == MaskType::kWide ? sizeof(ComputeType<T>)
                                                  : sizeof(T);
  rows.zero_masked_rows = p.zero_masked_rows;
  rows.scale = static_cast<ComputeType<T>>(p.scale);
  rows.causal = MakeCausalRows<Index>(p.queries, p.cols, p.causal);
  rows.where = MakeRowBroadcast<Index>(p.mask_dims, p.mask_strides, p.mask_col_stride);
  rows.mask_is_aligned = HasAlignedMask(rows);
  // Matrices of the last dim that share their mask: those of the dim before it.
  const int64_t matrices = p.mask_dims[1], queries = p.mask_dims[2];
  const bool shared = mask && p.mask_strides[1] == 0 && p.mask_strides[2] != 0 && matrices > 1;
  if (shared && queries * p.cols * rows.mask_item >= ScaleMaskPolicy::kTiledBytes) {
    rows.tiles = MakeMatrixTiles(matrices, queries, ScaleMaskPolicy::kTileRows);
  }
  return rows;
}

template <class T, class Index>
bool IsWhole(const MaskedRows<T, Index>& rows, int64_t cols) {
  return cols % kPackSize<T> == 0 && AllAligned(DirectLoad<T>{rows.x, rows.cols}) &&
         AllAligned(rows.y) && (!rows.mask || rows.mask_is_aligned);
}

// Rows of whole aligned packs are most rows of attention; not served are those wider than a block's
// registers.
template <class A>
cudaError_t LaunchWholeMasked(const A& a, const RowCall& call) {
  using Shape = MaskedBlock<typename A::C>;
  const int packs = static_cast<int>(call.cols / A::kPack);
  if (packs > Shape::kMostPacks || call.rows > kMaxBlocks) return kNotServed;
  if (packs > ScaleMaskPolicy::kGroupPacks) {
    const int threads = static_cast<int>(CeilDiv(packs, Shape::kPacks * kWarp) * kWarp);
    return Launch(RowWholeBlockKernel<A, Shape>, call.rows, threads, 0, call.stream, a, packs,
                  packs);
  }
  return VisitGroupShape(GroupPlan(packs), [&](auto shape) {
    constexpr int kLanes = decltype(shape)::lanes;
    constexpr int kPacks = decltype(shape)::packs < 4 ? decltype(shape)::packs : 4;
    return LaunchRowGroups<kLanes>(RowWholeKernel<kLanes, kPacks, A>, call, a, call.rows, packs);
  });
}

// Rows of at most ScaleMaskPolicy's columns.
template <class T>
cudaError_t LaunchColumnByColumn(const MaskedRows<T, uint32_t>& every, const RowCall& call) {
  const auto launch = [&](auto shape) {
    using Shape = decltype(shape);
    return LaunchRowGroups<Shape::lanes>(MaskedColumnsKernel<Shape::lanes, Shape::packs, T>, call,
                                         every, call.rows, static_cast<int>(call.cols));
  };
  using Least = GroupShape<8, 7>;
  using Small = GroupShape<16, 6>;
  using Medium = GroupShape<16, 9>;
  if constexpr (sizeof(T) == 2) {
    return VisitShapes<Least, Small, Medium>(call.cols, launch);
  } else {
    return VisitShapes<Least, Small, Medium, GroupShape<32, 7>, GroupShape<32, 13>,
                       GroupShape<32, 20>, GroupShape<32, 34>>(call.cols, launch);
  }
}
// Rows of at most ScaleMaskPolicy::kFormedPacks, a row per group of lanes.
template <class A>
cudaError_t LaunchFormedGroups(const A& a, const RowCall& call) {
  return VisitShapes<GroupShape<16, 2>, GroupShape<16, 4>, GroupShape<32, 3>, GroupShape<32, 5>,
                     GroupShape<32, 8>>(call.cols / A::kPack, [&](auto shape) {
    return LaunchGroupsOf<decltype(shape)::lanes, decltype(shape)::packs, false>(a, call);
  });
}
// `wide`: the same for rows wider than a cluster's registers.
template <class T, class A = InFormedBlocks<T>>
cudaError_t LaunchFormedBlocks(const A& a, const FormedMaskRow<T, uint32_t, false>& wide,
                               const RowCall& call) {
  using Shape = FormedBlock<T>;
  const int64_t packs = call.cols / A::kPack, blocks = CeilDiv(packs, Shape::kMostPacks);
  const auto launch = [&](auto kernel, int64_t threads) {
    return LaunchAs({static_cast<int>(blocks)}, kernel, call.rows * blocks,
                    static_cast<int>(threads), 0, call.stream, a, call.rows, call.cols);
  };
  if (blocks == 1) {
    return launch(RowBlockKernel<false, A, Shape>, CeilDiv(packs, Shape::kPacks * kWarp) * kWarp);
  }
  constexpr auto cluster = RowBlockKernel<true, A, Shape>;
  const int most = MaxClusterBlocks<cluster>(Shape::kThreads, 0, call.limits);
  return blocks <= most ? launch(cluster, Shape::kThreads) : LaunchWide(wide, call);
}

// Whether ScaleMaskRow serves: times log2(e) and x the scale is still finite.
inline bool MayKeep(const ScaleMaskProblem& p, MaskType type) {
  return p.scale > 0 && p.scale < 1e30 && (type == MaskType::kNone || type == MaskType::kBool);
}
template <bool kWhole, class T>
ScaleMaskRow<T, kWhole> KeptRows(MaskedRows<T, uint32_t> rows) {
  if (ScaleMaskRow<T, kWhole>::kBase2) rows.scale *= kLog2E;
  return {rows};
}

// Rows and masks that lie anyhow, or are wide. may_keep: whether ScaleMaskRow serves.
template <class T>
cudaError_t LaunchAnyMasked(const MaskedRows<T, uint32_t>& every, bool may_keep,
                            const RowCall& call) {
  using P = ScaleMaskPolicy;
  using Formed = FormedMaskRow<T, uint32_t, false>;
  constexpr bool kShort = sizeof(T) == 2;
  const int64_t packs = call.cols / kPackSize<T>;
  if (call.cols <= P::kColumns<T>) return LaunchColumnByColumn(every, call);
  const int64_t short_packs = every.type == MaskType::kNone ? P::kPlainPacks : P::kFormedPacks;
  if (may_keep && packs > short_packs) return LaunchRowsAs<false>(KeptRows<false>(every), call);
  if constexpr (kShort) {
    if (packs <= P::kFormedPacks) return LaunchFormedGroups(Formed{every}, call);
  }
  return LaunchFormedBlocks<T>({{every}}, Formed{every}, call);
}

}  // namespace internal

template <class T>
size_t ScaleMaskWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  const size_t forward = RowWorkspaceBytes<ScaleMaskRow<T, false>>(rows, cols, limits);
  const size_t backward = RowWorkspaceBytes<ScaleMaskBackwardRow<T>>(rows, cols, limits);
  return forward > backward ? forward : backward;
}

// y may be x. `workspace` is optional: ScaleMaskWorkspaceBytes, aligned to 16 bytes. Fastest are
// rows of whole packs under masks of whole packs, all aligned to 16 bytes.
template <class T>
cudaError_t LaunchScaleMaskSoftmax(const ScaleMaskProblem& p, const T* x, const void* mask, T* y,
                                   const DeviceLimits& limits, cudaStream_t stream,
                                   void* workspace = nullptr) {
  using namespace internal;
  if (p.rows <= 0 || p.cols <= 0) return cudaSuccess;
  const RowCall call{{limits, stream, workspace}, p.rows, p.cols};
  if (p.rows >= int64_t{1} << 31 || p.cols >= int64_t{1} << 31) {
    using A = FormedMaskRow<T, uint64_t, false>;
    return LaunchWide(A{MakeMaskedRows<T, uint64_t>(p, x, mask, y)}, call);
  }
  const auto rows = MakeMaskedRows<T, uint32_t>(p, x, mask, y);
  const bool may_keep = MayKeep(p, rows.type);
  if (IsWhole(rows, p.cols)) {
    using Formed = FormedMaskRow<T, uint32_t, true>;
    const cudaError_t error = may_keep ? LaunchWholeMasked(KeptRows<true>(rows), call)
                                       : LaunchWholeMasked(Formed{rows}, call);
    if (error != kNotServed) return error;
  }
  return LaunchAnyMasked(rows, may_keep, call);
}

// dx = scale y (dy - sum(y dy)); the mask has played its part in y. dx may be dy. Slower where y,
// dy and dx begin differently within 16 bytes.
template <class T>
cudaError_t LaunchScaleMaskSoftmaxBackward(const ScaleMaskProblem& p, const T* y, const T* dy,
                                           T* dx, const DeviceLimits& limits, cudaStream_t stream,
                                           void* workspace = nullptr) {
  const ScaleMaskBackwardRow<T> row({{y, p.cols}, {dy, p.cols}, {dx, p.cols}},
                                    static_cast<ComputeType<T>>(p.scale),
                                    MakeCausalRows<uint64_t>(p.queries, p.cols, p.causal));
  if (p.rows <= 0 || p.cols <= 0) return cudaSuccess;
  const RowCall call{{limits, stream, workspace}, p.rows, p.cols};
  if (row.IsAlignedEverywhere()) return internal::LaunchRowsAs<true>(row, call);
  if (p.cols / kPackSize<T> <= 4 * kWarp) {
    return internal::LaunchGroupsOf<kWarp, 4, false>(row, call);
  }
  return internal::LaunchWide(row, call);
}

}  // namespace oneflow_lite::cuda
