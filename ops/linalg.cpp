// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg.h"

#include "functional/cat.h"
#include "functional/shapes.h"
#include "functional/view.h"
#include "oneflow_lite/framework/dispatch.h"

namespace oneflow_lite {

Status CheckMatrices(const InferContext& c, int i, bool square) {
  const char* name = i == 0 ? "A" : "B";
  if (c.dtype(i) != DType::kFloat32 && c.dtype(i) != DType::kFloat64) {
    return UnsupportedDType(c.op(), name, c.dtype(i), "float32 or float64");
  }
  if (c.shape(i).ndim() < 2) return ShapeMismatch(c.op(), name, c.shape(i), "at least 2 dims");
  if (square && Rows(c.shape(i)) != Columns(c.shape(i))) {
    return ShapeMismatch(c.op(), name, c.shape(i), "square matrices");
  }
  return OkStatus();
}

Status CheckSystem(const InferContext& c, int a, int b, bool square) {
  OFL_RETURN_IF_ERROR(CheckMatrices(c, a, square));
  if (c.dtype(b) != c.dtype(a)) return DTypeMismatch(c.op(), "B", c.dtype(b), Name(c.dtype(a)));
  const Shape &of_a = c.shape(a), &of_b = c.shape(b);
  if (of_b.ndim() != of_a.ndim() ||
      PerMatrix(of_b, {Rows(of_b)}) != PerMatrix(of_a, {Rows(of_a)})) {
    return ShapeMismatch(c.op(), "B", of_b,
                         absl::StrCat("the batch and the rows of A, ", of_a.ToString()));
  }
  return OkStatus();
}

namespace {

Cost CubicCost(const InferContext& c, absl::Span<const TensorSpec> outputs, double factor) {
  double bytes = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    bytes += static_cast<double>(c.shape(i).numel()) * SizeOf(c.dtype(i));
  }
  for (const TensorSpec& out : outputs) {
    bytes += static_cast<double>(out.shape.numel()) * SizeOf(out.dtype);
  }
  const Shape& a = c.shape(0);
  const double r = static_cast<double>(std::min(Rows(a), Columns(a)));
  double flops = factor * static_cast<double>(a.numel()) * r;
  const Shape& last = c.shape(c.num_inputs() - 1);
  if (c.num_inputs() > 1) flops += 2 * static_cast<double>(last.numel()) * r;
  return {.bytes = bytes, .flops = flops};
}

}  // namespace

void DefineCubic(OpDef& op, double factor, uint64_t (*absent)(const Attrs&)) {
  op.cost = [factor](const InferContext& c, absl::Span<const TensorSpec> outputs) {
    return CubicCost(c, outputs, factor);
  };
  op.cost_text = absl::StrCat("inputs are read once, outputs written once; ", factor,
                              " m n min(m, n) operations, and 2 n^2 for each right side");
  op.sbp = [num_outputs = static_cast<int>(op.outputs.size()), absent](const SbpContext& c) {
    SbpSignatures out;
    const uint64_t whole = absent ? absent(c.attrs) : 0;
    for (int d = 0; d < c.inputs[0].ndim() - 2; ++d) {
      SbpSignature s;
      s.inputs.assign(c.inputs.size(), Sbp::Split(d));
      for (int i = 0; i < num_outputs; ++i) {
        s.outputs.push_back(whole >> i & 1 ? Sbp::Broadcast() : Sbp::Split(d));
      }
      out.push_back(s);
    }
    return out;
  };
  op.sbp_text = "split on any dim of the batch";
}

Term Mt(const Term& a) {
  return With(a, [](auto& x) { return functional::Transpose(x, -2, -1); });
}
Term Times(const Term& a, const Term& b) {
  if (a.nothing()) return a;
  if (b.nothing()) return b;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Matmul(x, y); });
}
Term LowerOf(const Term& a, int64_t diagonal) {
  return With(a, [=](auto& x) { return functional::Tril(x, diagonal); });
}
Term UpperOf(const Term& a, int64_t diagonal) {
  return With(a, [=](auto& x) { return functional::Triu(x, diagonal); });
}
Term Embedded(const Term& diagonal) {
  return With(diagonal, [](auto& x) { return functional::DiagEmbed(x); });
}
Term DiagonalOf(const Term& a) {
  return With(a, [](auto& x) { return functional::Diagonal(x, 0, -2, -1); });
}
Term First(const Term& a, int64_t dim, int64_t count) {
  return With(a, [=](auto& x) { return functional::Narrow(x, dim, 0, count); });
}
Term Unsqueezed(const Term& a, int64_t dim) {
  return With(a, [=](auto& x) { return functional::Unsqueeze(x, dim); });
}
Term Solved(const Term& a, const Term& b, bool upper, bool left, bool unit) {
  if (b.nothing()) return b;
  return Combine(
      a, b, [=](auto& x, auto& y) { return functional::SolveTriangular(x, y, upper, left, unit); });
}

Term SolvedAdjoint(const Tensor& a, const Tensor& lu, const Tensor& pivots, const Term& b) {
  if (!b.ok() || b.nothing()) return b;
  if (!GradEnabled()) return {functional::LuSolve(lu, pivots, *b.value, true, /*adjoint=*/true)};
  const Term at = Mt({a});
  if (!at.ok()) return at;
  StatusOr<TensorList> y = functional::SolveFactored(*at.value, *b.value);
  return y.ok() ? Term{y->front()} : Term{y.status()};
}

Term LuGradient(const Tensor& factors, const Tensor& pivots, const Tensor& dfactors, int64_t m,
                int64_t n) {
  const Term lu{factors}, dlu{dfactors};
  if (dlu.nothing()) return dlu;
  const int64_t r = std::min(m, n);
  const Term square = First(First(lu, -1, r), -2, r), dsquare = First(First(dlu, -1, r), -2, r);
  Term dl = LowerOf(dsquare, -1), du = UpperOf(dsquare);
  Term rest;  // of the columns, or rows, beyond the square
  const auto tail = [&](const Term& t) {
    return With(t, [&](auto& x) { return functional::Slice(x, m < n ? -1 : -2, r, {}); });
  };
  if (m < n) {  // U2 = L^-1 P^T A2
    rest = Solved(Mt(square), tail(dlu), /*upper=*/true, true, /*unit=*/true);
    dl = dl - LowerOf(Times(rest, Mt(tail(lu))), -1);
  } else if (m > n) {  // L2 = A2 U^-1
    rest = Solved(Mt(square), tail(dlu), /*upper=*/false, /*left=*/false);
    du = du - UpperOf(Times(Mt(tail(lu)), rest));
  }
  // L^-T [tril(L^T dL, -1) + triu(dU U^T)] U^-T
  const Term lt = Mt(square), l = LowerOf(square, -1);
  const Term inner = LowerOf(Times(Mt(l), dl) + dl, -1) + UpperOf(Times(du, Mt(UpperOf(square))));
  Term da = Solved(lt, inner, /*upper=*/true, true, /*unit=*/true);
  da = Solved(lt, da, /*upper=*/false, /*left=*/false);
  if (m != n) {
    da = Combine(da, rest, [&](auto& x, auto& y) {
      return functional::Cat({{x, y}}, m < n ? -1 : -2);
    });
  }
  return Times(Mt({functional::LuPermutation(pivots, m, factors.dtype())}), da);
}

}  // namespace oneflow_lite
