// SPDX-License-Identifier: Apache-2.0
//
// One op over many tensors: steps of optimizers, and what else is done to all gradients or
// parameters at once. primitive/multi_tensor.h has the formulas; AdamStep is in functional/adam.h.
//
//   functional::StepNumbers numbers{.lr_tensor = lr, .grad_scale = scale, .found_inf = found};
//   OFL_RETURN_IF_ERROR(functional::SgdStep(params, grads, buffers, {}, {.momentum = 0.9},
//   numbers));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

using Tensors = absl::Span<const Tensor>;

// What the device may know of a step; 0-dim.
struct StepNumbers {
  Tensor lr_tensor = {};   // in place of lr
  Tensor grad_scale = {};  // float32: gradients are divided by it
  Tensor found_inf = {};   // float32: where it is not 0, nothing changes
};

struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  bool first = false;  // the buffers hold nothing yet
};
struct RmspropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool maximize = false;
};
struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, eps = 1e-10, weight_decay = 0;
  bool maximize = false;
  int64_t step = 1;  // where `steps` is empty
};
struct LionOptions {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};

// Lists of one length; at each place what belongs to one parameter, of its shape and device. State
// and masters have the compute type of the parameters' dtype (float32 for 16-bit floats); masters
// are stepped in place of the parameters, which are their rounding. `steps` were taken so far,
// 0-dim float64 on the device, which the call counts on. Empty lists: there are none. ValueError
// where lengths differ or there are no parameters; RuntimeError where autograd records and a tensor
// requires grad.
OFL_API Status SgdStep(Tensors params, Tensors grads, Tensors momentum_buffers, Tensors masters,
                       const SgdOptions& options, const StepNumbers& numbers = {});
OFL_API Status RmspropStep(Tensors params, Tensors grads, Tensors square_avgs, Tensors grad_avgs,
                           Tensors momentum_buffers, Tensors masters, Tensors steps,
                           const RmspropOptions& options, const StepNumbers& numbers = {});
OFL_API Status AdadeltaStep(Tensors params, Tensors grads, Tensors square_avgs, Tensors acc_deltas,
                            Tensors masters, Tensors steps, const AdadeltaOptions& options,
                            const StepNumbers& numbers = {});
OFL_API Status AdagradStep(Tensors params, Tensors grads, Tensors sums, Tensors masters,
                           Tensors steps, const AdagradOptions& options,
                           const StepNumbers& numbers = {});
OFL_API Status LionStep(Tensors params, Tensors grads, Tensors exp_avgs, Tensors masters,
                        const LionOptions& options, const StepNumbers& numbers = {});

// Each tensor moved by weight towards the one at the same place of ends.
OFL_API Status MultiLerp(Tensors tensors, Tensors ends, double weight);
// Each tensor times factor, and times scale (0-dim float32) where it is given.
OFL_API Status MultiScale(Tensors tensors, double factor, const Tensor& scale = {});
OFL_API Status MultiClamp(Tensors tensors, double least, double most);
OFL_API Status MultiFill(Tensors tensors, double value);
// Each tensor divided by scale, where it is given; where an element is not finite, the flag of its
// tensor (0-dim float32; all may be one) becomes 1.
OFL_API Status MultiUnscale(Tensors tensors, Tensors flags, const Tensor& scale = {});
// The scale of a loss after a step, 0-dim float32 each: times backoff where found_inf is above 0,
// which sets growth_count to 0; times growth after `interval` steps without, unless that overflows.
OFL_API Status UpdateScale(const Tensor& scale, const Tensor& found_inf, const Tensor& growth_count,
                           double growth, double backoff, int64_t interval);
// The p-norm of each tensor, [n], in the compute type. p in (0, inf].
OFL_API StatusOr<Tensor> MultiNorm(Tensors tensors, double p = 2);

}  // namespace oneflow_lite::functional
