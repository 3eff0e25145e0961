// SPDX-License-Identifier: Apache-2.0
//
// Which ops are linear, and in what: from it follow their signatures on partial sums, which
// check_op proves as it does the declared ones. A gradient stays a partial sum through them, and is
// added up once.
//
// Gradients of activations are linear too, and are left out: with them every rank would go on to
// compute with whole gradients where a reduce_scatter leaves it a part.
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/sharding.h"
#include "ops/reduce.h"

namespace oneflow_lite {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

bool DeclareAll(std::initializer_list<const char*> ops, std::initializer_list<uint64_t> sets) {
  for (const char* op : ops) DeclareLinear(op, sets);
  return true;
}

// In their input, or the one that is rearranged by the others.
const bool in_one = DeclareAll(
    {"neg",    "deg2rad",     "rad2deg",  "cast",         "view",         "permute",
     "expand", "slice",       "select",   "diagonal",     "as_strided",   "as_strided_backward",
     "sum",    "mean",        "cumsum",   "gather",       "index_select", "index_sum",
     "flip",   "roll",        "triangle", "pad_backward", "div",          "div_",
     "mul_",   "scale_rows_", "unfold"},
    {Bit(0)});
const bool in_two_at_once =
    DeclareAll({"add", "sub", "add_", "sub_", "copy_", "lerp", "lerp_", "addcdiv", "addcdiv_"},
               {Bit(0) | Bit(1)});
const bool in_each = DeclareAll({"mul", "matmul"}, {Bit(0), Bit(1)});
const bool in_all = DeclareAll({"cat"}, {kAll});
const bool in_branches = DeclareAll({"where"}, {Bit(1) | Bit(2)});
const bool in_target_and_source =
    DeclareAll({"index_copy_", "index_add_", "scatter_", "scatter_add_"}, {Bit(0) | Bit(2)});
const bool in_a_product = DeclareAll({"addcmul", "addcmul_"}, {Bit(0) | Bit(1), Bit(0) | Bit(2)});
const bool in_rows_or_weight = DeclareAll({"linear"}, {Bit(0) | Bit(2), Bit(1) | Bit(2)});

// A mean over a dim that is split: the means of the parts, each by its share of the elements.
double ShareOfMean(const PhysicalContext& c) {
  const Dims& dims = c.attrs.get<Dims>(kDims);
  const double whole = TermsOf(c.logical_inputs[0].shape, dims);
  return whole == 0 ? 1 : TermsOf(c.inputs[0].shape, dims) / whole;
}
StatusOr<SbpSignatures> SplitReduced(const SbpContext& c) {
  SbpSignatures out;
  for (const int64_t d : c.attrs.get<Dims>(kDims)) {
    if (c.inputs[0][static_cast<int>(d)] == 0) continue;
    out.push_back({{Sbp::Split(static_cast<int>(d))}, {Sbp::PartialSum()}});
  }
  return out;
}
const bool mean = DeclareWeighted("mean", {SplitReduced, ShareOfMean});

// A loss that is a mean splits as its sum does.
constexpr int kReduction = 1;
double ShareOfLoss(const PhysicalContext& c) {
  const auto whole = static_cast<double>(c.logical_inputs[0].shape.numel());
  if (whole == 0 || c.attrs.get<std::string>(kReduction) != "mean") return 1;
  return static_cast<double>(c.inputs[0].shape.numel()) / whole;
}
StatusOr<SbpSignatures> SplitAsSum(const SbpContext& c) {
  if (c.attrs.get<std::string>(kReduction) != "mean" || c.inputs[0].numel() == 0) {
    return SbpSignatures{};
  }
  OFL_ASSIGN_OR_RETURN(const OpExpr* loss, FindOp("loss"));
  Attrs attrs = c.attrs;
  attrs[kReduction] = std::string("sum");
  return loss->def().sbp({c.inputs, attrs});
}
const bool loss = DeclareWeighted("loss", {SplitAsSum, ShareOfLoss});

}  // namespace
}  // namespace oneflow_lite
