// SPDX-License-Identifier: Apache-2.0
//
// Launches of the elementwise kernels, walked through on the host: every element is handled once,
// with the offsets that its coordinates say, and whole units are aligned.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "primitive/cuda/elementwise/plan.h"
#include "primitive_geometry.h"

namespace oneflow_lite {
namespace {

using cuda::Form;
using cuda::Pass;

struct Case {
  Strides shape, a, b, out;
  Elementwise<3> Geometry() const { return MakeElementwise<3>(shape, {a, b, out}); }
};
constexpr int kPack = 8;  // of compute types of 4 bytes

class ElementwisePlanTest : public testing::Test {
 protected:
  // Operands begin so many elements past a boundary.
  void SetPast(const cuda::PassTypes<2>& types, int a, int b, int out) {
    a_ = memory_ + a * static_cast<int64_t>(SizeOf(types.in[0]));
    b_ = memory_ + b * static_cast<int64_t>(SizeOf(types.in[1]));
    out_ = memory_ + out * static_cast<int64_t>(SizeOf(types.out));
  }

  // The passes that a launch becomes.
  std::vector<Pass<2>> Plan(const Case& c, const cuda::PassTypes<2>& types,
                            int64_t largest = cuda::kLargestPass) {
    std::vector<Pass<2>> passes;
    const int error = cuda::ForEachPass<2>(
        types, c.Geometry(), {{{a_}, {b_}}}, out_,
        [&](const Pass<2>& pass) {
          passes.push_back(pass);
          return 0;
        },
        largest);
    EXPECT_EQ(error, 0);
    return passes;
  }

  // Visits all elements; gives how many of them are in whole units.
  int64_t ExpectRight(const Case& c, const cuda::PassTypes<2>& types,
                      int64_t largest = cuda::kLargestPass) {
    const auto at_a = Offsets(c.shape, c.a), at_b = Offsets(c.shape, c.b);
    const auto at_out = Offsets(c.shape, c.out);
    std::map<int64_t, std::pair<int64_t, int64_t>> want;  // by the output's byte
    const auto bytes = [](DType t) { return static_cast<int64_t>(SizeOf(t)); };
    for (size_t i = 0; i < at_out.size(); ++i) {
      want[at_out[i] * bytes(types.out)] = {at_a[i] * bytes(types.in[0]),
                                            at_b[i] * bytes(types.in[1])};
    }
    int64_t seen = 0, whole = 0, wrong = 0;
    for (const Pass<2>& p : Plan(c, types, largest)) {
      const auto visit = [&](const uint32_t(&at)[3]) {
        const auto found = want.find(p.out + at[2] - out_);
        ++seen;
        wrong += found == want.end() || p.in[0] + at[0] - a_ != found->second.first ||
                 p.in[1] + at[1] - b_ != found->second.second;
        if (found != want.end()) want.erase(found);
      };
      Visit(p, visit, &whole, &wrong);
    }
    EXPECT_EQ(wrong, 0) << Text(c);
    EXPECT_EQ(seen, static_cast<int64_t>(at_out.size())) << Text(c);
    EXPECT_TRUE(want.empty()) << Text(c);
    return whole;
  }

  char* memory_ = memory_of_the_test_;

 protected:
  template <class F>
  void Visit(const Pass<2>& p, F visit, int64_t* whole, int64_t* wrong) {
    for (uint32_t block = 0; block < p.blocks; ++block) {
      for (uint32_t thread = 0; thread < cuda::kPassThreads; ++thread) {
        if (p.walk == cuda::Walk::kUnits) {
          VisitUnits(p, block, thread, visit, whole, wrong);
        } else if (p.walk == cuda::Walk::kPlainRows) {
          VisitPlainRows(p, block, thread, visit, whole, wrong);
        } else if (p.walk == cuda::Walk::kPlainTiles) {
          VisitPlainTiles(p, block, thread, visit, whole, wrong);
        } else {
          VisitElements(p, block, thread, visit, wrong);
        }
      }
    }
  }

