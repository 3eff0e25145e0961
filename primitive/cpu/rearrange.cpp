// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/rearrange.h"

#include "primitive/cpu/simd_targets.h"
#include "primitive/word.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/rearrange.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE hn::Vec<D> Reversed(D d, hn::Vec<D> v) {
  if constexpr (sizeof(hn::TFromD<D>) == 1) {  // as pairs, which are turned then
    const hn::Repartition<uint16_t, D> pairs;
    const auto p = hn::Reverse(pairs, hn::BitCast(pairs, v));
    return hn::BitCast(d, hn::Or(hn::ShiftLeft<8>(p), hn::ShiftRight<8>(p)));
  } else {
    return hn::Reverse(d, v);
  }
}

// n elements, at least a vector of D: the last one begins within the one before, if it has to.
template <class D, class T>
HWY_INLINE void ReverseWithin(D d, int64_t n, const T* x, T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), last = n - lanes;
  for (int64_t i = 0; i < last; i += lanes) {
    hn::StoreU(Reversed(d, hn::LoadU(d, x + last - i)), d, y + i);
  }
  hn::StoreU(Reversed(d, hn::LoadU(d, x)), d, y + last);
}
// Dense rows of which a vector holds several: how many of them were reversed.
template <class T>
int64_t ReverseTogether(int64_t rows, int64_t n, const T* x, T* y) {
  using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t, T>;
  const hn::ScalableTag<Wide> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const hn::RebindToSigned<decltype(d)> signs;
  using Index = hn::TFromD<decltype(signs)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), together = lanes / n;
  HWY_ALIGN Index from[hn::MaxLanes(d)];
  for (int64_t i = 0; i < lanes; ++i) {
    from[i] = static_cast<Index>(i < together * n ? i / n * n + n - 1 - i % n : i);
  }
  const auto places = hn::SetTableIndices(d, from);
  // The last vector of a turn writes behind its rows, where later ones lie.
  int64_t r = 0;
  for (; (r + together) * n + lanes <= rows * n;
       r += together, x += together * n, y += together * n) {
    if constexpr (sizeof(T) < 4) {
      const auto v = hn::PromoteTo(d, hn::LoadU(narrow, x));
      hn::StoreU(hn::TruncateTo(narrow, hn::TableLookupLanes(v, places)), narrow, y);
    } else {
      hn::StoreU(hn::TableLookupLanes(hn::LoadU(d, x), places), d, y);
    }
  }
  return r;
}

template <class T>
void ReverseRows(int64_t rows, int64_t n, const void* x_data, int64_t x_stride, void* y_data,
                 int64_t y_stride) {
  const hn::ScalableTag<T> d;
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto few = lanes * static_cast<int64_t>(sizeof(T)) / 2 / std::max<int64_t>(4, sizeof(T));
  if (rows > 1 && n <= few && x_stride == n && y_stride == n) {
    const int64_t done = ReverseTogether(rows, n, x, y);
    rows -= done, x += done * n, y += done * n;
  }
  const auto for_rows = [&](auto reverse) OFL_SIMD_LAMBDA {
    for (int64_t r = 0; r < rows; ++r, x += x_stride, y += y_stride) reverse();
  };
  if (n >= lanes) return for_rows([&]() OFL_SIMD_LAMBDA { ReverseWithin(d, n, x, y); });
#if OFL_SIMD_HAS_MASKS
  // A vector that ends with the row has its reverse at its beginning.
  const auto end = hn::Not(hn::FirstN(d, static_cast<size_t>(lanes - n)));
  const auto begin = hn::FirstN(d, static_cast<size_t>(n));
  for_rows([&]() OFL_SIMD_LAMBDA {
    hn::BlendedStore(Reversed(d, hn::MaskedLoad(end, d, x + n - lanes)), begin, d, y);
  });
#else
  const hn::FixedTag<T, 16 / sizeof(T)> block;
  if (n >= static_cast<int64_t>(hn::Lanes(block))) {
    return for_rows([&]() OFL_SIMD_LAMBDA { ReverseWithin(block, n, x, y); });
  }
  for_rows([&]() OFL_SIMD_LAMBDA {
    for (int64_t i = 0; i < n; ++i) y[i] = x[n - 1 - i];
  });
#endif
}

