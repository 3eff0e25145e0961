// SPDX-License-Identifier: Apache-2.0
//
// Which blocks of which heads a thread of attention takes.
#pragma once

#include <cstdint>

namespace oneflow_lite {

// Number i of those that a part of so many takes, of things that cost more (or less) the later they
// are: there and back, so that each part has early and late ones.
inline int64_t ThereAndBack(int64_t i, int64_t part, int64_t parts) {
  return i * parts + (i % 2 == 0 ? part : parts - 1 - part);
}

// Calls f with the tasks of a part, of `blocks` for each head. With a causal mask later blocks see
// more keys. A part has whole heads, next to each other, where that is fair: results of neighbours
// share cache lines.
template <class F>
void ForTasksOf(int64_t part, int64_t parts, int64_t heads, int64_t blocks, F f) {
  if (heads % parts == 0 || heads >= 8 * parts) {
    const int64_t end = heads * (part + 1) / parts * blocks;
    for (int64_t task = heads * part / parts * blocks; task < end; ++task) f(task);
    return;
  }
  const int64_t tasks = heads * blocks;
  for (int64_t i = 0; i * parts < tasks; ++i) {
    if (const int64_t task = ThereAndBack(i, part, parts); task < tasks) f(task);
  }
}

}  // namespace oneflow_lite
