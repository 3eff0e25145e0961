// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/attention/composed.h"

#include "primitive/cuda/attention/room.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite::cuda {
namespace {

using Strides = AttentionShape::Strides;

// The five products, of `rows` queries and their group for each of `batch` heads of k and v.
struct Products {
  int64_t batch, rows, keys, d, e;

  // q k^T and dout v^T.
  MatmulShape Scores(int64_t dim) const {
    return {.batch = batch,
            .m = rows,
            .n = keys,
            .k = dim,
            .transpose_b = true,
            .lda = dim,
            .ldb = dim,
            .batch_stride_a = rows * dim,
            .batch_stride_b = keys * dim};
  }
  // Weights times v, or the gradient of the scores times k.
  MatmulShape OfKeys(int64_t dim) const {
    return {.batch = batch,
            .m = rows,
            .n = dim,
            .k = keys,
            .lda = keys,
            .ldb = dim,
            .batch_stride_a = rows * keys,
            .batch_stride_b = keys * dim};
  }
  // The same transposed, times dout or q.
  MatmulShape OfQueries(int64_t dim) const {
    return {.batch = batch,
            .m = keys,
            .n = dim,
            .k = rows,
            .transpose_a = true,
            .lda = keys,
            .ldb = dim,
            .batch_stride_a = rows * keys,
            .batch_stride_b = rows * dim};
  }
};

Products ProductsOf(const AttentionShape& s, int64_t batches, int64_t heads) {
  return {batches * heads, s.group() * s.queries, s.keys, s.head_dim, s.value_dim};
}

}  // namespace

MaskType MaskTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return MaskType::kFloat16;
    case DType::kBFloat16:
      return MaskType::kBFloat16;
    case DType::kFloat32:
      return MaskType::kFloat32;
    case DType::kFloat64:
      return MaskType::kFloat64;
    default:
      return MaskType::kBool;
  }
}

// Dense, in the compute type: [batch, kv_head, member, token, element].
struct ComposedAttention::Buffers {
  void *q, *k, *v, *scores, *out;
  void *dout = nullptr, *slopes = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
  void* matmul;

  Buffers(const ComposedAttention& a, const Stream& stream, const AttentionShape& s,
          const Part& largest, bool backward, AttentionRoom* room) {
    const Products p = ProductsOf(s, largest.batches, largest.heads);
    const auto take = [&](int64_t rows, int64_t cols) {
      return room->Take(p.batch * rows * cols * a.wide_bytes());
    };
    q = take(p.rows, p.d);
    k = take(p.keys, p.d);
    v = take(p.keys, p.e);
    scores = take(p.rows, p.keys);
    out = backward ? nullptr : take(p.rows, p.e);
    if (backward) {
      dout = take(p.rows, p.e);
      slopes = take(p.rows, p.keys);
      dq = take(p.rows, p.d);
      dk = take(p.keys, p.d);
      dv = take(p.keys, p.e);
    }
    size_t most = 0;
    const auto ask = [&](const MatmulShape& shape) {
      most = std::max(most, a.matmul_->WorkspaceBytes(stream, shape));
    };
    // The last parts may be smaller, and their products ask for more.
    const int64_t batches = s.batch % largest.batches, heads = s.kv_heads % largest.heads;
    for (const int64_t nb : {largest.batches, batches}) {
      for (const int64_t nh : {largest.heads, heads}) {
        if (nb == 0 || nh == 0) continue;
        const Products of = ProductsOf(s, nb, nh);
        ask(of.Scores(of.d));
        ask(of.OfKeys(of.e));
        if (!backward) continue;
        ask(of.Scores(of.e));
        ask(of.OfKeys(of.d));
        ask(of.OfQueries(of.d));
        ask(of.OfQueries(of.e));
      }
    }
    matmul = room->Take(static_cast<int64_t>(most));
  }
};

