// SPDX-License-Identifier: Apache-2.0
//
// What the four rows_<dtype>.cu files share: InvariantLaunchers for T.
#pragma once

#include "primitive/cuda/norms/forward_launch.cuh"
#include "primitive/cuda/scale_mask/scale_mask_softmax.cuh"
#include "primitive/cuda/softmax/softmax.cuh"
#include "python/torch/invariant/column_rows.cuh"
#include "python/torch/invariant/cross_entropy_in_place.cuh"
#include "python/torch/invariant/cross_entropy_loss.cuh"
#include "python/torch/invariant/launchers.h"
#include "python/torch/invariant/mask_rows.cuh"
#include "python/torch/invariant/norm_gradient.cuh"
#include "python/torch/invariant/own_columns.cuh"
#include "python/torch/invariant/staged_norm.cuh"

namespace oneflow_lite {
namespace cuda {

// The exponentials of 8 packs a lane have registers in a warp.
template <bool kLog, class Load, class T, bool kReplace, bool kStow>
inline constexpr int kMostOfWarp<SoftmaxRow<kLog, Load, KeepingStore<T>, kReplace, kStow>> =
    sizeof(T) == 8 ? 128 : 256;
// Norms of float32 spill with 64 registers a thread: layer_norm of 16384 x 4097 takes 177 us then,
// 142 so, as by default.
template <bool kCentre>
using WideFloatNorm = NormHeldRow<kCentre, DirectLoad<float>, KeepingStore<float>, true>;
template <bool kCentre>
inline constexpr int kOwnThreads<WideFloatNorm<kCentre>> = 384;
template <bool kCentre>
struct OwnTopShape<WideFloatNorm<kCentre>> {
  static constexpr bool kServes = false;
};

// rms_norm of 16384 x 2047 of bfloat16: 38.5 us, with values of the compute type 38.9; by a warp,
// at 1001 columns, 22.0 and 23.1 us.
template <class T>
inline constexpr bool kOwnPacked<NormRow<false, DirectLoad<T>, KeepingStore<T>>> = sizeof(T) == 2;

template <class T>
struct InvariantOf {
  using C = ComputeType<T>;
  using Load = DirectLoad<T>;
  using Store = DirectStore<T>;
  using Image = ImageStore<T>;   // of staged rows
  using Keep = KeepingStore<T>;  // of rows in registers
  using Limits = DeviceLimits;

