// SPDX-License-Identifier: Apache-2.0
//
// OFL_HOST_DEVICE: a short function of the host and, where a CUDA compiler reads it, of the device.
// Includes nothing, so that NVRTC reads it too.
#pragma once

#ifdef __CUDACC__
#define OFL_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define OFL_HOST_DEVICE inline
#endif
