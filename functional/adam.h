// SPDX-License-Identifier: Apache-2.0
//
// A step of Adam or AdamW on many parameters at once; primitive/adam_math.h has the formula.
//
//   functional::AdamOptions options{.lr = 3e-4, .weight_decay = 0.1, .decoupled = true};
//   options.step = t;   // 1, 2, ...
//   OFL_RETURN_IF_ERROR(functional::AdamStep({params, grads, exp_avgs, exp_avg_sqs}, options));
#pragma once

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// Lists of one length; at each place what belongs to one parameter, of its shape and device. The
// moments and masters have the compute type of the parameters' dtype (float32 for 16-bit floats).
struct AdamLists {
  absl::Span<const Tensor> params, grads, exp_avgs, exp_avg_sqs;
  absl::Span<const Tensor> max_exp_avg_sqs = {};  // empty: without amsgrad
  absl::Span<const Tensor> masters =
      {};  // empty: none; else updated, and params are their rounding
  // Steps taken so far, 0-dim float64 on the device, which the call counts on. Empty: `step` says.
  absl::Span<const Tensor> steps = {};
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;  // AdamW: the decay goes past the moments
  bool maximize = false;
  int64_t step = 1;
  Tensor lr_tensor;   // 0-dim, in place of lr
  Tensor grad_scale;  // 0-dim float32: gradients are divided by it
  Tensor found_inf;   // 0-dim float32: where it is not 0, nothing changes
};

// Changes params, moments, masters and steps in place; one op, one launch for hundreds of tensors.
// All parameters have one dtype. ValueError where lengths differ or there are none; RuntimeError
// where autograd records and a tensor requires grad.
OFL_API Status AdamStep(const AdamLists& lists, const AdamOptions& options);

}  // namespace oneflow_lite::functional
