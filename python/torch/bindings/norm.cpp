// SPDX-License-Identifier: Apache-2.0
//
// layer_norm, rms_norm, their forms with a residual, and their gradients.
#include "primitive/layer_norm.h"
#include "primitive/rms_norm.h"
#include "python/torch/bindings/launch.h"
#include "python/torch/bindings/operators.h"
#include "python/torch/invariant/invariant.h"

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

// The same of rows from `first` on.
template <class Args>
Args From(const NormCall& call, Args a, int64_t first) {
  const int64_t item = SizeOf(call.x.dtype), row = first * call.rows.cols * item,
                number = first * static_cast<int64_t>(SizeOf(ComputeType(call.x.dtype)));
  a.x = Further(a.x, first * call.rows.stride * item);
  a.rstd = Further(a.rstd, number);
  if constexpr (requires { a.mean; }) a.mean = Further(a.mean, number);
  if constexpr (requires { a.dy; }) {
    a.dy = Further(a.dy, row), a.dsum = Further(a.dsum, row), a.dx = Further(a.dx, row);
  } else {
    a.residual = Further(a.residual, row), a.y = Further(a.y, row), a.sum = Further(a.sum, row);
  }
  return a;
}

// `alone`: see EachRows.
template <class P>
void Run(const NormCall& call, double eps, const typename P::Args& args, bool invariant,
         bool alone = false) {
  if (!call.has_elements()) return;
  CurrentStream stream(call.x.device, invariant);
  constexpr bool kBackward = requires { args.dy; };
  const P& primitive = RowPrimitive<P>(invariant, call.x.device, call.spec, call.rows.cols,
                                       call.variant(), kBackward);
  EachRows(
      invariant, call.x, call.rows.rows, call.rows.cols,
      [&](int64_t first, int64_t count) {
        NormShape shape = call.Shape(eps);
        shape.rows = count;
        const Workspace workspace(call.x.device, primitive.WorkspaceBytes(stream, shape));
        Check(primitive.Launch(stream, shape, From(call, args, first), workspace.data()));
      },
      alone);
}

