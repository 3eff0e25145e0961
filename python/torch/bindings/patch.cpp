// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's own operators by these kernels: what patch() in Python puts in place and takes away.
// What a kernel does not serve goes to an operator of the same arguments, fallback_..., which
// Python implements by the kernel that was there before; aten itself would lead back here.
#include <torch/csrc/stable/library.h>

#include <atomic>
#include <limits>
#include <string>
#include <utility>

#include "python/torch/bindings/boxed.h"
#include "python/torch/bindings/launch.h"
#include "python/torch/bindings/operators.h"

namespace oneflow_lite::torch_ops {
namespace {

using Sizes = List<int64_t>;
using Flags = List<bool>;

// What the fallback of this thread that failed had to say, and the class of its error: a name of
// ThrowAs, or nothing.
struct Noted {
  std::string kind, text;
};
thread_local Noted noted;
void NoteError(const std::string& kind, const std::string& text) { noted = {kind, text}; }

// Calls fallback_<op> with these arguments; gives its outputs as values of the stack.
template <class... Args>
std::array<StableIValue, sizeof...(Args)> Fallback(const char* name, Args&&... args) {
  std::array<StableIValue, sizeof...(Args)> stack = StackOf(std::forward<Args>(args)...);
  noted = {};
  const auto error = torch_call_dispatcher(name, "", stack.data(), TORCH_ABI_VERSION);
  if (error == AOTI_TORCH_SUCCESS) return stack;
  const Noted told = std::exchange(noted, {});
  if (told.kind.empty() && told.text.empty()) Done(error, name);  // before Python noted any
  ThrowAs(told.kind, told.text);
}

// Whether the patched operators are invariant (python/torch/invariant/invariant.h).
std::atomic<bool> patched_invariant{false};
void SetInvariant(bool on) { patched_invariant = on; }

// Rows or a whole tensor that the softmax kernels read as they lie. Invariant rows are those of the
// last dim.
bool ServesSoftmax(const TensorInfo& x, int64_t dim, bool invariant) {
  if (!x.is_floating() || x.numel() == 0) return false;
  const int64_t dims = x.ndim > 0 ? x.ndim : 1;
  if (dim < -dims || dim >= dims) return false;
  const bool last = (dim < 0 ? dim + dims : dim) == dims - 1;
  if (invariant && !last) return false;
  return IsContiguous(x) || (last && RowsOf(x, x.ndim - 1).stride > 0);
}

template <bool kLog>
Tensor PatchedSoftmax(const Tensor& self, int64_t dim, bool half_to_float) {
  const TensorInfo x(self);
  const bool last = x.ndim > 0 && (dim == -1 || dim == x.ndim - 1);
  const bool invariant = patched_invariant;
  const bool widens =
      x.device.type == DeviceType::kCUDA && SizeOf(x.dtype) == 2 && last && !invariant;
  if (ServesSoftmax(x, dim, invariant) && (!half_to_float || widens)) {
    return SoftmaxOf(self, x, dim, kLog, half_to_float, invariant);
  }
  constexpr auto kName =
      kLog ? "oneflow_lite_torch::fallback__log_softmax" : "oneflow_lite_torch::fallback__softmax";
  return OnStack<Tensor>::Take(Fallback(kName, self, dim, half_to_float)[0]);
}

bool ServesGradient(const TensorInfo& x, const TensorInfo& dy) {
  return dy.known && dy.dtype == x.dtype && HasShapeOf(dy, x);
}
// PyTorch's number, which TorchDType knows.
int32_t NumberOf(ScalarType type) {
  return torch::stable::detail::to<int32_t>(torch::stable::detail::from(type));
}

template <bool kLog>
Tensor PatchedSoftmaxBackward(const Tensor& dout, const Tensor& out, int64_t dim,
                              ScalarType input_dtype) {
  const TensorInfo dy(dout), y(out);
  const bool invariant = patched_invariant;
  // dy is copied where it lies otherwise, as PyTorch does: that of a sum is one number, expanded.
  if (ServesGradient(y, dy) && NumberOf(input_dtype) == TorchDType(y.dtype) &&
      ServesSoftmax(y, dim, invariant)) {
    return SoftmaxGradientOf(dout, dy, out, y, dim, kLog, invariant);
  }
  constexpr auto kName = kLog ? "oneflow_lite_torch::fallback__log_softmax_backward_data"
                              : "oneflow_lite_torch::fallback__softmax_backward_data";
  return OnStack<Tensor>::Take(Fallback(kName, dout, out, dim, input_dtype)[0]);
}

// Whether the norms' kernels give what PyTorch's do. On the CPU its statistics of 16-bit rows have
// 16 bits, unless the weight is wider.
bool ServesNorm(const NormInput& input, const Sizes& shape) {
  const TensorInfo& x = input.of_x;
  const int64_t dims = shape.size();
  if (!x.is_floating() || x.numel() == 0 || dims < 1 || dims > x.ndim) return false;
  for (int64_t d = 0; d < dims; ++d) {
    if (x.sizes[x.ndim - dims + d] != shape[d]) return false;
  }
  if (RowsOf(x, x.ndim - dims).stride == 0) return false;
  const bool narrow = SizeOf(x.dtype) == 2;
  DType dtype = x.dtype;
  for (const auto* column : {&input.of_weight, &input.of_bias}) {
    if (!*column) continue;
    const TensorInfo& c = **column;
    if (!c.known || (c.dtype != x.dtype && !(narrow && c.dtype == DType::kFloat32))) return false;
    if (c.device.type != x.device.type || c.device.index != x.device.index) return false;
    if (column == &input.of_bias && input.weight && c.dtype != dtype) return false;
    dtype = c.dtype;
  }
  return x.device.type == DeviceType::kCUDA || !narrow || dtype == DType::kFloat32;
}

bool ServesStatistics(const TensorInfo& x, const Tensor& numbers) {
  const TensorInfo s(numbers);
  return s.known && s.dtype == ComputeType(x.dtype) && IsContiguous(s);
}
// Flags as a number, bit by bit: lists of bool do not pass through the stable ABI both ways.
int64_t MaskOf(const Flags& flags) {
  int64_t mask = 0;
  for (int64_t i = 0; i < flags.size(); ++i) mask |= int64_t{flags[i]} << i;
  return mask;
}

std::tuple<Tensor, Tensor, Tensor> PatchedLayerNorm(const Tensor& x, Sizes& shape,
                                                    const OptionalTensor& weight,
                                                    const OptionalTensor& bias, double eps) {
  const NormInput input(x, Address(weight), Address(bias));
  if (ServesNorm(input, shape)) {
    auto out = NormOf(input, true, shape.size(), eps, patched_invariant, /*statistics=*/true);
    return {std::move(out.y), std::move(*out.mean), std::move(*out.rstd)};
  }
  const auto out = Fallback("oneflow_lite_torch::fallback_native_layer_norm", x, std::move(shape),
                            weight, bias, eps);
  return {OnStack<Tensor>::Take(out[0]), OnStack<Tensor>::Take(out[1]),
          OnStack<Tensor>::Take(out[2])};
}

std::tuple<Result, Result, Result> PatchedLayerNormBackward(
    const Tensor& dout, const Tensor& x, Sizes& shape, const Tensor& mean, const Tensor& rstd,
    const OptionalTensor& weight, const OptionalTensor& bias, const Flags& flags) {
  const NormInput input(x, Address(weight), Address(bias));
  const TensorInfo dy(dout);
  const bool needs[3] = {flags[0], flags[1], flags[2]};
  if (ServesNorm(input, shape) && ServesGradient(input.of_x, dy) &&
      ServesStatistics(input.of_x, mean) && ServesStatistics(input.of_x, rstd) &&
      (!needs[1] || weight) && (!needs[2] || bias)) {
    auto g =
        NormGradientsOf(input, true, dout, dy, &mean, rstd, shape.size(), needs, patched_invariant);
    return {{std::move(g.dx)}, {std::move(g.dweight)}, {std::move(g.dbias)}};
  }
  const auto out = Fallback("oneflow_lite_torch::fallback_native_layer_norm_backward", dout, x,
                            std::move(shape), mean, rstd, weight, bias, MaskOf(flags));
  return {OnStack<Result>::Take(out[0]), OnStack<Result>::Take(out[1]),
          OnStack<Result>::Take(out[2])};
}

std::tuple<Tensor, Tensor> PatchedRmsNorm(const Tensor& x, Sizes& shape,
                                          const OptionalTensor& weight, std::optional<double> eps) {
  const NormInput input(x, Address(weight), nullptr);
  if (ServesNorm(input, shape)) {
    const double least = input.of_x.dtype == DType::kFloat64
                             ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
    auto out = NormOf(input, false, shape.size(), eps.value_or(least), patched_invariant,
                      /*statistics=*/true);
    return {std::move(out.y), std::move(*out.rstd)};
  }
  const auto out =
      Fallback("oneflow_lite_torch::fallback__fused_rms_norm", x, std::move(shape), weight, eps);
  return {OnStack<Tensor>::Take(out[0]), OnStack<Tensor>::Take(out[1])};
}

std::tuple<Result, Result> PatchedRmsNormBackward(const Tensor& dout, const Tensor& x, Sizes& shape,
                                                  const Tensor& rstd, const OptionalTensor& weight,
                                                  const Flags& flags) {
  const NormInput input(x, Address(weight), nullptr);
  const TensorInfo dy(dout);
  const bool needs[3] = {flags[0], flags[1], false};
  if (ServesNorm(input, shape) && ServesGradient(input.of_x, dy) &&
      ServesStatistics(input.of_x, rstd) && (!needs[1] || weight)) {
    auto g = NormGradientsOf(input, false, dout, dy, nullptr, rstd, shape.size(), needs,
                             patched_invariant);
    return {{std::move(g.dx)}, {std::move(g.dweight)}};
  }
  const auto out = Fallback("oneflow_lite_torch::fallback__fused_rms_norm_backward", dout, x,
                            std::move(shape), rstd, weight, MaskOf(flags));
  return {OnStack<Result>::Take(out[0]), OnStack<Result>::Take(out[1])};
}

struct Override {
  const char* name;
  BoxedKernel kernel;
};
const Override kOverrides[] = {
    {"_softmax", Boxed<&PatchedSoftmax<false>>},
    {"_log_softmax", Boxed<&PatchedSoftmax<true>>},
    {"_softmax_backward_data", Boxed<&PatchedSoftmaxBackward<false>>},
    {"_log_softmax_backward_data", Boxed<&PatchedSoftmaxBackward<true>>},
    {"native_layer_norm", Boxed<&PatchedLayerNorm>},
    {"native_layer_norm_backward", Boxed<&PatchedLayerNormBackward>},
    {"_fused_rms_norm", Boxed<&PatchedRmsNorm>},
    {"_fused_rms_norm_backward", Boxed<&PatchedRmsNormBackward>},
};
constexpr int64_t kNumOverrides = 8;

// One registration per device and operator, so that an operator can be left out.
TorchLibraryHandle patched[2][kNumOverrides];

// Operator `op` of that list, on a device: puts the kernel in place, or takes it away.
void SetPatch(int64_t op, bool cuda, bool on) {
  Require(op >= 0 && op < kNumOverrides, "set_patch(): op is ", op, ", but there are 8");
  TorchLibraryHandle& library = patched[cuda][op];
  if (on == (library != nullptr)) return;
  if (!on) {
    aoti_torch_delete_library_object(std::exchange(library, nullptr));
    return;
  }
  const char* key = cuda ? "CUDA" : "CPU";
  const Override& o = kOverrides[op];
  Require(
      aoti_torch_library_init_impl("aten", key, __FILE__, __LINE__, &library) ==
              AOTI_TORCH_SUCCESS &&
          torch_library_impl(library, o.name, o.kernel, TORCH_ABI_VERSION) == AOTI_TORCH_SUCCESS,
      "patch(): PyTorch does not let aten::", o.name, " be overridden");
}

// Throws where the CUDA kernels cannot serve a device, and says why.
void CheckDevice(int64_t index) { CudaProperties(static_cast<int>(index)); }

}  // namespace
}  // namespace oneflow_lite::torch_ops

