// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax, forward and backward, against float64 within the bounds of accuracy
// that the project promises, at widths around every dispatch boundary.
#include "primitive/softmax.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

// Around vectors, warps, blocks of registers and shared memory, parts of a split row.
constexpr int64_t kWidths[] = {1,    2,     3,     31,    32,    33,    63,    64,     65,
                               127,  128,   129,   255,   256,   257,   1000,  1023,   1024,
                               1025, 2047,  2048,  2049,  4095,  4096,  4097,  8191,   8192,
                               8193, 16384, 32768, 50257, 65535, 65536, 65537, 131072, 1000003};

struct Problem {
  SoftmaxShape shape;
  DType dtype;
  bool log;

  int64_t outer() const { return shape.rows; }
  int64_t size() const { return shape.rows * shape.cols * shape.inner; }
  std::string Describe() const {
    return std::string(log ? "log_softmax" : "softmax") + " of " + std::to_string(shape.rows) +
           " x " + std::to_string(shape.cols) + " x " + std::to_string(shape.inner);
  }
};

// Calls f(indices of one row's elements: first, stride) for each row.
template <class F>
void ForRows(const SoftmaxShape& s, F f) {
  for (int64_t o = 0; o < s.rows; ++o) {
    for (int64_t i = 0; i < s.inner; ++i) f(o * s.cols * s.inner + i, s.inner);
  }
}

std::vector<double> Reference(const Problem& p, const HostArray& x) {
  std::vector<double> y(p.size());
  ForRows(p.shape, [&](int64_t first, int64_t stride) {
    double max = -kInf;
    long double sum = 0;
    for (int64_t c = 0; c < p.shape.cols; ++c) max = std::max(max, x.Float(first + c * stride));
    for (int64_t c = 0; c < p.shape.cols; ++c) {
      y[first + c * stride] = x.Float(first + c * stride) - max;
      sum += std::exp(y[first + c * stride]);
    }
    const double log_sum = static_cast<double>(std::log(sum));
    for (int64_t c = 0; c < p.shape.cols; ++c) {
      double& v = y[first + c * stride];
      v = std::isnan(sum) ? kNan : p.log ? v - log_sum : std::exp(v) / static_cast<double>(sum);
    }
  });
  return y;
}

// `size` gets the larger of the two terms whose difference an element is: float32 cannot be more
// exact than those are.
std::vector<double> BackwardReference(const Problem& p, const HostArray& y, const HostArray& dy,
                                      std::vector<double>* size) {
  std::vector<double> dx(p.size());
  size->resize(p.size());
  ForRows(p.shape, [&](int64_t first, int64_t stride) {
    long double terms = 0;
    for (int64_t c = 0; c < p.shape.cols; ++c) {
      const int64_t i = first + c * stride;
      terms += p.log ? dy.Float(i) : y.Float(i) * dy.Float(i);
    }
    const double sum = static_cast<double>(terms);
    for (int64_t c = 0; c < p.shape.cols; ++c) {
      const int64_t i = first + c * stride;
      const double factor = p.log ? std::exp(y.Float(i)) : y.Float(i);
      dx[i] = p.log ? dy.Float(i) - factor * sum : factor * (dy.Float(i) - sum);
      (*size)[i] = std::max(std::abs(dx[i]), std::abs(factor * sum));
    }
  });
  return dx;
}

// float32: 4e-6 relative or 1e-7 absolute for softmax, 4e-6 * max(1, |y|) for the others; the
// 16-bit floats one step of theirs more; float64 1e-13.
double Tolerance(DType dtype, bool relative, double want) {
  const double size = std::abs(want);
  if (dtype == DType::kFloat64)
    return relative ? 1e-13 * size + 1e-300 : 1e-13 * std::max(1.0, size);
  const double base = relative ? std::max(4e-6 * size, 1e-7) : 4e-6 * std::max(1.0, size);
  return dtype == DType::kFloat32 ? base : base + StepOf(dtype, want);
}

class SoftmaxTest : public PrimitiveTest {
 protected:
  HostArray Forward(const Problem& p, const HostArray& x, int64_t offset, bool in_place = false) {
    auto softmax = New<SoftmaxFactory>({p.dtype, p.log});
    Buffer in(*this, x, offset), out(*this, p.dtype, p.size(), offset);
    Workspace workspace(*this, softmax->WorkspaceBytes(*stream_, p.shape));
    const Buffer& y = in_place ? in : out;
    const Status s = softmax->Launch(*stream_, p.shape, in.data(), y.data(), workspace.data());
    EXPECT_TRUE(s.ok()) << s << " " << p.Describe();
    return y.Read();
  }

  HostArray Backward(const Problem& p, const HostArray& y, const HostArray& dy, int64_t offset,
                     bool in_place = false) {
    auto backward = New<SoftmaxBackwardFactory>({p.dtype, p.log});
    Buffer in(*this, y, offset), grad(*this, dy, offset), out(*this, p.dtype, p.size(), offset);
    Workspace workspace(*this, backward->WorkspaceBytes(*stream_, p.shape));
    const Buffer& dx = in_place ? grad : out;
    const Status s =
        backward->Launch(*stream_, p.shape, in.data(), grad.data(), dx.data(), workspace.data());
    EXPECT_TRUE(s.ok()) << s << " " << p.Describe();
    return dx.Read();
  }

