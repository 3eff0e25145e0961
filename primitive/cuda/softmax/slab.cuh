// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax along the middle axis of outer x axis x inner, forward and backward, as
// algorithms of axis/slab.cuh.
#pragma once

#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/softmax/backward.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

// The larger of every two elements; a NaN loses.
template <class T, int N>
OFL_DEVICE Pack<T, N> LargerEach(const Pack<T, N>& a, const Pack<T, N>& b) {
  Pack<T, N> larger;
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      PairOf<T> x, y;
      memcpy(&x, &a.v[i], sizeof(x));
      memcpy(&y, &b.v[i], sizeof(y));
      x = __hmax2(x, y);
      memcpy(&larger.v[i], &x, sizeof(x));
    }
  } else if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) larger.v[i] = __hmax(a.v[i], b.v[i]);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) larger.v[i] = Larger{}(a.v[i], b.v[i]);
  }
  return larger;
}

// Another lane's pack, a word at a time.
template <class T, int N>
OFL_DEVICE Pack<T, N> ShuffleXor(const Pack<T, N>& v, int mask) {
  Pack<T, N> other;
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
    uint32_t words[N / 2];
    memcpy(words, &v, sizeof(v));
#pragma unroll
    for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
    memcpy(&other, words, sizeof(v));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) other.v[i] = ShuffleXor(v.v[i], mask);
  }
  return other;
}

template <bool kLog, class T_, int kPack>
struct SoftmaxSlab {
  using T = T_;
  using C = ComputeType<T>;
  static constexpr int N = kPack, kInputs = 1;
  struct Raw {
    StowedPack<T, N> input[1];
  };
  using Stat = OnlineSum<C>;
  using Merge = MergeOnline;
  // Where an element's place on chip can hold it, exp(x - the maximum that Gather found) stays.
  static constexpr bool kKeepsExp = !kLog && std::is_same_v<T, C>;
  // In 16 bits the rounding of the weight is lost. In the others an axis of one element would show
  // it, whose softmax is 1 and whose logarithm is 0. It pays for long columns.
  static constexpr bool kFoldsLog2E = !kLog && !kKeepsExp && N == 2;
  using Exponential = std::conditional_t<kFoldsLog2E, RowExponential<C>, ShiftedExponential<C>>;

  const T* x;
  T* y;

  OFL_DEVICE const T* Input(int) const { return x; }
  OFL_DEVICE T* Output() const { return y; }
  static OFL_DEVICE T Nothing() { return ConvertTo<T>(MinusInfinity<C>()); }

  static OFL_DEVICE Pack<T, N> Lowest() {
    Pack<T, N> lowest;
#pragma unroll
    for (T& v : lowest.v) v = Nothing();
    return lowest;
  }

  template <class Part>
  OFL_DEVICE void Gather(Part& part, int first, int last, Stat (&stat)[N]) const {
    part.Wait();
    Pack<T, N> max = Lowest();
    part.template Visit<false>([&](const Raw& raw) { max = LargerEach(max, raw.input[0].Get()); });
    for (int mask = first; mask < last; mask *= 2) max = LargerEach(max, ShuffleXor(max, mask));
    Exponential exponential[N];
    C sum[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      exponential[i] = Exponential(ConvertTo<C>(max.v[i]));
      sum[i] = 0;
    }
    part.template Visit<kKeepsExp>([&](Raw& raw) {
      Pack<C, N> e = ConvertPack<C>(raw.input[0].Get());
#pragma unroll
      for (int i = 0; i < N; ++i) {
        e.v[i] = exponential[i](e.v[i]);
        sum[i] += e.v[i];
      }
      if constexpr (kKeepsExp) raw.input[0] = StowedPack<T, N>::Of(e);
    });
    for (int mask = first; mask < last; mask *= 2) {
#pragma unroll
      for (int i = 0; i < N; ++i) sum[i] += ShuffleXor(sum[i], mask);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      stat[i] = Stat(ConvertTo<C>(max.v[i]), sum[i] * exponential[i].Weight());
    }
  }

