// SPDX-License-Identifier: Apache-2.0
//
// A number that was cast to DType and is none: every functor that takes a dtype refuses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework_testing.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/softmax.h"
#include "functional/view_dtype.h"
#include "oneflow_lite/framework/function.h"
#include "plausible_argument.h"

namespace oneflow_lite {
namespace {

using ::testing::HasSubstr;

constexpr auto kNone = static_cast<DType>(99);

TEST(UnknownDType, IsNamedWhereItEnters) {
  const Tensor x = FromList({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(std::string(F::Softmax(x, 0, kNone).status().message()),
            "cast(): the result has dtype unknown, but it must be one of those of DType");
  EXPECT_EQ(KindOf(F::Softmax(x, 0, kNone).status()), ErrorKind::kDType);
  EXPECT_THAT(std::string(F::Empty({2}, kNone).status().message()), HasSubstr("dtype unknown"));
  EXPECT_THAT(std::string(F::View(x, kNone).status().message()), HasSubstr("dtype unknown"));
  EXPECT_FALSE(Tensor::Empty({2}, kNone, Device{}).ok());
  EXPECT_FALSE(F::Zeros({2}, kNone, Device{DeviceType::kMeta, 0}).ok());
}

TEST(UnknownDType, IsRefusedByEveryFunctionThatTakesOne) {
  int named = 0;
  for (const FunctionSchema* f : ListFunctions()) {
    ValueList values;
    bool takes_one = false;
    for (const ArgSchema& a : f->args) {
      const bool is_dtype = a.type == ArgType::kDType;
      takes_one = takes_one || is_dtype;
      const Value given = a.has_default ? a.default_value : Plausible(a);
      values.push_back(is_dtype ? Value(kNone) : given);
    }
    if (!takes_one) continue;
    Value result;
    const Status s = (*f)(absl::MakeSpan(values), &result);
    EXPECT_FALSE(s.ok()) << f->text;
    named += std::string(s.message()).find("dtype unknown") != std::string::npos;
  }
  EXPECT_GT(named, 30);
}

}  // namespace
}  // namespace oneflow_lite
