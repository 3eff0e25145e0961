// SPDX-License-Identifier: Apache-2.0
//
// Where cuDNN is, if one is there that is new enough. A process can use one alone: its parts open
// each other by name, so that those of a second one would be the first one's, and they are never
// unloaded. So a candidate is judged by the version that its file has, before anything in it runs.
#pragma once

#include <cstdint>
#include <string>

#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

struct CudnnLibrary {
  void* handle = nullptr;  // of libcudnn.so.9
  std::string name;        // "cuDNN 9.19.0"
  std::string problem;     // empty where all went well; else the reasons, with what was refused
};

// Opens the first of LibraryCandidates that is not older than `least`, counted as cudnnGetVersion
// counts: 91501 is 9.15.1.
OFL_API CudnnLibrary OpenCudnn(int64_t least);

}  // namespace oneflow_lite
