// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_gradient.h"

#include <limits>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/matmul.h"
#include "functional/select.h"
#include "functional/triangle.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using functional::AttentionOptions;

// a b, of batches of matrices.
Term Times(const Term& a, const Term& b) {
  if (a.nothing()) return a;
  if (b.nothing()) return b;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Matmul(x, y); });
}
Term Transposed(const Term& a) {
  return !a.ok() || a.nothing() ? a : Term{functional::Transpose(*a.value, -1, -2)};
}
Term Shaped(const Term& a, const Dims& shape) {
  return !a.ok() || a.nothing() ? a : Term{functional::Reshape(*a.value, shape)};
}
Term SumOfRows(const Term& a) { return SumOver(a, -1); }

// Where the weights are kept: as the kernels draw (primitive/attention.h).
StatusOr<Tensor> DropoutFactors(const Shape& scores, const AttentionOptions& o, Device device) {
  static const OpExpr& rand = OpBuilder("rand")
                                  .Output("out")
                                  .Attr("shape")
                                  .Attr("dtype")
                                  .Attr("device")
                                  .Attr("seed")
                                  .Attr("offset")
                                  .Get();
  OFL_ASSIGN_OR_RETURN(const Tensor drawn,
                       Call(rand, {}, {scores.dims(), DType::kFloat32, device, o.seed, o.offset}));
  OFL_ASSIGN_OR_RETURN(const Tensor kept, functional::Ge(drawn, Scalar(o.dropout)));
  return functional::Where(kept, Scalar(o.dropout < 1 ? 1 / (1 - o.dropout) : 0.0), Scalar(0.0));
}

// Attention with its heads as [batch, kv_head, member of its group, token, element], in the compute
// type. k, v and what belongs to them have one member.
class Composed {
 public:
  Composed(const AttentionTensors& t, const AttentionOptions& o)
      : t_(t),
        o_(o),
        wide_(ComputeType(t.q.dtype())),
        batch_(t.q.shape()[0]),
        queries_(t.q.shape()[1]),
        keys_(t.k.shape()[1]),
        kv_heads_(t.k.shape()[2]),
        group_(t.q.shape()[2] / std::max<int64_t>(1, kv_heads_)) {
    q = Heads(t.q, group_);
    k = Heads(t.k, 1);
    v = Heads(t.v, 1);
    dout = Heads(t.dout, group_);
    out = Heads(t.out, group_);
    lse = Rows(t.lse);
    dlse = Rows(t.dlse);
    weights = Weights();
    if (o.dropout > 0) factors = Factors();
  }

  Term q, k, v, dout, out, lse, dlse;
  Term weights;  // before dropout
  Term factors;  // of dropout; nothing where there is none

  Term Dropped(const Term& x) const { return o_.dropout > 0 ? x * factors : x; }
  Term Heads(const Tensor& x, int64_t members) const {
    if (!x.defined()) return {};
    Term heads = {functional::Transpose(x, 1, 2)};
    if (heads.ok()) heads = {functional::Cast(*heads.value, wide_)};
    return Shaped(heads, {batch_, x.shape()[2] / std::max<int64_t>(1, members), members,
                          x.shape()[1], x.shape()[3]});
  }
  // Sums over what shares a head of k and v, as a tensor of the shape of `like`.
  StatusOr<Tensor> Tokens(const Term& x, const Tensor& like) const {
    const Shape& s = like.shape();
    const int64_t members = s[2] / std::max<int64_t>(1, kv_heads_);
    Term heads = SumTo(x, {batch_, kv_heads_, members, s[1], s[3]});
    heads = Shaped(heads, {s[0], s[2], s[1], s[3]});
    if (!heads.ok() || heads.nothing()) return heads.value;
    OFL_ASSIGN_OR_RETURN(const Tensor tokens, functional::Transpose(*heads.value, 1, 2));
    return functional::Cast(tokens, like.dtype());
  }
  // Of the scores' gradient, that of the mask.
  StatusOr<Tensor> OfMask(const Term& scores) const {
    const Term all = Shaped(scores, {batch_, kv_heads_ * group_, queries_, keys_});
    return As(SumTo(all, t_.mask.shape()), t_.mask.dtype(), t_.mask.shape()).value;
  }
  // Of the rows' gradient, that of lse.
  StatusOr<Tensor> OfRows(const Term& rows) const {
    return Shaped(rows, t_.lse.shape().dims()).value;
  }

 private:
  Term Rows(const Tensor& x) const {
    if (!x.defined()) return {};
    return Shaped({functional::Cast(x, wide_)}, {batch_, kv_heads_, group_, queries_, 1});
  }

