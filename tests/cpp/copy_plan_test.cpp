// SPDX-License-Identifier: Apache-2.0
//
// How a strided copy is launched on CUDA (primitive/cuda/moves/copy_plan.h): a plan moves the same
// bytes as the geometry it was made from, in accesses that are aligned. Needs no GPU.
#include "primitive/cuda/moves/copy_plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "primitive_geometry.h"

namespace oneflow_lite {
namespace {

using cuda::CopyPlan;

struct Case {
  Strides shape, src, dst;
  Elementwise<2> Geometry() const { return MakeElementwise<2>(shape, {src, dst}); }
};

// Where the elements of one operand of a geometry lie.
std::vector<int64_t> OffsetsIn(const Elementwise<2>& g, int operand) {
  return Offsets(Strides(g.dims, g.dims + g.ndim),
                 Strides(g.strides[operand], g.strides[operand] + g.ndim));
}

class CopyPlanTest : public testing::Test {
 protected:
  // The plan where both operands begin so many bytes past an address of 16 bytes.
  CopyPlan Plan(const Case& c, int element_bytes, int past_src = 0, int past_dst = 0) {
    return cuda::PlanCopy(c.Geometry(), element_bytes, memory_ + past_src, memory_ + past_dst);
  }
  alignas(16) char memory_[32];
};

struct Operand {
  explicit Operand(int64_t bytes, int past) : words(bytes / 8 + 6) {
    auto* p = reinterpret_cast<unsigned char*>(words.data());
    data = p + (16 - reinterpret_cast<uintptr_t>(p) % 16) % 16 + past;
  }
  std::vector<uint64_t> words;
  unsigned char* data;
};

// Checks that the plan copies what the case says, and what the kernels rely on.
void ExpectRight(const Case& c, int element_bytes, int past_src, int past_dst) {
  const auto at_src = Offsets(c.shape, c.src), at_dst = Offsets(c.shape, c.dst);
  const int64_t src_bytes = Extent(at_src) * element_bytes;
  const int64_t dst_bytes = Extent(at_dst) * element_bytes;
  Operand src(src_bytes, past_src), out(dst_bytes, past_dst);
  for (int64_t i = 0; i < src_bytes; ++i)
    src.data[i] = static_cast<unsigned char>(1 + i * 37 % 251);
  std::vector<unsigned char> want(dst_bytes);
  for (size_t i = 0; i < at_src.size(); ++i) {
    std::memcpy(&want[at_dst[i] * element_bytes], src.data + at_src[i] * element_bytes,
                element_bytes);
  }

  const CopyPlan plan = cuda::PlanCopy(c.Geometry(), element_bytes, src.data, out.data);
  const Elementwise<2>& g = plan.g;
  const std::string text = ToString(c.shape) + " of " + std::to_string(element_bytes) + " bytes";
  const auto from = OffsetsIn(g, 0), to = OffsetsIn(g, 1);
  ASSERT_EQ(static_cast<int64_t>(from.size()), g.numel) << text;
  const auto aligned = [](const void* p, int64_t bytes) {
    return reinterpret_cast<uintptr_t>(p) % bytes == 0;
  };
  for (size_t i = 0; i < from.size(); ++i) {
    const auto* p = src.data + from[i] * plan.element_bytes;
    auto* q = out.data + to[i] * plan.element_bytes;
    ASSERT_TRUE(g.contiguous || (aligned(p, plan.element_bytes) && aligned(q, plan.element_bytes)))
        << text;
    std::memcpy(q, p, plan.element_bytes);
  }
  EXPECT_EQ(std::memcmp(out.data, want.data(), dst_bytes), 0) << text;

  if (plan.access_bytes == 0) return;
  ASSERT_GE(g.ndim, 2);
  const int rows = g.ndim - 2, cols = g.ndim - 1;
  EXPECT_EQ(g.strides[0][rows], 1) << text;
  EXPECT_EQ(g.strides[1][cols], 1) << text;
  const int64_t bytes = plan.access_bytes, size = plan.element_bytes;
  EXPECT_TRUE(aligned(src.data, bytes) && aligned(out.data, bytes)) << text;
  EXPECT_TRUE(g.dims[rows] * size % bytes == 0 && g.dims[cols] * size % bytes == 0) << text;
  for (int d = 0; d < g.ndim; ++d) {
    if (d != rows) EXPECT_EQ(g.strides[0][d] * size % bytes, 0) << text;
    if (d != cols) EXPECT_EQ(g.strides[1][d] * size % bytes, 0) << text;
  }
}

TEST_F(CopyPlanTest, RowsAreCopiedInTheWidestUnit) {
  const auto unit = [&](int64_t cols, int64_t src_pitch, int element_bytes, int past_src,
                        int past_dst) {
    const Case c = {{5, cols}, {src_pitch, 1}, {cols, 1}};
    const CopyPlan plan = Plan(c, element_bytes, past_src, past_dst);
    EXPECT_EQ(plan.access_bytes, 0);
    EXPECT_EQ(plan.g.numel * plan.element_bytes, 5 * cols * element_bytes);
    return plan.element_bytes;
  };
  for (const int bytes : {1, 2, 4, 8}) {
    EXPECT_EQ(unit(64, 128, bytes, 0, 0), 8);
    EXPECT_EQ(unit(63, 128, bytes, 0, 0), bytes);
    EXPECT_EQ(unit(64, 129, bytes, 0, 0), bytes);
    EXPECT_EQ(unit(64, 128, bytes, bytes, 0), bytes);
    EXPECT_EQ(unit(64, 128, bytes, 0, bytes), bytes);
    EXPECT_EQ(unit(64, 0, bytes, 0, 0), 8);  // expanded
    EXPECT_EQ(unit(16 / bytes, 0, bytes, 0, 0), 8);
  }
  EXPECT_EQ(unit(30, 128, 2, 0, 0), 4);
  EXPECT_EQ(unit(28, 128, 2, 0, 0), 8);
  EXPECT_EQ(unit(24, 132, 2, 0, 0), 8);
  EXPECT_EQ(unit(24, 128, 2, 4, 0), 4);
  EXPECT_EQ(unit(62, 128, 1, 0, 0), 2);
}

TEST_F(CopyPlanTest, LongRowsThatAreNoWholePacksAreShifted) {
  const auto shifted = [&](const Case& c, int element_bytes, int past_src = 0, int past_dst = 0) {
    const CopyPlan plan = Plan(c, element_bytes, past_src, past_dst);
    EXPECT_EQ(plan.access_bytes, 0);
    if (plan.shifted) {
      EXPECT_EQ(plan.element_bytes, element_bytes);
      EXPECT_EQ(plan.g.strides[0][plan.g.ndim - 1], 1);
      EXPECT_EQ(plan.g.strides[1][plan.g.ndim - 1], 1);
    }
    return plan.shifted;
  };
  for (const int bytes : {1, 2, 4, 8}) {
    const int64_t least = cuda::kShortestShifted / bytes;
    EXPECT_TRUE(shifted({{5, least + 1}, {128, 1}, {256, 1}}, bytes));
    EXPECT_TRUE(shifted({{5, least}, {128, 1}, {least + 1, 1}}, bytes));
    EXPECT_TRUE(shifted({{5, least}, {129, 1}, {128, 1}}, bytes));
    EXPECT_TRUE(shifted({{5, least}, {128, 1}, {128, 1}}, bytes, bytes, 0));
    EXPECT_TRUE(shifted({{5, least}, {128, 1}, {128, 1}}, bytes, 0, bytes));
    EXPECT_TRUE(shifted({{5, 3, least}, {129, 0, 1}, {3 * least, least, 1}}, bytes));
    EXPECT_FALSE(shifted({{5, least}, {128, 1}, {128, 1}}, bytes));             // whole packs
    EXPECT_FALSE(shifted({{5, least - 1}, {129, 1}, {least, 1}}, bytes));       // too short
    EXPECT_FALSE(shifted({{5, least + 1}, {1280, 2}, {least + 1, 1}}, bytes));  // not dense
    EXPECT_TRUE(shifted({{least}, {1}, {1}}, bytes, bytes, 0));
    EXPECT_FALSE(shifted({{least}, {1}, {1}}, bytes, bytes, bytes));  // the same way
    EXPECT_FALSE(shifted({{least + 1}, {1}, {1}}, bytes));
  }
  const int64_t many = int64_t{1} << 25;  // rows of at most 64 packs
  EXPECT_TRUE(shifted({{many / 2, 1001}, {1002, 1}, {1001, 1}}, 1));
  EXPECT_FALSE(shifted({{many, 1001}, {1002, 1}, {1001, 1}}, 1));
}

TEST_F(CopyPlanTest, RowsLieInAtMostSoManyPacks) {
  for (const int64_t pack : {2, 4, 8, 16}) {
    for (int64_t length = 1; length < 70; ++length) {
      int64_t most = 0;
      for (int64_t first = 0; first < pack; ++first) {
        most = std::max(most, (first + length + pack - 1) / pack);
      }
      EXPECT_EQ(cuda::MostPacks(length, pack), most) << length << " " << pack;
    }
  }
}

TEST_F(CopyPlanTest, TransposesGoThroughTiles) {
  const auto access = [&](const Case& c, int element_bytes, int past = 0) {
    return Plan(c, element_bytes, past, past).access_bytes;
  };
  for (const int bytes : {1, 2, 4, 8}) {
    EXPECT_EQ(access({{64, 96}, {1, 64}, {96, 1}}, bytes), 16);
    EXPECT_EQ(access({{64, 96}, {96, 1}, {1, 64}}, bytes), 16);  // dst is the transposed one
    EXPECT_EQ(access({{64, 96}, {1, 64}, {96, 1}}, bytes, bytes), bytes);
    EXPECT_EQ(access({{65, 96}, {1, 65}, {96, 1}}, bytes), bytes);
    EXPECT_EQ(access({{64, 97}, {1, 64}, {97, 1}}, bytes), bytes);
    EXPECT_EQ(access({{3, 64, 96}, {6144, 1, 64}, {6144, 96, 1}}, bytes), 16);
    EXPECT_EQ(access({{64, 3, 96}, {1, 64, 192}, {288, 96, 1}}, bytes), 16);
    EXPECT_EQ(access({{31, 96}, {1, 31}, {96, 1}}, bytes), 0);  // too short for tiles
    EXPECT_EQ(access({{96, 31}, {1, 96}, {31, 1}}, bytes), 0);
    EXPECT_EQ(access({{64, 96}, {2, 128}, {96, 1}}, bytes), 0);  // nowhere dense
  }
  EXPECT_EQ(access({{66, 98}, {1, 66}, {98, 1}}, 2), 4);
  // Rows of 16 bytes, which are elements then.
  const CopyPlan plan = Plan({{64, 96, 8}, {8, 512, 1}, {768, 8, 1}}, 2);
  EXPECT_EQ(plan.element_bytes, 16);
  EXPECT_EQ(plan.access_bytes, 16);
}

TEST_F(CopyPlanTest, RepeatedElementsOfALineAreFound) {
  const auto repeats = [&](const Case& c) {
    return Plan(c, 2).repeats == cuda::Repeats::kElements;
  };
  EXPECT_TRUE(repeats({{40, 2}, {1, 0}, {2, 1}}));
  EXPECT_TRUE(repeats({{5, 8, 3}, {8, 1, 0}, {24, 3, 1}}));   // rows that follow each other
  EXPECT_FALSE(repeats({{5, 8, 3}, {9, 1, 0}, {24, 3, 1}}));  // with a gap in what is read
  EXPECT_FALSE(repeats({{40, 2}, {2, 0}, {2, 1}}));           // of every second element
  EXPECT_FALSE(repeats({{40, 2}, {1, 0}, {3, 1}}));           // into every third place
  EXPECT_FALSE(repeats({{2, 40}, {0, 1}, {40, 1}}));          // the line, not its elements
  EXPECT_FALSE(repeats({{40, 2}, {1, 0}, {1, 40}}));
  const CopyPlan plan = Plan({{5, 8, 3}, {8, 1, 0}, {24, 3, 1}}, 2, 2, 2);
  EXPECT_EQ(plan.element_bytes, 2);
  EXPECT_EQ(plan.g.dims[0], 40);
  EXPECT_EQ(plan.g.dims[1], 3);
}

TEST_F(CopyPlanTest, LongLinesAreReadOnceForAllCopies) {
  const auto repeats = [&](int64_t bytes, int past_src = 0, int past_dst = 0) {
    const int64_t n = bytes / 4;
    const CopyPlan plan = Plan({{3, n}, {0, 1}, {n, 1}}, 4, past_src, past_dst);
    EXPECT_EQ(plan.g.numel * plan.element_bytes, 3 * bytes);
    return plan.repeats == cuda::Repeats::kLine;
  };
  EXPECT_TRUE(repeats(cuda::kLongLine));
  EXPECT_FALSE(repeats(cuda::kLongLine - 16));
  EXPECT_FALSE(repeats(cuda::kLongLine + 8));
  EXPECT_FALSE(repeats(cuda::kLongLine, 8));
  EXPECT_FALSE(repeats(cuda::kLongLine, 0, 4));
}

TEST_F(CopyPlanTest, WhatLiesTheSameWayIsContiguous) {
  EXPECT_TRUE(Plan({{64, 96}, {1, 64}, {1, 64}}, 4).g.contiguous);
  EXPECT_TRUE(Plan({{4, 5, 6}, {6, 24, 1}, {6, 24, 1}}, 4).g.contiguous);
  EXPECT_EQ(Plan({{}, {}, {}}, 4).g.numel, 1);
  EXPECT_EQ(Plan({{0, 3}, {1, 0}, {3, 1}}, 4).g.numel, 0);
}

TEST_F(CopyPlanTest, PlansCopyWhatTheGeometrySays) {
  std::mt19937 rng(1);
  const auto below = [&](size_t n) { return static_cast<int64_t>(rng() % n); };
  const int64_t sizes[] = {1, 2, 3, 4, 6, 8, 16, 31, 32, 33, 40, 48, 64};
  // Strides of dims in some order, perhaps with gaps.
  const auto strides = [&](const Strides& shape, bool ordered) {
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (!ordered) std::shuffle(order.begin(), order.end(), rng);
    Strides result(shape.size());
    int64_t next = below(10) == 0 ? 2 : 1;
    for (size_t k = order.size(); k-- > 0;) {
      result[order[k]] = next;
      next *= shape[order[k]];
      if (below(4) == 0) next = (next + 8) / 8 * 8;
    }
    return result;
  };
  for (int i = 0; i < 1500; ++i) {
    Case c;
    int64_t numel = 1;
    for (int64_t d = below(5); d >= 0; --d) {
      const int64_t size = sizes[below(std::size(sizes))];
      c.shape.push_back(numel * size > 20000 ? 1 : size);
      numel *= c.shape.back();
    }
    c.src = strides(c.shape, below(4) == 0), c.dst = strides(c.shape, below(4) != 0);
    if (below(5) == 0) c.src[below(c.src.size())] = 0;
    const int bytes = 1 << below(4);
    ExpectRight(c, bytes, below(4) == 0 ? bytes : 0, below(4) == 0 ? bytes : 0);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace oneflow_lite
