// SPDX-License-Identifier: Apache-2.0
//
// Parts of attention's work: each task is in one of them, and with a causal mask, where a later
// block costs more, they cost about the same.
#include "primitive/cpu/attention_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace oneflow_lite {
namespace {

// What each part costs, a block as many as its number, from 1 on.
std::vector<int64_t> Costs(int64_t parts, int64_t heads, int64_t blocks) {
  std::vector<int> seen(static_cast<size_t>(heads * blocks));
  std::vector<int64_t> costs(static_cast<size_t>(parts));
  for (int64_t part = 0; part < parts; ++part) {
    ForTasksOf(part, parts, heads, blocks, [&](int64_t task) {
      ++seen[static_cast<size_t>(task)];
      costs[static_cast<size_t>(part)] += 1 + task % blocks;
    });
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), heads * blocks);
  return costs;
}

TEST(AttentionPartsTest, EachTaskIsInOnePart) {
  for (const int64_t heads : {1, 2, 3, 5, 8, 17, 64}) {
    for (const int64_t blocks : {1, 2, 3, 4, 9}) {
      for (int64_t parts = 1; parts <= std::min<int64_t>(16, heads * blocks); ++parts) {
        Costs(parts, heads, blocks);
      }
    }
  }
}

// Every second block of two a head, which all parts took before, leaves one part twice the work.
TEST(AttentionPartsTest, ACausalMaskLeavesThemEqual) {
  for (const int64_t heads : {1, 2, 4, 32, 64}) {
    for (const int64_t blocks : {2, 4, 8, 16}) {
      for (const int64_t parts : {2, 4}) {
        if (heads * blocks % (2 * parts) != 0) continue;
        const std::vector<int64_t> costs = Costs(parts, heads, blocks);
        EXPECT_EQ(*std::max_element(costs.begin(), costs.end()),
                  *std::min_element(costs.begin(), costs.end()))
            << heads << " heads of " << blocks << " blocks in " << parts;
      }
    }
  }
}

TEST(AttentionPartsTest, ThereAndBackTakesAllOnce) {
  for (const int64_t parts : {1, 2, 3, 4}) {
    std::vector<int> seen(static_cast<size_t>(6 * parts));
    for (int64_t part = 0; part < parts; ++part) {
      for (int64_t i = 0; i < 6; ++i) ++seen[static_cast<size_t>(ThereAndBack(i, part, parts))];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 6 * parts);
  }
}

}  // namespace
}  // namespace oneflow_lite
