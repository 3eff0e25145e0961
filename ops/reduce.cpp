// SPDX-License-Identifier: Apache-2.0
//
// Reductions over a run of neighbouring dims, on CUDA but for products over any dims. Those along
// one dim are in reduce_along.cpp, the gradients in reduce_grad.cpp.
#include "ops/reduce.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite {

Shape ReducedShape(const Shape& in, const Dims& dims, bool keepdim) {
  Shape out;
  for (int d = 0; d < in.ndim(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (!reduced)
      out.dims().push_back(in[d]);
    else if (keepdim)
      out.dims().push_back(1);
  }
  return out;
}

Status CheckReduceDims(const InferContext& c, bool apart) {
  const Dims& dims = c.attr<Dims>(kDims);
  const int ndim = c.shape(0).ndim();
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t gap = i > 0 ? dims[i] - dims[i - 1] : 1;
    if (dims[i] < 0 || dims[i] >= ndim || gap < 1 || (gap > 1 && !apart)) {
      return Error(ErrorKind::kIndex, c.op(), "(): dims ", ToString(dims), " are not ",
                   apart ? "rising" : "neighbouring", " dims of shape ", c.shape(0).ToString());
    }
  }
  return OkStatus();
}

Status CheckNotEmpty(const InferContext& c, int64_t reduced, int64_t outputs, const char* what) {
  if (reduced > 0 || outputs == 0) return OkStatus();
  return Error(ErrorKind::kIndex, c.op(), "(): there is no ", what, " of no elements: shape ",
               c.shape(0).ToString());
}

double TermsOf(const Shape& shape, const Dims& dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(shape[static_cast<int>(d)]);
  return n;
}

