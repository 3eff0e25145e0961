// SPDX-License-Identifier: Apache-2.0
//
// How functions that kernels call are declared: all are inlined, so that what they are given in
// registers stays there.
#pragma once

#define OFL_DEVICE __device__ __forceinline__
