// SPDX-License-Identifier: Apache-2.0
//
// The framework's seams, driven from C++: registries, dispatch chain, meta, SBP, allocator, fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/cord.h"
#include "framework_testing.h"
#include "functional/binary.h"
#include "functional/creation.h"
#include "functional/index_rows.h"
#include "functional/matmul.h"
#include "functional/reduce.h"
#include "functional/softmax.h"
#include "functional/view.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/placement.h"

namespace oneflow_lite {
namespace {

TEST(OpRegistry, TwiceIsAnErrorThatNamesBothPlaces) {
  OpDef op;
  op.name = "softmax";
  op.file = "elsewhere.cpp";
  op.line = 7;
  op.Input("in").Output("out");
  op.infer = [](InferContext&) { return OkStatus(); };
  const Status s = RegisterOp(op);
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.message().find("elsewhere.cpp:7"), absl::string_view::npos) << s;
  EXPECT_NE(s.message().find("softmax.cpp"), absl::string_view::npos) << s;
}

TEST(Errors, ARenamedOneKeepsItsKindAndPayloads) {
  Status s = MakeError(ErrorKind::kValue, "inner(): x is 3, but must be 4");
  s.SetPayload("mine", absl::Cord("kept"));
  for (const Status& first : {s, Renamed("middle", s)}) {
    const Status renamed = Renamed("outer", first);
    EXPECT_EQ(renamed.message(), "outer(): x is 3, but must be 4");
    EXPECT_EQ(KindOf(renamed), ErrorKind::kValue);
    EXPECT_EQ(renamed.GetPayload("mine"), absl::Cord("kept"));
  }
}

TEST(OpRegistry, UnknownOpNamesNearOnes) {
  const auto found = FindOp("soft");
  EXPECT_EQ(KindOf(found.status()), ErrorKind::kNotImplemented);
  EXPECT_NE(found.status().message().find("log_softmax"), absl::string_view::npos);
}

TEST(OpRegistry, ShortNamesHaveFewNearOnes) {
  for (const char* name : {"", "a"}) {
    EXPECT_LT(FindOp(name).status().message().size(), 200u) << name;
  }
}

TEST(OpRegistry, IncompleteDefinitionIsRefused) {
  OpDef op;
  op.name = "test::incomplete";
  op.Input("in").Output("out");
  EXPECT_FALSE(RegisterOp(op).ok());
  EXPECT_FALSE(FindOp("test::incomplete").ok());
}

TEST(OpRegistry, DefaultsHaveTheirAttributesTypeAndNamesAreUnique) {
  const auto refused = [](const char* why, void (*define)(OpDef&)) {
    OpDef op;
    op.name = "test::refused";
    op.Input("in").Output("out");
    op.infer = [](InferContext&) { return OkStatus(); };
    define(op);
    const Status s = RegisterOp(op);
    EXPECT_NE(s.message().find(why), absl::string_view::npos) << s;
  };
  refused("the default of eps, 1, is no float",
          [](OpDef& op) { op.Attr("eps", AttrType::kFloat, int64_t{1}); });
  refused("two arguments named in", [](OpDef& op) { op.Attr("in", AttrType::kInt); });
  refused("two outputs of one name", [](OpDef& op) { op.Output("out"); });
}

TEST(KernelRegistry, EqualMatchIsRefused) {
  const Status s =
      RegisterKernel({.op = "softmax",
                      .device = DeviceType::kCPU,
                      .dtypes = SetOf(DType::kFloat32),
                      .bind = [](const BindContext&) -> StatusOr<std::unique_ptr<BoundKernel>> {
                        return Status();
                      }});
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.message().find("two kernels match op softmax"), absl::string_view::npos) << s;
}

TEST(KernelRegistry, MissListsWhatThereIs) {
  const auto k = FindKernel("softmax", DeviceType::kCPU, DType::kInt32);
  EXPECT_EQ(KindOf(k.status()), ErrorKind::kNotImplemented);
  EXPECT_EQ(k.status().message(),
            "softmax(): no kernel for int32 on cpu; registered are any device: float16, bfloat16, "
            "float32, float64");
}

// Writes the size of an element of the last input, as of the dtype that it was bound for.
struct LastInputKernel : BoundKernel {
  explicit LastInputKernel(DType bound_for) : bytes(SizeOf(bound_for)) {}
  Status Launch(KernelContext& c) const override {
    *static_cast<float*>(c.output(0).data()) = static_cast<float>(bytes);
    return OkStatus();
  }
  size_t bytes;
};

TEST(KernelRegistry, EachOfManyInputsIsBoundForItsDType) {
  constexpr int kInputs = 15;
  OpDef op;
  op.name = "test::many";
  for (int i = 0; i < kInputs; ++i) op.Input(absl::StrCat("x", i));
  op.Output("out");
  op.infer = [](InferContext& c) {
    c.SetOutput(0, c.shape(0), DType::kFloat32);
    return OkStatus();
  };
  op.differentiable = false;
  ASSERT_TRUE(RegisterOp(std::move(op)).ok());
  ASSERT_TRUE(
      RegisterKernel({.op = "test::many",
                      .bind = [](const BindContext& c) -> StatusOr<std::unique_ptr<BoundKernel>> {
                        return std::make_unique<LastInputKernel>(c.inputs.back());
                      }})
          .ok());
  for (const DType last : {DType::kFloat32, DType::kInt64, DType::kInt8, DType::kFloat32}) {
    TensorList inputs(kInputs, F::Zeros({}).value());
    inputs.back() = F::Zeros({}, last).value();
    const auto y = Call(**FindOp("test::many"), inputs);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(ToList(*y)[0], static_cast<float>(SizeOf(last))) << Name(last);
  }
}

