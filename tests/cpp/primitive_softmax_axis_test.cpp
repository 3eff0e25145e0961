// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax over an axis that is not the last, forward and backward, against float64:
// at every boundary where CUDA's kernels change hands (primitive/cuda/axis/policy.h,
// axis/span_policy.h), at every alignment, with and without workspace.
#include "primitive_softmax_testing.h"

namespace oneflow_lite {
namespace {

TEST_P(SoftmaxTest, MiddleAxis) {
  constexpr SoftmaxShape kShapes[] = {{3, 5, 7},    {2, 33, 64},  {2, 1000, 17},  {1, 2049, 31},
                                      {2, 7, 1025}, {4, 1, 9},    {1, 4097, 129}, {1, 50257, 3},
                                      {5, 16, 2},   {1, 40, 513}, {64, 3, 100},   {1, 300, 2000}};
  for (const DType dtype : kFloatingTypes) {
    for (const SoftmaxShape& shape : kShapes) {
      for (const bool log : {false, true}) Check({shape, dtype, log}, shape.inner % 2, 3);
    }
  }
}

// 64 columns of 16-bit floats are the 128 bytes of a slab (32 of float32, 16 of float64). Such a
// slab changes hands where 4 packs of 16 bytes fill a warp's threads (16 positions; 8, 32, where
// there are many slabs, and 12, 48, rather than a block; of gradients half of each), 16 packs the
// 64 to 256 threads of a block (128, 512), clusters of 2 and 4 (1024, 2048), blocks of 512 threads
// and clusters of 4 to 16 of them (4096, 8192, 16384); behind that it is read twice. Rows of 272
// bytes are no whole lines: up to 2048 positions a tile has 256 of them, unless there are few.
TEST_P(SoftmaxTest, AxesAroundTheSlabsBoundaries) {
  if (GetParam() == DeviceType::kCPU) GTEST_SKIP() << "boundaries of the CUDA kernels";
  for (const DType dtype : kFloatingTypes) {
    const int64_t inner = 128 / static_cast<int64_t>(SizeOf(dtype));
    for (const int64_t axis :
         {1, 4, 8, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
      for (const int64_t cols : {axis - 1, axis, axis + 1}) {
        if (cols == 0) continue;
        Check({{cols > 1024 ? 1 : 3, cols, inner}, dtype, cols % 2 == 0}, 0, 21);
      }
    }
    const int64_t broken = 272 / static_cast<int64_t>(SizeOf(dtype));
    for (const SoftmaxShape& shape :
         {SoftmaxShape{3, 20, broken}, {30, 70, broken}, {2, 2048, broken}, {2, 2049, broken}}) {
      Check({shape, dtype, false}, 0, 21);
    }
  }
}

// Columns that do not fill packs of 16, 8 or 4 bytes, alone or several rows together, slabs of less
// than a warp, tiles that reach over the end; each at an address aligned to 16 bytes and to one
// element.
TEST_P(SoftmaxTest, InnerSizesAndOffsets) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t inner : {2, 3, 4, 6, 8, 12, 16, 33, 40, 63, 64, 65, 100, 129, 136, 520}) {
      for (const int64_t cols : {2, 5, 8, 17, 130, 600}) {
        if (GetParam() == DeviceType::kCPU && cols > 8) continue;  // seconds
        for (const int64_t offset : {0, 1, 4}) {
          Check({{3, cols, inner}, dtype, offset == 1}, offset, 22);
        }
      }
    }
  }
}

// Rows that are no whole packs, many slices of which blocks share: a thread holds up to 24 rows of
// its column (of gradients 16), reads up to 32 of them twice, and shares more with others.
TEST_P(SoftmaxTest, SlicesThatAreNoWholePacks) {
  if (GetParam() == DeviceType::kCPU) GTEST_SKIP() << "boundaries of the CUDA kernels";
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols :
         {1, 3, 4, 5, 15, 16, 17, 23, 24, 25, 31, 32, 33, 48, 63, 64, 65, 129}) {
      for (const int64_t inner : {2, 3, 9, 49}) {
        const int64_t rows = cols * inner < 100 ? 1201 : 5;
        Check({{rows, cols, inner}, dtype, cols % 2 == 0}, cols % 3, 25);
      }
    }
  }
  // Slices that would lie in the same banks.
  for (const DType dtype : kFloatingTypes) Check({{1100, 64, 3}, dtype, false}, 0, 25);
}

// Columns longer than threads hold: of 16-bit floats read in words of two elements, over one row at
// a turn or two, by one thread and by many; several slices to a block, the last fewer. y may lie
// otherwise within a word than dy.
TEST_P(SoftmaxTest, SlicesReadInWords) {
  if (GetParam() == DeviceType::kCPU) GTEST_SKIP() << "boundaries of the CUDA kernels";
  constexpr SoftmaxShape kShapes[] = {{541, 40, 33}, {530, 77, 25}, {5, 400, 50}, {3, 49, 49},
                                      {2, 1000, 5},  {2, 1001, 33}, {3, 97, 2}};
  for (const DType dtype : kFloatingTypes) {
    for (const SoftmaxShape& shape : kShapes) {
      for (const int64_t offset : {0, 1}) Check({shape, dtype, offset == 1}, offset, 27);
      const Problem p{shape, dtype, false};
      Numbers numbers(28);
      const HostArray y = Forward(p, numbers.NormalArray(dtype, p.size(), 4), 0);
      const HostArray dy = numbers.NormalArray(dtype, p.size());
      std::vector<double> size;
      const std::vector<double> want = BackwardReference(p, y, dy, &size);
      for (const int64_t apart : {1, 2}) {
        ExpectNear(
            Backward(p, y, dy, 0, false, apart), want,
            [&](int64_t i) { return Tolerance(dtype, false, size[i]); }, p.Describe() + " apart");
      }
    }
  }
}

