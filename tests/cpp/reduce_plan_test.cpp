// SPDX-License-Identifier: Apache-2.0
//
// How a reduction is launched on CUDA (primitive/cuda/reduce/plan.h): the threads of a plan read
// each element of each slice once, packs at boundaries, and each result has its place. Needs no
// GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "primitive/cuda/reduce/cut.h"
#include "primitive/cuda/reduce/whole_rows.h"

namespace oneflow_lite {
namespace {

using namespace cuda;  // NOLINT: the plan's names

constexpr int kResident = 6, kColumnsResident = 5;
constexpr int64_t kMostPlaces = 40;  // of a thread of columns; in use it is 2^16
// Of 16-bit elements that begin at a boundary.
ReduceTarget Aligned(int multiprocessors) {
  return {2, 8, kResident, kColumnsResident, multiprocessors, true};
}

std::string ToString(const ReduceShape& s) {
  std::string text;
  for (int d = 0; d < s.ndim; ++d) {
    text += (s.reduced[d] ? " reduced " : " kept ") + std::to_string(s.sizes[d]) + " by " +
            std::to_string(s.strides[d]);
  }
  return text;
}

// Element offsets of all results, in their order, each with its slice's elements in theirs.
std::vector<std::vector<int64_t>> SlicesOf(const ReduceShape& s) {
  std::vector<std::vector<int64_t>> slices(1, {0});
  for (const bool reduced : {false, true}) {
    for (int d = 0; d < s.ndim; ++d) {
      if (s.reduced[d] != reduced) continue;
      std::vector<std::vector<int64_t>> next;
      for (std::vector<int64_t>& slice : slices) {
        if (!reduced) {
          for (int64_t i = 0; i < s.sizes[d]; ++i) next.push_back({slice[0] + i * s.strides[d]});
          continue;
        }
        std::vector<int64_t> longer;
        for (const int64_t offset : slice) {
          for (int64_t i = 0; i < s.sizes[d]; ++i) longer.push_back(offset + i * s.strides[d]);
        }
        next.push_back(longer);
      }
      slices = next;
    }
  }
  return slices;
}

// What the threads of a plan read, by result. `past`: elements from a boundary to the tensor.
class Walked {
 public:
  Walked(const ReducePlan& p, int pack, int past)
      : p_(p), pack_(pack), past_(past), read_(p.results), y_(p.results, -1) {
    p.columns ? Columns() : Rows();
    for (int64_t result = 0; result < p.results; ++result) {
      const ReducePlace place = PlaceOfResult(p, result);
      EXPECT_GE(place.y, 0);
      EXPECT_LT(place.y, p.results);
      y_[result] = place.y;
    }
  }
  // By the place of the result.
  std::vector<std::vector<int64_t>> Sorted() {
    std::vector<std::vector<int64_t>> sorted(read_.size());
    for (size_t i = 0; i < read_.size(); ++i) {
      std::sort(read_[i].begin(), read_[i].end());
      sorted[y_[i]] = read_[i];
    }
    return sorted;
  }

