// SPDX-License-Identifier: Apache-2.0
//
// Tensors and calls of the library's functions as an extension sees them: what op.h's callbacks
// compute with.
//
//   ext::Tensor y = ext::call("mul", x, 2.0);
//   std::vector<ext::Tensor> parts = ext::call_all("split", x, 2);
#pragma once

#ifndef __cpp_exceptions
#error "op.h throws: build without -fno-exceptions, or use c_api.h, which is plain C"
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "oneflow_lite/extension/c_api.h"

#if defined(__GNUC__)
#define OFL_EXTENSION_COLD __attribute__((noinline, cold))
#else
#define OFL_EXTENSION_COLD
#endif

namespace oneflow_lite {
namespace extension {

// The table, set before OFL_EXTENSION runs. One per shared library.
inline const ofl_api*& api() {
  static const ofl_api* table = nullptr;
  return table;
}

// An error with the code that chooses the Python exception.
class Error : public std::runtime_error {
 public:
  Error(int32_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int32_t code() const { return code_; }

 private:
  int32_t code_;
};

inline void check(int32_t code) {
  if (code != OFL_OK) throw Error(code, api()->last_error());
}

namespace internal {

// A bit for each dtype whose elements may lie in memory as a T.
template <class T>
constexpr unsigned held_by() {
  if constexpr (std::is_void_v<T>) {
    return ~0u;
  } else if constexpr (std::is_same_v<T, bool>) {
    return 1u << OFL_BOOL;
  } else {
    constexpr unsigned kSizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
    unsigned held = 0;
    for (int t = OFL_BOOL; t <= OFL_FLOAT64; ++t) {
      const bool floats = t >= OFL_FLOAT16;
      if (std::is_floating_point_v<T> && !floats) continue;
      if (std::is_integral_v<T> && std::is_signed_v<T> && floats) continue;
      if (sizeof(T) == kSizes[t]) held |= 1u << t;
    }
    return held;
  }
}

// Apart from what raises them, which stays short enough to be inlined.
[[noreturn]] OFL_EXTENSION_COLD inline void refuse_type(int32_t dtype) {
  const char* const names[] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                               "int64", "float16", "bfloat16", "float32", "float64"};
  throw Error(OFL_DTYPE_ERROR,
              std::string("data() of a tensor of ") + names[dtype] + " is asked for another type");
}
[[noreturn]] OFL_EXTENSION_COLD inline void refuse_absent() {
  throw Error(OFL_VALUE_ERROR,
              "a tensor that is not there: an optional input that was not given, a gradient of "
              "zero, or a number past the last");
}

}  // namespace internal

// What can be asked of a tensor.
class TensorHandle {
 public:
  // False for an optional input that was not given and a gradient of zero; whatever else is asked
  // of such a tensor, but its handle, is an error.
  bool defined() const { return handle_ != nullptr; }
  int64_t numel() const { return api()->tensor_numel(checked()); }
  ofl_dtype dtype() const { return static_cast<ofl_dtype>(api()->tensor_dtype(checked())); }
  int32_t device(int32_t* index = nullptr) const { return api()->tensor_device(checked(), index); }
  std::vector<int64_t> shape() const { return list(api()->tensor_shape(checked())); }
  std::vector<int64_t> strides() const { return list(api()->tensor_strides(checked())); }
  // The first element; T is what the dtype says, which is an error otherwise. A type of your own
  // (__half) or an unsigned one, for the bits, needs the size alone.
  template <class T>
  T* data() const {
    constexpr unsigned kHeld = internal::held_by<std::remove_cv_t<T>>();
    void* const data = api()->tensor_data_of(checked(), kHeld);
    if (!data && !(kHeld >> dtype() & 1)) internal::refuse_type(dtype());
    return static_cast<T*>(data);
  }
  ofl_tensor handle() const { return handle_; }

 protected:
  TensorHandle() = default;
  explicit TensorHandle(ofl_tensor t) : handle_(t) {}
  ofl_tensor handle_ = nullptr;

