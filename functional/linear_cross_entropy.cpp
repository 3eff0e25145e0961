// SPDX-License-Identifier: Apache-2.0
#include "functional/linear_cross_entropy.h"

#include <algorithm>

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/cross_entropy.h"
#include "functional/cross_entropy_rows.h"
#include "functional/cross_entropy_split.h"
#include "functional/linear_logits.h"
#include "functional/matmul.h"
#include "functional/nll_loss.h"
#include "functional/reduce.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/engine.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/owned.h"

namespace oneflow_lite::functional {
namespace {

constexpr char kName[] = "linear_cross_entropy";

struct Options {
  int64_t chunks, ignore_index;
  double smoothing;
  std::string reduction;
};

// Of x, weight and bias; each only where it is wanted.
struct Gradients {
  Tensor x, weight, bias;
};
struct Wanted {
  bool x, weight, bias;
};

// Adds the weight's gradient and the bias' part by part: those of 16 bits in float32.
Status Accumulate(Tensor* total, Tensor part) {
  if (!total->defined()) {
    *total = std::move(part);
    return OkStatus();
  }
  OFL_ASSIGN_OR_RETURN(*total, Cast(*total, ComputeType(total->dtype())));
  return AddInto(*total, part).status();
}

// What the gradient of a part's logits [n, classes] gives to the operands; dx is appended.
Status AddPart(const Tensor& dlogits, const Tensor& x, const HeadOperands& o, const Wanted& wanted,
               TensorList* dx, Gradients* sums) {
  if (wanted.x) {
    OFL_ASSIGN_OR_RETURN(Tensor part, Matmul(dlogits, o.weight));
    dx->push_back(std::move(part));
  }
  if (wanted.weight) {
    OFL_ASSIGN_OR_RETURN(Tensor columns, Transpose(dlogits, 0, 1));
    OFL_ASSIGN_OR_RETURN(Tensor part, Matmul(columns, x));
    OFL_RETURN_IF_ERROR(Accumulate(&sums->weight, std::move(part)));
  }
  if (wanted.bias) {
    OFL_ASSIGN_OR_RETURN(Tensor part, Sum(dlogits, Dims{0}));
    OFL_RETURN_IF_ERROR(Accumulate(&sums->bias, std::move(part)));
  }
  return OkStatus();
}

StatusOr<Tensor> Joined(const TensorList& parts) {
  if (parts.size() == 1) return parts[0];
  return Cat(parts, 0);
}

// The sums in the operands' dtypes, and dx as one tensor.
Status Finish(const HeadOperands& o, const TensorList& dx, Gradients* sums) {
  if (!dx.empty()) {
    OFL_ASSIGN_OR_RETURN(sums->x, Joined(dx));
  }
  if (sums->weight.defined()) {
    OFL_ASSIGN_OR_RETURN(sums->weight, Cast(sums->weight, o.weight.dtype()));
  }
  if (sums->bias.defined()) {
    OFL_ASSIGN_OR_RETURN(sums->bias, Cast(sums->bias, o.bias.dtype()));
  }
  return OkStatus();
}

// Calls f(part's x, part's target) for each part of the rows. Rows that are split over ranks go at
// once: a part of them would lie on some of the ranks.
template <class F>
Status ForParts(const HeadOperands& o, int64_t chunks, const F& f) {
  const int64_t rows = o.x.shape()[0];
  const GlobalSpec* g = GlobalOf(o.x);
  const bool spread = g && std::find(g->sbp.begin(), g->sbp.end(), Sbp::Split(0)) != g->sbp.end();
  const int64_t parts = spread ? 1 : std::max<int64_t>(1, std::min(chunks, rows));
  if (parts == 1) return f(o.x, o.target, int64_t{0}, rows);  // a slice moves rows that are split
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t begin = rows * i / parts, count = rows * (i + 1) / parts - begin;
    OFL_ASSIGN_OR_RETURN(Tensor x, Narrow(o.x, 0, begin, count));
    OFL_ASSIGN_OR_RETURN(Tensor target, Narrow(o.target, 0, begin, count));
    OFL_RETURN_IF_ERROR(f(x, target, begin, count));
  }
  return OkStatus();
}

// The losses of all rows and, where wanted, the gradients of scale times their sum.
StatusOr<Tensor> RunForward(const HeadOperands& o, const Options& options, const Tensor& scale,
                            const Wanted& wanted, Gradients* sums) {
  const bool gradients = wanted.x || wanted.weight || wanted.bias;
  TensorList losses, dx;
  OFL_RETURN_IF_ERROR(ForParts(
      o, options.chunks, [&](const Tensor& x, const Tensor& target, int64_t, int64_t) -> Status {
        OFL_ASSIGN_OR_RETURN(const Tensor logits, LogitsOf(x, o));
        if (!gradients) {
          OFL_ASSIGN_OR_RETURN(CrossEntropyRows rows,
                               FusedRows(logits, target, options.ignore_index, options.smoothing));
          losses.push_back(std::move(rows.loss));
          return OkStatus();
        }
        OFL_ASSIGN_OR_RETURN(
            CrossEntropyGradients rows,
            FusedRowsInPlace(logits, target, scale, options.ignore_index, options.smoothing));
        losses.push_back(std::move(rows.loss));
        return AddPart(rows.gradient, x, o, wanted, &dx, sums);
      }));
  OFL_RETURN_IF_ERROR(Finish(o, dx, sums));
  return Joined(losses);
}

// The gradients for dloss [N], from logits that are computed anew. Where autograd records, all at
// once, and recorded.
StatusOr<Gradients> Recompute(const HeadOperands& o, const Options& options, const Tensor& dloss,
                              const Wanted& wanted) {
  Gradients sums;
  TensorList dx;
  OFL_RETURN_IF_ERROR(ForParts(
      o, GradEnabled() ? 1 : options.chunks,
      [&](const Tensor& x, const Tensor& target, int64_t begin, int64_t count) -> Status {
        OFL_ASSIGN_OR_RETURN(const Tensor logits, LogitsOf(x, o));
        Tensor factor = dloss;
        if (count < o.x.shape()[0]) {
          OFL_ASSIGN_OR_RETURN(factor, Narrow(dloss, 0, begin, count));
        }
        OFL_ASSIGN_OR_RETURN(const CrossEntropyRows rows,
                             FusedRows(logits, target, options.ignore_index, options.smoothing));
        OFL_ASSIGN_OR_RETURN(const Tensor dlogits,
                             CrossEntropyBackward(logits, target, rows.stats.Detach(), factor,
                                                  options.ignore_index, options.smoothing));
        return AddPart(dlogits, x, o, wanted, &dx, &sums);
      }));
  OFL_RETURN_IF_ERROR(Finish(o, dx, &sums));
  return sums;
}

// x times a number of its compute type, in its place; the common number 1 leaves it alone.
Status ScaleInto(const Tensor& x, const Tensor& wide) {
  if (!x.defined() || x.numel() == 0) return OkStatus();
  OFL_ASSIGN_OR_RETURN(Tensor rows, Reshape(x, {x.shape()[0], x.numel() / x.shape()[0]}));
  OFL_ASSIGN_OR_RETURN(const Tensor factor, OfEachRow(wide, rows));
  return ScaleRowsInto(rows, factor).status();
}

class LossNode final : public Node {
 public:
  LossNode(Options options, Wanted wanted) : options_(std::move(options)), wanted_(wanted) {}

