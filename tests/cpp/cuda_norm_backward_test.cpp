// SPDX-License-Identifier: Apache-2.0
//
// The gradients of layer_norm and rms_norm on CUDA where their kernels change hands
// (primitive/cuda/norms/policy.h, norms/backward/policy.h, norms/backward/few_policy.h,
// norms/backward/policy.h), for every subset of them, against
// float64 on the CPU. Skips where there is no GPU.
#include "cuda_norm_testing.h"

namespace oneflow_lite {
namespace {

// Backward, where few bytes are moved: from 32 packs a row to 1024, 2 packs a thread or 4, where
// the blocks for columns are narrow, alone and in clusters, and rows enough for every turn of
// theirs. In place, and in great number, rows are other kernels' all the same.
TEST_P(CudaNormTest, BackwardOfFewBytes) {
  for (const DType dtype : kFloatingTypes) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t packs : {31, 32, 33, 64, 96, 192, 320, 512, 513, 1024, 1025}) {
      for (const int64_t rows : {1, 40}) {
        for (const bool from_output : {false, true}) {
          RunBoth(dtype, {.rows = rows,
                          .cols = packs * pack,
                          .x_pad = from_output ? 0 : pack,
                          .from_output = from_output,
                          .weight_spread = 0.1});
        }
      }
      RunBoth(dtype, {.rows = 40, .cols = packs * pack, .in_place = true});
      RunBoth(dtype, {.rows = 40, .cols = packs * pack, .residual = true});
    }
    RunBoth(dtype, {.rows = 1100, .cols = 96 * pack});
    RunBoth(dtype, {.rows = 4100, .cols = 32 * pack});
  }
  RunBoth(DType::kFloat32, {.rows = 700, .cols = 768, .mean = 1e4, .spread = 1e-3});
}

// Backward, where few bytes are moved and rows are not whole packs: a column, warps of a block that
// share a row, a block, clusters of 2 to 8; rows for one thread of a column, for those of a block,
// and of a cluster; one row more and less than blocks have teams for. Of whole packs, what others
// do not serve: wide rows.
TEST_P(CudaNormTest, BackwardOfFewBytesAnywhere) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    for (const int64_t cols : {1, 7, 31, 33, 127, 129, 513, 1023, 1025, 2047, 2049, 4097, 16385}) {
      for (const int64_t rows : {1, 3, 4, 5, 40, 90}) {
        RunBoth(dtype, {.rows = rows, .cols = cols, .x_pad = 1, .offset = 1});
      }
      RunBoth(dtype, {.rows = 9, .cols = cols, .from_output = true, .weight_spread = 0.1});
      RunBoth(dtype, {.rows = 9, .cols = cols, .weight_offset = 1, .residual = true});
    }
    for (const int64_t rows : {3, 40}) RunBoth(dtype, {.rows = rows, .cols = 2049 * PackOf(dtype)});
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{100, 583},
                                     {265, 137},
                                     {1025, 41},
                                     {1100, 599},
                                     {4096, 65},
                                     {4097, 65},
                                     {300, 4097}}) {
      RunBoth(dtype, {.rows = rows, .cols = cols});
      RunBoth(dtype, {.rows = rows, .cols = cols, .x_offset = 1, .dx_offset = 2, .mixed = true});
    }
    for (int wanted = 1; wanted <= kAll; ++wanted) {
      for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{40, 3001}, {700, 97}}) {
        const bool weight = wanted % 2 == 1;
        RunBoth(dtype, {.rows = rows, .cols = cols, .weight = weight, .wanted = wanted});
      }
    }
  }
  for (const int64_t cols : {767, 5001}) {
    RunBoth(DType::kFloat32, {.rows = 200, .cols = cols, .mean = 1e4, .spread = 1e-3});
  }
}

