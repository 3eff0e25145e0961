// SPDX-License-Identifier: Apache-2.0
//
// The framework's seams, driven from C++: registries, dispatch chain, meta, autograd, views and
// in-place history, threads, fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/matmul.h"
#include "functional/nll_loss.h"
#include "functional/reduce.h"
#include "functional/softmax.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

namespace F = functional;

Tensor FromList(const Shape& shape, std::initializer_list<float> values,
                bool requires_grad = false) {
  Tensor t = Tensor::Empty(shape, DType::kFloat32, Device{}).value();
  std::copy(values.begin(), values.end(), t.data<float>());
  if (requires_grad) EXPECT_TRUE(autograd::SetRequiresGrad(t, true).ok());
  return t;
}

std::vector<float> ToList(const Tensor& t) {
  const Tensor dense = F::Contiguous(t.Detach()).value();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

void ExpectList(const Tensor& t, std::vector<float> expected) {
  ASSERT_TRUE(t.defined());
  const std::vector<float> got = ToList(t);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5f) << "at " << i;
}

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

TEST(OpRegistry, UnknownOpNamesNearOnes) {
  const auto found = FindOp("soft");
  EXPECT_EQ(KindOf(found.status()), ErrorKind::kNotImplemented);
  EXPECT_NE(found.status().message().find("log_softmax"), absl::string_view::npos);
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

TEST(OpBuilder, ComparesNamesWithTheDefinition) {
  EXPECT_TRUE(OpBuilder("softmax").Input("in").Output("out").Attr("axis").Build().ok());
  EXPECT_FALSE(OpBuilder("softmax").Input("x").Output("out").Attr("axis").Build().ok());
  EXPECT_FALSE(OpBuilder("softmax").Input("in").Output("out").Build().ok());
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
            "add(): all tensors must be on one device, but a is on cpu and b on meta");
}

TEST(Dispatch, AMutatedTensorStaysOnItsDevice) {
  // A 0-dim CPU tensor may accompany others as a number, but not be written by their device.
  const Tensor number = F::Full({}, Scalar(2.0)).value();
  const Tensor m = F::Empty({}, DType::kFloat32, Device{DeviceType::kMeta, 0}).value();
  EXPECT_EQ(KindOf(F::MulInto(number, m).status()), ErrorKind::kRuntime);
  EXPECT_TRUE(F::MulInto(m, number).ok());
  EXPECT_EQ(F::Mul(number, m).value().device(), m.device());
}

TEST(Autograd, SubsetsOfRequiresGrad) {
  for (int subset = 1; subset < 4; ++subset) {
    const Tensor a = FromList({2}, {2, 3}, subset & 1), b = FromList({2}, {5, 7}, subset & 2);
    ASSERT_TRUE(autograd::Backward({F::Sum(F::Mul(a, b).value()).value()}, {}).ok());
    if (subset & 1)
      ExpectList(autograd::Grad(a), {5, 7});
    else
      EXPECT_FALSE(autograd::Grad(a).defined());
    if (subset & 2)
      ExpectList(autograd::Grad(b), {2, 3});
    else
      EXPECT_FALSE(autograd::Grad(b).defined());
  }
}

TEST(Autograd, GradientsAddUpAndDoNotShareMemory) {
  const Tensor a = FromList({2}, {1, 2}, true), b = FromList({2}, {3, 4}, true);
  const Tensor loss = F::Sum(F::Add(a, b).value()).value();
  ASSERT_TRUE(autograd::Backward({loss}, {}, true).ok());
  ASSERT_TRUE(F::MulInto(autograd::Grad(a), Scalar(10)).ok());
  ExpectList(autograd::Grad(b), {1, 1});
  ASSERT_TRUE(autograd::Backward({loss}, {}).ok());
  ExpectList(autograd::Grad(a), {11, 11});
  ExpectList(autograd::Grad(b), {2, 2});
}

TEST(Autograd, SecondTimeNeedsRetainGraph) {
  const Tensor x = FromList({2}, {1, 2}, true);
  const Tensor loss = F::Sum(F::Mul(x, x).value()).value();
  ASSERT_TRUE(autograd::Backward({loss}, {}).ok());
  const Status s = autograd::Backward({loss}, {});
  EXPECT_EQ(KindOf(s), ErrorKind::kRuntime);
  EXPECT_NE(s.message().find("retain_graph"), absl::string_view::npos) << s;
}

