// SPDX-License-Identifier: Apache-2.0
//
// Placements and SBPs as Python sees them.
#pragma once

#include "oneflow_lite/framework/global.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// The keyword arguments placement= and sbp= of a function that makes tensors.
struct PlacedAt {
  PlacementRef placement = nullptr;
  NdSbp sbp;
};
// A new reference; throws where there is no memory.
PyObject* WrapPlacement(const PlacementRef& placement);
// False: an exception is set.
bool ReadPlaced(const char* function, PyObject* placement, PyObject* sbp, PlacedAt* out);

}  // namespace oneflow_lite::python