// The weight's gradient over up to four rows has kernels of its own (norms/backward/sums.cuh):
// blocks that sum the rows themselves, up to 2048 columns, and chunks of 2048. Every subset of
// gradients, in place, where it must come first, and one row more.
TEST_P(CudaNormTest, BackwardOfUpToFourRows) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t cols : {1, 100, 255, 257, 2048, 2049, 4096, 16384, 100003}) {
      for (const int64_t rows : {1, 2, 4, 5}) {
        RunBoth(dtype, {.rows = rows, .cols = cols, .x_pad = 3, .mean = 3});
        RunBoth(dtype, {.rows = rows, .cols = cols, .in_place = true});
      }
      for (int wanted = 1; wanted <= kAll; ++wanted) {
        RunBoth(dtype, {.rows = 3, .cols = cols, .wanted = wanted});
      }
    }
    RunBoth(dtype, {.rows = 3, .cols = 5000, .offset = 1, .weight_offset = 1, .residual = true});
  }
}

// Backward by the lean kernel, in place, so that the one for few bytes does not serve it: teams of
// a warp and more, 2 to 4 packs a thread, one team and several, up to 2048 packs; rows that start
// at multiples of 128 bytes and others, too few for all teams, and enough to fill the rings of
// stages.
TEST_P(CudaNormTest, BackwardOfWholePacksInPlace) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t packs : {31,  32,  64,  65,  96,   127,  128,  129,  320,  511,
                                512, 513, 640, 896, 1024, 1025, 1536, 1537, 2048, 2049}) {
      RunBoth(dtype, {.rows = 3, .cols = packs * pack, .in_place = true});
      RunBoth(dtype, {.rows = 150, .cols = packs * pack, .x_pad = pack, .in_place = true});
    }
    for (const int64_t packs : {136, 1032, 2056}) {
      RunBoth(dtype, {.rows = 150, .cols = packs * pack, .residual = true, .in_place = true});
    }
    RunBoth(dtype, {.rows = 9000, .cols = 64 * pack, .in_place = true});
    RunBoth(dtype, {.rows = 1500, .cols = 520 * pack, .in_place = true});
    RunBoth(dtype, {.rows = 1200, .cols = 1032 * pack, .in_place = true});
    for (int wanted = 1; wanted <= kAll; ++wanted) {
      for (const int64_t packs : {136, 1032}) {
        const bool weight = wanted % 2 == 1;
        RunBoth(dtype, {.rows = 200,
                        .cols = packs * pack,
                        .weight = weight,
                        .in_place = true,
                        .wanted = wanted});
      }
    }
    RunBoth(dtype, {.rows = 20, .cols = 128 * pack, .weight_offset = 1, .in_place = true});
    RunBoth(dtype, {.rows = 20, .cols = 128 * pack, .mixed = true, .in_place = true});
  }
  for (const int64_t cols : {768, 5120}) {
    RunBoth(DType::kFloat32,
            {.rows = 700, .cols = cols, .mean = 1e4, .spread = 1e-3, .in_place = true});
  }
}

// The lean kernel over rows of the forward's output, with weights of float32, with a gradient of
// the sum, and all of these together: from 65 packs, 2 to 4 packs a thread, up to 2048, where
// weights in float32 and biases leave room for two rows (1792 packs) and no more; one team and
// several, more rows than are on their way at once. Biases and weights that are not aligned are
// other kernels'.
TEST_P(CudaNormTest, BackwardOfWholePacksInEveryForm) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const int64_t pack = PackOf(dtype);
    for (int form = 1; form < 8; ++form) {
      Case k{.rows = 3, .cols = 0, .in_place = true, .weight_spread = 0.1};
      k.from_output = (form & 1) != 0, k.mixed = (form & 2) != 0, k.residual = (form & 4) != 0;
      const auto run = [&](int64_t rows, int64_t packs) {
        k.rows = rows, k.cols = packs * pack;
        RunBoth(dtype, k);
      };
      for (const int64_t packs :
           {64, 65, 96, 97, 512, 513, 640, 641, 1024, 1025, 1536, 1537, 1792, 1793, 2048, 2049}) {
        run(3, packs);
      }
      for (const auto& [rows, packs] : {std::pair<int64_t, int64_t>{2200, 72},
                                        {1200, 136},
                                        {300, 1000},
                                        {550, 1032},
                                        {300, 1544}}) {
        run(rows, packs);
      }
      for (k.wanted = 1; k.wanted <= kAll; ++k.wanted) {
        k.weight = k.wanted % 2 == 1, k.bias = k.wanted % 3 != 0;
        for (const int64_t packs : {136, 1032}) run(20, packs);
      }
      k.wanted = kAll, k.weight = k.bias = true, k.weight_offset = 1;
      run(20, 128);
    }
  }
}

