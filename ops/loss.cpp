// SPDX-License-Identifier: Apache-2.0
//
// Losses of each element. An entry of the table is a kind of loss l(x, t, p): its formula in words
// and the derivatives that are not 0. `loss` reduces; `loss_slope` is any derivative times what
// flows back, and its own derivatives are `loss_slope` again: one op and one table serve the first
// and the second order. primitive/loss_math.h has the formulas.
#include "functional/loss.h"

#include <algorithm>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/reduce.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

struct LossEntry {
  absl::string_view kind;
  const char* formula;
  absl::string_view derivatives;  // by these operands, each between spaces
  bool third_order = false;       // whether derivatives of a third order may not be 0
};
constexpr LossEntry kLosses[] = {
    {"mse", "(x - t)^2", " x t xx xt tt "},
    {"l1", "|x - t|", " x t "},
    {"smooth_l1", "(x - t)^2 / 2 a below a, |x - t| - a / 2 above", " x t xx xt tt "},
    {"huber", "a times smooth_l1", " x t xx xt tt "},
    {"kl_div", "t (log t - x)", " x t xt tt ", true},
    {"kl_div_log", "exp(t) (t - x)", " x t xt tt ", true},
    {"bce_with_logits", "p t softplus(-x) + (1 - t) softplus(x)", " x t p xx xt xp tp ", true},
    {"bce", "-t log x - (1 - t) log(1 - x)", " x t xx xt ", true},
    {"poisson_nll", "x - t log(x + a)", " x t xx xt tt ", true},
    {"poisson_nll_log", "exp(x) - t x", " x t xx xt tt ", true},
    {"gaussian_nll", "(log max(p, a) + (x - t)^2 / max(p, a)) / 2 + b", " x t p xx xt tt xp tp pp ",
     true},
    {"soft_margin", "log(1 + exp(-t x))", " x t xx xt tt ", true},
    {"hinge_embedding", "x where t is 1, max(0, a - x) where it is -1", " x "},
    {"margin_ranking", "max(0, a - p (x - t))", " x t p xp tp "},
    {"prelu_weight", "t x where x is not positive, else 0", " x t xt "},
};
constexpr char kOperands[] = "xtp";

StatusOr<const LossEntry*> FindLoss(const std::string& op, const std::string& kind) {
  for (const LossEntry& e : kLosses) {
    if (e.kind == kind) return &e;
  }
  std::string names;
  for (const LossEntry& e : kLosses) absl::StrAppend(&names, names.empty() ? "" : ", ", e.kind);
  return BadValue(op, "kind", absl::StrCat("\"", kind, "\""), "one of " + names);
}

bool Has(const LossEntry& e, const std::string& derivative) {
  return e.derivatives.find(absl::StrCat(" ", derivative, " ")) != absl::string_view::npos;
}

// The operands from input `first` on: x, t and, where it is given, p.
Status CheckOperands(const InferContext& c, int first) {
  const Shape& x = c.shape(first);
  if (!IsFloating(c.dtype(first))) {
    return UnsupportedDType(c.op(), "x", c.dtype(first), kFloatingDTypes);
  }
  if (c.shape(first + 1) != x) return ShapeMismatch(c.op(), "t", c.shape(first + 1), x.ToString());
  for (int i = 1; i < 3; ++i) {
    if (!c.has_input(first + i) || c.dtype(first + i) == c.dtype(first)) continue;
    return DTypeMismatch(c.op(), i == 1 ? "t" : "p", c.dtype(first + i), Name(c.dtype(first)));
  }
  if (!c.has_input(first + 2)) return OkStatus();
  const Dims& p = c.shape(first + 2).dims();
  const bool suffix =
      p.size() <= x.dims().size() && std::equal(p.rbegin(), p.rend(), x.dims().rbegin());
  return suffix ? OkStatus()
                : ShapeMismatch(c.op(), "p", c.shape(first + 2),
                                absl::StrCat("the last dims of ", x.ToString()));
}

