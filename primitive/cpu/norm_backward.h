// SPDX-License-Identifier: Apache-2.0
//
// The vector loops of the norms' gradients (norm_backward.cpp), which norm_backward_launch.cpp
// shares out among threads.
#pragma once

#include "primitive/layer_norm.h"

namespace oneflow_lite {

// Sums over a row, or a part of one, with g = dy * weight and d = x - mean (x for rms_norm, x_hat
// where that is found from y). They add up.
struct RowSums {
  double g;
  double gd;
  double d;
};

// x_hat = (d - shift) * scale, dx = rstd * (g - mean_g - x_hat * mean_gx) + dsum
struct RowGradient {
  double shift;
  double scale;
  double rstd;
  double mean_g;
  double mean_gx;
};

// weight, bias and `inverse`, the clamped 1 / weight, are in the compute type; null is absent.
struct NormBackwardTask {
  NormShape shape;
  LayerNormBackward::Args args;
  const void* inverse = nullptr;
};

// Columns [begin, begin + n); the sums over rows begin at column 0 and may be null.
struct ColumnRange {
  int64_t begin, n;
  void* dweight;
  void* dbias;
};

struct NormBackwardKernels {
  RowSums (*sums)(const NormBackwardTask& task, int64_t row, int64_t begin, int64_t n);
  // From the sums of the whole row.
  RowGradient (*finish)(const NormBackwardTask& task, int64_t row, RowSums sums);
  // dx and what the row adds to the sums over rows. stream: dx, which must be there, is stored past
  // the caches, and flush() must follow the last one.
  void (*apply)(const NormBackwardTask& task, int64_t row, RowGradient r, const ColumnRange& out,
                bool stream);
  void (*flush)();
  // out[i] = sum over j < count of in[j * stride + i], compensated.
  void (*merge)(int64_t n, int64_t count, int64_t stride, const void* in, void* out);
  void (*invert)(int64_t n, const void* weight, void* inverse);
};

// from_y: memory-efficient. `centred`: layer_norm.
const NormBackwardKernels& FindNormBackwardKernels(DType dtype, bool centred, bool from_y);

}  // namespace oneflow_lite