StatusOr<ComposedAttention> ComposedAttention::Make(const Attention::Spec& spec) {
  ComposedAttention a;
  a.dtype_ = spec.dtype;
  a.wide_ = ComputeType(spec.dtype);
  a.mask_dtype_ = spec.mask_dtype;
  const DeviceType device = DeviceType::kCUDA;
  OFL_ASSIGN_OR_RETURN(a.matmul_, NewPrimitive<MatmulFactory>(device, {.dtype = a.wide_}));
  OFL_ASSIGN_OR_RETURN(a.widen_,
                       NewPrimitive<CopyFactory>(device, {.from = a.dtype_, .to = a.wide_}));
  OFL_ASSIGN_OR_RETURN(a.narrow_,
                       NewPrimitive<CopyFactory>(device, {.from = a.wide_, .to = a.dtype_}));
  return a;
}

ComposedAttention::Part ComposedAttention::LargestPart(const AttentionShape& s,
                                                       bool backward) const {
  const int64_t head =
      std::max<int64_t>(1, s.group() * s.queries * s.keys * wide_bytes() * (backward ? 2 : 1));
  const int64_t heads = std::clamp<int64_t>(kMostScores / head, 1, s.kv_heads);
  if (heads < s.kv_heads) return {0, 1, 0, heads};
  return {0, std::clamp<int64_t>(kMostScores / (head * s.kv_heads), 1, s.batch), 0, s.kv_heads};
}

template <class F>
Status ComposedAttention::ForParts(const AttentionShape& s, bool backward, F f) const {
  const Part largest = LargestPart(s, backward);
  for (int64_t b = 0; b < s.batch; b += largest.batches) {
    for (int64_t h = 0; h < s.kv_heads; h += largest.heads) {
      OFL_RETURN_IF_ERROR(f(Part{b, std::min(largest.batches, s.batch - b), h,
                                 std::min(largest.heads, s.kv_heads - h)}));
    }
  }
  return OkStatus();
}

size_t ComposedAttention::WorkspaceBytes(const Stream& stream, const AttentionShape& s,
                                         bool backward) const {
  if (s.batch * s.kv_heads == 0) return 0;
  AttentionRoom room;
  Buffers(*this, stream, s, LargestPart(s, backward), backward, &room);
  return room.used();
}

// The part's heads of a tensor (`members` for each head of k and v), dense and wide.
Status ComposedAttention::Read(Stream& stream, const AttentionShape& s, const Part& part,
                               int64_t members, const Strides& strides, int64_t tokens, int64_t dim,
                               const void* from, void* to) const {
  const Dims shape = {part.batches, part.heads * members, tokens, dim};
  if (Shape(shape).numel() == 0) return OkStatus();
  const Dims steps = {strides.batch, strides.head, strides.token, 1};
  const int64_t first = part.first_batch * strides.batch + part.first_head * members * strides.head;
  const auto g = MakeElementwise<2>(shape, {steps, ContiguousStrides(shape)});
  return widen_->Launch(
      stream, g, static_cast<const char*>(from) + first * static_cast<int64_t>(SizeOf(dtype_)), to);
}

// The other way, rounded.
Status ComposedAttention::Write(Stream& stream, const AttentionShape& s, const Part& part,
                                int64_t members, const Strides& strides, int64_t tokens,
                                int64_t dim, const void* from, void* to) const {
  const Dims shape = {part.batches, part.heads * members, tokens, dim};
  if (Shape(shape).numel() == 0) return OkStatus();
  const Dims steps = {strides.batch, strides.head, strides.token, 1};
  const int64_t first = part.first_batch * strides.batch + part.first_head * members * strides.head;
  const auto g = MakeElementwise<2>(shape, {ContiguousStrides(shape), steps});
  return narrow_->Launch(stream, g, from,
                         static_cast<char*>(to) + first * static_cast<int64_t>(SizeOf(dtype_)));
}

AttentionScores ComposedAttention::ScoresOf(const AttentionShape& s, const Part& part,
                                            const AttentionInputs& in) const {
  AttentionScores rows{.batches = part.batches,
                       .kv_heads = part.heads,
                       .group = s.group(),
                       .queries = s.queries,
                       .keys = s.keys,
                       .first_batch = part.first_batch,
                       .first_kv_head = part.first_head,
                       .heads = s.heads,
                       .causal = static_cast<int>(s.causal),
                       .scale = s.scale,
                       .dropout = s.dropout,
                       .rng = static_cast<const uint64_t*>(in.rng)};
  if (s.masked) {
    rows.mask = {MaskTypeOf(mask_dtype_), in.mask, {}};
    std::copy_n(s.mask_strides, 4, rows.mask.strides);
  }
  return rows;
}

