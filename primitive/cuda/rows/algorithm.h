// SPDX-License-Identifier: Apache-2.0
//
// What a row algorithm offers beyond the names that all of them have (rows/row.cuh says what each
// is). An algorithm lists it, and a name that is listed but missing or misspelt, or there but not
// listed, is an error with that name in it rather than a slower way:
//
//   struct MyRow {
//     static constexpr unsigned kOffers = RowOffers::kAt | RowOffers::kWhole;
//     MyRow At(int64_t row) const;
//     bool IsWhole(int64_t cols) const;
//
//   if constexpr (Offers<MyRow, RowOffers::kWhole>) ...
#pragma once

#include <type_traits>

namespace oneflow_lite::cuda {

struct RowOffers {
  enum : unsigned {
    kNothing = 0,
    kAt = 1,                 // At(row)
    kSeen = 2,               // Seen(row, cols)
    kAlignedEverywhere = 4,  // IsAlignedEverywhere()
    kWhole = 8,              // IsWhole(cols), and kFewOperations where it has two inputs
    kKeep = 16,              // Kept, Keep()
    kNarrow = 32,            // Narrow()
    kWords = 64,             // Nothing(), Only(value, last)
    kInRegisters = 128,      // InRegisters<kWide>(), LiesAlike()
    kSetColumns = 256,       // SetColumns(n, total)
    kColumnConstants = 512,  // ColumnConstants<n>, Ask, Take, StoreColumn
    kStorePacks = 1024,      // StorePacks<kPacks>(row, col, count, values, total)
    kLoadsPacks = 2048,      // LoadPacks(col, places, stowed), if a wrapper leaves it be
    kShifts = 4096,          // Frame(input, row, col), its own or that of InRegisters()
    kOnlyWide = 8192,        // no name: only rows come that no warp would hold
    kPrepares = 16384,       // Prepared(raw, col), of rows in shared memory
  };
};

namespace internal {

template <template <class> class Name, class A, class = void>
struct IsThere : std::false_type {};
template <template <class> class Name, class A>
struct IsThere<Name, A, std::void_t<Name<A>>> : std::true_type {};

template <template <class> class Name, class A>
inline constexpr bool kHas = IsThere<Name, A>::value;

template <class A>
struct CheckedRow : RowOffers {
  static constexpr unsigned kOffers = A::kOffers;
  template <class R>
  using At = decltype(&R::At);
  template <class R>
  using Seen = decltype(&R::Seen);
  template <class R>
  using AlignedEverywhere = decltype(&R::IsAlignedEverywhere);
  template <class R>
  using Whole = decltype(&R::IsWhole);
  template <class R>
  using Keep = std::void_t<typename R::Kept, decltype(&R::Keep)>;
  template <class R>
  using Narrow = decltype(&R::Narrow);
  template <class R>
  using Nothing = decltype(R::Nothing());
  template <class R>
  using InRegisters = decltype(&R::template InRegisters<false>);
  template <class R>
  using SetColumns = decltype(&R::SetColumns);
  template <class R>
  using ColumnConstants = typename R::template ColumnConstants<1>;
  template <class R>
  using StorePacks = decltype(&R::template StorePacks<1>);
  template <class R>
  using Frame = decltype(&R::Frame);
  template <class R>
  using Prepared = decltype(&R::template Prepared<1>);

  // Whether the name is there just where it is offered.
  template <unsigned kOffer, template <class> class Name>
  static constexpr bool kAgrees = kHas<Name, A> == ((kOffers & kOffer) != 0);
  static_assert(kAgrees<kAt, At>, "row algorithm: At against kOffers");
  static_assert(kAgrees<kSeen, Seen>, "row algorithm: Seen against kOffers");
  static_assert(kAgrees<kAlignedEverywhere, AlignedEverywhere>,
                "row algorithm: IsAlignedEverywhere against kOffers");
  static_assert(kAgrees<kWhole, Whole>, "row algorithm: IsWhole against kOffers");
  static_assert(kAgrees<kKeep, Keep>, "row algorithm: Kept, Keep against kOffers");
  static_assert(kAgrees<kNarrow, Narrow>, "row algorithm: Narrow against kOffers");
  static_assert(kAgrees<kWords, Nothing>, "row algorithm: Nothing against kOffers");
  static_assert(kAgrees<kInRegisters, InRegisters>, "row algorithm: InRegisters against kOffers");
  static_assert(kAgrees<kSetColumns, SetColumns>, "row algorithm: SetColumns against kOffers");
  static_assert(kAgrees<kColumnConstants, ColumnConstants>,
                "row algorithm: ColumnConstants against kOffers");
  static_assert(kAgrees<kStorePacks, StorePacks>, "row algorithm: StorePacks against kOffers");
  static_assert(kAgrees<kPrepares, Prepared>, "row algorithm: Prepared against kOffers");
  static_assert(!(kOffers & kShifts) || kHas<Frame, A> || (kOffers & kInRegisters),
                "row algorithm: Frame is missing, which kOffers has as kShifts");
};

}  // namespace internal

template <class A, unsigned kOffer>
inline constexpr bool Offers = (internal::CheckedRow<A>::kOffers & kOffer) != 0;

}  // namespace oneflow_lite::cuda
