// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries, opened by name at first use: linking them would cost every program their
// start, and bar those that lack one.
//
//   const OpenedLibrary cudnn = OpenLibrary("libcudnn.so.9", {"nvidia/cudnn/lib"});
//   if (!cudnn.handle) return Error(ErrorKind::kRuntime, "...", cudnn.problem);
#pragma once

#include <initializer_list>
#include <string>

namespace oneflow_lite::cuda {

struct OpenedLibrary {
  void* handle = nullptr;
  std::string problem;  // of the first attempt, where there is no handle
};

// By name first, which also finds one that another library has loaded; then where the toolkit puts
// it, and the Python packages, whose folders are given as they are below site-packages: beside our
// own package. Never closed.
OpenedLibrary OpenLibrary(const char* soname, std::initializer_list<const char*> wheel_folders);

}  // namespace oneflow_lite::cuda
