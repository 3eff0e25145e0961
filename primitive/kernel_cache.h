// SPDX-License-Identifier: Apache-2.0
//
// What was compiled at run time, kept in the process and on disk under a digest of everything that
// it depends on.
//
//   KernelCache cache([&](const KernelSource& s) { return Compile(s); });
//   OFL_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledKernel> kernel, cache.Get(source));
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "oneflow_lite/core/export.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

struct KernelSource {
  std::string text;
  std::string kernel;                // a name expression: "Kernel<float>"
  std::vector<std::string> options;  // of the compiler, the architecture among them
  std::string compiler;              // its version, and whatever else a binary depends on
};

struct CompiledKernel {
  std::string key;    // another one for every other image
  std::string image;  // what the compiler gave
  std::string name;   // the kernel's in the image
};

// $OFL_EXTENSION_CACHE, else oneflow_lite/extensions in $XDG_CACHE_HOME or ~/.cache. Empty where
// there is no home.
OFL_API std::string ExtensionCacheFolder();

// Where a text goes that the user should see once, such as why there is no cache: to stderr, until
// another handler is set.
using WarningHandler = void (*)(const std::string& text);
OFL_API void SetKernelWarningHandler(WarningHandler handler);

// Thread-safe; one kernel is compiled at a time. The folder on disk is `fused` in
// ExtensionCacheFolder(). Its files are believed only where they are whole, stand for the key and
// are the user's own (private_folder.h). Where the disk cannot be written to, each process compiles
// anew; where it cannot be trusted, with a warning.
class OFL_API KernelCache {
 public:
  // Gives the image, and the kernel's name in it.
  using Compile = std::function<StatusOr<CompiledKernel>(const KernelSource&)>;

  explicit KernelCache(Compile compile) : compile_(std::move(compile)) {}
  StatusOr<std::shared_ptr<const CompiledKernel>> Get(const KernelSource& source);
  // Forgets what the process holds, as another process would begin.
  void Forget();

 private:
  Compile compile_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const CompiledKernel>> kept_;  // by key
};

}  // namespace oneflow_lite
