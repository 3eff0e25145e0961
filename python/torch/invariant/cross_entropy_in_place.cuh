// SPDX-License-Identifier: Apache-2.0
//
// Loss and gradient of cross entropy in place, whose rows are known by own packs: for
// own_columns.cuh, and for own_staged.cuh.
#pragma once

#include "primitive/cuda/cross_entropy/in_place.cuh"
#include "python/torch/invariant/cross_entropy_loss.cuh"

namespace oneflow_lite {
namespace cuda {

// The gradient takes the row's place through an image, once all of its logits are in registers.
template <class T, bool kSmooth>
struct OwnInPlaceRow : CrossEntropyLossRow<T, kSmooth> {
  using Base = CrossEntropyLossRow<T, kSmooth>;
  using Base::loss, Base::p;
  using typename Base::C, typename Base::Statistics;
  template <int N>
  using Value = typename Base::template Value<N>;

  const C* scale;  // may be null
  ImageStore<T> store;

  struct Total : Base::Total {
    C factor = 0;  // of losses and gradients
    C logit = 0;   // at the target
    C gain = 0, less = 0;
  };

  __device__ __forceinline__ Total Begin(int64_t row) const {
    Total total{Base::Begin(row)};
    total.factor = scale ? *scale : C(1);
    return total;
  }
  __device__ __forceinline__ void Look(int64_t row, Total& total) const {
    Base::Look(row, total);
    total.logit = TargetLogitOf(p, row, total.target);
  }
  __device__ __forceinline__ void End(int64_t row, const Total& total) const {
    C value = LossWithoutTarget(p, total.target);
    if (p.Counts(total.target)) {
      value = LossOf<kSmooth>(p, total.logit, total.max, LogOf(total.sum), total.anchor,
                              total.deviation);
    }
    loss[row] = value * total.factor;
  }

  template <int kRound>
  __device__ __forceinline__ void Finish(const typename Base::template Sum<kRound>& sum,
                                         Total& total) const {
    Base::template Finish<kRound>(sum, total);
    if constexpr (kRound == 1) Prepare(total);
  }
  __device__ __forceinline__ void Rebase(const Statistics& row, Total& total) const {
    Base::Rebase(row, total);
    Prepare(total);
  }
  // Rounded once, in packs and in single columns.
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    Pack<C, N> v = ConvertPack<C>(value.Get());
    const C max = OnlineSum<C>::Finite(total.max);
    const int64_t at = total.target - col;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C less = i == at ? total.less + (C(1) - p.smoothing) * total.factor : total.less;
      v.v[i] = fma(ExpNonPositive(v.v[i] - max), total.gain, -less);
    }
    if (!p.Counts(total.target)) v = FilledPack<N>(C(0));
    store.template Store<N>(row, col, v);
  }

 private:
  __device__ __forceinline__ void Prepare(Total& total) const {
    total.gain = total.factor / total.sum;
    total.less = kSmooth ? total.factor * (p.smoothing / static_cast<C>(p.classes)) : C(0);
  }
};

// The algorithm of all rows, whose words can be asked for.
template <class T, bool kSmooth>
struct StagedInPlaceRow : CrossEntropyInPlaceRow<T, kSmooth> {
  using Base = CrossEntropyInPlaceRow<T, kSmooth>;
  DirectLoad<T> from;

  __host__ __device__ StagedInPlaceRow(const Base& row, const CrossEntropyRows<T>& p)
      : Base(row), from{p.x, p.row_stride} {}
  __host__ __device__ StagedInPlaceRow(const Base& row, const DirectLoad<T>& from)
      : Base(row), from(from) {}
  __device__ __forceinline__ StagedInPlaceRow At(int64_t row) const {
    return {Base::At(row), from.At(row)};
  }
  __device__ __forceinline__ WordFrame Frame(int, int64_t row, int64_t col) const {
    return from.Frame(row, col);
  }
};
// 8192 x 16383 of bfloat16: 147 us, the default 144; 16384 x 8191 of float32: 282 and 284 us.
template <class T, bool kSmooth>
inline constexpr int64_t kStagedAbove<StagedInPlaceRow<T, kSmooth>> = 1920;

}  // namespace cuda
}  // namespace oneflow_lite
