// SPDX-License-Identifier: Apache-2.0
//
// The gradients of attention as compositions of functors, with scores in memory: for what its
// kernels do not give (of the mask, of lse), and for derivatives of second order. Tensors are those
// of the ops, [batch, token, head, element].
#pragma once

#include "functional/attention.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

// What both need. The mask and lse's gradient may be undefined.
struct AttentionTensors {
  Tensor q, k, v, out, lse, mask;
  Tensor dout, dlse;
};

// Gradients of q, k, v and the mask; the mask's only where `of_mask`.
struct AttentionGradients {
  Tensor q, k, v, mask;
};
StatusOr<AttentionGradients> ComposeAttentionGradients(const AttentionTensors& t,
                                                       const functional::AttentionOptions& options,
                                                       bool of_mask);

// Given the gradients of dq, dk and dv (each may be undefined), those of the inputs of
// attention_backward. NotImplementedError for dropout in 16 bits on CUDA, where a library's kernel
// may have drawn.
struct AttentionSecond {
  Tensor dout, q, k, v, out, lse, mask;
};
StatusOr<AttentionSecond> ComposeSecondAttentionGradients(
    const AttentionTensors& t, const functional::AttentionOptions& options, const Tensor& of_dq,
    const Tensor& of_dk, const Tensor& of_dv, bool of_mask);

}  // namespace oneflow_lite
