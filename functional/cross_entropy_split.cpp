// SPDX-License-Identifier: Apache-2.0
#include "functional/cross_entropy_split.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/cross_entropy.h"
#include "functional/reduce.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

using Kind = Sbp::Kind;

bool SplitsClasses(const Sbp& s) { return s.kind == Kind::kSplit && s.axis == 1; }

// How a tensor of rows lies: as the logits' rows do, and `classes` where they split the classes.
NdSbp SbpOfRows(const NdSbp& logits, Sbp classes) {
  NdSbp sbp = logits;
  for (Sbp& s : sbp) {
    if (SplitsClasses(s)) s = classes;
  }
  return sbp;
}

// Every row's largest logit, on all ranks of its line; a shift that no gradient flows through.
StatusOr<Tensor> Largest(const Tensor& logits, const Tensor& part) {
  const GlobalSpec& g = *GlobalOf(logits);
  const int64_t rows = part.shape()[0];
  int parts = 1;
  for (int d = 0; d < g.placement->ndim(); ++d) {
    if (SplitsClasses(g.sbp[d])) parts = g.placement->grid()[d];
  }
  Tensor most;
  if (part.shape()[1] == 0) {  // more ranks than classes
    OFL_ASSIGN_OR_RETURN(most, Full({rows, 1}, Scalar(-HUGE_VAL), part.dtype(), part.device()));
  } else {
    OFL_ASSIGN_OR_RETURN(most, Amax(part.Detach(), Dims{1}, /*keepdim=*/true));
  }
  const Shape shape{logits.shape()[0], parts};
  OFL_ASSIGN_OR_RETURN(Tensor all, FromShard(most, shape, g.placement, g.sbp));
  OFL_ASSIGN_OR_RETURN(all, Boxed(all, g.placement, SbpOfRows(g.sbp, Sbp::Broadcast())));
  OFL_ASSIGN_OR_RETURN(const Tensor mine, ToLocal(all));
  return Amax(mine, Dims{1}, /*keepdim=*/true);
}

// The sum over the ranks of what each has for its rows.
StatusOr<Tensor> SumOverClasses(const Tensor& term, const Tensor& logits) {
  const GlobalSpec& g = *GlobalOf(logits);
  OFL_ASSIGN_OR_RETURN(const Tensor sum, FromShard(term, Shape{logits.shape()[0]}, g.placement,
                                                   SbpOfRows(g.sbp, Sbp::PartialSum())));
  return Boxed(sum, g.placement, SbpOfRows(g.sbp, Sbp::Broadcast()));
}

// Logits less their row's largest, of this rank's classes; and log sum exp of that over all ranks'.
struct Shifted {
  Tensor logits;   // local
  Tensor log_sum;  // global, [rows]
};

StatusOr<Shifted> Shift(const Tensor& logits, const Tensor& part) {
  Shifted x;
  OFL_ASSIGN_OR_RETURN(const Tensor most, Largest(logits, part));
  OFL_ASSIGN_OR_RETURN(x.logits, Sub(part, most));
  OFL_ASSIGN_OR_RETURN(Tensor terms, Exp(x.logits));
  OFL_ASSIGN_OR_RETURN(terms, Sum(terms, Dims{1}));
  OFL_ASSIGN_OR_RETURN(x.log_sum, SumOverClasses(terms, logits));
  OFL_ASSIGN_OR_RETURN(x.log_sum, Log(x.log_sum));
  return x;
}

}  // namespace

bool HasSplitClasses(const Tensor& logits) {
  const GlobalSpec* g = GlobalOf(logits);
  if (!g || logits.ndim() != 2) return false;
  int classes = 0;
  for (const Sbp& s : g->sbp) {
    classes += SplitsClasses(s);
    if (s.kind == Kind::kPartialSum) return false;
  }
  return classes == 1;
}

StatusOr<Tensor> BesideClasses(const Tensor& rows, const Tensor& logits) {
  const GlobalSpec& g = *GlobalOf(logits);
  return Boxed(rows, g.placement, SbpOfRows(g.sbp, Sbp::Broadcast()));
}