  template <bool kLog>
  static cudaError_t SoftmaxOf(const SoftmaxProblem& p, const T* x, T* y, const Limits& limits,
                               cudaStream_t stream) {
    const Load from{x, p.strides[0]};
    return LaunchOwnColumns(SoftmaxRow<kLog, Load, Keep>{from, {y, p.cols}},
                            SoftmaxRow<kLog, Load, Store, false>{from, {y, p.cols}},
                            SoftmaxRow<kLog, Load, Store>{from, {y, p.cols}}, p.rows, p.cols,
                            limits, stream);
  }
  static cudaError_t Softmax(const SoftmaxProblem& p, const void* x, void* y, const Limits& limits,
                             cudaStream_t stream) {
    const auto launch = p.log ? &SoftmaxOf<true> : &SoftmaxOf<false>;
    return launch(p, static_cast<const T*>(x), static_cast<T*>(y), limits, stream);
  }
  template <bool kLog>
  static cudaError_t SoftmaxBackwardOf(const SoftmaxProblem& p, const T* y, const T* dy, T* dx,
                                       const Limits& limits, cudaStream_t stream) {
    const Load y_rows{y, p.strides[0]}, dy_rows{dy, p.strides[1]};
    const SoftmaxBackwardRow<kLog, Load, Store> row{y_rows, dy_rows, {dx, p.cols}};
    return LaunchOwnColumns(SoftmaxBackwardRow<kLog, Load, Keep>{y_rows, dy_rows, {dx, p.cols}},
                            row, row, p.rows, p.cols, limits, stream);
  }
  static cudaError_t SoftmaxBackward(const SoftmaxProblem& p, const void* y, const void* dy,
                                     void* dx, const Limits& limits, cudaStream_t stream) {
    const auto launch = p.log ? &SoftmaxBackwardOf<true> : &SoftmaxBackwardOf<false>;
    return launch(p, static_cast<const T*>(y), static_cast<const T*>(dy), static_cast<T*>(dx),
                  limits, stream);
  }
  static cudaError_t ScaleMask(const ScaleMaskProblem& p, const void* x, const void* mask, void* y,
                               const Limits& limits, cudaStream_t stream) {
    const auto rows_of = [&](auto index) {
      return internal::MakeMaskedRows<T, decltype(index)>(p, static_cast<const T*>(x), mask,
                                                          static_cast<T*>(y));
    };
    FormedMaskRow<T, uint64_t, false> by_columns{rows_of(uint64_t{})};
    by_columns.rows.tiles.on = false;
    // Of so many rows there is room for narrow ones alone, which have no other kernel.
    if (p.rows >> 31 != 0) return LaunchByColumns(by_columns, p.rows, p.cols, stream);
    const auto rows = rows_of(uint32_t{});
    constexpr bool kShort = sizeof(T) == 2;
    const bool plain = rows.type == MaskType::kNone;
    const bool dense = rows.where.col_stride == 1;
    const bool own = rows.type == MaskType::kOwn && dense;
    const bool hides = !plain && dense && internal::MayKeep(p, rows.type);
    if (p.cols <= (kShort && (plain || own || hides) ? kMostShortColumns : kMostMaskedColumns)) {
      return LaunchMaskedColumns(rows, {{limits, stream}, p.rows, p.cols});
    }
    const auto launch = [&](auto way, auto staged_way) {
      const StagedMaskRow<T, decltype(staged_way)::value> staged{
          {{{rows}}, {static_cast<T*>(y), p.cols}}};
      const OwnMaskRow<T, decltype(way)::value> own{{{rows}}, {static_cast<T*>(y), p.cols}};
      return LaunchOwnColumns(own, staged, by_columns, p.rows, p.cols, limits, stream);
    };
    constexpr std::integral_constant<MaskWay, MaskWay::kNone> none;
    constexpr std::integral_constant<MaskWay, MaskWay::kHides> hidden;
    constexpr std::integral_constant<MaskWay, kOtherMasks<T>> other;
    if (plain) return launch(none, none);
    if (hides) return launch(hidden, hidden);
    if constexpr (kShort) {
      constexpr std::integral_constant<MaskWay, MaskWay::kBeside> beside;
      if (own && p.cols / kPackSize<T> <= 8 * kWarp) {
        return launch(beside, other);
      }
    }
    return launch(other, other);
  }
  static cudaError_t ScaleMaskBackward(const ScaleMaskProblem& p, const void* y, const void* dy,
                                       void* dx, const Limits& limits, cudaStream_t stream) {
    const ScaleMaskBackwardRow<T> row({{static_cast<const T*>(y), p.cols},
                                       {static_cast<const T*>(dy), p.cols},
                                       {static_cast<T*>(dx), p.cols}},
                                      static_cast<C>(p.scale),
                                      MakeCausalRows<uint64_t>(p.queries, p.cols, p.causal));
    return LaunchOwnColumns(OwnMaskBackwardRow<T>{row, {static_cast<T*>(dx), p.cols}},
                            StagedMaskBackwardRow<T>(row), row, p.rows, p.cols, limits, stream);
  }

  static CrossEntropyRows<T> RowsOf(const CrossEntropyProblem& p, const void* x,
                                    const int64_t* target) {
    return {
        p.rows, p.classes,   p.ignore_index, static_cast<C>(p.smoothing), static_cast<const T*>(x),
        target, p.row_stride};
  }
  static cudaError_t Loss(const CrossEntropyProblem& p, const void* x, const int64_t* target,
                          void* loss, void* stats, const Limits& limits, cudaStream_t stream) {
    return LaunchOwnLosses(RowsOf(p, x, target), static_cast<C*>(loss), static_cast<C*>(stats),
                           limits, stream);
  }
  static cudaError_t LossInPlace(const CrossEntropyProblem& p, void* x, const int64_t* target,
                                 const void* scale, void* loss, const Limits& limits,
                                 cudaStream_t stream) {
    const auto rows = RowsOf(p, x, target);
    T* const dx = static_cast<T*>(x);
    const C* const factor = static_cast<const C*>(scale);
    C* const losses = static_cast<C*>(loss);
    const auto launch = [&](auto smooth) {
      constexpr bool kSmooth = decltype(smooth)::value;
      const CrossEntropyInPlaceRow<T, kSmooth> row(rows, dx, factor, losses);
      const StagedInPlaceRow<T, kSmooth> staged(row, rows);
      return LaunchOwnColumns(OwnInPlaceRow<T, kSmooth>(staged), staged, row, p.rows, p.classes,
                              limits, stream);
    };
    return p.smoothing != 0 ? launch(std::true_type{}) : launch(std::false_type{});
  }

