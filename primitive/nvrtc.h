// SPDX-License-Identifier: Apache-2.0
//
// CUDA source to a kernel's binary at run time, through NVRTC, which is opened by name when it is
// first needed. It needs no GPU. What was compiled is kept (kernel_cache.h).
//
//   OFL_ASSIGN_OR_RETURN(auto kernel, CompileCuda(text, "Kernel<float>", /*architecture=*/90));
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "primitive/kernel_cache.h"

namespace oneflow_lite {

// Why nothing can be compiled here, and what to install; empty where all is there. Looked for once,
// and again after AddToolkitFolders.
OFL_API std::string CompilerProblem();

// The kernel that a name expression stands for, for sm_<architecture>; the source may include the
// headers of primitive/cuda. NotImplementedError where NVRTC or a header is missing; RuntimeError
// with the compiler's words where the source does not compile.
OFL_API StatusOr<std::shared_ptr<const CompiledKernel>> CompileCuda(const std::string& text,
                                                                    const std::string& kernel,
                                                                    int architecture);

// More places where a toolkit may be, folders with include and lib64 or lib in them; or our
// headers, where they are not installed beside the library.
OFL_API void AddToolkitFolders(absl::Span<const std::string> folders);

// How often this process compiled something, for those who want to know whether a cache was hit.
OFL_API int64_t Compilations();
// Forgets what this process compiled, not what is on disk; for tests.
OFL_API void ForgetKernels();

}  // namespace oneflow_lite