// A backward over narrow rows of whole packs (primitive/cuda/norms/backward/narrow.cuh): 1 to 32
// lanes a row, all of whose packs are there or not, to 64 packs a row and one more; fewer rows than
// a warp's, than a block's, and several turns of which the last is not full. In place, so that the
// kernel for few bytes does not serve.
TEST_P(CudaNormTest, BackwardOfNarrowWholePacks) {
  for (const DType dtype : kFloatingTypes) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t packs : {1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 33, 50, 64, 65}) {
      RunBoth(dtype, {.rows = 3, .cols = packs * pack, .in_place = true});
      RunBoth(dtype, {.rows = 300, .cols = packs * pack, .x_pad = pack, .in_place = true});
    }
    RunBoth(dtype, {.rows = 100001, .cols = 2 * pack, .in_place = true});
    RunBoth(dtype, {.rows = 17001, .cols = 12 * pack, .in_place = true});
    RunBoth(dtype, {.rows = 9001, .cols = 64 * pack, .residual = true, .in_place = true});
    RunBoth(dtype, {.rows = 200, .cols = 7 * pack, .residual = true});
    RunBoth(dtype, {.rows = 200, .cols = 40 * pack, .weight_offset = 1, .in_place = true});
    RunBoth(dtype, {.rows = 200, .cols = 40 * pack, .mixed = true, .in_place = true});
    for (int wanted = 1; wanted <= kAll; ++wanted) {
      const bool weight = wanted % 2 == 1;
      RunBoth(dtype, {.rows = 500, .cols = 6 * pack, .weight = weight, .wanted = wanted});
    }
  }
  for (const int64_t cols : {12, 100, 256}) {
    RunBoth(DType::kFloat32,
            {.rows = 2000, .cols = cols, .mean = 1e4, .spread = 1e-3, .in_place = true});
  }
}

// A backward column by column (primitive/cuda/norms/backward/policy.h), rows that are no
// whole packs: 8 lanes with 2, 4 or 8 columns each, a warp with 4 or 8, teams of 2 to 8 warps,
// alone in a block and several, and one column more; a row for each team, fewer, and several turns
// of which the last is not full. In place, so that the kernel for few bytes does not serve.
TEST_P(CudaNormTest, BackwardColumnByColumn) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const int64_t cols : {1,   2,   15,  17,  31,  33,   63,   65,   127,  129,
                               255, 257, 513, 769, 999, 1025, 1281, 1793, 2047, 2049}) {
      RunBoth(dtype, {.rows = 3, .cols = cols, .in_place = true});
      RunBoth(dtype, {.rows = 150, .cols = cols, .x_pad = 1, .in_place = true});
    }
    for (const int64_t cols : {16, 32, 64, 128, 256, 2048}) {
      RunBoth(dtype, {.rows = 40, .cols = cols, .x_offset = 1, .in_place = true});
    }
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{100001, 3},
                                     {70001, 14},
                                     {17001, 19},
                                     {9001, 57},
                                     {9001, 100},
                                     {5001, 129},
                                     {2501, 515},
                                     {1001, 1281}}) {
      RunBoth(dtype, {.rows = rows, .cols = cols, .offset = 1, .in_place = true});
    }
    for (const int64_t cols : {19, 333}) {
      RunBoth(dtype, {.rows = 5000, .cols = cols, .dsum_offset = 1, .residual = true});
      RunBoth(dtype, {.rows = 5000, .cols = cols, .weight_offset = 1, .mixed = true});
      for (int wanted = 1; wanted <= kAll; ++wanted) {
        RunBoth(dtype, {.rows = 5000, .cols = cols, .weight = wanted % 2 == 1, .wanted = wanted});
      }
    }
  }
  for (const int64_t cols : {13, 101, 1001}) {
    RunBoth(DType::kFloat32,
            {.rows = 2000, .cols = cols, .mean = 1e4, .spread = 1e-3, .in_place = true});
  }
}

