// SPDX-License-Identifier: Apache-2.0
#include "primitive/nvrtc_toolkit.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_join.h"
#include "oneflow_lite/core/sha256.h"
#include "primitive/library.h"

namespace oneflow_lite {
namespace {

namespace fs = std::filesystem;

constexpr LibraryNames kSonames = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr const char* kWanted[] = {"cuda_fp16.h", "cooperative_groups.h", "nv/target",
                                   "cuda/std/cstdint"};
constexpr char kInstall[] =
    "install the CUDA Toolkit (cuda-nvrtc, cuda-cudart-dev) or `pip install nvidia-cuda-nvrtc";

void AddPackagesIn(const fs::path& folder, std::vector<fs::path>* homes) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder / "nvidia", error), end; !error && it != end;
       it.increment(error)) {
    found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  homes->insert(homes->end(), found.begin(), found.end());
}

// Where a toolkit, or the packages that hold its parts, may be.
std::vector<fs::path> Homes(absl::Span<const std::string> given) {
  std::vector<fs::path> homes;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home && *home) homes.emplace_back(home);
  }
  homes.emplace_back("/usr/local/cuda");
  AddPackagesIn(fs::path(PackageFolder()).parent_path(), &homes);
  homes.insert(homes.end(), given.begin(), given.end());
  return homes;
}

// The folder to include our headers from: beside the library where that is installed, or given.
StatusOr<fs::path> OwnHeaders(absl::Span<const std::string> given) {
  std::vector<fs::path> places = {fs::path(PackageFolder()) / "include"};
  for (const std::string& folder : given) {
    places.push_back(fs::path(folder) / "include");
    places.emplace_back(folder);
  }
  std::error_code error;
  for (const fs::path& place : places) {
    if (fs::exists(place / "primitive/cuda/chip/pack.cuh", error)) return place;
  }
  return Error(ErrorKind::kNotImplemented, "the headers of oneflow_lite are not in ",
               places[0].string());
}

Status FindHeaders(const std::vector<fs::path>& homes, std::vector<std::string>* folders) {
  std::error_code error;
  for (const char* wanted : kWanted) {
    std::string found;
    for (const fs::path& home : homes) {
      for (const char* sub : {"include", "include/cccl"}) {
        if (found.empty() && fs::exists(home / sub / wanted, error)) found = (home / sub).string();
      }
    }
    if (found.empty()) {
      return Error(ErrorKind::kNotImplemented, "no ", wanted, " was found; ", kInstall,
                   " nvidia-cuda-runtime nvidia-cuda-cccl`");
    }
    if (std::find(folders->begin(), folders->end(), found) == folders->end()) {
      folders->push_back(found);
    }
  }
  return OkStatus();
}

std::string FindFunctions(Nvrtc* f) {
  Library library(kSonames, {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"});
  if (!library.handle()) {
    return absl::StrCat("NVRTC (", absl::StrJoin(kSonames, " or "), ") was not found; ", kInstall,
                        "`");
  }
  library.Find("nvrtcVersion", f->Version);
  library.Find("nvrtcGetErrorString", f->GetErrorString);
  library.Find("nvrtcCreateProgram", f->CreateProgram);
  library.Find("nvrtcDestroyProgram", f->DestroyProgram);
  library.Find("nvrtcAddNameExpression", f->AddNameExpression);
  library.Find("nvrtcCompileProgram", f->CompileProgram);
  library.Find("nvrtcGetLoweredName", f->GetLoweredName);
  library.Find("nvrtcGetProgramLogSize", f->GetProgramLogSize);
  library.Find("nvrtcGetProgramLog", f->GetProgramLog);
  library.Find("nvrtcGetCUBINSize", f->GetCUBINSize);
  library.Find("nvrtcGetCUBIN", f->GetCUBIN);
  return library.problem();
}

void AddFile(const fs::path& file, Sha256* digest) {
  std::ifstream in(file, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  digest->AddField(file.filename().string()).AddField(content);
}

// Our version, NVRTC's, our device headers, and the toolkit's headers that carry its version.
std::string VersionOf(const NvrtcToolkit& toolkit) {
  Sha256 digest;
  std::error_code error;
  std::vector<fs::path> files;
  const fs::path own = fs::path(toolkit.include_folders[0]) / "primitive";
  for (const fs::path& folder : {own, own / "cuda"}) {
    std::vector<fs::path> headers;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string kind = it->path().extension().string();
      if (kind == ".h" || kind == ".cuh") headers.push_back(it->path());
    }
    std::sort(headers.begin(), headers.end());
    files.insert(files.end(), headers.begin(), headers.end());
  }
  for (size_t i = 1; i < toolkit.include_folders.size(); ++i) {
    const fs::path folder = toolkit.include_folders[i];
    for (const char* name : kWanted) files.push_back(folder / name);
    files.push_back(folder / "cuda.h");
    files.push_back(folder / "cuda/std/detail/__config");
  }
  for (const fs::path& file : files) {
    if (fs::is_regular_file(file, error)) AddFile(file, &digest);
  }
  for (const BuiltInHeader& header : BuiltInHeaders()) {
    digest.AddField(header.name).AddField(header.text);
  }
  int major = 0, minor = 0;
  toolkit.functions.Version(&major, &minor);
  return absl::StrCat(OFL_VERSION, " ", major, ".", minor, " ", digest.Hex());
}

}  // namespace

NvrtcToolkit FindNvrtcToolkit() {
  NvrtcToolkit toolkit;
  const std::vector<std::string> given = AddedLibraryHomes();
  const std::vector<fs::path> homes = Homes(given);
  const std::string missing = FindFunctions(&toolkit.functions);
  Status found = missing.empty() ? OkStatus() : Error(ErrorKind::kNotImplemented, missing);
  const StatusOr<fs::path> own = OwnHeaders(given);
  if (found.ok()) found = own.status();
  if (found.ok()) {
    toolkit.include_folders.push_back(own->string());
    found = FindHeaders(homes, &toolkit.include_folders);
  }
  if (found.ok()) {
    toolkit.version = VersionOf(toolkit);
  } else {
    toolkit.problem = std::string(found.message());
  }
  return toolkit;
}

}  // namespace oneflow_lite
