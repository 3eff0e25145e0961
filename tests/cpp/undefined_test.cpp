// SPDX-License-Identifier: Apache-2.0
//
// Undefined tensors, such as Grad() gives where there is none: errors that name the argument.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework_testing.h"
#include "functional/binary.h"
#include "functional/cross_entropy.h"
#include "functional/layer_norm.h"
#include "functional/matmul.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/softmax.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/framework/function.h"
#include "plausible_argument.h"

namespace oneflow_lite {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const Status& s, const std::string& message) {
  EXPECT_EQ(KindOf(s), ErrorKind::kType) << s;
  EXPECT_EQ(std::string(s.message()), message);
}

TEST(Undefined, AFunctorNamesTheArgument) {
  const Tensor t, x = FromList({2, 2}, {1, 2, 3, 4}), w = FromList({2, 2}, {1, 0, 0, 1}, true);
  const Tensor wide = F::Cast(x, DType::kFloat64).value();
  ExpectRefused(F::Softmax(t, 1).status(), "softmax(): input is not defined");
  ExpectRefused(F::Softmax(t, {}, DType::kFloat64).status(), "softmax(): input is not defined");
  ExpectRefused(F::LayerNorm(t, {2}).status(), "layer_norm(): input is not defined");
  ExpectRefused(F::Add(t, x).status(), "add(): input is not defined");
  ExpectRefused(F::Add(x, t).status(), "add(): other is not defined");
  ExpectRefused(F::Add(wide, t).status(), "add(): other is not defined");
  ExpectRefused(F::AddInto(t, w).status(), "add_(): self is not defined");
  ExpectRefused(F::Exp(t).status(), "exp(): input is not defined");
  ExpectRefused(F::Matmul(t, x).status(), "matmul(): input is not defined");
  ExpectRefused(F::Matmul(x, t).status(), "matmul(): other is not defined");
  ExpectRefused(F::Linear(x, t, {}).status(), "linear(): weight is not defined");
  ExpectRefused(F::Sum(t).status(), "sum(): input is not defined");
  ExpectRefused(F::Sum(t, Dims{1}).status(), "sum(): input is not defined");
  ExpectRefused(F::MaskedFill(x, t, Scalar(0)).status(), "masked_fill(): mask is not defined");
  ExpectRefused(F::CopyInto(t, x).status(), "copy_(): self is not defined");
  ExpectRefused(F::Slice(t, 0, 0, 1).status(), "slice(): input is not defined");
  ExpectRefused(F::CrossEntropy(t, x).status(), "cross_entropy(): input is not defined");
  EXPECT_THAT(std::string(F::Reshape(t, {4}).status().message()),
              HasSubstr("reshape(): shape [4] does not go with an undefined tensor"));
  EXPECT_FALSE(F::CrossEntropy(x, t).ok());
}

TEST(Undefined, AutogradKnowsNothingOfIt) {
  const Tensor t, w = FromList({2}, {1, 2}, true);
  EXPECT_FALSE(autograd::RequiresGrad(t));
  EXPECT_TRUE(autograd::IsLeaf(t));
  EXPECT_FALSE(autograd::Grad(t).defined());
  EXPECT_FALSE(autograd::GradFn(t));
  EXPECT_FALSE(autograd::Base(t).defined());
  EXPECT_FALSE(autograd::GradientEdge(t).node);
  EXPECT_FALSE(t.Detach().defined());
  EXPECT_EQ(t.data(), nullptr);
  ExpectRefused(autograd::SetRequiresGrad(t, true), "requires_grad(): the tensor is not defined");
  ExpectRefused(autograd::SetGrad(t, w), "grad(): the tensor is not defined");
  ExpectRefused(autograd::RetainGrad(t), "retain_grad(): the tensor is not defined");
  ExpectRefused(autograd::AddHook(t, {}).status(), "register_hook(): the tensor is not defined");
  ExpectRefused(autograd::Backward({t}, {}), "backward(): output 0 is not defined");
  const Tensor loss = F::Sum(w).value();
  ExpectRefused(autograd::Gradients({loss}, {t}, {}).status(), "grad(): input 0 is not defined");
  ASSERT_TRUE(autograd::Backward({loss}, {}).ok());
  ExpectList(autograd::Grad(w), {1, 1});
}

// Not of an undefined tensor, but of the same caller.
TEST(Undefined, DataOfAnotherTypeSaysWhichItIs) {
  const Tensor x = FromList({2}, {1, 2});
  EXPECT_DEATH(x.data<double>(), "asked for elements of float64, but the tensor has float32");
}

bool IsUndefined(const Value& v) {
  const Tensor* t = std::get_if<Tensor>(&v);
  return t && !t->defined();
}

// Whatever a function looks at before it calls an op: an error, or nothing for nothing.
TEST(Undefined, EveryFunctionStandsIt) {
  for (const FunctionSchema* f : ListFunctions()) {
    for (size_t i = 0; i < f->args.size(); ++i) {
      const ArgType type = f->args[i].type;
      const bool list = type == ArgType::kTensorList;
      if (f->args[i].optional || (type != ArgType::kTensor && type != ArgType::kOperand && !list)) {
        continue;
      }
      ValueList values;
      for (const ArgSchema& arg : f->args) {
        values.push_back(arg.has_default ? arg.default_value : Plausible(arg));
      }
      values[i] = list ? Value(TensorList{Tensor()}) : Value(Tensor());
      Value result;
      const Status s = (*f)(absl::MakeSpan(values), &result);
      EXPECT_TRUE(!s.ok() || IsUndefined(result)) << f->text << " with an undefined " << i;
    }
  }
}

}  // namespace
}  // namespace oneflow_lite
