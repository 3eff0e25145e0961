// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/search_loops.h"

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/search_loops.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kFew = 32;  // floats of a row, which are quicker counted than searched

// Whether v comes before x.
template <bool kRight, class D>
HWY_INLINE hn::Mask<D> IsBefore(D d, hn::Vec<D> v, hn::Vec<D> x) {
  if constexpr (!hwy::IsFloat<hn::TFromD<D>>()) {
    return kRight ? hn::Not(hn::Lt(x, v)) : hn::Lt(v, x);
  } else if constexpr (kRight) {
    return hn::Or(hn::Le(v, x), hn::IsNaN(x));
  } else {
    return hn::Or(hn::Lt(v, x), hn::And(hn::IsNaN(x), hn::Eq(v, v)));
  }
}

template <bool kRight, class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> Counted(D d, int64_t cols, const hn::TFromD<D>* row,
                                                  hn::Vec<D> x) {
  const hn::RebindToSigned<D> places;
  auto count = hn::Zero(places);
  for (int64_t i = 0; i < cols; ++i) {
    const auto before = IsBefore<kRight>(d, hn::Set(d, row[i]), x);
    count = hn::Sub(count, hn::VecFromMask(places, hn::RebindMask(places, before)));
  }
  return count;
}

// Halves what is left of the rows without a branch, for the whole vector, whose lanes' rows begin
// at `starts`.
template <bool kRight, class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> Searched(D d, int64_t cols, const hn::TFromD<D>* row,
                                                   hn::Vec<D> x,
                                                   hn::Vec<hn::RebindToSigned<D>> starts) {
  const hn::RebindToSigned<D> places;
  using P = hn::TFromD<decltype(places)>;
  auto found = starts;
  const auto before = [&](const hn::TFromD<D>* from) OFL_SIMD_LAMBDA {
    return hn::RebindMask(places, IsBefore<kRight>(d, hn::GatherIndex(d, from, found), x));
  };
  for (int64_t left = cols; left > 1;) {
    const int64_t half = left / 2;
    const auto step = hn::Set(places, static_cast<P>(half));
    found = hn::Add(found, hn::IfThenElseZero(before(row + half - 1), step));
    left -= half;
  }
  found = hn::Add(found, hn::IfThenElseZero(before(row), hn::Set(places, P{1})));
  return hn::Sub(found, starts);
}

template <class D, class Out>
HWY_INLINE void StorePlaces(D places, hn::Vec<D> found, size_t count, Out* out) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(found, places, lanes);
  for (size_t k = 0; k < count; ++k) out[k] = static_cast<Out>(lanes[k]);
}

// n elements in one row.
template <bool kRight, class T, class Out>
void SearchRow(int64_t cols, const T* row, int64_t n, const T* x, Out* out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> places;
  const auto zero = hn::Zero(d);
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto sought = LoadUpTo(d, x + i, count, zero);
    const auto found = hwy::IsFloat<T>() && cols <= kFew
                           ? Counted<kRight>(d, cols, row, sought)
                           : Searched<kRight>(d, cols, row, sought, hn::Zero(places));
    StorePlaces(places, found, count, out + i);
  });
}

// A vector's elements in rows of their own.
template <bool kRight, class T, class Out>
void SearchRows(const SortedRows& rows, int64_t begin, int64_t end, const T* x, Out* out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> places;
  using P = hn::TFromD<decltype(places)>;
  const auto zero = hn::Zero(d);
  int64_t row = begin / rows.per_row, past = begin % rows.per_row;
  ForEachVector(d, static_cast<size_t>(end - begin), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const T* first = static_cast<const T*>(rows.data) + row * rows.cols;
    HWY_ALIGN P starts[hn::MaxLanes(d)] = {};
    P start = 0;
    for (size_t k = 0; k < count; ++k) {
      starts[k] = start;
      if (++past == rows.per_row) past = 0, ++row, start += static_cast<P>(rows.cols);
    }
    const auto sought = LoadUpTo(d, x + begin + i, count, zero);
    const auto found = Searched<kRight>(d, rows.cols, first, sought, hn::Load(places, starts));
    StorePlaces(places, found, count, out + begin + i);
  });
}

template <bool kRight, class T, class Out>
void Search(const SortedRows& rows, int64_t begin, int64_t end, const T* x, Out* out) {
  if (rows.per_row < static_cast<int64_t>(2 * hn::MaxLanes(hn::ScalableTag<T>()))) {
    return SearchRows<kRight>(rows, begin, end, x, out);
  }
  for (int64_t i = begin; i < end;) {
    const int64_t row = i / rows.per_row, n = std::min(end, (row + 1) * rows.per_row) - i;
    SearchRow<kRight>(rows.cols, static_cast<const T*>(rows.data) + row * rows.cols, n, x + i,
                      out + i);
    i += n;
  }
}

template <class T, class Out>
void Run(const SortedRows& rows, int64_t begin, int64_t end, const void* x_data, Out* out) {
  const T* x = static_cast<const T*>(x_data);
  rows.right ? Search<true>(rows, begin, end, x, out) : Search<false>(rows, begin, end, x, out);
}

template <class Out>
SearchLoop<Out> LoopOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return &Run<float, Out>;
    case DType::kFloat64:
      return &Run<double, Out>;
    case DType::kInt32:
      return &Run<int32_t, Out>;
    case DType::kInt64:
      return &Run<int64_t, Out>;
    default:
      return nullptr;
  }
}

}  // namespace

SearchLoop<int32_t> ShortPlaces(DType dtype) { return LoopOf<int32_t>(dtype); }
SearchLoop<int64_t> LongPlaces(DType dtype) { return LoopOf<int64_t>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(ShortPlaces);
HWY_EXPORT(LongPlaces);

template <>
SearchLoop<int32_t> FindSearchLoop<int32_t>(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(ShortPlaces)(dtype);
}
template <>
SearchLoop<int64_t> FindSearchLoop<int64_t>(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(LongPlaces)(dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