TEST(Autograd, SecondOrder) {
  const Tensor x = FromList({1}, {3}, true);
  const Tensor cube = F::Mul(F::Mul(x, x).value(), x).value();
  const Tensor g = autograd::Gradients({cube}, {x}, {}, true, true).value()[0];
  ExpectList(g, {27});
  ExpectList(autograd::Gradients({g}, {x}, {}).value()[0], {18});
}

TEST(Autograd, SavedTensorChangedInPlaceIsAnError) {
  const Tensor x = FromList({2}, {1, 2}, true), w = FromList({2}, {3, 4});
  const Tensor y = F::Mul(x, w).value();
  ASSERT_TRUE(F::AddInto(w, Scalar(1)).ok());
  const Status s = autograd::Backward({F::Sum(y).value()}, {});
  EXPECT_EQ(KindOf(s), ErrorKind::kRuntime);
  EXPECT_NE(s.message().find("changed in place"), absl::string_view::npos) << s;
}

TEST(Autograd, SavedOutputDoesNotOwnItsNode) {
  Ref<Node> node;
  {
    const Tensor x = FromList({2}, {1, 2}, true);
    const Tensor y = F::Exp(x).value();
    node = autograd::GradFn(y);
  }
  EXPECT_EQ(node->use_count(), 1);
}

TEST(Autograd, LeafMayNotBeChangedInPlace) {
  const Tensor x = FromList({2}, {1, 2}, true);
  EXPECT_EQ(KindOf(F::MulInto(x, Scalar(2)).status()), ErrorKind::kRuntime);
  EXPECT_EQ(KindOf(F::ZeroInto(F::Select(x, 0, 0).value()).status()), ErrorKind::kRuntime);
  GradGuard no_grad(false);
  ASSERT_TRUE(F::MulInto(x, Scalar(2)).ok());
  ExpectList(x, {2, 4});
}

TEST(Autograd, InPlaceChangesRebaseHistory) {
  const Tensor x = FromList({2}, {2, 3}, true), w = FromList({2}, {5, 7}, true);
  const Tensor y = F::Mul(x, Scalar(2)).value();  // 4 6
  ASSERT_TRUE(F::MulInto(y, w).ok());             // 20 42
  ASSERT_TRUE(autograd::Backward({F::Sum(y).value()}, {}).ok());
  ExpectList(autograd::Grad(x), {10, 14});
  ExpectList(autograd::Grad(w), {4, 6});
}

TEST(Autograd, InPlaceChangeOfAViewReachesItsBase) {
  const Tensor x = FromList({2, 2}, {1, 2, 3, 4}, true), w = FromList({2}, {5, 7}, true);
  const Tensor y = F::Mul(x, Scalar(1)).value();
  const Tensor row = F::Select(y, 0, 0).value(), other = F::Select(y, 0, 1).value();
  ASSERT_TRUE(F::MulInto(row, w).ok());  // y = [[5, 14], [3, 4]]
  const Tensor squares = F::Mul(y, y).value();
  ASSERT_TRUE(autograd::Backward({F::Sum(squares).value()}, {}, true).ok());
  ExpectList(autograd::Grad(x), {50, 196, 6, 8});
  ExpectList(autograd::Grad(w), {10, 56});
  // Views cut before and after the change speak of the new values.
  ExpectList(row, {5, 14});
  ASSERT_TRUE(autograd::SetGrad(x, {}).ok());
  ASSERT_TRUE(autograd::Backward({F::Sum(F::Add(row, other).value()).value()}, {}).ok());
  ExpectList(autograd::Grad(x), {5, 7, 1, 1});
}

TEST(Autograd, WritingIntoAPlainTensorRecords) {
  const Tensor out = F::Zeros({3}).value();
  const Tensor w = FromList({1}, {5}, true);
  const Tensor slot = F::Slice(out, 0, 1, 2).value();
  ASSERT_TRUE(F::CopyInto(slot, F::Mul(w, Scalar(2)).value()).ok());
  EXPECT_TRUE(autograd::RequiresGrad(out));
  const Tensor weights = FromList({3}, {1, 10, 100});
  ASSERT_TRUE(autograd::Backward({F::Sum(F::Mul(out, weights).value()).value()}, {}).ok());
  ExpectList(autograd::Grad(w), {20});
}

TEST(Autograd, MillionNodesAreFreed) {
  const Tensor x = FromList({1}, {1}, true);
  Tensor y = x;
  for (int i = 0; i < 1000000; ++i) y = F::Neg(y).value();
  ASSERT_TRUE(autograd::Backward({y}, {}).ok());
  ExpectList(autograd::Grad(x), {1});
  Tensor z = x;
  for (int i = 0; i < 1000000; ++i) z = F::Exp(F::Mul(z, Scalar(0)).value()).value();
  z = Tensor();  // a chain that was never walked, through saved tensors
}