StatusOr<Tensor> OfEachRow(const Tensor& number, const Tensor& x) {
  const GlobalSpec* g = GlobalOf(x);
  const int64_t rows = x.shape()[0];
  if (!g) return Expand(number, Dims{rows});
  NdSbp whole = g->sbp, sbp = g->sbp;
  for (size_t d = 0; d < sbp.size(); ++d) {
    whole[d] = Sbp::Broadcast();
    if (sbp[d] != Sbp::Split(0)) sbp[d] = Sbp::Broadcast();
  }
  OFL_ASSIGN_OR_RETURN(const Tensor everywhere, Boxed(number, g->placement, whole));
  const GlobalScope local(nullptr, {});
  Tensor each = GlobalOf(everywhere)->local;
  if (each.defined()) {
    OFL_ASSIGN_OR_RETURN(each, Expand(each, Dims{g->local.shape()[0]}));
  }
  return MakeGlobal(Shape{rows}, number.dtype(), {g->placement, sbp, std::move(each), false});
}

StatusOr<CrossEntropyRows> SplitClassRows(const Tensor& logits, const Tensor& target,
                                          int64_t ignore_index, double smoothing) {
  static const OpExpr& numbers = OpBuilder("cross_entropy_parts")
                                     .Input("in")
                                     .Input("target")
                                     .Output("parts")
                                     .Attr("ignore_index")
                                     .Attr("label_smoothing")
                                     .Attr("first")
                                     .Attr("classes")
                                     .Attr("parts")
                                     .Get();
  static const OpExpr& merge = OpBuilder("cross_entropy_of_parts")
                                   .Input("in")
                                   .Input("target")
                                   .Input("parts")
                                   .Output("loss")
                                   .Output("stats")
                                   .Attr("ignore_index")
                                   .Attr("label_smoothing")
                                   .Attr("classes")
                                   .Get();
  constexpr int64_t kNone = 0;
  const GlobalSpec& g = *GlobalOf(logits);
  OFL_ASSIGN_OR_RETURN(const Tensor rows, BesideClasses(target, logits));
  int64_t count = 1;
  NdSbp whole = g.sbp;  // of [parts, rows, numbers]
  for (int d = 0; d < g.placement->ndim(); ++d) {
    if (SplitsClasses(g.sbp[d])) {
      count = g.placement->grid()[d];
      whole[d] = Sbp::Broadcast();
    } else if (g.sbp[d].kind == Kind::kSplit) {
      whole[d] = Sbp::Split(1);
    }
  }
  OFL_ASSIGN_OR_RETURN(
      Tensor parts, Call(numbers, {logits, rows}, {ignore_index, smoothing, kNone, kNone, count}));
  OFL_ASSIGN_OR_RETURN(parts, Boxed(parts, g.placement, whole));
  OFL_ASSIGN_OR_RETURN(TensorList out,
                       CallAll(merge, {logits, rows, parts}, {ignore_index, smoothing, kNone}));
  return CrossEntropyRows{std::move(out[0]), std::move(out[1])};
}

StatusOr<CrossEntropyGradients> SplitClassRowsInPlace(const Tensor& logits, const Tensor& target,
                                                      const Tensor& scale, int64_t ignore_index,
                                                      double smoothing) {
  OFL_ASSIGN_OR_RETURN(CrossEntropyRows rows,
                       SplitClassRows(logits, target, ignore_index, smoothing));
  Tensor dloss = scale;
  if (scale.defined()) {
    OFL_ASSIGN_OR_RETURN(rows.loss, Mul(rows.loss, scale));
  } else {
    const GlobalScope whole(absl::MakeConstSpan(&logits, 1));
    OFL_ASSIGN_OR_RETURN(dloss,
                         Full({}, Scalar(1.0), ComputeType(logits.dtype()), logits.device()));
  }
  OFL_ASSIGN_OR_RETURN(dloss, OfEachRow(dloss, logits));
  OFL_ASSIGN_OR_RETURN(Tensor dlogits, CrossEntropyBackwardInto(logits, target, rows.stats, dloss,
                                                                ignore_index, smoothing));
  return CrossEntropyGradients{std::move(rows.loss), std::move(dlogits)};
}

StatusOr<Tensor> SplitClassLogSoftmax(const Tensor& logits) {
  const GlobalScope local(nullptr, {});
  OFL_ASSIGN_OR_RETURN(const Tensor wide, Cast(logits, ComputeType(logits.dtype())));
  OFL_ASSIGN_OR_RETURN(const Tensor part, ToLocal(wide));
  OFL_ASSIGN_OR_RETURN(const Shifted x, Shift(wide, part));
  const GlobalSpec& g = *GlobalOf(logits);
  OFL_ASSIGN_OR_RETURN(const Tensor shifted,
                       FromShard(x.logits, logits.shape(), g.placement, g.sbp));
  OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(x.log_sum, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Sub(shifted, column));
  return Cast(y, logits.dtype());
}

}  // namespace oneflow_lite::functional
