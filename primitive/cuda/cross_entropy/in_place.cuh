// SPDX-License-Identifier: Apache-2.0
//
// Loss and gradient of cross entropy in one go, as an algorithm of the row kernels (rows/row.cuh):
// the row stays on chip while its statistics are found, so logits move through memory once each
// way.
#pragma once

#include "primitive/cuda/cross_entropy/gradient.cuh"
#include "primitive/cuda/rows/row.cuh"
#include "primitive/cuda/softmax/forward.cuh"

namespace oneflow_lite::cuda {

// MergePartials, without the deviation where there is no smoothing.
template <bool kSmooth>
struct MergeInPlace : MergePartials {};
template <int kLanes, class C, bool kSmooth>
OFL_DEVICE CrossEntropyPartial<C> ReduceLanes(const CrossEntropyPartial<C>& v,
                                              MergeInPlace<kSmooth>) {
  return {ReduceLanes<kLanes>(v.sum, MergeOnline{}),
          kSmooth ? ReduceLanes<kLanes>(v.deviation, Plus{}) : C(0)};
}

// The rows of log_softmax, which stay as they lie in memory until they are written, as something
// else. kSmooth: whether there is smoothing. kWhole: for the kernels of rows of whole packs.
template <class T, bool kSmooth, bool kWhole = false>
class CrossEntropyInPlaceRow : SoftmaxRow<true, DirectLoad<T>, DirectStore<T>, false, true> {
  using Base = SoftmaxRow<true, DirectLoad<T>, DirectStore<T>, false, true>;

 public:
  using Element = T;
  using Output = T;
  static constexpr unsigned kOffers = RowOffers::kAt;
  using Base::kClusterRegisters, Base::kInputs, Base::kPack, typename Base::C;

  using Statistics = CrossEntropyPartial<C>;
  using Merge = MergeInPlace<kSmooth>;
  template <int N>
  using Raw = typename Base::template Raw<N>;
  template <int N>
  using Value = typename Base::template Value<N>;

  struct Total : Base::Total {
    int64_t target = 0;
    C factor = 0;  // the scale of losses and gradients
    C deviation = 0, anchor = 0;
    RowExponential<C> exp;  // of the part
    CrossEntropyGradient<T, kSmooth> gradient;
    C log_sum = 0;
  };

  // x is overwritten: p.x without its promise.
  __host__ __device__ CrossEntropyInPlaceRow(const CrossEntropyRows<T>& p, T* x, const C* scale,
                                             C* loss)
      : Base{{x, p.row_stride}, {x, p.row_stride}}, p_(p), scale_(scale), loss_(loss) {}

  OFL_DEVICE CrossEntropyInPlaceRow At(int64_t row) const {
    CrossEntropyInPlaceRow here = *this;
    here.load = this->load.At(row);
    return here;
  }
  OFL_DEVICE int Head(int64_t row) const {
    return ElementsToBoundary(this->load.x + row * this->load.row_stride);
  }
  // IsWhole of rows/row.cuh, of which narrow rows make no use.
  bool IsOfPacks(int64_t cols) const { return Base::IsWhole(cols); }
  using Base::IsAligned, Base::Load, Base::Open;

  OFL_DEVICE Total Begin(int64_t row) const {
    Total total;
    if constexpr (!kWhole) {
      total.target = LoadEarly(p_.target + row);
      total.factor = scale_ ? *scale_ : C(1);
    }
    if (kSmooth) total.anchor = AnchorOf(p_, this->load.x + row * this->load.row_stride);
    return total;
  }
  OFL_DEVICE void Look(int64_t row, Total& total) const {
    if constexpr (kWhole) {
      total.target = LoadIntoLanes(p_.target + row);
      total.factor = scale_ ? LoadIntoLanes(scale_) : C(1);
    }
  }
  // The others are written by who holds the target's logit: to load it here would mean to wait for
  // the target first, and then for the logit. 0 times an infinite factor, the mean over no row, is
  // NaN.
  OFL_DEVICE void End(int64_t row, const Total& total) const {
    const auto& gradient = total.gradient;
    if (!gradient.skip) return;
    loss_[row] = (gradient.skip == gradient.kIgnored ? C(0) : C(NAN)) * gradient.factor;
  }

  // In registers: the maximum, the sum of exponentials, the deviation.
  static constexpr int kRounds = kSmooth ? 3 : 2, kMaxima = 1;
  template <int kRound, int N>
  OFL_DEVICE C Visit(Value<N>& value, bool present, const Total& total) const {
    if constexpr (kRound == 0) return Base::template Visit<0, N>(value, present, total);
    if (!present) return C(0);
    const Pack<C, N> x = Widened(value.held.Get());
    if constexpr (kRound == 2) return DeviationOf(x, total.anchor);
    C sum = total.exp(x.v[0]);
#pragma unroll
    for (int i = 1; i < N; ++i) sum += total.exp(x.v[i]);
    return sum;
  }
  template <int kRound>
  OFL_DEVICE void Finish(C found, Total& total) const {
    if constexpr (kRound == 0) {
      total.max = found;
      total.exp = RowExponential<C>(found);
    } else if constexpr (kRound == 1) {
      total.sum = found * total.exp.Weight();
    } else {
      total.deviation = found;
    }
    // Of the whole row, where it is not in parts.
    if constexpr (kRound + 1 == kRounds) Conclude(Gathered(total), total);
  }
  static OFL_DEVICE Statistics Gathered(const Total& part) {
    return {{part.max, part.sum}, part.deviation};
  }
  OFL_DEVICE void Rebase(const Statistics& row, Total& total) const { Conclude(row, total); }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Value<N>& value, const Total& total) const {
    Write<N>(row, col, value.held.Get(), total);
  }

  // Streamed.
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t, const Total& start, Statistics& s) const {
    const Pack<C, N> x = Widened(raw.input[0]);
    s.sum.Add(x);
    if (kSmooth) s.deviation += DeviationOf(x, start.anchor);
  }
  OFL_DEVICE void Conclude(const Statistics& s, Total& total) const {
    total.max = s.sum.max;
    total.log_sum = LogOf(s.sum.sum);
    total.deviation = s.deviation;
    total.gradient = {p_,           total.target, total.max, total.factor / s.sum.sum,
                      total.factor, this->load.x};
  }
  template <int N>
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    Write<N>(row, col, raw.input[0], total);
  }

 private:
  template <int N>
  OFL_DEVICE void Write(int64_t row, int64_t col, const Pack<T, N>& logits,
                        const Total& total) const {
    T* dx = const_cast<T*>(this->load.x) + col;
    total.gradient.Write(dx, logits, p_.smoothing, [&](C logit) {
      const C loss =
          LossOf<kSmooth>(p_, logit, total.max, total.log_sum, total.anchor, total.deviation);
      loss_[row] = loss * total.gradient.factor;
    });
  }

  CrossEntropyRows<T> p_;
  const C* scale_;  // may be null
  C* loss_;
};

// What is read lies as what is written does: it is the same memory.
template <class T, bool kSmooth, bool kWhole>
struct BlockShape<CrossEntropyInPlaceRow<T, kSmooth, kWhole>> : BlockBounds<ComputeType<T>> {
  static constexpr bool kAligned = true;
  static constexpr int kPacks = RowPolicy::kBlockPacks;
};

namespace internal {

// The loads in blocks of their own: the compiler mixes them with the search for the maximum.
template <class T, bool kSmooth, bool kWhole, class Team>
inline constexpr bool kLoadsTwoWays<CrossEntropyInPlaceRow<T, kSmooth, kWhole>, Team> = true;

}  // namespace internal

}  // namespace oneflow_lite::cuda
