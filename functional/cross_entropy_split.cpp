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
  if (!g || logits.ndim() != 2 || g->placement->Here().empty()) return false;
  int classes = 0;
  for (const Sbp& s : g->sbp) {
    classes += SplitsClasses(s);
    if (s.kind == Kind::kPartialSum) return false;
  }
  return classes == 1;
}

StatusOr<Tensor> SplitClassLosses(const Tensor& logits, const Tensor& target, int64_t ignore_index,
                                  double smoothing) {
  const GlobalSpec& g = *GlobalOf(logits);
  const GlobalScope local(nullptr, {});
  OFL_ASSIGN_OR_RETURN(const Tensor rows,
                       Boxed(target, g.placement, Rows(g.sbp, Sbp::Broadcast())));
  OFL_ASSIGN_OR_RETURN(const Tensor wide, Cast(logits, ComputeType(logits.dtype())));
  OFL_ASSIGN_OR_RETURN(const Part part, PartOf(wide, rows, ignore_index));
  OFL_ASSIGN_OR_RETURN(const Shifted x, Shift(wide, part.logits));
  // x[target] - most, which one rank has
  Tensor at;
  if (part.logits.shape()[1] == 0) {
    OFL_ASSIGN_OR_RETURN(at, Sum(x.logits, Dims{1}));
  } else {
    OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(part.target, 1));
    OFL_ASSIGN_OR_RETURN(at, Gather(x.logits, 1, column));
    OFL_ASSIGN_OR_RETURN(at, Reshape(at, {-1}));
    OFL_ASSIGN_OR_RETURN(at, Where(part.here, at, Scalar(0)));
  }
  if (smoothing > 0) {  // the target's share, and that of the mean over all classes
    const auto classes = static_cast<double>(logits.shape()[1]);
    OFL_ASSIGN_OR_RETURN(Tensor mean, Sum(x.logits, Dims{1}));
    OFL_ASSIGN_OR_RETURN(mean, Mul(mean, Scalar(smoothing / classes)));
    OFL_ASSIGN_OR_RETURN(at, Mul(at, Scalar(1 - smoothing)));
    OFL_ASSIGN_OR_RETURN(at, Add(at, mean));
  }
  OFL_ASSIGN_OR_RETURN(at, SumOverClasses(at, wide));
  OFL_ASSIGN_OR_RETURN(const Tensor loss, Sub(x.log_sum, at));
  OFL_ASSIGN_OR_RETURN(const Tensor ignored, Eq(rows, Scalar(ignore_index)));
  return Where(ignored, Scalar(0), loss);
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
