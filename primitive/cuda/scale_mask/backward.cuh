// SPDX-License-Identifier: Apache-2.0
//
// The gradient of scale_mask/scale_mask_softmax.cuh: softmax's, times the scale.
//
//   dx = scale y (dy - sum(y dy))
//
// The mask has played its part in y. What causality hides is not read and becomes 0, also in a row
// whose sum is NaN.
#pragma once

#include "primitive/cuda/rows/masks.cuh"
#include "primitive/cuda/softmax/backward.cuh"

namespace oneflow_lite::cuda {

template <class T>
class ScaleMaskBackwardRow : SoftmaxBackwardRow<false, DirectLoad<T>, DirectStore<T>> {
  using Base = SoftmaxBackwardRow<false, DirectLoad<T>, DirectStore<T>>;

 public:
  static constexpr unsigned kOffers =
      RowOffers::kAt | RowOffers::kSeen | RowOffers::kAlignedEverywhere;
  using Base::kClusterRegisters, Base::kInputs, Base::kMaxima, Base::kPack, Base::kRounds;
  using typename Base::C, typename Base::Element, typename Base::Merge, typename Base::Output,
      typename Base::Statistics;
  template <int N>
  using Raw = typename Base::template Raw<N>;
  template <int N>
  using Value = typename Base::template Value<N>;  // 0 where it is hidden

  struct Total : Base::Total {
    int64_t visible = 0;  // columns
  };

  __host__ __device__ ScaleMaskBackwardRow(const Base& base, C scale,
                                           const CausalRows<uint64_t>& causal)
      : Base(base), scale(scale), causal(causal) {}

  OFL_DEVICE ScaleMaskBackwardRow At(int64_t row) const {
    return {Base::At(row), scale, causal.At(row)};
  }
  using Base::Conclude, Base::End, Base::Finish, Base::Gathered, Base::Head, Base::IsAligned,
      Base::IsAlignedEverywhere, Base::Load, Base::Look, Base::Rebase, Base::Visit;
  OFL_DEVICE Total Begin(int64_t row) const {
    Total total;
    total.visible = causal.Visible(row);
    return total;
  }
  OFL_DEVICE int64_t Seen(int64_t row, int64_t) const { return causal.Visible(row); }
  template <int N>
  OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool present, int64_t col, const Total& total) const {
    return Visible(raw, present ? VisibleOf<N>(total.visible, col) : N);
  }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Value<N>& value, const Total& total) const {
    StoreRaw<N>(row, col, value.Get(), total);
  }
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t col, const Total& start, Statistics& s) const {
    s.Add(Base::Terms(Visible(raw, VisibleOf<N>(start.visible, col)).Get()));
  }
  template <int N>
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    const int left = VisibleOf<N>(total.visible, col);
    Pack<C, N> v = FilledPack<N>(C(0));
    if (left > 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C y = ConvertTo<C>(raw.input[0].v[i]), dy = ConvertTo<C>(raw.input[1].v[i]);
        v.v[i] = scale * y * (dy - total.sum);
      }
      if (left < N) {
#pragma unroll
        for (int i = 0; i < N; ++i) v.v[i] = i < left ? v.v[i] : C(0);
      }
    }
    this->store.template Store<N>(row, col, v);
  }

 protected:
  using Base::Frame;
  C scale;
  CausalRows<uint64_t> causal;

 private:
  template <int N>
  static OFL_DEVICE Value<N> Visible(const Raw<N>& raw, int left) {
    Value<N> value{StowedPack<T, N>::Of(raw.input[0]), StowedPack<T, N>::Of(raw.input[1])};
    if (left < N) {
      HideFrom(value.y, left, ConvertTo<T>(0.0f));
      HideFrom(value.dy, left, ConvertTo<T>(0.0f));
    }
    return value;
  }
};

}  // namespace oneflow_lite::cuda
