// SPDX-License-Identifier: Apache-2.0
//
// What is costly to make, by key. Where there are more than `most`, the least recently used goes.
//
//   RecentTable<Key, std::shared_ptr<Plan>> plans(64);
//   if (const auto* found = plans.Find(key)) return *found;
//   return *plans.Add(key, Make(key), [](const auto& plan) { return plan->captured; });
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <map>
#include <utility>

namespace oneflow_lite {

// Its user has the lock. What Find and Add give is there until the next Add.
template <class Key, class Value>
class RecentTable {
 public:
  explicit RecentTable(size_t most) : most_(most) {}
  RecentTable(const RecentTable&) = delete;

  // Null where there is none.
  Value* Find(const Key& key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }
  // Of a key that is not there. stays(value): it does not go, however long ago it was used.
  template <class Stays>
  Value* Add(const Key& key, Value value, const Stays& stays) {
    entries_.emplace_front(key, std::move(value));
    by_key_[key] = entries_.begin();
    for (auto e = std::prev(entries_.end()); size() > most_ && e != entries_.begin();) {
      const auto before = std::prev(e);
      if (!stays(e->second)) {
        by_key_.erase(e->first);
        entries_.erase(e);
      }
      e = before;
    }
    return &entries_.front().second;
  }
  size_t size() const { return by_key_.size(); }
  // Calls f(value) for each.
  template <class F>
  void ForEach(const F& f) const {
    for (const auto& [key, value] : entries_) f(value);
  }

 private:
  using Entries = std::list<std::pair<const Key, Value>>;  // the last used one in front
  size_t most_;
  Entries entries_;
  std::map<Key, typename Entries::iterator> by_key_;
};

}  // namespace oneflow_lite