 private:
  template <class F>
  void VisitUnits(const Pass<2>& p, uint32_t block, uint32_t thread, F visit, int64_t* whole,
                  int64_t* wrong) {
    cuda::UnitPlace<2> place;
    if (!cuda::FindUnit<kPack>(p, block, thread, &place)) return;
    const auto second = static_cast<int>(place.second);
    if (place.whole) {
      *whole += kPack;
      *wrong += !IsAligned(p, place);
      halved_ += second != kPack / 2;
    }
    for (int e = 0; e < kPack; ++e) {
      const bool in_row = cuda::ColumnInUnit<kPack>(p, place, e) >= 0;
      *wrong += place.whole && !in_row;
      if (!in_row) continue;
      const int64_t in_unit = e < kPack / 2 ? e : e - kPack / 2 + second;
      uint32_t at[3];
      for (int m = 0; m < 3; ++m) {
        at[m] = place.offset[m] + static_cast<uint32_t>(in_unit) * p.step[m];
      }
      visit(at);
    }
  }
  template <class F>
  void VisitPlainRows(const Pass<2>& p, uint32_t block, uint32_t thread, F visit, int64_t* whole,
                      int64_t* wrong) {
    const uint32_t index = block * cuda::kPlainThreads + thread;
    if (thread >= cuda::kPlainThreads || index >= p.units) return;
    cuda::Position<2> at = cuda::Divide(p, index);
    *wrong += p.taken != 1 && !p.whole;
    for (uint32_t r = 0; r < p.taken && at.second * p.taken + r < uint32_t(p.rows); ++r) {
      cuda::PlainPlace<2> place;
      const bool found = cuda::FindPlainPack(p, at, &place);
      for (int m = 0; m < 3; ++m) at.offset[m] += p.across[m];
      if (!found) continue;
      const char* const first[] = {place.in[0], place.in[1], place.out};
      const int from = place.From(), to = place.To(p.length);
      const bool full = to - from == kPack;
      *whole += full ? kPack : 0;
      *wrong += p.whole && !full;
      for (int m = 0; m < 3; ++m) {  // results in packs; operands too where the pass says so
        if (m < 2 && (!p.whole || p.form[m] != Form::kPacked)) continue;
        *wrong += reinterpret_cast<intptr_t>(first[m]) % (kPack * p.step[m]) != 0;
      }
      VisitPack(p, first, from, to, visit);
    }
  }
  template <class F>
  void VisitPlainTiles(const Pass<2>& p, uint32_t block, uint32_t thread, F visit, int64_t* whole,
                       int64_t* wrong) {
    using Tile = cuda::PlainTile;
    const cuda::Position<2> at = cuda::Divide(p, block);
    const int t = static_cast<int>(thread), col = Tile::Col(t);
    for (int row = Tile::Row(t); row < Tile::Row(t) + 2; ++row) {
      if (static_cast<int>(at.second) * Tile::kRows + row >= p.rows) continue;
      if (static_cast<int>(at.first) * Tile::kCols + col >= p.length) continue;
      const char* first[3];
      for (int m = 0; m < 3; ++m) {
        first[m] = (m < 2 ? p.in[m] : p.out) + at.offset[m] + row * p.across[m] + col * p.step[m];
        const bool crossed = m < 2 && (p.crossed >> m & 1) != 0;
        if (!crossed) *wrong += reinterpret_cast<intptr_t>(first[m]) % (kPack * p.step[m]) != 0;
      }
      *whole += kPack;
      VisitPack(p, first, 0, kPack, visit);
    }
  }
  template <class F>
  static void VisitPack(const Pass<2>& p, const char* const (&first)[3], int from, int to,
                        F visit) {
    for (int e = from; e < to; ++e) {
      uint32_t at[3];
      for (int m = 0; m < 3; ++m) {
        at[m] = static_cast<uint32_t>(first[m] - (m < 2 ? p.in[m] : p.out)) +
                static_cast<uint32_t>(e) * p.step[m];
      }
      visit(at);
    }
  }
  // Whether all operands of a whole unit are aligned to the accesses that move it.
  static bool IsAligned(const Pass<2>& p, const cuda::UnitPlace<2>& place) {
    bool aligned = true;
    for (int m = 0; m < 3; ++m) {
      if (m < 2 && p.form[m] != Form::kPacked) continue;
      const char* base = m < 2 ? p.in[m] : p.out;
      const int64_t access =
          std::min<int64_t>(16, kPack / (place.second != kPack / 2 ? 2 : 1) * p.step[m]);
      aligned = aligned && reinterpret_cast<intptr_t>(base + place.offset[m]) % access == 0;
    }
    return aligned;
  }
  template <class F>
  void VisitElements(const Pass<2>& p, uint32_t block, uint32_t thread, F visit, int64_t* wrong) {
    if (p.walk == cuda::Walk::kEach) {
      for (int e = 0; e < kPack; ++e) {
        const uint32_t index = (block * kPack + e) * cuda::kPassThreads + thread;
        if (index < static_cast<uint32_t>(p.numel)) visit(cuda::Divide(p, index).offset);
      }
      return;
    }
    const auto at = cuda::Divide(p, block);
    cuda::Line lines[3];
    for (int m = 0; m < 3; ++m) {
      lines[m] = cuda::FindLine<kPack>(p, at, thread, m, false);
      *wrong += lines[m].count != lines[0].count;
    }
    for (int e = 0; e < lines[0].count; ++e) {
      uint32_t offsets[3];
      for (int m = 0; m < 3; ++m) {
        offsets[m] = lines[m].offset + static_cast<uint32_t>(e) * lines[m].hop;
      }
      visit(offsets);
    }
  }

