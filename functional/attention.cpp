// SPDX-License-Identifier: Apache-2.0
#include "functional/attention.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "absl/strings/str_cat.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

constexpr char kName[] = "scaled_dot_product_attention";

OpBuilder& WithAttributes(OpBuilder& b) {
  return b.Attr("scale").Attr("causal").Attr("dropout").Attr("seed").Attr("offset");
}
const OpExpr& AttentionOp() {
  static const OpExpr& op = []() -> const OpExpr& {
    OpBuilder b("attention");
    b.Input("q").Input("k").Input("v").Input("mask").Output("out").Output("lse").Output("rng");
    return WithAttributes(b).Get();
  }();
  return op;
}
const OpExpr& BackwardOp() {
  static const OpExpr& op = []() -> const OpExpr& {
    OpBuilder b("attention_backward");
    b.Input("dout").Input("q").Input("k").Input("v").Input("out").Input("lse").Input("rng");
    b.Input("mask").Output("dq").Output("dk").Output("dv");
    return WithAttributes(b).Get();
  }();
  return op;
}
const OpExpr& PackedOp() {
  static const OpExpr& op = []() -> const OpExpr& {
    OpBuilder b("attention_packed");
    b.Input("qkv").Input("mask").Output("out").Output("lse").Output("rng");
    return WithAttributes(b).Attr("heads").Attr("kv_heads").Get();
  }();
  return op;
}
const OpExpr& PackedBackwardOp() {
  static const OpExpr& op = []() -> const OpExpr& {
    OpBuilder b("attention_packed_backward");
    b.Input("dout").Input("qkv").Input("out").Input("lse").Input("rng").Input("mask");
    b.Output("dqkv");
    return WithAttributes(b).Attr("heads").Attr("kv_heads").Get();
  }();
  return op;
}

// The tensors of a call as its caller knows them.
struct Given {
  const Tensor &q, &k, &v, &mask;

  std::string Shapes() const {
    return absl::StrCat("query ", q.shape().ToString(), ", key ", k.shape().ToString(), ", value ",
                        v.shape().ToString(),
                        mask.defined() ? ", attn_mask " + mask.shape().ToString() : "");
  }
  Status WrongShapes() const {
    return Error(ErrorKind::kShape, kName, "(): ", Shapes(),
                 " do not go together: expected [..., queries, d], [..., keys, d], [..., keys, dv]",
                 mask.defined() ? ", [..., queries, keys]" : "");
  }
  Status WrongDTypes() const {
    return Error(ErrorKind::kDType, kName, "(): query ", Name(q.dtype()), ", key ", Name(k.dtype()),
                 ", value ", Name(v.dtype()),
                 mask.defined() ? absl::StrCat(", attn_mask ", Name(mask.dtype())) : "",
                 " do not go together: expected one floating dtype, for the mask float32 or bool, "
                 "too");
  }

  Status Check() const {
    for (const auto& [name, t] : {std::pair{"query", &q}, {"key", &k}, {"value", &v}}) {
      if (!t->defined()) return NotDefined(kName, name);
    }
    for (const auto& [name, t] : {std::pair{"key", &k}, {"value", &v}, {"attn_mask", &mask}}) {
      if (t->defined() && t->device() != q.device()) {
        return DeviceMismatch(kName, "query", q.device(), name, t->device());
      }
    }
    if (!IsFloating(q.dtype()) || k.dtype() != q.dtype() || v.dtype() != q.dtype()) {
      return WrongDTypes();
    }
    if (mask.defined() && mask.dtype() != DType::kBool && mask.dtype() != q.dtype() &&
        mask.dtype() != DType::kFloat32) {
      return WrongDTypes();
    }
    const bool matrices = q.ndim() >= 2 && k.ndim() >= 2 && v.ndim() >= 2;
    const auto from_end = [](const Tensor& t, int i) { return t.shape()[t.ndim() - i]; };
    if (!matrices || from_end(q, 1) != from_end(k, 1) || from_end(k, 2) != from_end(v, 2)) {
      return WrongShapes();
    }
    return OkStatus();
  }
};

