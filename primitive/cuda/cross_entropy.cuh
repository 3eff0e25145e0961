// SPDX-License-Identifier: Apache-2.0
//
// The public name of primitive/cuda/cross_entropy/cross_entropy.cuh.
#pragma once

#include "primitive/cuda/cross_entropy/cross_entropy.cuh"
