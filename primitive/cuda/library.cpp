// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace oneflow_lite::cuda {
namespace {

std::vector<std::string> Candidates(const std::string& soname,
                                    std::initializer_list<const char*> wheel_folders) {
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
      for (const char* below : wheel_folders) {
        paths.push_back(folder + "/" + below + "/" + soname);
      }
    }
  }
  return paths;
}

}  // namespace

Library::Library(const char* soname, std::initializer_list<const char*> wheel_folders)
    : soname_(soname) {
  for (const std::string& path : Candidates(soname_, wheel_folders)) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) break;
    const char* problem = dlerror();
    if (problem_.empty() && problem) problem_ = problem;
  }
  if (handle_) problem_.clear();
}

void* Library::Symbol(const char* name) {
  if (!handle_) return nullptr;
  void* symbol = dlsym(handle_, name);
  if (!symbol) problem_ = soname_ + " has no " + name;
  return symbol;
}

}  // namespace oneflow_lite::cuda
