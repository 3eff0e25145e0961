// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries, opened by name at first use: linking them would cost every program up to 0.4
// s at its start, and bar those that lack one.
//
//   Library blas({"libcublas.so.13"});
//   blas.Find("cublasCreate_v2", functions->Create);
//   if (!blas.problem().empty()) ...   // what is missing
#pragma once

#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

using LibraryNames = std::initializer_list<const char*>;

// Where a library may lie, in the order of looking: its name, which the system's loader looks up
// and which finds one that is loaded already; the folders of CUDA_HOME, CUDA_PATH and
// /usr/local/cuda; NVIDIA's packages for Python beside our own, whose folders are given as they are
// below site-packages; what AddLibraryHomes was given, in Python such packages anywhere on
// sys.path. Of several sonames the first comes first in each place.
OFL_API std::vector<std::string> LibraryCandidates(LibraryNames sonames,
                                                   LibraryNames wheel_folders);

// More toolkits, or packages with a part of one: folders that have include, and lib64 or lib.
OFL_API void AddLibraryHomes(absl::Span<const std::string> homes);
OFL_API std::vector<std::string> AddedLibraryHomes();

// <package>, where the library is <package>/lib/liboneflow_lite.so; empty where that is unknown.
OFL_API std::string PackageFolder();

class OFL_API Library {
 public:
  // The first of LibraryCandidates that opens. Never closed.
  explicit Library(LibraryNames sonames, LibraryNames wheel_folders = {"nvidia/cu13/lib"});

  // Sets the pointer to the function of that name, which the library has or `problem` says so.
  template <class F>
  void Find(const char* name, F& function) {
    function = reinterpret_cast<std::remove_reference_t<F>>(Symbol(name));
  }
  void* handle() const { return handle_; }                 // null where it was not found
  const std::string& problem() const { return problem_; }  // empty where all went well

 private:
  void* Symbol(const char* name);

  std::string name_, problem_;
  void* handle_ = nullptr;
};

}  // namespace oneflow_lite
