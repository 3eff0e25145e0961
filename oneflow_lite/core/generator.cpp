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

// The state that this thread has aside, or that of all threads; const where they are.
template <class Asides, class State>
State& StateHere(Asides& asides, State& state) {
  if (asides.empty()) [[likely]]
    return state;
  const auto aside = asides.find(std::this_thread::get_id());
  return aside == asides.end() ? state : aside->second.state;
}

}  // namespace

void Generator::Seed(uint64_t seed) { set_state({seed, 0}); }

Generator::State Generator::Take(uint64_t counters) {
  std::lock_guard lock(mutex_);
  State& state = Here();
  return {state.seed, std::exchange(state.offset, state.offset + counters)};
}

Generator::State Generator::state() const {
  std::lock_guard lock(mutex_);
  return StateHere(asides_, state_);
}

void Generator::set_state(State state) {
  std::lock_guard lock(mutex_);
  Here() = state;
}

Generator::State Generator::BeginAside() {
  std::lock_guard lock(mutex_);
  Aside& aside = asides_[std::this_thread::get_id()];
  if (aside.begun++ == 0) aside.state = state_;
  return aside.state;
}

Generator::State Generator::EndAside(std::thread::id thread) {
  std::lock_guard lock(mutex_);
  const auto aside = asides_.find(thread);
  if (aside == asides_.end()) return state_;
  const State state = aside->second.state;
  if (--aside->second.begun == 0) asides_.erase(aside);
  return state;
}

// The caller holds mutex_.
Generator::State& Generator::Here() { return StateHere(asides_, state_); }

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
