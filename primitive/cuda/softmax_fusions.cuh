// SPDX-License-Identifier: Apache-2.0
//
// The public name of primitive/cuda/softmax/fusions.cuh.
#pragma once

#include "primitive/cuda/softmax/fusions.cuh"
