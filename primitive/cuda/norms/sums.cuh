// SPDX-License-Identifier: Apache-2.0
//
// What the norms' forward knows of some columns, how two parts of a row merge, and what the
// algorithms for rows/row.cuh read and write.
//
// A mean rounded to its type is not enough where the row's spread is tiny beside it, so the centre
// is a pair: `mean`, and `low`, the mean of what is left once `mean` is subtracted.
#pragma once

#include "primitive/cuda/norms/math.cuh"
#include "primitive/cuda/rows/io.cuh"

namespace oneflow_lite::cuda {

// What some columns come to: their count, their mean as a sum of two, and the squares of their
// distances from it. rms_norm: the squares alone.
template <class C>
struct alignas(16) NormPart {
  C count = 0, mean = 0, low = 0, squares = 0;
};

// Of lanes that have `sum` in all, part.mean = sum * share: from the sums of their columns'
// distances from that mean and of the squares of these. 16-bit elements add up nearly without an
// error, and what is left of the mean follows from the sum.
template <class T, int kLanes, class C>
OFL_DEVICE void SetCentred(C sum, SumOf<C, 2> sums, C share, NormPart<C>& part) {
  if constexpr (sizeof(T) > 2) {
    sums = ReduceLanes<kLanes>(sums, Plus{});
  } else {
    sums.v[0] = fma(-part.count, part.mean, sum);
    sums.v[1] = ReduceLanes<kLanes>(sums.v[1], Plus{});
  }
  part.low = sums.v[0] * share;
  part.squares = sums.v[1] - sums.v[0] * part.low;
}

// The row of which `count` warps found `parts`: every warp computes the same.
template <bool kCentre, class C>
OFL_DEVICE NormPart<C> MergeParts(const NormPart<C>* parts, int count, C share) {
  SumOf<C, 2> sums;
  const C base = parts[0].mean;
#pragma unroll 1
  for (int i = threadIdx.x % kWarp; i < count; i += kWarp) {
    const NormPart<C> part = parts[i];
    if constexpr (kCentre) {
      const C apart = (part.mean - base) + part.low;
      sums.v[0] += part.count * apart;
      sums.v[1] += part.squares + part.count * apart * apart;
    } else {
      sums.v[1] += part.squares;
    }
  }
  NormPart<C> row;
  if constexpr (kCentre) {
    sums = ReduceLanes<kWarp>(sums, Plus{});
    row.mean = base;
    row.low = sums.v[0] * share;
    row.squares = sums.v[1] - sums.v[0] * row.low;
  } else {
    row.squares = ReduceLanes<kWarp>(sums.v[1], Plus{});
  }
  return row;
}

// Of a row, share: 1 / cols. A centred sum of squares may have been rounded below 0.
template <bool kCentre, class C>
OFL_DEVICE C RstdOf(const NormPart<C>& row, C share, C eps) {
  const C squares = kCentre && row.squares < 0 ? C(0) : row.squares;
  return ReciprocalRoot(squares * share + eps);
}

// What is known of some columns: sums of their distances from a pivot, which is one of them or
// their mean. A pivot far off the others does no harm: its own square, which they then all share,
// exceeds what the subtraction loses.
template <class C>
struct PivotSums {
  C count = 0, pivot = 0, sum = 0, squares = 0;

  template <int N>
  OFL_DEVICE void Add(const Pack<C, N>& x) {
    if (count == 0) pivot = x.v[0];
    C part = 0, square = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C d = x.v[i] - pivot;
      part += d;
      square += d * d;
    }
    count += N;
    sum += part;
    squares += square;
  }
};
template <class C>
OFL_DEVICE PivotSums<C> ShuffleXor(PivotSums<C> s, int mask) {
  s.count = ShuffleXor(s.count, mask);
  s.pivot = ShuffleXor(s.pivot, mask);
  s.sum = ShuffleXor(s.sum, mask);
  s.squares = ShuffleXor(s.squares, mask);
  return s;
}

// The same about the columns' centre, mean + low: there the squares are those of the variance.
template <class C>
struct CentredSums {
  C count, mean, low, squares;

  OFL_DEVICE explicit CentredSums(const PivotSums<C>& s) : count(s.count) {
    const C shift = Quotient(s.sum, s.count);
    mean = s.pivot + shift;
    low = shift - (mean - s.pivot);
    squares = s.squares - s.sum * shift;
  }
};

// Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
// Variances", 1979. Symmetric to the last bit: no product of one side is fused into a sum.
struct MergePivotSums {
  template <class C>
  OFL_DEVICE PivotSums<C> operator()(const PivotSums<C>& left, const PivotSums<C>& right) const {
    if (left.count == 0) return right;
    if (right.count == 0) return left;
    const CentredSums<C> a(left), b(right);
    const C base = Larger{}(a.mean, b.mean);
    const C at_a = (a.mean - base) + a.low, at_b = (b.mean - base) + b.low;
    const C apart = at_a - at_b;
    PivotSums<C> merged;
    merged.count = a.count + b.count;
    merged.pivot = base;
    merged.sum = Sum(Product(a.count, at_a), Product(b.count, at_b));
    const C share = Quotient(C(1), merged.count);
    merged.squares = Sum(Sum(a.squares, b.squares),
                         Product(Product(apart, apart), Product(a.count, b.count) * share));
    merged.squares = merged.squares + Product(merged.sum, merged.sum) * share;
    return merged;
  }

 private:
  static OFL_DEVICE float Sum(float a, float b) { return __fadd_rn(a, b); }
  static OFL_DEVICE double Sum(double a, double b) { return __dadd_rn(a, b); }
  static OFL_DEVICE float Product(float a, float b) { return __fmul_rn(a, b); }
  static OFL_DEVICE double Product(double a, double b) { return __dmul_rn(a, b); }
};

// A warp's lanes merge at once, which costs a fifth of merging them by twos: their sums are moved
// to the mean of the first lane that has columns, and then simply added.
template <int kLanes, class C>
OFL_DEVICE PivotSums<C> ReduceLanes(PivotSums<C> s, MergePivotSums) {
  static_assert(kLanes == kWarp, "the first lane is that of a whole warp");
  const unsigned lanes = __ballot_sync(0xffffffffu, s.count > 0);
  if (lanes == 0) return s;
  const CentredSums<C> centred(s);
  const C base = __shfl_sync(0xffffffffu, centred.mean, __ffs(lanes) - 1);
  const C apart = (centred.mean - base) + centred.low;
  SumOf<C, 3> sums;
  if (s.count > 0) sums = {{s.count, s.count * apart, centred.squares + s.count * apart * apart}};
  sums = ReduceLanes<kLanes>(sums, Plus{});
  return {sums.v[0], base, sums.v[1], sums.v[2]};
}

// What the rows need besides the tensors that are read and written; null where there is none.
// weight and bias: float32 where float_weight, else of the Store's Element.
template <class C>
struct NormExtras {
  const void* weight = nullptr;
  const void* bias = nullptr;
  bool float_weight = false;
  int64_t cols = 0;
  C* mean = nullptr;
  C* rstd = nullptr;
  C eps = 0;
  C share = 0;  // 1 / cols
};

// What the norms' algorithms for rows/row.cuh read and write.
template <class Load_, class Store_>
struct NormTensors {
  using Element = typename Load_::Element;
  using Output = typename Store_::Element;
  using C = ComputeType<Output>;
  static constexpr int kPack = kPackSize<Output>, kInputs = 1;

  Load_ load;
  Store_ store;
  NormExtras<C> extras;

  template <int N>
  using Raw = RawPacks<Element, kInputs, N>;

  OFL_DEVICE int Head(int64_t row) const { return store.Head(row); }
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(load, row, col)}};
  }
  template <class Total>
  OFL_DEVICE void Look(int64_t, Total&) const {}
  // N of weight or bias, from column col on.
  template <int N>
  OFL_DEVICE Pack<C, N> Weights(const void* weights, int64_t col) const {
    return LoadWeights<C, N, Output>(weights, extras.float_weight, col, 0, N, C(0));
  }
  // y by the weight, and the bias added, where there are any.
  template <int N>
  OFL_DEVICE void Weigh(int64_t col, Pack<C, N>& y) const {
    if (extras.weight) y *= Weights<N>(extras.weight, col);
    if (extras.bias) y += Weights<N>(extras.bias, col);
  }
};

}  // namespace oneflow_lite::cuda