TEST(Autograd, SavedTensorHooksPackAndUnpack) {
  int packed = 0, unpacked = 0;
  const Tensor x = FromList({2}, {1, 2}, true);
  Tensor y;
  {
    SavedTensorHooksGuard guard({[&](const Tensor& t) -> StatusOr<std::shared_ptr<void>> {
                                   ++packed;
                                   return std::make_shared<Tensor>(F::Clone(t).value());
                                 },
                                 [&](void* p) -> StatusOr<Tensor> {
                                   ++unpacked;
                                   return *static_cast<Tensor*>(p);
                                 }});
    y = F::Mul(x, x).value();
  }
  EXPECT_EQ(packed, 2);
  const Tensor g = autograd::Gradients({F::Sum(y).value()}, {x}, {}, true, true).value()[0];
  EXPECT_EQ(unpacked, 2);
  ExpectList(g, {2, 4});
  ExpectList(autograd::Gradients({F::Sum(g).value()}, {x}, {}).value()[0], {2, 2});
}

TEST(Autograd, TwoThreadsTrainAtOnce) {
  const Tensor shared = FromList({4}, {1, 2, 3, 4}, true);
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      const Tensor y = F::Softmax(F::Mul(shared, Scalar(2)).value(), 0).value();
      const Tensor loss = F::Sum(F::Mul(y, y).value()).value();
      ASSERT_TRUE(autograd::Backward({loss}, {}).ok());
    }
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  const std::vector<float> sum = ToList(autograd::Grad(shared));
  ASSERT_TRUE(autograd::SetGrad(shared, {}).ok());
  work();
  work();
  const std::vector<float> serial = ToList(autograd::Grad(shared));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(sum[i], serial[i], 1e-3f);
}

TEST(Autograd, BackwardInsideBackward) {
  const Tensor x = FromList({2}, {1, 2}, true), inner = FromList({2}, {3, 4}, true);
  const Tensor y = F::Mul(x, Scalar(3)).value();
  ASSERT_TRUE(autograd::AddHook(y, [&](const Tensor&) -> StatusOr<Tensor> {
                GradGuard grad(true);
                OFL_ASSIGN_OR_RETURN(Tensor z, F::Mul(inner, inner));
                OFL_ASSIGN_OR_RETURN(Tensor loss, F::Sum(z));
                OFL_RETURN_IF_ERROR(autograd::Backward({loss}, {}));
                return Tensor();
              }).ok());
  ASSERT_TRUE(autograd::Backward({F::Sum(y).value()}, {}).ok());
  ExpectList(autograd::Grad(x), {3, 3});
  ExpectList(autograd::Grad(inner), {6, 8});
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

TEST(Softmax, AxisPathsAgree) {
  const Tensor x = F::Randn({3, 5, 7}).value();
  for (int64_t dim = 0; dim < 3; ++dim) {
    F::SetAxisPath(F::AxisPath::kTranspose);
    const Tensor a = F::Softmax(x, dim).value();
    F::SetAxisPath(F::AxisPath::kAxisKernel);
    const Tensor b = F::Softmax(x, dim).value();
    F::SetAxisPath(F::AxisPath::kAuto);
    ExpectList(b, ToList(a));
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
  op.sbp = [](const SbpContext&, std::vector<SbpSignature>* out) {
    out->push_back({{Sbp::Split(2)}, {Sbp::PartialSum()}});
  };
  const Status s = SignaturesOf(op, inputs, {}, outputs).status();
  EXPECT_NE(s.message().find("(S(2)) -> (P) (here.cpp:0) does not fit a call ([4, 6])"),
            absl::string_view::npos)
      << s;
}

TEST(Sbp, AShardGetsAttributesOfItsOwn) {
  const OpDef& op = (*FindOp("expand"))->def();
  const absl::InlinedVector<TensorSpec, 4> inputs{{Shape{5, 1}}};
  const Attrs attrs{Dims{5, 3}};
  absl::InlinedVector<TensorSpec, 2> logical, outputs;
  ASSERT_TRUE(InferOutputs(op, inputs, attrs, &logical).ok());
  const auto signatures = SignaturesOf(op, inputs, attrs, logical).value();
  ASSERT_EQ(signatures.size(), 2u);
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
