// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask): a row is read from memory for the maximum of its scores, then from the
// cache for their exponentials, which wait in a buffer (or in y) until their sum is known.
#include "primitive/scale_mask_softmax.h"

#include <cmath>
#include <cstring>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/scale_mask_softmax.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/softmax-inl.h"
#include "primitive/cpu/softmax_plan.h"

#ifndef OFL_PRIMITIVE_CPU_SCALE_MASK_SOFTMAX_ONCE_
#define OFL_PRIMITIVE_CPU_SCALE_MASK_SOFTMAX_ONCE_
namespace oneflow_lite {

// Rows [begin, end).
using ScaleMaskRows = void (*)(const ScaleMaskSoftmaxShape& shape, int64_t begin, int64_t end,
                               const void* x, const void* mask, void* y);
using ScaleMaskBackwardRows = void (*)(const ScaleMaskSoftmaxShape& shape, int64_t begin,
                                       int64_t end, const void* y, const void* dy, void* dx);

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// Whether each of `count` elements is kept, as a mask of the vectors of D.
template <class D, HWY_IF_LANE_SIZE(hn::TFromD<D>, 4)>
HWY_INLINE hn::Mask<D> NonZero(D d, hn::Vec<hn::Rebind<uint8_t, D>> v) {
  const hn::Rebind<uint32_t, D> du;
  return hn::RebindMask(d, hn::Ne(hn::PromoteTo(du, v), hn::Zero(du)));
}
template <class D, HWY_IF_LANE_SIZE(hn::TFromD<D>, 8)>
HWY_INLINE hn::Mask<D> NonZero(D d, hn::Vec<hn::Rebind<uint8_t, D>> v) {
  const hn::Rebind<uint32_t, D> du32;
  const hn::Rebind<uint64_t, D> du;
  return hn::RebindMask(d, hn::Ne(hn::PromoteTo(du, hn::PromoteTo(du32, v)), hn::Zero(du)));
}

// Elements i, i + 1, ... of a mask's row, with any distance between them; the last one repeats.
template <class D, class M>
HWY_INLINE const M* Gathered(D d, const M* row, int64_t col_stride, size_t i, size_t count,
                             M* room) {
  if (col_stride == 1 && count == hn::Lanes(d)) return row + i;
  for (size_t k = 0; k < hn::Lanes(d); ++k) {
    room[k] = row[static_cast<int64_t>(i + std::min(k, count - 1)) * col_stride];
  }
  return room;
}

// e[k] = scale * x[k] + mask[k], -inf where a mask of bool is false; mask may be null.
template <class T, class M>
OFL_ROW_LOOP void Scores(size_t n, const T* x, const M* mask, int64_t col_stride,
                         ComputeOf<T> scale, ComputeOf<T>* e) {
  const TagOf<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<ComputeOf<T>>::infinity());
  const auto factor = hn::Set(d, scale), zero = hn::Zero(d);
  Generate<false>(d, n, e, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto v = hn::Mul(LoadUpTo(d, x + i, count, zero), factor);
    if (!mask) return v;
    M room[hn::MaxLanes(TagOf<T>())];
    const M* m = Gathered(d, mask, col_stride, i, count, room);
    if constexpr (std::is_same_v<M, bool>) {
      const hn::Rebind<uint8_t, TagOf<T>> d8;
      const auto keep = hn::LoadU(d8, reinterpret_cast<const uint8_t*>(m));
      return hn::IfThenElse(NonZero(d, keep), v, lowest);
    } else {
      return hn::Add(v, LoadFrom(d, m));
    }
  });
}

// e = exp(e - max) and its sum.
template <class C>
OFL_ROW_LOOP double Exponentiate(size_t n, C max, C* e) {
  const TagOf<C> d;
  return SumExp(e, n, max, [&](size_t i, size_t count, auto v) OFL_SIMD_LAMBDA {
    StoreUpTo(v.part[0], d, e + i, count);
  });
}

template <class T>
OFL_ROW_LOOP void Scale(size_t n, const ComputeOf<T>* e, double factor, T* y) {
  const TagOf<T> d;
  const auto f = hn::Set(d, static_cast<ComputeOf<T>>(factor)), zero = hn::Zero(d);
  Generate<false>(d, n, y, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    return hn::Mul(LoadUpTo(d, e + i, count, zero), f);
  });
}

// Scores are worked out in a buffer, or in y where it can hold them: once in a row that fits, else
// block by block once for the maximum, once for the sum and once for y.
template <class T, class M>
void Rows(const ScaleMaskSoftmaxShape& shape, int64_t begin, int64_t end, const void* x_data,
          const void* mask_data, void* y_data) {
  using C = ComputeOf<T>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  HWY_ALIGN C buffer[kRowBuffer / sizeof(C)];
  for (int64_t row = begin; row < end; ++row) {
    const int64_t n = shape.Visible(row), stride = shape.mask.col_stride;
    const T* x = static_cast<const T*>(x_data) + row * shape.cols;
    T* y = static_cast<T*>(y_data) + row * shape.cols;
    const M* mask = static_cast<const M*>(mask_data);
    if (mask) mask += shape.mask.Offset(row);
    int64_t block = kRowBuffer / sizeof(C);
    C* e = buffer;
    if constexpr (std::is_same_v<T, C>) {
      if (n > block) block = n, e = y;
    }
    const auto scores = [&](int64_t first) {
      const int64_t count = std::min(block, n - first);
      Scores(count, x + first, mask ? mask + first * stride : nullptr, stride,
             static_cast<C>(shape.scale), e);
      return count;
    };
    C largest = kLowest;
    for (int64_t first = 0; first < n; first += block) {
      largest = std::max(largest, Largest(scores(first), e));
    }
    // Scores that are all -inf sum up to 0, and those with a NaN to NaN.
    const C max = largest == kLowest ? C(0) : largest;
    double sum = 0;
    for (int64_t first = 0; first < n; first += block) {
      sum += Exponentiate(n <= block ? n : scores(first), max, e);
    }
    const double factor = shape.zero_masked_rows && sum == 0 ? 0 : 1 / sum;
    for (int64_t first = 0; first < n; first += block) {
      if (n > block) Exponentiate(scores(first), max, e);
      Scale(std::min(block, n - first), e, factor, y + first);
    }
    std::fill(y + n, y + shape.cols, T(static_cast<C>(0 * factor)));  // NaN in a row of NaN
  }
}

