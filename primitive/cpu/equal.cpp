// SPDX-License-Identifier: Apache-2.0
//
// Whether two tensors have the same elements, a chunk at a time. Integers are the same where their
// bytes are.
#include "primitive/equal.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/strided.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/equal.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_EQUAL_ONCE_
#define OFL_PRIMITIVE_CPU_EQUAL_ONCE_
namespace oneflow_lite {

// Whether n elements of a and b are the same.
using SameFunction = bool (*)(int64_t n, const void* a, const void* b);

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

struct SameNumber {
  template <class D>
  HWY_INLINE hn::Mask<D> operator()(D, hn::Vec<D> a, hn::Vec<D> b) const {
    return hn::Eq(a, b);
  }
};
struct SameTruth {
  template <class D>
  HWY_INLINE hn::Mask<D> operator()(D d, hn::Vec<D> a, hn::Vec<D> b) const {
    const auto one = hn::Set(d, 1);
    return hn::Eq(hn::Min(a, one), hn::Min(b, one));
  }
};
// 16-bit floats by their bits; kInfinity has those of infinity.
template <uint16_t kInfinity>
struct SameShort {
  template <class D>
  HWY_INLINE hn::Mask<D> operator()(D d, hn::Vec<D> a, hn::Vec<D> b) const {
    const auto sign_off = hn::Set(d, 0x7fff), size = hn::And(a, sign_off);
    const auto number = hn::Eq(hn::Min(size, hn::Set(d, kInfinity)), size);
    const auto zeros = hn::Eq(hn::And(hn::Or(a, b), sign_off), hn::Zero(d));
    return hn::Or(hn::And(hn::Eq(a, b), number), zeros);
  }
};

template <class T, class Test>
bool Same(int64_t count, const void* left, const void* right) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(count);
  const T *a = static_cast<const T*>(left), *b = static_cast<const T*>(right);
  const auto at = [&](size_t i) OFL_SIMD_LAMBDA {
    return Test()(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i));
  };
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto all =
        hn::And(hn::And(at(i), at(i + lanes)), hn::And(at(i + 2 * lanes), at(i + 3 * lanes)));
    if (!hn::AllTrue(d, all)) return false;
  }
  for (; i + lanes <= n; i += lanes) {
    if (!hn::AllTrue(d, at(i))) return false;
  }
  const auto zero = hn::Zero(d);
  return i == n || hn::AllTrue(d, Test()(d, LoadPart(d, a + i, n - i, zero),
                                         LoadPart(d, b + i, n - i, zero)));
}

}  // namespace

SameFunction FindSame(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return &Same<float, SameNumber>;
    case DType::kFloat64:
      return &Same<double, SameNumber>;
    case DType::kFloat16:
      return &Same<uint16_t, SameShort<0x7c00>>;
    case DType::kBFloat16:
      return &Same<uint16_t, SameShort<0x7f80>>;
    default:
      return &Same<uint8_t, SameTruth>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindSame);

template <size_t kItem>
bool SameBytes(int64_t n, const void* a, const void* b) {
  return std::memcmp(a, b, static_cast<size_t>(n) * kItem) == 0;
}

SameFunction FindSameOf(DType dtype) {
  if (IsFloating(dtype) || dtype == DType::kBool) return HWY_DYNAMIC_DISPATCH(FindSame)(dtype);
  return VisitWord(SizeOf(dtype),
                   []<class T>(Tag<T>) -> SameFunction { return &SameBytes<sizeof(T)>; });
}

class CpuEqual final : public Equal {
 public:
  explicit CpuEqual(DType dtype) : item_(SizeOf(dtype)), same_(FindSameOf(dtype)) {}

  Status Launch(Stream&, const Elementwise<2>& g, const void* a, const void* b,
                bool* y) const override {
    std::atomic<bool> same = true;
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      if (!(g.contiguous ? IsSame(begin, end, a, b, same) : IsSame(g, begin, end, a, b, same))) {
        same.store(false, std::memory_order_relaxed);
      }
    });
    *y = same;
    return OkStatus();
  }

 private:
  // Elements [begin, end); false, too, where `so_far` became so.
  bool IsSame(int64_t begin, int64_t end, const void* a, const void* b,
              const std::atomic<bool>& so_far) const {
    constexpr int64_t kPiece = 8192;
    for (int64_t i = begin; i < end && so_far.load(std::memory_order_relaxed); i += kPiece) {
      const int64_t offset = i * static_cast<int64_t>(item_);
      if (!same_(std::min(kPiece, end - i), static_cast<const char*>(a) + offset,
                 static_cast<const char*>(b) + offset)) {
        return false;
      }
    }
    return true;
  }
  bool IsSame(const Elementwise<2>& g, int64_t begin, int64_t end, const void* a, const void* b,
              const std::atomic<bool>& so_far) const {
    ChunkBuffer of_a, of_b;
    StridedReader left(g, 0, item_, a, begin), right(g, 1, item_, b, begin);
    for (int64_t i = begin; i < end && so_far.load(std::memory_order_relaxed); i += kChunk) {
      const int64_t n = std::min(kChunk, end - i);
      if (!same_(n, left.Read(n, of_a), right.Read(n, of_b))) return false;
    }
    return true;
  }

  size_t item_;
  SameFunction same_;
};

StatusOr<std::unique_ptr<Equal>> NewEqual(const Equal::Spec& spec) {
  return std::make_unique<CpuEqual>(spec.dtype);
}

const bool registered = RegisterPrimitive<Equal>(DeviceType::kCPU, &NewEqual);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
