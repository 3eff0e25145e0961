// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits with class targets, row by row, without the probabilities ever being
// stored. With lse = max + log sum exp(x - max), s the smoothing and C the number of classes:
//
//   loss  = (1 - s) (lse - x[t]) + s (lse - mean(x));                    0 where t is ignore_index
//   dx[c] = (exp(x[c] - lse) - (1 - s) [c == t] - s / C) dloss;          0 where t is ignore_index
//
// Rows are contiguous and aligned to the element only; those of x may lie apart, but not in place.
// The statistics, losses and factors have the compute type. A row that holds NaN or +inf, or only
// -inf, gets NaN; other rows, and rows that are ignored, are untouched by it. A target outside [0,
// classes): IndexError on the CPU, before anything is written; on CUDA, which cannot stop, the loss
// is NaN and the gradient 0.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

struct CrossEntropyShape {
  int64_t rows = 0, classes = 0;
  int64_t ignore_index = -100;
  double smoothing = 0;    // in [0, 1]
  int64_t row_stride = 0;  // from a row of x to the next, in elements; 0: classes

  int64_t stride() const { return row_stride > 0 ? row_stride : classes; }
};

class CrossEntropy {
 public:
  static constexpr char kName[] = "cross_entropy";
  struct Spec {
    DType dtype = DType::kFloat32;  // of the logits; one of the four floats
  };
  virtual ~CrossEntropy() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const CrossEntropyShape& shape) const {
    return 0;
  }
  // Reads x once. stats[2 r] = max and stats[2 r + 1] = log sum exp(x - max) of row r: apart, since
  // their sum would be rounded to the spacing of floats at max. (0, 0) for an ignored row.
  virtual Status Launch(Stream& stream, const CrossEntropyShape& shape, const void* x,
                        const int64_t* target, void* loss, void* stats, void* workspace) const = 0;
};
using CrossEntropyFactory = PrimitiveFactory<CrossEntropy>;

class CrossEntropyBackward {
 public:
  static constexpr char kName[] = "cross_entropy_backward";
  using Spec = CrossEntropy::Spec;
  virtual ~CrossEntropyBackward() = default;
  // Reads x once, writes dx once; dx may be x. stats is the forward's, dloss of row r lies at
  // r * dloss_stride (0: one number for all rows).
  virtual Status Launch(Stream& stream, const CrossEntropyShape& shape, const void* x,
                        const int64_t* target, const void* stats, const void* dloss,
                        int64_t dloss_stride, void* dx) const = 0;
};
using CrossEntropyBackwardFactory = PrimitiveFactory<CrossEntropyBackward>;

// Loss and gradient in one go.
class CrossEntropyInPlace {
 public:
  static constexpr char kName[] = "cross_entropy_in_place";
  using Spec = CrossEntropy::Spec;
  virtual ~CrossEntropyInPlace() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const CrossEntropyShape& shape) const {
    return 0;
  }
  // x becomes the gradient for dloss = scale, loss[r] becomes scale * loss (so NaN, not 0, for an
  // ignored row where scale is infinite). `scale` is one number on the device; null for 1.
  virtual Status Launch(Stream& stream, const CrossEntropyShape& shape, void* x,
                        const int64_t* target, const void* scale, void* loss,
                        void* workspace) const = 0;
};
using CrossEntropyInPlaceFactory = PrimitiveFactory<CrossEntropyInPlace>;

// What each row counts in a mean: 1 over the number of targets that are not ignore_index, so
// infinite where there are none. One launch instead of three of the general ops, for few enough
// targets.
class MeanWeight {
 public:
  static constexpr char kName[] = "mean_weight";
  using Spec = CrossEntropy::Spec;
  virtual ~MeanWeight() = default;
  // weight is one number of the compute type.
  virtual Status Launch(Stream& stream, int64_t rows, int64_t ignore_index, const int64_t* target,
                        void* weight) const = 0;
};
using MeanWeightFactory = PrimitiveFactory<MeanWeight>;

// The sum of the losses, or their mean over the rows that count, in one launch, for few enough
// rows.
class ReduceLoss {
 public:
  static constexpr char kName[] = "reduce_loss";
  using Spec = CrossEntropy::Spec;  // of the result
  virtual ~ReduceLoss() = default;
  // value = weight * the sum of loss[0..rows), which have the compute type, and *weight what
  // MeanWeight gives for target; 1 where target is null.
  virtual Status Launch(Stream& stream, int64_t rows, int64_t ignore_index, const void* loss,
                        const int64_t* target, void* value, void* weight) const = 0;
};
using ReduceLossFactory = PrimitiveFactory<ReduceLoss>;

// x[r, :] *= factor[r * stride]; rows whose factor is 1 are not read, which is what makes a
// gradient that was computed in advance cheap to finish.
class ScaleRows {
 public:
  static constexpr char kName[] = "scale_rows";
  using Spec = CrossEntropy::Spec;
  virtual ~ScaleRows() = default;
  virtual Status Launch(Stream& stream, int64_t rows, int64_t cols, const void* factor,
                        int64_t stride, void* x) const = 0;
};
using ScaleRowsFactory = PrimitiveFactory<ScaleRows>;

}  // namespace oneflow_lite
