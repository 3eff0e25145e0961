// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm as an algorithm of own_staged.cuh: streamed as by default, by own packs,
// beside which weights always lie alike.
#pragma once

#include "primitive/cuda/norms/forward.cuh"
#include "python/torch/invariant/own_staged.cuh"

namespace oneflow_lite {
namespace cuda {

template <class T, bool kCentre>
struct StagedNormRow : NormRow<kCentre, DirectLoad<T>, ImageStore<T>> {
  using Base = NormRow<kCentre, DirectLoad<T>, ImageStore<T>>;
  using Base::extras, Base::kPack;
  using typename Base::C, typename Base::Total;
  template <int N>
  using Raw = typename Base::template Raw<N>;

  __host__ __device__ explicit StagedNormRow(
      const NormTensors<DirectLoad<T>, ImageStore<T>>& tensors)
      : Base(tensors) {}
  __device__ __forceinline__ WordFrame Frame(int, int64_t row, int64_t col) const {
    return this->load.Frame(row, col);
  }

  // Weight and bias of a pack, as they lie in memory.
  template <class W>
  struct Operands {
    StowedPack<W, kPack> weight, bias;
  };
  __device__ __forceinline__ void StorePart(int64_t row,
                                            const internal::StagedPart<StagedNormRow>& part,
                                            const Total& total) const {
    if (!IsAlignedFor<uint4>(extras.weight) || !IsAlignedFor<uint4>(extras.bias)) {
      for (int p = threadIdx.x % kWarp; p < part.count; p += kWarp) {
        this->template StoreRaw<kPack>(row, part.col + p * kPack, {{part.Own(p)}}, total);
      }
    } else if (!std::is_same_v<T, float> && extras.float_weight) {
      StoreBeside<float, 1>(row, part, total);
    } else {
      StoreBeside<T, 2>(row, part, total);
    }
  }

 private:
  template <class W>
  __device__ __forceinline__ Operands<W> Ask(int64_t col) const {
    Operands<W> operands;
    const auto of = [&](const void* weights) {
      return StowedPack<W, kPack>::Of(LoadWholePack<kPack>(static_cast<const W*>(weights) + col));
    };
    if (extras.weight) operands.weight = of(extras.weight);
    if (extras.bias) operands.bias = of(extras.bias);
    return operands;
  }
  // No load passes a store: what belongs to the next packs is asked for before these are stored.
  template <class W, int kAtOnce>
  __device__ __forceinline__ void StoreBeside(int64_t row,
                                              const internal::StagedPart<StagedNormRow>& part,
                                              const Total& total) const {
    const int lane = threadIdx.x % kWarp;
    Operands<W> next[kAtOnce];
    const auto ask = [&](int begin) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int p = begin + k * kWarp;
        if (p < part.count) next[k] = Ask<W>(part.col + p * kPack);
      }
    };
    ask(lane);
#pragma unroll 1
    for (int begin = lane; begin < part.count; begin += kAtOnce * kWarp) {
      Operands<W> now[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) now[k] = next[k];
      ask(begin + kAtOnce * kWarp);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int p = begin + k * kWarp;
        if (p >= part.count) continue;
        Pack<C, kPack> y = ConvertPack<C>(part.Own(p));
#pragma unroll
        for (C& v : y.v) v = (kCentre ? (v - total.mean) - total.low : v) * total.rstd;
        if (extras.weight) y *= ConvertPack<C>(now[k].weight.Get());
        if (extras.bias) y += ConvertPack<C>(now[k].bias.Get());
        this->store.template Store<kPack>(row, part.col + p * kPack, y);
      }
    }
  }
};

// 8192 x 16383 of bfloat16: 169 us, by the registers of a block 198 us. Of float32 registers are
// faster: 16384 x 8191 296 us, staged 307. rms_norm loses.
template <class T>
inline constexpr int64_t kStagedAbove<StagedNormRow<T, true>> = sizeof(T) == 2 ? 1920 : INT64_MAX;

}  // namespace cuda
}  // namespace oneflow_lite