template <class T>
void BackwardRows(const ScaleMaskSoftmaxShape& shape, int64_t begin, int64_t end,
                  const void* y_data, const void* dy_data, void* dx_data) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const auto zero = hn::Zero(d), scale = hn::Set(d, static_cast<C>(shape.scale));
  const size_t block = 128 * hn::Lanes(d);  // summed in the compute type, the blocks in double
  for (int64_t row = begin; row < end; ++row) {
    const size_t n = shape.Visible(row);
    const T* y = static_cast<const T*>(y_data) + row * shape.cols;
    const T* dy = static_cast<const T*>(dy_data) + row * shape.cols;
    T* dx = static_cast<T*>(dx_data) + row * shape.cols;
    double sum = 0;
    for (size_t first = 0; first < n; first += block) {
      hn::Vec<TagOf<T>> s[4] = {zero, zero, zero, zero};
      ForVectors(d, std::min(block, n - first),
                 [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
                   s[slot] = hn::MulAdd(LoadUpTo(d, y + first + i, count, zero),
                                        LoadUpTo(d, dy + first + i, count, zero), s[slot]);
                 });
      sum += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
    }
    const auto total = hn::Set(d, static_cast<C>(sum));
    Generate<false>(d, n, dx, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      hwy::Prefetch(y + shape.cols + i);
      hwy::Prefetch(dy + shape.cols + i);
      const auto centred = hn::Sub(LoadUpTo(d, dy + i, count, zero), total);
      return hn::Mul(hn::Mul(LoadUpTo(d, y + i, count, zero), centred), scale);
    });
    std::fill(dx + n, dx + shape.cols, T(C(0)));
  }
}

}  // namespace

ScaleMaskRows GetScaleMaskRows(DType dtype, DType mask_dtype) {
  return VisitFloating(dtype, [&]<class T>(Tag<T>) -> ScaleMaskRows {
    if (mask_dtype == DType::kBool) return &Rows<T, bool>;
    if (mask_dtype == dtype) return &Rows<T, T>;
    return &Rows<T, ComputeOf<T>>;
  });
}
ScaleMaskBackwardRows GetScaleMaskBackwardRows(DType dtype) {
  return VisitFloating(dtype,
                       [&]<class T>(Tag<T>) -> ScaleMaskBackwardRows { return &BackwardRows<T>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(GetScaleMaskRows);
HWY_EXPORT(GetScaleMaskBackwardRows);

class CpuScaleMaskSoftmax final : public ScaleMaskSoftmax {
 public:
  explicit CpuScaleMaskSoftmax(const Spec& spec)
      : rows_(HWY_DYNAMIC_DISPATCH(GetScaleMaskRows)(spec.dtype, spec.mask_dtype)) {}
  Status Launch(Stream&, const ScaleMaskSoftmaxShape& shape, const void* x, const void* mask,
                void* y, void*) const override {
    if (shape.cols <= 0) return OkStatus();
    ParallelFor(shape.rows, RowGrain(shape.cols),
                [&](int64_t begin, int64_t end) { rows_(shape, begin, end, x, mask, y); });
    return OkStatus();
  }

 private:
  ScaleMaskRows rows_;
};

class CpuScaleMaskSoftmaxBackward final : public ScaleMaskSoftmaxBackward {
 public:
  explicit CpuScaleMaskSoftmaxBackward(const Spec& spec)
      : rows_(HWY_DYNAMIC_DISPATCH(GetScaleMaskBackwardRows)(spec.dtype)) {}
  Status Launch(Stream&, const ScaleMaskSoftmaxShape& shape, const void* y, const void* dy,
                void* dx, void*) const override {
    if (shape.cols <= 0) return OkStatus();
    ParallelFor(shape.rows, RowGrain(shape.cols),
                [&](int64_t begin, int64_t end) { rows_(shape, begin, end, y, dy, dx); });
    return OkStatus();
  }

 private:
  ScaleMaskBackwardRows rows_;
};

StatusOr<std::unique_ptr<ScaleMaskSoftmax>> NewForward(const ScaleMaskSoftmax::Spec& spec) {
  if (!IsFloating(spec.dtype) || !IsMaskDType(spec.mask_dtype, spec.dtype)) {
    return NoPrimitiveFor(ScaleMaskSoftmax::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuScaleMaskSoftmax>(spec);
}
StatusOr<std::unique_ptr<ScaleMaskSoftmaxBackward>> NewBackward(
    const ScaleMaskSoftmaxBackward::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(ScaleMaskSoftmaxBackward::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuScaleMaskSoftmaxBackward>(spec);
}

const bool registered = RegisterPrimitive<ScaleMaskSoftmax>(DeviceType::kCPU, &NewForward) &&
                        RegisterPrimitive<ScaleMaskSoftmaxBackward>(DeviceType::kCPU, &NewBackward);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