Status CheckShare(const char* name, double p) {
  if (p >= 0 && p <= 1) return OkStatus();
  return BadValue(name, "dropout_p", absl::StrCat(p), "in [0, 1]");
}

// How heads are found in the leading dims of a call.
struct Leading {
  Dims dims;  // of the result, broadcast
  int64_t q_heads = 1, kv_heads = 1;
};

// dims, each as it is or as what it broadcasts to; false where they do not go together.
bool BroadcastInto(absl::Span<const int64_t> dims, Dims* all) {
  if (dims.size() > all->size()) all->insert(all->begin(), dims.size() - all->size(), 1);
  const size_t missing = all->size() - dims.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t& size = (*all)[missing + d];
    if (dims[d] != size && dims[d] != 1 && size != 1) return false;
    if (size == 1) size = dims[d];
  }
  return true;
}

absl::Span<const int64_t> LeadingOf(const Tensor& t) {
  return absl::MakeConstSpan(t.shape().dims()).first(static_cast<size_t>(t.ndim() - 2));
}

// The leading dims of the result, and how many heads k and v keep: as many as q, or fewer that each
// serve a group of them.
StatusOr<Leading> FindLeading(const Given& g, bool grouped) {
  const auto dims = [](const Tensor& t) { return Dims(LeadingOf(t).begin(), LeadingOf(t).end()); };
  Dims q = dims(g.q), k = dims(g.k), v = dims(g.v);
  const bool heads = !q.empty() && !k.empty() && !v.empty();
  int64_t kv_heads = -1;  // as many as of q, once those are known
  if (grouped) {
    if (!heads) return g.WrongShapes();
    const int64_t of_q = q.back();
    for (const int64_t own : {k.back(), v.back()}) {
      if (own != of_q && (own == 0 || of_q % own != 0)) return g.WrongShapes();
    }
    if (k.back() == v.back()) kv_heads = k.back();
    k.back() = v.back() = of_q;
  } else if (heads && k.back() == 1 && v.back() == 1) {
    kv_heads = 1;
  }
  Leading lead{q};
  if (!BroadcastInto(k, &lead.dims) || !BroadcastInto(v, &lead.dims)) return g.WrongShapes();
  if (!lead.dims.empty()) lead.q_heads = lead.dims.back();
  lead.kv_heads = kv_heads < 0 || lead.q_heads == 0 ? lead.q_heads : kv_heads;
  return lead;
}

// x [..., tokens, element] as [batch, heads, tokens, element], whose leading dims are those of the
// result but for `heads`. Heads that are fewer than that are repeated, each as often.
StatusOr<Tensor> InFourDims(const Tensor& x, const Dims& leading, int64_t heads) {
  const int64_t tokens = x.shape()[x.ndim() - 2], d = x.shape()[x.ndim() - 1];
  Dims full = leading;
  if (full.empty()) full = {1};
  const int64_t own = x.ndim() > 2 ? x.shape()[x.ndim() - 3] : 1;
  full.back() = heads;
  int64_t batch = 1;
  for (size_t i = 0; i + 1 < full.size(); ++i) batch *= full[i];
  if (x.ndim() == 4 && full.size() == 2 && x.shape()[0] == batch && own == heads) return x;
  Tensor y = x;
  if (own != heads && own != 1) {  // groups of q's heads for k and v of different numbers of heads
    OFL_ASSIGN_OR_RETURN(y, Unsqueeze(y, -3));
    Dims repeated = y.shape().dims();
    repeated[repeated.size() - 3] = heads / own;
    OFL_ASSIGN_OR_RETURN(y, Expand(y, repeated));
    OFL_ASSIGN_OR_RETURN(y, Flatten(y, -4, -3));
  }
  Dims wanted = full;
  wanted.push_back(tokens);
  wanted.push_back(d);
  if (y.shape() != Shape(wanted)) {
    OFL_ASSIGN_OR_RETURN(y, Expand(y, wanted));
  }
  return Reshape(y, {batch, heads, tokens, d});
}