// A backward whose tensors do not all lie alike within 16 bytes, with several rows per team of a
// warp's part, of warps and of a cluster: packs follow dx, and are made of two words of the others.
TEST_P(CudaNormTest, EachTensorOfABackwardAtAnOddOffset) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{4500, 33},
                                   {4500, 128},
                                   {2700, 1001},
                                   {700, 4097},
                                   {220, 20001}}) {
    for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
      const Case k{.rows = rows, .cols = cols, .residual = true};
      for (int which = 0; which < 4; ++which) {
        Case odd = k;
        if (which == 0) odd.x_offset = 1;
        if (which == 1) odd.offset = 3, odd.x_offset = 3, odd.dx_offset = -2;
        if (which == 2) odd.dx_offset = 1;
        if (which == 3) odd.dsum_offset = 1;
        RunBoth(dtype, odd);
      }
      RunBoth(dtype, {.rows = rows, .cols = cols, .x_pad = 1});
    }
  }
}

// A backward over wide rows (primitive/cuda/norms/backward/policy.h): from 256 packs a row on; as
// many packs as a block has workers for (864; 1728 of wider types), and as 2, 3, 8 and 16
// blocks have, where a block's packs are whole lines; rows fewer and more than units, of which some
// begin with other elements of a pack than others. In place, where fewer bytes would be the small
// kernel's.
TEST_P(CudaNormTest, WideRowsOfABackward) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const int64_t pack = PackOf(dtype), full = pack == 8 ? 864 : 1728;
    for (const int64_t rows : {15, 16, 150}) {
      for (const int64_t packs : {int64_t{256}, full, 2 * full}) {
        for (const int64_t extra : {-1, 0, 1}) {
          RunBoth(dtype,
                  {.rows = rows, .cols = packs * pack + extra, .x_offset = 1, .in_place = true});
        }
      }
    }
    for (const int64_t slices : {3, 8, 16}) {
      for (const int64_t extra : {-8, -7, 1}) {
        RunBoth(dtype, {.rows = 17, .cols = (slices * full + extra) * pack + 1, .in_place = true});
      }
    }
    for (const int64_t packs : {2049, 2560, 4100}) {
      RunBoth(dtype, {.rows = 90, .cols = packs * pack, .in_place = true});
    }
    RunBoth(dtype, {.rows = 2500, .cols = 263 * pack + 1});
    RunBoth(dtype, {.rows = 420, .cols = 10007, .residual = true});
    RunBoth(dtype, {.rows = 137, .cols = 10001, .in_place = true});
    for (int which = 0; which < 4; ++which) {
      Case odd{.rows = 220, .cols = 20000 + which, .residual = true};
      if (which == 0) odd.x_offset = 1;
      if (which == 1) odd.x_pad = 3, odd.offset = 3, odd.x_offset = 3, odd.dx_offset = -2;
      if (which == 2) odd.dx_offset = 1, odd.mixed = true;
      if (which == 3) odd.dsum_offset = 1, odd.weight_offset = 1;
      RunBoth(dtype, odd);
      odd.residual = false;
      odd.from_output = true;
      odd.x_pad = 0;
      odd.weight_spread = 0.1;
      RunBoth(dtype, odd);
    }
    for (int wanted = 1; wanted <= kAll; ++wanted) {
      RunBoth(dtype, {.rows = 480, .cols = 9001, .wanted = wanted});
      RunBoth(dtype, {.rows = 480, .cols = 9001, .weight = false, .wanted = wanted});
    }
  }
  RunBoth(DType::kFloat32, {.rows = 270, .cols = 9001, .mean = 1e4, .spread = 1e-3});
}

