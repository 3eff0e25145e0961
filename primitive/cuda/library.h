// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries, opened by name at first use: linking them would cost every program up to 0.4
// s at its start, and bar those that lack one.
//
//   Library blas("libcublas.so.13");
//   blas.Find("cublasCreate_v2", functions->Create);
//   if (!blas.problem().empty()) ...   // what is missing
#pragma once

#include <initializer_list>
#include <string>
#include <type_traits>

namespace oneflow_lite::cuda {

class Library {
 public:
  // By name first, which also finds one that another library has loaded; then where the toolkit
  // puts it, and the Python packages, whose folders are given as they are below site-packages:
  // beside our own package. Never closed.
  explicit Library(const char* soname,
                   std::initializer_list<const char*> wheel_folders = {"nvidia/cu13/lib"});

  // Sets the pointer to the function of that name, which the library has or `problem` says so.
  template <class F>
  void Find(const char* name, F& function) {
    function = reinterpret_cast<std::remove_reference_t<F>>(Symbol(name));
  }
  void* handle() const { return handle_; }                 // null where it was not found
  const std::string& problem() const { return problem_; }  // empty where all went well

 private:
  void* Symbol(const char* name);

  std::string soname_, problem_;
  void* handle_ = nullptr;
};

}  // namespace oneflow_lite::cuda
