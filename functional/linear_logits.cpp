// SPDX-License-Identifier: Apache-2.0
#include "functional/linear_logits.h"

#include "functional/creation.h"
#include "functional/global.h"
#include "functional/matmul.h"
#include "functional/view.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"

namespace oneflow_lite::functional {
namespace {

// The logits of rows x [n, in]. Their rows begin at multiples of 128 bytes, with room behind them:
// a product with rows that begin anywhere takes several times as long.
StatusOr<Tensor> PaddedLogits(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t classes = weight.shape()[0],
                multiple = 128 / static_cast<int64_t>(SizeOf(x.dtype()));
  const int64_t room = (classes + multiple - 1) / multiple * multiple;
  OFL_ASSIGN_OR_RETURN(Tensor rows, Empty({x.shape()[0], room}, x.dtype(), x.device()));
  OFL_ASSIGN_OR_RETURN(rows, Narrow(rows, 1, 0, classes));
  OFL_ASSIGN_OR_RETURN(const Tensor columns, Transpose(weight, 0, 1));
  return MatmulInto(rows, x, columns, bias);
}

// How logits lie that each rank has of its shards of rows and weight alone; nothing where these do
// not fit together.
std::optional<NdSbp> LogitsHere(const Tensor& x, const HeadOperands& o) {
  const GlobalSpec *rows = GlobalOf(x), *weight = GlobalOf(o.weight), *bias = GlobalOf(o.bias);
  if (!rows || !weight || rows->placement != weight->placement || (o.bias.defined() && !bias)) {
    return std::nullopt;
  }
  if (bias && (bias->placement != rows->placement || bias->sbp != weight->sbp)) return std::nullopt;
  NdSbp sbp;
  for (size_t d = 0; d < rows->sbp.size(); ++d) {
    const Sbp r = rows->sbp[d], w = weight->sbp[d];
    if (r == Sbp::Broadcast() && w == Sbp::Split(0)) {
      sbp.push_back(Sbp::Split(1));
    } else if (w == Sbp::Broadcast() && (r == w || r == Sbp::Split(0))) {
      sbp.push_back(r);
    } else {
      return std::nullopt;
    }
  }
  return sbp;
}

}  // namespace

StatusOr<Tensor> LogitsOf(const Tensor& x, const HeadOperands& o) {
  const bool recorded =
      GradEnabled() && (autograd::RequiresGrad(x) || autograd::RequiresGrad(o.weight) ||
                        (o.bias.defined() && autograd::RequiresGrad(o.bias)));
  if (recorded) return Linear(x, o.weight, o.bias);
  if (!GlobalOf(x) && !GlobalOf(o.weight)) return PaddedLogits(x, o.weight, o.bias);
  const std::optional<NdSbp> sbp = LogitsHere(x, o);
  if (!sbp) return Linear(x, o.weight, o.bias);
  const GlobalScope local(nullptr, {});
  const GlobalSpec &rows = *GlobalOf(x), &weight = *GlobalOf(o.weight);
  Tensor logits = rows.local;
  if (logits.defined()) {  // this process takes part
    const Tensor bias = o.bias.defined() ? GlobalOf(o.bias)->local : Tensor();
    OFL_ASSIGN_OR_RETURN(logits, PaddedLogits(rows.local, weight.local, bias));
  }
  return MakeGlobal(Shape{x.shape()[0], o.weight.shape()[0]}, x.dtype(),
                    {rows.placement, *sbp, std::move(logits), false});
}

Status MeetClasses(HeadOperands* o) {
  const GlobalSpec *weight = GlobalOf(o->weight), *x = GlobalOf(o->x);
  if (!weight || !x || !GlobalOf(o->target) || x->placement != weight->placement) return OkStatus();
  NdSbp rows = x->sbp;
  bool split = false;
  for (size_t d = 0; d < rows.size(); ++d) {
    const bool classes = weight->sbp[d] == Sbp::Split(0);
    if (!classes && weight->sbp[d] != Sbp::Broadcast()) return OkStatus();
    if (classes || rows[d] != Sbp::Split(0)) rows[d] = Sbp::Broadcast();
    split = split || classes;
  }
  if (!split) return OkStatus();
  OFL_ASSIGN_OR_RETURN(o->x, Boxed(o->x, weight->placement, rows));
  OFL_ASSIGN_OR_RETURN(o->target, Boxed(o->target, weight->placement, rows));
  if (!GlobalOf(o->bias)) return OkStatus();
  OFL_ASSIGN_OR_RETURN(o->bias, Boxed(o->bias, weight->placement, weight->sbp));
  return OkStatus();
}

}  // namespace oneflow_lite::functional
