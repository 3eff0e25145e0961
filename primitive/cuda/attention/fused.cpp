// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/attention/fused.h"

#include <map>
#include <mutex>
#include <vector>

#include "primitive/cuda/attention/composed.h"
#include "primitive/cuda/attention/launch.h"
#include "primitive/cuda/attention/room.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite::cuda {
namespace {

using Strides = AttentionShape::Strides;

constexpr char kName[] = "attention";

template <class... Parts>
Status NotServed(const Parts&... parts) {
  return Error(ErrorKind::kNotImplemented, parts...);
}

// A plan takes some 30 ms to build and serves one pair of lengths. So that a program that goes
// through many (generation, token by token) does not build one for each, a few odd lengths get
// plans of their own, and the others go into tensors padded to the next of these lengths. With
// dropout none is padded: both passes must draw for the same lengths.
constexpr int64_t kExactPlans = 4;
int64_t PaddedLength(int64_t n) {
  constexpr int64_t kSmallest = 64, kLargest = 4096;
  if (n <= 1) return n;
  if (n > kLargest) return (n + kLargest - 1) / kLargest * kLargest;
  int64_t length = kSmallest;
  while (length < n) length *= 2;
  return length;
}

// Whether a problem of odd lengths, which is new, still gets a plan of its own; all that matters
// but the lengths counts as one program.
bool TakesExactPlan(int device, const CudnnProblem& p) {
  static auto* mutex = new std::mutex;
  static auto* taken = new std::map<std::vector<int64_t>, int64_t>;
  const AttentionShape& s = p.shape;
  const std::vector<int64_t> key = {device,       static_cast<int64_t>(p.dtype),
                                    p.backward,   s.batch,
                                    s.heads,      s.kv_heads,
                                    s.head_dim,   s.value_dim,
                                    s.masked,     static_cast<int64_t>(s.causal),
                                    s.dropout > 0};
  std::lock_guard lock(*mutex);
  return ++(*taken)[key] <= kExactPlans;
}

Strides Dense(int64_t tokens, int64_t heads, int64_t dim) {
  return {tokens * heads * dim, heads * dim, dim};
}

// Rows that lie in a row with packs of 16 bytes.
int64_t RowStride(int64_t keys) { return (keys + 7) / 8 * 8; }

}  // namespace

// The problem that the plan solves: the call's own, or with padded lengths.
struct FusedAttention::Prepared {
  CudnnProblem problem;
  std::shared_ptr<CudnnPlan> plan;
};

// What a launch needs besides the call's tensors. Padded copies are null where the call's own
// serve.
struct FusedAttention::Buffers {
  void* plan;
  int* lengths = nullptr;
  void* bias = nullptr;
  uint8_t* alive = nullptr;
  float* lse = nullptr;
  void *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr;
  void *dout = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
  int64_t q_bytes, k_bytes, v_bytes, out_bytes;  // of the copies

  Buffers(const AttentionShape& call, const Prepared& p, bool backward, AttentionRoom* room) {
    const AttentionShape& s = p.problem.shape;
    plan = room->Take(WorkspaceBytesOf(*p.plan));
    q_bytes = 2 * s.batch * s.queries * s.heads * s.head_dim;
    out_bytes = 2 * s.batch * s.queries * s.heads * s.value_dim;
    k_bytes = 2 * s.batch * s.keys * s.kv_heads * s.head_dim;
    v_bytes = 2 * s.batch * s.keys * s.kv_heads * s.value_dim;
    const bool queries = s.queries != call.queries, keys = s.keys != call.keys;
    if (s.masked) {
      const int64_t rows = s.mask_batches * s.mask_heads * s.queries;
      bias = room->Take(2 * rows * p.problem.bias_stride);
      alive = static_cast<uint8_t*>(room->Take(rows));
    }
    if (p.problem.padded) lengths = static_cast<int*>(room->Take(2 * s.batch * 4));
    if (queries || (backward && s.masked)) {
      lse = static_cast<float*>(room->Take(4 * s.batch * s.heads * s.queries));
    }
    if (queries) q = room->Take(q_bytes), out = room->Take(out_bytes);
    if (keys) k = room->Take(k_bytes), v = room->Take(v_bytes);
    if (!backward) return;
    if (queries) dout = room->Take(out_bytes), dq = room->Take(q_bytes);
    if (keys) dk = room->Take(k_bytes), dv = room->Take(v_bytes);
  }
};