// A backward over rows wider than clusters hold (primitive/cuda/norms/backward/policy.h):
// their slices are blocks of the whole device, from 16 * 7168 columns on, of float64 16 * 3584;
// rows enough for sums to take each place in memory again, and as few as one for each way that rows
// start. Where not even these have room, rows are read twice, in place by two launches.
TEST_P(CudaNormTest, RowsOfABackwardWiderThanClusters) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const int64_t pack = PackOf(dtype);
    RunBoth(dtype, {.rows = 70, .cols = 131072 + pack});
    RunBoth(dtype, {.rows = 150, .cols = 120001});
    RunBoth(dtype,
            {.rows = 16, .cols = 131072 + pack, .x_pad = pack, .residual = true, .in_place = true});
    RunBoth(dtype, {.rows = 17, .cols = 250003, .x_offset = 1, .mixed = true});
    RunBoth(dtype, {.rows = 40, .cols = 140001, .dx_offset = 1, .residual = true});
    RunBoth(dtype, {.rows = 40, .cols = 131081, .in_place = true});
    RunBoth(dtype, {.rows = 40, .cols = 131081, .from_output = true, .weight_spread = 0.1});
    for (const int wanted : {1, 3}) {
      RunBoth(dtype, {.rows = 34, .cols = 131083, .weight = false, .wanted = wanted});
    }
  }
  RunBoth(DType::kFloat32, {.rows = 20, .cols = 140000, .mean = 1e4, .spread = 1e-3});
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const bool in_place : {false, true}) {
      RunBoth(dtype, {.rows = 17, .cols = 1000001, .in_place = in_place});
      RunBoth(dtype, {.rows = 3, .cols = 1000000, .residual = true, .in_place = in_place});
    }
  }
}

// Without dx, the gradients of weight and bias are computed by the kernels of all three, which then
// need no sums over a row, but for float32's layer_norm: the lean kernel with 2 to 4 packs a
// thread, one team and several, where rows are too many or too wide for the kernel for few bytes,
// and more than are on their way at once; wide rows of whole packs and others, in slices and not,
// of which x starts otherwise than dy; rows wider than clusters.
TEST_P(CudaNormTest, GradientsOfWeightsWithoutDx) {
  const int both = kDWeight | kDBias;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const int64_t pack = PackOf(dtype);
    for (const int64_t packs : {1025, 1032, 1536, 1537, 1792, 2048}) {
      RunBoth(dtype, {.rows = 3, .cols = packs * pack, .wanted = both});
    }
    for (const int wanted : {+kDWeight, +kDBias, both}) {
      RunBoth(dtype, {.rows = 300, .cols = 1032 * pack, .wanted = wanted});
      RunBoth(dtype, {.rows = 300, .cols = 1537 * pack, .wanted = wanted});
      RunBoth(dtype, {.rows = 150, .cols = 2049 * pack + 1, .wanted = wanted});
      RunBoth(dtype, {.rows = 40, .cols = 7000 * pack, .wanted = wanted});
    }
    for (const int64_t packs : {1032, 1544}) {
      Case k{.rows = 300, .cols = packs * pack, .mixed = true, .wanted = both};
      RunBoth(dtype, k);
      k.mixed = false, k.residual = true;
      RunBoth(dtype, k);
      k.residual = false, k.from_output = true, k.weight_spread = 0.1;
      RunBoth(dtype, k);
    }
    // Many turns of two stages, where a sum's gradient or little shared memory (OFL_TEST_DEVICE=
    // sm_120) leaves no more.
    for (const int64_t packs : {1032, 1200}) {
      Case k{.rows = 800, .cols = packs * pack, .wanted = both};
      RunBoth(dtype, k);
      k.residual = k.mixed = true;
      RunBoth(dtype, k);
    }
    for (const auto& [rows, packs] :
         {std::pair<int64_t, int64_t>{530, 257}, {150, 2049}, {90, 3072}, {40, 7000}}) {
      RunBoth(dtype, {.rows = rows, .cols = packs * pack, .x_pad = pack, .wanted = both});
      RunBoth(dtype, {.rows = rows, .cols = packs * pack + 1, .x_offset = 1, .wanted = both});
    }
    RunBoth(dtype, {.rows = 150, .cols = 20003, .x_pad = 3, .mixed = true, .wanted = both});
    RunBoth(dtype, {.rows = 34, .cols = 131083, .x_offset = 1, .wanted = both});
    for (const auto& [rows, packs] : {std::pair<int64_t, int64_t>{16400, 65}, {1700, 650}}) {
      RunBoth(dtype, {.rows = rows, .cols = packs * pack, .wanted = both});
    }
    RunBoth(dtype, {.rows = 16400, .cols = 200, .wanted = both});
    RunBoth(dtype, {.rows = 5000, .cols = 333, .wanted = both});
  }
  for (const int64_t cols : {7000, 9001, 12288}) {
    RunBoth(DType::kFloat32,
            {.rows = 270, .cols = cols, .mean = 1e4, .spread = 1e-3, .wanted = both});
  }
}

