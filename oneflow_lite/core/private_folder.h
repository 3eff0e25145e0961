// SPDX-License-Identifier: Apache-2.0
//
// Folders for what was compiled: whoever can write there has code run by all who load from there.
// So a cache is a folder of mode 700 that belongs to the user, and its files are read only where
// they are the user's own and nobody else could have written them.
//
//   OFL_ASSIGN_OR_RETURN(const std::string folder, MakePrivateFolder("/home/ada/.cache/kernels"));
//   OFL_RETURN_IF_ERROR(WriteWhole(folder + "/a", "content"));
//   OFL_ASSIGN_OR_RETURN(const std::string content, ReadPrivate(folder + "/a"));
#pragma once

#include <string>

#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

// ValueError: a folder or a file belongs to or may be changed by another user; the message says
// which. RuntimeError: it is not there, or cannot be made, read or written. So with all three.
//
// The folder without symbolic links, made with mode 700 where it is not there; so are those above.
OFL_API StatusOr<std::string> MakePrivateFolder(const std::string& folder);
// The content of a regular file of the user's own.
OFL_API StatusOr<std::string> ReadPrivate(const std::string& file);
// Puts a file of mode 600 in place at once: nobody sees a part of it.
OFL_API Status WriteWhole(const std::string& file, const std::string& content);

}  // namespace oneflow_lite
