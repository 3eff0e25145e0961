// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_format.h"

namespace oneflow_lite {
namespace {

namespace fs = std::filesystem;

Status SystemError(const std::string& path, int error) {
  return Error(ErrorKind::kRuntime, path, ": ", std::strerror(error));
}
template <class... Parts>
Status NotPrivate(const Parts&... parts) {
  return Error(ErrorKind::kValue, parts...);
}

Status RefuseForeign(const std::string& path, const struct stat& status) {
  if (status.st_uid != geteuid()) {
    return NotPrivate(path, " belongs to user ", status.st_uid, ", not to ", geteuid());
  }
  if (status.st_mode & (S_IWGRP | S_IWOTH)) {
    return NotPrivate(path, " may be written by others (its mode is ",
                      absl::StrFormat("%o", status.st_mode & 07777),
                      "); what is in it may be theirs: remove it");
  }
  return OkStatus();
}

// In a folder that everybody may write to, anybody could put another one in its place.
Status RefuseOpenParents(const fs::path& folder) {
  for (fs::path parent = folder.parent_path();; parent = parent.parent_path()) {
    struct stat status;
    if (stat(parent.c_str(), &status) != 0) return SystemError(parent, errno);
    if ((status.st_mode & S_IWOTH) && !(status.st_mode & S_ISVTX)) {
      return NotPrivate(parent.string(), ", in which ", folder.string(),
                        " lies, may be written by everybody");
    }
    if (status.st_uid != 0 && status.st_uid != geteuid() && (status.st_mode & S_IWUSR)) {
      return NotPrivate(parent.string(), ", in which ", folder.string(), " lies, belongs to user ",
                        status.st_uid);
    }
    if (parent == parent.parent_path()) return OkStatus();
  }
}

Status MakeFolders(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path path = folder; !fs::exists(path, error); path = path.parent_path()) {
    if (error) return SystemError(path, error.value());
    missing.push_back(path);
  }
  for (; !missing.empty(); missing.pop_back()) {  // another process may make one meanwhile
    if (mkdir(missing.back().c_str(), 0700) != 0 && errno != EEXIST) {
      return SystemError(missing.back(), errno);
    }
  }
  return OkStatus();
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

}  // namespace

StatusOr<std::string> MakePrivateFolder(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  OFL_RETURN_IF_ERROR(MakeFolders(path));
  path = fs::canonical(path, error);
  if (error) return SystemError(folder, error.value());
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return SystemError(path, errno);
  if (!S_ISDIR(status.st_mode)) return SystemError(path, ENOTDIR);
  OFL_RETURN_IF_ERROR(RefuseForeign(path, status));
  OFL_RETURN_IF_ERROR(RefuseOpenParents(path));
  const bool open = (status.st_mode & 07777) != 0700;  // others could look into it
  if (open && chmod(path.c_str(), 0700) != 0) return SystemError(path, errno);
  return path.string();
}

StatusOr<std::string> ReadPrivate(const std::string& file) {
  const Descriptor opened{open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  if (opened.number < 0 && errno == ELOOP) return NotPrivate(file, " is a symbolic link");
  if (opened.number < 0) return SystemError(file, errno);
  struct stat status;
  if (fstat(opened.number, &status) != 0) return SystemError(file, errno);
  if (!S_ISREG(status.st_mode)) return NotPrivate(file, " is no regular file");
  OFL_RETURN_IF_ERROR(RefuseForeign(file, status));
  std::string content;
  char buffer[1 << 16];
  for (ssize_t n; (n = read(opened.number, buffer, sizeof(buffer))) != 0;) {
    if (n < 0 && errno != EINTR) return SystemError(file, errno);
    if (n > 0) content.append(buffer, static_cast<size_t>(n));
  }
  return content;
}

Status WriteWhole(const std::string& file, const std::string& content) {
  const size_t slash = file.rfind('/') + 1;  // 0 where there is none
  std::string part = file.substr(0, slash) + "." + file.substr(slash) + ".XXXXXX";
  Descriptor opened{mkostemp(part.data(), O_CLOEXEC)};
  if (opened.number < 0) return SystemError(file, errno);
  int failed = 0;
  for (size_t done = 0; !failed && done < content.size();) {
    const ssize_t n = write(opened.number, content.data() + done, content.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      failed = errno;
    }
  }
  if (!failed && fsync(opened.number) != 0) failed = errno;
  if (close(opened.number) != 0 && !failed) failed = errno;
  opened.number = -1;
  if (!failed && std::rename(part.c_str(), file.c_str()) != 0) failed = errno;
  if (!failed) return OkStatus();
  unlink(part.c_str());
  return SystemError(file, failed);
}

}  // namespace oneflow_lite
