// SPDX-License-Identifier: Apache-2.0
//
// Launches of the elementwise kernels, walked through on the host: every element is handled once,
// with the offsets that its coordinates say, and whole units begin at the output's boundaries.
#include "primitive/cuda/elementwise_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

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
  // The passes that a launch becomes, its operands at so many elements past a boundary.
  std::vector<Pass<2>> Plan(const Case& c, const cuda::PassTypes<2>& types, int past_out = 0,
                            int64_t largest = cuda::kLargestPass) {
    out_ = memory_ + past_out * static_cast<int64_t>(SizeOf(types.out));
    std::vector<Pass<2>> passes;
    const int error = cuda::ForEachPass<2>(
        types, c.Geometry(), {{{memory_}, {memory_ + 6}}}, out_,
        [&](const Pass<2>& pass) {
          passes.push_back(pass);
          return 0;
        },
        largest);
    EXPECT_EQ(error, 0);
    return passes;
  }

  // Visits all elements; gives how many of them are in whole units.
  int64_t ExpectRight(const Case& c, const cuda::PassTypes<2>& types, int past_out = 0,
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
    for (const Pass<2>& p : Plan(c, types, past_out, largest)) {
      const auto visit = [&](const int64_t(&at)[3]) {
        const auto found = want.find(p.out + at[2] - out_);
        ++seen;
        wrong += found == want.end() || p.in[0] + at[0] - memory_ != found->second.first ||
                 p.in[1] + at[1] - (memory_ + 6) != found->second.second;
        if (found != want.end()) want.erase(found);
      };
      Walk(p, visit, &whole, &wrong);
    }
    EXPECT_EQ(wrong, 0) << Text(c) << " at " << past_out;
    EXPECT_EQ(seen, static_cast<int64_t>(at_out.size())) << Text(c) << " at " << past_out;
    EXPECT_TRUE(want.empty()) << Text(c) << " at " << past_out;
    return whole;
  }

  char* memory_ = memory_of_the_test_;

 private:
  template <class F>
  void Walk(const Pass<2>& p, F visit, int64_t* whole, int64_t* wrong) {
    for (uint32_t block = 0; block < cuda::PassBlocks(p); ++block) {
      for (uint32_t thread = 0; thread < cuda::kPassThreads; ++thread) {
        for (int k = 0; k < cuda::kPassDepth<2>; ++k) {
          cuda::Place<2> place;
          if (!cuda::FindPlace<kPack>(p, block, thread, k, &place)) continue;
          if (!place.whole) {
            cuda::ForEachInUnit<kPack>(p, place, visit);
            continue;
          }
          const int64_t first = place.offset[2] + place.col * p.step[2];
          const int64_t boundary = std::min<int64_t>(16, kPack << p.size_log2);
          *wrong += reinterpret_cast<uintptr_t>(p.out + first) % boundary != 0;
          if (place.second != kPack / 2) ++halved_;
          *whole += kPack;
          for (int e = 0; e < kPack; ++e) {
            int64_t at[3];
            const int64_t col = place.col + (e < kPack / 2 ? e : e - kPack / 2 + place.second);
            for (int m = 0; m < 3; ++m) at[m] = place.offset[m] + col * p.step[m];
            visit(at);
          }
        }
      }
    }
  }
  static std::string Text(const Case& c) {
    std::string text;
    for (const Strides* s : {&c.shape, &c.a, &c.b, &c.out}) {
      text += " [";
      for (const int64_t v : *s) text += " " + std::to_string(v);
      text += " ]";
    }
    return text;
  }

  alignas(64) static inline char memory_of_the_test_[1];
  char* out_ = nullptr;

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
      for (const int64_t n : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 4095, 4096, 4097, 8200}) {
        const int64_t whole = ExpectRight({{n}, {1}, {1}, {1}}, types, past);
        EXPECT_GE(whole, n - 2 * (kPack - 1)) << n << " at " << past;
      }
    }
  }
}

TEST_F(ElementwisePlanTest, BroadcastsStayWhole) {
  for (const int past : {0, 1, 5}) {
    EXPECT_GE(ExpectRight({{37, 64}, {64, 1}, {0, 1}, {64, 1}}, kHalfs, past), 36 * 56);  // row
    EXPECT_GE(ExpectRight({{37, 64}, {64, 1}, {1, 0}, {64, 1}}, kHalfs, past), 36 * 56);  // column
    EXPECT_GE(ExpectRight({{37, 64}, {64, 1}, {0, 0}, {64, 1}}, kHalfs, past), 37 * 64 - 16);
    EXPECT_GE(ExpectRight({{9, 4093}, {4096, 1}, {0, 1}, {4093, 1}}, kFloats, past), 9 * 4072);
    // The output's rows are padded, and each begins at another place.
    EXPECT_GE(ExpectRight({{9, 93}, {93, 1}, {0, 1}, {97, 1}}, kFloats, past), 9 * 80);
    EXPECT_GE(ExpectRight({{9, 93}, {93, 1}, {0, 1}, {96, 1}}, kFloats, past), 9 * 80);
  }
}