  Term Masked(const Term& scores) const {
    if (!scores.ok() || !t_.mask.defined()) return scores;
    const Shape& s = t_.mask.shape();
    const int64_t heads = s[1] == 1 ? 1 : kv_heads_;
    const Term mask =
        Shaped({t_.mask}, {s[0], heads, s[1] / std::max<int64_t>(1, heads), s[2], s[3]});
    if (!mask.ok()) return mask;
    if (t_.mask.dtype() == DType::kBool) {
      return {functional::Where(*mask.value, *scores.value, Scalar(kLowest))};
    }
    const Term wide = {functional::Cast(*mask.value, wide_)};
    return scores + wide;
  }
  Term Causally(const Term& scores) const {
    if (!scores.ok() || o_.causal == 0) return scores;
    const auto seen = [&]() -> StatusOr<Tensor> {
      OFL_ASSIGN_OR_RETURN(const Tensor ones,
                           functional::Ones({queries_, keys_}, DType::kBool, t_.q.device()));
      return functional::Tril(ones, o_.causal == 1 ? 0 : keys_ - queries_);
    }();
    if (!seen.ok()) return {seen};
    return {functional::Where(*seen, *scores.value, Scalar(kLowest))};
  }
  // exp(scores - lse). A row that saw nothing has minus infinity in both: 0, and so its gradient.
  Term Weights() const {
    const Term scores = Causally(Masked(Times(q, Transposed(k)) * o_.scale));
    if (!lse.ok()) return lse;
    const StatusOr<Tensor> saw_nothing = functional::Eq(*lse.value, Scalar(kLowest));
    if (!saw_nothing.ok()) return {saw_nothing};
    const Term base = {functional::Where(*saw_nothing, Scalar(-kLowest), *lse.value)};
    return Apply(functional::Exp, scores - base);
  }
  Term Factors() const {
    const Shape scores{batch_, kv_heads_ * group_, queries_, keys_};
    Term drawn = {DropoutFactors(scores, o_, t_.q.device())};
    if (drawn.ok()) drawn = {functional::Cast(*drawn.value, wide_)};
    return Shaped(drawn, {batch_, kv_heads_, group_, queries_, keys_});
  }

  static constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const AttentionTensors& t_;
  const AttentionOptions& o_;
  const DType wide_;
  const int64_t batch_, queries_, keys_, kv_heads_, group_;
};

Status CheckFactorsAreKnown(const AttentionTensors& t, const AttentionOptions& o) {
  if (o.dropout == 0 || t.q.device().type != DeviceType::kCUDA || SizeOf(t.q.dtype()) != 2) {
    return OkStatus();
  }
  return Error(ErrorKind::kNotImplemented, "attention(): with dropout, ", Name(t.q.dtype()),
               " on CUDA has no gradient of the mask and no second derivative: the kernel draws by "
               "itself what it drops; use float32, or dropout_p=0");
}

}  // namespace

StatusOr<AttentionGradients> ComposeAttentionGradients(const AttentionTensors& t,
                                                       const AttentionOptions& o, bool of_mask) {
  OFL_RETURN_IF_ERROR(CheckFactorsAreKnown(t, o));
  const Composed c(t, o);
  const Term dp = c.Dropped(Times(c.dout, Transposed(c.v)));
  const Term ds = c.weights * (dp - SumOfRows(c.dout * c.out) + c.dlse);
  AttentionGradients g;
  OFL_ASSIGN_OR_RETURN(g.q, c.Tokens(Times(ds, c.k) * o.scale, t.q));
  OFL_ASSIGN_OR_RETURN(g.k, c.Tokens(Times(Transposed(ds), c.q) * o.scale, t.k));
  OFL_ASSIGN_OR_RETURN(g.v, c.Tokens(Times(Transposed(c.Dropped(c.weights)), c.dout), t.v));
  if (of_mask) {
    OFL_ASSIGN_OR_RETURN(g.mask, c.OfMask(ds));
  }
  return g;
}

// With p the weights, f the factors of dropout, dp = (dout v^T) f, delta = sum(dout out) and
// ds = p (dp - delta), attention_backward gives dq = scale ds k, dk = scale ds^T q and
// dv = (p f)^T dout, of which a, b and c are the gradients:
//   g = scale (a k^T + q b^T), of ds;      h = g (dp - delta) + (dout c^T) f, of p;
//   u = p g f, of dout v^T;   w = -sum(p g), of delta;   r = p h, of the scores.
StatusOr<AttentionSecond> ComposeSecondAttentionGradients(const AttentionTensors& t,
                                                          const AttentionOptions& o,
                                                          const Tensor& of_dq, const Tensor& of_dk,
                                                          const Tensor& of_dv, bool of_mask) {
  OFL_RETURN_IF_ERROR(CheckFactorsAreKnown(t, o));
  const Composed x(t, o);
  const int64_t group = t.q.shape()[2] / std::max<int64_t>(1, t.k.shape()[2]);
  const Term a = x.Heads(of_dq, group), b = x.Heads(of_dk, 1), c = x.Heads(of_dv, 1);
  const Term dp = x.Dropped(Times(x.dout, Transposed(x.v)));
  const Term slope = dp - SumOfRows(x.dout * x.out), ds = x.weights * slope;
  const Term g = (Times(a, Transposed(x.k)) + Times(x.q, Transposed(b))) * o.scale;
  const Term h = g * slope + x.Dropped(Times(x.dout, Transposed(c)));
  const Term pg = x.weights * g, u = x.Dropped(pg), w = -SumOfRows(pg), r = x.weights * h;
  AttentionSecond s;
  OFL_ASSIGN_OR_RETURN(s.q, x.Tokens((Times(ds, b) + Times(r, x.k)) * o.scale, t.q));
  OFL_ASSIGN_OR_RETURN(
      s.k, x.Tokens((Times(Transposed(ds), a) + Times(Transposed(r), x.q)) * o.scale, t.k));
  OFL_ASSIGN_OR_RETURN(s.v, x.Tokens(Times(Transposed(u), x.dout), t.v));
  OFL_ASSIGN_OR_RETURN(
      s.dout, x.Tokens(Times(x.Dropped(x.weights), c) + Times(u, x.v) + x.out * w, t.dout));
  OFL_ASSIGN_OR_RETURN(s.out, x.Tokens(x.dout * w, t.out));
  OFL_ASSIGN_OR_RETURN(s.lse, x.OfRows(-SumOfRows(r)));
  if (of_mask) {
    OFL_ASSIGN_OR_RETURN(s.mask, x.OfMask(r));
  }
  return s;
}

}  // namespace oneflow_lite
