// SPDX-License-Identifier: Apache-2.0
//
// bench::copy and its siblings: the kernels of streams.cu as ops.
#include <oneflow_lite/extension/op.h>

#include <algorithm>

namespace ext = oneflow_lite::extension;

const char* LaunchCopy(const void* x, const void*, void* z, int64_t bytes, void* stream);
const char* LaunchAdd(const void* x, const void* y, void* z, int64_t bytes, void* stream);
const char* LaunchMemcpy(const void* x, const void*, void* z, int64_t bytes, void* stream);
const char* LaunchRead(const void* x, void* z, int64_t bytes, int blocks, void* stream);
const char* LaunchSpin(int64_t nanoseconds, void* stream);
const char* LaunchNothing(int64_t times, void* stream);

namespace {

constexpr int64_t kReadBlocks = 132 * 8;  // all that an H200 holds at once
constexpr int64_t kWordsPerBlock = 8;

void Check(const char* error) {
  if (error) throw ext::Error(OFL_RUNTIME_ERROR, error);
}

using Launcher = const char* (*)(const void*, const void*, void*, int64_t, void*);

void AddStream(const char* name, int inputs, Launcher launch) {
  ext::Op op(name);
  op.input("x").output("z");
  if (inputs == 2) op.input("y");
  op.infer([](ext::Infer c) { c.set_output(0, c.shape(0), c.dtype(0)); });
  op.kernel(OFL_CUDA, {OFL_INT64}, [launch](ext::Kernel c) {
    const void* y = c.num_inputs() == 2 ? c.input(1).data<void>() : nullptr;
    Check(launch(c.input(0).data<void>(), y, c.output(0).data<void>(), 8 * c.input(0).numel(),
                 c.stream()));
  });
  op.add();
}

}  // namespace

OFL_EXTENSION {
  AddStream("bench::copy", 1, &LaunchCopy);
  AddStream("bench::memcpy", 1, &LaunchMemcpy);
  AddStream("bench::add", 2, &LaunchAdd);
  ext::Op("bench::read")
      .input("x")
      .output("words")
      .infer([](ext::Infer c) { c.set_output(0, {kReadBlocks * kWordsPerBlock}, OFL_INT32); })
      .kernel(OFL_CUDA, {OFL_INT64},
              [](ext::Kernel c) {
                Check(LaunchRead(c.input(0).data<void>(), c.output(0).data<void>(),
                                 8 * c.input(0).numel(), kReadBlocks, c.stream()));
              })
      .add();
  // The tensor says on which device; nothing is read.
  ext::Op("bench::spin")
      .input("x")
      .output("y")
      .attr("nanoseconds", int64_t{0})
      .infer([](ext::Infer c) { c.set_output(0, c.shape(0), c.dtype(0)); })
      .kernel(OFL_CUDA, {OFL_INT64},
              [](ext::Kernel c) { Check(LaunchSpin(c.attrs().to_int(0), c.stream())); })
      .add();
  ext::Op("bench::nothing")
      .input("x")
      .output("y")
      .attr("times", int64_t{1})
      .infer([](ext::Infer c) { c.set_output(0, c.shape(0), c.dtype(0)); })
      .kernel(OFL_CUDA, {OFL_INT64},
              [](ext::Kernel c) { Check(LaunchNothing(c.attrs().to_int(0), c.stream())); })
      .add();
}
