// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy: a row is read from memory for its maximum and from the cache for the sum of
// exponentials; the gradient is one more pass, elementwise. Of an ignored row nothing is read.
#include "primitive/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/cross_entropy.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/softmax-inl.h"
#include "primitive/cpu/softmax_plan.h"

#ifndef OFL_PRIMITIVE_CPU_CROSS_ENTROPY_ONCE_
#define OFL_PRIMITIVE_CPU_CROSS_ENTROPY_ONCE_
namespace oneflow_lite {

// What the gradient of a row needs to know.
struct GradientRow {
  double max, log_sum;
  double uniform;  // smoothing / classes
  double dloss;
};

// Over n contiguous elements: a row or a part of one.
struct CrossEntropyKernels {
  // Also asks for the n elements behind, which are the next row.
  RowStats (*stats)(int64_t n, const void* x);
  double (*deviation)(int64_t n, double anchor, const void* x);  // sum of x - anchor
  double (*element)(const void* x, int64_t i);
  void (*put_element)(void* x, int64_t i, double v);
  // dx = (exp(x - max - log_sum) - uniform) dloss; dx may be x.
  void (*gradient)(int64_t n, const GradientRow& row, const void* x, void* dx);
  // The same at element i, with `sharp` subtracted from the probability.
  void (*gradient_at)(int64_t i, double x, double sharp, const GradientRow& row, void* dx);
  void (*scale)(int64_t n, double factor, void* x);
  // Numbers of the compute type.
  double (*number)(const void* p, int64_t i);
  void (*put_number)(void* p, int64_t i, double v);
};

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T>
RowStats RowStatistics(int64_t n, const void* data) {
  const T* x = static_cast<const T*>(data);
  const auto max = MaxOf(x, n);
  const bool masked = max == -std::numeric_limits<ComputeOf<T>>::infinity();
  return {max, SumExp(x, n, masked ? 0 : max,
                      [&](size_t i, size_t, auto) OFL_SIMD_LAMBDA { hwy::Prefetch(x + n + i); })};
}

// Blocks of 128 vectors are summed in the compute type, and the blocks in double.
template <class T>
double Deviation(int64_t n, double anchor, const void* data) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(data);
  const auto a = hn::Set(d, static_cast<ComputeOf<T>>(anchor));
  const int64_t block = 128 * hn::Lanes(d);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    const auto zero = hn::Zero(d);
    hn::Vec<TagOf<T>> s[4] = {zero, zero, zero, zero};
    ForVectors(d, std::min(block, n - begin),
               [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
                 s[slot] = hn::Add(s[slot], hn::Sub(LoadUpTo(d, x + begin + i, count, a), a));
               });
    total += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
  }
  return total;
}

template <class T>
double Element(const void* x, int64_t i) {
  return static_cast<ComputeOf<T>>(static_cast<const T*>(x)[i]);
}

template <class T>
void PutElement(void* x, int64_t i, double v) {
  static_cast<T*>(x)[i] = T(static_cast<ComputeOf<T>>(v));
}

template <class T>
void GradientOf(int64_t n, const GradientRow& row, const void* x_data, void* dx) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const T* x = static_cast<const T*>(x_data);
  const auto max = hn::Set(d, static_cast<C>(row.max));
  const auto log_sum = hn::Set(d, static_cast<C>(row.log_sum));
  const auto uniform = hn::Set(d, static_cast<C>(row.uniform));
  const auto dloss = hn::Set(d, static_cast<C>(row.dloss));
  const auto zero = hn::Zero(d);
  Generate<false>(d, n, static_cast<T*>(dx), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto v = hn::Sub(LoadUpTo(d, x + i, count, zero), max);
    return hn::Mul(hn::Sub(ExpNonPositive(d, hn::Sub(v, log_sum)), uniform), dloss);
  });
}

template <class T>
void GradientAt(int64_t i, double x, double sharp, const GradientRow& row, void* dx) {
  using C = ComputeOf<T>;
  const double p = std::exp((x - row.max) - row.log_sum);
  static_cast<T*>(dx)[i] = T(static_cast<C>((p - row.uniform - sharp) * row.dloss));
}

template <class T>
void Scale(int64_t n, double factor, void* data) {
  const TagOf<T> d;
  T* x = static_cast<T*>(data);
  const auto f = hn::Set(d, static_cast<ComputeOf<T>>(factor));
  const auto zero = hn::Zero(d);
  Generate<false>(d, n, x, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    return hn::Mul(LoadUpTo(d, x + i, count, zero), f);
  });
}

template <class T>
void PutNumber(void* p, int64_t i, double v) {
  static_cast<ComputeOf<T>*>(p)[i] = static_cast<ComputeOf<T>>(v);
}

template <class T>
constexpr CrossEntropyKernels kKernels = {&RowStatistics<T>, &Deviation<T>,          &Element<T>,
                                          &PutElement<T>,    &GradientOf<T>,         &GradientAt<T>,
                                          &Scale<T>,         &Element<ComputeOf<T>>, &PutNumber<T>};

}  // namespace

