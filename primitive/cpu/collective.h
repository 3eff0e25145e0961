// SPDX-License-Identifier: Apache-2.0
//
// The CPU's engine is Gloo's, in liboneflow_lite_gloo.so: whoever communicates on CPUs pays for
// loading it, others need not have it.
#pragma once

#include "primitive/collective.h"

namespace oneflow_lite {

// Called once by that library when it is opened.
OFL_API void RegisterCpuCollectives(CommunicatorFactory::Function make);

}  // namespace oneflow_lite
