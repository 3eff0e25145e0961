// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax, forward and backward, against float64 within the bounds of accuracy
// that the project promises, at widths around every dispatch boundary.
#include "primitive_softmax_testing.h"

namespace oneflow_lite {
namespace {

// Around the kernels of few columns (25, 32, 40, 44, 49), vectors, warps, blocks of registers and
// shared memory, parts of a split row.
constexpr int64_t kWidths[] = {1,     2,     3,     9,     25,    26,     27,     31,   32,   33,
                               34,    40,    41,    44,    45,    49,     50,     63,   64,   65,
                               127,   128,   129,   255,   256,   257,    1000,   1023, 1024, 1025,
                               2047,  2048,  2049,  4095,  4096,  4097,   8191,   8192, 8193, 16384,
                               32768, 50257, 65535, 65536, 65537, 131072, 1000003};

TEST_P(SoftmaxTest, AccuracyAtEveryWidth) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : kWidths) {
      const int64_t rows = cols > 100000 ? 1 : cols > 10000 ? 2 : 5;
      for (const bool log : {false, true}) {
        // The offset alternates, so that every other width starts at an odd element.
        Check({{rows, cols, 1}, dtype, log}, (cols + log) % 2, static_cast<uint32_t>(cols));
      }
    }
  }
}

TEST_P(SoftmaxTest, ManyNarrowRows) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : {1, 2, 7, 10, 33}) Check({{5003, cols, 1}, dtype, false}, 1, 5);
  }
}

// Inputs whose rows lie apart, each by its own distance, with NaN in between.
TEST_P(SoftmaxTest, RowsThatLieApart) {
  for (const DType dtype : kFloatingTypes) {
    for (const auto& [rows, cols] : {std::pair{5, 7}, {5, 64}, {40, 1000}, {5, 4097}, {2, 70001}}) {
      for (const auto& [pad, other] : {std::pair{1, 0}, {8, 16}, {0, 3}}) {
        const SoftmaxShape dense{rows, cols, 1};
        SoftmaxShape apart = dense;
        apart.strides[0] = cols + pad, apart.strides[1] = cols + other;
        const bool log = pad == 1;
        const Problem p{dense, dtype, log}, q{apart, dtype, log};
        Numbers numbers(17);
        const HostArray x = numbers.NormalArray(dtype, p.size());
        const HostArray dy = numbers.NormalArray(dtype, p.size());
        const std::vector<double> want = Reference(p, x);
        const HostArray y = Forward(q, Spread(x, cols, pad), 1);
        ExpectNear(
            y, want, [&](int64_t i) { return Tolerance(dtype, !log, want[i]); }, q.Describe());
        std::vector<double> size;
        const std::vector<double> want_dx = BackwardReference(p, y, dy, &size);
        ExpectNear(
            Backward(q, Spread(y, cols, pad), Spread(dy, cols, other), 1), want_dx,
            [&](int64_t i) { return Tolerance(dtype, false, size[i]); }, q.Describe());
      }
    }
  }
}

TEST_P(SoftmaxTest, NonFiniteRowsStayAlone) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : {1, 2, 5, 33, 64, 1000, 1025, 4097, 50257, 131072}) {
      for (const bool log : {false, true}) {
        const Problem p{{6, cols, 1}, dtype, log};
        if (LeftOut(p.dtype, p.size())) continue;
        Numbers numbers(11);
        HostArray x = numbers.NormalArray(dtype, p.size());
        const HostArray clean = Forward(p, x, 0);
        for (int64_t c = 0; c < cols; ++c) x.Set(1 * cols + c, -kInf);
        x.Set(2 * cols + cols / 2, kInf);
        x.Set(3 * cols + cols - 1, kNan);
        const HostArray y = Forward(p, x, 0);
        std::vector<double> want(p.size(), kNan);
        for (const int64_t row : {0, 4, 5}) {
          for (int64_t i = row * cols; i < (row + 1) * cols; ++i) want[i] = clean.Float(i);
        }
        ExpectNear(
            y, want, [](int64_t) { return 0.0; }, p.Describe());
      }
    }
  }
}

// Whatever bits a NaN of bfloat16 has, its row becomes NaN, in whole vectors and in the rest of a
// row: rounding must not carry it to infinity or to 0.
TEST_P(SoftmaxTest, EveryNanOfBFloat16StaysOne) {
  for (const uint16_t bits : {0x7f81, 0x7fc0, 0x7fff, 0xff81, 0xffff}) {
    for (const int64_t cols : {5, 64, 67, 1031}) {
      for (const bool log : {false, true}) {
        const Problem p{{1, cols, 1}, DType::kBFloat16, log};
        HostArray x = Numbers(18).NormalArray(p.dtype, p.size());
        std::memcpy(x.bytes.data() + 2 * (cols - 2), &bits, sizeof(bits));
        const std::vector<double> nans(p.size(), kNan);
        const auto exactly = [](int64_t) { return 0.0; };
        ExpectNear(Forward(p, x, 1), nans, exactly, p.Describe());
        ExpectNear(Backward(p, x, x, 1), nans, exactly, p.Describe() + " backward");
      }
    }
  }
}

