// SPDX-License-Identifier: Apache-2.0
#include "primitive/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

namespace oneflow_lite {
namespace {

namespace fs = std::filesystem;

// The folders above the library's file, the nearest first.
constexpr int kLevels = 4;

// The file of this library; empty where that is unknown.
fs::path OwnFile() {
  Dl_info self;
  std::error_code error;
  if (!dladdr(reinterpret_cast<void*>(&LibraryCandidates), &self) || !self.dli_fname) return {};
  return fs::weakly_canonical(self.dli_fname, error);
}

struct Homes {
  std::mutex mutex;
  std::vector<std::string> added;
};
Homes& GetHomes() {
  static auto* homes = new Homes;
  return *homes;
}

}  // namespace

std::string PackageFolder() { return OwnFile().parent_path().parent_path().string(); }

void AddLibraryHomes(absl::Span<const std::string> homes) {
  Homes& all = GetHomes();
  const std::lock_guard lock(all.mutex);
  all.added.insert(all.added.end(), homes.begin(), homes.end());
}

std::vector<std::string> AddedLibraryHomes() {
  Homes& all = GetHomes();
  const std::lock_guard lock(all.mutex);
  return all.added;
}

std::vector<std::string> LibraryCandidates(LibraryNames sonames, LibraryNames wheel_folders) {
  std::vector<fs::path> folders = {""};
  const auto add_home = [&](const fs::path& home) {
    for (const char* below : {"lib64", "lib"}) folders.push_back(home / below);
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home && *home) add_home(home);
  }
  add_home("/usr/local/cuda");
  fs::path above = OwnFile();
  for (int level = 0; level < kLevels && above.has_relative_path(); ++level) {
    above = above.parent_path();
    for (const char* below : wheel_folders) folders.push_back(above / below);
  }
  for (const std::string& home : AddedLibraryHomes()) add_home(home);
  std::vector<std::string> candidates;
  for (const fs::path& folder : folders) {
    for (const char* soname : sonames) candidates.push_back((folder / soname).string());
  }
  return candidates;
}

Library::Library(LibraryNames sonames, LibraryNames wheel_folders) : name_(*sonames.begin()) {
  for (const std::string& path : LibraryCandidates(sonames, wheel_folders)) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      name_ = fs::path(path).filename();
      problem_.clear();
      return;
    }
    const char* problem = dlerror();
    if (problem_.empty() && problem) problem_ = problem;
  }
}

void* Library::Symbol(const char* name) {
  if (!handle_) return nullptr;
  void* symbol = dlsym(handle_, name);
  if (!symbol) problem_ = name_ + " has no " + name;
  return symbol;
}

}  // namespace oneflow_lite