CrossEntropyKernels GetCrossEntropyKernels(DType dtype) {
  return VisitFloating(dtype, []<class T>(Tag<T>) { return kKernels<T>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(GetCrossEntropyKernels);

// Rows of one dtype, and how they are shared out among threads.
class Rows {
 public:
  explicit Rows(DType dtype)
      : item_(SizeOf(dtype)), kernels_(HWY_DYNAMIC_DISPATCH(GetCrossEntropyKernels)(dtype)) {}

  const CrossEntropyKernels& kernels() const { return kernels_; }
  const void* At(const void* p, int64_t i) const { return static_cast<const char*>(p) + i * item_; }
  void* At(void* p, int64_t i) const { return static_cast<char*>(p) + i * item_; }

  // Calls body(row) for every row, in parallel where there are rows enough to go around; else the
  // loops over parts of a row inside body are parallel.
  template <class Body>
  static void ForEach(int64_t rows, int64_t cols, Body body) {
    if (SplitsRows({.rows = rows, .cols = std::max<int64_t>(1, cols)})) {
      for (int64_t row = 0; row < rows; ++row) body(row);
      return;
    }
    ParallelFor(rows, RowGrain(std::max<int64_t>(1, cols)), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row);
    });
  }
  // Calls part(index, begin, size) for the parts of a row; one where rows run in parallel already.
  template <class Part>
  static void ForParts(const RowParts& parts, Part part) {
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) part(i, parts.Begin(i), parts.Size(i));
    });
  }

  RowStats Statistics(int64_t cols, const void* x) const {
    const RowParts parts(cols);
    if (parts.count == 1) return kernels_.stats(cols, x);
    RowStats stats[RowParts::kMax];
    ForParts(parts, [&](int64_t i, int64_t begin, int64_t size) {
      stats[i] = kernels_.stats(size, At(x, begin));
    });
    RowStats row{-std::numeric_limits<double>::infinity(), 0};
    for (int i = 0; i < parts.count; ++i) row.max = std::max(row.max, stats[i].max);
    for (int i = 0; i < parts.count; ++i) {
      row.sum += stats[i].sum * std::exp(stats[i].max - row.max);
    }
    return row;
  }

  // The mean of x is taken about x[target], so that it keeps its precision where all logits are
  // large; about 0 where that is infinite.
  double Loss(const CrossEntropyShape& shape, const RowStats& row, int64_t target,
              const void* x) const {
    const double log_sum = std::log(row.sum), x_target = kernels_.element(x, target);
    const double sharp = (row.max - x_target) + log_sum;
    if (shape.smoothing == 0) return sharp;
    const double anchor = std::isfinite(x_target) ? x_target : 0;
    const RowParts parts(shape.classes);
    double sums[RowParts::kMax];
    ForParts(parts, [&](int64_t i, int64_t begin, int64_t size) {
      sums[i] = kernels_.deviation(size, anchor, At(x, begin));
    });
    double deviation = 0;
    for (int i = 0; i < parts.count; ++i) deviation += sums[i];
    const double mean = deviation / static_cast<double>(shape.classes);
    const double uniform = ((row.max - anchor) + log_sum) - mean;
    return (1 - shape.smoothing) * sharp + shape.smoothing * uniform;
  }

  void Gradient(const CrossEntropyShape& shape, double max, double log_sum, double dloss,
                int64_t target, const void* x, void* dx) const {
    const GradientRow row{max, log_sum, shape.smoothing / static_cast<double>(shape.classes),
                          dloss};
    const double x_target = kernels_.element(x, target);  // dx may be x
    ForParts(RowParts(shape.classes), [&](int64_t, int64_t begin, int64_t size) {
      kernels_.gradient(size, row, At(x, begin), At(dx, begin));
    });
    kernels_.gradient_at(target, x_target, 1 - shape.smoothing, row, dx);
  }

  void Zero(int64_t cols, void* dx) const {  // all bits 0 is 0 in every floating type
    std::memset(dx, 0, static_cast<size_t>(cols * item_));
  }

 private:
  int64_t item_;
  CrossEntropyKernels kernels_;
};

bool Counts(const CrossEntropyShape& shape, int64_t target) {
  return target != shape.ignore_index && target >= 0 && target < shape.classes;
}

Status CheckTargets(const CrossEntropyShape& shape, const int64_t* target) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (target[row] == shape.ignore_index || Counts(shape, target[row])) continue;
    return Error(ErrorKind::kIndex, "cross_entropy(): target ", target[row],
                 " is out of range [0, ", shape.classes - 1, "] and is not ignore_index (",
                 shape.ignore_index, ")");
  }
  return OkStatus();
}

class CpuCrossEntropy final : public CrossEntropy {
 public:
  explicit CpuCrossEntropy(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, const CrossEntropyShape& shape, const void* x_data, const int64_t* target,
                void* loss, void* stats, void*) const override {
    OFL_RETURN_IF_ERROR(CheckTargets(shape, target));
    const auto put = rows_.kernels().put_number;
    Rows::ForEach(shape.rows, shape.classes, [&](int64_t r) {
      const int64_t t = target[r];
      if (!Counts(shape, t)) {
        put(loss, r, 0);
        put(stats, 2 * r, 0);
        put(stats, 2 * r + 1, 0);
        return;
      }
      const void* x = rows_.At(x_data, r * shape.stride());
      const RowStats row = rows_.Statistics(shape.classes, x);
      put(loss, r, rows_.Loss(shape, row, t, x));
      put(stats, 2 * r, row.max);
      put(stats, 2 * r + 1, std::log(row.sum));
    });
    return OkStatus();
  }

