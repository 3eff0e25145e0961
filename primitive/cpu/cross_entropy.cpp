// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy: a row is read from memory for its maximum and from the cache for the sum of
// exponentials; the gradient is one more pass, elementwise. Of an ignored row nothing is read.
#include "primitive/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "primitive/cpu/convert.h"
#include "primitive/cpu/cross_entropy_rows.h"
#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {
namespace {

// The mean of x is taken about x[target], so that it keeps its precision where all logits are
// large; about 0 where that is infinite.
double LossOf(const LogitRows& rows, const CrossEntropyShape& shape, const RowStats& row,
              int64_t target, const void* x) {
  const double log_sum = std::log(row.sum), x_target = rows.kernels().element(x, target);
  const double sharp = (row.max - x_target) + log_sum;
  if (shape.smoothing == 0) return sharp;
  const double anchor = std::isfinite(x_target) ? x_target : 0;
  const double deviation = rows.Deviation(shape.classes, anchor, x);
  const double mean = deviation / static_cast<double>(shape.classes);
  const double uniform = ((row.max - anchor) + log_sum) - mean;
  return (1 - shape.smoothing) * sharp + shape.smoothing * uniform;
}

double UniformOf(const CrossEntropyShape& shape) {
  return shape.smoothing / static_cast<double>(shape.classes);
}

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
    LogitRows::ForEach(shape.rows, shape.classes, [&](int64_t r) {
      const int64_t t = target[r];
      if (!Counts(shape, t)) {
        put(loss, r, 0);
        put(stats, 2 * r, 0);
        put(stats, 2 * r + 1, 0);
        return;
      }
      const void* x = rows_.At(x_data, r * shape.stride());
      const RowStats row = rows_.Statistics(shape.classes, x);
      put(loss, r, LossOf(rows_, shape, row, t, x));
      put(stats, 2 * r, row.max);
      put(stats, 2 * r + 1, std::log(row.sum));
    });
    return OkStatus();
  }

 private:
  LogitRows rows_;
};

class CpuCrossEntropyBackward final : public CrossEntropyBackward {
 public:
  explicit CpuCrossEntropyBackward(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, const CrossEntropyShape& shape, const void* x, const int64_t* target,
                const void* stats, const void* dloss, int64_t dloss_stride,
                void* dx) const override {
    if (shape.classes <= 0) return OkStatus();
    const auto number = rows_.kernels().number;
    LogitRows::ForEach(shape.rows, shape.classes, [&](int64_t r) {
      const int64_t offset = r * shape.classes;
      if (!Counts(shape, target[r])) return rows_.Zero(shape.classes, rows_.At(dx, offset));
      const GradientRow row{number(stats, 2 * r), number(stats, 2 * r + 1), UniformOf(shape),
                            number(dloss, r * dloss_stride)};
      rows_.Gradient(shape.classes, row, target[r], 1 - shape.smoothing,
                     rows_.At(x, r * shape.stride()), rows_.At(dx, offset));
    });
    return OkStatus();
  }

 private:
  LogitRows rows_;
};

class CpuCrossEntropyInPlace final : public CrossEntropyInPlace {
 public:
  explicit CpuCrossEntropyInPlace(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, const CrossEntropyShape& shape, void* x_data, const int64_t* target,
                const void* scale, void* loss, void*) const override {
    OFL_RETURN_IF_ERROR(CheckTargets(shape, target));
    const auto put = rows_.kernels().put_number;
    const double factor = scale ? rows_.kernels().number(scale, 0) : 1.0;
    LogitRows::ForEach(shape.rows, shape.classes, [&](int64_t r) {
      void* x = rows_.At(x_data, r * shape.stride());
      if (!Counts(shape, target[r])) {
        put(loss, r, factor * 0);  // NaN where the mean is over no row
        return rows_.Zero(shape.classes, x);
      }
      const RowStats row = rows_.Statistics(shape.classes, x);
      put(loss, r, factor * LossOf(rows_, shape, row, target[r], x));
      rows_.Gradient(shape.classes, {row.max, std::log(row.sum), UniformOf(shape), factor},
                     target[r], 1 - shape.smoothing, x, x);
    });
    return OkStatus();
  }

 private:
  LogitRows rows_;
};

class CpuScaleRows final : public ScaleRows {
 public:
  explicit CpuScaleRows(const Spec& spec) : rows_(spec.dtype) {}

  Status Launch(Stream&, int64_t rows, int64_t cols, const void* factor, int64_t stride,
                void* x) const override {
    if (cols <= 0) return OkStatus();
    LogitRows::ForEach(rows, cols, [&](int64_t r) {
      const double f = rows_.kernels().number(factor, r * stride);
      if (f == 1) return;
      void* row = rows_.At(x, r * cols);
      LogitRows::ForParts(RowParts(cols), [&](int64_t, int64_t begin, int64_t size) {
        rows_.kernels().scale(size, f, rows_.At(row, begin));
      });
    });
    return OkStatus();
  }

 private:
  LogitRows rows_;
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
  LogitRows rows_;
};

class CpuReduceLoss final : public ReduceLoss {
 public:
  explicit CpuReduceLoss(const Spec& spec)
      : rows_(spec.dtype),
        item_(static_cast<int64_t>(SizeOf(ComputeType(spec.dtype)))),
        widen_(FindConvert(ComputeType(spec.dtype), DType::kFloat64)) {}

  Status Launch(Stream&, int64_t rows, int64_t ignore_index, const void* loss,
                const int64_t* target, void* value, void* weight) const override {
    const CrossEntropyKernels& k = rows_.kernels();
    double sum = 0, each = 1;
    for (int64_t r = 0; r < rows; r += kChunk) {
      const int64_t n = std::min(kChunk, rows - r);
      double wide[kChunk];
      widen_(n, static_cast<const char*>(loss) + r * item_, wide);
      sum += sums_.row(n, wide);
    }
    if (target) {
      each /= static_cast<double>(rows - std::count(target, target + rows, ignore_index));
    }
    k.put_element(value, 0, sum * each);
    k.put_number(weight, 0, each);
    return OkStatus();
  }

 private:
  LogitRows rows_;
  int64_t item_;
  ConvertFunction widen_;
  ReduceLoops<double> sums_ = FindReduceLoops<double>(Fold::kSum);
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
