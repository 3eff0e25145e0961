// SPDX-License-Identifier: Apache-2.0
//
// A row algorithm with an expression in front of it: what flow.fuse compiles at run time for rows
// that do not lie alike (fused/whole.cuh, fused/wide.cuh) or are too wide for registers. The rows'
// inputs wait on chip as they lie in memory until all their loads are under way; then the
// expression turns them into what the algorithm computes with: at each of its visits, or, where the
// expression is costly, once. What comes after the algorithm is the matter of its Store functor.
//
// Elements, a struct that is written for one expression, has
//   Element, kInputs     the type on chip and the number of matrices that are read
//   Constants            what is the same for a whole row; default-constructible
//   bool IsAligned(row, head)
//   template <Access kAccess, int N> void Load(row, col, Pack<Element, N> (&input)[kInputs])
//   Constants Begin(row)
//   template <int N>
//   Pack<C, N> Apply(col, const Pack<Element, N> (&input)[kInputs], const Constants&)
//   Elements At(row)     the same for this row alone, its addresses worked out
// Base is a row algorithm (rows/row.cuh) of one input, over Loaded<C>. kAgain: the inputs stay as
// they are, and the expression is computed at each visit. Without it what is computed stays, in a
// type twice as wide, and a row that serves all rows is best read by Apply (LoadCommon); what each
// costs is in docs/lab/23-fused-loads.md.
#pragma once

#include "primitive/cuda/fused/functions.cuh"
#include "primitive/cuda/rows/io.cuh"
#include "primitive/cuda/rows/registers.cuh"

namespace oneflow_lite::cuda {

// In place of a Load functor: the algorithm is given its values.
template <class C>
struct Loaded {
  using Element = C;
  int64_t none;
};

// N elements of 16 bits from p on at any alignment, in words of two; the element just before them
// may be read too, where it is in the first word.
template <int N, class T>
OFL_DEVICE Pack<T, N> LoadWordsOfTwo(const T* p) {
  constexpr int kWords = N / 2;
  const auto past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(p) % sizeof(uint32_t));
  const auto* from = reinterpret_cast<const uint32_t*>(p - past / sizeof(T));
  uint32_t words[kWords + 1];
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = from[i];
  uint16_t last;
  memcpy(&last, p + N - 1, sizeof(last));
  words[kWords] = last;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    words[i] = __funnelshift_r(words[i], words[i + 1], 8 * past);
  }
  Pack<T, N> pack;
  memcpy(&pack, words, sizeof(pack));
  return pack;
}

// N elements from p on, in accesses of up to 16 bytes. kAligned promises that p is aligned to
// min(16 bytes, all of them); kInside is as for a Load functor.
template <Access kAccess, int N, class T>
OFL_DEVICE Pack<T, N> LoadOperand(const T* p) {
  constexpr int kBytes = N * static_cast<int>(sizeof(T));
  if constexpr (kBytes > kPackBytes && N > 1) {
    return BothHalves(LoadOperand<kAccess, N / 2>(p), LoadOperand<kAccess, N / 2>(p + N / 2));
  } else if constexpr (kAccess == Access::kAligned &&
                       !std::is_void_v<typename WordOf<kBytes>::type>) {
    return LoadAlignedPack<N>(p);
  } else if constexpr (kAccess == Access::kInside && kBytes == kPackBytes) {
    return LoadShiftedPack<N>(p);
  } else if constexpr (kAccess == Access::kWords && sizeof(T) == 2 && N % 2 == 0) {
    return LoadWordsOfTwo<N>(p);
  } else if constexpr (kAccess == Access::kWords || kAccess == Access::kEach) {
    return LoadEach<N>(p);
  } else {
    return LoadPack<N>(p);
  }
}

// Whether kAligned may be used for packs of N from p on.
template <int N, class T>
OFL_DEVICE bool IsOperandAligned(const T* p) {
  constexpr unsigned kBytes = N * sizeof(T) < kPackBytes ? N * sizeof(T) : kPackBytes;
  return (reinterpret_cast<uintptr_t>(p) & (kBytes - 1)) == 0;
}

// N elements from p on, of an operand that is the same for all rows.
template <int N, class T>
OFL_DEVICE Pack<T, N> LoadCommon(const T* p) {
  if constexpr (N > 1) {
    if (IsOperandAligned<N>(p)) return LoadOperand<Access::kAligned, N>(p);
  }
  return LoadEach<N>(p);
}

template <class Value>
struct ComputedValue {
  Value computed;
};
template <class Element, int N, int kInputs>
struct WaitingInputs {
  StowedPack<Element, N> input[kInputs];
  int64_t col;
};

