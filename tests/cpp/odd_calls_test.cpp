// SPDX-License-Identifier: Apache-2.0
//
// The framework's seams given what makes no sense: a Status each, and never the end of the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework_testing.h"
#include "functional/global.h"
#include "functional/index_rows.h"
#include "functional/random.h"
#include "functional/reduce.h"
#include "functional/softmax.h"
#include "functional/stacks.h"
#include "functional/unary.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/placement.h"
#include "oneflow_lite/framework/saved_tensor.h"

namespace oneflow_lite {
namespace {

using ::testing::HasSubstr;

void ExpectError(const Status& s, const std::string& part) {
  EXPECT_FALSE(s.ok()) << part;
  EXPECT_THAT(std::string(s.message()), HasSubstr(part));
}
Tensor X() { return FromList({3}, {1, 2, 3}); }

TEST(OddCalls, ADTypeThatIsNone) {
  const OpExpr& op = **FindOp("softmax");
  ExpectError(Call(op, {X()}, {int64_t{0}, DType(77)}).status(), "out_dtype is unknown");
  EXPECT_TRUE(Call(op, {X()}, {int64_t{0}, AttrValue()}).ok());
}

class Nothing : public DispatchMode {
  Status Run(OpCall&, const Next&) override { return OkStatus(); }
};
class Clears : public DispatchMode {
  Status Run(OpCall& call, const Next& next) override {
    const Status s = next(call);
    call.outputs->clear();
    return s;
  }
};
class FewerInputs : public DispatchMode {
  Status Run(OpCall& call, const Next& next) override {
    call.inputs = call.inputs.subspan(1);
    return next(call);
  }
};

TEST(OddCalls, ModesThatDoNotDoTheirPart) {
  Nothing nothing;
  Clears clears;
  FewerInputs fewer;
  for (const DispatchStage stage : {DispatchStage::kObserver, DispatchStage::kAutocast}) {
    for (DispatchMode* mode :
         {static_cast<DispatchMode*>(&nothing), static_cast<DispatchMode*>(&clears)}) {
      const ModeGuard guard(stage, mode);
      ExpectError(F::Exp(X()).status(), "exp(): a dispatch mode gave 0 outputs");
    }
    const ModeGuard guard(stage, &fewer);
    ExpectError(F::Exp(X()).status(), "exp(): called with 0 inputs");
  }
}

TEST(OddCalls, HooksThatAreNoFunctions) {
  const Tensor w = FromList({2}, {1, 2}, true);
  ExpectError(autograd::AddHook(w, {}).status(), "register_hook(): the hook is empty");
  ExpectError(autograd::AddPostHook(w, {}).status(), "the hook is empty");
  const SavedTensorHooksGuard guard({});
  ExpectError(F::Exp(w).status(), "one of the hooks is empty");
}

TEST(OddCalls, AnUnpackThatGivesNothing) {
  const Tensor w = FromList({2}, {1, 2}, true);
  SavedTensorHooks hooks;
  hooks.pack = [](const Tensor&) -> StatusOr<std::shared_ptr<void>> {
    return std::make_shared<int>(1);
  };
  hooks.unpack = [](void*) -> StatusOr<Tensor> { return Tensor(); };
  StatusOr<Tensor> y = Tensor();
  {
    const SavedTensorHooksGuard guard(hooks);
    y = F::Exp(w);
  }
  ASSERT_TRUE(y.ok()) << y.status();
  ExpectError(autograd::Backward({*F::Sum(*y)}, {}), "what the hook unpack gave is not defined");
}

OpDef OddOp(std::string name) {
  OpDef op;
  op.name = std::move(name);
  op.Input("x").Output("y");
  op.infer = [](InferContext& c) -> Status {
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  return op;
}
class GivesAnOutput final : public BoundKernel {
  Status Launch(KernelContext& context) const override {
    context.set_output(0, X());
    return OkStatus();
  }
};

TEST(OddCalls, KernelsThatAreNoneOrGiveWhatIsThere) {
  ASSERT_TRUE(RegisterOp(OddOp("odd::null")).ok());
  ASSERT_TRUE(RegisterKernel({.op = "odd::null",
                              .dtypes = kAllDTypes,
                              .bind =
                                  [](const BindContext&) {
                                    return StatusOr<std::unique_ptr<BoundKernel>>(nullptr);
                                  }})
                  .ok());
  ExpectError(Call(**FindOp("odd::null"), {X()}).status(), "odd::null(): bind gave no kernel");
  ASSERT_TRUE(RegisterOp(OddOp("odd::gives")).ok());
  ASSERT_TRUE(RegisterKernel({.op = "odd::gives",
                              .dtypes = kAllDTypes,
                              .bind =
                                  [](const BindContext&) {
                                    return StatusOr<std::unique_ptr<BoundKernel>>(
                                        std::make_unique<GivesAnOutput>());
                                  }})
                  .ok());
  ExpectError(Call(**FindOp("odd::gives"), {X()}).status(), "does not say makes_outputs");
}

TEST(OddCalls, ListsThatAreMissing) {
  const OpDef& op = (**FindOp("multi_scale_")).def();
  ExpectError(JoinLists(op, {}, {}).status(), "the tensors is 0 lists");
  const TensorList list = {X()};
  ExpectError(JoinLists(op, {}, {list, list, list, list, list}).status(), "the tensors is 5 lists");
}

TEST(OddCalls, PlacementsThatAreNone) {
  const PlacementRef p = *Placement::Get(DeviceType::kMeta, {0}, {1});
  const Sbp unknown{static_cast<Sbp::Kind>(9), 0};
  const Tensor x = *F::To(X(), Device{DeviceType::kMeta, 0}, {});
  ExpectError(F::LocalToGlobal(x, nullptr, {Sbp::Broadcast()}).status(),
              "placement is not defined");
  ExpectError(F::FromShard(x, Shape{3}, nullptr, {Sbp::Broadcast()}).status(), "placement is not");
  ExpectError(F::Boxed(x, p, {Sbp::Broadcast()}).status(), "is no global tensor");
  ExpectError(F::LocalToGlobal(x, p, {unknown}).status(), "an sbp is of kind 9");
  const Tensor g = *F::LocalToGlobal(x, p, {Sbp::Broadcast()});
  ExpectError(F::Boxed(g, nullptr, {Sbp::Broadcast()}).status(), "placement is not defined");
}

TEST(OddCalls, NumbersOutOfRange) {
  ExpectError(F::TakeNumbers({}, Device{}, 5, 0).status(), "per_counter is 0");
  const Tensor places = F::Cast(FromList({1}, {0}), DType::kInt64).value();
  ExpectError(F::IndexDim(X(), 5, places, 0).status(), "dim 5 is out of range");
  ExpectError(F::IndexDimInto(X(), -2, places, X(), 0, false).status(), "dim -2 is out of range");
  ExpectError(F::CartesianProd({Tensor()}).status(), "cartesian_prod(): tensors is not defined");
  EXPECT_EQ((Device{static_cast<DeviceType>(9), 0}).ToString(), "unknown");
}

}  // namespace
}  // namespace oneflow_lite
