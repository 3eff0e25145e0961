// SPDX-License-Identifier: Apache-2.0
//
// The gradients of softmax and log_softmax as an algorithm of the row kernels (rows/row.cuh):
//
//   softmax      dx = y * (dy - sum(y * dy))
//   log_softmax  dx = dy - exp(y) * sum(dy)
#pragma once

#include "primitive/cuda/rows/io.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

// What one element adds to the row's sum, and its gradient once the sum is known.
template <bool kLog, class C>
OFL_DEVICE C GradientTerm(C y, C dy) {
  return kLog ? dy : y * dy;
}
template <bool kLog, class C>
OFL_DEVICE C Gradient(C y, C dy, C sum) {
  if constexpr (kLog) return dy - ExpNonPositive(y) * sum;
  return y * (dy - sum);
}

template <bool kLog, class Load_, class Store_>
struct SoftmaxBackwardRow {
  using Element = typename Load_::Element;
  using Output = typename Store_::Element;
  using C = ComputeType<Output>;
  static constexpr int kPack = kPackSize<Output>, kInputs = 2;
  static constexpr bool kFewOperations = !kLog;
  static constexpr unsigned kOffers = RowOffers::kAt | RowOffers::kAlignedEverywhere |
                                      RowOffers::kWhole | RowOffers::kWords |
                                      ShiftsOf<Load_, kPack>;

  using Statistics = CompensatedSum<C>;
  using Merge = MergeCompensated;

  Load_ load_y, load_dy;
  Store_ store;

  template <int N>
  using Raw = RawPacks<Element, kInputs, N>;  // y, dy
  struct Total {
    C sum = 0;
  };

  bool IsAlignedEverywhere() const {
    return cuda::IsAlignedEverywhere(load_y, store) && cuda::IsAlignedEverywhere(load_dy, store);
  }
  OFL_DEVICE SoftmaxBackwardRow At(int64_t row) const {
    return {AtRow(load_y, row), AtRow(load_dy, row), AtRow(store, row)};
  }
  OFL_DEVICE int Head(int64_t row) const { return store.Head(row); }
  OFL_DEVICE bool IsAligned(int64_t row, int64_t head) const {
    return cuda::IsAligned(load_y, row, head) && cuda::IsAligned(load_dy, row, head);
  }
  bool IsWhole(int64_t cols) const {
    return cols % kPack == 0 && cuda::AllAligned(load_y) && cuda::AllAligned(load_dy) &&
           cuda::AllAligned(store);
  }
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(load_y, row, col), LoadFrom<kAccess, N>(load_dy, row, col)}};
  }
  OFL_DEVICE WordFrame Frame(int input, int64_t row, int64_t col) const {
    return (input == 0 ? load_y : load_dy).Frame(row, col);
  }
  OFL_DEVICE Total Begin(int64_t) const { return {}; }
  OFL_DEVICE void Look(int64_t, Total&) const {}
  OFL_DEVICE void End(int64_t, const Total&) const {}

  template <int N>
  static OFL_DEVICE C Terms(const Raw<N>& raw) {
    C sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      sum += GradientTerm<kLog>(ConvertTo<C>(raw.input[0].v[i]), ConvertTo<C>(raw.input[1].v[i]));
    }
    return sum;
  }

  // In registers: both stay in their own dtype.
  template <int N>
  struct Value {
    StowedPack<Element, N> y, dy;
    OFL_DEVICE Raw<N> Get() const { return {{y.Get(), dy.Get()}}; }
  };
  static constexpr int kRounds = 1, kMaxima = 0;
  static constexpr bool kClusterRegisters = true;
  template <int N>
  static OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool, int64_t, const Total&) {
    return {StowedPack<Element, N>::Of(raw.input[0]), StowedPack<Element, N>::Of(raw.input[1])};
  }
  template <int, int N>
  OFL_DEVICE C Visit(Value<N>& value, bool present, const Total&) const {
    return present ? Terms(value.Get()) : C(0);
  }
  template <int>
  static OFL_DEVICE void Finish(C sum, Total& total) {
    total.sum = sum;
  }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Value<N>& value, const Total& total) const {
    StoreRaw<N>(row, col, value.Get(), total);
  }

  // Rows in words (rows/narrow.cuh): what fills a word outside the row, and one column of a word.
  static OFL_DEVICE Element Nothing() { return ConvertTo<Element>(C(0)); }
  template <int N>
  static OFL_DEVICE Value<1> Only(const Value<N>& value, bool last) {
    const Raw<N> raw = value.Get();
    Value<1> only;
    only.y.held.v[0] = last ? raw.input[0].v[N - 1] : raw.input[0].v[0];
    only.dy.held.v[0] = last ? raw.input[1].v[N - 1] : raw.input[1].v[0];
    return only;
  }

  static OFL_DEVICE CompensatedSum<C> Gathered(const Total& part) { return {part.sum, 0}; }
  static OFL_DEVICE void Rebase(const CompensatedSum<C>& row, Total& total) {
    Conclude(row, total);
  }

  // Streamed: the terms of many packs are added with their rounding errors kept.
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t, const Total&, Statistics& s) const {
    s.Add(Terms(raw));
  }
  static OFL_DEVICE void Conclude(const Statistics& s, Total& total) { total.sum = s.Get(); }
  template <int N>
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    Pack<C, N> dx;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      dx.v[i] = Gradient<kLog>(ConvertTo<C>(raw.input[0].v[i]), ConvertTo<C>(raw.input[1].v[i]),
                               total.sum);
    }
    store.template Store<N>(row, col, dx);
  }
};

}  // namespace oneflow_lite::cuda
