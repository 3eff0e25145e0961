// SPDX-License-Identifier: Apache-2.0
//
// Errors that leave the operators. The stable ABI passes texts alone, and what is no error of
// PyTorch's own comes to Python as RuntimeError. An error of another class is made of what libc10
// exports; where it lacks a name, a RuntimeError of that text stands for it.
#include <cxxabi.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "python/torch/bindings/tensor.h"

extern "C" {
// Of torch/csrc/stable/c/shim.h, where a later release is built for.
__attribute__((weak)) const char* torch_exception_get_what_without_backtrace();
}

namespace oneflow_lite::torch_ops {
namespace {

// What Python takes for an operator that failed, where others refuse their arguments.
constexpr char kFailed[] = "oneflow_lite_torch failed: ";

// c10::SourceLocation, as c10::Error's constructor takes it.
struct SourceLocation {
  const char* function;
  const char* file;
  uint32_t line;
};
constexpr size_t kMostBytes = 1024;  // of a c10::Error; in 2.15 it has 128

// c10::<name>, a class that adds nothing to c10::Error. Comes back where libc10 lacks one of these.
void ThrowOfC10(const std::string& name, const std::string& text) {
  void* const c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!c10) return;
  const std::string mangled = absl::StrCat("N3c10", name.size(), name, "E");
  void* const make = dlsym(c10,
                           "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_"
                           "stringIcSt11char_traitsIcESaIcEEE");
  void* const type = dlsym(c10, absl::StrCat("_ZTI", mangled).c_str());
  auto* const table = static_cast<void**>(dlsym(c10, absl::StrCat("_ZTV", mangled).c_str()));
  if (!make || !type || !table) return;
  void* const error = abi::__cxa_allocate_exception(kMostBytes);
  const auto construct = reinterpret_cast<void (*)(void*, SourceLocation, std::string)>(make);
  construct(error, {"", "oneflow_lite_torch", 0}, text);
  void** const functions = table + 2;  // past the offset and the type; the destructor is the first
  *static_cast<void***>(error) = functions;
  abi::__cxa_throw(error, static_cast<std::type_info*>(type),
                   reinterpret_cast<void (*)(void*)>(functions[0]));
}

// Empty where this PyTorch does not say.
std::string LastErrorOfTorch() {
  const char* const text = torch_exception_get_what_without_backtrace
                               ? torch_exception_get_what_without_backtrace()
                               : nullptr;
  return text ? text : "";
}

}  // namespace

void ThrowAs(const std::string& name, const std::string& text) {
  if (!name.empty()) ThrowOfC10(name, text);
  throw std::runtime_error(text);
}

void Refuse(const Status& status) { throw std::runtime_error(std::string(status.message())); }

void Fail(const Status& status) {
  const std::string text(status.message());
  switch (static_cast<ErrorKind>(status.raw_code() - 1)) {
    case ErrorKind::kOutOfMemory:
      ThrowAs("OutOfMemoryError", text);
    case ErrorKind::kRuntime:
      throw std::runtime_error(kFailed + text);
    default:  // an argument that only a kernel sees is wrong
      throw std::runtime_error(text);
  }
}

void Ok(AOTITorchError error) {
  if (error != AOTI_TORCH_SUCCESS) [[unlikely]] {
    throw std::runtime_error("oneflow_lite_torch: PyTorch refused a call of its stable ABI");
  }
}

void Done(AOTITorchError error, const char* what) {
  if (error == AOTI_TORCH_SUCCESS) [[likely]]
    return;
  const std::string told = LastErrorOfTorch(), text = told.empty() ? what : told;
  if (text.find("out of memory") != std::string::npos) ThrowAs("OutOfMemoryError", text);
  throw std::runtime_error(kFailed + text);
}

}  // namespace oneflow_lite::torch_ops
