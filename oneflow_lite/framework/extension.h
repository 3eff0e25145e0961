// SPDX-License-Identifier: Apache-2.0
//
// Loading libraries that add ops over the extension table (oneflow_lite/extension/c_api.h).
#pragma once

#include <string>
#include <vector>

#include "oneflow_lite/core/status.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

// Opens a shared library and registers what it brings: all of it, or nothing. Returns the names of
// the new ops; a library that was loaded before gives none. RuntimeError where the file cannot be
// opened, is no extension, was built for another version of the table, or registers something
// wrong.
OFL_API StatusOr<std::vector<std::string>> LoadExtension(const std::string& path);

// Registers ops and their kernels: all, or none. A kernel's op must be among them or exist already.
OFL_API Status RegisterAll(std::vector<OpDef> ops, std::vector<KernelDef> kernels);

}  // namespace oneflow_lite