Status ComposedAttention::Forward(Stream& stream, const AttentionShape& s,
                                  const AttentionInputs& in, void* out, void* lse,
                                  void* workspace) const {
  if (s.batch * s.kv_heads == 0) return OkStatus();
  AttentionRoom room(workspace);
  const Buffers b(*this, stream, s, LargestPart(s, false), false, &room);
  return ForParts(s, false, [&](const Part& part) -> Status {
    const Products p = ProductsOf(s, part.batches, part.heads);
    OFL_RETURN_IF_ERROR(Read(stream, s, part, s.group(), s.q, s.queries, p.d, in.q, b.q));
    OFL_RETURN_IF_ERROR(Read(stream, s, part, 1, s.k, s.keys, p.d, in.k, b.k));
    OFL_RETURN_IF_ERROR(Read(stream, s, part, 1, s.v, s.keys, p.e, in.v, b.v));
    OFL_RETURN_IF_ERROR(
        matmul_->Launch(stream, p.Scores(p.d), b.q, b.k, nullptr, b.scores, b.matmul));
    OFL_RETURN_IF_ERROR(RunOn(stream, "attention", [&](cudaStream_t native) {
      return LaunchAttentionWeights(wide_, ScoresOf(s, part, in), b.scores, lse, native);
    }));
    OFL_RETURN_IF_ERROR(
        matmul_->Launch(stream, p.OfKeys(p.e), b.scores, b.v, nullptr, b.out, b.matmul));
    return Write(stream, s, part, s.group(), s.out, s.queries, p.e, b.out, out);
  });
}

Status ComposedAttention::Backward(Stream& stream, const AttentionShape& s,
                                   const AttentionInputs& in, void* dq, void* dk, void* dv,
                                   void* workspace) const {
  if (s.batch * s.kv_heads == 0) return OkStatus();
  AttentionRoom room(workspace);
  const Buffers b(*this, stream, s, LargestPart(s, true), true, &room);
  return ForParts(s, true, [&](const Part& part) -> Status {
    const Products p = ProductsOf(s, part.batches, part.heads);
    const auto product = [&](const MatmulShape& shape, const void* x, const void* y, void* z) {
      return matmul_->Launch(stream, shape, x, y, nullptr, z, b.matmul);
    };
    OFL_RETURN_IF_ERROR(Read(stream, s, part, s.group(), s.q, s.queries, p.d, in.q, b.q));
    OFL_RETURN_IF_ERROR(Read(stream, s, part, 1, s.k, s.keys, p.d, in.k, b.k));
    OFL_RETURN_IF_ERROR(Read(stream, s, part, 1, s.v, s.keys, p.e, in.v, b.v));
    OFL_RETURN_IF_ERROR(Read(stream, s, part, s.group(), s.dout, s.queries, p.e, in.dout, b.dout));
    OFL_RETURN_IF_ERROR(product(p.Scores(p.d), b.q, b.k, b.scores));
    OFL_RETURN_IF_ERROR(product(p.Scores(p.e), b.dout, b.v, b.slopes));
    OFL_RETURN_IF_ERROR(RunOn(stream, "attention_backward", [&](cudaStream_t native) {
      return LaunchAttentionSlopes(wide_, ScoresOf(s, part, in), in.lse, b.scores, b.slopes,
                                   native);
    }));
    OFL_RETURN_IF_ERROR(product(p.OfQueries(p.e), b.scores, b.dout, b.dv));
    OFL_RETURN_IF_ERROR(product(p.OfKeys(p.d), b.slopes, b.k, b.dq));
    OFL_RETURN_IF_ERROR(product(p.OfQueries(p.d), b.slopes, b.q, b.dk));
    OFL_RETURN_IF_ERROR(Write(stream, s, part, s.group(), s.dq, s.queries, p.d, b.dq, dq));
    OFL_RETURN_IF_ERROR(Write(stream, s, part, 1, s.dk, s.keys, p.d, b.dk, dk));
    return Write(stream, s, part, 1, s.dv, s.keys, p.e, b.dv, dv);
  });
}

}  // namespace oneflow_lite::cuda
