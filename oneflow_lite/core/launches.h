// SPDX-License-Identifier: Apache-2.0
//
// What a thread enqueues on GPUs, counted: kernels, copies, fills, and each call of a library as
// one. The CUDA half tells; whoever wants to know asks before and after.
//
//   const uint64_t before = LaunchCount();
//   ...
//   const uint64_t launches = LaunchCount() - before;
#pragma once

#include <cstdint>

#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// Hears of each launch of the thread that it listens to.
class OFL_API LaunchListener {
 public:
  virtual ~LaunchListener() = default;
  // Around one launch on the thread's current stream. `name`: the kernel's as the linker knows it,
  // or words such as "fill"; it outlives the program's last launch.
  virtual void BeginLaunch(const char* name) = 0;
  virtual void EndLaunch() = 0;
};

// Of this thread, so far. It wraps around in theory alone.
OFL_API uint64_t LaunchCount();
// Makes `listener` (null: nobody) this thread's; gives the one before.
OFL_API LaunchListener* SetLaunchListener(LaunchListener* listener);

// What the CUDA half puts around a launch.
class OFL_API LaunchScope {
 public:
  // `name` is asked for `what` only where somebody listens.
  LaunchScope(const char* (*name)(const void*), const void* what);
  explicit LaunchScope(const char* name)
      : LaunchScope([](const void* text) { return static_cast<const char*>(text); }, name) {}
  ~LaunchScope();
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;

 private:
  LaunchListener* listener_;
};

// Ranges of a thread, for a tool that watches the process (nsys). Both null: nobody watches.
struct RangeMarker {
  void (*push)(const char* name) = nullptr;
  void (*pop)() = nullptr;
};
// Set once, by the CUDA half when it is opened under such a tool.
OFL_API void SetRangeMarker(RangeMarker marker);
OFL_API RangeMarker GetRangeMarker();

}  // namespace oneflow_lite