  template <int kBatch>
  OFL_DEVICE void AddBatch(const Raw (&raw)[kBatch], int count, Stat (&stat)[N]) const {
    Pack<T, N> max = Lowest();
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      if (u < count) max = LargerEach(max, raw[u].input[0].Get());
    }
    C shift[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C larger = Larger{}(stat[i].max, ConvertTo<C>(max.v[i]));
      shift[i] = Stat::Finite(larger);
      stat[i].sum *= ExpNonPositive(stat[i].max - shift[i]);
      stat[i].max = larger;
    }
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      if (u >= count) continue;
      const Pack<C, N> v = ConvertPack<C>(raw[u].input[0].Get());
#pragma unroll
      for (int i = 0; i < N; ++i) stat[i].sum += ExpNonPositive(v.v[i] - shift[i]);
    }
  }

  OFL_DEVICE Stat Conclude(const Stat& s) const {
    if constexpr (kLog) return Stat(s.max, LogOf(s.sum));
    return Stat(s.max, kKeepsExp ? C(1) / s.sum : ReciprocalOf(s.sum));
  }
  // A warp that saw nothing but -inf has exponentials of 0, whatever the column's maximum.
  OFL_DEVICE void Rebase(const Stat& own, Stat& stat) const {
    if constexpr (kKeepsExp) stat.sum *= ExpNonPositive(own.max - stat.max);
  }
  template <bool kSlab>
  OFL_DEVICE Pack<T, N> Result(const Raw& raw, const Stat (&stat)[N]) const {
    Pack<C, N> v = ConvertPack<C>(raw.input[0].Get());
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if constexpr (kSlab && kKeepsExp) {
        v.v[i] *= stat[i].sum;
      } else if constexpr (kSlab && kFoldsLog2E) {
        const Exponential exponential(stat[i].max);
        v.v[i] = exponential(v.v[i]) * (exponential.Weight() * stat[i].sum);
      } else {
        const C d = v.v[i] - stat[i].max;
        v.v[i] = kLog ? d - stat[i].sum : ExpNonPositive(d) * stat[i].sum;
      }
    }
    return ConvertPack<T>(v);
  }
};

// kCompensated: whether the sum of the terms must stay right where they cancel, as in float32. The
// 16-bit floats have bits to spare for that in their compute type, and double has enough of its
// own.
template <bool kLog, class T_, int kPack, bool kCompensated = std::is_same_v<T_, float>>
struct SoftmaxBackwardSlab {
  using T = T_;
  using C = ComputeType<T>;
  static constexpr int N = kPack, kInputs = 2;
  struct Raw {
    StowedPack<T, N> input[2];  // y, dy
  };
  using Stat = std::conditional_t<kCompensated, CompensatedSum<C>, C>;
  using Merge = std::conditional_t<kCompensated, MergeCompensated, Plus>;

  const T *y, *dy;
  T* dx;

  OFL_DEVICE const T* Input(int i) const { return i == 0 ? y : dy; }
  OFL_DEVICE T* Output() const { return dx; }
  static OFL_DEVICE T Nothing() { return ConvertTo<T>(C(0)); }

  static OFL_DEVICE void AddTerms(const Raw& raw, Stat (&sum)[N]) {
    const Pack<C, N> py = ConvertPack<C>(raw.input[0].Get());
    const Pack<C, N> pdy = ConvertPack<C>(raw.input[1].Get());
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C term = GradientTerm<kLog>(py.v[i], pdy.v[i]);
      if constexpr (kCompensated) {
        sum[i].Add(term);
      } else {
        sum[i] += term;
      }
    }
  }
  template <class Part>
  OFL_DEVICE void Gather(Part& part, int first, int last, Stat (&stat)[N]) const {
    part.Wait();
#pragma unroll
    for (Stat& sum : stat) sum = Stat();
    part.template Visit<false>([&](const Raw& raw) { AddTerms(raw, stat); });
    for (int mask = first; mask < last; mask *= 2) {
#pragma unroll
      for (int i = 0; i < N; ++i) stat[i] = Merge{}(stat[i], ShuffleXor(stat[i], mask));
    }
  }
  template <int kBatch>
  OFL_DEVICE void AddBatch(const Raw (&raw)[kBatch], int count, Stat (&stat)[N]) const {
    Stat sum[N] = {};
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      if (u < count) AddTerms(raw[u], sum);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) stat[i] = Merge{}(stat[i], sum[i]);
  }
  OFL_DEVICE Stat Conclude(const Stat& s) const {
    if constexpr (kCompensated) {
      return {s.Get(), C(0)};
    } else {
      return s;
    }
  }
  OFL_DEVICE void Rebase(const Stat&, Stat&) const {}
  template <bool kSlab>
  OFL_DEVICE Pack<T, N> Result(const Raw& raw, const Stat (&stat)[N]) const {
    const Pack<C, N> py = ConvertPack<C>(raw.input[0].Get());
    const Pack<C, N> pdy = ConvertPack<C>(raw.input[1].Get());
    Pack<C, N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = Gradient<kLog>(py.v[i], pdy.v[i], Sum(stat[i]));
    return ConvertPack<T>(out);
  }

 private:
  static OFL_DEVICE C Sum(const Stat& concluded) {
    if constexpr (kCompensated) {
      return concluded.high;
    } else {
      return concluded;
    }
  }
};

}  // namespace oneflow_lite::cuda
