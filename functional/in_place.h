// SPDX-License-Identifier: Apache-2.0
//
// Functors that overwrite a tensor with what the functor of their name makes of it, ExpInto with
// Exp's result. self keeps its shape and dtype and is returned: ShapeError where the result has
// another shape that does not broadcast to it, DTypeError where self cannot hold its dtype (float
// in an integer tensor), RuntimeError where self is a leaf that requires a gradient. Other
// arguments and errors are those of the functor without "Into". More of them are in binary.h,
// binary_math.h, ternary.h, activation.h, triangle.h, index.h, index_rows.h, random.h and view.h.
//
//   OFL_RETURN_IF_ERROR(functional::ExpInto(x).status());
#pragma once

#include <optional>

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// unary.h
OFL_API StatusOr<Tensor> AbsInto(const Tensor& self);
OFL_API StatusOr<Tensor> AcosInto(const Tensor& self);
OFL_API StatusOr<Tensor> AcoshInto(const Tensor& self);
OFL_API StatusOr<Tensor> AsinInto(const Tensor& self);
OFL_API StatusOr<Tensor> AsinhInto(const Tensor& self);
OFL_API StatusOr<Tensor> AtanInto(const Tensor& self);
OFL_API StatusOr<Tensor> AtanhInto(const Tensor& self);
OFL_API StatusOr<Tensor> BitwiseNotInto(const Tensor& self);
OFL_API StatusOr<Tensor> CeilInto(const Tensor& self);
OFL_API StatusOr<Tensor> CosInto(const Tensor& self);
OFL_API StatusOr<Tensor> CoshInto(const Tensor& self);
OFL_API StatusOr<Tensor> Deg2radInto(const Tensor& self);
OFL_API StatusOr<Tensor> DigammaInto(const Tensor& self);
OFL_API StatusOr<Tensor> ErfInto(const Tensor& self);
OFL_API StatusOr<Tensor> ErfcInto(const Tensor& self);
OFL_API StatusOr<Tensor> ErfinvInto(const Tensor& self);
OFL_API StatusOr<Tensor> ExpInto(const Tensor& self);
OFL_API StatusOr<Tensor> Exp2Into(const Tensor& self);
OFL_API StatusOr<Tensor> Expm1Into(const Tensor& self);
OFL_API StatusOr<Tensor> FloorInto(const Tensor& self);
OFL_API StatusOr<Tensor> FracInto(const Tensor& self);
OFL_API StatusOr<Tensor> I0Into(const Tensor& self);
OFL_API StatusOr<Tensor> LgammaInto(const Tensor& self);
OFL_API StatusOr<Tensor> LogInto(const Tensor& self);
OFL_API StatusOr<Tensor> Log10Into(const Tensor& self);
OFL_API StatusOr<Tensor> Log1pInto(const Tensor& self);
OFL_API StatusOr<Tensor> Log2Into(const Tensor& self);
OFL_API StatusOr<Tensor> LogicalNotInto(const Tensor& self);
OFL_API StatusOr<Tensor> NegInto(const Tensor& self);
OFL_API StatusOr<Tensor> Rad2degInto(const Tensor& self);
OFL_API StatusOr<Tensor> ReciprocalInto(const Tensor& self);
OFL_API StatusOr<Tensor> RsqrtInto(const Tensor& self);
OFL_API StatusOr<Tensor> SigmoidInto(const Tensor& self);
OFL_API StatusOr<Tensor> SignInto(const Tensor& self);
OFL_API StatusOr<Tensor> SinInto(const Tensor& self);
OFL_API StatusOr<Tensor> SincInto(const Tensor& self);
OFL_API StatusOr<Tensor> SinhInto(const Tensor& self);
OFL_API StatusOr<Tensor> SqrtInto(const Tensor& self);
OFL_API StatusOr<Tensor> SquareInto(const Tensor& self);
OFL_API StatusOr<Tensor> TanInto(const Tensor& self);
OFL_API StatusOr<Tensor> TanhInto(const Tensor& self);
OFL_API StatusOr<Tensor> TruncInto(const Tensor& self);
OFL_API StatusOr<Tensor> RoundInto(const Tensor& self, int64_t decimals = 0);
OFL_API StatusOr<Tensor> LogitInto(const Tensor& self, std::optional<double> eps = {});
OFL_API StatusOr<Tensor> NanToNumInto(const Tensor& self, double nan = 0,
                                      std::optional<double> posinf = {},
                                      std::optional<double> neginf = {});

// scan.h
OFL_API StatusOr<Tensor> CumSumInto(const Tensor& self, int64_t dim,
                                    std::optional<DType> dtype = {});
OFL_API StatusOr<Tensor> CumProdInto(const Tensor& self, int64_t dim,
                                     std::optional<DType> dtype = {});

// compact.h and select.h: source's elements, or value, where mask holds
OFL_API StatusOr<Tensor> MaskedScatterInto(const Tensor& self, const Tensor& mask,
                                           const Tensor& source);
OFL_API StatusOr<Tensor> MaskedFillInto(const Tensor& self, const Tensor& mask,
                                        const Operand& value);

// products.h and numerical.h: beta self + alpha times a product, whose shape broadcasts with self's
// to self's
OFL_API StatusOr<Tensor> AddmmInto(const Tensor& self, const Tensor& a, const Tensor& b,
                                   Scalar beta = 1, Scalar alpha = 1);
OFL_API StatusOr<Tensor> BaddbmmInto(const Tensor& self, const Tensor& a, const Tensor& b,
                                     Scalar beta = 1, Scalar alpha = 1);
OFL_API StatusOr<Tensor> AddmvInto(const Tensor& self, const Tensor& a, const Tensor& v,
                                   Scalar beta = 1, Scalar alpha = 1);
OFL_API StatusOr<Tensor> AddbmmInto(const Tensor& self, const Tensor& a, const Tensor& b,
                                    Scalar beta = 1, Scalar alpha = 1);
OFL_API StatusOr<Tensor> AddrInto(const Tensor& self, const Tensor& u, const Tensor& v,
                                  Scalar beta = 1, Scalar alpha = 1);

}  // namespace oneflow_lite::functional