 protected:
  static std::string Text(const Case& c) {
    std::string text;
    for (const Strides* s : {&c.shape, &c.a, &c.b, &c.out}) {
      text += " [";
      for (const int64_t v : *s) text += " " + std::to_string(v);
      text += " ]";
    }
    return text;
  }

 private:
  alignas(64) static inline char memory_of_the_test_[1];
  char *a_ = nullptr, *b_ = nullptr, *out_ = nullptr;

 protected:
  int64_t halved_ = 0;  // units seen whose halves lie apart
};

constexpr cuda::PassTypes<2> kHalfs{
    {DType::kFloat16, DType::kFloat16}, DType::kFloat16, DType::kFloat16};
constexpr cuda::PassTypes<2> kFloats{
    {DType::kFloat32, DType::kFloat16}, DType::kFloat32, DType::kFloat32};
constexpr cuda::PassTypes<2> kBools{{DType::kFloat32, DType::kInt8}, DType::kFloat32, DType::kBool};

TEST_F(ElementwisePlanTest, HeadsAndTailsOfEveryLength) {
  for (const auto& types : {kHalfs, kFloats, kBools}) {
    for (int past = 0; past < 17; ++past) {
      SetPast(types, past, past, past);
      for (const int64_t n : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 4095, 4096, 4097, 8200}) {
        const int64_t whole = ExpectRight({{n}, {1}, {1}, {1}}, types);
        EXPECT_GE(whole, n - 2 * (kPack - 1)) << n << " at " << past;
      }
    }
  }
}

TEST_F(ElementwisePlanTest, BroadcastsOfAlignedRowsStayWhole) {
  for (const auto& types : {kHalfs, kFloats, kBools}) {
    SetPast(types, 0, 0, 0);
    EXPECT_EQ(ExpectRight({{37, 64}, {64, 1}, {0, 1}, {64, 1}}, types), 37 * 64);  // row
    SetPast(types, 0, 5, 0);
    EXPECT_EQ(ExpectRight({{37, 64}, {64, 1}, {1, 0}, {64, 1}}, types), 37 * 64);  // column
    EXPECT_EQ(ExpectRight({{37, 64}, {64, 1}, {0, 0}, {64, 1}}, types), 37 * 64);
    EXPECT_EQ(ExpectRight({{5, 37, 64}, {64, 320, 1}, {0, 1, 0}, {2368, 64, 1}}, types), 5 * 2368);
    // Rows that are padded, and begin beside a boundary.
    SetPast(types, 3, 0, 3);
    EXPECT_EQ(ExpectRight({{9, 201}, {208, 1}, {1, 0}, {208, 1}}, types), 9 * 192);
    EXPECT_EQ(ExpectRight({{9, 20}, {32, 1}, {1, 0}, {32, 1}}, types), 0);  // short ones
  }
}

TEST_F(ElementwisePlanTest, OtherRowsGoByLinesOrElementByElement) {
  for (const auto& types : {kFloats, kBools}) {
    SetPast(types, 0, 1, 0);
    const auto walk = [&](const Case& c) {
      EXPECT_EQ(ExpectRight(c, types), 0);
      return Plan(c, types)[0].walk;
    };
    EXPECT_EQ(walk({{5000}, {1}, {1}, {1}}), cuda::Walk::kLines);
    EXPECT_EQ(walk({{5000}, {2}, {1}, {3}}), cuda::Walk::kLines);
    EXPECT_EQ(walk({{9, 4093}, {4096, 1}, {0, 1}, {4093, 1}}), cuda::Walk::kLines);
    EXPECT_EQ(walk({{9, 1700}, {1701, 1}, {0, 1}, {1701, 1}}), cuda::Walk::kLines);
    EXPECT_EQ(walk({{9, 1500}, {1501, 1}, {0, 1}, {1501, 1}}), cuda::Walk::kEach);  // not full
    EXPECT_EQ(walk({{700, 3}, {3, 1}, {0, 1}, {3, 1}}), cuda::Walk::kEach);
  }
  const cuda::PassTypes<2> wide{
      {DType::kFloat64, DType::kFloat32}, DType::kFloat32, DType::kFloat32};
  SetPast(wide, 0, 0, 0);
  EXPECT_EQ(ExpectRight({{5000}, {1}, {1}, {1}}, wide), 0);  // one is wider than the others
  const cuda::PassTypes<2> to_wide{
      {DType::kFloat32, DType::kFloat32}, DType::kFloat32, DType::kInt64};
  SetPast(to_wide, 0, 0, 0);
  EXPECT_EQ(ExpectRight({{5000}, {1}, {1}, {1}}, to_wide), 0);  // the result is
}

TEST_F(ElementwisePlanTest, UnitsOf32BytesTakeTurnsBy16) {
  SetPast(kHalfs, 0, 0, 0);
  ExpectRight({{8200}, {1}, {1}, {1}}, kHalfs);
  ExpectRight({{8200}, {1}, {1}, {1}}, kBools);
  EXPECT_EQ(halved_, 0);
  ExpectRight({{8200}, {1}, {1}, {1}}, kFloats);
  EXPECT_EQ(halved_, 8200 / 2048 * 256);  // of whole blocks
  SetPast(kFloats, 8, 8, 8);
  halved_ = 0;
  ExpectRight({{3, 6144}, {8192, 1}, {0, 1}, {6144, 1}}, kFloats);
  EXPECT_EQ(halved_, 3 * 6144 / 8);
  // Of long rows the last block is not full.
  halved_ = 0;
  ExpectRight({{3, 16392}, {16400, 1}, {0, 1}, {16392, 1}}, kFloats);
  EXPECT_EQ(halved_, 3 * 16384 / 8);
  // Where a block's units are in several rows, they are not halved.
  halved_ = 0;
  ExpectRight({{9, 1024}, {2048, 1}, {0, 1}, {1024, 1}}, kFloats);
  EXPECT_EQ(halved_, 0);
}

TEST_F(ElementwisePlanTest, PassesOfOne16BitFloatFromABoundaryOnArePlain) {
  const auto plain = [&](const Case& c, const cuda::PassTypes<2>& types, int a, int b, int out) {
    SetPast(types, a, b, out);
    return Plan(c, types)[0].plain;
  };
  const Case dense{{5000}, {1}, {1}, {1}};
  for (const DType t : {DType::kFloat16, DType::kBFloat16}) {
    const auto want = static_cast<uint32_t>(t);
    const cuda::PassTypes<2> same{{t, t}, t, t}, truths{{t, t}, t, DType::kBool};
    EXPECT_EQ(plain(dense, same, 0, 0, 0), want);
    EXPECT_EQ(plain(dense, same, 8, 0, 16), want);
    EXPECT_EQ(plain(dense, truths, 0, 0, 0), want);
    EXPECT_EQ(plain({{7, 40}, {1, 7}, {1, 7}, {1, 7}}, same, 0, 0, 0), want);
    EXPECT_EQ(plain(dense, same, 3, 3, 3), 0u);
    EXPECT_EQ(plain({{28}, {1}, {0}, {1}}, same, 0, 0, 0), 0u);  // too short for rows
    for (const cuda::PassTypes<2>& other :
         {cuda::PassTypes<2>{{t, DType::kInt8}, t, t}, cuda::PassTypes<2>{{t, t}, t, DType::kInt16},
          cuda::PassTypes<2>{{t, DType::kFloat32}, DType::kFloat32, t}, kFloats, kBools}) {
      EXPECT_EQ(plain(dense, other, 0, 0, 0), 0u);
    }
    SetPast(same, 0, 0, 0);
    EXPECT_EQ(Plan(dense, same)[0].blocks, 3u);  // of 2048 elements
    EXPECT_EQ(Plan(dense, same)[0].walk, cuda::Walk::kUnits);
  }
}

TEST_F(ElementwisePlanTest, RowsOfOne16BitFloatArePlainAtAnyOffset) {
  for (const DType t : {DType::kFloat16, DType::kBFloat16}) {
    for (const DType result : {t, DType::kBool}) {
      const cuda::PassTypes<2> types{{t, t}, t, result};
      const auto whole = [&](const Case& c) {
        const Pass<2> p = Plan(c, types)[0];
        EXPECT_EQ(p.walk, cuda::Walk::kPlainRows) << Text(c);
        EXPECT_EQ(p.plain, static_cast<uint32_t>(t));
        return std::pair(p.whole != 0, ExpectRight(c, types));
      };
      const auto all = [](int64_t n) { return std::pair(true, n); };
      const auto some = [](int64_t n) { return std::pair(false, n); };
      SetPast(types, 0, 5, 0);  // a number for each row has any offset
      EXPECT_EQ(whole({{37, 64}, {64, 1}, {1, 0}, {64, 1}}), all(37 * 64));
      EXPECT_EQ(whole({{5000}, {1}, {0}, {1}}), all(5000));
      EXPECT_EQ(whole({{5001}, {1}, {0}, {1}}), some(5000));
      EXPECT_EQ(whole({{9, 200}, {0, 1}, {1, 0}, {200, 1}}), all(9 * 200));
      EXPECT_EQ(whole({{9, 8}, {0, 1}, {1, 0}, {8, 1}}), all(9 * 8));
      EXPECT_EQ(whole({{3, 4, 64}, {64, 192, 1}, {1, 7, 0}, {256, 64, 1}}), all(12 * 64));
      EXPECT_EQ(whole({{5000}, {1}, {1}, {1}}), some(5000));  // one operand begins elsewhere
      EXPECT_EQ(whole({{9, 200}, {204, 1}, {1, 0}, {200, 1}}), some(9 * 200));
      EXPECT_EQ(whole({{8, 201}, {201, 1}, {0, 1}, {201, 1}}), some(8 * 200 - 6 * 8));
      for (int past = 0; past < 9; ++past) {
        SetPast(types, 1, past, past);
        for (int64_t n = 32; n < 71; ++n) {
          whole({{11, n}, {n + 1, 1}, {0, 1}, {n, 1}});
          whole({{11, n}, {n + 3, 1}, {n, 1}, {n + past, 1}});
          whole({{2, 3, n}, {n, 2 * n, 1}, {n + 1, 0, 1}, {3 * n, n, 1}});
        }
      }
      SetPast(types, 1, 0, 0);
      EXPECT_NE(Plan({{11, 31}, {32, 1}, {0, 1}, {31, 1}}, types)[0].walk, cuda::Walk::kPlainRows);
    }
  }
}

// In passes as large as these the threads have several rows, of which the last ones may be none.
TEST_F(ElementwisePlanTest, ThreadsHaveSeveralRowsOfManyPacks) {
  SetPast(kHalfs, 0, 1, 0);
  const int64_t rows = 2731, cols = 1032, count = 3 * rows * cols;
  const Case c{{3, rows, cols}, {cols, 0, 1}, {rows, 1, 0}, {rows * cols, cols, 1}};
  const Pass<2> p = Plan(c, kHalfs)[0];
  EXPECT_EQ(p.walk, cuda::Walk::kPlainRows);
  EXPECT_EQ(p.taken, static_cast<uint32_t>(cuda::kPlainRows));
  std::vector<char> seen(count);
  int64_t wrong = 0, whole = 0;
  const auto visit = [&](const uint32_t(&at)[3]) {
    const int64_t i = at[2] / 2, row = i / cols;
    wrong += i >= count || seen[i]++ != 0;
    wrong += at[0] / 2 != row / rows * cols + i % cols || at[1] / 2 != row;
  };
  Visit(p, visit, &whole, &wrong);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(whole, count);
  // An input as large as the output is read in one row of a thread.
  const Case large{{rows, cols}, {cols, 1}, {0, 1}, {cols, 1}};
  EXPECT_EQ(Plan(large, kHalfs)[0].taken, 1u);
}

TEST_F(ElementwisePlanTest, TransposedWholePacksOfOne16BitFloatHavePlainTiles) {
  for (const DType result : {DType::kBFloat16, DType::kBool}) {
    const cuda::PassTypes<2> types{{DType::kBFloat16, DType::kBFloat16}, DType::kBFloat16, result};
    const auto walk = [&](const Case& c) {
      ExpectRight(c, types);
      return Plan(c, types)[0].walk;
    };
    SetPast(types, 0, 8, 8);
    for (const int64_t rows : {32, 64, 72, 136}) {
      for (const int64_t cols : {32, 120, 128, 264}) {
        const int64_t n = rows * cols;
        EXPECT_EQ(walk({{rows, cols}, {cols, 1}, {1, rows}, {cols, 1}}), cuda::Walk::kPlainTiles);
        EXPECT_EQ(walk({{rows, cols}, {1, rows + 8}, {0, 1}, {cols, 1}}), cuda::Walk::kPlainTiles);
        EXPECT_EQ(walk({{2, rows, cols}, {n, cols, 1}, {0, 1, rows}, {n, cols, 1}}),
                  cuda::Walk::kPlainTiles);
      }
    }
    EXPECT_EQ(walk({{33, 64}, {64, 1}, {1, 40}, {64, 1}}), cuda::Walk::kTiles);
    EXPECT_EQ(walk({{32, 66}, {72, 1}, {1, 32}, {72, 1}}), cuda::Walk::kTiles);
    EXPECT_EQ(walk({{32, 64}, {64, 1}, {1, 36}, {64, 1}}), cuda::Walk::kTiles);
    EXPECT_EQ(walk({{32, 64}, {1, 32}, {1, 0}, {64, 1}}), cuda::Walk::kTiles);  // number of a row
    SetPast(types, 0, 4, 0);
    EXPECT_EQ(walk({{32, 64}, {64, 1}, {1, 32}, {64, 1}}), cuda::Walk::kTiles);
  }
}

// A block's threads have each pack of a tile once, along rows and along columns, and find a place
// of its own for each element in shared memory, where no two lanes meet in a bank.
TEST_F(ElementwisePlanTest, PlainTilesAreCovered) {
  using Tile = cuda::PlainTile;
  std::vector<int> along(Tile::kRows * Tile::kCols), down = along, places(Tile::kElements);
  for (int t = 0; t < cuda::kPassThreads; ++t) {
    for (int k = 0; k < 2; ++k) {
      for (int e = 0; e < kPack; ++e) {
        const int row = Tile::Row(t) + k, col = Tile::CrossedCol(t) + k * Tile::kNextCol;
        ++along.at(row * Tile::kCols + Tile::Col(t) + e);
        ++down.at((Tile::CrossedRow(t) + e) * Tile::kCols + col);
        ++places.at(Tile::At(row, Tile::Col(t) + e));
      }
    }
  }
  EXPECT_EQ(along, std::vector<int>(along.size(), 1));
  EXPECT_EQ(down, along);
  EXPECT_EQ(std::accumulate(places.begin(), places.end(), 0), Tile::kRows * Tile::kCols);
  EXPECT_EQ(*std::max_element(places.begin(), places.end()), 1);
  std::set<int> banks;
  for (int t = 0; t < cuda::kPassLanes; ++t) {
    EXPECT_EQ(Tile::At(Tile::Row(t), Tile::Col(t)) % 2, 0);
    banks.insert(Tile::At(Tile::Row(t), Tile::Col(t)) / 2 % 32);
  }
  EXPECT_EQ(banks.size(), 32u);
}

TEST_F(ElementwisePlanTest, TransposedInputsAreReadInTiles) {
  SetPast(kHalfs, 0, 3, 1);
  const auto tiles = [&](const Case& c) { return Plan(c, kHalfs)[0].walk == cuda::Walk::kTiles; };
  for (const Case& c :
       {Case{{65, 96}, {96, 1}, {1, 65}, {96, 1}},
        Case{{3, 65, 97}, {6305, 97, 1}, {6305, 1, 65}, {6305, 97, 1}},
        Case{{2, 33, 3, 40}, {1, 240, 80, 2}, {120, 1, 40, 240}, {3960, 120, 40, 1}},
        Case{{32, 32}, {1, 32}, {0, 1}, {32, 1}}}) {
    EXPECT_TRUE(tiles(c)) << Text(c);
    EXPECT_EQ(ExpectRight(c, kHalfs), 0);
  }
  EXPECT_FALSE(tiles({{65, 31}, {31, 1}, {1, 65}, {31, 1}}));
  EXPECT_FALSE(tiles({{31, 65}, {65, 1}, {1, 31}, {65, 1}}));
  // Both are transposed alike: dense.
  SetPast(kHalfs, 0, 0, 0);
  const Case alike{{65, 96}, {1, 65}, {1, 65}, {1, 65}};
  EXPECT_EQ(Plan(alike, kHalfs)[0].ndim, 1);
  EXPECT_EQ(ExpectRight(alike, kHalfs), 65 * 96);
}

// The slots of a block's threads meet each element of a tile once, in either order.
TEST_F(ElementwisePlanTest, TilesAreCoveredAlongRowsAndColumns) {
  const auto covered = [](auto pack) {
    constexpr int kSlots = decltype(pack)::value, kCols = cuda::kTileCols<kSlots>;
    for (const bool crossed : {false, true}) {
      std::vector<int> seen(kCols * cuda::kPassLanes);
      for (uint32_t thread = 0; thread < cuda::kPassThreads; ++thread) {
        uint32_t row, col;
        cuda::InTile<kSlots>(thread, crossed, &row, &col);
        for (int e = 0; e < kSlots; ++e) {
          ++seen.at(row * kCols + col);
          (crossed ? col : row) += cuda::TileHop<kSlots>(crossed);
        }
      }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
    }
  };
  covered(std::integral_constant<int, 4>{});
  covered(std::integral_constant<int, 8>{});
}

// What a tile's threads read along columns is as many elements as they have along rows.
TEST_F(ElementwisePlanTest, TilesAtTheEdgeAreReadInFull) {
  SetPast(kHalfs, 0, 0, 0);
  const Pass<2> p = Plan({{65, 97}, {97, 1}, {1, 65}, {97, 1}}, kHalfs)[0];
  for (const bool crossed : {false, true}) {
    int64_t count = 0;
    for (uint32_t block = 0; block < p.blocks; ++block) {
      for (uint32_t thread = 0; thread < cuda::kPassThreads; ++thread) {
        count += cuda::FindLine<kPack>(p, cuda::Divide(p, block), thread, 1, crossed).count;
      }
    }
    EXPECT_EQ(count, 65 * 97);
  }
}

TEST_F(ElementwisePlanTest, StridedOutputsGoElementByElement) {
  SetPast(kHalfs, 0, 1, 2);
  EXPECT_EQ(ExpectRight({{100}, {1}, {2}, {2}}, kHalfs), 0);
  EXPECT_EQ(ExpectRight({{10, 33}, {33, 1}, {1, 10}, {66, 2}}, kHalfs), 0);
}

TEST_F(ElementwisePlanTest, GiganticPassesAreLaunchedInParts) {
  const Case c{{5, 3, 70}, {210, 70, 1}, {0, 1, 3}, {210, 70, 1}};
  SetPast(kHalfs, 0, 0, 1);
  EXPECT_GT(Plan(c, kHalfs, 100).size(), 4u);
  ExpectRight(c, kHalfs, 100);
  ExpectRight({{1000}, {1}, {1}, {1}}, kHalfs, 100);
  const Case row{{int64_t{1} << 33}, {1}, {1}, {1}};
  for (const Pass<2>& p : Plan(row, kHalfs)) EXPECT_LT(p.numel, int64_t{1} << 30);
}

TEST_F(ElementwisePlanTest, OperandsThatReachFarAreLaunchedInParts) {
  SetPast(kHalfs, 0, 0, 0);
  constexpr int64_t kFar = int64_t{1} << 31;  // 4 GiB of float16
  for (const Case& c :
       {Case{{4, 8}, {kFar, 1}, {0, 1}, {8, 1}}, Case{{4, 8}, {1, kFar}, {8, 1}, {8, 1}},
        Case{{3, 40}, {40, 1}, {40, 1}, {kFar, 1}}}) {
    EXPECT_GT(Plan(c, kHalfs).size(), 1u);
    ExpectRight(c, kHalfs);
  }
}

TEST_F(ElementwisePlanTest, FormsAndConversions) {
  const Case c{{64, 64}, {64, 1}, {0, 1}, {64, 1}};
  SetPast(kHalfs, 0, 0, 0);
  const cuda::PassTypes<2> types{{DType::kInt64, DType::kInt32}, DType::kFloat16, DType::kFloat16};
  const Pass<2> p = Plan(c, types)[0];
  EXPECT_EQ(p.form[0], Form::kPacked);
  EXPECT_EQ(p.walk, cuda::Walk::kEach);
  EXPECT_EQ(p.narrow, 1u);
  EXPECT_EQ(Plan(c, kFloats)[0].narrow, 0u);
  const cuda::PassTypes<2> into_half{
      {DType::kFloat32, DType::kFloat32}, DType::kFloat32, DType::kFloat16};
  EXPECT_EQ(Plan(c, into_half)[0].narrow, 0u);  // of floats of 32 bits
  const auto narrow = [&](DType t) { return Plan(c, {{t, t}, t, t})[0].narrow; };
  EXPECT_EQ(narrow(DType::kUInt8) + narrow(DType::kInt8) + narrow(DType::kInt16), 3u);
  EXPECT_EQ(narrow(DType::kInt32) + narrow(DType::kInt64) + narrow(DType::kFloat32), 0u);
  const auto code = [](DType t) { return static_cast<uint32_t>(t); };
  EXPECT_EQ(p.held[0], code(DType::kFloat32));  // converted as it is loaded: it is wider
  EXPECT_EQ(p.round[0], code(DType::kFloat16));
  EXPECT_EQ(p.held[1], code(DType::kInt32));
  EXPECT_EQ(p.round[1], code(DType::kFloat16));
  EXPECT_EQ(cuda::SharedDType(DType::kBool), DType::kInt32);
  EXPECT_EQ(cuda::SharedDType(DType::kBFloat16), DType::kFloat32);
  EXPECT_FALSE(cuda::NeedsRounding(DType::kUInt8, DType::kBFloat16));
  EXPECT_FALSE(cuda::NeedsRounding(DType::kInt64, DType::kFloat32));
}

TEST_F(ElementwisePlanTest, PassesVisitWhatTheGeometrySays) {
  std::mt19937 rng(3);
  const auto below = [&](size_t n) { return static_cast<int64_t>(rng() % n); };
  const int64_t sizes[] = {1, 2, 3, 5, 8, 9, 16, 17, 32, 33, 40, 64};
  const auto strides = [&](const Strides& shape, bool ordered, bool repeats) {
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (!ordered) std::shuffle(order.begin(), order.end(), rng);
    Strides result(shape.size());
    int64_t next = below(8) == 0 ? 2 : 1;
    for (size_t k = order.size(); k-- > 0;) {
      result[order[k]] = repeats && below(3) == 0 ? 0 : next;
      next *= shape[order[k]];
      if (below(4) == 0) next += below(8);
    }
    return result;
  };
  for (int i = 0; i < 400; ++i) {
    Case c;
    int64_t numel = 1;
    for (int64_t d = below(6); d >= 0; --d) {
      const int64_t size = sizes[below(std::size(sizes))];
      c.shape.push_back(numel * size > 8000 ? 1 : size);
      numel *= c.shape.back();
    }
    c.a = strides(c.shape, below(2) == 0, true), c.b = strides(c.shape, below(2) == 0, true);
    c.out = strides(c.shape, below(3) != 0, false);
    const cuda::PassTypes<2> types[] = {kHalfs, kFloats, kBools};
    const auto& chosen = types[below(3)];
    const auto past = [&] { return below(2) == 0 ? 0 : static_cast<int>(below(17)); };
    SetPast(chosen, past(), past(), past());
    ExpectRight(c, chosen, below(4) == 0 ? 50 : cuda::kLargestPass);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace oneflow_lite
