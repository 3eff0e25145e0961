// SPDX-License-Identifier: Apache-2.0
//
// Attention, softmax(scale q k^T + mask) v, and its gradient, without scores in memory where the
// device has such a kernel. Tensors are [batch, token, head, element] with any distances between
// batches, tokens and heads, so that the parts of one packed tensor serve as they lie.
#pragma once

#include <algorithm>
#include <string>

#include "absl/functional/function_ref.h"
#include "primitive/primitive.h"
#include "primitive/random.h"

namespace oneflow_lite {

// Which keys a query may see by its place.
enum class Causal : uint8_t {
  kNone,
  kTopLeft,      // query i sees the keys 0 .. i
  kBottomRight,  // query i sees the keys 0 .. keys - queries + i
};

struct AttentionShape {
  // Elements between batches, tokens and heads; those of one head and token lie in a row.
  struct Strides {
    int64_t batch = 0, token = 0, head = 0;
  };
  int64_t batch = 0;
  int64_t heads = 0, kv_heads = 0;  // of q; of k and v, each serving heads / kv_heads of q
  int64_t queries = 0, keys = 0;
  int64_t head_dim = 0, value_dim = 0;  // of q and k; of v and the result
  Strides q, k, v, out;
  Strides dout, dq, dk, dv;  // of the gradients
  double scale = 1;
  Causal causal = Causal::kNone;
  // Of the mask against [batch, head, query, key]: 0 where it is broadcast. One of bool hides where
  // it is false, another one is added to the scores.
  bool masked = false;
  int64_t mask_strides[4] = {0, 0, 0, 0};
  int64_t mask_batches = 1, mask_heads = 1;  // 1 where broadcast
  double dropout = 0;                        // in [0, 1]
  bool deterministic = false;                // of the gradient: the same bits each time
  int parts = 1;  // on the CPU: how many threads the work is divided among
  // Whether q, k, v and the result, and whether all gradients begin at multiples of 16 bytes.
  bool aligned = true, gradients_aligned = true;

  // How many keys, from the first one, query i may see.
  int64_t Visible(int64_t i) const {
    if (causal == Causal::kNone) return keys;
    const int64_t past = causal == Causal::kTopLeft ? 0 : keys - queries;
    return std::clamp<int64_t>(i + 1 + past, 0, keys);
  }
  int64_t group() const { return heads / std::max<int64_t>(kv_heads, 1); }
  int64_t scores() const { return batch * heads * queries * keys; }
};

// Of q, k, v, the mask, the result and the gradients. lse is [batch, head, query] in the compute
// type. rng is two numbers of 64 bits, seed and offset of the dropout as the forward pass took
// them; where dropout is 0 it is not looked at.
struct AttentionInputs {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *mask = nullptr;
  const void *dout = nullptr, *out = nullptr, *lse = nullptr, *rng = nullptr;
};

// Weight j of score row r, in [batch, head, query], is dropped where the uniform number of element
// r * keys + j of Random(seed, offset) in float32 is below `dropout`; the others are divided by 1 -
// dropout. (Kernels of a library may draw in another way, of the same seed and offset.)
class Attention {
 public:
  static constexpr char kName[] = "attention";
  struct Spec {
    DType dtype = DType::kFloat32;    // of q, k, v and the result: one of the four floats
    DType mask_dtype = DType::kBool;  // bool, dtype, or float32 beside a 16-bit dtype
  };
  virtual ~Attention() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const AttentionShape& shape) const {
    return 0;
  }
  // A query that sees no key gets 0, and minus infinity in lse. rng is written, where dropout is
  // not 0.
  virtual Status Launch(Stream& stream, const AttentionShape& shape, const AttentionInputs& in,
                        const PhiloxState& random, void* out, void* lse, void* rng,
                        void* workspace) const = 0;
};
using AttentionFactory = PrimitiveFactory<Attention>;

class AttentionBackward {
 public:
  static constexpr char kName[] = "attention_backward";
  using Spec = Attention::Spec;
  virtual ~AttentionBackward() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const AttentionShape& shape) const {
    return 0;
  }
  // dq, dk and dv are overwritten; none of them overlaps an input.
  virtual Status Launch(Stream& stream, const AttentionShape& shape, const AttentionInputs& in,
                        void* dq, void* dk, void* dv, void* workspace) const = 0;
};
using AttentionBackwardFactory = PrimitiveFactory<AttentionBackward>;

// Who served the calls on CUDA in this process, for tests and for whoever wonders about a speed.
struct AttentionUse {
  std::string library;         // "cuDNN 9.19.0", or why there is none; empty before the first call
  int64_t library_calls = 0;   // launches of its kernels
  int64_t composed_calls = 0;  // launches of products and rows of scores
  std::string composed_for;    // why the last of those was not the library's
  int64_t plans_built = 0, plans_kept = 0;
};
// Gives f the one record, which no other thread looks at meanwhile.
OFL_API void WithAttentionUse(absl::FunctionRef<void(AttentionUse&)> f);

}  // namespace oneflow_lite
