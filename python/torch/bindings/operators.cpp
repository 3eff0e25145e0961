// SPDX-License-Identifier: Apache-2.0
//
// The schemas of the raw operators and their kernels, which serve both devices.
#include "python/torch/bindings/operators.h"

#include <torch/csrc/stable/library.h>

#include <string>

#include "python/torch/bindings/boxed.h"

using namespace oneflow_lite::torch_ops;  // the macros below stand outside namespaces

// A forward is registered under two names: with an underscore as it is here, for autograd.Function
// to call; without, for PyTorch's registered gradients (_functional.py), which torch.export and
// torch.library.opcheck can see.
STABLE_TORCH_LIBRARY(oneflow_lite_torch, m) {
  const auto forward = [&](const std::string& schema) {
    m.def(schema.c_str());
    m.def(("_" + schema).c_str());
  };
  forward("softmax(Tensor x, int dim, bool log, bool to_float32, bool invariant=False) -> Tensor");
  forward(
      "scale_mask_softmax(Tensor x, Tensor? mask, float scale, bool causal, "
      "bool zero_masked_rows, bool invariant=False) -> Tensor");
  forward(
      "layer_norm(Tensor x, Tensor? weight, Tensor? bias, int dims, float eps, bool "
      "invariant=False) -> "
      "(Tensor y, Tensor mean, Tensor rstd)");
  forward(
      "rms_norm(Tensor x, Tensor? weight, int dims, float eps, bool invariant=False) -> (Tensor y, "
      "Tensor rstd)");
  forward(
      "add_layer_norm(Tensor x, Tensor residual, Tensor? weight, Tensor? bias, int dims, "
      "float eps, bool invariant=False) -> (Tensor y, Tensor sum, Tensor mean, Tensor rstd)");
  forward(
      "add_rms_norm(Tensor x, Tensor residual, Tensor? weight, int dims, float eps, bool "
      "invariant=False) -> "
      "(Tensor y, Tensor sum, Tensor rstd)");
  forward(
      "cross_entropy(Tensor x, Tensor target, int ignore_index, float smoothing, bool "
      "invariant=False) -> "
      "(Tensor loss, Tensor stats)");

  m.def(
      "layer_norm_inference(Tensor x, Tensor? weight, Tensor? bias, int dims, float eps, bool "
      "invariant=False) -> "
      "Tensor");
  m.def(
      "rms_norm_inference(Tensor x, Tensor? weight, int dims, float eps, bool invariant=False) -> "
      "Tensor");
  m.def("softmax_backward(Tensor dy, Tensor y, int dim, bool log, bool invariant=False) -> Tensor");
  m.def(
      "scale_mask_softmax_backward(Tensor dy, Tensor y, float scale, bool causal, bool "
      "invariant=False) -> Tensor");
  m.def(
      "layer_norm_backward(Tensor dy, Tensor? dsum, Tensor x, Tensor mean, Tensor rstd, "
      "Tensor? weight, Tensor? bias, int dims, bool need_dx, bool need_dweight, bool need_dbias, "
      "bool invariant=False) "
      "-> (Tensor dx, Tensor dweight, Tensor dbias)");
  m.def(
      "rms_norm_backward(Tensor dy, Tensor? dsum, Tensor x, Tensor rstd, Tensor? weight, "
      "int dims, bool need_dx, bool need_dweight, bool invariant=False) -> (Tensor dx, Tensor "
      "dweight)");
  m.def(
      "cross_entropy_backward(Tensor x, Tensor target, Tensor stats, Tensor dloss, "
      "int ignore_index, float smoothing) -> Tensor");
  m.def(
      "cross_entropy_(Tensor(a!) x, Tensor target, Tensor? scale, int ignore_index, "
      "float smoothing, bool invariant=False) -> Tensor loss");
  m.def("mean_weight(Tensor target, int ignore_index, ScalarType dtype) -> Tensor");
  m.def(
      "reduce_loss(Tensor loss, Tensor? target, int ignore_index, ScalarType dtype) -> "
      "(Tensor value, Tensor weight)");
  m.def("scale_rows_(Tensor(a!) x, Tensor factor) -> ()");
}

namespace {

using Library = torch::stable::detail::StableLibrary;

void Implement(Library& m) {
  const auto forward = [&](const std::string& name, BoxedKernel kernel) {
    m.impl(name.c_str(), kernel);
    m.impl(("_" + name).c_str(), kernel);
  };
  forward("softmax", Boxed<&SoftmaxForward>);
  forward("scale_mask_softmax", Boxed<&ScaleMaskSoftmaxForward>);
  forward("layer_norm", Boxed<&LayerNormForward>);
  forward("rms_norm", Boxed<&RmsNormForward>);
  forward("add_layer_norm", Boxed<&AddLayerNormForward>);
  forward("add_rms_norm", Boxed<&AddRmsNormForward>);
  forward("cross_entropy", Boxed<&CrossEntropyForward>);
  m.impl("layer_norm_inference", Boxed<&LayerNormInference>);
  m.impl("rms_norm_inference", Boxed<&RmsNormInference>);
  m.impl("softmax_backward", Boxed<&SoftmaxGradient>);
  m.impl("scale_mask_softmax_backward", Boxed<&ScaleMaskSoftmaxGradient>);
  m.impl("layer_norm_backward", Boxed<&LayerNormGradient>);
  m.impl("rms_norm_backward", Boxed<&RmsNormGradient>);
  m.impl("cross_entropy_backward", Boxed<&CrossEntropyGradient>);
  m.impl("cross_entropy_", Boxed<&CrossEntropyReplace>);
  m.impl("mean_weight", Boxed<&MeanWeightOf>);
  m.impl("reduce_loss", Boxed<&ReduceLossOf>);
  m.impl("scale_rows_", Boxed<&ScaleRowsOf>);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(oneflow_lite_torch, CPU, m) { Implement(m); }
STABLE_TORCH_LIBRARY_IMPL(oneflow_lite_torch, CUDA, m) { Implement(m); }