  // Forward and backward against the reference, and twice the same bits, in place too.
  void Check(const Problem& p, int64_t offset, uint32_t seed) {
    Numbers numbers(seed);
    const HostArray x = numbers.NormalArray(p.dtype, p.size(), 4);
    const HostArray y = Forward(p, x, offset);
    const std::vector<double> want = Reference(p, x);
    ExpectNear(
        y, want, [&](int64_t i) { return Tolerance(p.dtype, !p.log, want[i]); }, p.Describe());
    EXPECT_TRUE(Forward(p, x, offset, true) == y) << p.Describe() << ": in place differs";
    if (!p.log) CheckSums(p, y);

    const HostArray dy = numbers.NormalArray(p.dtype, p.size());
    const HostArray dx = Backward(p, y, dy, offset);
    std::vector<double> size;
    const std::vector<double> want_dx = BackwardReference(p, y, dy, &size);
    ExpectNear(
        dx, want_dx, [&](int64_t i) { return Tolerance(p.dtype, false, size[i]); },
        p.Describe() + " backward");
    EXPECT_TRUE(Backward(p, y, dy, offset, true) == dx) << p.Describe() << ": in place differs";
  }

  // Rows of `cols` with `pad` NaNs behind each.
  static HostArray Spread(const HostArray& x, int64_t cols, int64_t pad) {
    HostArray wide(x.dtype, x.size() / cols * (cols + pad));
    for (int64_t i = 0; i < wide.size(); ++i) {
      const int64_t row = i / (cols + pad), col = i % (cols + pad);
      wide.Set(i, col < cols ? x.Float(row * cols + col) : kNan);
    }
    return wide;
  }

  static HostArray Repeat(const HostArray& block, int64_t copies) {
    HostArray all(block.dtype, block.size() * copies);
    for (int64_t i = 0; i < copies; ++i) {
      std::copy(block.bytes.begin(), block.bytes.end(),
                all.bytes.begin() + i * static_cast<int64_t>(block.bytes.size()));
    }
    return all;
  }

  // The same bits on the CPU; on CUDA the number of rows may choose another kernel.
  static void CheckCopies(const HostArray& all, const HostArray& block, bool relative,
                          const std::string& what) {
    const int64_t copies = all.size() / block.size();
    if (all == Repeat(block, copies)) return;
    ASSERT_EQ(GetParam(), DeviceType::kCUDA) << what << ": not the same bits";
    for (int64_t i = 0; i < all.size(); ++i) {
      const double want = block.Float(i % block.size());
      ASSERT_NEAR(all.Float(i), want, 2 * Tolerance(all.dtype, relative, want)) << what << " " << i;
    }
  }

  static void CheckSums(const Problem& p, const HostArray& y) {
    if (p.shape.cols > 65536) return;
    const double bound = p.dtype == DType::kFloat16    ? 2e-3
                         : p.dtype == DType::kBFloat16 ? 2e-2
                                                       : 1e-5;
    ForRows(p.shape, [&](int64_t first, int64_t stride) {
      double sum = 0;
      for (int64_t c = 0; c < p.shape.cols; ++c) sum += y.Float(first + c * stride);
      EXPECT_NEAR(sum, 1, bound) << p.Describe();
    });
  }
};

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

TEST_P(SoftmaxTest, MiddleAxis) {
  constexpr SoftmaxShape kShapes[] = {{3, 5, 7},    {2, 33, 64},  {2, 1000, 17},  {1, 2049, 31},
                                      {2, 7, 1025}, {4, 1, 9},    {1, 4097, 129}, {1, 50257, 3},
                                      {5, 16, 2},   {1, 40, 513}, {64, 3, 100},   {1, 300, 2000}};
  if (!New<SoftmaxFactory>({})->has_axis_kernel()) GTEST_SKIP() << "transposed by the functor";
  for (const DType dtype : kFloatingTypes) {
    for (const SoftmaxShape& shape : kShapes) {
      for (const bool log : {false, true}) Check({shape, dtype, log}, shape.inner % 2, 3);
    }
  }
}

TEST_P(SoftmaxTest, NonFiniteRowsStayAlone) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : {1, 2, 5, 33, 64, 1000, 1025, 4097, 50257, 131072}) {
      for (const bool log : {false, true}) {
        const Problem p{{6, cols, 1}, dtype, log};
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

// A masked tail, a masked middle and a row with one finite entry: exactly 0 where masked.
TEST_P(SoftmaxTest, MaskedEntriesAreExactlyZero) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t cols : {2, 33, 1000, 4097, 50257, 200000}) {
      for (const bool log : {false, true}) {
        const Problem p{{3, cols, 1}, dtype, log};
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

// The same for another axis, which is merged from pieces in any case.
TEST_P(SoftmaxTest, MiddleAxisWithMasksAndNans) {
  if (!New<SoftmaxFactory>({})->has_axis_kernel()) GTEST_SKIP() << "transposed by the functor";
  for (const DType dtype : kFloatingTypes) {
    for (const bool log : {false, true}) {
      const Problem p{{2, 100, 37}, dtype, log};
      HostArray x = Numbers(14).NormalArray(dtype, p.size());
      const auto set = [&](int64_t column, int64_t begin, int64_t end, double v) {
        for (int64_t c = begin; c < end; ++c) x.Set(c * 37 + column, v);
      };
      set(0, 0, 40, -kInf);
      set(1, 20, 100, -kInf);
      set(2, 0, 100, -kInf);
      set(3, 50, 51, kInf);
      set(4, 99, 100, kNan);
      set(5, 0, 99, -kInf);
      set(6, 0, 60, -kInf);
      set(6, 3, 4, kNan);
      const std::vector<double> want = Reference(p, x);
      const auto tolerance = [&](int64_t i) {
        return want[i] == 0 ? 0.0 : Tolerance(dtype, !log, want[i]);
      };
      ExpectNear(Forward(p, x, 1), want, tolerance, p.Describe());
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
