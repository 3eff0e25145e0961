// SPDX-License-Identifier: Apache-2.0
//
// Losses of one element (primitive/loss_math.h) over n contiguous elements, as they are or summed;
// and their derivatives, times the gradient that flows back.
#pragma once

#include "primitive/loss_math.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

struct LossProblem {
  LossKind kind = LossKind::kMse;
  LossOrder order = LossOrder::kValue;
  double a = 0, b = 0;  // of the formula
  double scale = 1;     // a factor of the result
  int64_t n = 0;        // elements
  int64_t period = 0;   // of p: element i goes with p[i % period]
  bool summed = false;  // y is the sum: one element. Of the losses themselves alone, without dy.
  bool one_dy = false;  // dy is one element
};

// Of one dtype. p may be null where the loss has no third operand (it is then 1), dy anywhere (1).
struct LossPointers {
  const void *dy = nullptr, *x = nullptr, *t = nullptr, *p = nullptr;
  void* y = nullptr;  // may be dy, x or t where it is not summed
};

class Loss {
 public:
  static constexpr char kName[] = "loss";
  struct Spec {
    DType dtype = DType::kFloat32;  // one of the four floats
  };
  virtual ~Loss() = default;
  // Bytes of device workspace a sum needs.
  virtual size_t WorkspaceBytes(const Stream& stream, const LossProblem& problem) const {
    return 0;
  }
  // y[i] = scale dy[i] l(x[i], t[i], p[i % period]), computed in float (double) and rounded once;
  // or y = scale times the sum of l, 0 of none. The order of the sum is fixed by n and the device.
  virtual Status Launch(Stream& stream, const LossProblem& problem, const LossPointers& at,
                        void* workspace) const = 0;
};
using LossFactory = PrimitiveFactory<Loss>;

}  // namespace oneflow_lite
