// SPDX-License-Identifier: Apache-2.0
//
// What the definitions of reductions share. Attributes: kDims, kKeepDim, then a number where the op
// has one, then the dtype of the result where it may be another.
#pragma once

#include <vector>

#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {

inline constexpr int kDims = 0, kKeepDim = 1, kNumber = 2;  // the attributes
inline constexpr char kSplitKept[] = "split on a dim that is kept";

Shape ReducedShape(const Shape& in, const Dims& dims, bool keepdim);
// IndexError where the dims do not rise, or are no neighbours and may not be `apart`.
Status CheckReduceDims(const InferContext& c, bool apart);
// IndexError where an extreme would be one of no elements.
Status CheckNotEmpty(const InferContext& c, int64_t reduced, int64_t outputs, const char* what);
// How many elements go into one result.
double TermsOf(const Shape& shape, const Dims& dims);

// A kept dim may be split, in all outputs; with `partial` a reduced one for partial sums.
SbpSignatures ReduceSignatures(const SbpContext& c, int outputs, bool partial);

// g with the reduced dims back as size 1.
StatusOr<Tensor> KeepDims(const GradContext& c, const Tensor& g);

// The gradients, by name of the op.
Status ProdGrad(GradContext& c);
Status ExtremeGrad(GradContext& c);
Status MinMaxGrad(GradContext& c);
Status NormGrad(GradContext& c);
Status LogSumExpGrad(GradContext& c);
Status VarGrad(GradContext& c);
Status StdGrad(GradContext& c);
Status NanSumGrad(GradContext& c);
Status NanMeanGrad(GradContext& c);

}  // namespace oneflow_lite
