// SPDX-License-Identifier: Apache-2.0
#include "primitive/cudnn_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "primitive/library.h"

namespace oneflow_lite {
namespace {

namespace fs = std::filesystem;

constexpr char kSoname[] = "libcudnn.so.9";
// The part that answers cudnnGetVersion. Its constant has the bytes {patch, minor, major, 0}.
constexpr char kVersionPart[] = "libcudnn_graph.so.9";
constexpr char kVersionSymbol[] = "cudnn_graph_version";

std::string NameOf(int64_t version) {
  return absl::StrCat("cuDNN ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

// A library's file, read where its tables say; whatever lies beyond its end reads as zeros.
class ElfFile {
 public:
  explicit ElfFile(const fs::path& path) : in_(path, std::ios::binary) {}

  template <class T>
  T Read(uint64_t offset) {
    T value = {};
    in_.clear();
    if (!in_.seekg(static_cast<std::streamoff>(offset)) ||
        !in_.read(reinterpret_cast<char*>(&value), sizeof(T))) {
      return T{};
    }
    return value;
  }
  bool HasText(uint64_t offset, const char* text) {
    std::string found(std::strlen(text) + 1, '\0');
    in_.clear();
    return in_.seekg(static_cast<std::streamoff>(offset)) &&
           in_.read(found.data(), static_cast<std::streamsize>(found.size())) &&
           std::memcmp(found.data(), text, found.size()) == 0;
  }

 private:
  std::ifstream in_;
};

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

// The four bytes of an object that a library defines; zeros where it has none of that name.
uint32_t ReadObject(const fs::path& path, const char* name) {
  ElfFile file(path);
  const auto header = file.Read<Header>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  const auto section = [&](uint64_t i) {
    return file.Read<Section>(header.e_shoff + i * sizeof(Section));
  };
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const Section table = section(i);
    if (table.sh_type != SHT_DYNSYM || table.sh_link >= header.e_shnum) continue;
    const Section names = section(table.sh_link);
    const uint64_t count = std::min<uint64_t>(table.sh_size / sizeof(Symbol), 1 << 20);
    for (uint64_t k = 0; k < count; ++k) {
      const auto symbol = file.Read<Symbol>(table.sh_offset + k * sizeof(Symbol));
      if (symbol.st_name == 0 || symbol.st_size != 4 || symbol.st_shndx == SHN_UNDEF) continue;
      if (!file.HasText(names.sh_offset + symbol.st_name, name)) continue;
      for (uint64_t j = 0; j < header.e_phnum; ++j) {
        const auto s = file.Read<Segment>(header.e_phoff + j * sizeof(Segment));
        if (s.p_type == PT_LOAD && symbol.st_value >= s.p_vaddr &&
            symbol.st_value - s.p_vaddr + 4 <= s.p_filesz) {
          return file.Read<uint32_t>(s.p_offset + (symbol.st_value - s.p_vaddr));
        }
      }
    }
  }
  return 0;
}

// The version of the cuDNN in a folder, from its file; 0 where that does not say.
int64_t VersionIn(const fs::path& folder) {
  const uint32_t v = ReadObject(folder / kVersionPart, kVersionSymbol);
  return int64_t{v >> 16 & 255} * 10000 + int64_t{v >> 8 & 255} * 100 + int64_t{v & 255};
}

fs::path FileOf(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
  return map->l_name;
}

// Opens the parts of the cuDNN in a folder, which it would open by name, and so perhaps those of
// one that was refused.
void OpenParts(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("libcudnn_") && name.ends_with(".so.9")) {
      dlopen(it->path().c_str(), RTLD_LAZY | RTLD_LOCAL);
    }
  }
}

}  // namespace

CudnnLibrary OpenCudnn(int64_t least) {
  std::vector<std::string> refused;
  std::string not_found;
  for (const std::string& candidate :
       LibraryCandidates({kSoname}, {"nvidia/cudnn/lib", "nvidia/cudnn_jit/lib"})) {
    void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* problem = dlerror();
      if (not_found.empty() && problem) not_found = problem;
      continue;
    }
    const fs::path file = FileOf(handle);
    const int64_t written = VersionIn(file.parent_path());
    if (written > 0 && written < least) {
      std::error_code error;
      const fs::path folder = fs::canonical(file.parent_path(), error);  // it may have two names
      std::string reason = absl::StrCat((folder / kSoname).string(), " is ", NameOf(written));
      if (std::find(refused.begin(), refused.end(), reason) == refused.end()) {
        refused.push_back(std::move(reason));
      }
      dlclose(handle);
      continue;
    }
    if (!refused.empty()) OpenParts(file.parent_path());
    const auto get = reinterpret_cast<size_t (*)()>(dlsym(handle, "cudnnGetVersion"));
    const int64_t version = get ? static_cast<int64_t>(get()) : 0;
    if (version >= least) return {handle, NameOf(version), ""};
    // What answers is loaded for good: no other one would be used.
    refused.push_back(absl::StrCat(file.string(), " runs as ", NameOf(version),
                                   written > 0 ? ", whose parts were loaded before" : ""));
    break;
  }
  return {nullptr, "", refused.empty() ? not_found : absl::StrJoin(refused, "; ")};
}

}  // namespace oneflow_lite