 private:
  Rows rows_;
};

class CpuCrossEntropyBackward final : public CrossEntropyBackward {
 public:
  explicit CpuCrossEntropyBackward(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, const CrossEntropyShape& shape, const void* x, const int64_t* target,
                const void* stats, const void* dloss, int64_t dloss_stride,
                void* dx) const override {
    if (shape.classes <= 0) return OkStatus();
    const auto number = rows_.kernels().number;
    Rows::ForEach(shape.rows, shape.classes, [&](int64_t r) {
      const int64_t offset = r * shape.classes;
      if (!Counts(shape, target[r])) return rows_.Zero(shape.classes, rows_.At(dx, offset));
      rows_.Gradient(shape, number(stats, 2 * r), number(stats, 2 * r + 1),
                     number(dloss, r * dloss_stride), target[r], rows_.At(x, r * shape.stride()),
                     rows_.At(dx, offset));
    });
    return OkStatus();
  }

 private:
  Rows rows_;
};

class CpuCrossEntropyInPlace final : public CrossEntropyInPlace {
 public:
  explicit CpuCrossEntropyInPlace(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, const CrossEntropyShape& shape, void* x_data, const int64_t* target,
                const void* scale, void* loss, void*) const override {
    OFL_RETURN_IF_ERROR(CheckTargets(shape, target));
    const auto put = rows_.kernels().put_number;
    const double factor = scale ? rows_.kernels().number(scale, 0) : 1.0;
    Rows::ForEach(shape.rows, shape.classes, [&](int64_t r) {
      void* x = rows_.At(x_data, r * shape.stride());
      if (!Counts(shape, target[r])) {
        put(loss, r, factor * 0);  // NaN where the mean is over no row
        return rows_.Zero(shape.classes, x);
      }
      const RowStats row = rows_.Statistics(shape.classes, x);
      put(loss, r, factor * rows_.Loss(shape, row, target[r], x));
      rows_.Gradient(shape, row.max, std::log(row.sum), factor, target[r], x, x);
    });
    return OkStatus();
  }

 private:
  Rows rows_;
};

class CpuScaleRows final : public ScaleRows {
 public:
  explicit CpuScaleRows(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, int64_t rows, int64_t cols, const void* factor, int64_t stride,
                void* x) const override {
    if (cols <= 0) return OkStatus();
    Rows::ForEach(rows, cols, [&](int64_t r) {
      const double f = rows_.kernels().number(factor, r * stride);
      if (f == 1) return;
      void* row = rows_.At(x, r * cols);
      Rows::ForParts(RowParts(cols), [&](int64_t, int64_t begin, int64_t size) {
        rows_.kernels().scale(size, f, rows_.At(row, begin));
      });
    });
    return OkStatus();
  }

 private:
  Rows rows_;
};

class CpuMeanWeight final : public MeanWeight {
 public:
  explicit CpuMeanWeight(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, int64_t rows, int64_t ignore_index, const int64_t* target,
                void* weight) const override {
    const auto counted = rows - std::count(target, target + rows, ignore_index);
    rows_.kernels().put_number(weight, 0, 1.0 / static_cast<double>(counted));
    return OkStatus();
  }

 private:
  Rows rows_;
};

class CpuReduceLoss final : public ReduceLoss {
 public:
  explicit CpuReduceLoss(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, int64_t rows, int64_t ignore_index, const void* loss,
                const int64_t* target, void* value, void* weight) const override {
    const CrossEntropyKernels& k = rows_.kernels();
    double sum = 0, each = 1;
    for (int64_t r = 0; r < rows; ++r) sum += k.number(loss, r);
    if (target) {
      each /= static_cast<double>(rows - std::count(target, target + rows, ignore_index));
    }
    k.put_element(value, 0, sum * each);
    k.put_number(weight, 0, each);
    return OkStatus();
  }

 private:
  Rows rows_;
};

template <class P, class CpuP>
StatusOr<std::unique_ptr<P>> New(const CrossEntropy::Spec& spec) {
  if (!IsFloating(spec.dtype)) return NoPrimitiveFor(P::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuP>(spec);
}
template <class P, class CpuP>
bool Register() {
  return RegisterPrimitive<P>(DeviceType::kCPU, &New<P, CpuP>);
}
const bool registered = Register<CrossEntropy, CpuCrossEntropy>() &&
                        Register<CrossEntropyBackward, CpuCrossEntropyBackward>() &&
                        Register<CrossEntropyInPlace, CpuCrossEntropyInPlace>() &&
                        Register<MeanWeight, CpuMeanWeight>() &&
                        Register<ReduceLoss, CpuReduceLoss>() &&
                        Register<ScaleRows, CpuScaleRows>();

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
