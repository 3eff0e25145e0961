// SPDX-License-Identifier: Apache-2.0
//
// The public name of primitive/cuda/rows/io.cuh.
#pragma once

#include "primitive/cuda/rows/io.cuh"
