// SPDX-License-Identifier: Apache-2.0
//
// The public name of primitive/cuda/norms/norm.cuh.
#pragma once

#include "primitive/cuda/norms/norm.cuh"