TEST_F(ElementwisePlanTest, UnitsOf32BytesTakeTurnsBy16) {
  ExpectRight({{8200}, {1}, {1}, {1}}, kHalfs);
  ExpectRight({{8200}, {1}, {1}, {1}}, kBools);
  EXPECT_EQ(halved_, 0);
  ExpectRight({{8200}, {1}, {1}, {1}}, kFloats);
  EXPECT_EQ(halved_, 8200 / 256 * 32);  // of whole warps
  ExpectRight({{8200}, {1}, {1}, {1}}, kFloats, 1);
  ExpectRight({{9, 1024}, {2048, 1}, {0, 1}, {1024, 1}}, kFloats, 1);
  EXPECT_GT(halved_, (8200 / 256 + 8200 / 256 + 9 * 3) * 32 - 33);
}

TEST_F(ElementwisePlanTest, PlainPassesAreDenseAlignedAndOfOneSize) {
  // By how many elements operands lie beside a boundary.
  const auto blocks = [&](const Case& c, const cuda::PassTypes<2>& types, int past_a, int past_b,
                          int past_out) {
    const auto at = [&](DType t, int past) { return memory_ + past * static_cast<int>(SizeOf(t)); };
    const cuda::PassInputs<2> in = {{{at(types.in[0], past_a)}, {at(types.in[1], past_b)}}};
    uint32_t plain = 0;
    cuda::ForEachPass<2>(types, c.Geometry(), in, at(types.out, past_out), [&](const Pass<2>& p) {
      plain = p.plain_blocks;
      return 0;
    });
    return plain;
  };
  const Case dense{{40000}, {1}, {1}, {1}};
  const cuda::PassTypes<2> floats{
      {DType::kFloat32, DType::kFloat32}, DType::kFloat32, DType::kFloat32};
  EXPECT_EQ(blocks(dense, kHalfs, 0, 0, 0), 40000u / 4096);
  EXPECT_EQ(blocks(dense, floats, 0, 0, 0), 40000u / 4096);
  EXPECT_EQ(blocks(dense, kFloats, 0, 0, 0), 0u);  // float32 and float16
  EXPECT_EQ(blocks(dense, kBools, 0, 0, 0), 0u);
  EXPECT_EQ(blocks(dense, kHalfs, 1, 0, 0), 0u);
  EXPECT_EQ(blocks(dense, kHalfs, 0, 1, 0), 0u);
  EXPECT_EQ(blocks(dense, kHalfs, 0, 0, 1), 0u);
  EXPECT_EQ(blocks({{200, 200}, {200, 1}, {0, 1}, {200, 1}}, kHalfs, 0, 0, 0), 0u);
  EXPECT_EQ(blocks({{40000}, {1}, {0}, {1}}, kHalfs, 0, 0, 0), 0u);
}

TEST_F(ElementwisePlanTest, TransposedInputsAreReadAcross) {
  const Case c{{65, 96}, {96, 1}, {1, 65}, {96, 1}};
  EXPECT_TRUE(Plan(c, kHalfs)[0].adjacent);
  EXPECT_EQ(ExpectRight(c, kHalfs), 65 * 96);
  EXPECT_EQ(ExpectRight({{3, 65, 97}, {6305, 97, 1}, {6305, 1, 65}, {6305, 97, 1}}, kHalfs, 3) > 0,
            true);
  // Both are transposed alike: dense.
  const Case alike{{65, 96}, {1, 65}, {1, 65}, {1, 65}};
  EXPECT_FALSE(Plan(alike, kHalfs)[0].adjacent);
  EXPECT_EQ(Plan(alike, kHalfs)[0].ndim, 1);
  EXPECT_EQ(ExpectRight(alike, kHalfs), 65 * 96);
}

TEST_F(ElementwisePlanTest, StridedOutputsGoElementByElement) {
  EXPECT_EQ(ExpectRight({{100}, {1}, {2}, {2}}, kHalfs), 0);
  EXPECT_EQ(ExpectRight({{10, 33}, {33, 1}, {1, 10}, {66, 2}}, kHalfs), 0);
}

TEST_F(ElementwisePlanTest, GiganticPassesAreLaunchedInParts) {
  const Case c{{5, 3, 70}, {210, 70, 1}, {0, 1, 3}, {210, 70, 1}};
  EXPECT_GT(Plan(c, kHalfs, 0, 100).size(), 4u);
  ExpectRight(c, kHalfs, 1, 100);
  ExpectRight({{1000}, {1}, {1}, {1}}, kHalfs, 1, 100);
  const Case row{{int64_t{1} << 33}, {1}, {1}, {1}};
  for (const Pass<2>& p : Plan(row, kHalfs)) EXPECT_LT(p.numel, int64_t{1} << 32);
}

TEST_F(ElementwisePlanTest, FormsAndConversions) {
  const Case c{{64, 64}, {64, 1}, {0, 1}, {64, 1}};
  const cuda::PassTypes<2> types{{DType::kInt64, DType::kInt32}, DType::kFloat16, DType::kFloat16};
  const Pass<2> p = Plan(c, types)[0];
  EXPECT_EQ(p.form[0], Form::kPacked);
  EXPECT_EQ(p.held[0], DType::kFloat32);  // converted as it is loaded: it is wider
  EXPECT_EQ(p.round[0], DType::kFloat16);
  EXPECT_EQ(p.held[1], DType::kInt32);
  EXPECT_EQ(p.round[1], DType::kFloat16);
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
    ExpectRight(c, types[below(3)], static_cast<int>(below(17)),
                below(4) == 0 ? 50 : cuda::kLargestPass);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace oneflow_lite
