// SPDX-License-Identifier: Apache-2.0
//
// Gated units: glu and swiglu, and their gradients in one pass, which are differentiated again by
// composition.
#include "functional/gated.h"

#include <array>

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

using functional::Add;
using functional::Mul;
using functional::Sub;

// x with `dim` of an even size halved.
Status Halved(const InferContext& c, const TensorSpec& x, Shape* half) {
  const int64_t dim = c.attr<int64_t>(0);
  if (!IsFloating(x.dtype)) return UnsupportedDType(c.op(), "input", x.dtype, kFloatingDTypes);
  if (dim < 0 || dim >= x.shape.ndim()) {
    return BadValue(c.op(), "dim", absl::StrCat(dim), "a dim of the input");
  }
  const int axis = static_cast<int>(dim);
  if (x.shape[axis] % 2 != 0) {
    return ShapeMismatch(c.op(), "input", x.shape, absl::StrCat("an even size of dim ", dim));
  }
  *half = x.shape;
  (*half)[axis] = x.shape[axis] / 2;
  return OkStatus();
}

// By any dim but the one that is halved; the tensors all alike.
SbpSignatures SplitOtherDims(const SbpContext& c) {
  SbpSignatures out;
  for (int d = 0; d < c.inputs[0].ndim(); ++d) {
    if (d == c.attrs.get<int64_t>(0)) continue;
    SbpSignature s{{}, {Sbp::Split(d)}};
    s.inputs.assign(c.inputs.size(), Sbp::Split(d));
    out.push_back(s);
  }
  return out;
}
constexpr char kHalvedSbpText[] = "split by any dim but the one that is halved";

template <bool kSwiglu>
void DefineUnit(OpDef& op) {
  op.Input("input").Output("out").Attr("dim", AttrType::kInt);
  op.doc = kSwiglu ? "silu of the first half along a dim, times the second half."
                   : "The first half along a dim times the sigmoid of the second.";
  op.infer = [](InferContext& c) -> Status {
    Shape half;
    OFL_RETURN_IF_ERROR(Halved(c, c.input(0), &half));
    c.SetOutput(0, half, c.dtype(0));
    return OkStatus();
  };
  op.sbp = SplitOtherDims;
  op.sbp_text = kHalvedSbpText;
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0)}; };
  op.backward = [](GradContext& c) -> Status {
    return c.Set(0,
                 functional::GatedUnitBackward(kSwiglu, c.grad(0), c.input(0), c.attr<int64_t>(0)));
  };
}

// The product of all of them.
StatusOr<Tensor> Product(std::initializer_list<const Tensor*> terms) {
  Tensor product = **terms.begin();
  for (const Tensor* const* t = terms.begin() + 1; t != terms.end(); ++t) {
    OFL_ASSIGN_OR_RETURN(product, Mul(product, **t));
  }
  return product;
}

// What the formulas below speak of, in the compute type: the halves a and b of the input, u and v
// of what flows back to them, g of the result; the gate's s = sigmoid, r = 1 - s.
struct Terms {
  Tensor a, b, u, v, g, s, r;
};
struct SecondGradients {
  Tensor g, a, b;
};

// dx = (g s, g a s r) with s of b. d(s r) = s r (1 - 2 s) db.
StatusOr<SecondGradients> OfGlu(const Terms& t) {
  SecondGradients out;
  OFL_ASSIGN_OR_RETURN(const Tensor slope, Mul(t.s, t.r));
  OFL_ASSIGN_OR_RETURN(const Tensor us, Mul(t.u, t.s));
  OFL_ASSIGN_OR_RETURN(const Tensor va, Mul(t.v, t.a));
  OFL_ASSIGN_OR_RETURN(const Tensor va_slope, Mul(va, slope));
  OFL_ASSIGN_OR_RETURN(out.g, Add(us, va_slope));
  OFL_ASSIGN_OR_RETURN(out.a, Product({&t.v, &t.g, &slope}));
  OFL_ASSIGN_OR_RETURN(const Tensor bend, Sub(t.r, t.s));
  OFL_ASSIGN_OR_RETURN(const Tensor va_bend, Mul(va, bend));
  OFL_ASSIGN_OR_RETURN(const Tensor both, Add(t.u, va_bend));
  OFL_ASSIGN_OR_RETURN(out.b, Product({&t.g, &slope, &both}));
  return out;
}

