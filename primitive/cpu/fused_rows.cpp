// SPDX-License-Identifier: Apache-2.0
#include "primitive/fused_rows.h"

namespace oneflow_lite {
namespace {

StatusOr<std::unique_ptr<FusedRows>> NewFusedRows(const FusedRows::Spec&) {
  return Error(
      ErrorKind::kNotImplemented,
      "fused_rows: nothing is compiled at run time for the CPU; flow.fuse composes functors");
}

const bool registered = RegisterPrimitive<FusedRows>(DeviceType::kCPU, &NewFusedRows);

}  // namespace
}  // namespace oneflow_lite
