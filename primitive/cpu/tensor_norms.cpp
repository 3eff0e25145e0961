// SPDX-License-Identifier: Apache-2.0
//
// The norms of many tensors: terms are added up in the compute type over a piece, whose sums are
// added up in double.
#include <algorithm>
#include <cmath>
#include <vector>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/multi_tensor.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/tensor_norms.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_TENSOR_NORMS_ONCE_
#define OFL_PRIMITIVE_CPU_TENSOR_NORMS_ONCE_
namespace oneflow_lite {
// The sum of |x|^p over n elements; where p is infinite, their maximum.
using NormLoop = double (*)(const void* x, int64_t n, double p);

// Joins such sums, or maxima, of parts; a NaN stays.
class NormTotal {
 public:
  explicit NormTotal(double p) : largest_(std::isinf(p)) {}
  void Add(double part) {
    if (std::isnan(value_)) return;
    if (!largest_) {
      value_ += part;
    } else if (part > value_ || std::isnan(part)) {
      value_ = part;
    }
  }
  double value() const { return value_; }

 private:
  bool largest_;
  double value_ = 0;
};
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T>
double Terms(const void* data, int64_t n, double p) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(data);
  if (p != 1 && p != 2 && !std::isinf(p)) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += std::pow(std::fabs(static_cast<double>(static_cast<ComputeOf<T>>(x[i]))), p);
    }
    return sum;
  }
  const auto zero = hn::Zero(d);
  auto total = zero;
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto v = LoadUpTo(d, x + i, count, zero);
    if (p == 2) {
      total = hn::MulAdd(v, v, total);
    } else if (p == 1) {
      total = hn::Add(hn::Abs(v), total);
    } else {  // a NaN stays
      const auto size = hn::Abs(v);
      total = hn::IfThenElse(hn::Or(hn::Gt(size, total), hn::IsNaN(size)), size, total);
    }
  });
  HWY_ALIGN ComputeOf<T> lanes[hn::MaxLanes(d)];
  hn::Store(total, d, lanes);
  NormTotal joined(p);
  for (size_t i = 0; i < hn::Lanes(d); ++i) joined.Add(static_cast<double>(lanes[i]));
  return joined.value();
}

}  // namespace

NormLoop FindNormLoop(DType dtype) {
  if (!IsFloating(dtype)) return nullptr;
  return VisitFloating(dtype, []<class T>(Tag<T>) -> NormLoop { return &Terms<T>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindNormLoop);

constexpr int64_t kPiece = 4096;  // elements whose terms are added up in the compute type

class CpuTensorNorms final : public TensorNorms {
 public:
  CpuTensorNorms(NormLoop loop, DType dtype) : loop_(loop), dtype_(dtype) {}

  size_t WorkspaceBytes(absl::Span<const NormedTensor>) const override { return 0; }
  Status Launch(Stream&, double p, absl::Span<const NormedTensor> tensors, void* norms,
                void*) const override {
    std::vector<int64_t> ends;  // of the pieces
    for (const NormedTensor& t : tensors) {
      ends.push_back((ends.empty() ? 0 : ends.back()) + (t.numel + kPiece - 1) / kPiece);
    }
    std::vector<double> parts(static_cast<size_t>(ends.back()));
    const auto bytes = static_cast<int64_t>(SizeOf(dtype_));
    ParallelFor(ends.back(), 4, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const size_t i = std::upper_bound(ends.begin(), ends.end(), k) - ends.begin();
        const int64_t first = (k - (i ? ends[i - 1] : 0)) * kPiece;
        const char* x = static_cast<const char*>(tensors[i].data) + first * bytes;
        parts[static_cast<size_t>(k)] = loop_(x, std::min(kPiece, tensors[i].numel - first), p);
      }
    });
    for (size_t i = 0; i < tensors.size(); ++i) {
      NormTotal joined(p);
      for (int64_t k = i ? ends[i - 1] : 0; k < ends[i]; ++k) {
        joined.Add(parts[static_cast<size_t>(k)]);
      }
      const double total = joined.value();
      const double norm = std::isinf(p) || p == 1 ? total
                          : p == 2                ? std::sqrt(total)
                                                  : std::pow(total, 1 / p);
      if (dtype_ == DType::kFloat64)
        static_cast<double*>(norms)[i] = norm;
      else
        static_cast<float*>(norms)[i] = static_cast<float>(norm);
    }
    return OkStatus();
  }

 private:
  NormLoop loop_;
  DType dtype_;
};

StatusOr<std::unique_ptr<TensorNorms>> NewTensorNorms(const TensorNorms::Spec& spec) {
  NormLoop loop = HWY_DYNAMIC_DISPATCH(FindNormLoop)(spec.dtype);
  if (!loop) return NoPrimitiveFor(TensorNorms::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuTensorNorms>(loop, spec.dtype);
}

const bool registered = RegisterPrimitive<TensorNorms>(DeviceType::kCPU, &NewTensorNorms);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