// The mask as four dims that broadcast to [batch, heads, queries, keys].
StatusOr<Tensor> MaskInFourDims(const Given& g, const Leading& lead) {
  const Tensor& mask = g.mask;
  Dims all = lead.dims;
  all.push_back(g.q.shape()[g.q.ndim() - 2]);
  all.push_back(g.k.shape()[g.k.ndim() - 2]);
  const int missing = static_cast<int>(all.size()) - mask.ndim();
  if (missing < 0) return g.WrongShapes();
  Dims shape(missing, 1);
  for (int d = 0; d < mask.ndim(); ++d) {
    const int64_t size = mask.shape()[d];
    if (size != 1 && size != all[missing + d]) return g.WrongShapes();
    shape.push_back(size);
  }
  while (shape.size() < 4) shape.insert(shape.begin(), 1);
  if (shape.size() == 4) return View(mask, shape);
  // More leading dims, of which all but the last are the batch.
  const size_t n = shape.size();
  Dims full(all.begin(), all.end() - 3);
  const int64_t batch = Shape(full).numel();
  for (size_t i = n - 3; i < n; ++i) full.push_back(shape[i]);
  OFL_ASSIGN_OR_RETURN(const Tensor viewed, View(mask, shape));
  OFL_ASSIGN_OR_RETURN(const Tensor expanded, Expand(viewed, full));
  return Reshape(expanded, {batch, shape[n - 3], shape[n - 2], shape[n - 1]});
}

// Takes the numbers that dropout needs from the generator.
Status Draw(const char* name, const Device& device, const Ref<Generator>& given, uint64_t scores,
            AttentionOptions* options) {
  if (options->dropout == 0) return OkStatus();
  const Ref<Generator> own = DefaultGenerator(device);
  if (given && given != own) {
    OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
    if (stream->capturing()) {
      return Error(ErrorKind::kRuntime, name,
                   "(): a generator that is not the device's default one cannot be captured in a "
                   "graph, whose replays would repeat its numbers; leave `generator` out");
    }
  }
  // One Philox counter serves four numbers (primitive/creation.h).
  const uint64_t counters = (scores + 3) / 4;
  const Generator::State state = (given ? given : own)->Take(counters);
  options->seed = static_cast<int64_t>(state.seed);
  options->offset = static_cast<int64_t>(state.offset);
  return OkStatus();
}

// How many there are, modulo 2^64: on meta q and k may each be as large as a tensor can be.
uint64_t ScoresOf(std::initializer_list<int64_t> dims) {
  uint64_t n = 1;
  for (const int64_t dim : dims) n *= static_cast<uint64_t>(dim);
  return n;
}

double ScaleOr(std::optional<double> scale, int64_t d) {  // d = 0: all scores are 0 anyhow
  return scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, d))));
}

StatusOr<int64_t> CausalOf(const char* name, bool top_left, bool bottom_right) {
  if (!top_left || !bottom_right) return top_left ? 1 : bottom_right ? 2 : 0;
  return Error(ErrorKind::kValue, name,
               "(): is_causal and causal_bottom_right are two alignments, expected one of them");
}

// q, k, v as [batch, token, head, element], and the mask with four dims.
struct Operands {
  Tensor q, k, v, mask;
};
StatusOr<Operands> OperandsOf(const Given& g, const Leading& lead) {
  Operands o;
  OFL_ASSIGN_OR_RETURN(o.q, InFourDims(g.q, lead.dims, lead.q_heads));
  OFL_ASSIGN_OR_RETURN(o.k, InFourDims(g.k, lead.dims, lead.kv_heads));
  OFL_ASSIGN_OR_RETURN(o.v, InFourDims(g.v, lead.dims, lead.kv_heads));
  for (Tensor* t : {&o.q, &o.k, &o.v}) {
    OFL_ASSIGN_OR_RETURN(*t, Transpose(*t, 1, 2));
  }
  if (g.mask.defined()) {
    OFL_ASSIGN_OR_RETURN(o.mask, MaskInFourDims(g, lead));
    if (g.mask.dtype() == DType::kFloat32 && g.q.dtype() == DType::kFloat64) {
      OFL_ASSIGN_OR_RETURN(o.mask, Cast(o.mask, DType::kFloat64));
    }
  }
  return o;
}