 private:
  ofl_tensor checked() const {
    if (!handle_) internal::refuse_absent();
    return handle_;
  }
  std::vector<int64_t> list(const int64_t* p) const {
    return std::vector<int64_t>(p, p + api()->tensor_ndim(handle_));
  }
};

// A tensor that somebody else keeps: what a callback is given, while it runs.
class TensorRef : public TensorHandle {
 public:
  explicit TensorRef(ofl_tensor t) : TensorHandle(t) {}
};

// A counted handle: keeps its tensor.
class Tensor : public TensorHandle {
 public:
  Tensor() = default;
  Tensor(const TensorRef& t) : Tensor(borrow(t.handle())) {}
  static Tensor borrow(ofl_tensor t) {
    if (t) api()->tensor_retain(t);
    return adopt(t);
  }
  // Takes over a reference that is counted already.
  static Tensor adopt(ofl_tensor t) {
    Tensor r;
    r.handle_ = t;
    return r;
  }
  Tensor(const Tensor& o) : Tensor(borrow(o.handle_)) {}
  Tensor(Tensor&& o) noexcept : TensorHandle(std::exchange(o.handle_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_) api()->tensor_release(handle_);
  }
};

// An argument of call(): a tensor, list of tensors, number, bool, string, dtype (OFL_FLOAT32), list
// of ints, or nullptr for None. What it is made of must outlive it.
struct Value : ofl_value {
  Value(const TensorHandle& t) {
    set(t.defined() ? OFL_VALUE_TENSOR : OFL_NONE), as.tensor = t.handle();
  }
  Value(double v) { set(OFL_VALUE_FLOAT), as.f = v; }
  Value(int64_t v) { set(OFL_VALUE_INT), as.i = v; }
  template <class Int, class = std::enable_if_t<std::is_integral_v<Int>>>  // int, size_t, ...
  Value(Int v) : Value(static_cast<int64_t>(v)) {}
  Value(bool v) { set(OFL_VALUE_BOOL), as.b = v; }
  Value(ofl_dtype v) { set(OFL_VALUE_DTYPE), as.i = v; }
  Value(const char* v) { set(OFL_VALUE_STRING), as.s = v; }
  Value(const std::string& v) : Value(v.c_str()) {
    if (v.size() == std::strlen(v.c_str())) return;
    throw Error(OFL_VALUE_ERROR, "a string with a NUL in it cannot be given to the library");
  }
  Value(const std::vector<int64_t>& v) {
    set(OFL_VALUE_INTS), as.ints.data = v.data(), as.ints.size = static_cast<int64_t>(v.size());
  }
  Value(const std::vector<Tensor>& v) {
    static_assert(sizeof(Tensor) == sizeof(ofl_tensor), "a Tensor is its handle");
    set(OFL_VALUE_TENSORS), as.tensors.data = reinterpret_cast<const ofl_tensor*>(v.data());
    as.tensors.size = static_cast<int64_t>(v.size());
  }
  Value(std::nullptr_t) { set(OFL_NONE), as.i = 0; }

 private:
  void set(int32_t t) { type = t; }
};

// Calls a function of the library ("mul", "exp", "split", ...) with autograd; all its results.
template <class... Args>
std::vector<Tensor> call_all(const char* function, const Args&... args) {
  const std::vector<ofl_value> values = {static_cast<ofl_value>(Value(args))...};
  ofl_value result;
  check(api()->call(function, values.data(), static_cast<int32_t>(values.size()), &result));
  std::vector<Tensor> tensors;
  if (result.type == OFL_VALUE_TENSOR) tensors.push_back(Tensor::adopt(result.as.tensor));
  for (int64_t i = 0; result.type == OFL_VALUE_TENSORS && i < result.as.tensors.size; ++i) {
    tensors.push_back(Tensor::adopt(result.as.tensors.data[i]));
  }
  return tensors;
}

// The same for a function with one result.
template <class... Args>
Tensor call(const char* function, const Args&... args) {
  std::vector<Tensor> results = call_all(function, args...);
  if (results.size() != 1) {
    throw Error(OFL_TYPE_ERROR, std::string(function) + "() gives " +
                                    std::to_string(results.size()) +
                                    " tensors, not one; use call_all");
  }
  return std::move(results[0]);
}

}  // namespace extension
}  // namespace oneflow_lite