// A masked tail, a masked middle and a row with one finite entry: exactly 0 where masked.
TEST_P(SoftmaxTest, MaskedEntriesAreExactlyZero) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : {2, 33, 1000, 4097, 50257, 200000}) {
      for (const bool log : {false, true}) {
        const Problem p{{3, cols, 1}, dtype, log};
        if (LeftOut(p.dtype, p.size())) continue;
        Numbers numbers(12);
        HostArray x = numbers.NormalArray(dtype, p.size());
        for (int64_t c = 0; c < cols; ++c) {
          if (c >= cols / 2) x.Set(c, -kInf);
          if (c < cols - 1) x.Set(cols + c, -kInf);
          if (c > 0 && c < cols - 1) x.Set(2 * cols + c, -kInf);
        }
        const std::vector<double> want = Reference(p, x);
        const auto tolerance = [&](int64_t i) {
          return want[i] == 0 ? 0.0 : Tolerance(dtype, !log, want[i]);
        };
        ExpectNear(Forward(p, x, 1), want, tolerance, p.Describe());
      }
    }
  }
}

// One row, long enough to be shared out in parts, some of which hold nothing but -inf: they must
// not poison the others when parts are merged, nor hide a NaN or the -inf of the whole row.
TEST_P(SoftmaxTest, MaskedPartsOfOneLongRow) {
  for (const DType dtype : kFloatingTypes) {
    for (const bool log : {false, true}) {
      const Problem p{{1, 300000, 1}, dtype, log};
      HostArray x = Numbers(13).NormalArray(dtype, p.size());
      for (int64_t c = 0; c < 140000; ++c) x.Set(c, -kInf);
      const std::vector<double> want = Reference(p, x);
      const auto tolerance = [&](int64_t i) {
        return want[i] == 0 ? 0.0 : Tolerance(dtype, !log, want[i]);
      };
      ExpectNear(Forward(p, x, 1), want, tolerance, p.Describe());
      const std::vector<double> nans(p.size(), kNan);
      for (const double poison : {kNan, kInf}) {
        x.Set(70001, poison);
        ExpectNear(Forward(p, x, 1), nans, tolerance, p.Describe());
      }
      for (int64_t c = 0; c < p.size(); ++c) x.Set(c, -kInf);
      ExpectNear(Forward(p, x, 1), nans, tolerance, p.Describe());
    }
  }
}

// Enough rows that the caches cannot hold them (50 MB are touched), the same few over and over: a
// row's value does not depend on how many others there are.
TEST_P(SoftmaxTest, MoreThanTheCachesHold) {
  constexpr SoftmaxShape kBlocks[] = {{100, 4099, 1}, {7, 50257, 1}};
  for (const DType dtype : kFloatingTypes) {
    for (const SoftmaxShape& block : kBlocks) {
      for (const bool log : {false, true}) {
        if (dtype != DType::kFloat32 && (log || block.cols > 10000)) continue;  // seconds
        Numbers numbers(15);
        const Problem small{block, dtype, log};
        const HostArray x = numbers.NormalArray(dtype, small.size());
        const HostArray dy = numbers.NormalArray(dtype, small.size());
        const HostArray y = Forward(small, x, 1), dx = Backward(small, y, dy, 1);
        const int64_t copies = (25 << 20) / static_cast<int64_t>(x.bytes.size()) + 1;
        const Problem large{{block.rows * copies, block.cols, 1}, dtype, log};
        CheckCopies(Forward(large, Repeat(x, copies), 1), y, !log, large.Describe());
        CheckCopies(Backward(large, Repeat(y, copies), Repeat(dy, copies), 1), dx, false,
                    large.Describe() + " backward");
      }
    }
  }
}

TEST_P(SoftmaxTest, HugeLogits) {
  for (const DType dtype : kFloatingTypes) {
    for (const bool log : {false, true}) {
      const Problem p{{3, 100, 1}, dtype, log};
      HostArray x(dtype, p.size());
      for (int64_t i = 0; i < 100; ++i) {
        x.Set(i, i % 2 ? 1e4 : -1e4);
        x.Set(100 + i, 1e4 + 8.0 * (i % 3));
        x.Set(200 + i, -1e4 - 0.5 * static_cast<double>(i));
      }
      const std::vector<double> want = Reference(p, x);
      ExpectNear(
          Forward(p, x, 0), want, [&](int64_t i) { return Tolerance(dtype, !log, want[i]); },
          p.Describe());
    }
  }
}

TEST_P(SoftmaxTest, EmptyLaunchesNothing) {
  for (const SoftmaxShape& shape : {SoftmaxShape{0, 5, 1}, SoftmaxShape{5, 0, 1}}) {
    const Problem p{shape, DType::kFloat32, false};
    EXPECT_EQ(Forward(p, HostArray(DType::kFloat32, 0), 0).size(), 0);
    const HostArray none(DType::kFloat32, 0);
    EXPECT_EQ(Backward(p, none, none, 0).size(), 0);
  }
}

TEST_P(SoftmaxTest, IntegersAreRefused) {
  EXPECT_FALSE(NewPrimitive<SoftmaxFactory>(GetParam(), {.dtype = DType::kInt32}).ok());
}

INSTANTIATE_TEST_SUITE_P(, SoftmaxTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
