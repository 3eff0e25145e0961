// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/generator.h"

#include <map>
#include <utility>

namespace oneflow_lite {
namespace {

struct Defaults {
  std::mutex mutex;
  uint64_t seed = Generator::kDefaultSeed;
  std::map<std::pair<int, int>, Ref<Generator>> generators;
};
Defaults& GetDefaults() {
  static auto* defaults = new Defaults;
  return *defaults;
}

}  // namespace

void Generator::Seed(uint64_t seed) { set_state({seed, 0}); }

Generator::State Generator::Take(uint64_t counters) {
  std::lock_guard lock(mutex_);
  return {seed_, std::exchange(offset_, offset_ + counters)};
}

Generator::State Generator::state() const {
  std::lock_guard lock(mutex_);
  return {seed_, offset_};
}

void Generator::set_state(State state) {
  std::lock_guard lock(mutex_);
  seed_ = state.seed;
  offset_ = state.offset;
}

Ref<Generator> DefaultGenerator(Device device) {
  Defaults& d = GetDefaults();
  std::lock_guard lock(d.mutex);
  Ref<Generator>& g = d.generators[{static_cast<int>(device.type), device.index}];
  if (!g) g = MakeRef<Generator>(d.seed);
  return g;
}

void ManualSeed(uint64_t seed) {
  Defaults& d = GetDefaults();
  std::lock_guard lock(d.mutex);
  d.seed = seed;
  for (auto& [device, generator] : d.generators) generator->Seed(seed);
}

}  // namespace oneflow_lite
