// SPDX-License-Identifier: Apache-2.0
//
// What a call of primitive/multi_tensor.h works on, and its numbers that are the same for all
// elements of a tensor; for the host and for kernels (C++17).
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define OFL_MULTI_FUNCTION __host__ __device__ inline
#else
#define OFL_MULTI_FUNCTION inline
#endif

namespace oneflow_lite {

enum class MultiTensorOp : uint8_t {
  kSgd,
  kRmsprop,
  kAdadelta,
  kAdagrad,
  kLion,
  kLerp,
  kScale,
  kClamp,
  kFill,
  kUnscale,
  kUpdateScale,
};

// The places of a tensor's lists. a, b and c have the compute type of p's dtype.
enum MultiSlot { kSlotP, kSlotG, kSlotA, kSlotB, kSlotC, kMultiValues };

// What belongs together at one place of the lists; contiguous, `numel` elements each, null where
// there is no such list.
struct MultiTensors {
  void* data[kMultiValues] = {};
  void* master = nullptr;  // p in the compute type, updated in its place; p becomes its rounding
  float* flag = nullptr;   // of unscale
  double* step = nullptr;  // the steps taken before this one, which the launch counts on
  int64_t numel = 0;
};

struct MultiTensorProblem {
  double numbers[6] = {};  // in the order of the formula's names: lr first where there is one
  bool flags[3] = {};      // sgd: nesterov, maximize, first; others: maximize
  int64_t step = 1;        // t, counted from 1, where the tensors have no step
  // Values that the device knows; null: as in numbers, 1, and no.
  const double* device_lr = nullptr;
  const float* scale = nullptr;      // gradients are divided by it; the factor of scale
  const float* found_inf = nullptr;  // where it is not 0, the launch changes nothing
};

// What the formulas take. Unused ones are 0.
template <class C>
struct MultiFactors {
  C grad;  // g *= grad: 1 / scale, with the sign of maximize
  C decay, rate;
  C keep, add;    // of a
  C keep2, add2;  // lion's update; rmsprop's b and c
  C eps;
  bool nesterov, first;
};

template <class C>
OFL_MULTI_FUNCTION MultiFactors<C> MultiFactorsOf(MultiTensorOp op, const MultiTensorProblem& p,
                                                  double t) {
  MultiFactors<C> f = {};
  const double* n = p.numbers;
  const double lr = p.device_lr ? *p.device_lr : n[0];
  const double scale = p.scale ? static_cast<double>(*p.scale) : 1.0;
  const bool maximize = op == MultiTensorOp::kSgd ? p.flags[1] : p.flags[0];
  f.grad = static_cast<C>((maximize ? -1 : 1) / scale);
  f.rate = static_cast<C>(lr);
  switch (op) {
    case MultiTensorOp::kSgd:
      f.keep = static_cast<C>(n[1]), f.add = static_cast<C>(1 - n[2]);
      f.decay = static_cast<C>(n[3]);
      f.nesterov = p.flags[0], f.first = p.flags[2];
      break;
    case MultiTensorOp::kRmsprop:
      f.keep = static_cast<C>(n[1]), f.add = static_cast<C>(1 - n[1]);
      f.eps = static_cast<C>(n[2]), f.decay = static_cast<C>(n[3]), f.keep2 = static_cast<C>(n[4]);
      break;
    case MultiTensorOp::kAdadelta:
      f.keep = static_cast<C>(n[1]), f.add = static_cast<C>(1 - n[1]);
      f.eps = static_cast<C>(n[2]), f.decay = static_cast<C>(n[3]);
      break;
    case MultiTensorOp::kAdagrad:
      f.rate = static_cast<C>(lr / (1 + (t - 1) * n[1]));
      f.eps = static_cast<C>(n[2]), f.decay = static_cast<C>(n[3]);
      break;
    case MultiTensorOp::kLion:
      f.keep2 = static_cast<C>(n[1]), f.add2 = static_cast<C>(1 - n[1]);
      f.keep = static_cast<C>(n[2]), f.add = static_cast<C>(1 - n[2]);
      f.decay = static_cast<C>(1 - lr * n[3]);
      break;
    case MultiTensorOp::kScale:
      f.rate = static_cast<C>(n[0] * scale);
      break;
    default:  // the numbers as they are
      f.rate = static_cast<C>(n[0]), f.add = static_cast<C>(n[1]), f.eps = static_cast<C>(n[2]);
      break;
  }
  return f;
}

struct NormedTensor {
  const void* data = nullptr;
  int64_t numel = 0;
};

}  // namespace oneflow_lite
#undef OFL_MULTI_FUNCTION