  Status Save(const HeadOperands& o) {
    const Tensor* const all[] = {&o.x, &o.weight, &o.bias, &o.target};
    saved_.Resize(std::size(all));
    for (size_t i = 0; i < std::size(all); ++i) {
      if (!all[i]->defined()) continue;
      OFL_ASSIGN_OR_RETURN(SavedTensor saved, SavedTensor::Save(*all[i], false));
      saved_.Set(i, std::move(saved));
    }
    return OkStatus();
  }
  // Of the loss itself: the first pass of backward takes them.
  void Keep(Gradients gradients) { ready_ = std::move(gradients); }

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    if (std::optional<Gradients> ready = Take(); ready && !GradEnabled()) {
      OFL_ASSIGN_OR_RETURN(const Tensor factor, Cast(grads[0], ComputeType(grads[0].dtype())));
      for (const Tensor& t : {ready->x, ready->weight, ready->bias}) {
        OFL_RETURN_IF_ERROR(ScaleInto(t, factor));
      }
      return TensorList{ready->x, ready->weight, ready->bias};
    }
    OFL_ASSIGN_OR_RETURN(const TensorList saved, saved_.Unpack(this, kName));
    const HeadOperands o{saved[0], saved[1], saved[2], saved[3]};
    OFL_ASSIGN_OR_RETURN(const Tensor dloss, RowGradients(o, grads[0]));
    OFL_ASSIGN_OR_RETURN(Gradients found, Recompute(o, options_, dloss, wanted_));
    return TensorList{found.x, found.weight, found.bias};
  }
  void ReleaseSaved() override {
    Take();
    saved_.Free();
  }
  std::string name() const override { return "linear_cross_entropy_backward"; }
  void VisitOwned(OwnedWalk& walk) const override {
    Node::VisitOwned(walk);
    saved_.VisitOwned(walk);
  }

