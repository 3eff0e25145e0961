// SPDX-License-Identifier: Apache-2.0
//
// Where NVRTC and the headers are that sources include, and the functions of NVRTC.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

// NVRTC's interface, as its documentation has it: declared here so that a build without the toolkit
// has it too.
struct Nvrtc {
  using Program = struct _nvrtcProgram*;
  int (*Version)(int* major, int* minor);
  const char* (*GetErrorString)(int result);
  int (*CreateProgram)(Program*, const char* source, const char* name, int num_headers,
                       const char* const* headers, const char* const* names);
  int (*DestroyProgram)(Program*);
  int (*AddNameExpression)(Program, const char* expression);
  int (*CompileProgram)(Program, int num_options, const char* const* options);
  int (*GetLoweredName)(Program, const char* expression, const char** name);
  int (*GetProgramLogSize)(Program, size_t* size);
  int (*GetProgramLog)(Program, char* log);
  int (*GetCUBINSize)(Program, size_t* size);
  int (*GetCUBIN)(Program, char* cubin);
};

struct NvrtcToolkit {
  std::string problem;  // what is missing, and what to install; empty where nothing is
  Nvrtc functions = {};
  std::vector<std::string> include_folders;  // ours, then the toolkit's
  std::string version;  // of everything but the source that a binary depends on
};

// Standard headers that the device code includes: NVRTC has none of its own.
struct BuiltInHeader {
  const char *name, *text;
};
absl::Span<const BuiltInHeader> BuiltInHeaders();

// Looks in CUDA_HOME, CUDA_PATH, /usr/local/cuda, the Python packages beside ours, and what
// AddLibraryHomes was given.
NvrtcToolkit FindNvrtcToolkit();

}  // namespace oneflow_lite