Attrs AttrsOf(const AttentionOptions& o) {
  return {o.scale, o.causal, o.dropout, o.seed, o.offset};
}
Attrs AttrsOf(const AttentionOptions& o, int64_t heads, int64_t kv_heads) {
  return {o.scale, o.causal, o.dropout, o.seed, o.offset, heads, kv_heads};
}

}  // namespace

StatusOr<Tensor> ScaledDotProductAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const Tensor& mask, double dropout_p, bool is_causal,
                                           std::optional<double> scale, bool enable_gqa,
                                           bool causal_bottom_right, Ref<Generator> generator) {
  const Given given{q, k, v, mask};
  OFL_RETURN_IF_ERROR(given.Check());
  OFL_RETURN_IF_ERROR(CheckShare(kName, dropout_p));
  AttentionOptions options{.scale = ScaleOr(scale, q.shape()[q.ndim() - 1]), .dropout = dropout_p};
  OFL_ASSIGN_OR_RETURN(options.causal, CausalOf(kName, is_causal, causal_bottom_right));
  OFL_ASSIGN_OR_RETURN(const Leading lead, FindLeading(given, enable_gqa));
  OFL_ASSIGN_OR_RETURN(const Operands o, OperandsOf(given, lead));
  const Shape& queries = o.q.shape();
  const uint64_t scores = ScoresOf({queries[0], queries[1], queries[2], o.k.shape()[1]});
  OFL_RETURN_IF_ERROR(Draw(kName, q.device(), generator, scores, &options));
  StatusOr<Tensor> y = Call(AttentionOp(), {o.q, o.k, o.v, o.mask}, AttrsOf(options));
  if (!y.ok()) return Renamed(kName, y.status());
  OFL_ASSIGN_OR_RETURN(const Tensor heads_first, Transpose(*y, 1, 2));
  if (lead.dims.size() == 2) return heads_first;
  Dims shape = lead.dims;
  shape.push_back(q.shape()[q.ndim() - 2]);
  shape.push_back(v.shape()[v.ndim() - 1]);
  return Reshape(heads_first, shape);
}

StatusOr<Tensor> AttentionPacked(const Tensor& qkv, std::optional<int64_t> num_heads,
                                 std::optional<int64_t> num_kv_heads, const Tensor& mask,
                                 double dropout_p, bool is_causal, std::optional<double> scale,
                                 Ref<Generator> generator) {
  constexpr char kPacked[] = "attention_packed";
  constexpr int64_t kMostHeads = std::numeric_limits<int64_t>::max() / 3;
  if (!qkv.defined()) return NotDefined(kPacked, "qkv");
  OFL_RETURN_IF_ERROR(CheckShare(kPacked, dropout_p));
  const Shape& shape = qkv.shape();
  const bool five = shape.ndim() == 5 && shape[2] == 3;
  const int64_t heads = five ? shape[3] : num_heads.value_or(0);
  const int64_t kv_heads = num_kv_heads.value_or(heads);
  const bool agree =
      five ? num_heads.value_or(heads) == heads && kv_heads == heads
           : shape.ndim() == 3 && heads >= 1 && kv_heads >= 1 && heads % kv_heads == 0;
  // kv_heads <= heads, so that this sum is an int64.
  const int64_t all = agree && heads <= kMostHeads ? heads + 2 * kv_heads : -1;
  if (all < 0 || (!five && shape[2] % all != 0)) {
    const auto text = [](std::optional<int64_t> n) {
      return n ? absl::StrCat(*n) : std::string("None");
    };
    return ShapeMismatch(
        kPacked, "qkv", shape,
        absl::StrCat("[batch, tokens, 3, heads, d], or [batch, tokens, (heads + 2 kv_heads) d] "
                     "with num_heads=",
                     text(num_heads), " and num_kv_heads=", text(num_kv_heads)));
  }
  const int64_t d = five ? shape[4] : shape[2] / all;
  // Packed heads must lie one behind another, where they are not copied.
  OFL_ASSIGN_OR_RETURN(const Tensor tokens, Reshape(qkv, {shape[0], shape[1], all, d}));
  Tensor seen = mask;
  if (mask.defined() && mask.ndim() < 4) {
    Dims four(4 - mask.ndim(), 1);
    four.insert(four.end(), mask.shape().begin(), mask.shape().end());
    OFL_ASSIGN_OR_RETURN(seen, View(mask, four));
  }
  AttentionOptions options{.scale = ScaleOr(scale, d), .causal = is_causal, .dropout = dropout_p};
  const uint64_t scores = ScoresOf({shape[0], shape[1], heads, shape[1]});
  OFL_RETURN_IF_ERROR(Draw(kPacked, qkv.device(), generator, scores, &options));
  StatusOr<Tensor> y = Call(PackedOp(), {tokens, seen}, AttrsOf(options, heads, kv_heads));
  if (!y.ok() || five) return y;
  return View(*y, {shape[0], shape[1], heads * d});
}