 private:
  std::optional<Gradients> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(ready_, std::nullopt);
  }

  // What arrives for the loss, as what arrives for each row.
  StatusOr<Tensor> RowGradients(const HeadOperands& o, const Tensor& grad) const {
    const DType wide = ComputeType(o.x.dtype());
    OFL_ASSIGN_OR_RETURN(Tensor g, Cast(grad, wide));
    if (options_.reduction == "none") return Reshape(g, {o.target.numel()});
    if (options_.reduction == "mean") {
      OFL_ASSIGN_OR_RETURN(Tensor share, MeanWeight(o.target, options_.ignore_index, wide));
      OFL_ASSIGN_OR_RETURN(g, Mul(g, share));
    }
    return Expand(g, Dims{o.target.numel()});
  }

  const Options options_;
  const Wanted wanted_;
  SavedTensors saved_;
  std::mutex mutex_;
  std::optional<Gradients> ready_;
};

Status CheckHeadOperands(const HeadOperands& o, const Options& options) {
  OFL_RETURN_IF_ERROR(CheckReduction(kName, options.reduction));
  if (options.chunks < 1) {
    return BadValue(kName, "chunks", absl::StrCat(options.chunks), "at least 1");
  }
  if (!(options.smoothing >= 0 && options.smoothing <= 1)) {
    return BadValue(kName, "label_smoothing", absl::StrCat(options.smoothing), "in [0, 1]");
  }
  if (!IsFloating(o.x.dtype())) {
    return UnsupportedDType(kName, "input", o.x.dtype(), kFloatingDTypes);
  }
  if (o.weight.ndim() != 2) return ShapeMismatch(kName, "weight", o.weight.shape(), "2 dims");
  const int last = o.x.ndim() - 1;
  if (last < 0 || o.x.shape()[last] != o.weight.shape()[1]) {
    return ShapeMismatch(kName, "input", o.x.shape(),
                         absl::StrCat("a last dim of ", o.weight.shape()[1],
                                      " to go with the weight's ", o.weight.shape().ToString()));
  }
  const Shape classes{o.weight.shape()[0]};
  if (o.bias.defined() && o.bias.shape() != classes) {
    return ShapeMismatch(kName, "bias", o.bias.shape(), classes.ToString());
  }
  if (!IsIntegral(o.target.dtype())) {
    return DTypeMismatch(kName, "target", o.target.dtype(), "an integer dtype");
  }
  Shape rows(absl::MakeConstSpan(o.x.shape().dims()).first(last));
  if (o.target.shape() != rows) {
    return ShapeMismatch(kName, "target", o.target.shape(),
                         absl::StrCat(rows.ToString(), ", a class for each row of input"));
  }
  return OkStatus();
}

