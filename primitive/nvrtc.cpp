// SPDX-License-Identifier: Apache-2.0
#include "primitive/nvrtc.h"

#include <atomic>
#include <mutex>

#include "primitive/library.h"
#include "primitive/nvrtc_toolkit.h"

namespace oneflow_lite {
namespace {

constexpr BuiltInHeader kHeaders[] = {
    {"stdint.h", "#include <cuda/std/cstdint>\n"},
    {"cstdint", "#include <cuda/std/cstdint>\n"},
    {"stddef.h", ""},
    {"string.h", ""},
    {"cstring", ""},
    {"cmath", R"(#pragma once
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
)"},
    {"type_traits", R"(#pragma once
namespace std {
template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
};
template <bool v>
using bool_constant = integral_constant<bool, v>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;
template <class A, class... B>
inline constexpr bool is_any_of = (is_same_v<A, B> || ...);
template <bool kFirst, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool kFirst, class A, class B>
using conditional_t = typename conditional<kFirst, A, B>::type;
template <class...>
using void_t = void;
template <bool, class>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool kIf, class T = void>
using enable_if_t = typename enable_if<kIf, T>::type;
template <class T>
T&& declval() noexcept;
template <class T>
inline constexpr bool is_void_v = is_same_v<T, void>;
template <class T>
inline constexpr bool is_floating_point_v = is_any_of<T, float, double>;
template <class T>
inline constexpr bool is_integral_v =
    is_any_of<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned,
              long, unsigned long, long long, unsigned long long>;
template <class T>
inline constexpr bool is_signed_v =
    is_any_of<T, signed char, short, int, long, long long, float, double>;
template <class T>
inline constexpr bool is_unsigned_v =
    is_any_of<T, bool, unsigned char, unsigned short, unsigned, unsigned long, unsigned long long>;
}  // namespace std
)"},
};

// What is found is kept for good: kernels may be compiled while folders are added.
struct Found {
  std::mutex mutex;
  std::shared_ptr<const NvrtcToolkit> toolkit;
};
Found& State() {
  static Found* found = new Found;
  return *found;
}

std::shared_ptr<const NvrtcToolkit> Toolkit() {
  Found& found = State();
  const std::lock_guard lock(found.mutex);
  if (!found.toolkit) {
    found.toolkit = std::make_shared<NvrtcToolkit>(FindNvrtcToolkit());
  }
  return found.toolkit;
}

std::atomic<int64_t> compilations{0};

Status Check(const Nvrtc& nvrtc, int code, const char* what) {
  if (code == 0) return OkStatus();
  return Error(ErrorKind::kRuntime, what, " failed: ", nvrtc.GetErrorString(code));
}

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

// A program, destroyed at the end of its block.
struct Program {
  const Nvrtc& nvrtc;
  Nvrtc::Program program = nullptr;
  ~Program() {
    if (program) nvrtc.DestroyProgram(&program);
  }

  StatusOr<std::string> Output(int (*size_of)(Nvrtc::Program, size_t*),
                               int (*get)(Nvrtc::Program, char*), const char* what) const {
    size_t size = 0;
    OFL_RETURN_IF_ERROR(Check(nvrtc, size_of(program, &size), what));
    std::string text(size, '\0');
    OFL_RETURN_IF_ERROR(Check(nvrtc, get(program, text.data()), what));
    return text;
  }
};

Status Create(const KernelSource& source, Program* p) {
  std::vector<const char*> texts, names;
  for (const BuiltInHeader& header : kHeaders) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  const Nvrtc& nvrtc = p->nvrtc;
  OFL_RETURN_IF_ERROR(
      Check(nvrtc,
            nvrtc.CreateProgram(&p->program, source.text.c_str(), "fused.cu",
                                static_cast<int>(texts.size()), texts.data(), names.data()),
            "nvrtcCreateProgram"));
  return Check(nvrtc, nvrtc.AddNameExpression(p->program, source.kernel.c_str()),
               "a kernel's name");
}

StatusOr<CompiledKernel> Compile(const KernelSource& source) {
  const std::shared_ptr<const NvrtcToolkit> toolkit = Toolkit();
  const Nvrtc& nvrtc = toolkit->functions;
  Program p{nvrtc};
  OFL_RETURN_IF_ERROR(Create(source, &p));
  std::vector<std::string> options = source.options;
  for (const std::string& folder : toolkit->include_folders) options.push_back("-I" + folder);
  const std::vector<const char*> pointers = Pointers(options);
  const int code =
      nvrtc.CompileProgram(p.program, static_cast<int>(pointers.size()), pointers.data());
  ++compilations;
  if (code != 0) {
    OFL_ASSIGN_OR_RETURN(std::string log,
                         p.Output(nvrtc.GetProgramLogSize, nvrtc.GetProgramLog, "nvrtcGetLog"));
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    return Error(ErrorKind::kRuntime, "NVRTC refused the source of a fused op:\n", log, "\n",
                 source.text);
  }
  const char* name = nullptr;
  OFL_RETURN_IF_ERROR(Check(nvrtc, nvrtc.GetLoweredName(p.program, source.kernel.c_str(), &name),
                            "nvrtcGetLoweredName"));
  CompiledKernel compiled;
  compiled.name = name;
  OFL_ASSIGN_OR_RETURN(compiled.image,
                       p.Output(nvrtc.GetCUBINSize, nvrtc.GetCUBIN, "nvrtcGetCUBIN"));
  return compiled;
}

KernelCache& Cache() {
  static KernelCache* cache = new KernelCache(&Compile);
  return *cache;
}

}  // namespace

absl::Span<const BuiltInHeader> BuiltInHeaders() { return kHeaders; }

std::string CompilerProblem() { return Toolkit()->problem; }

StatusOr<std::shared_ptr<const CompiledKernel>> CompileCuda(const std::string& text,
                                                            const std::string& kernel,
                                                            int architecture) {
  const std::shared_ptr<const NvrtcToolkit> toolkit = Toolkit();
  if (!toolkit->problem.empty()) return Error(ErrorKind::kNotImplemented, toolkit->problem);
  return Cache().Get({text,
                      kernel,
                      {"-std=c++17", "-default-device", absl::StrCat("-arch=sm_", architecture)},
                      toolkit->version});
}

void AddToolkitFolders(absl::Span<const std::string> folders) {
  Found& found = State();
  const std::lock_guard lock(found.mutex);
  AddLibraryHomes(folders);
  if (found.toolkit && !found.toolkit->problem.empty()) found.toolkit = nullptr;
}

int64_t Compilations() { return compilations; }
void ForgetKernels() { Cache().Forget(); }

}  // namespace oneflow_lite
