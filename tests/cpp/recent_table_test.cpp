// SPDX-License-Identifier: Apache-2.0
//
// The table that plans are kept in: which one goes, and which stays.
#include "oneflow_lite/core/recent_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace oneflow_lite {
namespace {

using Table = RecentTable<int, int>;

bool Never(int) { return false; }
bool IsEven(int value) { return value % 2 == 0; }

// The last used one first.
std::vector<int> ValuesOf(const Table& table) {
  std::vector<int> values;
  table.ForEach([&](int value) { values.push_back(value); });
  return values;
}

TEST(RecentTableTest, TheLeastRecentlyUsedGoes) {
  Table table(3);
  EXPECT_EQ(table.Find(1), nullptr);
  for (const int key : {1, 2, 3}) EXPECT_EQ(*table.Add(key, 10 * key, Never), 10 * key);
  EXPECT_EQ(*table.Find(1), 10);
  table.Add(4, 40, Never);
  EXPECT_EQ(table.Find(2), nullptr);
  EXPECT_THAT(ValuesOf(table), testing::ElementsAre(40, 10, 30));
  EXPECT_EQ(*table.Find(3), 30);
  for (int key = 5; key < 1000; ++key) table.Add(key, key, Never);
  EXPECT_EQ(table.size(), 3u);
  EXPECT_THAT(ValuesOf(table), testing::ElementsAre(999, 998, 997));
}

TEST(RecentTableTest, WhatStaysIsNeitherForgottenNorInTheWay) {
  Table table(4);
  for (int key = 0; key < 100; ++key) table.Add(key, key < 6 ? key : 2 * key + 1, IsEven);
  for (const int key : {0, 2, 4}) EXPECT_EQ(*table.Find(key), key);
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(*table.Find(99), 199) << "the last one added is always there";
  for (int key = 100; key < 110; ++key) {
    table.Add(key, 2 * key, IsEven);
    EXPECT_EQ(*table.Find(key), 2 * key);
  }
  EXPECT_EQ(table.size(), 13u) << "all that stay";
}

// A plan that is in use lives on.
TEST(RecentTableTest, OwnersKeepWhatHasGone) {
  RecentTable<int, std::shared_ptr<int>> table(1);
  const auto never = [](const std::shared_ptr<int>&) { return false; };
  const std::shared_ptr<int> kept = *table.Add(1, std::make_shared<int>(5), never);
  table.Add(2, std::make_shared<int>(6), never);
  EXPECT_EQ(table.Find(1), nullptr);
  EXPECT_EQ(*kept, 5);
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace oneflow_lite