StatusOr<FusedAttention> FusedAttention::Make(const Attention::Spec& spec) {
  FusedAttention f;
  f.spec_ = spec;
  const DType wide = DType::kFloat32;
  OFL_ASSIGN_OR_RETURN(f.copy_, NewPrimitive<CopyFactory>(DeviceType::kCUDA,
                                                          {.from = spec.dtype, .to = spec.dtype}));
  OFL_ASSIGN_OR_RETURN(f.copy_float_,
                       NewPrimitive<CopyFactory>(DeviceType::kCUDA, {.from = wide, .to = wide}));
  return f;
}

Status FusedAttention::CheckServes(const AttentionShape& s, bool backward) const {
  if (SizeOf(spec_.dtype) != 2) return NotServed(Name(spec_.dtype), " is not served by cuDNN");
  if (s.masked && spec_.mask_dtype != DType::kBool && spec_.mask_dtype != spec_.dtype) {
    return NotServed("a ", Name(spec_.mask_dtype), " mask would be rounded to ", Name(spec_.dtype));
  }
  if (!s.aligned || (backward && !s.gradients_aligned)) {
    return NotServed("a tensor does not begin at a multiple of 16 bytes");
  }
  if (s.head_dim % 8 != 0 || s.value_dim % 8 != 0) {
    return NotServed("the dims of a head, ", s.head_dim, " and ", s.value_dim,
                     ", are no multiples of 8");
  }
  const int64_t sizes[] = {s.batch, s.heads, s.queries, s.keys, s.head_dim, s.value_dim};
  for (const int64_t size : sizes) {
    if (size == 0) return NotServed("a size of 0");
    if (size > INT32_MAX / 2) return NotServed("a size of ", size);
  }
  if (s.dropout >= 1) return NotServed("a dropout of all weights");
  // Not every device has such a gradient, which then could not drop what the forward pass dropped.
  if (s.dropout > 0 && std::max(s.head_dim, s.value_dim) > 128) {
    return NotServed("dropout with heads of more than 128 elements");
  }
  if (s.causal == Causal::kBottomRight && (s.queries > s.keys || s.masked || s.dropout > 0)) {
    return NotServed("bottom-right causal with more queries than keys, a mask or dropout");
  }
  return OkStatus();
}

StatusOr<FusedAttention::Prepared> FusedAttention::Prepare(const Stream& stream,
                                                           const AttentionShape& call,
                                                           bool backward) const {
  AttentionShape normal = call;
  if (call.causal == Causal::kBottomRight && call.queries == call.keys) {
    normal.causal = Causal::kTopLeft;  // the same diagonal
  }
  if (call.causal == Causal::kBottomRight && call.queries == 1) normal.causal = Causal::kNone;
  OFL_RETURN_IF_ERROR(CheckServes(normal, backward));
  Prepared p{.problem = {.dtype = spec_.dtype, .backward = backward, .shape = normal}};
  if (call.masked) p.problem.bias_stride = RowStride(call.keys);
  const bool odd =
      PaddedLength(call.queries) != call.queries || PaddedLength(call.keys) != call.keys;
  if (odd && call.dropout == 0 && !KnowsCudnnProblem(stream, p.problem) &&
      !TakesExactPlan(stream.device().index, p.problem)) {
    if (normal.causal == Causal::kBottomRight) {
      return NotServed("many lengths of bottom-right causal");
    }
    AttentionShape& s = p.problem.shape;
    p.problem.padded = true;
    s.queries = PaddedLength(call.queries);
    s.keys = PaddedLength(call.keys);
    if (s.queries != call.queries) {
      s.q = s.dq = Dense(s.queries, s.heads, s.head_dim);
      s.out = s.dout = Dense(s.queries, s.heads, s.value_dim);
    }
    if (s.keys != call.keys) {
      s.k = s.dk = Dense(s.keys, s.kv_heads, s.head_dim);
      s.v = s.dv = Dense(s.keys, s.kv_heads, s.value_dim);
    }
    if (call.masked) p.problem.bias_stride = RowStride(s.keys);
  }
  OFL_ASSIGN_OR_RETURN(p.plan, FindCudnnPlan(stream, p.problem));
  return p;
}

StatusOr<size_t> FusedAttention::WorkspaceBytes(const Stream& stream, const AttentionShape& call,
                                                bool backward) const {
  OFL_ASSIGN_OR_RETURN(const Prepared p, Prepare(stream, call, backward));
  AttentionRoom room;
  Buffers(call, p, backward, &room);
  return room.used();
}

