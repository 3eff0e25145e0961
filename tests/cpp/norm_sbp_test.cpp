// SPDX-License-Identifier: Apache-2.0
//
// The norms' ops run shard by shard under every signature they declare, and give what the whole
// gives: split outputs concatenated, partial sums added.
#include <gtest/gtest.h>

#include <cmath>

#include "functional/binary.h"
#include "functional/creation.h"
#include "functional/view.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

namespace F = functional;

Tensor Shard(const Tensor& t, const Sbp& sbp, int64_t part, int64_t parts) {
  if (!t.defined() || sbp.kind != Sbp::Kind::kSplit) return t;
  const int64_t size = t.shape()[sbp.axis] / parts;
  return F::Slice(t, sbp.axis, part * size, (part + 1) * size).value();
}

void ExpectClose(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  const Tensor x = F::Add(a, Scalar(0.0)).value();  // contiguous
  const Tensor y = F::Add(b, Scalar(0.0)).value();
  for (int64_t i = 0; i < x.numel(); ++i) {
    ASSERT_NEAR(x.data<double>()[i], y.data<double>()[i], 1e-12) << what << ", element " << i;
  }
}

// Each declared signature on two shards against the whole.
void CheckSignatures(const char* name, const TensorList& inputs, const Attrs& attrs,
                     size_t signatures_expected) {
  const OpExpr& op = **FindOp(name);
  SbpContext context{{}, attrs};
  for (const Tensor& t : inputs) context.inputs.push_back(t.defined() ? t.shape() : Shape());
  const SbpSignatures signatures = op.def().sbp(context).value();
  ASSERT_EQ(signatures.size(), signatures_expected) << name;
  const TensorList whole = CallAll(op, inputs, attrs).value();
  for (const SbpSignature& s : signatures) {
    ASSERT_EQ(s.inputs.size(), inputs.size()) << name;
    ASSERT_EQ(s.outputs.size(), whole.size()) << name;
    TensorList results[2];
    for (int part = 0; part < 2; ++part) {
      TensorList shards;
      for (size_t i = 0; i < inputs.size(); ++i) {
        shards.push_back(Shard(inputs[i], s.inputs[i], part, 2));
      }
      results[part] = CallAll(op, shards, attrs).value();
    }
    for (size_t i = 0; i < whole.size(); ++i) {
      const std::string what =
          std::string(name) + " output " + std::to_string(i) + " by " + s.inputs[0].ToString();
      if (s.outputs[i].kind == Sbp::Kind::kPartialSum) {
        ExpectClose(F::Add(results[0][i], results[1][i]).value(), whole[i], what);
        continue;
      }
      for (int part = 0; part < 2; ++part) {
        ExpectClose(results[part][i], Shard(whole[i], s.outputs[i], part, 2), what);
      }
    }
  }
}

Tensor Normal(absl::Span<const int64_t> size) {
  return F::Randn(size, {}, DType::kFloat64).value();
}

TEST(NormSbp, DeclaredSignaturesHold) {
  const Tensor x = Normal({4, 6, 5}), r = Normal({4, 6, 5}), dy = Normal({4, 6, 5});
  const Tensor weight = Normal({5}), bias = Normal({5}), none;
  const Attrs attrs{int64_t{2}, 1e-5, false, true};
  CheckSignatures("layer_norm", {x, weight, bias}, attrs, 2);
  CheckSignatures("layer_norm", {x, none, bias}, attrs, 2);
  CheckSignatures("rms_norm", {x, weight}, attrs, 2);
  CheckSignatures("add_layer_norm", {x, r, weight, none}, attrs, 2);
  CheckSignatures("add_rms_norm", {x, r, weight}, attrs, 2);
  CheckSignatures("layer_norm", {x, Normal({6, 5}), none}, {int64_t{-2}, 1e-5, false, true}, 1);
  const Attrs without{int64_t{2}, 1e-5, false, false};
  CheckSignatures("layer_norm", {x, weight, bias}, without, 2);
  CheckSignatures("add_rms_norm", {x, r, weight}, without, 2);

  const TensorList y = CallAll(**FindOp("layer_norm"), {x, weight, bias}, attrs).value();
  const Attrs all{int64_t{2}, int64_t{7}};
  CheckSignatures("layer_norm_backward", {dy, y[2], x, none, weight, r, bias, y[1]}, all, 2);
  CheckSignatures("layer_norm_backward", {dy, y[2], none, y[0], weight, none, bias, none}, all, 2);
  const TensorList z = CallAll(**FindOp("rms_norm"), {x, weight}, attrs).value();
  const Attrs both{int64_t{2}, int64_t{3}};
  CheckSignatures("rms_norm_backward", {dy, z[1], x, none, weight, none}, both, 2);
}

TEST(NormSbp, CostCountsEveryTensorOnce) {
  const OpDef& op = (*FindOp("add_rms_norm"))->def();
  const Attrs attrs{int64_t{1}, 1e-5, false, true};
  const TensorSpec rows{Shape{8, 16}, DType::kFloat16}, weight{Shape{16}, DType::kFloat32};
  absl::InlinedVector<TensorSpec, 2> outputs;
  ASSERT_TRUE(InferOutputs(op, {rows, rows, weight}, attrs, &outputs).ok());
  const Cost cost = CostOf(op, {rows, rows, weight}, attrs, outputs);
  EXPECT_EQ(cost.bytes, 4 * 8 * 16 * 2 + 16 * 4 + 8 * 4);
  EXPECT_GT(cost.flops, 0);

  const Attrs without{int64_t{1}, 1e-5, false, false};
  outputs.clear();
  ASSERT_TRUE(InferOutputs(op, {rows, rows, weight}, without, &outputs).ok());
  EXPECT_EQ(CostOf(op, {rows, rows, weight}, without, outputs).bytes, cost.bytes - 8 * 4);
}

}  // namespace
}  // namespace oneflow_lite
