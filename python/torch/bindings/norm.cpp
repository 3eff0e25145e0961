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
  NormCall(const char* op, const NormInput& input, int64_t dims)
      : op(op), x(input.of_x), axis(x.ndim - dims) {
    Require(x.is_floating(), op, "(): input must be float16, bfloat16, float32 or float64");
    Require(dims >= 1 && axis >= 0, op, "(): an input of ", x.ndim, " dims cannot be normalised ",
            "over ", dims);
    rows = RowsOf(x, axis);
    spec = {.dtype = x.dtype, .weight_dtype = x.dtype};
    if (input.weight) weight_data = Column(*input.weight, *input.of_weight, "weight", &weight_copy);
    if (input.bias) bias_data = Column(*input.bias, *input.of_bias, "bias", &bias_copy);
    Require(!input.weight || !input.bias || input.of_weight->dtype == input.of_bias->dtype, op,
            "(): weight and bias have different dtypes");
  }

  // Checks a weight or bias; gives its elements as the primitives take them: dense.
  const void* Column(const Tensor& tensor, const TensorInfo& column, const char* name,
                     OptionalTensor* copy) {
    const bool widened = column.dtype == DType::kFloat32 && SizeOf(x.dtype) == 2;
    Require(column.known && (column.dtype == x.dtype || widened), op, "(): ", name,
            " must have input's dtype, or float32 beside 16 bits");
    Require(column.numel() == rows.cols, op, "(): ", name, " has ", column.numel(),
            " elements, but rows have ", rows.cols);
    RequireBeside(op, name, column, x);
    spec.weight_dtype = column.dtype;
    if (IsContiguous(column)) return column.data;
    *copy = Copied(tensor);
    return (*copy)->data();
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
  // What forward gave of these.
  const void* Number(const Tensor& statistics, const char* name) const {
    const TensorInfo numbers(statistics);
    RequireNumbers(op, name, numbers, ComputeType(x.dtype), rows.rows, x);
    return numbers.data;
  }
  Tensor ColumnLike(const TensorInfo& column) const {
    return Empty(column.sizes, column.ndim, column.dtype, x.device);
  }

  const char* op;
  const TensorInfo& x;
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

// The elements of a tensor of x's shape as rows without gaps, aligned where invariant ones ask for
// it: its own or a copy's.
const void* Dense(const NormCall& call, const Tensor& t, const TensorInfo& info, bool invariant,
                  OptionalTensor* copy) {
  const int64_t cols = call.rows.cols;
  if (IsContiguous(info) && !NeedsCopy(invariant, info, cols, cols)) return info.data;
  *copy = Aligned(invariant, Copied(t), cols);
  return (*copy)->data();
}

template <class P>
NormOutputs Forward(const char* op, const NormInput& input, const Tensor* residual, int64_t dims,
                    double eps, bool invariant, bool statistics = true) {
  const NormCall call(op, input, dims);
  const auto again = [&](const Tensor& x) {
    return Forward<P>(op, NormInput(x, input.weight, input.bias), residual, dims, eps, invariant,
                      statistics);
  };
  if (!IsServed(call)) return again(Copied(input.x));
  if (NeedsCopy(invariant, call.x, call.rows.cols, call.rows.stride)) return again(CopyOf(input.x));
  typename P::Args args;
  args.x = call.x.data;
  args.weight = call.weight_data;
  NormOutputs out{EmptyLike(call.x), {}, {}, {}};
  args.y = out.y.data();
  if (statistics) {
    out.rstd = call.Statistics();
    args.rstd = out.rstd->data();
  }
  if constexpr (requires { args.bias; }) {
    args.bias = call.bias_data;
    if (statistics) {
      out.mean = call.Statistics();
      args.mean = out.mean->data();
    }
  }
  OptionalTensor copy;
  if (residual) {
    const TensorInfo r(*residual);
    RequireAlike(op, "residual", r, call.x);
    args.residual = Dense(call, *residual, r, invariant, &copy);
    out.sum = EmptyLike(call.x);
    args.sum = out.sum->data();
  }
  Run<P>(call, eps, args, invariant);
  return out;
}

// What both gradients share; `mean` and the bias are layer_norm's.
template <class P>
NormGradients Backward(const char* op, const Tensor& dout, const TensorInfo& dy, const Tensor* dsum,
                       const NormInput& input, const Tensor* mean, const Tensor& rstd, int64_t dims,
                       const bool (&needs)[3], bool invariant) {
  const NormCall call(op, input, dims);
  RequireAlike(op, "the gradient", dy, call.x);
  const auto again = [&](const Tensor& x) {
    return Backward<P>(op, dout, dy, dsum, NormInput(x, input.weight, input.bias), mean, rstd, dims,
                       needs, invariant);
  };
  if (!IsServed(call)) return again(Copied(input.x));
  if (NeedsCopy(invariant, call.x, call.rows.cols, call.rows.stride)) return again(CopyOf(input.x));
  OptionalTensor copy_of_dy, copy_of_dsum;
  typename P::Args args;
  args.dy = Dense(call, dout, dy, invariant, &copy_of_dy);
  args.x = call.x.data;
  args.rstd = call.Number(rstd, "rstd");
  args.weight = call.weight_data;
  if (dsum) {
    const TensorInfo d(*dsum);
    RequireAlike(op, "the sum's gradient", d, call.x);
    args.dsum = Dense(call, *dsum, d, invariant, &copy_of_dsum);
  }
  NormGradients g;
  if (needs[0]) {
    g.dx = EmptyLike(call.x);
    args.dx = g.dx->data();
  }
  if (needs[1] && input.weight) {
    g.dweight = call.ColumnLike(*input.of_weight);
    args.dweight = g.dweight->data();
  }
  if constexpr (requires { args.dbias; }) {
    args.mean = call.Number(*mean, "mean");
    if (needs[2] && input.bias) {
      g.dbias = call.ColumnLike(*input.of_bias);
      args.dbias = g.dbias->data();
    }
  }
  if (!call.has_elements()) {  // of no rows: no sum
    if (g.dweight) Zero(*g.dweight);
    if (g.dbias) Zero(*g.dbias);
  }
  RunBackward<P>(call, args, invariant);
  return g;
}

// The gradient, or what stands for one that is not needed.
Tensor OrNothing(OptionalTensor& gradient, const NormInput& input) {
  return gradient ? std::move(*gradient) : Nothing(input.of_x);
}

}  // namespace

