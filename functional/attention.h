// SPDX-License-Identifier: Apache-2.0
//
// Attention without scores in memory: softmax(scale q k^T + mask) v.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::ScaledDotProductAttention(q, k, v, {}, 0, true));
#pragma once

#include <optional>

#include "oneflow_lite/core/generator.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// q [..., queries, d], k [..., keys, d], v [..., keys, dv], whose leading dims broadcast; gives
// [..., queries, dv]. The mask broadcasts to [..., queries, keys]: one of bool hides where it is
// false, another is added to the scores. is_causal hides the keys behind a query's own place,
// counted from the first ones; causal_bottom_right counts from the last ones; with a mask, what
// either hides is hidden. A query that sees no key gets 0. scale is 1 / sqrt(d) where absent. With
// enable_gqa the heads (dim -3) of k and v serve as many of q as there are of it. dropout_p is the
// share of the weights that is dropped, drawn from the generator or the device's. ShapeError,
// DTypeError, ValueError.
OFL_API StatusOr<Tensor> ScaledDotProductAttention(
    const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {},
    double dropout_p = 0, bool is_causal = false, std::optional<double> scale = {},
    bool enable_gqa = false, bool causal_bottom_right = false, Ref<Generator> generator = {});

// The same of one tensor that holds queries, keys and values of each token one after another:
// [batch, tokens, 3, heads, d], or [batch, tokens, (heads + 2 kv_heads) d] with the numbers of
// heads (of the keys and values, as many as of the queries where absent). Gives [batch, tokens,
// heads, d], or [batch, tokens, heads d]. Its backward writes one gradient of the same form.
OFL_API StatusOr<Tensor> AttentionPacked(const Tensor& qkv, std::optional<int64_t> num_heads = {},
                                         std::optional<int64_t> num_kv_heads = {},
                                         const Tensor& mask = {}, double dropout_p = 0,
                                         bool is_causal = false, std::optional<double> scale = {},
                                         Ref<Generator> generator = {});

// What the calls of the four ops have in common. seed and offset say where dropout draws.
struct AttentionOptions {
  double scale = 1;
  int64_t causal = 0;  // 1: from the top left, 2: from the bottom right
  double dropout = 0;
  int64_t seed = 0, offset = 0;
};

// Gradients of the op `attention` over [batch, tokens, heads, element]: dq, dk, dv.
OFL_API StatusOr<TensorList> AttentionBackward(const Tensor& dout, const Tensor& q, const Tensor& k,
                                               const Tensor& v, const Tensor& out,
                                               const Tensor& lse, const Tensor& rng,
                                               const Tensor& mask, const AttentionOptions& options);
// And of `attention_packed`: dqkv.
OFL_API StatusOr<Tensor> AttentionPackedBackward(const Tensor& dout, const Tensor& qkv,
                                                 const Tensor& out, const Tensor& lse,
                                                 const Tensor& rng, const Tensor& mask,
                                                 const AttentionOptions& options, int64_t heads,
                                                 int64_t kv_heads);

}  // namespace oneflow_lite::functional
