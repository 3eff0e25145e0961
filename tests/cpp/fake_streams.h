// SPDX-License-Identifier: Apache-2.0
//
// Two devices whose memory is the host's and whose streams run when a test says so: a CUDA runtime
// for tests of the core's CUDA half without a GPU. What a real one refuses in a capture is refused
// here, and ends it. A program that links fake_streams.cpp links no other runtime.
//
//   fake_streams::Enqueue(stream, [&] { seen = *x; });  // a kernel
//   fake_streams::Finish(stream);                       // all work of a stream, and what it needs
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace fake_streams {

void Enqueue(cudaStream_t stream, std::function<void()> kernel);
void Finish(cudaStream_t stream);
// How often something was asked of a stream that had been destroyed.
int UsesOfDestroyed();

}  // namespace fake_streams
