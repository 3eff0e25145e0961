// SPDX-License-Identifier: Apache-2.0
//
// A part's row is read from memory for its maximum and from the cache for the rest; the merge is a
// few numbers a row; the gradient is one pass. Of an ignored row nothing is read.
#include "primitive/cross_entropy_split.h"

#include <algorithm>
#include <cmath>

#include "oneflow_lite/core/error.h"
#include "primitive/cpu/cross_entropy_rows.h"

namespace oneflow_lite {
namespace {

// What is subtracted from the logits of a row, or a part of one, with that maximum.
double ShiftOf(double max) { return max == -HUGE_VAL ? 0 : max; }

bool IsClass(int64_t target, int64_t classes) { return target >= 0 && target < classes; }

// The column of a part in which the target's logit lies; -1 where it is another part's.
int64_t ColumnOf(const ClassPartShape& s, int64_t target) {
  const int64_t column = target - s.first;
  return column >= 0 && column < s.count ? column : -1;
}

struct RowOfParts {
  double loss, max, log_sum;
};

// The row's numbers of part k are number(k, 0 to kPartNumbers).
template <class F>
RowOfParts MergedRow(const ClassMergeShape& s, const F& number) {
  double max = -HUGE_VAL, sum = 0, at = 0, deviation = 0;
  for (int64_t k = 0; k < s.parts; ++k) max = std::max(max, number(k, 0));
  const double shift = ShiftOf(max);
  for (int64_t k = 0; k < s.parts; ++k) {
    sum += number(k, 1) * std::exp(number(k, 0) - shift);
    at += number(k, 2);
    const int64_t count = s.classes / s.parts + (k < s.classes % s.parts ? 1 : 0);
    if (count == 0) continue;
    deviation += number(k, 3) + static_cast<double>(count) * (ShiftOf(number(k, 0)) - shift);
  }
  const double log_sum = std::log(sum), sharp = (max - at) + log_sum;
  if (s.smoothing == 0) return {sharp, max, log_sum};
  const double uniform = log_sum - deviation / static_cast<double>(s.classes);
  return {(1 - s.smoothing) * sharp + s.smoothing * uniform, max, log_sum};
}

Status CheckTargets(const ClassMergeShape& s, const int64_t* target) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (target[r] == s.ignore_index || IsClass(target[r], s.classes)) continue;
    return Error(ErrorKind::kIndex, "cross_entropy(): target ", target[r], " is out of range [0, ",
                 s.classes - 1, "] and is not ignore_index (", s.ignore_index, ")");
  }
  return OkStatus();
}

class CpuCrossEntropySplit final : public CrossEntropySplit {
 public:
  explicit CpuCrossEntropySplit(const Spec& spec) : rows_(spec.dtype) {}

  Status Part(Stream&, const ClassPartShape& s, const void* x_data, const int64_t* target,
              void* part) const override {
    const CrossEntropyKernels& k = rows_.kernels();
    LogitRows::ForEach(s.rows, s.count, [&](int64_t r) {
      double numbers[kPartNumbers] = {};
      if (target[r] != s.ignore_index) {
        const void* x = rows_.At(x_data, r * s.row_stride);
        const RowStats row = rows_.Statistics(s.count, x);
        const int64_t column = ColumnOf(s, target[r]);
        numbers[0] = row.max;
        numbers[1] = row.sum;
        numbers[2] = column < 0 ? 0 : k.element(x, column);
        if (s.smoothing > 0) numbers[3] = rows_.Deviation(s.count, ShiftOf(row.max), x);
      }
      for (int i = 0; i < kPartNumbers; ++i) k.put_number(part, r * kPartNumbers + i, numbers[i]);
    });
    return OkStatus();
  }

  Status Merge(Stream&, const ClassMergeShape& s, const int64_t* target, const void* parts,
               void* loss, void* stats) const override {
    OFL_RETURN_IF_ERROR(CheckTargets(s, target));
    const CrossEntropyKernels& k = rows_.kernels();
    LogitRows::ForEach(s.rows, s.parts * kPartNumbers, [&](int64_t r) {
      RowOfParts row{};
      if (target[r] != s.ignore_index) {
        row = MergedRow(s, [&](int64_t part, int i) {
          return k.number(parts, (part * s.rows + r) * kPartNumbers + i);
        });
      }
      k.put_number(loss, r, row.loss);
      k.put_number(stats, 2 * r, row.max);
      k.put_number(stats, 2 * r + 1, row.log_sum);
    });
    return OkStatus();
  }

  Status Gradient(Stream&, const ClassPartShape& s, const void* x_data, const int64_t* target,
                  const void* stats, const void* dloss, int64_t dloss_stride, void* dx_data,
                  int64_t dx_stride) const override {
    if (s.count <= 0) return OkStatus();
    const auto number = rows_.kernels().number;
    const double uniform = s.smoothing / static_cast<double>(s.classes);
    LogitRows::ForEach(s.rows, s.count, [&](int64_t r) {
      void* dx = rows_.At(dx_data, r * dx_stride);
      if (target[r] == s.ignore_index || !IsClass(target[r], s.classes)) {
        return rows_.Zero(s.count, dx);
      }
      const GradientRow row{number(stats, 2 * r), number(stats, 2 * r + 1), uniform,
                            number(dloss, r * dloss_stride)};
      rows_.Gradient(s.count, row, ColumnOf(s, target[r]), 1 - s.smoothing,
                     rows_.At(x_data, r * s.row_stride), dx);
    });
    return OkStatus();
  }

 private:
  LogitRows rows_;
};

StatusOr<std::unique_ptr<CrossEntropySplit>> New(const CrossEntropySplit::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(CrossEntropySplit::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuCrossEntropySplit>(spec);
}

const bool registered = RegisterPrimitive<CrossEntropySplit>(DeviceType::kCPU, &New);

}  // namespace
}  // namespace oneflow_lite