 private:
  void Rows() {
    const int64_t chunks = p_.chunks.value;
    for (int64_t task = 0; task < p_.results * chunks; ++task) {
      const int64_t result = p_.chunks.QuotientOfAny(task), chunk = task - result * chunks;
      for (int64_t rank = 0; rank < p_.lanes; ++rank) Row(result, chunk * p_.lanes + rank);
    }
  }
  // The units of one thread.
  void Row(int64_t result, int64_t first_unit) {
    const int64_t slice = PlaceOf(p_.kept, result).x;
    ReduceUnit at = UnitAt(p_, first_unit);
    for (int64_t unit = first_unit; unit < p_.units; unit += p_.step, at = NextUnit(p_, at)) {
      const ReduceUnit expected = UnitAt(p_, unit);
      ASSERT_EQ(at.row, expected.row);
      ASSERT_EQ(at.pack, expected.pack);
      const int64_t row = slice + PlaceOf(p_.rest, at.row).x;
      const int64_t first = at.pack * pack_ - (row + past_) % pack_;
      ASSERT_TRUE(!p_.packed || (first >= 0 && first + pack_ <= p_.length.value));
      for (int64_t place = first; place < first + pack_; ++place) {
        if (place >= 0 && place < p_.length.value) read_[result].push_back(row + place);
      }
    }
  }
  void Columns() {
    const int lanes = p_.lanes;
    ASSERT_EQ(1 << p_.lanes_log2, lanes);
    ASSERT_TRUE(p_.width == 1 || past_ == 0);
    for (int64_t task = 0; task < p_.tasks(); ++task) {
      const ReduceTile t = TileAt(p_, task);
      for (int64_t column = t.column; column < t.column + int64_t{lanes} * p_.width; ++column) {
        if (column >= p_.length.value) continue;
        for (int way = 0; way < ReducePolicy::kThreads / lanes; ++way) Column(t, column, way);
      }
    }
  }
  // The places of one thread, of one of its columns.
  void Column(const ReduceTile& t, int64_t column, int way) {
    constexpr int kPlaces = ReducePolicy::kPlaces;
    const int64_t slice = PlaceOf(p_.kept, t.outer).x;
    const ReduceWay places{t.begin + way * kPlaces, p_.step};
    if (places.first >= p_.units) return;
    const ReduceWalk::Dim& inner = p_.rest.dims[0];
    const int64_t outer = p_.rest.ndim == 2 ? places.first / inner.size.value : 0;
    ReducePlaceAt at{places.first * p_.places.inner + outer * p_.places.carry,
                     places.first - outer * p_.places.size};
    int64_t seen = 0;
    for (int64_t first = places.first; first < p_.units; first += p_.step) {
      const int64_t end = std::min(first + kPlaces, p_.units);
      ReducePlaceAt each = at;
      for (int64_t k = first; k < end; ++k, ++seen) {
        const int64_t from = PlaceOf(p_.rest, k).x;
        ASSERT_EQ(places.PlaceOf(seen), k);
        ASSERT_TRUE(p_.rest.ndim > 2 || each.x == from) << each.x << " for " << from;
        ASSERT_TRUE(!p_.together || p_.rest.ndim > 2 || first + kPlaces > p_.units ||
                    from == at.x + (k - first) * p_.places.inner);
        const int64_t offset = slice + column + from;
        ASSERT_TRUE(column % p_.width != 0 || offset % p_.width == 0);
        read_[t.outer * p_.length.value + column].push_back(offset);
        each.Next(p_.places);
      }
      at.Step(p_.places);
    }
    EXPECT_LE(seen, kMostPlaces);
  }

  const ReducePlan& p_;
  int64_t pack_, past_;
  std::vector<std::vector<int64_t>> read_;
  std::vector<int64_t> y_;
};

void ExpectRight(const ReduceShape& shape, int bytes, int past, int multiprocessors) {
  const int pack = 16 / bytes;
  const ReducePlan p = PlanReduce(shape, {bytes, std::min(pack, 8), kResident, kColumnsResident,
                                          multiprocessors, past % pack == 0, kMostPlaces});
  std::vector<std::vector<int64_t>> slices = SlicesOf(shape);
  for (std::vector<int64_t>& slice : slices) std::sort(slice.begin(), slice.end());
  ASSERT_EQ(static_cast<size_t>(p.results), slices.size()) << ToString(shape);
  int64_t last = -1;
  for (const std::vector<int64_t>& slice : slices) {
    if (!slice.empty()) last = std::max(last, slice.back());
  }
  EXPECT_TRUE(last == -1 || p.span == last + 1) << ToString(shape) << ", a span of " << p.span;
  EXPECT_EQ(Walked(p, pack, past % pack).Sorted(), slices)
      << ToString(shape) << ", " << bytes << " bytes, " << past << " past a boundary";
}

ReduceShape Dense(const std::vector<int64_t>& sizes, unsigned reduced) {
  ReduceShape shape;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t stride = 1;
    for (size_t i = d + 1; i < sizes.size(); ++i) stride *= sizes[i];
    shape.Add(sizes[d], stride, reduced >> d & 1);
  }
  return shape;
}
// The same tensor with its dims in another order.
ReduceShape Permuted(const ReduceShape& shape, const std::vector<int>& order) {
  ReduceShape permuted;
  for (const int d : order) permuted.Add(shape.sizes[d], shape.strides[d], shape.reduced[d]);
  return permuted;
}

TEST(ReducePlanTest, EveryChoiceOfDims) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 4, 5, 8},
                                            {2, 3, 16, 24},
                                            {2, 3, 2, 3, 4},
                                            {1, 5, 1, 7, 2},
                                            {16, 1, 40, 8}}) {
    for (unsigned reduced = 0; reduced < 1u << sizes.size(); ++reduced) {
      const ReduceShape shape = Dense(sizes, reduced);
      for (const int bytes : {1, 2, 4, 8}) {
        ExpectRight(shape, bytes, 0, 2);
        ExpectRight(shape, bytes, 1, 132);
      }
    }
  }
}

