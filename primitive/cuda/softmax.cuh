// SPDX-License-Identifier: Apache-2.0
//
// The public name of primitive/cuda/softmax/softmax.cuh.
#pragma once

#include "primitive/cuda/softmax/softmax.cuh"
