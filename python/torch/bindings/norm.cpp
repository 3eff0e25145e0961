// SPDX-License-Identifier: Apache-2.0
//
// layer_norm, rms_norm, their forms with a residual, and their gradients.
#include "primitive/layer_norm.h"
#include "primitive/rms_norm.h"
#include "python/torch/bindings/launch.h"
#include "python/torch/bindings/operators.h"

namespace oneflow_lite::torch_ops {
namespace {

// What forward and backward of both norms ask of their tensors.
struct NormCall {
  NormCall(const char* op, const Tensor& input, const OptionalTensor& weight,
           const OptionalTensor& bias, int64_t dims)
      : op(op), x(input), axis(x.ndim - dims) {
    Require(x.is_floating(), op, "(): input must be float16, bfloat16, float32 or float64");
    Require(dims >= 1 && axis >= 0, op, "(): an input of ", x.ndim, " dims cannot be normalised ",
            "over ", dims);
    rows = RowsOf(x, axis);
    spec = {.dtype = x.dtype, .weight_dtype = x.dtype};
    if (weight) weight_data = Column(*weight, "weight", &weight_copy);
    const DType of_weight = spec.weight_dtype;
    if (bias) bias_data = Column(*bias, "bias", &bias_copy);
    Require(!weight || !bias || of_weight == spec.weight_dtype, op,
            "(): weight and bias have different dtypes");
  }

  // Checks a weight or bias; gives its elements as the primitives take them: dense.
  const void* Column(const Tensor& tensor, const char* name, OptionalTensor* copy) {
    const TensorInfo column(tensor);
    Require(column.known && (column.dtype == x.dtype || column.dtype == DType::kFloat32), op,
            "(): ", name, " must have input's dtype or float32");
    Require(column.numel() == rows.cols, op, "(): ", name, " has ", column.numel(),
            " elements, but rows have ", rows.cols);
    Require(column.device.type == x.device.type && column.device.index == x.device.index, op,
            "(): ", name, " is on another device than input");
    spec.weight_dtype = column.dtype;
    if (IsContiguous(column)) return column.data;
    *copy = Copied(tensor);
    return TensorInfo(**copy).data;
  }
  bool has_elements() const { return rows.rows > 0 && rows.cols > 0; }
  NormShape Shape(double eps) const { return {rows.rows, rows.cols, eps, rows.stride}; }
  int variant() const { return spec.weight_dtype != spec.dtype; }

  // The leading dims of x, with 1 for those that are normalised.
  Tensor Statistics() const {
    int64_t sizes[64];
    for (int64_t d = 0; d < x.ndim; ++d) sizes[d] = d < axis ? x.sizes[d] : 1;
    return Empty(sizes, x.ndim, ComputeType(x.dtype), x.device);
  }
  Tensor ColumnLike(const OptionalTensor& like) const {
    const TensorInfo column(*like);
    return Empty(column.sizes, column.ndim, column.dtype, x.device);
  }

