// SPDX-License-Identifier: Apache-2.0
//
// A CUDA runtime that runs nothing and writes down what it is asked to launch, for tests of which
// kernels serve which rows. A program that links fake_cudart.cpp links no other runtime.
//
//   fake_cudart::SetDevice(0, {.multiprocessors = 132, .shared = 232448, .clusters = true});
//   ofl_softmax(...);
//   for (const std::string& launch : fake_cudart::TakeLaunches()) ...
#pragma once

#include <string>
#include <vector>

namespace fake_cudart {

struct Device {
  int multiprocessors = 1;
  int shared_per_block = 48 << 10;  // bytes, after opt-in
  int shared_per_multiprocessor = 48 << 10;
  bool clusters = false;
  bool cooperative = true;
};

// Makes `index` (below 64) the current device, a device like this. A device is told once what it
// is: kernels remember what they were answered about it.
void SetDevice(int index, const Device& device);

// What has been launched since the last call: the kernel's name, grid, block, shared memory, and
// how its blocks belong together.
std::vector<std::string> TakeLaunches();

// The names of all kernels of the program, without parameters and without this project's namespace.
std::vector<std::string> Kernels();

}  // namespace fake_cudart
