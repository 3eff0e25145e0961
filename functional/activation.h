// SPDX-License-Identifier: Apache-2.0
//
// Activations. The result has the input's shape and dtype; of integers and bool it is float32 where
// nothing else is said. Infinite elements give the limit, NaN stays. With `inplace` the result is
// written into x, which is returned: DTypeError where x cannot hold it, RuntimeError where x is a
// leaf that requires a gradient.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::LeakyRelu(x, 0.2));
#pragma once

#include <optional>

#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// x / (1 + exp(-x)).
OFL_API StatusOr<Tensor> Silu(const Tensor& x, bool inplace = false);
// x tanh(log(1 + exp(x))).
OFL_API StatusOr<Tensor> Mish(const Tensor& x, bool inplace = false);
// (x + 3) / 6, not below 0 and not above 1; x times that.
OFL_API StatusOr<Tensor> Hardsigmoid(const Tensor& x, bool inplace = false);
OFL_API StatusOr<Tensor> Hardswish(const Tensor& x, bool inplace = false);
// x, not below `min` and not above `max`; 0 and 6 for relu6. Also of integers, which stay integers.
// The bounds are rounded to x's dtype. ValueError where min is above max.
OFL_API StatusOr<Tensor> Hardtanh(const Tensor& x, Scalar min = -1.0, Scalar max = 1.0,
                                  bool inplace = false);
OFL_API StatusOr<Tensor> Relu6(const Tensor& x, bool inplace = false);
// max(x, 0) into x; any dtype but bool.
OFL_API StatusOr<Tensor> ReluInto(const Tensor& x);
// x where it is above 0, else negative_slope times it.
OFL_API StatusOr<Tensor> LeakyRelu(const Tensor& x, double negative_slope = 0.01,
                                   bool inplace = false);
// x where it is above 0, else alpha (exp(x) - 1); celu has exp(x / alpha), and a ValueError for
// alpha = 0; selu is elu scaled so that mean 0 and variance 1 stay (Klambauer et al.,
// "Self-Normalizing Neural Networks", 2017).
OFL_API StatusOr<Tensor> Elu(const Tensor& x, double alpha = 1, bool inplace = false);
OFL_API StatusOr<Tensor> Celu(const Tensor& x, double alpha = 1, bool inplace = false);
OFL_API StatusOr<Tensor> Selu(const Tensor& x, bool inplace = false);
// log(1 + exp(beta x)) / beta, and x where beta x > threshold.
OFL_API StatusOr<Tensor> Softplus(const Tensor& x, double beta = 1, double threshold = 20);
// -log(1 + exp(-x)).
OFL_API StatusOr<Tensor> LogSigmoid(const Tensor& x);
// x / (1 + |x|).
OFL_API StatusOr<Tensor> Softsign(const Tensor& x);
// x - tanh(x), without cancellation.
OFL_API StatusOr<Tensor> Tanhshrink(const Tensor& x);
// x moved by lambd towards 0, and 0 where that passes it. ValueError where lambd is below 0.
OFL_API StatusOr<Tensor> Softshrink(const Tensor& x, double lambd = 0.5);
// x where |x| > lambd, else 0.
OFL_API StatusOr<Tensor> Hardshrink(const Tensor& x, double lambd = 0.5);
// x where it is above `threshold`, else `value`. Also of integers, which stay integers:
// OverflowError for a value that the dtype does not hold.
OFL_API StatusOr<Tensor> Threshold(const Tensor& x, Scalar threshold, Scalar value,
                                   bool inplace = false);
// The same into x, which they give.
OFL_API StatusOr<Tensor> HardtanhInto(const Tensor& x, Scalar min = -1.0, Scalar max = 1.0);
OFL_API StatusOr<Tensor> LeakyReluInto(const Tensor& x, double negative_slope = 0.01);
OFL_API StatusOr<Tensor> EluInto(const Tensor& x, double alpha = 1);
OFL_API StatusOr<Tensor> CeluInto(const Tensor& x, double alpha = 1);
OFL_API StatusOr<Tensor> SeluInto(const Tensor& x);
OFL_API StatusOr<Tensor> ThresholdInto(const Tensor& x, Scalar threshold, Scalar value);
// Softmax of -x (functional/softmax.h).
OFL_API StatusOr<Tensor> Softmin(const Tensor& x, std::optional<int64_t> dim = {},
                                 std::optional<DType> dtype = {});

}  // namespace oneflow_lite::functional