// Around packs, teams of lanes, tiles and chunks.
TEST(ReducePlanTest, RowsAndColumnsAroundTheBoundaries) {
  for (const int64_t n : {1,   2,   3,   4,   5,   6,    7,    8,    9,    10,   11,   12,
                          13,  14,  15,  16,  17,  31,   32,   33,   127,  128,  129,  255,
                          256, 257, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097, 20000}) {
    for (const int past : {0, 1, 3, 7}) {
      for (const auto& sizes : {std::vector<int64_t>{3, n}, {n, 3}, {n, 8}, {2, n, 24}, {n}}) {
        for (unsigned reduced = 1; reduced < 1u << sizes.size(); ++reduced) {
          ExpectRight(Dense(sizes, reduced), 2, past, 4);
        }
      }
    }
  }
}

// Blocks that end in any order: each chunk is merged once, and the counters are left at 0.
void ExpectMergesAll(const ReducePlan& p, std::mt19937* random) {
  const int64_t units = p.columns ? p.kept.count * p.tiles.value : p.results;
  std::vector<int64_t> counters(p.counters()), ended(units);
  std::vector<std::vector<int64_t>> merged(units * p.chunks.value);  // chunks in each state
  std::vector<int64_t> order(merged.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), *random);
  for (const int64_t block : order) {
    const int64_t unit = block / p.chunks.value, first = unit * p.chunks.value;
    int64_t mine = block - first;
    merged[block] = {mine};
    for (int level = 0; level < p.levels(); ++level) {
      const ReduceMerge merge = MergeAt(p, unit, mine, level);
      ASSERT_LT(merge.counter, p.counters());
      if (++counters[merge.counter] < merge.count) break;
      counters[merge.counter] = 0;
      std::vector<int64_t> all;
      for (int64_t k = 0; k < merge.count; ++k) {
        const auto& one = merged[first + merge.first + k * merge.step];
        all.insert(all.end(), one.begin(), one.end());
      }
      mine = merge.first;
      merged[first + mine] = all;
      ended[unit] += level + 1 == p.levels();
    }
  }
  std::vector<int64_t> chunks(p.chunks.value);
  std::iota(chunks.begin(), chunks.end(), 0);
  for (int64_t unit = 0; unit < units; ++unit) {
    EXPECT_EQ(ended[unit], 1);
    EXPECT_EQ(merged[unit * p.chunks.value], chunks);
  }
  for (const int64_t counter : counters) EXPECT_EQ(counter, 0);
}
TEST(ReducePlanTest, BlocksThatEndInAnyOrderMergeAllChunks) {
  std::mt19937 random(7);
  int with_groups = 0;
  for (const auto& sizes : {std::vector<int64_t>{1 << 26},
                            {1 << 20, 40},
                            {1 << 20, 3},
                            {8192, 8192},
                            {3000, 64, 50},
                            {70000, 7},
                            {1 << 18, 128},
                            {5, 1 << 20}}) {
    for (unsigned reduced = 1; reduced < 1u << sizes.size(); ++reduced) {
      for (const int past : {0, 1}) {
        const ReducePlan p =
            PlanReduce(Dense(sizes, reduced), {2, 8, kResident, kColumnsResident, 132, past == 0});
        if (p.chunks.value < 2) continue;
        with_groups += p.levels() == 2;
        ExpectMergesAll(p, &random);
      }
    }
  }
  EXPECT_GT(with_groups, 4);
}

