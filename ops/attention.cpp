// SPDX-License-Identifier: Apache-2.0
//
// attention and attention_packed, and their gradients as ops of their own. Tensors are
// [batch, token, head, element]; a packed one holds the heads of q, of k and of v one after
// another.
#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/attention_gradient.h"

namespace oneflow_lite {
namespace {

using functional::AttentionOptions;

// The attributes of all four; the packed ones have the numbers of heads besides.
constexpr int kScale = 0, kCausal = 1, kDropout = 2, kSeed = 3, kOffset = 4;
constexpr int kHeads = 5, kKvHeads = 6;

void DefineAttributes(OpDef& op) {
  op.Attr("scale", AttrType::kFloat, 1.0).Attr("causal", AttrType::kInt, int64_t{0});
  op.Attr("dropout", AttrType::kFloat, 0.0).Attr("seed", AttrType::kInt, int64_t{0});
  op.Attr("offset", AttrType::kInt, int64_t{0});
}

AttentionOptions OptionsOf(const GradContext& c) {
  return {c.attr<double>(kScale), c.attr<int64_t>(kCausal), c.attr<double>(kDropout),
          c.attr<int64_t>(kSeed), c.attr<int64_t>(kOffset)};
}

// Sizes of a call.
struct Sizes {
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kv_heads = 0, d = 0, dv = 0;