TEST_P(CudaNormTest, EverySubsetOfGradientsAndWeights) {
  for (const int64_t cols : {48, 1000, 3000, 40000}) {
    for (int wanted = 1; wanted <= kAll; ++wanted) {
      for (const bool from_output : {false, true}) {
        RunBoth(DType::kFloat32, {.rows = 30,
                                  .cols = cols,
                                  .from_output = from_output,
                                  .weight_spread = 0.1,
                                  .wanted = wanted});
      }
    }
    for (int bits = 0; bits < 8; ++bits) {
      for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
        RunBoth(dtype, {.rows = 30,
                        .cols = cols,
                        .weight = (bits & 1) != 0,
                        .bias = (bits & 2) != 0,
                        .mixed = (bits & 4) != 0});
      }
    }
  }
}

TEST_P(CudaNormTest, ResidualsAndTheGradientOfTheSum) {
  for (const int64_t cols : {40, 1001, 9000, 70000, 400000}) {
    for (const bool in_place : {false, true}) {
      RunAll({.rows = 5, .cols = cols, .residual = true, .sum_in_residual = in_place});
      RunAll({.rows = 5,
              .cols = cols,
              .x_pad = 1,
              .offset = 1,
              .residual = true,
              .sum_in_residual = in_place});
    }
  }
}

// A graph's replay computes anew, for the two dependent kernels of a backward too.
TEST_P(CudaNormTest, ABackwardInAGraph) {
  constexpr int64_t kRows = 300, kCols = 1000;
  const NormShape shape{.rows = kRows, .cols = kCols, .eps = kEps};
  const HostArray x = numbers_.NormalArray(DType::kFloat32, kRows * kCols);
  const HostArray rstd = numbers_.NormalArray(DType::kFloat32, kRows, 0.1, 1);
  Buffer bx(*this, x), bdy(*this, x), brstd(*this, rstd);
  Buffer dx(*this, DType::kFloat32, kRows * kCols), dweight(*this, DType::kFloat32, kCols);
  const auto backward = New<RmsNormBackwardFactory>(NormSpec{});
  const Workspace workspace(*this, backward->WorkspaceBytes(*stream_, shape));
  RmsNormBackward::Args args;
  args.x = bx.data(), args.dy = bdy.data(), args.rstd = brstd.data();
  args.dx = dx.data(), args.dweight = dweight.data();
  const auto stream = backend_->NewStream(0);
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  const auto graph = backend_->NewGraph(0);
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE((*graph)->CaptureBegin(**stream).ok());
  ASSERT_TRUE(backward->Launch(**stream, shape, args, workspace.data()).ok());
  ASSERT_TRUE((*graph)->CaptureEnd().ok());
  ASSERT_TRUE((*graph)->Replay(**stream).ok());
  ASSERT_TRUE((*stream)->Synchronize().ok());
  const HostArray replayed_dx = dx.Read(), replayed_dweight = dweight.Read();
  ASSERT_TRUE(backward->Launch(*stream_, shape, args, workspace.data()).ok());
  EXPECT_EQ(replayed_dx, dx.Read());
  EXPECT_EQ(replayed_dweight, dweight.Read());
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaNormTest, testing::Values(DeviceType::kCUDA), DeviceName);

}  // namespace
}  // namespace oneflow_lite