// Where a warp takes a result, and where a block does.
TEST(ReducePlanTest, TeamsAroundTheirBoundaries) {
  using P = ReducePolicy;
  for (const auto& [results, most] : {std::pair{int64_t{P::kManyResults} - 1, int{P::kFewUnits}},
                                      {int64_t{P::kManyResults}, int{P::kWarpUnits}}}) {
    for (const int64_t units : {most - 1, most, most + 1}) {
      const ReduceShape shape = Dense({results, 8 * units}, 0b10);
      EXPECT_EQ(PlanReduce(shape, Aligned(1)).lanes, units <= most ? 32 : P::kThreads);
      for (const int past : {0, 5}) ExpectRight(shape, 2, past, 1);
    }
  }
}

// The kernel of whole rows: its threads read each element once, and each result has its place.
bool ExpectWholeRows(const ReduceShape& shape, int bytes, int batch, int multiprocessors) {
  const int pack = 16 / bytes;
  const ReduceTarget target{bytes, std::min(pack, 8), kResident, kColumnsResident, multiprocessors,
                            true};
  WholeRows p;
  const ReducePlan plan = PlanReduce(shape, target);
  if (!IsWholeRows(plan, target, batch, &p)) return false;
  EXPECT_LE(p.chunks, plan.chunks.value);  // for whose states there is room
  const int lanes = 1 << p.lanes_log2;
  EXPECT_TRUE(lanes == WholeRows::kThreads || (lanes <= 32 && p.chunks == 1));
  std::vector<std::vector<int64_t>> read(p.results), slices = SlicesOf(shape);
  EXPECT_EQ(read.size(), slices.size());
  for (int result = 0; result < p.results; ++result) {
    const ReducePlace place = p.PlaceOf(result);
    for (int first = 0; first < p.chunks * lanes * batch; ++first) {
      for (int unit = first; unit < p.units; unit += p.chunks * lanes * batch) {
        const int64_t at = place.x + int64_t{unit} * pack + p.GapBefore(unit);
        EXPECT_EQ(at % pack, 0);
        for (int i = 0; i < pack; ++i) read[place.y].push_back(at + i);
      }
    }
    std::sort(read[place.y].begin(), read[place.y].end());
  }
  for (std::vector<int64_t>& slice : slices) std::sort(slice.begin(), slice.end());
  EXPECT_EQ(read, slices) << ToString(shape);
  return true;
}

TEST(ReducePlanTest, WholeRows) {
  EXPECT_TRUE(ExpectWholeRows(Dense({8 * 256 * 4 * 40}, 0b1), 2, 4, 2));
  EXPECT_TRUE(ExpectWholeRows(Dense({3, 8 * 256 * 4 * 5}, 0b10), 2, 4, 2));
  EXPECT_TRUE(ExpectWholeRows(Dense({500, 8 * 256}, 0b10), 2, 4, 1));
  EXPECT_TRUE(ExpectWholeRows(Dense({7, 16 * 256 * 4}, 0b10), 1, 4, 3));
  EXPECT_TRUE(ExpectWholeRows(Dense({300, 4, 2, 4 * 32}, 0b1010), 4, 4, 1));
  EXPECT_TRUE(ExpectWholeRows(Dense({6, 32, 3, 64}, 0b1010), 2, 4, 1));
  EXPECT_TRUE(ExpectWholeRows(Permuted(Dense({5, 6, 8 * 128}, 0b100), {1, 0, 2}), 2, 4, 1));
  EXPECT_FALSE(ExpectWholeRows(Dense({500, 8 * 255}, 0b10), 2, 4, 1));
  EXPECT_FALSE(ExpectWholeRows(Dense({8 * 256 * 4 * 40 + 8}, 0b1), 2, 4, 2));
  EXPECT_FALSE(ExpectWholeRows(Dense({64, 128}, 0b01), 2, 4, 1));
  EXPECT_FALSE(ExpectWholeRows(Dense({4, 32, 3, 2, 5, 64}, 0b101010), 2, 4, 1));
  EXPECT_FALSE(ExpectWholeRows(Dense({3, 0}, 0b10), 2, 4, 1));
}