// How the operands from `first` on are split with dim d of x; p may lack the dim.
void AppendOperands(const SbpContext& c, int first, int d, SbpSignature* s) {
  const int ndim = c.inputs[first].ndim();
  for (size_t i = static_cast<size_t>(first); i < c.inputs.size(); ++i) {
    const int own = d - (ndim - c.inputs[i].ndim());
    s->inputs.push_back(own < 0 ? Sbp::Broadcast() : Sbp::Split(own));
  }
}

Cost LossCost(const InferContext& c, absl::Span<const TensorSpec> outputs) {
  Cost cost;
  int largest = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.has_input(i)) continue;
    cost.bytes += static_cast<double>(c.shape(i).numel()) * SizeOf(c.dtype(i));
    if (c.shape(i).numel() > c.shape(largest).numel()) largest = i;
  }
  cost.bytes += static_cast<double>(outputs[0].shape.numel()) * SizeOf(outputs[0].dtype);
  cost.flops = static_cast<double>(c.shape(largest).numel());
  return cost;
}
constexpr char kCostText[] =
    "each input is read once, each output written once; one operation for each element of x";

// The gradient of operand `name` by what `slope` gives; zeros where the loss does not depend on it.
template <class F>
Status SetOperand(GradContext& c, int input, bool depends, const F& slope) {
  if (!c.needs(input)) return OkStatus();
  const TensorSpec& spec = c.spec(input);
  if (!depends) return c.Set(input, functional::Zeros(spec.shape, spec.dtype, spec.device));
  StatusOr<Tensor> g = slope();
  if (g.ok() && g->shape() != spec.shape) g = functional::SumToShape(*g, spec.shape);
  return c.Set(input, std::move(g));
}

void DefineLoss(OpDef& op) {
  op.Input("x").Input("t").Input("p", InputDef::Kind::kOptional).Output("y");
  op.Attr("kind", AttrType::kString).Attr("reduction", AttrType::kString, std::string("none"));
  op.Attr("a", AttrType::kFloat, 0.0).Attr("b", AttrType::kFloat, 0.0);
  op.doc = "A loss of each element, or their sum or mean:";
  for (const LossEntry& e : kLosses) absl::StrAppend(&op.doc, "\n  ", e.kind, ": ", e.formula);
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(FindLoss(c.op(), c.attr<std::string>(0)).status());
    const std::string& reduction = c.attr<std::string>(1);
    if (reduction != "none" && reduction != "mean" && reduction != "sum") {
      return BadValue(c.op(), "reduction", absl::StrCat("\"", reduction, "\""),
                      "\"none\", \"sum\" or \"mean\"");
    }
    OFL_RETURN_IF_ERROR(CheckOperands(c, 0));
    c.SetOutput(0, reduction == "none" ? c.shape(0) : Shape(), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const std::string& reduction = c.attrs.get<std::string>(1);
    if (reduction == "mean") return out;
    for (int d = 0; d < c.inputs[0].ndim(); ++d) {
      SbpSignature s{{}, {reduction == "sum" ? Sbp::PartialSum() : Sbp::Split(d)}};
      AppendOperands(c, 0, d, &s);
      out.push_back(std::move(s));
    }
    return out;
  };
  op.sbp_text = "split on any dim, a sum then partial; whole for a mean";
  op.cost = LossCost;
  op.cost_text = kCostText;
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0) | Bit(1) | Bit(2)}; };
  op.backward = [](GradContext& c) -> Status {
    if (!c.grad(0).defined()) return OkStatus();
    const std::string& kind = c.attr<std::string>(0);
    OFL_ASSIGN_OR_RETURN(const LossEntry* entry, FindLoss("loss", kind));
    const functional::LossFormula formula = {kind, c.attr<double>(2), c.attr<double>(3)};
    const auto n = static_cast<double>(c.spec(0).shape.numel());
    const double scale = c.attr<std::string>(1) == "mean" ? 1 / n : 1;
    for (int i = 0; i < 3; ++i) {
      const std::string by(1, kOperands[i]);
      OFL_RETURN_IF_ERROR(SetOperand(c, i, Has(*entry, by), [&] {
        return functional::LossSlope(formula, by, c.grad(0), c.input(0), c.input(1), c.input(2),
                                     scale);
      }));
    }
    return OkStatus();
  };
}

