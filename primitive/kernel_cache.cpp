// SPDX-License-Identifier: Apache-2.0
#include "primitive/kernel_cache.h"

#include <pwd.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "oneflow_lite/core/private_folder.h"
#include "oneflow_lite/core/sha256.h"

namespace oneflow_lite {
namespace {

void PrintWarning(const std::string& text) {
  std::fprintf(stderr, "oneflow_lite: %s\n", text.c_str());
}
std::atomic<WarningHandler> warning_handler{&PrintWarning};

const char* FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

std::string KeyOf(const KernelSource& source) {
  Sha256 digest;
  digest.AddField(source.text).AddField(source.kernel).AddField(source.compiler);
  for (const std::string& option : source.options) digest.AddField(option);
  return digest.Hex();
}

// A digest of all that a file holds and of what it stands for.
std::string SealOf(const CompiledKernel& kernel) {
  return Sha256().AddField(kernel.key).AddField(kernel.name).AddField(kernel.image).Hex();
}

// Name, newline, seal, newline, image.
std::string FileOf(const CompiledKernel& kernel) {
  return kernel.name + "\n" + SealOf(kernel) + "\n" + kernel.image;
}

std::shared_ptr<const CompiledKernel> Read(const std::string& key, const std::string& file) {
  const StatusOr<std::string> content = ReadPrivate(file);
  if (!content.ok()) return nullptr;
  const size_t first = content->find('\n');
  const size_t second = first == std::string::npos ? first : content->find('\n', first + 1);
  if (second == std::string::npos) return nullptr;
  auto kernel = std::make_shared<CompiledKernel>(
      CompiledKernel{key, content->substr(second + 1), content->substr(0, first)});
  return *content == FileOf(*kernel) ? kernel : nullptr;
}

// The folder on disk; empty where there is none. `warning` is set where it cannot be trusted.
std::string Folder(std::string* warning) {
  const std::string parent = ExtensionCacheFolder();
  if (parent.empty()) return {};
  StatusOr<std::string> folder = MakePrivateFolder(parent);
  if (folder.ok()) folder = MakePrivateFolder(*folder + "/fused");
  if (folder.ok()) return *folder;
  if (KindOf(folder.status()) == ErrorKind::kValue) {
    *warning = absl::StrCat("fuse: ", folder.status().message(),
                            "; kernels are compiled anew in each process. Let OFL_EXTENSION_CACHE "
                            "name another folder");
  }
  return {};
}

}  // namespace

std::string ExtensionCacheFolder() {
  if (const char* chosen = FromEnvironment("OFL_EXTENSION_CACHE")) return chosen;
  const std::string ours = "/oneflow_lite/extensions";
  if (const char* base = FromEnvironment("XDG_CACHE_HOME")) return base + ours;
  if (const char* home = FromEnvironment("HOME")) return home + ("/.cache" + ours);
  const passwd* user = getpwuid(geteuid());
  return user && user->pw_dir ? user->pw_dir + ("/.cache" + ours) : std::string();
}

void SetKernelWarningHandler(WarningHandler handler) { warning_handler = handler; }

StatusOr<std::shared_ptr<const CompiledKernel>> KernelCache::Get(const KernelSource& source) {
  const std::string key = KeyOf(source);
  std::string warning;
  std::shared_ptr<const CompiledKernel> kernel;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const CompiledKernel>& kept = kept_[key];
    if (!kept) {
      const std::string folder = Folder(&warning);
      const std::string file = folder.empty() ? folder : folder + "/" + key + ".kernel";
      if (!file.empty()) kept = Read(key, file);
      if (!kept) {
        OFL_ASSIGN_OR_RETURN(CompiledKernel compiled, compile_(source));
        compiled.key = key;
        kept = std::make_shared<CompiledKernel>(std::move(compiled));
        // A disk that is full or not ours costs a compilation per process.
        if (!file.empty()) WriteWhole(file, FileOf(*kept)).IgnoreError();
      }
    }
    kernel = kept;
  }
  // Outside the lock: the handler may wait for others, who may wait for a kernel.
  if (!warning.empty()) warning_handler.load()(warning);
  return kernel;
}

void KernelCache::Forget() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
}

}  // namespace oneflow_lite