Status FusedAttention::CopyHeads(Stream& stream, const AttentionShape& s, int64_t heads,
                                 int64_t tokens, int64_t dim, const Strides& from_strides,
                                 const void* from, const Strides& to_strides, void* to) const {
  const Dims shape = {s.batch, tokens, heads, dim};
  const auto steps = [](const Strides& x) { return Dims{x.batch, x.token, x.head, 1}; };
  const Dims from_steps = steps(from_strides), to_steps = steps(to_strides);
  const auto g = MakeElementwise<2>(shape, {from_steps, to_steps});
  return copy_->Launch(stream, g, from, to);
}

// A copy with zeros behind its tokens.
Status FusedAttention::Pad(Stream& stream, const AttentionShape& s, int64_t heads, int64_t tokens,
                           int64_t dim, const Strides& from_strides, const void* from,
                           const Strides& to_strides, void* to, int64_t to_bytes) const {
  if (!to) return OkStatus();
  OFL_RETURN_IF_ERROR(RunOn(stream, kName, [&](cudaStream_t native) {
    return cudaMemsetAsync(to, 0, static_cast<size_t>(to_bytes), native);
  }));
  return CopyHeads(stream, s, heads, tokens, dim, from_strides, from, to_strides, to);
}

Status FusedAttention::PrepareMask(Stream& stream, const AttentionShape& call, const Prepared& p,
                                   const AttentionInputs& in, const Buffers& b) const {
  const AttentionShape& s = p.problem.shape;
  return RunOn(stream, kName, [&](cudaStream_t native) {
    cudaError_t error = cudaSuccess;
    if (b.lengths) {
      error = LaunchAttentionLengths(s.batch, static_cast<int>(call.queries),
                                     static_cast<int>(call.keys), b.lengths, native);
    }
    if (error != cudaSuccess || !b.bias) return error;
    AttentionBias bias{.batches = s.mask_batches,
                       .heads = s.mask_heads,
                       .queries = call.queries,
                       .keys = call.keys,
                       .rows = s.queries,
                       .row_stride = p.problem.bias_stride,
                       .causal = static_cast<int>(s.causal),
                       .mask = {MaskTypeOf(spec_.mask_dtype), in.mask, {}}};
    std::copy_n(call.mask_strides, 4, bias.mask.strides);
    return LaunchAttentionBias(spec_.dtype, bias, b.bias, b.alive, native);
  });
}

Status FusedAttention::Forward(Stream& stream, const AttentionShape& call,
                               const AttentionInputs& in, void* out, void* lse,
                               void* workspace) const {
  OFL_ASSIGN_OR_RETURN(const Prepared p, Prepare(stream, call, false));
  const AttentionShape& s = p.problem.shape;
  AttentionRoom room(workspace);
  const Buffers b(call, p, false, &room);
  OFL_RETURN_IF_ERROR(PrepareMask(stream, call, p, in, b));
  OFL_RETURN_IF_ERROR(
      Pad(stream, s, s.heads, call.queries, s.head_dim, call.q, in.q, s.q, b.q, b.q_bytes));
  OFL_RETURN_IF_ERROR(
      Pad(stream, s, s.kv_heads, call.keys, s.head_dim, call.k, in.k, s.k, b.k, b.k_bytes));
  OFL_RETURN_IF_ERROR(
      Pad(stream, s, s.kv_heads, call.keys, s.value_dim, call.v, in.v, s.v, b.v, b.v_bytes));
  const auto* rng = static_cast<const uint64_t*>(in.rng);
  const bool drops = s.dropout > 0;
  const CudnnPointers pointers{.q = b.q ? b.q : in.q,
                               .k = b.k ? b.k : in.k,
                               .v = b.v ? b.v : in.v,
                               .bias = b.bias,
                               .seed = drops ? rng : nullptr,
                               .offset = drops ? rng + 1 : nullptr,
                               .queries = b.lengths,
                               .keys = b.lengths ? b.lengths + s.batch : nullptr,
                               .out = b.out ? b.out : out,
                               .lse = b.lse ? b.lse : lse};
  OFL_RETURN_IF_ERROR(RunCudnnPlan(stream, *p.plan, pointers, b.plan));
  if (b.out) {
    OFL_RETURN_IF_ERROR(
        CopyHeads(stream, s, s.heads, call.queries, s.value_dim, s.out, b.out, call.out, out));
    const Dims rows = {s.batch, s.heads, call.queries}, dense = ContiguousStrides(rows);
    const Dims padded = {s.heads * s.queries, s.queries, 1};
    const auto g = MakeElementwise<2>(rows, {padded, dense});
    OFL_RETURN_IF_ERROR(copy_float_->Launch(stream, g, b.lse, lse));
  }
  if (!s.masked) return OkStatus();
  const AttentionDead dead{.batch = s.batch,
                           .heads = s.heads,
                           .queries = call.queries,
                           .dim = s.value_dim,
                           .batch_stride = call.out.batch,
                           .head_stride = call.out.head,
                           .token_stride = call.out.token,
                           .mask_batches = s.mask_batches,
                           .mask_heads = s.mask_heads,
                           .mask_rows = s.queries};
  return RunOn(stream, kName, [&](cudaStream_t native) {
    return LaunchAttentionDead(dead, b.alive, out, static_cast<float*>(lse), native);
  });
}

