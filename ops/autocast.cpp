// SPDX-License-Identifier: Apache-2.0
//
// What autocast does with each op's inputs: ours, PyTorch's on CUDA, PyTorch's on the CPU. An op
// without a row takes what it is given. Rows of softmax and the norms compute in float32 inside
// and give their input's dtype, so ours leaves them alone.
#include "oneflow_lite/framework/autocast.h"

namespace oneflow_lite {
namespace {

constexpr auto kAsIs = AutocastPolicy::kAsIs, kLower = AutocastPolicy::kLower,
               kFloat32 = AutocastPolicy::kFloat32, kWidest = AutocastPolicy::kWidest;

// clang-format off
constexpr AutocastRow kRows[] = {
    // Products of matrices.
    {"matmul", kLower, kLower, kLower},
    {"linear", kLower, kLower, kLower},
    {"attention", kLower, kLower, kLower},
    {"attention_packed", kLower, kLower, kLower},
    // Functions that grow fast or lose digits near a point.
    {"acos", kFloat32, kFloat32, kAsIs},
    {"asin", kFloat32, kFloat32, kAsIs},
    {"acosh", kFloat32, kAsIs, kAsIs},
    {"atanh", kFloat32, kAsIs, kAsIs},
    {"cosh", kFloat32, kFloat32, kAsIs},
    {"digamma", kFloat32, kAsIs, kAsIs},
    {"erfinv", kFloat32, kFloat32, kAsIs},
    {"exp", kFloat32, kFloat32, kAsIs},
    {"exp2", kFloat32, kAsIs, kAsIs},
    {"expm1", kFloat32, kFloat32, kAsIs},
    {"lgamma", kFloat32, kAsIs, kAsIs},
    {"log", kFloat32, kFloat32, kAsIs},
    {"log10", kFloat32, kFloat32, kAsIs},
    {"log1p", kFloat32, kFloat32, kAsIs},
    {"log2", kFloat32, kFloat32, kAsIs},
    {"logaddexp", kFloat32, kAsIs, kAsIs},
    {"logaddexp2", kFloat32, kAsIs, kAsIs},
    {"pow", kFloat32, kFloat32, kAsIs},
    {"pow_half", kFloat32, kFloat32, kAsIs},
    {"pow_minus_half", kFloat32, kFloat32, kAsIs},
    {"reciprocal", kFloat32, kFloat32, kAsIs},
    {"rsqrt", kFloat32, kFloat32, kAsIs},
    {"sinh", kFloat32, kFloat32, kAsIs},
    {"softplus", kAsIs, kFloat32, kAsIs},
    {"square", kFloat32, kFloat32, kAsIs},
    {"tan", kFloat32, kFloat32, kAsIs},
    {"xlog1py", kFloat32, kAsIs, kAsIs},
    {"xlogy", kFloat32, kAsIs, kAsIs},
    // Sums, products and what is made of them.
    {"cumprod", kFloat32, kFloat32, kAsIs},
    {"cumsum", kFloat32, kFloat32, kAsIs},
    {"logcumsumexp", kFloat32, kAsIs, kAsIs},
    {"logsumexp", kFloat32, kAsIs, kAsIs},
    {"mean", kFloat32, kAsIs, kAsIs},
    {"nanmean", kFloat32, kAsIs, kAsIs},
    {"nansum", kFloat32, kAsIs, kAsIs},
    {"prod", kFloat32, kFloat32, kAsIs},
    {"std", kFloat32, kAsIs, kAsIs},
    {"sum", kFloat32, kFloat32, kAsIs},
    {"var", kFloat32, kAsIs, kAsIs},
    {"vector_norm", kFloat32, kFloat32, kAsIs},
    // Losses. Cross entropy computes in float32, and its functor keeps that (AutocastLossDType).
    {"cross_entropy", kAsIs, kFloat32, kFloat32},
    {"loss", kFloat32, kFloat32, kFloat32},
    {"nll_loss", kFloat32, kFloat32, kFloat32},
    // Rows.
    {"add_layer_norm", kAsIs, kFloat32, kAsIs},
    {"layer_norm", kAsIs, kFloat32, kAsIs},
    {"log_softmax", kAsIs, kFloat32, kAsIs},
    {"softmax", kAsIs, kFloat32, kAsIs},
    // Operands that are to be alike; the functions of arithmetic promote by themselves.
    {"addcdiv", kWidest, kWidest, kAsIs},
    {"addcmul", kWidest, kWidest, kAsIs},
    {"atan2", kWidest, kWidest, kAsIs},
    {"cat", kWidest, kWidest, kWidest},
    {"lerp", kWidest, kAsIs, kAsIs},
    {"where", kWidest, kAsIs, kAsIs},
};
// clang-format on

const bool added = AddAutocastRows(kRows);

}  // namespace
}  // namespace oneflow_lite