STABLE_TORCH_LIBRARY_FRAGMENT(oneflow_lite_torch, m) {
  m.def("set_patch(int op, bool cuda, bool on) -> ()");
  m.def("set_patch_invariant(bool on) -> ()");
  m.def("check_device(int index) -> ()");
  m.def("note_error(str kind, str text) -> ()");
  m.def("fallback__softmax(Tensor self, int dim, bool half_to_float) -> Tensor");
  m.def("fallback__log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor");
  m.def(
      "fallback__softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
      "ScalarType input_dtype) -> Tensor");
  m.def(
      "fallback__log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
      "ScalarType input_dtype) -> Tensor");
  m.def(
      "fallback_native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, "
      "Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)");
  m.def(
      "fallback_native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, "
      "Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, int output_mask) -> "
      "(Tensor, Tensor, Tensor)");
  m.def(
      "fallback__fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, "
      "float? eps) -> (Tensor, Tensor)");
  m.def(
      "fallback__fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, "
      "Tensor rstd, Tensor? weight, int output_mask) -> (Tensor, Tensor)");
}

using namespace oneflow_lite::torch_ops;  // the macro stands outside namespaces

STABLE_TORCH_LIBRARY_IMPL(oneflow_lite_torch, CompositeExplicitAutograd, m) {
  m.impl("set_patch", Boxed<&SetPatch>);
  m.impl("set_patch_invariant", Boxed<&SetInvariant>);
  m.impl("check_device", Boxed<&CheckDevice>);
  m.impl("note_error", Boxed<&NoteError>);
}
