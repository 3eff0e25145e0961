// SPDX-License-Identifier: Apache-2.0
//
// A library of the CUDA Toolkit, opened by name at first use: linking one would cost every program
// up to 0.4 s at start.
//
//   ToolkitLibrary blas("libcublas.so.13");
//   blas.Find("cublasCreate_v2", functions->Create);
//   if (!blas.problem().empty()) ...   // what is missing
#pragma once

#include <string>
#include <type_traits>

namespace oneflow_lite::cuda {

class ToolkitLibrary {
 public:
  explicit ToolkitLibrary(const char* soname);

  // Sets the pointer to the function of that name, which the library has or `problem` says so.
  template <class F>
  void Find(const char* name, F& function) {
    function = reinterpret_cast<std::remove_reference_t<F>>(Symbol(name));
  }
  const std::string& problem() const { return problem_; }  // empty where all went well

 private:
  void* Symbol(const char* name);

  std::string soname_, problem_;
  void* library_ = nullptr;
};

}  // namespace oneflow_lite::cuda
