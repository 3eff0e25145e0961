// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/toolkit_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace oneflow_lite::cuda {
namespace {

// By name first, which also finds one that another library has loaded; then where the toolkit and
// the Python packages nvidia-... put it, the latter beside our own package.
std::vector<std::string> Candidates(const std::string& soname) {
  std::vector<std::string> paths = {soname};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) {
      paths.push_back(std::string(home) + "/lib64/" + soname);
    }
  }
  paths.push_back("/usr/local/cuda/lib64/" + soname);
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&Candidates), &self) && self.dli_fname) {
    std::string folder = self.dli_fname;
    for (int level = 0; level < 4; ++level) {
      const size_t slash = folder.rfind('/');
      if (slash == std::string::npos) break;
      folder.resize(slash);
      paths.push_back(folder + "/nvidia/cu13/lib/" + soname);
    }
  }
  return paths;
}

}  // namespace

ToolkitLibrary::ToolkitLibrary(const char* soname) : soname_(soname) {
  for (const std::string& path : Candidates(soname_)) {
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_) break;
    if (problem_.empty()) problem_ = dlerror();
  }
  if (library_) problem_.clear();
}

void* ToolkitLibrary::Symbol(const char* name) {
  if (!library_) return nullptr;
  void* symbol = dlsym(library_, name);
  if (!symbol) problem_ = soname_ + " has no " + name;
  return symbol;
}

}  // namespace oneflow_lite::cuda
