// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "primitive/reduce.h"

namespace oneflow_lite {

// The reduction of kind kArgMax or kArgMin: the first place of the extreme, or of the first NaN.
std::unique_ptr<Reduce> NewArgExtreme(const Reduce::Spec& spec);

}  // namespace oneflow_lite
