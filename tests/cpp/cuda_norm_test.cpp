// SPDX-License-Identifier: Apache-2.0
//
// Beyond primitive_norm_test.cpp: layer_norm and rms_norm on CUDA at the widths where their kernels
// change hands (primitive/cuda/rows/policy.h, primitive/cuda/norms/policy.h), at odd offsets and
// strides, for every subset of gradients, against float64 on the CPU. Skips where there is no GPU.
#include "cuda_norm_testing.h"
#include "row_boundaries.h"

namespace oneflow_lite {
namespace {

TEST_P(CudaNormTest, NarrowRowsOfEveryWidth) {
  for (int64_t cols = 1; cols <= 40; ++cols) RunAll({.rows = 70, .cols = cols});
}

// 16-bit elements, rows of whole packs of 8 bytes: 9 to 64 of them by lanes, x and y 8 bytes past a
// boundary, rows apart, weights of float32, at an odd offset, or none.
TEST_P(CudaNormTest, NarrowRowsOfHalfPacks) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t cols : {32, 36, 60, 64, 68, 100, 124, 128, 132, 252, 256, 260}) {
      RunBoth(dtype, {.rows = 70, .cols = cols, .x_pad = 4});
      RunBoth(dtype, {.rows = 37, .cols = cols, .x_offset = 4, .offset = 4});
      RunBoth(dtype, {.rows = 37, .cols = cols, .x_offset = 2});
    }
    RunBoth(dtype, {.rows = 70, .cols = 100, .weight_offset = 1});
    RunBoth(dtype, {.rows = 70, .cols = 100, .weight = false});
    RunBoth(dtype, {.rows = 70, .cols = 100, .mixed = true});
  }
}

// Packs of 16 bytes: lanes of a group and packs per lane (4 to 256), a block's registers (2048,
// 4096), shares of 2, 4 and 8 blocks (16384), 16 blocks (32768); rows of whole packs and others.
TEST_P(CudaNormTest, WidthsAroundTheTiersBoundaries) {
  for (const DType dtype : kFloatingTypes) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t packs : {4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
      for (const int64_t extra : {-1, 0, 1, static_cast<int>(pack)}) {
        RunBoth(dtype, {.rows = packs > 1000 ? 3 : 20, .cols = packs * pack + extra});
      }
    }
  }
}

// Rows of whole packs by the block, of 2, 4 and 8 packs a thread, full or not, and by clusters; the
// residual's have 2 or 4.
TEST_P(CudaNormTest, ManyRowsOfWholePacks) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const auto& [rows, packs] : {std::pair<int64_t, int64_t>{20, 3},
                                      {70, 30},
                                      {90, 100},
                                      {200, 129},
                                      {200, 192},
                                      {150, 2048},
                                      {300, 1500},
                                      {270, 2500},
                                      {270, 2560},
                                      {140, 5120}}) {
      for (const bool residual : {false, true}) {
        RunBoth(dtype, {.rows = rows, .cols = packs * PackOf(dtype), .residual = residual});
      }
    }
  }
}

// Weights of float32 over 16-bit rows of whole packs, in registers ahead of their use: where lanes
// or a block have a row; not with a residual, in clusters, without a bias or at odd offsets.
TEST_P(CudaNormTest, FloatWeightsOverHalf) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t packs : {63, 64, 65, 96, 97, 127, 128, 129, 192, 512, 1000, 1500, 2560}) {
      for (const int64_t rows : {3, 270}) {
        RunBoth(dtype, {.rows = rows, .cols = packs * PackOf(dtype), .mixed = true});
      }
    }
    for (const int64_t packs : {100, 300, 1024}) {
      Case k{.rows = 270, .cols = packs * PackOf(dtype), .mixed = true};
      k.residual = true;
      RunBoth(dtype, k);
      k.residual = false, k.bias = false;
      RunBoth(dtype, k);
      k.bias = true, k.weight_offset = 1;
      RunBoth(dtype, k);
      k.weight_offset = 0, k.mean = 8, k.spread = 0.25;
      RunBoth(dtype, k);
    }
  }
}

// The same where rows are no whole packs or do not start at one: in a block and in clusters,
// weights at every offset within 16 bytes; without a bias, and without weights. And whole packs
// that 8 a thread would hold in fewer waves.
TEST_P(CudaNormTest, FloatWeightsOverHalfAnywhere) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t cols : {1001, 4097, 4105, 8191, 12289, 15360, 15361, 18433, 20001, 50257}) {
      for (int64_t i = 0; i < 4; ++i) {
        RunBoth(dtype,
                {.rows = 20, .cols = cols, .x_offset = 1, .weight_offset = i, .mixed = true});
      }
      Case k{.rows = 9, .cols = cols, .x_offset = 3, .mean = 8, .spread = 0.25, .mixed = true};
      k.offset = 1;
      RunBoth(dtype, k);
      k.bias_behind = 1;  // it lies otherwise than the weight
      RunBoth(dtype, k);
      k.bias_behind = 0, k.bias = false;
      RunBoth(dtype, k);
      k.bias = true, k.weight = false;
      RunBoth(dtype, k);
      k.weight = true, k.residual = true;
      RunBoth(dtype, k);
    }
    for (const int64_t packs : {1032, 1536, 2056}) {
      RunBoth(dtype, {.rows = 270, .cols = packs * 8, .mixed = true});
    }
  }
}