// Gradients of which dx of a row, on the CPU found row by row, depends on that row alone. Those of
// weight and bias are sums over the batch.
template <class P>
void RunBackward(const NormCall& call, const typename P::Args& args, bool invariant) {
  if (!invariant || call.x.device.type == DeviceType::kCUDA) {
    Run<P>(call, 0, args, invariant);
    return;
  }
  typename P::Args of_x = args, of_columns = args;
  of_x.dweight = nullptr, of_columns.dx = nullptr;
  bool columns = of_columns.dweight != nullptr;
  if constexpr (requires { args.dbias; }) {
    of_x.dbias = nullptr;
    columns = columns || of_columns.dbias;
  }
  if (of_x.dx) Run<P>(call, 0, of_x, true, /*alone=*/true);
  if (columns) Run<P>(call, 0, of_columns, false);
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
                bool invariant, bool statistics = true) {
  NormCall call(op, input, weight, bias, dims);
  if (!IsServed(call)) {
    return Forward<P>(op, Copied(input), residual, weight, bias, dims, eps, invariant, statistics);
  }
  if (NeedsCopy(invariant, call.x, call.rows.cols, call.rows.stride)) {
    return Forward<P>(op, CopyOf(input), residual, weight, bias, dims, eps, invariant, statistics);
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
    other = Aligned(invariant, Contiguous(*residual), call.rows.cols);
    args.residual = other->data_ptr();
    out.sum = EmptyLike(call.x);
    args.sum = out.sum->mutable_data_ptr();
  }
  Run<P>(call, eps, args, invariant);
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
                   const bool (&needs)[3], bool invariant) {
  NormCall call(op, input, weight, bias, dims);
  const TensorInfo dy(dout);
  Require(dy.known && dy.dtype == call.x.dtype && dy.numel() == call.x.numel(), op,
          "(): the gradient's shape and dtype are not input's");
  if (!IsServed(call)) {
    return Backward<P>(op, dout, dsum, Copied(input), mean, rstd, weight, bias, dims, needs,
                       invariant);
  }
  if (NeedsCopy(invariant, call.x, call.rows.cols, call.rows.stride)) {
    return Backward<P>(op, dout, dsum, CopyOf(input), mean, rstd, weight, bias, dims, needs,
                       invariant);
  }
  const Tensor dense_dy = Aligned(invariant, Contiguous(dout), call.rows.cols);
  OptionalTensor add;
  if (dsum) add = Aligned(invariant, Contiguous(*dsum), call.rows.cols);
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
  RunBackward<P>(call, args, invariant);
  return g;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> LayerNormForward(const Tensor& x, const OptionalTensor& weight,
                                                    const OptionalTensor& bias, int64_t dims,
                                                    double eps, bool invariant) {
  auto [y, sum, mean, rstd] =
      Forward<LayerNorm>("layer_norm", x, nullptr, weight, bias, dims, eps, invariant);
  return {y, *mean, *rstd};
}

std::tuple<Tensor, Tensor> RmsNormForward(const Tensor& x, const OptionalTensor& weight,
                                          int64_t dims, double eps, bool invariant) {
  auto [y, sum, mean, rstd] =
      Forward<RmsNorm>("rms_norm", x, nullptr, weight, {}, dims, eps, invariant);
  return {y, *rstd};
}

Tensor LayerNormInference(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
                          int64_t dims, double eps, bool invariant) {
  return Forward<LayerNorm>("layer_norm", x, nullptr, weight, bias, dims, eps, invariant, false).y;
}

Tensor RmsNormInference(const Tensor& x, const OptionalTensor& weight, int64_t dims, double eps,
                        bool invariant) {
  return Forward<RmsNorm>("rms_norm", x, nullptr, weight, {}, dims, eps, invariant, false).y;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> AddLayerNormForward(
    const Tensor& x, const Tensor& residual, const OptionalTensor& weight,
    const OptionalTensor& bias, int64_t dims, double eps, bool invariant) {
  auto [y, sum, mean, rstd] =
      Forward<LayerNorm>("add_layer_norm", x, &residual, weight, bias, dims, eps, invariant);
  return {y, *sum, *mean, *rstd};
}

std::tuple<Tensor, Tensor, Tensor> AddRmsNormForward(const Tensor& x, const Tensor& residual,
                                                     const OptionalTensor& weight, int64_t dims,
                                                     double eps, bool invariant) {
  auto [y, sum, mean, rstd] =
      Forward<RmsNorm>("add_rms_norm", x, &residual, weight, {}, dims, eps, invariant);
  return {y, *sum, *rstd};
}

std::tuple<Tensor, Tensor, Tensor> LayerNormGradient(
    const Tensor& dy, const OptionalTensor& dsum, const Tensor& x, const Tensor& mean,
    const Tensor& rstd, const OptionalTensor& weight, const OptionalTensor& bias, int64_t dims,
    bool need_dx, bool need_dweight, bool need_dbias, bool invariant) {
  auto [dx, dweight, dbias] =
      Backward<LayerNormBackward>("layer_norm_backward", dy, dsum, x, &mean, rstd, weight, bias,
                                  dims, {need_dx, need_dweight, need_dbias}, invariant);
  return {OrNothing(dx, x), OrNothing(dweight, x), OrNothing(dbias, x)};
}

std::tuple<Tensor, Tensor> RmsNormGradient(const Tensor& dy, const OptionalTensor& dsum,
                                           const Tensor& x, const Tensor& rstd,
                                           const OptionalTensor& weight, int64_t dims, bool need_dx,
                                           bool need_dweight, bool invariant) {
  auto [dx, dweight, dbias] =
      Backward<RmsNormBackward>("rms_norm_backward", dy, dsum, x, nullptr, rstd, weight, {}, dims,
                                {need_dx, need_dweight, false}, invariant);
  return {OrNothing(dx, x), OrNothing(dweight, x)};
}

}  // namespace oneflow_lite::torch_ops
