// SPDX-License-Identifier: Apache-2.0
//
// The public name of primitive/cuda/scale_mask/scale_mask_softmax.cuh.
#pragma once

#include "primitive/cuda/scale_mask/scale_mask_softmax.cuh"