// Four loads go before four stores to whole vectors: a load would wait for a store before it that
// has its place on a page of 4096 bytes.
void CopyToWholeVectors(int64_t bytes, const void* x_data, void* y_data) {
  const hn::ScalableTag<uint8_t> d;
  const auto* x = static_cast<const uint8_t*>(x_data);
  auto* y = static_cast<uint8_t*>(y_data);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t head =
      std::min(bytes, -static_cast<int64_t>(reinterpret_cast<uintptr_t>(y)) & (lanes - 1));
  std::memcpy(y, x, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    const auto v0 = hn::LoadU(d, x + i), v1 = hn::LoadU(d, x + i + lanes);
    const auto v2 = hn::LoadU(d, x + i + 2 * lanes), v3 = hn::LoadU(d, x + i + 3 * lanes);
    hn::Store(v0, d, y + i);
    hn::Store(v1, d, y + i + lanes);
    hn::Store(v2, d, y + i + 2 * lanes);
    hn::Store(v3, d, y + i + 3 * lanes);
  }
  std::memcpy(y + i, x + i, static_cast<size_t>(bytes - i));
}

// Vectors of D, at least one: the last one begins within the one before, if it has to.
template <class D>
HWY_INLINE void CopyWithin(D d, int64_t bytes, const uint8_t* x, uint8_t* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), last = bytes - lanes;
  for (int64_t i = 0; i < last; i += lanes) hn::StoreU(hn::LoadU(d, x + i), d, y + i);
  hn::StoreU(hn::LoadU(d, x + last), d, y + last);
}

void CopyShortRows(int64_t rows, int64_t bytes, const void* x_data, int64_t x_stride, void* y_data,
                   int64_t y_stride) {
  const hn::ScalableTag<uint8_t> d;
  const auto* x = static_cast<const uint8_t*>(x_data);
  auto* y = static_cast<uint8_t*>(y_data);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto for_rows = [&](auto copy) OFL_SIMD_LAMBDA {
    for (int64_t r = 0; r < rows; ++r, x += x_stride, y += y_stride) copy();
  };
  if (bytes >= lanes) {
    for_rows([&]() OFL_SIMD_LAMBDA { CopyWithin(d, bytes, x, y); });
#if OFL_SIMD_HAS_MASKS
  } else {
    const auto mask = hn::FirstN(d, static_cast<size_t>(bytes));
    for_rows([&]() OFL_SIMD_LAMBDA { hn::BlendedStore(hn::MaskedLoad(mask, d, x), mask, d, y); });
#else
  } else if (bytes >= 16) {
    const hn::FixedTag<uint8_t, 16> block;
    for_rows([&]() OFL_SIMD_LAMBDA { CopyWithin(block, bytes, x, y); });
  } else {
    for_rows([&]() OFL_SIMD_LAMBDA {
      for (int64_t i = 0; i < bytes; ++i) y[i] = x[i];
    });
#endif
  }
}

template <class T>
void RepeatElement(int64_t n, const void* x, void* y_data) {
  const hn::ScalableTag<T> d;
  const T element = *static_cast<const T*>(x);
  T* y = static_cast<T*>(y_data);
  const auto v = hn::Set(d, element);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(v, d, y + i);
  for (; i < n; ++i) y[i] = element;
}

// What a row's last vector writes behind it, the next row writes over.
template <class T>
void RepeatEachElement(int64_t rows, int64_t length, const void* x_data, int64_t x_stride,
                       void* y_data) {
  const hn::ScalableTag<T> d;
  static_assert(hn::MaxLanes(d) * sizeof(T) <= kRepeatSlack);
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (length <= lanes) {
    for (int64_t r = 0; r < rows; ++r) hn::StoreU(hn::Set(d, x[r * x_stride]), d, y + r * length);
    return;
  }
  for (int64_t r = 0; r < rows; ++r, x += x_stride, y += length) {
    const auto v = hn::Set(d, *x);
    for (int64_t i = 0; i < length; i += lanes) hn::StoreU(v, d, y + i);
  }
}

template <class T>
void TakeEverySecond(int64_t n, const void* x_data, void* y_data) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  int64_t i = 0;
  if constexpr (sizeof(T) >= 4) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes < n; i += lanes) {
      const auto lower = hn::LoadU(d, x + 2 * i), upper = hn::LoadU(d, x + 2 * i + lanes);
      hn::StoreU(hn::ConcatEven(d, upper, lower), d, y + i);
    }
  } else {  // as the lower halves of words twice as wide
    using Wide = std::conditional_t<sizeof(T) == 1, uint16_t, uint32_t>;
    const hn::ScalableTag<Wide> wide;
    const hn::Rebind<T, decltype(wide)> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
    for (; i + lanes < n; i += lanes) {
      const auto words =
          hn::BitCast(wide, hn::LoadU(hn::Repartition<T, decltype(wide)>(), x + 2 * i));
      hn::StoreU(hn::TruncateTo(d, words), d, y + i);
    }
  }
  for (; i < n; ++i) y[i] = x[2 * i];
}