template <class Base, class Elements, bool kAgain>
struct FusedRow {
  using Element = typename Elements::Element;
  using Output = typename Base::Output;
  using C = typename Base::C;
  static constexpr int kPack = Base::kPack, kInputs = Elements::kInputs;
  static constexpr unsigned kOffers = RowOffers::kAt;

  Base base;
  Elements elements;

  template <int N>
  using Raw = RawPacks<Element, kInputs, N>;
  template <int N>
  struct Value : std::conditional_t<kAgain, WaitingInputs<Element, N, kInputs>,
                                    ComputedValue<typename Base::template Value<N>>> {};
  struct Total {
    typename Base::Total base;
    typename Elements::Constants constants;
  };

  OFL_DEVICE FusedRow At(int64_t row) const { return {AtRow(base, row), elements.At(row)}; }
  OFL_DEVICE int Head(int64_t row) const { return base.Head(row); }
  OFL_DEVICE bool IsAligned(int64_t row, int64_t head) const {
    return elements.IsAligned(row, head);
  }
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t row, int64_t col) const {
    Raw<N> raw;
    elements.template Load<kAccess, N>(row, col, raw.input);
    return raw;
  }
  OFL_DEVICE Total Begin(int64_t row) const { return {base.Begin(row), elements.Begin(row)}; }
  OFL_DEVICE void Look(int64_t row, Total& total) const { base.Look(row, total.base); }
  OFL_DEVICE void End(int64_t row, const Total& total) const { base.End(row, total.base); }

  static constexpr int kRounds = Base::kRounds, kMaxima = Base::kMaxima;
  static constexpr bool kClusterRegisters = Base::kClusterRegisters;
  template <int N>
  OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool present, int64_t col, const Total& total) const {
    Value<N> value;
    if constexpr (kAgain) {
      value.col = col;
#pragma unroll
      for (int i = 0; i < kInputs; ++i) {
        value.input[i] = StowedPack<Element, N>::Of(raw.input[i]);
      }
    } else {
      typename Base::template Raw<N> computed = {};
      if (present) computed = Computed<N>(raw, col, total);
      value.computed = base.template Open<N>(computed, present, col, total.base);
    }
    return value;
  }
  template <int kRound, int N>
  OFL_DEVICE auto Visit(Value<N>& v, bool present, const Total& total) const {
    if constexpr (kAgain) {
      if (!present) return internal::IdentityOf<kRound, Base>();
      auto computed =
          base.template Open<N>(Computed<N>(RawOf(v), v.col, total), true, v.col, total.base);
      return base.template Visit<kRound>(computed, true, total.base);
    } else {
      return base.template Visit<kRound>(v.computed, present, total.base);
    }
  }
  template <int kRound, class Sum>
  OFL_DEVICE void Finish(const Sum& sum, Total& total) const {
    base.template Finish<kRound>(sum, total.base);
  }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Value<N>& v, const Total& total) const {
    if constexpr (kAgain) {
      StoreRaw<N>(row, col, RawOf(v), total);
    } else {
      base.template Store<N>(row, col, v.computed, total.base);
    }
  }

  using Statistics = typename Base::Statistics;
  using Merge = typename Base::Merge;
  static OFL_DEVICE Statistics Gathered(const Total& total) { return Base::Gathered(total.base); }
  OFL_DEVICE void Rebase(const Statistics& row, Total& total) const {
    base.Rebase(row, total.base);
  }
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t col, const Total& start, Statistics& s) const {
    base.Add(Computed<N>(raw, col, start), col, start.base, s);
  }
  OFL_DEVICE void Conclude(const Statistics& row, Total& total) const {
    base.Conclude(row, total.base);
  }
  template <int N>
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    base.template StoreRaw<N>(row, col, Computed<N>(raw, col, total), total.base);
  }

 private:
  template <int N>
  static OFL_DEVICE Raw<N> RawOf(const Value<N>& value) {
    Raw<N> raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) raw.input[i] = value.input[i].Get();
    return raw;
  }
  template <int N>
  OFL_DEVICE typename Base::template Raw<N> Computed(const Raw<N>& raw, int64_t col,
                                                     const Total& total) const {
    return {{elements.template Apply<N>(col, raw.input, total.constants)}};
  }
};

// PlanFusedRows counts on it.
template <class Base, class Elements, bool kAgain>
struct BlockShape<FusedRow<Base, Elements, kAgain>> : BlockBounds<typename Base::C> {
  static constexpr bool kAligned = false;
  // What is computed of the inputs takes registers besides them.
  static constexpr bool kLean =
      kAgain && sizeof(typename Elements::Element) * Elements::kInputs * Base::kPack <= kPackBytes;
  static constexpr int kPacks = RowPolicy::kBlockPacks / (kLean ? 1 : 2);
};

}  // namespace oneflow_lite::cuda