// dx = (g b f', g f) with f = a s, f' = s (1 + a r), f'' = s r (2 + a (1 - 2 s)), s of a.
StatusOr<SecondGradients> OfSwiglu(const Terms& t) {
  SecondGradients out;
  OFL_ASSIGN_OR_RETURN(const Tensor f, Mul(t.a, t.s));
  OFL_ASSIGN_OR_RETURN(Tensor slope, Mul(t.a, t.r));
  OFL_ASSIGN_OR_RETURN(slope, Add(slope, Scalar(1.0)));
  OFL_ASSIGN_OR_RETURN(slope, Mul(slope, t.s));
  OFL_ASSIGN_OR_RETURN(Tensor bend, Sub(t.r, t.s));
  OFL_ASSIGN_OR_RETURN(bend, Mul(bend, t.a));
  OFL_ASSIGN_OR_RETURN(bend, Add(bend, Scalar(2.0)));
  OFL_ASSIGN_OR_RETURN(bend, Product({&bend, &t.s, &t.r}));
  OFL_ASSIGN_OR_RETURN(const Tensor ub, Mul(t.u, t.b));
  OFL_ASSIGN_OR_RETURN(const Tensor ub_slope, Mul(ub, slope));
  OFL_ASSIGN_OR_RETURN(const Tensor vf, Mul(t.v, f));
  OFL_ASSIGN_OR_RETURN(out.g, Add(ub_slope, vf));
  OFL_ASSIGN_OR_RETURN(const Tensor ub_bend, Mul(ub, bend));
  OFL_ASSIGN_OR_RETURN(const Tensor v_slope, Mul(t.v, slope));
  OFL_ASSIGN_OR_RETURN(const Tensor both, Add(ub_bend, v_slope));
  OFL_ASSIGN_OR_RETURN(out.a, Mul(both, t.g));
  OFL_ASSIGN_OR_RETURN(out.b, Product({&t.u, &t.g, &slope}));
  return out;
}

StatusOr<std::array<Tensor, 2>> Halves(const Tensor& x, int64_t dim, DType wide) {
  OFL_ASSIGN_OR_RETURN(const TensorList parts, functional::Chunk(x, 2, dim));
  OFL_ASSIGN_OR_RETURN(Tensor first, functional::Cast(parts[0], wide));
  OFL_ASSIGN_OR_RETURN(Tensor second, functional::Cast(parts[1], wide));
  return std::array{std::move(first), std::move(second)};
}

template <bool kSwiglu>
Status DifferentiateBackward(GradContext& c) {
  const int64_t dim = c.attr<int64_t>(0);
  const DType dtype = c.spec(0).dtype, wide = ComputeType(dtype);
  if (c.spec(1).shape.numel() == 0) {
    if (c.needs(0)) OFL_RETURN_IF_ERROR(c.Set(0, functional::Contiguous(c.input(0))));
    return c.needs(1) ? c.Set(1, functional::Contiguous(c.input(1))) : OkStatus();
  }
  OFL_ASSIGN_OR_RETURN(const auto x, Halves(c.input(1), dim, wide));
  OFL_ASSIGN_OR_RETURN(const auto flow, Halves(c.grad(0), dim, wide));
  Terms t{x[0], x[1], flow[0], flow[1], {}, {}, {}};
  OFL_ASSIGN_OR_RETURN(t.g, functional::Cast(c.input(0), wide));
  OFL_ASSIGN_OR_RETURN(t.s, functional::Sigmoid(kSwiglu ? t.a : t.b));
  OFL_ASSIGN_OR_RETURN(t.r, functional::Sub(Scalar(1.0), t.s));
  OFL_ASSIGN_OR_RETURN(const SecondGradients found, kSwiglu ? OfSwiglu(t) : OfGlu(t));
  if (c.needs(0)) OFL_RETURN_IF_ERROR(c.Set(0, functional::Cast(found.g, dtype)));
  if (!c.needs(1)) return OkStatus();
  OFL_ASSIGN_OR_RETURN(const Tensor both, functional::Cat({found.a, found.b}, dim));
  return c.Set(1, functional::Cast(both, dtype));
}

template <bool kSwiglu>
void DefineUnitBackward(OpDef& op) {
  op.Input("dy").Input("input").Output("dx").Attr("dim", AttrType::kInt);
  op.doc = kSwiglu ? "Gradient of swiglu." : "Gradient of glu.";
  op.infer = [](InferContext& c) -> Status {
    Shape half;
    OFL_RETURN_IF_ERROR(Halved(c, c.input(1), &half));
    if (c.shape(0) != half) return ShapeMismatch(c.op(), "dy", c.shape(0), half.ToString());
    if (c.dtype(0) != c.dtype(1)) {
      return DTypeMismatch(c.op(), "dy", c.dtype(0), Name(c.dtype(1)));
    }
    c.SetOutput(0, c.shape(1), c.dtype(1));
    return OkStatus();
  };
  op.sbp = SplitOtherDims;
  op.sbp_text = kHalvedSbpText;
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0) | Bit(1)}; };
  op.backward = DifferentiateBackward<kSwiglu>;
}

OFL_REGISTER_OP("glu", DefineUnit<false>);
OFL_REGISTER_OP("glu_backward", DefineUnitBackward<false>);
OFL_REGISTER_OP("swiglu", DefineUnit<true>);
OFL_REGISTER_OP("swiglu_backward", DefineUnitBackward<true>);

}  // namespace
}  // namespace oneflow_lite