// A square as wide as 16 bytes: each turn puts the lanes of row i between those of the row half
// the square below, and log2 of the rows turns make columns of them.
template <class T>
HWY_INLINE void TransposeSquare(const T* x, int64_t x_stride, T* y, int64_t y_stride) {
  constexpr int kRows = 16 / sizeof(T);
  const hn::FixedTag<T, kRows> d;
  using V = hn::Vec<decltype(d)>;
  V rows[kRows], turned[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) rows[i] = hn::LoadU(d, x + i * x_stride);
#pragma GCC unroll 4
  for (int step = 1; step < kRows; step *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows / 2; ++i) {
      turned[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + kRows / 2]);
      turned[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + kRows / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) rows[i] = turned[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) hn::StoreU(rows[i], d, y + i * y_stride);
}

// Three rows of triples that lie one after another, as the colours of an image.
template <class T>
void SplitTriples(int64_t cols, const T* x, T* y, int64_t y_stride) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) {
    hn::Vec<decltype(d)> rows[3];
    hn::LoadInterleaved3(d, x + 3 * c, rows[0], rows[1], rows[2]);
    for (int r = 0; r < 3; ++r) hn::StoreU(rows[r], d, y + r * y_stride + c);
  }
  for (; c < cols; ++c) {
    for (int r = 0; r < 3; ++r) y[r * y_stride + c] = x[3 * c + r];
  }
}

template <class T>
void TransposeTile(int64_t rows, int64_t cols, const void* x_data, int64_t x_stride, void* y_data,
                   int64_t y_stride) {
  constexpr int64_t kSide = 16 / sizeof(T);
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  if (rows == 3 && x_stride == 3) return SplitTriples(cols, x, y, y_stride);
  const int64_t whole_rows = rows / kSide * kSide, whole_cols = cols / kSide * kSide;
  for (int64_t c = 0; c < whole_cols; c += kSide) {
    for (int64_t r = 0; r < whole_rows; r += kSide) {
      TransposeSquare(x + c * x_stride + r, x_stride, y + r * y_stride + c, y_stride);
    }
  }
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = c < whole_cols ? whole_rows : 0; r < rows; ++r) {
      y[r * y_stride + c] = x[c * x_stride + r];
    }
  }
}

}  // namespace

void CopyBytesByVectors(int64_t bytes, const void* x, void* y) { CopyToWholeVectors(bytes, x, y); }
void CopyRowsOfBytes(int64_t rows, int64_t bytes, const void* x, int64_t x_stride, void* y,
                     int64_t y_stride) {
  CopyShortRows(rows, bytes, x, x_stride, y, y_stride);
}
ReverseFunction ReverseOf(size_t item) {
  return VisitWord(item, []<class T>(Tag<T>) -> ReverseFunction { return &ReverseRows<T>; });
}
RepeatFunction RepeatOf(size_t item) {
  return VisitWord(item, []<class T>(Tag<T>) -> RepeatFunction { return &RepeatElement<T>; });
}
RepeatEachFunction RepeatEachOf(size_t item) {
  return VisitWord(item,
                   []<class T>(Tag<T>) -> RepeatEachFunction { return &RepeatEachElement<T>; });
}
EverySecondFunction EverySecondOf(size_t item) {
  return VisitWord(item,
                   []<class T>(Tag<T>) -> EverySecondFunction { return &TakeEverySecond<T>; });
}
TransposeFunction TransposeOf(size_t item) {
  return VisitWord(item, []<class T>(Tag<T>) -> TransposeFunction { return &TransposeTile<T>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(CopyBytesByVectors);
HWY_EXPORT(CopyRowsOfBytes);
HWY_EXPORT(ReverseOf);
HWY_EXPORT(RepeatOf);
HWY_EXPORT(RepeatEachOf);
HWY_EXPORT(EverySecondOf);
HWY_EXPORT(TransposeOf);

void CopyByVectors(int64_t bytes, const void* x, void* y) {
  HWY_DYNAMIC_DISPATCH(CopyBytesByVectors)(bytes, x, y);
}
void CopyRows(int64_t rows, int64_t bytes, const void* x, int64_t x_stride, void* y,
              int64_t y_stride) {
  HWY_DYNAMIC_DISPATCH(CopyRowsOfBytes)(rows, bytes, x, x_stride, y, y_stride);
}
ReverseFunction FindReverse(size_t item) { return HWY_DYNAMIC_DISPATCH(ReverseOf)(item); }
RepeatFunction FindRepeat(size_t item) { return HWY_DYNAMIC_DISPATCH(RepeatOf)(item); }
RepeatEachFunction FindRepeatEach(size_t item) { return HWY_DYNAMIC_DISPATCH(RepeatEachOf)(item); }
EverySecondFunction FindEverySecond(size_t item) {
  return HWY_DYNAMIC_DISPATCH(EverySecondOf)(item);
}
TransposeFunction FindTranspose(size_t item) { return HWY_DYNAMIC_DISPATCH(TransposeOf)(item); }

}  // namespace oneflow_lite
#endif  // HWY_ONCE