  template <bool kCentre>
  static cudaError_t NormOf(const NormProblem& p, const NormForwardPointers& pointers,
                            const Limits& limits, cudaStream_t stream) {
    NormForward<T> a;
    a.rows = p.rows, a.cols = p.cols, a.x_stride = p.x_stride;
    a.x = static_cast<const T*>(pointers.x);
    if (pointers.residual) {
      a.residual = static_cast<const T*>(pointers.residual);
      T* const sum = static_cast<T*>(pointers.sum ? pointers.sum : pointers.y);
      const cudaError_t error = internal::LaunchAdd(a, sum, stream);
      if (error != cudaSuccess) return error;
      a.x = sum, a.x_stride = p.cols;
    }
    NormExtras<C> extras;
    extras.weight = pointers.weight, extras.bias = pointers.bias;
    extras.float_weight = p.float_weight, extras.cols = p.cols;
    extras.mean = static_cast<C*>(pointers.mean), extras.rstd = static_cast<C*>(pointers.rstd);
    extras.eps = static_cast<C>(p.eps);
    extras.share = static_cast<C>(1.0 / static_cast<double>(p.cols));
    const Load from{a.x, a.x_stride};
    T* const y = static_cast<T*>(pointers.y);
    const NormTensors<Load, Image> staged{from, {y, p.cols}, extras};
    return LaunchOwnColumns(NormRow<kCentre, Load, Keep>{{from, {y, p.cols}, extras}},
                            StagedNormRow<T, kCentre>(staged),
                            NormRow<kCentre, Load, Store>{{from, {y, p.cols}, extras}}, p.rows,
                            p.cols, limits, stream);
  }
  static cudaError_t Norm(bool centre, const NormProblem& p, const NormForwardPointers& pointers,
                          const Limits& limits, cudaStream_t stream) {
    const auto launch = centre ? &NormOf<true> : &NormOf<false>;
    return launch(p, pointers, limits, stream);
  }
  template <bool kCentre>
  static cudaError_t NormBackwardOf(const NormProblem& p, const NormBackwardPointers& pointers,
                                    void* workspace, const DeviceLimits& limits,
                                    cudaStream_t stream) {
    NormBackward<T> a;
    a.rows = p.rows, a.cols = p.cols, a.x_stride = p.x_stride;
    a.x = static_cast<const T*>(pointers.x);
    a.dy = static_cast<const T*>(pointers.dy);
    a.dsum = static_cast<const T*>(pointers.dsum);
    a.weight = pointers.weight;
    a.float_weight = p.float_weight;
    a.mean = static_cast<const C*>(pointers.mean);
    a.rstd = static_cast<const C*>(pointers.rstd);
    a.dx = static_cast<T*>(pointers.dx);
    a.dweight = pointers.dweight;
    a.dbias = kCentre ? pointers.dbias : nullptr;
    return LaunchColumnGradient<kCentre>(a, limits, stream, workspace);
  }
  static cudaError_t NormGradient(bool centre, const NormProblem& p,
                                  const NormBackwardPointers& pointers, void* workspace,
                                  const DeviceLimits& limits, cudaStream_t stream) {
    const auto launch = centre ? &NormBackwardOf<true> : &NormBackwardOf<false>;
    return launch(p, pointers, workspace, limits, stream);
  }
  static size_t NormGradientBytes(bool centre, const NormProblem& p, const Limits& limits) {
    return centre ? ColumnGradientBytes<T, true>(p.rows, p.cols, limits)
                  : ColumnGradientBytes<T, false>(p.rows, p.cols, limits);
  }
  static constexpr InvariantLaunchers kLaunchers = {
      &Softmax, &SoftmaxBackward,   &ScaleMask,   &ScaleMaskBackward, &Loss, &LossInPlace,
      &Norm,    &NormGradientBytes, &NormGradient};
};

}  // namespace cuda
}  // namespace oneflow_lite