Status FusedAttention::Backward(Stream& stream, const AttentionShape& call,
                                const AttentionInputs& in, void* dq, void* dk, void* dv,
                                void* workspace) const {
  OFL_ASSIGN_OR_RETURN(const Prepared p, Prepare(stream, call, true));
  const AttentionShape& s = p.problem.shape;
  AttentionRoom room(workspace);
  const Buffers b(call, p, true, &room);
  OFL_RETURN_IF_ERROR(PrepareMask(stream, call, p, in, b));
  const auto pad = [&](int64_t heads, int64_t tokens, int64_t dim, const Strides& from_strides,
                       const void* from, const Strides& to_strides, void* to, int64_t bytes) {
    return Pad(stream, s, heads, tokens, dim, from_strides, from, to_strides, to, bytes);
  };
  const int64_t d = s.head_dim, e = s.value_dim;
  OFL_RETURN_IF_ERROR(pad(s.heads, call.queries, d, call.q, in.q, s.q, b.q, b.q_bytes));
  OFL_RETURN_IF_ERROR(pad(s.heads, call.queries, e, call.out, in.out, s.out, b.out, b.out_bytes));
  OFL_RETURN_IF_ERROR(
      pad(s.heads, call.queries, e, call.dout, in.dout, s.dout, b.dout, b.out_bytes));
  OFL_RETURN_IF_ERROR(pad(s.kv_heads, call.keys, d, call.k, in.k, s.k, b.k, b.k_bytes));
  OFL_RETURN_IF_ERROR(pad(s.kv_heads, call.keys, e, call.v, in.v, s.v, b.v, b.v_bytes));
  if (b.lse) {
    const int64_t rows = s.batch * s.heads * s.queries;
    const Dims shape = {s.batch, s.heads, call.queries}, dense = ContiguousStrides(shape);
    const Dims padded = {s.heads * s.queries, s.queries, 1};
    OFL_RETURN_IF_ERROR(RunOn(stream, kName, [&](cudaStream_t native) {
      return cudaMemsetAsync(b.lse, 0, static_cast<size_t>(rows) * sizeof(float), native);
    }));
    OFL_RETURN_IF_ERROR(
        copy_float_->Launch(stream, MakeElementwise<2>(shape, {dense, padded}), in.lse, b.lse));
    OFL_RETURN_IF_ERROR(RunOn(stream, kName, [&](cudaStream_t native) {
      return LaunchAttentionLse(rows, b.lse, b.lse, native);
    }));
  }
  const auto* rng = static_cast<const uint64_t*>(in.rng);
  const bool drops = s.dropout > 0;
  const CudnnPointers pointers{.q = b.q ? b.q : in.q,
                               .k = b.k ? b.k : in.k,
                               .v = b.v ? b.v : in.v,
                               .bias = b.bias,
                               .seed = drops ? rng : nullptr,
                               .offset = drops ? rng + 1 : nullptr,
                               .queries = b.lengths,
                               .keys = b.lengths ? b.lengths + s.batch : nullptr,
                               .dout = b.dout ? b.dout : in.dout,
                               .out = b.out ? b.out : const_cast<void*>(in.out),
                               .lse = b.lse ? b.lse : const_cast<void*>(in.lse),
                               .dq = b.dq ? b.dq : dq,
                               .dk = b.dk ? b.dk : dk,
                               .dv = b.dv ? b.dv : dv};
  OFL_RETURN_IF_ERROR(RunCudnnPlan(stream, *p.plan, pointers, b.plan));
  if (b.dq) {
    OFL_RETURN_IF_ERROR(CopyHeads(stream, s, s.heads, call.queries, d, s.dq, b.dq, call.dq, dq));
  }
  if (!b.dk) return OkStatus();
  OFL_RETURN_IF_ERROR(CopyHeads(stream, s, s.kv_heads, call.keys, d, s.dk, b.dk, call.dk, dk));
  return CopyHeads(stream, s, s.kv_heads, call.keys, e, s.dv, b.dv, call.dv, dv);
}

}  // namespace oneflow_lite::cuda