  Shape out() const { return {batch, queries, heads, dv}; }
  Shape lse() const { return {batch, heads, queries}; }
  // Pairs of a query and a key that it sees.
  double Seen(int64_t causal) const {
    const double all = static_cast<double>(queries) * static_cast<double>(keys);
    if (causal == 0) return all;
    double pairs = 0;
    const int64_t past = causal == 1 ? 0 : keys - queries;
    const int64_t ramp_begin = std::clamp<int64_t>(-past, 0, queries);
    const int64_t ramp_end = std::clamp<int64_t>(keys - past, ramp_begin, queries);
    const double count = static_cast<double>(ramp_end - ramp_begin);
    pairs += count * (static_cast<double>(ramp_begin + past) + (count + 1) / 2);
    return pairs + static_cast<double>(queries - ramp_end) * static_cast<double>(keys);
  }
};

Status CheckAttributes(const InferContext& c) {
  const int64_t causal = c.attr<int64_t>(kCausal);
  if (causal < 0 || causal > 2) {
    return BadValue(c.op(), "causal", absl::StrCat(causal),
                    "0 (not), 1 (top left) or 2 (bottom "
                    "right)");
  }
  const double p = c.attr<double>(kDropout);
  if (!(p >= 0 && p <= 1)) {
    return BadValue(c.op(), "dropout", absl::StrCat(p), "a number in [0, 1]");
  }
  return OkStatus();
}

Status CheckMask(const InferContext& c, int i, const Sizes& s, DType dtype) {
  const DType given = c.dtype(i);
  const bool wide = given == DType::kFloat32 && SizeOf(dtype) == 2;
  if (given != DType::kBool && given != dtype && !wide) {
    return DTypeMismatch(
        c.op(), "mask", given,
        absl::StrCat("bool or ", Name(dtype), SizeOf(dtype) == 2 ? " or float32" : ""));
  }
  const Shape all{s.batch, s.heads, s.queries, s.keys};
  bool fits = c.shape(i).ndim() == 4;
  for (int d = 0; fits && d < 4; ++d) fits = c.shape(i)[d] == 1 || c.shape(i)[d] == all[d];
  if (fits) return OkStatus();
  return ShapeMismatch(c.op(), "mask", c.shape(i), "4 dims that broadcast to " + all.ToString());
}

// Of q, k and v as the inputs first, first + 1, first + 2.
Status CheckTensors(const InferContext& c, int first, Sizes* s) {
  OFL_RETURN_IF_ERROR(CheckAttributes(c));
  static constexpr const char* kNames[] = {"q", "k", "v"};
  const DType dtype = c.dtype(first);
  if (!IsFloating(dtype)) return UnsupportedDType(c.op(), "q", dtype, kFloatingDTypes);
  for (int i = 0; i < 3; ++i) {
    if (c.dtype(first + i) != dtype) {
      return DTypeMismatch(c.op(), kNames[i], c.dtype(first + i), Name(dtype));
    }
    if (c.shape(first + i).ndim() != 4) {
      return ShapeMismatch(c.op(), kNames[i], c.shape(first + i), "[batch, token, head, element]");
    }
  }
  const Shape &q = c.shape(first), &k = c.shape(first + 1), &v = c.shape(first + 2);
  *s = {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
  const bool grouped = s->kv_heads == 0 ? s->heads == 0 : s->heads % s->kv_heads == 0;
  if (k[0] != q[0] || k[3] != q[3] || !grouped) {
    return ShapeMismatch(c.op(), "k", k,
                         absl::StrCat("[", q[0], ", keys, a divisor of ", q[2], ", ", q[3], "]"));
  }
  if (v[0] != k[0] || v[1] != k[1] || v[2] != k[2]) {
    return ShapeMismatch(c.op(), "v", v, absl::StrCat("[", k[0], ", ", k[1], ", ", k[2], ", dv]"));
  }
  return OkStatus();
}

Status CheckPacked(const InferContext& c, int i, Sizes* s) {
  OFL_RETURN_IF_ERROR(CheckAttributes(c));
  if (!IsFloating(c.dtype(i))) return UnsupportedDType(c.op(), "qkv", c.dtype(i), kFloatingDTypes);
  const int64_t heads = c.attr<int64_t>(kHeads), kv_heads = c.attr<int64_t>(kKvHeads);
  if (heads < 0 || kv_heads < 0 || (kv_heads == 0 ? heads != 0 : heads % kv_heads != 0)) {
    return BadValue(c.op(), "kv_heads", absl::StrCat(kv_heads),
                    absl::StrCat("a divisor of the number of heads, ", heads));
  }
  const Shape& qkv = c.shape(i);
  // kv_heads may be such that heads + 2 kv_heads is no int64.
  const int64_t rest = qkv.ndim() == 4 ? qkv[2] - heads : -1;
  if (rest < 0 || rest % 2 != 0 || rest / 2 != kv_heads) {
    return ShapeMismatch(c.op(), "qkv", qkv,
                         absl::StrCat("[batch, token, ", heads, " + 2 * ", kv_heads, ", element]"));
  }
  *s = {qkv[0], qkv[1], qkv[1], heads, kv_heads, qkv[3], qkv[3]};
  return OkStatus();
}

// dout and what the forward pass gave: dout is input 0, out, lse and rng are from `first` on. rng
// is looked at with dropout alone.
Status CheckSaved(const InferContext& c, int first, const Sizes& s, DType dtype) {
  static constexpr const char* kNames[] = {"dout", "out", "lse"};
  for (int j = 0; j < 3; ++j) {
    const int i = j == 0 ? 0 : first + j - 1;
    const Shape want = j < 2 ? s.out() : s.lse();
    const DType type = j < 2 ? dtype : ComputeType(dtype);
    if (c.shape(i) != want) return ShapeMismatch(c.op(), kNames[j], c.shape(i), want.ToString());
    if (c.dtype(i) != type) return DTypeMismatch(c.op(), kNames[j], c.dtype(i), Name(type));
  }
  if (c.attr<double>(kDropout) == 0) return OkStatus();
  if (!c.has_input(first + 2)) return NotDefined(c.op(), "rng");
  const Shape rng{2};
  if (c.shape(first + 2) != rng) {
    return ShapeMismatch(c.op(), "rng", c.shape(first + 2), rng.ToString());
  }
  if (c.dtype(first + 2) != DType::kInt64) {
    return DTypeMismatch(c.op(), "rng", c.dtype(first + 2), "int64");
  }
  return OkStatus();
}

void SetForwardOutputs(InferContext& c, const Sizes& s) {
  c.SetOutput(0, s.out(), c.dtype(0));
  c.SetOutput(1, s.lse(), ComputeType(c.dtype(0)));
  c.SetOutput(2, {c.attr<double>(kDropout) > 0 ? 2 : 0}, DType::kInt64);
}

Status InferAttention(InferContext& c) {
  Sizes s;
  OFL_RETURN_IF_ERROR(CheckTensors(c, 0, &s));
  if (c.has_input(3)) OFL_RETURN_IF_ERROR(CheckMask(c, 3, s, c.dtype(0)));
  SetForwardOutputs(c, s);
  return OkStatus();
}
Status InferPacked(InferContext& c) {
  Sizes s;
  OFL_RETURN_IF_ERROR(CheckPacked(c, 0, &s));
  if (c.has_input(1)) OFL_RETURN_IF_ERROR(CheckMask(c, 1, s, c.dtype(0)));
  SetForwardOutputs(c, s);
  return OkStatus();
}
Status InferBackward(InferContext& c) {
  Sizes s;
  OFL_RETURN_IF_ERROR(CheckTensors(c, 1, &s));
  OFL_RETURN_IF_ERROR(CheckSaved(c, 4, s, c.dtype(1)));
  if (c.has_input(7)) OFL_RETURN_IF_ERROR(CheckMask(c, 7, s, c.dtype(1)));
  for (int i = 0; i < 3; ++i) c.SetOutput(i, c.shape(i + 1), c.dtype(1));
  return OkStatus();
}
Status InferPackedBackward(InferContext& c) {
  Sizes s;
  OFL_RETURN_IF_ERROR(CheckPacked(c, 1, &s));
  OFL_RETURN_IF_ERROR(CheckSaved(c, 2, s, c.dtype(1)));
  if (c.has_input(5)) OFL_RETURN_IF_ERROR(CheckMask(c, 5, s, c.dtype(1)));
  c.SetOutput(0, c.shape(1), c.dtype(1));
  return OkStatus();
}

// Each input read once, each output written once; a product of n terms is 2 n operations, and a
// score 5 besides, or 8 in the gradient.
template <bool kPacked, bool kBackward>
Cost CostOf(const InferContext& c, absl::Span<const TensorSpec> outputs) {
  const int first = kBackward ? 1 : 0;
  const Shape& q = c.shape(first);
  Sizes s;
  if (kPacked) {
    s = {q[0], q[1], q[1], c.attr<int64_t>(kHeads), c.attr<int64_t>(kKvHeads), q[3], q[3]};
  } else {
    const Shape &k = c.shape(first + 1), &v = c.shape(first + 2);
    s = {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
  }
  Cost cost;
  const auto add = [&](const TensorSpec& t) {
    if (!t.defined) return;
    cost.bytes += static_cast<double>(t.shape.numel()) * static_cast<double>(SizeOf(t.dtype));
  };
  for (int i = 0; i < c.num_inputs(); ++i) add(c.input(i));
  for (const TensorSpec& t : outputs) add(t);
  const double d = static_cast<double>(s.d), dv = static_cast<double>(s.dv);
  const double each = kBackward ? 6 * d + 4 * dv + 8 : 2 * d + 2 * dv + 5;
  cost.flops = static_cast<double>(s.batch * s.heads) * s.Seen(c.attr<int64_t>(kCausal)) * each;
  return cost;
}

// Split on the batch; on the heads too where each of q has its own of k and v, or all have one.
constexpr char kSbpText[] =
    "without dropout, split on the batch, or on the heads where there are as many of k and v as of "
    "q, or one; a mask with it where it has the dim";
Sbp OfMask(const Shape& mask, int dim) {
  return mask.ndim() == 4 && mask[dim] > 1 ? Sbp::Split(dim) : Sbp::Broadcast();
}
SbpSignatures AttentionSignatures(const SbpContext& c) {
  SbpSignatures out;
  if (c.attrs.get<double>(kDropout) > 0)
    return out;  // what is dropped is told by place in the whole
  const Sbp all = Sbp::Broadcast();
  const auto batch = Sbp::Split(0), heads = Sbp::Split(2);
  const Shape& mask = c.inputs[3];
  out.push_back({{batch, batch, batch, OfMask(mask, 0)}, {batch, batch, all}});
  const int64_t kv_heads = c.inputs[1][2];
  if (kv_heads != 1 && kv_heads != c.inputs[0][2]) return out;
  const Sbp kv = kv_heads == c.inputs[0][2] ? heads : all;
  out.push_back({{heads, kv, kv, OfMask(mask, 1)}, {heads, Sbp::Split(1), all}});
  return out;
}
SbpSignatures BackwardSignatures(const SbpContext& c) {
  SbpSignatures out;
  if (c.attrs.get<double>(kDropout) > 0) return out;
  const Sbp all = Sbp::Broadcast();
  const auto batch = Sbp::Split(0), heads = Sbp::Split(2);
  const Shape& mask = c.inputs[7];
  out.push_back(
      {{batch, batch, batch, batch, batch, batch, all, OfMask(mask, 0)}, {batch, batch, batch}});
  const int64_t kv_heads = c.inputs[2][2];
  if (kv_heads != 1 && kv_heads != c.inputs[1][2]) return out;
  const bool own = kv_heads == c.inputs[1][2];
  const Sbp kv = own ? heads : all, dkv = own ? heads : Sbp::PartialSum();
  out.push_back(
      {{heads, heads, kv, kv, heads, Sbp::Split(1), all, OfMask(mask, 1)}, {heads, dkv, dkv}});
  return out;
}
SbpSignatures PackedSignatures(const SbpContext& c) {
  SbpSignatures out;
  if (c.attrs.get<double>(kDropout) > 0) return out;
  const auto batch = Sbp::Split(0);
  out.push_back({{batch, OfMask(c.inputs[1], 0)}, {batch, batch, Sbp::Broadcast()}});
  return out;
}
SbpSignatures PackedBackwardSignatures(const SbpContext& c) {
  SbpSignatures out;
  if (c.attrs.get<double>(kDropout) > 0) return out;
  const auto batch = Sbp::Split(0);
  out.push_back({{batch, batch, batch, batch, Sbp::Broadcast(), OfMask(c.inputs[5], 0)}, {batch}});
  return out;
}

constexpr char kCostText[] =
    "each tensor is read or written once; operations of the products for what is seen";

// The op's own gradient where nothing but q, k and v needs one, and nothing came back to lse.
bool ByKernel(const GradContext& c, int mask) {
  return c.grad(0).defined() && !c.grad(1).defined() && !c.needs(mask);
}

Status DifferentiateAttention(GradContext& c) {
  const AttentionOptions o = OptionsOf(c);
  if (ByKernel(c, 3)) {
    OFL_ASSIGN_OR_RETURN(
        const TensorList g,
        functional::AttentionBackward(c.grad(0), c.input(0), c.input(1), c.input(2), c.output(0),
                                      c.output(1), c.output(2), c.input(3), o));
    for (int i = 0; i < 3; ++i) {
      if (c.needs(i)) OFL_RETURN_IF_ERROR(c.Set(i, g[i]));
    }
    return OkStatus();
  }
  const AttentionTensors t{c.input(0),  c.input(1), c.input(2), c.output(0),
                           c.output(1), c.input(3), c.grad(0),  c.grad(1)};
  OFL_ASSIGN_OR_RETURN(const AttentionGradients g, ComposeAttentionGradients(t, o, c.needs(3)));
  const Tensor* const grads[] = {&g.q, &g.k, &g.v, &g.mask};
  for (int i = 0; i < 4; ++i) {
    if (c.needs(i)) OFL_RETURN_IF_ERROR(c.Set(i, *grads[i]));
  }
  return OkStatus();
}

void DefineAttention(OpDef& op) {
  op.Input("q").Input("k").Input("v").Input("mask", InputDef::Kind::kOptional);
  op.Output("out").Output("lse").Output("rng");
  DefineAttributes(op);
  op.doc =
      "softmax(scale q k^T + mask) v of [batch, token, head, element], the logarithm of each "
      "query's sum of exponentials as [batch, head, token], and where dropout drew.";
  op.infer = InferAttention;
  op.sbp = AttentionSignatures;
  op.sbp_text = kSbpText;
  op.cost = CostOf<false, false>;
  op.cost_text = kCostText;
  op.save = [](const Attrs&, Needs) {
    return SavePlan{.inputs = Bit(0) | Bit(1) | Bit(2) | Bit(3),
                    .outputs = Bit(0) | Bit(1) | Bit(2)};
  };
  op.backward = DifferentiateAttention;
}

// Gradients of the inputs of attention_backward, in its order.
Status DifferentiateBackward(GradContext& c) {
  const AttentionTensors t{c.input(1), c.input(2), c.input(3), c.input(4),
                           c.input(5), c.input(7), c.input(0), {}};
  OFL_ASSIGN_OR_RETURN(const AttentionSecond s,
                       ComposeSecondAttentionGradients(t, OptionsOf(c), c.grad(0), c.grad(1),
                                                       c.grad(2), c.needs(7)));
  const Tensor* const grads[] = {&s.dout, &s.q, &s.k, &s.v, &s.out, &s.lse, nullptr, &s.mask};
  for (int i = 0; i < 8; ++i) {
    if (grads[i] && c.needs(i)) OFL_RETURN_IF_ERROR(c.Set(i, *grads[i]));
  }
  return OkStatus();
}

void DefineAttentionBackward(OpDef& op) {
  op.Input("dout").Input("q").Input("k").Input("v").Input("out").Input("lse");
  op.Input("rng", InputDef::Kind::kOptional);
  op.Input("mask", InputDef::Kind::kOptional).Output("dq").Output("dk").Output("dv");
  DefineAttributes(op);
  op.doc = "Gradients of attention, whose weights are worked out again from lse.";
  op.infer = InferBackward;
  op.sbp = BackwardSignatures;
  op.sbp_text = kSbpText;
  op.cost = CostOf<false, true>;
  op.cost_text = kCostText;
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(8) - 1}; };
  op.backward = DifferentiateBackward;
}

// The parts of a packed tensor, and of a gradient of it.
StatusOr<TensorList> Parts(const Tensor& packed, const GradContext& c) {
  if (!packed.defined()) return TensorList(3);
  const int64_t heads = c.attr<int64_t>(kHeads), kv_heads = c.attr<int64_t>(kKvHeads);
  const int64_t sizes[] = {heads, kv_heads, kv_heads};
  return functional::SplitWithSizes(packed, sizes, 2);
}
StatusOr<Tensor> Packed(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor parts[] = {q, k, v};
  return functional::Cat(parts, 2);
}

Status DifferentiatePacked(GradContext& c) {
  const AttentionOptions o = OptionsOf(c);
  if (ByKernel(c, 1)) {
    return c.Set(0, functional::AttentionPackedBackward(
                        c.grad(0), c.input(0), c.output(0), c.output(1), c.output(2), c.input(1), o,
                        c.attr<int64_t>(kHeads), c.attr<int64_t>(kKvHeads)));
  }
  OFL_ASSIGN_OR_RETURN(const TensorList p, Parts(c.input(0), c));
  const AttentionTensors t{p[0],        p[1],       p[2],      c.output(0),
                           c.output(1), c.input(1), c.grad(0), c.grad(1)};
  OFL_ASSIGN_OR_RETURN(const AttentionGradients g, ComposeAttentionGradients(t, o, c.needs(1)));
  if (c.needs(1)) OFL_RETURN_IF_ERROR(c.Set(1, g.mask));
  if (!c.needs(0)) return OkStatus();
  // Without a gradient of out, v has none.
  OFL_ASSIGN_OR_RETURN(const Tensor dv, g.v.defined() ? g.v : functional::Mul(p[2], Scalar(0)));
  return c.Set(0, Packed(g.q, g.k, dv));
}

void DefinePacked(OpDef& op) {
  op.Input("qkv").Input("mask", InputDef::Kind::kOptional);
  op.Output("out").Output("lse").Output("rng");
  DefineAttributes(op);
  op.Attr("heads", AttrType::kInt).Attr("kv_heads", AttrType::kInt);
  op.doc =
      "attention of one tensor [batch, token, head, element] with the heads of q, k and v one "
      "after another.";
  op.infer = InferPacked;
  op.sbp = PackedSignatures;
  op.sbp_text = "without dropout, split on the batch";
  op.cost = CostOf<true, false>;
  op.cost_text = kCostText;
  op.save = [](const Attrs&, Needs) {
    return SavePlan{.inputs = Bit(0) | Bit(1), .outputs = Bit(0) | Bit(1) | Bit(2)};
  };
  op.backward = DifferentiatePacked;
}

Status DifferentiatePackedBackward(GradContext& c) {
  OFL_ASSIGN_OR_RETURN(const TensorList p, Parts(c.input(1), c));
  OFL_ASSIGN_OR_RETURN(const TensorList g, Parts(c.grad(0), c));
  const AttentionTensors t{p[0], p[1], p[2], c.input(2), c.input(3), c.input(5), c.input(0), {}};
  OFL_ASSIGN_OR_RETURN(const AttentionSecond s, ComposeSecondAttentionGradients(
                                                    t, OptionsOf(c), g[0], g[1], g[2], c.needs(5)));
  if (c.needs(0)) OFL_RETURN_IF_ERROR(c.Set(0, s.dout));
  if (c.needs(1)) OFL_RETURN_IF_ERROR(c.Set(1, Packed(s.q, s.k, s.v)));
  if (c.needs(2)) OFL_RETURN_IF_ERROR(c.Set(2, s.out));
  if (c.needs(3)) OFL_RETURN_IF_ERROR(c.Set(3, s.lse));
  return c.needs(5) ? c.Set(5, s.mask) : OkStatus();
}

void DefinePackedBackward(OpDef& op) {
  op.Input("dout").Input("qkv").Input("out").Input("lse");
  op.Input("rng", InputDef::Kind::kOptional);
  op.Input("mask", InputDef::Kind::kOptional).Output("dqkv");
  DefineAttributes(op);
  op.Attr("heads", AttrType::kInt).Attr("kv_heads", AttrType::kInt);
  op.doc = "Gradient of attention_packed, as one tensor.";
  op.infer = InferPackedBackward;
  op.sbp = PackedBackwardSignatures;
  op.sbp_text = "without dropout, split on the batch";
  op.cost = CostOf<true, true>;
  op.cost_text = kCostText;
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(6) - 1}; };
  op.backward = DifferentiatePackedBackward;
}

OFL_REGISTER_OP("attention", DefineAttention);
OFL_REGISTER_OP("attention_backward", DefineAttentionBackward);
OFL_REGISTER_OP("attention_packed", DefinePacked);
OFL_REGISTER_OP("attention_packed_backward", DefinePackedBackward);

}  // namespace
}  // namespace oneflow_lite
