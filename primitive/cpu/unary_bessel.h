// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitive/cpu/unary.h"

namespace oneflow_lite {

// Modified Bessel functions of the first kind, a part of what FindSpecial finds.
UnaryCode FindBessel(UnaryOp op, DType dtype);  // unary_bessel.cpp

}  // namespace oneflow_lite
