// SPDX-License-Identifier: Apache-2.0
//
// What a step of Adam works on, and its numbers that are the same for all elements of a tensor; for
// the host and for kernels (C++17).
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define OFL_ADAM_FUNCTION __host__ __device__ inline
#else
#define OFL_ADAM_FUNCTION inline
#endif

namespace oneflow_lite {

// A parameter and its state; contiguous, `numel` elements each. m, v and most have the compute type
// of the parameter's dtype (float for 16-bit floats).
struct AdamTensors {
  void* param = nullptr;
  const void* grad = nullptr;      // of the parameter's dtype
  void* exp_avg = nullptr;         // m
  void* exp_avg_sq = nullptr;      // v
  void* max_exp_avg_sq = nullptr;  // most; null without amsgrad
  // The parameter in the compute type, which is updated in its place; the parameter becomes its
  // rounding. May be null.
  void* master = nullptr;
  // The number of steps taken before this one, which the launch counts on; on the device. Null
  // where AdamProblem::step says it.
  double* step = nullptr;
  int64_t numel = 0;
};

struct AdamProblem {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;  // AdamW's decay of the weights
  bool maximize = false;
  int64_t step = 1;  // t, counted from 1
  // Values that the device knows; null: lr as above, 1, and no.
  const double* device_lr = nullptr;
  const float* grad_scale = nullptr;  // gradients are divided by it
  const float* found_inf = nullptr;   // where it is not 0, the launch changes nothing
};

template <class C>
struct AdamFactors {
  C decay;        // of AdamW: p *= decay
  C l2;           // of Adam: g += l2 * p
  C grad;         // g *= grad: 1 / grad_scale, with the sign of maximize
  C keep1, add1;  // m = keep1 * m + add1 * g
  // v = keep2 * v + (add2 * g)^2: the square of the scaled gradient overflows later than g^2.
  C keep2, add2;
  C root, eps;  // of the quotient m / (root * sqrt(v) + eps)
  C rate;       // p -= rate * quotient
};

// At step t, counted from 1. Powers are taken in double: 1 - beta2^t loses digits in float.
template <class C>
OFL_ADAM_FUNCTION AdamFactors<C> FactorsOf(double lr, double beta1, double beta2, double eps,
                                           double weight_decay, bool decoupled, bool maximize,
                                           double grad_scale, double t) {
  AdamFactors<C> f;
  f.decay = static_cast<C>(decoupled ? 1 - lr * weight_decay : 1.0);
  f.l2 = static_cast<C>(decoupled ? 0.0 : weight_decay);
  f.grad = static_cast<C>((maximize ? -1 : 1) / grad_scale);
  f.keep1 = static_cast<C>(beta1);
  f.add1 = static_cast<C>(1 - beta1);
  f.keep2 = static_cast<C>(beta2);
  f.add2 = static_cast<C>(sqrt(1 - beta2));
  f.root = static_cast<C>(1 / sqrt(1 - pow(beta2, t)));
  f.eps = static_cast<C>(eps);
  f.rate = static_cast<C>(lr / (1 - pow(beta1, t)));
  return f;
}

}  // namespace oneflow_lite
#undef OFL_ADAM_FUNCTION
