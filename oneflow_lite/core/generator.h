// SPDX-License-Identifier: Apache-2.0
//
// A random generator: a seed and a place in its Philox sequence (core/philox.h). One default
// generator per device; CPU and CUDA give the same integers from the same seed.
//
//   DefaultGenerator(device)->Seed(42);
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/ref.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

class OFL_API Generator : public RefCounted {
 public:
  explicit Generator(uint64_t seed = kDefaultSeed) : state_{seed, 0} {}

  static constexpr uint64_t kDefaultSeed = 67280421310721;  // PyTorch's

  struct State {
    uint64_t seed = 0;
    uint64_t offset = 0;
  };
  // Restarts the sequence.
  void Seed(uint64_t seed);
  // Takes `counters` counters: returns where they start. Thread-safe.
  State Take(uint64_t counters);
  State state() const;
  void set_state(State state);

  // From BeginAside on this thread has a state of its own, the one of now at first, and others do
  // not see what it takes and sets. EndAside, which any thread may call, gives what became of it;
  // of several that a thread began the last one ends it.
  State BeginAside();
  State EndAside(std::thread::id thread);

 private:
  struct Aside {
    State state;
    int begun = 0;
  };
  State& Here();

  mutable std::mutex mutex_;
  State state_;
  std::map<std::thread::id, Aside> asides_;
};

// The generator that random functions use where none is given. Lives forever.
OFL_API Ref<Generator> DefaultGenerator(Device device);
// Seeds the default generators of all devices.
OFL_API void ManualSeed(uint64_t seed);

}  // namespace oneflow_lite
