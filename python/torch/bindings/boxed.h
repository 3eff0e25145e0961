// SPDX-License-Identifier: Apache-2.0
//
// Functions of C++ as kernels of PyTorch's stable ABI, and operators called by it. Values lie on a
// stack, as a number or as a handle; whoever takes a handle from there owns it.
//
//   m.impl("softmax", Boxed<&SoftmaxForward>);
//   const auto out = CallOperator("aten::contiguous", x, MemoryFormat::Contiguous);
//   Tensor copy = OnStack<Tensor>::Take(out[0]);
//
// TORCH_BOX is the same for torch::stable::Tensor, at the cost of what tensor.h says.
#pragma once

#include <torch/csrc/stable/stableivalue_conversions.h>

#include <array>
#include <tuple>
#include <utility>

#include "python/torch/bindings/tensor.h"

namespace oneflow_lite::torch_ops {

// How a T is taken from the stack and laid there. Numbers and flags are there as they are.
template <class T>
struct OnStack {
  static T Take(StableIValue value) { return torch::stable::detail::to<T>(value); }
  static StableIValue Give(const T& t) { return torch::stable::detail::from(t); }
};

template <>
struct OnStack<Tensor> {
  static Tensor Take(StableIValue value) {
    return Tensor(torch::stable::detail::to<AtenTensorHandle>(value));
  }
  static StableIValue Give(Tensor t) { return torch::stable::detail::from(t.release()); }
};

// None, and a tensor that is not defined, are both no tensor.
template <>
struct OnStack<OptionalTensor> {
  static OptionalTensor Take(StableIValue value) {
    auto* const given = torch::stable::detail::to<StableIValue*>(value);
    if (!given) return {};
    Tensor t = OnStack<Tensor>::Take(*given);
    delete given;
    bool is_defined;
    Ok(aoti_torch_is_defined(t.get(), &is_defined));
    if (!is_defined) return {};
    return t;
  }
  static StableIValue Give(const OptionalTensor& t) {
    return torch::stable::detail::from(t ? new StableIValue(OnStack<Tensor>::Give(*t)) : nullptr);
  }
};

// A result that need not be there.
struct Result {
  OptionalTensor tensor;
};
template <>
struct OnStack<Result> {
  static Result Take(StableIValue value) { return {OnStack<Tensor>::Take(value)}; }
  static StableIValue Give(Result r) {
    if (r.tensor) return OnStack<Tensor>::Give(std::move(*r.tensor));
    AtenTensorHandle undefined;
    Ok(aoti_torch_new_uninitialized_tensor(&undefined));
    return torch::stable::detail::from(undefined);
  }
};

// A list of numbers or flags, read where it lies.
template <class T>
class List {
 public:
  explicit List(StableListHandle handle) : handle_(handle) {}
  List(List&& other) noexcept : handle_(other.release()) {}
  ~List() {
    if (handle_) torch_delete_list(handle_);
  }

  int64_t size() const {
    size_t size;
    Ok(torch_list_size(handle_, &size));
    return static_cast<int64_t>(size);
  }
  T operator[](int64_t i) const {
    StableIValue value;
    Ok(torch_list_get_item(handle_, i, &value));
    return torch::stable::detail::to<T>(value);
  }
  StableListHandle release() { return std::exchange(handle_, nullptr); }

 private:
  StableListHandle handle_;
};
template <class T>
struct OnStack<List<T>> {
  static List<T> Take(StableIValue value) {
    return List<T>(torch::stable::detail::to<StableListHandle>(value));
  }
  static StableIValue Give(List<T> list) { return torch::stable::detail::from(list.release()); }
};

template <auto kFunction>
struct Boxer;
template <class R, class... Args, R (*kFunction)(Args...)>
struct Boxer<kFunction> {
  static void Call(StableIValue* stack, uint64_t num_args, uint64_t num_results) {
    Require(num_args == sizeof...(Args), "oneflow_lite_torch bug: a schema of ", num_args,
            " arguments for a function of ", sizeof...(Args));
    Run(stack, std::index_sequence_for<Args...>());
  }

 private:
  template <size_t... kIndex>
  static void Run(StableIValue* stack, std::index_sequence<kIndex...>) {
    std::tuple<std::decay_t<Args>...> args{OnStack<std::decay_t<Args>>::Take(stack[kIndex])...};
    if constexpr (std::is_void_v<R>) {
      std::apply(kFunction, args);
    } else {
      Give(stack, std::apply(kFunction, args));
    }
  }
  template <class T>
  static void Give(StableIValue* stack, T&& result) {
    *stack = OnStack<T>::Give(std::move(result));
  }
  template <class... T>
  static void Give(StableIValue* stack, std::tuple<T...>&& results) {
    std::apply([&](T&... r) { ((*stack++ = OnStack<T>::Give(std::move(r))), ...); }, results);
  }
};
using BoxedKernel = void (*)(StableIValue*, uint64_t, uint64_t);
template <auto kFunction>
inline constexpr BoxedKernel Boxed = &Boxer<kFunction>::Call;

template <class... Args>
std::array<StableIValue, sizeof...(Args)> StackOf(Args&&... args) {
  return {OnStack<std::decay_t<Args>>::Give(std::forward<Args>(args))...};
}
// Calls an operator; its results lie where its arguments lay.
template <class... Args>
std::array<StableIValue, sizeof...(Args)> CallOperator(const char* name, Args&&... args) {
  auto stack = StackOf(std::forward<Args>(args)...);
  Done(torch_call_dispatcher(name, "", stack.data(), TORCH_ABI_VERSION), name);
  return stack;
}

}  // namespace oneflow_lite::torch_ops