// Long rows that start anywhere within 16 bytes, cut into tiles: of few rows, of rows that a
// cluster shares, of few short slices, and the last of a slice narrower than the others.
TEST_P(SoftmaxTest, LongRowsThatLieAnywhere) {
  if (GetParam() == DeviceType::kCPU) GTEST_SKIP() << "boundaries of the CUDA kernels";
  constexpr SoftmaxShape kShapes[] = {{2, 9, 5003},  {2, 21, 4101}, {1, 130, 4099},
                                      {1, 700, 999}, {3, 4, 5003},  {2, 21, 4104},
                                      {9, 30, 1435}, {5, 100, 625}, {3, 64, 361}};
  for (const DType dtype : kFloatingTypes) {
    for (const SoftmaxShape& shape : kShapes) {
      for (const int64_t offset : {0, 1, 7}) Check({shape, dtype, offset == 0}, offset, 24);
    }
  }
}

// Narrow slices that the blocks of a cluster share, whose parts are not all as long; beyond about
// 3 MB they move by small packs.
TEST_P(SoftmaxTest, LongSlicesThatAreNoWholePacks) {
  if (GetParam() == DeviceType::kCPU) GTEST_SKIP() << "boundaries of the CUDA kernels";
  constexpr SoftmaxShape kShapes[] = {{2, 6001, 9}, {1, 30001, 9}, {1, 4274, 197}, {1, 120001, 7}};
  for (const DType dtype : kFloatingTypes) {
    for (const SoftmaxShape& shape : kShapes) {
      for (const int64_t offset : {0, 3}) Check({shape, dtype, offset == 0}, offset, 26);
    }
  }
}

// Few long slabs: cut among many blocks with workspace, among the blocks of a cluster without.
TEST_P(SoftmaxTest, LongAxesWithAndWithoutWorkspace) {
  if (GetParam() == DeviceType::kCPU) GTEST_SKIP() << "boundaries of the CUDA kernels";
  for (const DType dtype : kFloatingTypes) {
    for (const SoftmaxShape& shape :
         {SoftmaxShape{1, 300001, 2}, {1, 40000, 48}, {2, 70000, 9}, {2, 4096, 33}}) {
      for (const bool workspace : {true, false}) {
        // Without clusters too, a block alone adds up each column: 40000 rows are 4.4e-6 off, more
        // than is allowed. The functors always bring workspace.
        const bool alone = !workspace && !stream_->properties().supports_clusters;
        if (alone && shape.cols == 40000) continue;
        with_workspace_ = workspace;
        Check({shape, dtype, workspace}, workspace ? 0 : 1, 23);
      }
    }
  }
}

// Columns of -inf, wholly and in parts that a warp, a block or a cluster's block holds alone, and
// with +inf or NaN in them: neighbours are untouched.
TEST_P(SoftmaxTest, MiddleAxisWithMasksAndNans) {
  constexpr SoftmaxShape kShapes[] = {{2, 100, 37}, {3, 20, 37},  {2, 60, 37},   {1, 20000, 9},
                                      {2, 100, 40}, {2, 700, 64}, {1, 20000, 8}, {1, 300, 1001}};
  for (const DType dtype : kFloatingTypes) {
    for (const SoftmaxShape& shape : kShapes) {
      for (const bool log : {false, true}) {
        const Problem p{shape, dtype, log};
        const int64_t cols = shape.cols;
        HostArray x = Numbers(14).NormalArray(dtype, p.size());
        const auto set = [&](int64_t column, int64_t begin, int64_t end, double v) {
          for (int64_t c = begin; c < end; ++c) x.Set(c * shape.inner + column, v);
        };
        set(0, 0, cols * 2 / 5, -kInf);
        set(1, cols / 5, cols, -kInf);
        set(2, 0, cols, -kInf);
        set(3, cols / 2, cols / 2 + 1, kInf);
        set(4, cols - 1, cols, kNan);
        set(5, 0, cols - 1, -kInf);
        set(6, 0, cols * 3 / 5, -kInf);
        set(6, 3, 4, kNan);
        const std::vector<double> want = Reference(p, x);
        const auto tolerance = [&](int64_t i) {
          return want[i] == 0 ? 0.0 : Tolerance(dtype, !log, want[i]);
        };
        ExpectNear(Forward(p, x, shape.inner % 2), want, tolerance, p.Describe());
      }
    }
  }
}

TEST_P(SoftmaxTest, EmptyTilesLaunchNothing) {
  for (const SoftmaxShape& shape : {SoftmaxShape{0, 5, 7}, {5, 0, 7}, {5, 7, 0}}) {
    const HostArray none(DType::kFloat16, 0);
    const Problem p{shape, DType::kFloat16, false};
    EXPECT_EQ(Forward(p, none, 0).size(), 0);
    EXPECT_EQ(Backward(p, none, none, 0).size(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, SoftmaxTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