TEST(Placement, AGridHasPositiveDims) {
  EXPECT_FALSE(Placement::Get(DeviceType::kMeta, {0, 1}, {-1, -2}).ok());
  EXPECT_FALSE(Placement::Get(DeviceType::kMeta, {0, 1}, {2, 0}).ok());
  EXPECT_TRUE(Placement::Get(DeviceType::kMeta, {0, 1}, {2, 1}).ok());
}

TEST(OpBuilder, ComparesNamesWithTheDefinition) {
  EXPECT_TRUE(
      OpBuilder("softmax").Input("in").Output("out").Attr("axis").Attr("out_dtype").Build().ok());
  EXPECT_FALSE(
      OpBuilder("softmax").Input("x").Output("out").Attr("axis").Attr("out_dtype").Build().ok());
  EXPECT_FALSE(OpBuilder("softmax").Input("in").Output("out").Attr("axis").Build().ok());
}

class Counter : public DispatchMode {
 public:
  Status Run(OpCall& call, const Next& next) override {
    names.push_back(call.op.def().name);
    return next(call);
  }
  std::vector<std::string> names;
};

TEST(Dispatch, AModeSeesEveryOp) {
  const Tensor x = FromList({2, 3}, {1, 2, 3, 4, 5, 6}, true);
  Counter observer, autocast;
  {
    ModeGuard a(DispatchStage::kAutocast, &autocast);
    ModeGuard o(DispatchStage::kObserver, &observer);
    const Tensor loss = F::Sum(F::Softmax(x, 1).value()).value();
    ASSERT_TRUE(autograd::Backward({loss}, {}).ok());
  }
  const std::vector<std::string> forward(observer.names.begin(), observer.names.begin() + 2);
  EXPECT_EQ(forward, (std::vector<std::string>{"softmax", "sum"}));
  EXPECT_NE(std::find(observer.names.begin(), observer.names.end(), "softmax_backward"),
            observer.names.end());
  EXPECT_EQ(observer.names, autocast.names);
  ASSERT_TRUE(F::Softmax(x, 1).ok());
  EXPECT_EQ(observer.names, autocast.names) << "the guards are gone";
}

TEST(Dispatch, MetaInfersWithoutMemory) {
  const Device meta{DeviceType::kMeta, 0};
  const Tensor x = F::Empty({int64_t{1} << 30, 1 << 20}, DType::kFloat16, meta).value();
  EXPECT_EQ(x.data(), nullptr);
  const Tensor y = F::Softmax(x, 0).value();
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_EQ(y.dtype(), DType::kFloat16);
  EXPECT_EQ(y.data(), nullptr);
  const Tensor z = F::Sum(F::Transpose(y, 0, 1).value(), Dims{0}).value();
  EXPECT_EQ(z.shape(), Shape{int64_t{1} << 30});
  EXPECT_FALSE(F::Softmax(x, 2).ok());
}

TEST(Dispatch, DevicesMustAgree) {
  const Tensor x = FromList({2}, {1, 2});
  const Tensor m = F::Empty({2}, DType::kFloat32, Device{DeviceType::kMeta, 0}).value();
  const auto z = F::Add(x, m);
  EXPECT_EQ(z.status().message(),
            "add(): all tensors must be on one device, but input is on cpu and other on meta");
}

TEST(Dispatch, AMutatedTensorStaysOnItsDevice) {
  // A 0-dim CPU tensor may accompany others as a number, but not be written by their device.
  const Tensor number = F::Full({}, Scalar(2.0)).value();
  const Tensor m = F::Empty({}, DType::kFloat32, Device{DeviceType::kMeta, 0}).value();
  EXPECT_EQ(KindOf(F::MulInto(number, m).status()), ErrorKind::kRuntime);
  EXPECT_TRUE(F::MulInto(m, number).ok());
  EXPECT_EQ(F::Mul(number, m).value().device(), m.device());
}