StatusOr<TensorList> AttentionBackward(const Tensor& dout, const Tensor& q, const Tensor& k,
                                       const Tensor& v, const Tensor& out, const Tensor& lse,
                                       const Tensor& rng, const Tensor& mask,
                                       const AttentionOptions& options) {
  const Tensor drawn = options.dropout > 0 ? rng : Tensor();
  return CallAll(BackwardOp(), {dout, q, k, v, out, lse, drawn, mask}, AttrsOf(options));
}

StatusOr<Tensor> AttentionPackedBackward(const Tensor& dout, const Tensor& qkv, const Tensor& out,
                                         const Tensor& lse, const Tensor& rng, const Tensor& mask,
                                         const AttentionOptions& options, int64_t heads,
                                         int64_t kv_heads) {
  const Tensor drawn = options.dropout > 0 ? rng : Tensor();
  return Call(PackedBackwardOp(), {dout, qkv, out, lse, drawn, mask},
              AttrsOf(options, heads, kv_heads));
}

OFL_REGISTER_FUNCTION(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, float? scale=None, bool enable_gqa=False, *, "
    "bool causal_bottom_right=False, Generator? generator=None) -> Tensor",
    ScaledDotProductAttention, kFunction,
    "softmax(scale * query @ key^T + mask) @ value, without scores in memory.\n\n"
    "query [..., queries, d], key [..., keys, d], value [..., keys, dv] give [..., queries, dv].\n"
    "attn_mask broadcasts to [..., queries, keys]: where a bool one is False a key is hidden, a\n"
    "floating one is added. is_causal shows a query the keys up to its own place, counted from "
    "the\n"
    "first ones as in PyTorch; causal_bottom_right counts from the last ones. With a mask, what\n"
    "either hides is hidden. A query that sees no key gets 0, and so its gradients. scale is\n"
    "1 / sqrt(d) where absent. With enable_gqa each head of key and value, dim -3, serves as many\n"
    "of query as there are of it. dropout_p of the weights are dropped, by the generator given or\n"
    "the device's.\n\n"
    "16-bit floats are computed in float32. On CUDA they go through cuDNN where there is one\n"
    "(9.15.1 or newer), whose gradients are not the same bits twice unless\n"
    "use_deterministic_algorithms() says so, and whose dropout draws in its own way.");
OFL_REGISTER_FUNCTION(
    "attention_packed(Tensor qkv, int? num_heads=None, int? num_kv_heads=None, "
    "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, float? scale=None, *, "
    "Generator? generator=None) -> Tensor",
    AttentionPacked, kFunction,
    "scaled_dot_product_attention of queries, keys and values in one tensor, as a linear layer\n"
    "gives them.\n\n"
    "qkv [batch, tokens, 3, heads, d] gives [batch, tokens, heads, d]; qkv [batch, tokens,\n"
    "(num_heads + 2 * num_kv_heads) * d], with num_kv_heads = num_heads where absent, gives\n"
    "[batch, tokens, num_heads * d]. Nothing is copied, and the gradient is one tensor too. The\n"
    "other arguments are those of scaled_dot_product_attention; attn_mask broadcasts to\n"
    "[batch, heads, tokens, tokens].");

}  // namespace oneflow_lite::functional
