// SPDX-License-Identifier: Apache-2.0
//
// The raw operators: forward and backward of each function, without gradients. operators.cpp
// declares their schemas and registers these functions for both devices. Tensors that lie as rows
// at equal distances are read in place; others are copied first. Outputs are contiguous. invariant:
// what a row gives depends on no other row (python/torch/invariant/invariant.h).
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <tuple>

#include "python/torch/bindings/tensor.h"

namespace oneflow_lite::torch_ops {

using torch::headeronly::ScalarType;

Tensor SoftmaxForward(const Tensor& x, int64_t dim, bool log, bool to_float32, bool invariant);
// The same of a tensor whose facts are known.
Tensor SoftmaxOf(const Tensor& x, const TensorInfo& info, int64_t dim, bool log, bool to_float32,
                 bool invariant);
Tensor SoftmaxGradient(const Tensor& dy, const Tensor& y, int64_t dim, bool log, bool invariant);
Tensor SoftmaxGradientOf(const Tensor& dy, const TensorInfo& of_dy, const Tensor& y,
                         const TensorInfo& of_y, int64_t dim, bool log, bool invariant);
Tensor ScaleMaskSoftmaxForward(const Tensor& x, const OptionalTensor& mask, double scale,
                               bool causal, bool zero_masked_rows, bool invariant);
Tensor ScaleMaskSoftmaxGradient(const Tensor& dy, const Tensor& y, double scale, bool causal,
                                bool invariant);

// What a norm reads, and the facts of it. The tensors are the caller's; weight and bias may be
// null.
struct NormInput {
  NormInput(const Tensor& x, const Tensor* weight, const Tensor* bias);

  const Tensor& x;
  const Tensor *weight, *bias;
  TensorInfo of_x;
  std::optional<TensorInfo> of_weight, of_bias;
};
// What is not asked for is not there: every tensor that is allocated takes host time.
struct NormOutputs {
  Tensor y;
  OptionalTensor sum, mean, rstd;
};
struct NormGradients {
  OptionalTensor dx, dweight, dbias;
};
// layer_norm where `centre`, else rms_norm, which has neither mean nor bias; parameters as below.
NormOutputs NormOf(const NormInput& input, bool centre, int64_t dims, double eps, bool invariant,
                   bool statistics);
NormGradients NormGradientsOf(const NormInput& input, bool centre, const Tensor& dy,
                              const TensorInfo& of_dy, const Tensor* mean, const Tensor& rstd,
                              int64_t dims, const bool (&needs)[3], bool invariant);

// Normalises over the last `dims` dims. Means and reciprocal deviations have x's leading dims, with
// 1 for the others, in the compute type.
std::tuple<Tensor, Tensor, Tensor> LayerNormForward(const Tensor& x, const OptionalTensor& weight,
                                                    const OptionalTensor& bias, int64_t dims,
                                                    double eps, bool invariant);
std::tuple<Tensor, Tensor> RmsNormForward(const Tensor& x, const OptionalTensor& weight,
                                          int64_t dims, double eps, bool invariant);
// y alone, for calls that are not recorded.
Tensor LayerNormInference(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
                          int64_t dims, double eps, bool invariant);
Tensor RmsNormInference(const Tensor& x, const OptionalTensor& weight, int64_t dims, double eps,
                        bool invariant);
// Their second output is x + residual.
std::tuple<Tensor, Tensor, Tensor, Tensor> AddLayerNormForward(
    const Tensor& x, const Tensor& residual, const OptionalTensor& weight,
    const OptionalTensor& bias, int64_t dims, double eps, bool invariant);
std::tuple<Tensor, Tensor, Tensor> AddRmsNormForward(const Tensor& x, const Tensor& residual,
                                                     const OptionalTensor& weight, int64_t dims,
                                                     double eps, bool invariant);
// What is not needed comes back with no elements. dsum is added to dx.
std::tuple<Tensor, Tensor, Tensor> LayerNormGradient(
    const Tensor& dy, const OptionalTensor& dsum, const Tensor& x, const Tensor& mean,
    const Tensor& rstd, const OptionalTensor& weight, const OptionalTensor& bias, int64_t dims,
    bool need_dx, bool need_dweight, bool need_dbias, bool invariant);
std::tuple<Tensor, Tensor> RmsNormGradient(const Tensor& dy, const OptionalTensor& dsum,
                                           const Tensor& x, const Tensor& rstd,
                                           const OptionalTensor& weight, int64_t dims, bool need_dx,
                                           bool need_dweight, bool invariant);

// Logits [rows, classes] and int64 targets [rows].
std::tuple<Tensor, Tensor> CrossEntropyForward(const Tensor& x, const Tensor& target,
                                               int64_t ignore_index, double smoothing,
                                               bool invariant);
Tensor CrossEntropyGradient(const Tensor& x, const Tensor& target, const Tensor& stats,
                            const Tensor& dloss, int64_t ignore_index, double smoothing);
// x becomes its gradient.
Tensor CrossEntropyReplace(const Tensor& x, const Tensor& target, const OptionalTensor& scale,
                           int64_t ignore_index, double smoothing, bool invariant);
// 1 over the number of targets that count, as one number of that dtype.
Tensor MeanWeightOf(const Tensor& target, int64_t ignore_index, ScalarType dtype);
// The sum, or with targets the mean over those that count, and the weight of a row in it.
std::tuple<Tensor, Tensor> ReduceLossOf(const Tensor& loss, const OptionalTensor& target,
                                        int64_t ignore_index, ScalarType dtype);
// x[r, :] *= factor[r], or factor[0].
void ScaleRowsOf(const Tensor& x, const Tensor& factor);

}  // namespace oneflow_lite::torch_ops