SbpSignatures ReduceSignatures(const SbpContext& c, int outputs, bool partial) {
  SbpSignatures out;
  const Dims& dims = c.attrs.get<Dims>(kDims);
  int kept = 0;
  for (int d = 0; d < c.inputs[0].ndim(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (reduced && !partial) continue;
    SbpSignature s{{Sbp::Split(d)}, {}};
    s.outputs.assign(
        outputs, reduced ? Sbp::PartialSum() : Sbp::Split(c.attrs.get<bool>(kKeepDim) ? d : kept));
    out.push_back(s);
    kept += !reduced;
  }
  return out;
}

StatusOr<Tensor> KeepDims(const GradContext& c, const Tensor& g) {
  return functional::Reshape(g, ReducedShape(c.spec(0).shape, c.attr<Dims>(kDims), true));
}

namespace {

// The dtype of the results.
enum class Result { kInput, kSum, kFloat, kBool, kInt64, kWide };

struct Row {
  const char* name;
  const char* doc;
  Result result;
  bool partial;           // sums of parts give the sum
  const char* number;     // the name of the op's number, or null
  const char* extreme;    // what there is none of without elements, or null
  uint64_t keep_inputs;   // for backward
  uint64_t keep_outputs;  // for backward
  Status (*grad)(GradContext&);
  const char* outputs[2];

  // Whether the result may have another dtype than the input's.
  constexpr bool any_float() const {
    const bool spread = grad == VarGrad || grad == StdGrad;
    return (result == Result::kSum || result == Result::kFloat) && !spread;
  }
  bool two() const { return outputs[1] != nullptr; }
  bool product() const { return grad == ProdGrad || result == Result::kWide; }
};

Status SumGrad(GradContext& c) {
  OFL_ASSIGN_OR_RETURN(Tensor g, KeepDims(c, c.grad(0)));
  OFL_ASSIGN_OR_RETURN(g, functional::Cast(g, c.spec(0).dtype));
  return c.Set(0, functional::Expand(g, c.spec(0).shape));
}

Status MeanGrad(GradContext& c) {
  OFL_ASSIGN_OR_RETURN(Tensor g, KeepDims(c, c.grad(0)));
  OFL_ASSIGN_OR_RETURN(Tensor scaled,
                       functional::Div(g, Scalar(TermsOf(c.spec(0).shape, c.attr<Dims>(kDims)))));
  OFL_ASSIGN_OR_RETURN(scaled, functional::Cast(scaled, c.spec(0).dtype));
  return c.Set(0, functional::Expand(scaled, c.spec(0).shape));
}

constexpr Row kRows[] = {
    {"sum",
     "Sum over neighbouring dims.",
     Result::kSum,
     true,
     nullptr,
     nullptr,
     0,
     0,
     SumGrad,
     {"out", nullptr}},
    {"mean",
     "Mean over neighbouring dims.",
     Result::kFloat,
     false,
     nullptr,
     nullptr,
     0,
     0,
     MeanGrad,
     {"out", nullptr}},
    {"nansum",
     "Sum over neighbouring dims of what is not NaN.",
     Result::kFloat,
     true,
     nullptr,
     nullptr,
     Bit(0),
     0,
     NanSumGrad,
     {"out", nullptr}},
    {"nanmean",
     "Mean over neighbouring dims of what is not NaN.",
     Result::kFloat,
     false,
     nullptr,
     nullptr,
     Bit(0),
     0,
     NanMeanGrad,
     {"out", nullptr}},
    {"prod",
     "Product over neighbouring dims.",
     Result::kSum,
     false,
     nullptr,
     nullptr,
     Bit(0),
     0,
     ProdGrad,
     {"out", nullptr}},
    {"amax",
     "Maximum over neighbouring dims; NaN wins.",
     Result::kInput,
     false,
     nullptr,
     "maximum",
     Bit(0),
     Bit(0),
     ExtremeGrad,
     {"out", nullptr}},
    {"amin",
     "Minimum over neighbouring dims; NaN wins.",
     Result::kInput,
     false,
     nullptr,
     "minimum",
     Bit(0),
     Bit(0),
     ExtremeGrad,
     {"out", nullptr}},
    {"aminmax",
     "Minimum and maximum over neighbouring dims; NaN wins.",
     Result::kInput,
     false,
     nullptr,
     "minimum",
     Bit(0),
     Bit(0) | Bit(1),
     MinMaxGrad,
     {"min", "max"}},
    {"any",
     "Whether any element over neighbouring dims is not 0.",
     Result::kBool,
     false,
     nullptr,
     nullptr,
     0,
     0,
     nullptr,
     {"out", nullptr}},
    {"all",
     "Whether no element over neighbouring dims is 0.",
     Result::kBool,
     false,
     nullptr,
     nullptr,
     0,
     0,
     nullptr,
     {"out", nullptr}},
    {"count_nonzero",
     "How many elements over neighbouring dims are not 0.",
     Result::kInt64,
     true,
     nullptr,
     nullptr,
     0,
     0,
     nullptr,
     {"out", nullptr}},
    {"vector_norm",
     "The p-norm over neighbouring dims.",
     Result::kFloat,
     false,
     "p",
     nullptr,
     Bit(0),
     Bit(0),
     NormGrad,
     {"out", nullptr}},
    {"logsumexp",
     "log(sum(exp(x))) over neighbouring dims, without overflow.",
     Result::kFloat,
     false,
     nullptr,
     nullptr,
     Bit(0),
     Bit(0),
     LogSumExpGrad,
     {"out", nullptr}},
    {"var",
     "Variance over neighbouring dims: squared distances over n - correction.",
     Result::kFloat,
     false,
     "correction",
     nullptr,
     Bit(0),
     0,
     VarGrad,
     {"out", nullptr}},
    {"std",
     "The root of var.",
     Result::kFloat,
     false,
     "correction",
     nullptr,
     Bit(0),
     Bit(0),
     StdGrad,
     {"out", nullptr}},
    {"var_mean",
     "Variance and mean over neighbouring dims.",
     Result::kFloat,
     false,
     "correction",
     nullptr,
     Bit(0),
     0,
     VarGrad,
     {"var", "mean"}},
    {"std_mean",
     "Standard deviation and mean over neighbouring dims.",
     Result::kFloat,
     false,
     "correction",
     nullptr,
     Bit(0),
     Bit(0),
     StdGrad,
     {"std", "mean"}},
    {"prod_parts",
     "The product of what is not 0 over neighbouring dims, and how many zeros.",
     Result::kWide,
     false,
     nullptr,
     nullptr,
     0,
     0,
     nullptr,
     {"product", "zeros"}},
};

StatusOr<DType> ResultDType(const Row& row, const InferContext& c, int dtype_attr) {
  const DType in = c.dtype(0);
  if ((row.result == Result::kFloat || row.result == Result::kWide) && !IsFloating(in)) {
    return UnsupportedDType(c.op(), "the input", in, kFloatingDTypes);
  }
  switch (row.result) {
    case Result::kBool:
      return DType::kBool;
    case Result::kInt64:
      return DType::kInt64;
    case Result::kWide:
      return ComputeType(in);
    case Result::kInput:
      return in;
    default:
      break;
  }
  if (!IsFloating(in)) return DType::kInt64;
  if (!row.any_float() || !c.attrs().has(dtype_attr)) return in;
  const DType given = c.attr<DType>(dtype_attr);
  if (IsFloating(given)) return given;
  return UnsupportedDType(c.op(), "dtype", given, kFloatingDTypes);
}

Status InferReduce(const Row& row, InferContext& c) {
  const bool apart = c.input(0).device.type == DeviceType::kCUDA && !row.product();
  OFL_RETURN_IF_ERROR(CheckReduceDims(c, apart));
  const Dims& dims = c.attr<Dims>(kDims);
  OFL_ASSIGN_OR_RETURN(const DType dtype, ResultDType(row, c, row.number ? kNumber + 1 : kNumber));
  const Shape shape = ReducedShape(c.shape(0), dims, c.attr<bool>(kKeepDim));
  if (row.extreme) {
    int64_t reduced = 1;
    for (int64_t d : dims) reduced *= c.shape(0)[static_cast<int>(d)];
    OFL_RETURN_IF_ERROR(CheckNotEmpty(c, reduced, shape.numel(), row.extreme));
  }
  c.SetOutput(0, shape, dtype);
  if (row.two()) c.SetOutput(1, shape, row.result == Result::kWide ? DType::kInt64 : dtype);
  return OkStatus();
}

void Define(const Row& row, OpDef& op) {
  op.Input("in");
  for (const char* name : row.outputs) {
    if (name) op.Output(name);
  }
  op.Attr("dims", AttrType::kInts).Attr("keepdim", AttrType::kBool, false);
  if (row.number) op.Attr(row.number, AttrType::kFloat);
  if (row.any_float()) op.OptionalAttr("dtype", AttrType::kDType);
  op.doc = row.doc;
  op.infer = [&row](InferContext& c) { return InferReduce(row, c); };
  op.sbp = [&row](const SbpContext& c) {
    return ReduceSignatures(c, row.two() ? 2 : 1, row.partial);
  };
  op.sbp_text =
      row.partial ? "split on a dim that is kept; on a reduced one for partial sums" : kSplitKept;
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec> outputs) {
    Cost cost;
    cost.flops = static_cast<double>(c.shape(0).numel());
    cost.bytes = cost.flops * static_cast<double>(SizeOf(c.dtype(0)));
    for (const TensorSpec& y : outputs) {
      cost.bytes += static_cast<double>(y.shape.numel()) * static_cast<double>(SizeOf(y.dtype));
    }
    return cost;
  };
  op.cost_text =
      "each input is read once, each output written once; one operation per input element";
  op.differentiable = row.grad != nullptr;
  if (row.keep_inputs | row.keep_outputs) {
    op.save = [&row](const Attrs&, Needs) {
      return SavePlan{.inputs = row.keep_inputs, .outputs = row.keep_outputs};
    };
  }
  if (row.grad) op.backward = row.grad;
}

// A definition has no argument that would say which row it is.
template <size_t kIndex>
void DefineRow(OpDef& op) {
  Define(kRows[kIndex], op);
}
template <size_t... kIndex>
bool RegisterRows(std::index_sequence<kIndex...>) {
  return (internal::AppendOp(kRows[kIndex].name, &DefineRow<kIndex>, __FILE__, __LINE__) && ...);
}
const bool registered = RegisterRows(std::make_index_sequence<std::size(kRows)>());

}  // namespace
}  // namespace oneflow_lite
