// SPDX-License-Identifier: Apache-2.0
#include "functional/cross_entropy_split.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/unary.h"
#include "functional/view.h"

namespace oneflow_lite::functional {
namespace {

using Kind = Sbp::Kind;

bool SplitsClasses(const Sbp& s) { return s.kind == Kind::kSplit && s.axis == 1; }

// How a tensor of rows lies: as the logits' rows do, and `classes` where they split the classes.
NdSbp Rows(const NdSbp& logits, Sbp classes) {
  NdSbp sbp = logits;
  for (Sbp& s : sbp) {
    if (SplitsClasses(s)) s = classes;
  }
  return sbp;
}

// What one rank's classes give.
struct Part {
  Tensor logits;  // [rows, classes] here
  Tensor target;  // counted from the first class here
  Tensor here;    // which rows' target is one of these classes
};

StatusOr<Part> PartOf(const Tensor& logits, const Tensor& target, int64_t ignore_index) {
  const GlobalSpec& g = *GlobalOf(logits);
  const Placement& p = *g.placement;
  Part part;
  OFL_ASSIGN_OR_RETURN(part.logits, ToLocal(logits));
  const int64_t first = ShardStart(logits.shape(), p, g.sbp, p.Here(), 1);
  const int64_t classes = part.logits.shape()[1];
  OFL_ASSIGN_OR_RETURN(const Tensor t, ToLocal(target));
  OFL_ASSIGN_OR_RETURN(part.target, Sub(t, Scalar(first)));
  OFL_ASSIGN_OR_RETURN(const Tensor after, Ge(part.target, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(const Tensor before, Lt(part.target, Scalar(classes)));
  OFL_ASSIGN_OR_RETURN(const Tensor counts, Ne(t, Scalar(ignore_index)));
  OFL_ASSIGN_OR_RETURN(part.here, Mul(after, before));
  OFL_ASSIGN_OR_RETURN(part.here, Mul(part.here, counts));
  OFL_ASSIGN_OR_RETURN(part.target, Where(part.here, part.target, Scalar(0)));
  return part;
}

// Every row's largest logit, on all ranks of its line; a shift that no gradient flows through.
StatusOr<Tensor> Largest(const Tensor& logits, const Part& part) {
  const GlobalSpec& g = *GlobalOf(logits);
  const int64_t rows = part.logits.shape()[0];
  int parts = 1;
  for (int d = 0; d < g.placement->ndim(); ++d) {
    if (SplitsClasses(g.sbp[d])) parts = g.placement->grid()[d];
  }
  Tensor most;
  if (part.logits.shape()[1] == 0) {  // more ranks than classes
    OFL_ASSIGN_OR_RETURN(
        most, Full({rows, 1}, Scalar(-HUGE_VAL), part.logits.dtype(), part.logits.device()));
  } else {
    OFL_ASSIGN_OR_RETURN(most, Amax(part.logits.Detach(), Dims{1}, /*keepdim=*/true));
  }
  const Shape shape{logits.shape()[0], parts};
  OFL_ASSIGN_OR_RETURN(Tensor all, FromShard(most, shape, g.placement, g.sbp));
  OFL_ASSIGN_OR_RETURN(all, Boxed(all, g.placement, Rows(g.sbp, Sbp::Broadcast())));
  OFL_ASSIGN_OR_RETURN(const Tensor mine, ToLocal(all));
  return Amax(mine, Dims{1}, /*keepdim=*/true);
}

// The sum over the ranks of what each has for its rows.
StatusOr<Tensor> SumOverClasses(const Tensor& term, const Tensor& logits) {
  const GlobalSpec& g = *GlobalOf(logits);
  OFL_ASSIGN_OR_RETURN(const Tensor sum, FromShard(term, Shape{logits.shape()[0]}, g.placement,
                                                   Rows(g.sbp, Sbp::PartialSum())));
  return Boxed(sum, g.placement, Rows(g.sbp, Sbp::Broadcast()));
}

}  // namespace

bool HasSplitClasses(const Tensor& logits) {
  const GlobalSpec* g = GlobalOf(logits);
  if (!g || logits.ndim() != 2 || g->placement->Here().empty()) return false;
  int classes = 0;
  for (const Sbp& s : g->sbp) {
    classes += SplitsClasses(s);
    if (s.kind == Kind::kPartialSum) return false;
  }
  return classes == 1;
}

StatusOr<Tensor> SplitClassLosses(const Tensor& logits, const Tensor& target,
                                  int64_t ignore_index) {
  const GlobalSpec& g = *GlobalOf(logits);
  const GlobalScope local(nullptr, {});
  OFL_ASSIGN_OR_RETURN(const Tensor rows,
                       Boxed(target, g.placement, Rows(g.sbp, Sbp::Broadcast())));
  OFL_ASSIGN_OR_RETURN(const Tensor wide, Cast(logits, ComputeType(logits.dtype())));
  OFL_ASSIGN_OR_RETURN(const Part part, PartOf(wide, rows, ignore_index));
  OFL_ASSIGN_OR_RETURN(const Tensor most, Largest(wide, part));
  // log sum exp(x - most), over all ranks
  OFL_ASSIGN_OR_RETURN(const Tensor shifted, Sub(part.logits, most));
  OFL_ASSIGN_OR_RETURN(Tensor terms, Exp(shifted));
  OFL_ASSIGN_OR_RETURN(terms, Sum(terms, Dims{1}));
  OFL_ASSIGN_OR_RETURN(Tensor sum, SumOverClasses(terms, wide));
  OFL_ASSIGN_OR_RETURN(sum, Log(sum));
  // x[target] - most, which one rank has
  Tensor at;
  if (part.logits.shape()[1] == 0) {
    OFL_ASSIGN_OR_RETURN(at, Sum(shifted, Dims{1}));
  } else {
    OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(part.target, 1));
    OFL_ASSIGN_OR_RETURN(at, Gather(shifted, 1, column));
    OFL_ASSIGN_OR_RETURN(at, Reshape(at, {-1}));
    OFL_ASSIGN_OR_RETURN(at, Where(part.here, at, Scalar(0)));
  }
  OFL_ASSIGN_OR_RETURN(at, SumOverClasses(at, wide));
  OFL_ASSIGN_OR_RETURN(const Tensor loss, Sub(sum, at));
  OFL_ASSIGN_OR_RETURN(const Tensor ignored, Eq(rows, Scalar(ignore_index)));
  return Where(ignored, Scalar(0), loss);
}

}  // namespace oneflow_lite::functional