// The operands as rows, in the dtypes in which they are multiplied; recorded by autograd.
StatusOr<HeadOperands> AsRows(const HeadOperands& o) {
  HeadOperands rows;
  const int64_t count = o.target.numel();
  OFL_ASSIGN_OR_RETURN(rows.x, AutocastLowered(o.x));
  OFL_ASSIGN_OR_RETURN(rows.weight, AutocastLowered(o.weight));
  OFL_ASSIGN_OR_RETURN(rows.bias, AutocastLowered(o.bias));
  if (o.bias.defined() && rows.bias.dtype() != rows.weight.dtype()) {
    return DTypeMismatch(kName, "bias", o.bias.dtype(), Name(o.weight.dtype()));
  }
  OFL_ASSIGN_OR_RETURN(rows.x, Reshape(rows.x, {count, o.weight.shape()[1]}));
  OFL_ASSIGN_OR_RETURN(rows.target, Cast(o.target, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(rows.target, Reshape(rows.target, {count}));
  OFL_RETURN_IF_ERROR(MeetClasses(&rows));
  return rows;
}

Status AddEdge(const Tensor& t, bool wanted, Node* node) {
  if (wanted) OFL_RETURN_IF_ERROR(autograd::RefreshView(t));
  node->edges.push_back(wanted ? autograd::GradientEdge(t) : Edge{});
  return OkStatus();
}

StatusOr<Tensor> Reduced(const Tensor& losses, const HeadOperands& o, const Options& options,
                         bool scaled, const Shape& shape) {
  const DType dtype = AutocastLossDType(o.x);
  if (options.reduction == "none") {
    OFL_ASSIGN_OR_RETURN(Tensor each, Cast(losses, dtype));
    return Reshape(each, shape.dims());
  }
  const bool mean = options.reduction == "mean" && !scaled;
  return ReducedRows(losses, mean ? o.target : Tensor(), options.ignore_index, dtype);
}

StatusOr<Tensor> Loss(const HeadOperands& given, const Options& options) {
  OFL_RETURN_IF_ERROR(CheckHeadOperands(given, options));
  OFL_ASSIGN_OR_RETURN(const HeadOperands o, AsRows(given));
  const auto wants = [](const Tensor& t) { return GradEnabled() && autograd::RequiresGrad(t); };
  const Wanted wanted{wants(o.x), wants(o.weight), wants(o.bias)};
  if (!wanted.x && !wanted.weight && !wanted.bias) {
    Gradients none;
    OFL_ASSIGN_OR_RETURN(const Tensor losses, RunForward(o, options, {}, wanted, &none));
    return Reduced(losses, o, options, false, given.target.shape());
  }
  auto node = MakeRef<LossNode>(options, wanted);
  OFL_RETURN_IF_ERROR(AddEdge(o.x, wanted.x, node.get()));
  OFL_RETURN_IF_ERROR(AddEdge(o.weight, wanted.weight, node.get()));
  OFL_RETURN_IF_ERROR(AddEdge(o.bias, wanted.bias, node.get()));
  OFL_RETURN_IF_ERROR(node->Save(o));
  // Not where what arrives would have saved the gradient from underflow, or is not one number.
  const bool now = options.reduction != "none" && o.x.dtype() != DType::kFloat16;
  Tensor loss;
  {
    const GradGuard unrecorded(false);
    Tensor scale;
    if (now && options.reduction == "mean") {
      OFL_ASSIGN_OR_RETURN(scale,
                           MeanWeight(o.target, options.ignore_index, ComputeType(o.x.dtype())));
    }
    Gradients sums;
    const Wanted none{false, false, false};
    OFL_ASSIGN_OR_RETURN(const Tensor losses,
                         RunForward(o, options, scale, now ? wanted : none, &sums));
    if (now) node->Keep(std::move(sums));
    OFL_ASSIGN_OR_RETURN(loss, Reduced(losses, o, options, scale.defined(), given.target.shape()));
  }
  OFL_RETURN_IF_ERROR(autograd::KeepStream(node.get(), loss.device()));
  autograd::SetHistory(loss, std::move(node), 0);
  return loss;
}

}  // namespace

StatusOr<Tensor> LinearCrossEntropy(const Tensor& x, const Tensor& weight, const Tensor& target,
                                    int64_t chunks, const Tensor& bias, int64_t ignore_index,
                                    absl::string_view reduction, double label_smoothing) {
  for (const auto& [t, name] : {std::pair(x, "input"), {weight, "weight"}, {target, "target"}}) {
    if (!t.defined()) return NotDefined(kName, name);
    if (t.device() != x.device())
      return DeviceMismatch(kName, "input", x.device(), name, t.device());
  }
  StatusOr<Tensor> loss = Loss({x, weight, bias, target},
                               {chunks, ignore_index, label_smoothing, std::string(reduction)});
  if (!loss.ok()) return Renamed(kName, loss.status());  // of linear, cross_entropy
  return loss;
}

OFL_REGISTER_FUNCTION(
    "linear_cross_entropy(Tensor input, Tensor weight, Tensor target, int chunks=1, "
    "Tensor? bias=None, int ignore_index=-100, str reduction='mean', float label_smoothing=0.0) "
    "-> Tensor",
    LinearCrossEntropy, kFunction,
    "Cross entropy of linear(input, weight, bias) with integer targets, without all logits at "
    "once.\n"
    "\n"
    "input is [..., in], weight [classes, in], target [...]. The rows go in `chunks` parts, so "
    "that\n"
    "memory is that of one part's logits. Gradients are computed with the loss, where they are\n"
    "wanted; in float16 and with reduction='none' backward computes the logits anew.\n"
    "\n"
    "Of global tensors with a weight that is split(0), each rank has the logits of its classes, "
    "and\n"
    "of each row four numbers of every rank go to the others. input's gradient is a partial sum.\n"
    "Rows that are split over ranks go in one part.");

}  // namespace oneflow_lite::functional