// By one operand more, in the order x, t, p.
std::string AndBy(const std::string& by, char operand) {
  std::string both = by + operand;
  std::sort(both.begin(), both.end(), [](char a, char b) {
    const absl::string_view order = kOperands;
    return order.find(a) < order.find(b);
  });
  return both;
}

Status SlopeBackward(GradContext& c) {
  const std::string &kind = c.attr<std::string>(0), &by = c.attr<std::string>(1);
  OFL_ASSIGN_OR_RETURN(const LossEntry* entry, FindLoss("loss_slope", kind));
  const functional::LossFormula formula = {kind, c.attr<double>(3), c.attr<double>(4)};
  const double scale = c.attr<double>(2);
  const Tensor &g = c.grad(0), &dy = c.input(0), &x = c.input(1);
  if (!g.defined()) return OkStatus();
  const auto slope = [&](const std::string& of, const Tensor& from) {
    return functional::LossSlope(formula, of, from, x, c.input(2), c.input(3), scale);
  };
  OFL_RETURN_IF_ERROR(SetOperand(c, 0, true, [&] { return slope(by, g); }));
  for (int i = 0; i < 3; ++i) {
    const std::string both = AndBy(by, kOperands[i]);
    if (c.needs(i + 1) && both.size() > 2 && entry->third_order) {
      return Error(ErrorKind::kNotImplemented, "loss_slope(): ", kind,
                   " has no derivative of the third order");
    }
    OFL_RETURN_IF_ERROR(SetOperand(c, i + 1, Has(*entry, both), [&]() -> StatusOr<Tensor> {
      OFL_ASSIGN_OR_RETURN(const Tensor from, functional::Mul(g, dy));
      return slope(both, from);
    }));
  }
  return OkStatus();
}

void DefineLossSlope(OpDef& op) {
  op.Input("dy").Input("x").Input("t").Input("p", InputDef::Kind::kOptional).Output("dx");
  op.Attr("kind", AttrType::kString).Attr("by", AttrType::kString);
  op.Attr("scale", AttrType::kFloat, 1.0);
  op.Attr("a", AttrType::kFloat, 0.0).Attr("b", AttrType::kFloat, 0.0);
  op.doc =
      "scale dy times the derivative of a loss (see `loss`) by x, t or p, or by two of them; dy "
      "has "
      "x's shape or none.";
  op.infer = [](InferContext& c) -> Status {
    OFL_ASSIGN_OR_RETURN(const LossEntry* entry, FindLoss(c.op(), c.attr<std::string>(0)));
    OFL_RETURN_IF_ERROR(CheckOperands(c, 1));
    if (c.dtype(0) != c.dtype(1)) return DTypeMismatch(c.op(), "dy", c.dtype(0), Name(c.dtype(1)));
    if (c.shape(0).ndim() != 0 && c.shape(0) != c.shape(1)) {
      return ShapeMismatch(c.op(), "dy", c.shape(0), c.shape(1).ToString() + " or none");
    }
    if (!Has(*entry, c.attr<std::string>(1))) {
      return BadValue(c.op(), "by", absl::StrCat("\"", c.attr<std::string>(1), "\""),
                      absl::StrCat("one of", entry->derivatives));
    }
    c.SetOutput(0, c.shape(1), c.dtype(1));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    for (int d = 0; d < c.inputs[1].ndim(); ++d) {
      SbpSignature s{{}, {Sbp::Split(d)}};
      s.inputs.push_back(c.inputs[0].ndim() == 0 ? Sbp::Broadcast() : Sbp::Split(d));
      AppendOperands(c, 1, d, &s);
      out.push_back(std::move(s));
    }
    return out;
  };
  op.sbp_text = "split on any dim";
  op.cost = LossCost;
  op.cost_text = kCostText;
  op.save = [](const Attrs&, Needs) {
    return SavePlan{.inputs = Bit(0) | Bit(1) | Bit(2) | Bit(3)};
  };
  op.backward = SlopeBackward;
}

OFL_REGISTER_OP("loss", DefineLoss);
OFL_REGISTER_OP("loss_slope", DefineLossSlope);

}  // namespace
}  // namespace oneflow_lite