  const char* op;
  TensorInfo x;
  int64_t axis;
  Rows rows;
  NormSpec spec;
  const void *weight_data = nullptr, *bias_data = nullptr;
  OptionalTensor weight_copy, bias_copy;
};

template <class P>
void Run(const NormCall& call, double eps, const typename P::Args& args) {
  if (!call.has_elements()) return;
  CurrentStream stream(call.x.device);
  const NormShape shape = call.Shape(eps);
  const P& primitive = Primitive<P>(call.x.device.type, call.spec, call.variant());
  const Workspace workspace(call.x.device, primitive.WorkspaceBytes(stream, shape));
  Check(primitive.Launch(stream, shape, args, workspace.data()));
}

// Rows without elements: their mean and deviation are as PyTorch's, of nothing.
bool IsServed(const NormCall& call) { return call.rows.stride > 0 || !call.has_elements(); }

// What is not asked for is not there: every tensor that is allocated takes host time.
struct Outputs {
  Tensor y;
  OptionalTensor sum, mean, rstd;
};

template <class P>
Outputs Forward(const char* op, const Tensor& input, const Tensor* residual,
                const OptionalTensor& weight, const OptionalTensor& bias, int64_t dims, double eps,
                bool statistics = true) {
  NormCall call(op, input, weight, bias, dims);
  if (!IsServed(call)) {
    return Forward<P>(op, Copied(input), residual, weight, bias, dims, eps, statistics);
  }
  typename P::Args args;
  args.x = call.x.data;
  args.weight = call.weight_data;
  Outputs out{EmptyLike(call.x), {}, {}, {}};
  args.y = out.y.mutable_data_ptr();
  if (statistics) {
    out.rstd = call.Statistics();
    args.rstd = out.rstd->mutable_data_ptr();
  }
  if constexpr (requires { args.bias; }) {
    args.bias = call.bias_data;
    if (statistics) {
      out.mean = call.Statistics();
      args.mean = out.mean->mutable_data_ptr();
    }
  }
  OptionalTensor other;
  if (residual) {
    const TensorInfo r(*residual);
    Require(r.known && r.dtype == call.x.dtype && r.numel() == call.x.numel() &&
                r.device.type == call.x.device.type,
            op, "(): residual must have input's shape, dtype and device");
    other = Contiguous(*residual);
    args.residual = other->data_ptr();
    out.sum = EmptyLike(call.x);
    args.sum = out.sum->mutable_data_ptr();
  }
  Run<P>(call, eps, args);
  return out;
}

struct Gradients {
  OptionalTensor dx, dweight, dbias;
};
// The gradient, or what stands for one that is not needed.
Tensor OrNothing(const OptionalTensor& gradient, const Tensor& x) {
  return gradient ? *gradient : Nothing(TensorInfo(x));
}

// What both gradients share; `mean` and `bias` are layer_norm's.
template <class P>
Gradients Backward(const char* op, const Tensor& dout, const OptionalTensor& dsum,
                   const Tensor& input, const Tensor* mean, const Tensor& rstd,
                   const OptionalTensor& weight, const OptionalTensor& bias, int64_t dims,
                   const bool (&needs)[3]) {
  NormCall call(op, input, weight, bias, dims);
  const TensorInfo dy(dout);
  Require(dy.known && dy.dtype == call.x.dtype && dy.numel() == call.x.numel(), op,
          "(): the gradient's shape and dtype are not input's");
  if (!IsServed(call)) {
    return Backward<P>(op, dout, dsum, Copied(input), mean, rstd, weight, bias, dims, needs);
  }
  const Tensor dense_dy = IsContiguous(dy) ? dout : Copied(dout);
  const OptionalTensor add = dsum ? OptionalTensor(Contiguous(*dsum)) : OptionalTensor();
  typename P::Args args;
  args.dy = dense_dy.data_ptr();
  args.x = call.x.data;
  args.rstd = rstd.data_ptr();
  args.weight = call.weight_data;
  args.dsum = add ? add->data_ptr() : nullptr;
  Gradients g;
  if (needs[0]) {
    g.dx = EmptyLike(call.x);
    args.dx = g.dx->mutable_data_ptr();
  }
  if (needs[1] && weight) {
    g.dweight = call.ColumnLike(weight);
    args.dweight = g.dweight->mutable_data_ptr();
  }
  if constexpr (requires { args.dbias; }) {
    args.mean = mean->data_ptr();
    if (needs[2] && bias) {
      g.dbias = call.ColumnLike(bias);
      args.dbias = g.dbias->mutable_data_ptr();
    }
  }
  if (!call.has_elements()) {  // of no rows: no sum
    if (g.dweight) Zero(*g.dweight);
    if (g.dbias) Zero(*g.dbias);
  }
  Run<P>(call, 0, args);
  return g;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> LayerNormForward(const Tensor& x, const OptionalTensor& weight,
                                                    const OptionalTensor& bias, int64_t dims,
                                                    double eps) {
  auto [y, sum, mean, rstd] = Forward<LayerNorm>("layer_norm", x, nullptr, weight, bias, dims, eps);
  return {y, *mean, *rstd};
}

std::tuple<Tensor, Tensor> RmsNormForward(const Tensor& x, const OptionalTensor& weight,
                                          int64_t dims, double eps) {
  auto [y, sum, mean, rstd] = Forward<RmsNorm>("rms_norm", x, nullptr, weight, {}, dims, eps);
  return {y, *rstd};
}

Tensor LayerNormInference(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
                          int64_t dims, double eps) {
  return Forward<LayerNorm>("layer_norm", x, nullptr, weight, bias, dims, eps, false).y;
}

Tensor RmsNormInference(const Tensor& x, const OptionalTensor& weight, int64_t dims, double eps) {
  return Forward<RmsNorm>("rms_norm", x, nullptr, weight, {}, dims, eps, false).y;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> AddLayerNormForward(const Tensor& x,
                                                               const Tensor& residual,
                                                               const OptionalTensor& weight,
                                                               const OptionalTensor& bias,
                                                               int64_t dims, double eps) {
  auto [y, sum, mean, rstd] =
      Forward<LayerNorm>("add_layer_norm", x, &residual, weight, bias, dims, eps);
  return {y, *sum, *mean, *rstd};
}

std::tuple<Tensor, Tensor, Tensor> AddRmsNormForward(const Tensor& x, const Tensor& residual,
                                                     const OptionalTensor& weight, int64_t dims,
                                                     double eps) {
  auto [y, sum, mean, rstd] = Forward<RmsNorm>("add_rms_norm", x, &residual, weight, {}, dims, eps);
  return {y, *sum, *rstd};
}

std::tuple<Tensor, Tensor, Tensor> LayerNormGradient(
    const Tensor& dy, const OptionalTensor& dsum, const Tensor& x, const Tensor& mean,
    const Tensor& rstd, const OptionalTensor& weight, const OptionalTensor& bias, int64_t dims,
    bool need_dx, bool need_dweight, bool need_dbias) {
  auto [dx, dweight, dbias] =
      Backward<LayerNormBackward>("layer_norm_backward", dy, dsum, x, &mean, rstd, weight, bias,
                                  dims, {need_dx, need_dweight, need_dbias});
  return {OrNothing(dx, x), OrNothing(dweight, x), OrNothing(dbias, x)};
}

std::tuple<Tensor, Tensor> RmsNormGradient(const Tensor& dy, const OptionalTensor& dsum,
                                           const Tensor& x, const Tensor& rstd,
                                           const OptionalTensor& weight, int64_t dims, bool need_dx,
                                           bool need_dweight) {
  auto [dx, dweight, dbias] =
      Backward<RmsNormBackward>("rms_norm_backward", dy, dsum, x, nullptr, rstd, weight, {}, dims,
                                {need_dx, need_dweight, false});
  return {OrNothing(dx, x), OrNothing(dweight, x)};
}

}  // namespace oneflow_lite::torch_ops