TEST(Fork, AChildOfAThreadedProcessComputes) {
  const Tensor x = F::Rand({512, 1024}).value();
  const Tensor a = F::Rand({128, 128}).value();
  ASSERT_TRUE(F::Softmax(x, 1).ok());  // starts threads where there are several
  ASSERT_TRUE(F::Matmul(a, a).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a hang ends the child, and the test
    const bool ok = F::Softmax(x, 1).ok() && F::Matmul(a, a).ok();
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Allocator, GivesMemoryBackAndSurvivesOutOfMemory) {
  DeviceBackend* cpu = GetBackend(DeviceType::kCPU).value();
  const size_t before = cpu->Stats(0).allocated;
  {
    const Tensor x = F::Zeros({1 << 20}).value();
    EXPECT_GE(cpu->Stats(0).allocated, before + (4 << 20));
  }
  EXPECT_EQ(cpu->Stats(0).allocated, before);
  EXPECT_GE(cpu->Stats(0).reserved, before + (4 << 20)) << "kept for the next tensor";
  cpu->EmptyCache(0);
  EXPECT_EQ(cpu->Stats(0).reserved, before);
  const auto huge = F::Empty({int64_t{1} << 55});
  EXPECT_EQ(KindOf(huge.status()), ErrorKind::kOutOfMemory);
  EXPECT_TRUE(F::Zeros({16}).ok());
}

// In place along a dim that is not the last, and between transposes where it is so in memory.
TEST(Softmax, AxesInMemoryAndInOrderAgree) {
  const Tensor x = F::Randn({3, 5, 7}).value();
  for (int64_t dim = 0; dim < 3; ++dim) {
    const Tensor rows = F::Contiguous(F::Transpose(x, dim, 2).value()).value();
    ExpectList(F::Softmax(x, dim).value(),
               ToList(F::Softmax(F::Transpose(rows, dim, 2).value(), dim).value()));
  }
}

TEST(SelectPlaces, ADimThatIsNotThereIsAnErrorInEveryOrder) {
  const Tensor x = FromList({2, 3}, {1, 2, 3, 4, 5, 6}), index = *F::Arange(Scalar(2));
  for (const Tensor& in : {x, *F::Transpose(x, 0, 1)}) {
    for (const int64_t dim : {int64_t{2}, int64_t{-3}, int64_t{1} << 40}) {
      EXPECT_EQ(KindOf(F::SelectPlaces(in, dim, index, true).status()), ErrorKind::kIndex) << dim;
    }
    EXPECT_EQ(F::SelectPlaces(in, -1, index, true)->shape(), (Shape{in.shape()[0], 2}));
  }
}

TEST(Sbp, SignaturesAreCheckedAgainstTheCall) {
  OpDef op;
  op.name = "test::split";
  op.file = "here.cpp";
  const absl::InlinedVector<TensorSpec, 4> inputs{{Shape{4, 6}}};
  const absl::InlinedVector<TensorSpec, 2> outputs{{Shape{4, 6}}};
  op.sbp = SplitAllAxes;
  const auto two = SignaturesOf(op, inputs, {}, outputs);
  ASSERT_TRUE(two.ok() && two->size() == 2);
  EXPECT_EQ((*two)[1].ToString(), "(S(1)) -> (S(1))");
  op.sbp = [](const SbpContext&) { return SbpSignatures{{{Sbp::Split(2)}, {Sbp::PartialSum()}}}; };
  const Status s = SignaturesOf(op, inputs, {}, outputs).status();
  EXPECT_NE(s.message().find("(S(2)) -> (P) (here.cpp:0) does not fit a call ([4, 6])"),
            absl::string_view::npos)
      << s;
  op.sbp = [](const SbpContext&) { return BadValue("test::split", "parts", "3", "even"); };
  const Status own = SignaturesOf(op, inputs, {}, outputs).status();
  EXPECT_EQ(KindOf(own), ErrorKind::kValue);
  EXPECT_EQ(own.message(), BadValue("test::split", "parts", "3", "even").message());
}

TEST(Sbp, AShardGetsAttributesOfItsOwn) {
  const OpDef& op = (*FindOp("expand"))->def();
  const absl::InlinedVector<TensorSpec, 4> inputs{{Shape{5, 1}}};
  const Attrs attrs{Dims{5, 3}};
  absl::InlinedVector<TensorSpec, 2> logical, outputs;
  ASSERT_TRUE(InferOutputs(op, inputs, attrs, &logical).ok());
  const auto signatures = SignaturesOf(op, inputs, attrs, logical).value();
  ASSERT_EQ(signatures.size(), 3u);
  EXPECT_EQ(signatures[2].ToString(), "(P) -> (P)");  // it is linear
  for (int part = 0; part < 2; ++part) {
    const TensorSpec shard{ShardShape(Shape{5, 1}, signatures[0].inputs[0], part, 2)};
    PhysicalContext context{.signature = signatures[0],
                            .logical_inputs = inputs,
                            .logical_outputs = logical,
                            .inputs = absl::MakeConstSpan(&shard, 1),
                            .part = part,
                            .parts = 2,
                            .attrs = attrs};
    ASSERT_TRUE(InferPhysical(op, context, &outputs).ok());
    EXPECT_EQ(outputs[0].shape, (Shape{part == 0 ? 3 : 2, 3}));
  }
}

TEST(Random, SameNumbersFromTheSameSeed) {
  ManualSeed(7);
  const Tensor a = F::Rand({1000}).value();
  ManualSeed(7);
  const Tensor b = F::Rand({1000}).value();
  EXPECT_EQ(ToList(a), ToList(b));
  const Tensor c = F::Rand({1000}).value();
  EXPECT_NE(ToList(a), ToList(c)) << "the sequence goes on";
}

}  // namespace
}  // namespace oneflow_lite