// More rows than teams, fewer than multiprocessors, one; wider than any cluster.
TEST_P(CudaNormTest, ManyRowsAndFewRows) {
  for (const Case& k : {Case{20000, 16}, Case{3000, 33}, Case{1000, 1000}, Case{133, 4097},
                        Case{9, 300001}, Case{1, 600000}, Case{8, 140000}, Case{1, 7}}) {
    RunAll(k);
  }
}

// Wider than a block, with rows enough to fill the device; so few that a cluster's blocks are
// small.
TEST_P(CudaNormTest, ManyWideRows) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const bool residual : {false, true}) {
      RunBoth(dtype, {.rows = 140, .cols = 5000 * PackOf(dtype), .residual = residual});
    }
  }
  RunBoth(DType::kFloat16, {.rows = 70, .cols = 65536});
  RunBoth(DType::kFloat16, {.rows = 16, .cols = 262144});
  RunBoth(DType::kBFloat16, {.rows = 70, .cols = 65536});
  for (const bool in_place : {false, true}) {
    RunBoth(DType::kFloat16, {.rows = 2700, .cols = 2048, .in_place = in_place});
  }
  RunBoth(DType::kFloat16, {.rows = 1100, .cols = 4097, .residual = true});
}

// By clusters of 2, 4, 8 and 16 blocks, full or not, with 4 packs a thread or 8; weights of T that
// are aligned wait in shared memory, others do not.
TEST_P(CudaNormTest, WideRowsWithStagedWeights) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    const int64_t pack = PackOf(dtype);
    for (const auto& [rows, packs] : {std::pair<int64_t, int64_t>{5, 2048},
                                      {40, 1032},
                                      {140, 4096},
                                      {140, 4104},
                                      {70, 8192},
                                      {140, 9000},
                                      {70, 16392},
                                      {34, 33000}}) {
      RunBoth(dtype, {.rows = rows, .cols = packs * pack});
    }
    const Case k{.rows = 140, .cols = 4136 * pack, .mean = 8, .spread = 0.25};
    RunBoth(dtype, k);
    for (int which = 0; which < 4; ++which) {
      Case other = k;
      if (which == 0) other.weight = false;
      if (which == 1) other.bias = false;
      if (which == 2) other.weight_offset = 1;
      if (which == 3) other.x_pad = pack, other.mixed = true;
      RunBoth(dtype, other);
    }
  }
  RunBoth(DType::kFloat32, {.rows = 70, .cols = 34000, .mean = 1e4, .spread = 1e-3});
}

// By blocks alone and by clusters of 2 to 16, with 13 to 16 packs a thread; weights that are not
// aligned, or not there, and fewer rows are other kernels'.
TEST_P(CudaNormTest, WideRowsInSlices) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const int64_t pack = PackOf(dtype);
    for (const auto& [rows, packs] : {std::pair<int64_t, int64_t>{270, 4608},
                                      {270, 4401},
                                      {140, 9176},
                                      {90, 18360},
                                      {34, 32064},
                                      {20, 100000}}) {
      RunBoth(dtype, {.rows = rows, .cols = packs * pack});
    }
    const Case k{.rows = 270, .cols = 4592 * pack, .mean = 8, .spread = 0.25};
    RunBoth(dtype, k);
    for (int which = 0; which < 5; ++which) {
      Case other = k;
      if (which == 0) other.weight = false;
      if (which == 1) other.weight_offset = 1;
      if (which == 2) other.rows = 6;
      if (which == 3) other.x_pad = pack, other.mixed = true;
      if (which == 4) other.in_place = true;
      RunBoth(dtype, other);
    }
  }
  RunBoth(DType::kFloat32, {.rows = 140, .cols = 36704, .mean = 1e4, .spread = 1e-3});
}

TEST_P(CudaNormTest, OddOffsetsAndStrides) {
  for (const int64_t cols : {5, 64, 257, 2000, 20001, 150000}) {
    for (const auto& [x, other] : {std::pair{1, 0}, {0, 1}, {1, 1}, {3, 2}}) {
      RunAll({.rows = 9, .cols = cols, .x_pad = x, .x_offset = x, .offset = other});
    }
    RunAll({.rows = 9, .cols = cols, .x_pad = 64});
    RunAll({.rows = 9, .cols = cols, .weight_offset = 1});
  }
}