NormInput::NormInput(const Tensor& x, const Tensor* weight, const Tensor* bias)
    : x(x), weight(weight), bias(bias), of_x(x) {
  if (weight) of_weight.emplace(*weight);
  if (bias) of_bias.emplace(*bias);
}

NormOutputs NormOf(const NormInput& input, bool centre, int64_t dims, double eps, bool invariant,
                   bool statistics) {
  if (!centre) {
    return Forward<RmsNorm>("rms_norm", input, nullptr, dims, eps, invariant, statistics);
  }
  return Forward<LayerNorm>("layer_norm", input, nullptr, dims, eps, invariant, statistics);
}

NormGradients NormGradientsOf(const NormInput& input, bool centre, const Tensor& dy,
                              const TensorInfo& of_dy, const Tensor* mean, const Tensor& rstd,
                              int64_t dims, const bool (&needs)[3], bool invariant) {
  if (!centre) {
    return Backward<RmsNormBackward>("rms_norm_backward", dy, of_dy, nullptr, input, nullptr, rstd,
                                     dims, needs, invariant);
  }
  return Backward<LayerNormBackward>("layer_norm_backward", dy, of_dy, nullptr, input, mean, rstd,
                                     dims, needs, invariant);
}

std::tuple<Tensor, Tensor, Tensor> LayerNormForward(const Tensor& x, const OptionalTensor& weight,
                                                    const OptionalTensor& bias, int64_t dims,
                                                    double eps, bool invariant) {
  NormOutputs out =
      NormOf({x, Address(weight), Address(bias)}, true, dims, eps, invariant, /*statistics=*/true);
  return {std::move(out.y), std::move(*out.mean), std::move(*out.rstd)};
}

std::tuple<Tensor, Tensor> RmsNormForward(const Tensor& x, const OptionalTensor& weight,
                                          int64_t dims, double eps, bool invariant) {
  NormOutputs out =
      NormOf({x, Address(weight), nullptr}, false, dims, eps, invariant, /*statistics=*/true);
  return {std::move(out.y), std::move(*out.rstd)};
}

Tensor LayerNormInference(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
                          int64_t dims, double eps, bool invariant) {
  return NormOf({x, Address(weight), Address(bias)}, true, dims, eps, invariant, false).y;
}

Tensor RmsNormInference(const Tensor& x, const OptionalTensor& weight, int64_t dims, double eps,
                        bool invariant) {
  return NormOf({x, Address(weight), nullptr}, false, dims, eps, invariant, false).y;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> AddLayerNormForward(
    const Tensor& x, const Tensor& residual, const OptionalTensor& weight,
    const OptionalTensor& bias, int64_t dims, double eps, bool invariant) {
  NormOutputs out =
      Forward<LayerNorm>("add_layer_norm", NormInput(x, Address(weight), Address(bias)), &residual,
                         dims, eps, invariant);
  return {std::move(out.y), std::move(*out.sum), std::move(*out.mean), std::move(*out.rstd)};
}

std::tuple<Tensor, Tensor, Tensor> AddRmsNormForward(const Tensor& x, const Tensor& residual,
                                                     const OptionalTensor& weight, int64_t dims,
                                                     double eps, bool invariant) {
  NormOutputs out = Forward<RmsNorm>("add_rms_norm", NormInput(x, Address(weight), nullptr),
                                     &residual, dims, eps, invariant);
  return {std::move(out.y), std::move(*out.sum), std::move(*out.rstd)};
}

std::tuple<Tensor, Tensor, Tensor> LayerNormGradient(
    const Tensor& dy, const OptionalTensor& dsum, const Tensor& x, const Tensor& mean,
    const Tensor& rstd, const OptionalTensor& weight, const OptionalTensor& bias, int64_t dims,
    bool need_dx, bool need_dweight, bool need_dbias, bool invariant) {
  const NormInput input(x, Address(weight), Address(bias));
  auto g = Backward<LayerNormBackward>("layer_norm_backward", dy, TensorInfo(dy), Address(dsum),
                                       input, &mean, rstd, dims,
                                       {need_dx, need_dweight, need_dbias}, invariant);
  return {OrNothing(g.dx, input), OrNothing(g.dweight, input), OrNothing(g.dbias, input)};
}

std::tuple<Tensor, Tensor> RmsNormGradient(const Tensor& dy, const OptionalTensor& dsum,
                                           const Tensor& x, const Tensor& rstd,
                                           const OptionalTensor& weight, int64_t dims, bool need_dx,
                                           bool need_dweight, bool invariant) {
  const NormInput input(x, Address(weight), nullptr);
  auto g =
      Backward<RmsNormBackward>("rms_norm_backward", dy, TensorInfo(dy), Address(dsum), input,
                                nullptr, rstd, dims, {need_dx, need_dweight, false}, invariant);
  return {OrNothing(g.dx, input), OrNothing(g.dweight, input)};
}

}  // namespace oneflow_lite::torch_ops