// Of many narrow rows a lane takes a batch of packs; of fewer, one pack.
TEST(ReducePlanTest, NarrowRows) {
  constexpr int64_t kMany = ReducePolicy::kManyThreads;
  for (const int64_t units : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 64, 65}) {
    for (const int64_t results : {int64_t{3}, kMany / 4 - 1, kMany / 4, kMany / 2 - 1, kMany / 2}) {
      for (const int64_t length : {8 * units, 8 * units - 3}) {
        const ReduceShape shape = Dense({results, length}, 0b10);
        for (const int past : {0, 3}) ExpectRight(shape, 2, past, 1);
      }
      ExpectRight(Dense({results, 3, 2, 8 * units}, 0b1010), 2, 0, 1);
    }
    const int few = PlanReduce(Dense({3, 8 * units}, 0b10), Aligned(1)).lanes;
    const int many = PlanReduce(Dense({kMany / 2, 8 * units}, 0b10), Aligned(1)).lanes;
    EXPECT_TRUE(few >= units || few == 32) << units;
    EXPECT_TRUE(many >= 2 || units == 1) << units;
    EXPECT_TRUE(many <= 2 || many * 2 < units) << units << " packs, " << many << " lanes";
  }
}

TEST(ReducePlanTest, PermutedAndPaddedTensors) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int ndim = 1 + static_cast<int>(random() % 5);
    std::vector<int> order(ndim);
    ReduceShape shape;
    int64_t stride = 1;
    for (int d = 0; d < ndim; ++d) {
      constexpr int64_t kSizes[] = {1, 2, 3, 7, 8, 9, 16, 33};
      const int64_t size = d == 0 ? 2 + random() % 64 : kSizes[random() % (ndim > 3 ? 4 : 8)];
      shape.Add(size, stride, random() % 2);
      stride *= size;
      if (random() % 3 == 0) stride += random() % 2 ? 8 : random() % 9;
      order[d] = d;
    }
    std::shuffle(order.begin(), order.end(), random);
    const ReduceShape permuted = Permuted(shape, order);
    ASSERT_TRUE(TakesReduceStrides(permuted)) << ToString(permuted);
    for (const int bytes : {1, 2, 4, 8}) ExpectRight(permuted, bytes, random() % 9, 1 + round % 9);
  }
}

TEST(ReducePlanTest, StridesThatAreNotTaken) {
  ReduceShape stepped, expanded, overlapping;
  stepped.Add(5, 2, true);
  expanded.Add(5, 0, true), expanded.Add(3, 1, false);
  overlapping.Add(5, 2, true), overlapping.Add(3, 1, false);
  for (const ReduceShape& shape : {stepped, expanded, overlapping}) {
    EXPECT_FALSE(TakesReduceStrides(shape)) << ToString(shape);
  }
}

TEST(ReducePlanTest, EmptyTensors) {
  for (const auto& sizes : {std::vector<int64_t>{0}, {0, 3}, {3, 0}, {3, 0, 4}, {0, 0}}) {
    for (unsigned reduced = 0; reduced < 1u << sizes.size(); ++reduced) {
      ExpectRight(Dense(sizes, reduced), 2, 0, 132);
    }
  }
}

TEST(ReducePlanTest, OneResultFillsTheDevice) {
  const ReducePlan p = PlanReduce(Dense({int64_t{1} << 26}, 1), Aligned(132));
  EXPECT_EQ(p.lanes, ReducePolicy::kThreads);
  EXPECT_GE(p.chunks.value, 132 * kResident * 9 / 10);
  const ReducePlan apart = PlanReduce(Dense({256, 64, 64, 64}, 0b0101), Aligned(132));
  EXPECT_TRUE(apart.columns);
  EXPECT_EQ(apart.width, 8);
  EXPECT_GE(apart.blocks(), 132 * kColumnsResident * 9 / 10);
}

// A last wave of few blocks would leave the device idle: there are many waves, or whole ones.
TEST(ReducePlanTest, ChunksFillWholeWaves) {
  for (int64_t tiles = 1; tiles < 3000; ++tiles) {
    const ReducePlan p = PlanReduce(Dense({1 << 20, 128 * tiles}, 0b01), Aligned(132));
    ASSERT_EQ(p.tiles.value, tiles);
    const double waves = static_cast<double>(p.blocks()) / (132 * kColumnsResident);
    EXPECT_TRUE(waves >= 2 || std::ceil(waves) * 0.86 <= waves) << tiles << " tiles, " << waves;
    EXPECT_TRUE(waves <= 4 || p.chunks.value == 1) << tiles << " tiles, " << waves;
  }
}