// Rows that lie alike, but not as their weights do: by packs from 32 rows a multiprocessor on, in 8
// or 16 lanes up to 64 packs, of more columns than 64 (128).
TEST_P(CudaNormTest, ManyRowsThatLieAlike) {
  const int64_t few = 32 * int64_t{stream_->properties().multiprocessors};
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    const int64_t pack = PackOf(dtype), most = 64 * pack;
    for (const int64_t cols : {16 * pack + 1, 17 * pack, 32 * pack + 3, most - 1, most + 1}) {
      for (const int64_t rows : {few, few + 1}) {
        RunBoth(dtype, {.rows = rows, .cols = cols, .x_offset = 1, .offset = 1});
        if (HasFailure()) return;
      }
    }
  }
}

// Columns of 4, 8 and 16 lanes, a warp up to 128 packs, a block's registers up to 2048 (float64
// 1536), clusters of 2 and more; x, weight and what is written each at an offset of its own.
TEST_P(CudaNormTest, WidthsAroundTheTiersBoundariesAtOddOffsets) {
  for (const DType dtype : kFloatingTypes) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t cols : {31, 33, 63, 65, 127, 129, 137, 255, 257, 264}) {
      RunBoth(dtype, {.rows = 37, .cols = cols, .x_offset = 1});
      RunBoth(dtype, {.rows = 37, .cols = cols, .offset = pack - 1, .weight_offset = 1});
    }
    for (const int64_t packs : {33, 64, 128, 192, 256, 1536, 2048, 4096}) {
      for (const int64_t extra : {-1, 0, static_cast<int>(pack)}) {
        const int64_t cols = packs * pack + extra, rows = packs > 1000 ? 67 : 9;
        RunBoth(dtype, {.rows = rows, .cols = cols, .x_offset = 1});
        RunBoth(dtype, {.rows = rows, .cols = cols, .offset = pack - 1, .weight_offset = 1});
      }
    }
  }
}

// Rows that are read otherwise than they are written, of as many packs as the registers of a
// cluster hold, and more (primitive/cuda/norms/held.cuh): of float32 a second shape of cluster
// holds up to 65536 packs. Every way that x, y and weights may lie to each other; weights that are
// missing, or float32, are read where they are used.
TEST_P(CudaNormTest, RowsWiderThanClustersAtOddOffsets) {
  for (const DType dtype : kFloatingTypes) {
    const int64_t pack = PackOf(dtype), most = pack == 8 ? 40960 : pack == 4 ? 30720 : 24576;
    for (const int64_t cols : {most * pack + pack - 1, (most + 1) * pack, (most + 2) * pack + 1}) {
      RunBoth(dtype, {.rows = 3, .cols = cols, .x_offset = 1});
    }
    const int64_t cols = (most + 40) * pack;
    for (int64_t i = 0; i < pack; ++i) {
      RunBoth(dtype, {.rows = 1, .cols = cols + i, .x_offset = i + 1, .weight_offset = 1});
      RunBoth(dtype, {.rows = 2, .cols = cols + 1, .x_pad = i, .x_offset = 1, .offset = i});
    }
    for (int which = 0; which < 4; ++which) {
      Case other{.rows = 2, .cols = cols + 3, .x_offset = 1, .mean = 8, .spread = 0.25};
      if (which == 0) other.weight = false;
      if (which == 1) other.bias = false;
      if (which == 2) other.mixed = true;
      if (which == 3) other.residual = true, other.x_offset = 0, other.x_pad = 1;
      RunBoth(dtype, other);
    }
  }
  for (const int64_t cols : {65536 * 4 + 3, 65537 * 4, 65538 * 4 + 1}) {
    RunBoth(DType::kFloat32, {.rows = 70, .cols = cols, .x_offset = 1, .weight_offset = 2});
    RunBoth(DType::kFloat32, {.rows = 3, .cols = cols, .weight_offset = 1});
  }
  RunBoth(DType::kFloat32, {.rows = 40, .cols = 123001, .x_offset = 1});
  RunBoth(DType::kFloat32, {.rows = 5, .cols = 140001, .x_offset = 1, .mean = 1e4, .spread = 1e-3});
}

// Rows that are read as they are written, wider than the registers of 16 blocks, so many that each
// block keeps 58 KB of its part in shared memory, or 110 where the part is larger than that
// (primitive/cuda/rows/policy.h).
TEST_P(CudaNormTest, OddRowsAroundWhatClustersKeep) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t bytes : {58 << 10, 110 << 10}) {
      const int64_t packs = MostPacksKept(16, bytes, 16);
      for (const int64_t more : {0, 1}) {
        RunBoth(dtype, {.rows = 9, .cols = (packs + more) * PackOf(dtype) + 1});
      }
    }
  }
}

TEST_P(CudaNormTest, AMeanFarAboveTheSpread) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t cols : {40, 768, 5000, 40000, 400000}) {
      RunBoth(dtype, {.rows = 4, .cols = cols, .mean = 1e4, .spread = 1e-3});
      RunBoth(dtype, {.rows = 4, .cols = cols, .x_offset = 1, .mean = 1e4, .spread = 1e-3});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaNormTest, testing::Values(DeviceType::kCUDA), DeviceName);

}  // namespace
}  // namespace oneflow_lite