// Indices that 32 bits do not hold.
TEST(ReducePlanTest, MoreThanTwoToThe31) {
  const int64_t big = (int64_t{1} << 32) + 6;
  for (const int64_t divisor :
       {int64_t{1}, int64_t{3}, (int64_t{1} << 31) - 1, int64_t{1} << 31, big}) {
    for (const int64_t n : {int64_t{0}, divisor - 1, divisor, divisor + 1, (int64_t{1} << 31) - 1,
                            int64_t{1} << 31, 3 * big + 1}) {
      EXPECT_EQ(Divisor(divisor).QuotientOfAny(n), n / divisor) << n << " / " << divisor;
    }
  }
  // The last element of a long row, and of many short ones.
  const ReducePlan row = PlanReduce(Dense({2, big}, 0b10), Aligned(132));
  EXPECT_EQ(PlaceOf(row.kept, 1).x, big);
  EXPECT_EQ(UnitAt(row, row.units - 1).pack, row.units - 1);
  EXPECT_GE(row.units * 8, big);
  const ReducePlan rows = PlanReduce(Dense({big, 3, 8}, 0b101), Aligned(132));
  const ReduceUnit last = UnitAt(rows, rows.units - 1);
  EXPECT_EQ(last.row, big - 1);
  EXPECT_EQ(PlaceOf(rows.rest, last.row).x, (big - 1) * 24);
  const ReducePlan columns = PlanReduce(Dense({big, 16}, 0b01), Aligned(132));
  const ReduceTile tile = TileAt(columns, columns.tasks() - 1);
  EXPECT_LT(tile.begin, big);
  EXPECT_EQ(PlaceOf(columns.rest, big - 1).x, (big - 1) * 16);
  const ReducePlan results = PlanReduce(Dense({big, 4}, 0b10), Aligned(132));
  EXPECT_EQ(PlaceOfResult(results, big - 1).x, (big - 1) * 4);
  EXPECT_EQ(PlaceOfResult(results, big - 1).y, big - 1);
}

// Each result is one part's, with its slice, where the whole has it.
TEST(ReducePlanTest, PartsAreTheWhole) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{7, 2, 3}, {2, 5, 3, 4}, {1, 30, 1, 2}, {3, 3, 3, 3}}) {
    for (unsigned reduced = 0; reduced < 1u << sizes.size(); ++reduced) {
      for (const int64_t most : {1, 2, 3, 5, 7, 12, 1000}) {
        ReduceShape shape = Dense(sizes, reduced);
        for (int d = 0; d < shape.ndim; ++d) shape.strides[d] *= 2;
        std::vector<std::vector<int64_t>> seen(ResultsOf(shape));
        for (const ReducePart& part : CutReduction(shape, most)) {
          const std::vector<std::vector<int64_t>> slices = SlicesOf(part.shape);
          ASSERT_LE(static_cast<int64_t>(slices.size()), most) << ToString(shape);
          for (size_t i = 0; i < slices.size(); ++i) {
            std::vector<int64_t>& slice = seen[part.y + static_cast<int64_t>(i)];
            for (const int64_t at : slices[i]) slice.push_back(part.x + at);
          }
        }
        EXPECT_EQ(seen, SlicesOf(shape)) << ToString(shape) << ", " << most << " at most";
      }
    }
  }
}

// A grid has a block for each task of the columns.
TEST(ReducePlanTest, MoreColumnsThanAGridHasBlocks) {
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{int64_t{1} << 31, 2, 2},
                                            {(int64_t{1} << 31) + 5, 3, 2},
                                            {2, int64_t{1} << 30, 2, 2},
                                            {3, (int64_t{1} << 31) + 1, 2, 3}}) {
    ReduceShape shape = Dense(sizes, 0);
    shape.reduced[shape.ndim - 2] = true;
    const ReducePlan whole = PlanReduce(shape, Aligned(132));
    EXPECT_TRUE(whole.columns && whole.tasks() > kMostBlocks) << ToString(shape);
    int64_t results = 0;
    for (const ReducePart& part : CutReduction(shape, kMostResults)) {
      const ReducePlan p = PlanReduce(part.shape, Aligned(132));
      EXPECT_LE(p.tasks(), kMostBlocks) << ToString(part.shape);
      EXPECT_EQ(p.chunks.value, 1);
      EXPECT_EQ(part.y, results);
      results += p.results;
    }
    EXPECT_EQ(results, ResultsOf(shape));
  }
}

}  // namespace
}  // namespace oneflow_lite
