// SPDX-License-Identifier: Apache-2.0
//
// softmax on CUDA at the widths where its kernels change hands (primitive/cuda/row_policy.h),
// at odd offsets and with rows that must become NaN, against float64 on the CPU. Skips where there
// is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "case_limit.h"
#include "claimed_device.h"
#include "oneflow_lite/core/device_backend.h"
#include "primitive/softmax.h"

namespace oneflow_lite {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Shape3 {
  int64_t rows, cols, inner = 1;
  int64_t numel() const { return rows * cols * inner; }
};

// One step of T at |v|.
template <class T>
double StepAt(double v) {
  const int mantissa = std::is_same_v<T, float16>    ? 10
                       : std::is_same_v<T, bfloat16> ? 7
                       : std::is_same_v<T, float>    ? 23
                                                     : 52;
  const int lowest = std::is_same_v<T, float16> ? -14 : std::is_same_v<T, double> ? -1022 : -126;
  const int exponent = v == 0 ? lowest : std::max(lowest, std::ilogb(v));
  return std::ldexp(1.0, exponent - mantissa);
}

// What a result may be off by: float32 by 4e-6 of `scale` and by 1e-7, float64 likewise with its
// own precision, the 16-bit floats by one step of their type besides.
template <class T>
double Tolerance(double expected, double scale) {
  const double unit = std::is_same_v<T, double> ? 1e-13 : 4e-6;
  const double step = sizeof(T) == 2 ? StepAt<T>(expected) : 0;
  return step + unit * scale + (std::is_same_v<T, double> ? 1e-15 : 1e-7);
}

template <class T>
double ToDouble(T v) {
  if constexpr (sizeof(T) == 2)
    return static_cast<float>(v);
  else
    return v;
}
template <class T>
T FromDouble(double v) {
  if constexpr (sizeof(T) == 2)
    return T(static_cast<float>(v));
  else
    return static_cast<T>(v);
}

template <class T>
class CudaSoftmaxTest : public testing::Test {
 protected:
  static constexpr int64_t kPack = 16 / sizeof(T);

  void SetUp() override {
    const auto backend = GetBackend(DeviceType::kCUDA);
    if (!backend.ok()) GTEST_SKIP() << backend.status().message();
    backend_ = *backend;
    stream_ = AsClaimed(backend_->DefaultStream(0));
    for (const bool log : {false, true}) {
      const Softmax::Spec spec{.dtype = DTypeOf<T>(), .log = log};
      auto forward = NewPrimitive<SoftmaxFactory>(DeviceType::kCUDA, spec);
      auto backward = NewPrimitive<SoftmaxBackwardFactory>(DeviceType::kCUDA, spec);
      ASSERT_TRUE(forward.ok() && backward.ok());
      forward_[log] = *std::move(forward);
      backward_[log] = *std::move(backward);
    }
  }
  void TearDown() override { stream_ = nullptr; }

  // Device memory of n elements, `offset` elements past an aligned address.
  struct Buffer {
    Buffer(CudaSoftmaxTest* test, int64_t n, int64_t offset) : test(test), n(n) {
      auto p = test->backend_->Allocate((n + offset + 1) * sizeof(T), *test->stream_);
      EXPECT_TRUE(p.ok()) << p.status();
      base = p.ok() ? *p : nullptr;
      data = static_cast<T*>(base) + offset;
    }
    ~Buffer() { test->backend_->Free(base, 0, Device{DeviceType::kCUDA, 0}); }
    void Write(const std::vector<T>& host) {
      EXPECT_TRUE(
          test->backend_->CopyFromHost(data, host.data(), n * sizeof(T), *test->stream_).ok());
    }
    std::vector<T> Read() {
      std::vector<T> host(n);
      EXPECT_TRUE(
          test->backend_->CopyToHost(host.data(), data, n * sizeof(T), *test->stream_).ok());
      return host;
    }
    CudaSoftmaxTest* test;
    int64_t n;
    void* base;
    T* data;
  };

  std::vector<T> RandomValues(int64_t n, double scale) {
    std::vector<T> v(n);
    std::normal_distribution<float> normal(0, static_cast<float>(scale));
    for (T& e : v) e = FromDouble<T>(normal(random_));
    return v;
  }
  // Poison, so that elements that are not written show.
  std::vector<T> Poison(int64_t n) { return std::vector<T>(n, FromDouble<T>(-777)); }

  static void ExpectNear(double got, double expected, double tolerance, const Shape3& s,
                         int64_t i) {
    if (std::isnan(expected) ? std::isnan(got)
                             : got == expected || std::abs(got - expected) <= tolerance) {
      return;
    }
    ADD_FAILURE() << "element " << i << " of " << s.rows << " x " << s.cols << " x " << s.inner
                  << ": got " << got << ", expected " << expected << " +- " << tolerance;
  }

  static void CheckForward(bool log, const Shape3& s, const std::vector<T>& x,
                           const std::vector<T>& y) {
    for (int64_t r = 0; r < s.rows * s.inner; ++r) {
      const int64_t first = r / s.inner * s.cols * s.inner + r % s.inner;
      double max = -kInf, sum = 0;
      for (int64_t c = 0; c < s.cols; ++c) {
        const double v = ToDouble(x[first + c * s.inner]);
        max = std::isnan(v) || v > max ? v : max;
        if (std::isnan(max)) break;
      }
      for (int64_t c = 0; c < s.cols; ++c) sum += std::exp(ToDouble(x[first + c * s.inner]) - max);
      for (int64_t c = 0; c < s.cols; ++c) {
        const int64_t i = first + c * s.inner;
        const double d = ToDouble(x[i]) - max;
        const double expected = log ? d - std::log(sum) : std::exp(d) / sum;
        const double scale = log ? std::max(1.0, std::abs(expected)) : expected;
        ExpectNear(ToDouble(y[i]), expected, Tolerance<T>(expected, scale), s, i);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  static void CheckBackward(bool log, const Shape3& s, const std::vector<T>& y,
                            const std::vector<T>& dy, const std::vector<T>& dx) {
    for (int64_t r = 0; r < s.rows * s.inner; ++r) {
      const int64_t first = r / s.inner * s.cols * s.inner + r % s.inner;
      double sum = 0, terms = 0;
      for (int64_t c = 0; c < s.cols; ++c) {
        const int64_t i = first + c * s.inner;
        const double term = log ? ToDouble(dy[i]) : ToDouble(y[i]) * ToDouble(dy[i]);
        sum += term;
        terms += std::abs(term);
      }
      for (int64_t c = 0; c < s.cols; ++c) {
        const int64_t i = first + c * s.inner;
        const double p = log ? std::exp(ToDouble(y[i])) : ToDouble(y[i]);
        const double expected = log ? ToDouble(dy[i]) - p * sum : p * (ToDouble(dy[i]) - sum);
        const double scale = std::max(1.0, std::abs(expected)) + p * terms;
        ExpectNear(ToDouble(dx[i]), expected, Tolerance<T>(expected, scale), s, i);
        if (testing::Test::HasFailure()) return;
      }
    }
  }

  // Both directions, with and without workspace; input and output so many elements past alignment.
  void Run(const Shape3& s, int64_t x_offset = 0, int64_t y_offset = 0) {
    if (LeftOut(DTypeOf<T>(), s.numel())) return;
    const std::vector<T> x = RandomValues(s.numel(), 2), dy = RandomValues(s.numel(), 1);
    const SoftmaxShape shape{.rows = s.rows, .cols = s.cols, .inner = s.inner};
    Buffer bx(this, s.numel(), x_offset), by(this, s.numel(), y_offset);
    Buffer bdy(this, s.numel(), x_offset), bdx(this, s.numel(), y_offset);
    bx.Write(x);
    bdy.Write(dy);
    for (const bool log : {false, true}) {
      for (const bool with_workspace : {false, true}) {
        SCOPED_TRACE(testing::Message() << "log " << log << ", workspace " << with_workspace);
        const size_t needed = std::max(forward_[log]->WorkspaceBytes(*this->stream_, shape),
                                       backward_[log]->WorkspaceBytes(*this->stream_, shape));
        if (with_workspace && needed == 0) continue;
        Buffer workspace(this, static_cast<int64_t>(needed / sizeof(T)), 0);
        void* w = with_workspace ? workspace.data : nullptr;
        by.Write(Poison(s.numel()));
        Status status = forward_[log]->Launch(*stream_, shape, bx.data, by.data, w);
        ASSERT_TRUE(status.ok()) << status;
        const std::vector<T> y = by.Read();
        CheckForward(log, s, x, y);
        bdx.Write(Poison(s.numel()));
        status = backward_[log]->Launch(*stream_, shape, by.data, bdy.data, bdx.data, w);
        ASSERT_TRUE(status.ok()) << status;
        CheckBackward(log, s, y, dy, bdx.Read());
        if (testing::Test::HasFailure()) return;
      }
    }
  }

  DeviceBackend* backend_ = nullptr;
  Ref<Stream> stream_;
  std::unique_ptr<Softmax> forward_[2];
  std::unique_ptr<SoftmaxBackward> backward_[2];
  std::mt19937 random_{123};
};

struct DTypeNames {
  template <class T>
  static std::string GetName(int) {
    return Name(DTypeOf<T>());
  }
};
using Floats = testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(CudaSoftmaxTest, Floats, DTypeNames);

TYPED_TEST(CudaSoftmaxTest, NarrowRowsOfEveryWidth) {
  for (int64_t cols = 1; cols <= 40; ++cols) {
    this->Run({70, cols});
    if (this->HasFailure()) return;
  }
}

// The group tier: 4, 8, 16, 32 lanes, then 2, 3 (16-bit rows), 4, 8 packs per lane.
// Whole rows of up to 32 packs take two to a group, whose last may not be there.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundTheGroupTiersBoundaries) {
  for (int64_t packs : {4, 8, 16, 32, 64, 96, 128, 256}) {
    for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, packs * this->kPack + 1,
                         (packs + 1) * this->kPack - 1, (packs + 1) * this->kPack}) {
      this->Run({5, cols});
      if (this->HasFailure()) return;
    }
  }
}

// Enough rows to fill the device: a block's registers end at 4096 packs (512 threads of 8), for
// float64 and gradients at 2048; from there on clusters of 2 and 4 blocks hold a row. Whole rows
// change their kernels at 1280 and 2048 packs, in float32 at 256 and 3072; 5120 packs take 3
// blocks.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundTheBlockTiersBoundaries) {
  for (int64_t packs : {256, 384, 1280, 1408, 1536, 1792, 2048, 3072, 4096, 5120, 8192}) {
    for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, packs * this->kPack + 1,
                         (packs + 1) * this->kPack}) {
      this->Run({67, cols});
      if (this->HasFailure()) return;
    }
  }
}

// Gradients beyond the registers of 16 blocks, 28672 packs in half, 40960 in double, 49152 in
// float: the others wait in shared memory, and what is outside packs is read column by column.
TYPED_TEST(CudaSoftmaxTest, GradientsThatRegistersDoNotHold) {
  for (int64_t cols : {65536 * this->kPack, 65535 * this->kPack + 1, 50000 * this->kPack + 1}) {
    this->Run({3, cols});
    this->Run({3, cols}, 1, 1);
    if (this->HasFailure()) return;
  }
  this->Run({67, 28673 * this->kPack + 1});
}

// Rows of float32 by the ten thousand have kernels of 3 and 8 packs a thread, to 2304 packs and
// from 3073 to 4096: rows that repeat give what one of them gives.
TYPED_TEST(CudaSoftmaxTest, RowsByTheTenThousand) {
  using T = TypeParam;
  if (sizeof(T) != 4) return;
  const auto multiprocessors = this->stream_->properties().multiprocessors;
  for (const int64_t packs : {1024, 2304, 2305, 3073, 4096}) {
    const int64_t rows = 64 * multiprocessors, cols = packs * this->kPack, distinct = 4;
    if (LeftOut(DTypeOf<T>(), rows * cols)) continue;
    const std::vector<T> some = this->RandomValues(distinct * cols, 2);
    std::vector<T> x;
    for (int64_t r = 0; r < rows; r += distinct) x.insert(x.end(), some.begin(), some.end());
    typename TestFixture::Buffer bx(this, rows * cols, 0);
    bx.Write(x);
    const SoftmaxShape shape{.rows = rows, .cols = cols};
    for (const bool log : {false, true}) {
      SCOPED_TRACE(testing::Message() << "cols " << cols << ", log " << log);
      typename TestFixture::Buffer by(this, rows * cols, 0);
      by.Write(this->Poison(rows * cols));
      ASSERT_TRUE(
          this->forward_[log]->Launch(*this->stream_, shape, bx.data, by.data, nullptr).ok());
      const std::vector<T> y = by.Read();
      this->CheckForward(log, {distinct, cols}, some, y);
      if (this->HasFailure()) return;
      for (int64_t r = distinct; r < rows; r += distinct) {
        ASSERT_EQ(std::memcmp(&y[0], &y[r * cols], distinct * cols * sizeof(T)), 0) << r;
      }
    }
  }
}

// The same where input and output lie differently: columns of 4, 8 and 16 lanes, a warp up to 128
// packs, a block's registers up to 1536 (gradients) or 2304, then clusters of 2 and more.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundTheTiersBoundariesAtOddOffsets) {
  const auto run = [&](int64_t rows, int64_t cols) {
    this->Run({rows, cols}, 1, 0);
    this->Run({rows, cols}, 0, 1);
    this->Run({rows, cols}, this->kPack - 1, 1);
  };
  for (int64_t cols : {31, 32, 33, 63, 64, 65, 127, 128, 129, 130, 137, 255, 256, 257, 263, 264}) {
    run(37, cols);
    if (this->HasFailure()) return;
  }
  for (int64_t packs : {33, 64, 128, 192, 256, 1024, 1536, 2048, 2304, 3072, 4608, 8192}) {
    for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, (packs + 1) * this->kPack}) {
      run(67, cols);
      if (this->HasFailure()) return;
    }
  }
}

// Few rows: one block up to 512 packs, clusters of 4 to 16 blocks (256 packs a block at least) in
// registers up to 32768 or 65536 packs, gradients in registers and shared memory; from 65537 packs
// on, or 16384 where there are no clusters, the whole grid with workspace; without, 16 blocks'
// shared memory.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundTheClusterAndGridTiersBoundaries) {
  const auto shared = static_cast<int64_t>(this->stream_->properties().shared_memory_per_block);
  for (int64_t packs :
       {int64_t{257}, int64_t{512}, int64_t{1024}, int64_t{2048}, int64_t{4096}, int64_t{16384},
        int64_t{32768}, int64_t{65536}, 8 * ((72 << 10) - 3200) / int64_t{16},
        16 * (shared - 3200) / 32, 16 * (shared - 3200) / 16}) {
    for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, packs * this->kPack + 1,
                         (packs + 1) * this->kPack}) {
      this->Run({2, cols});
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(CudaSoftmaxTest, AwkwardAndVeryWideRows) {
  for (const Shape3& s :
       {Shape3{3, 1000}, Shape3{3, 4097}, Shape3{2, 50257}, Shape3{2, 128256}, Shape3{300, 5001},
        Shape3{67, 151936}, Shape3{1, 1000003}, Shape3{2, 1000003}}) {
    this->Run(s);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(CudaSoftmaxTest, OddOffsetsOfInputAndOutput) {
  for (int64_t cols : {1, 2, 5, 33, 257, 1000, 2049, 20001, 140001, 1000003}) {
    for (const auto& [x, y] : {std::pair{1, 0}, {0, 1}, {1, 1}, {3, 2}}) {
      this->Run({3, cols}, x, y);
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(CudaSoftmaxTest, AnAxisThatIsNotTheLast) {
  for (const Shape3& s :
       {Shape3{3, 5, 7}, Shape3{2, 1, 9}, Shape3{2, 1000, 64}, Shape3{1, 17, 4096},
        Shape3{2, 5000, 33}, Shape3{40, 3, 8}, Shape3{1, 20000, 16}, Shape3{3, 300, 2},
        Shape3{1200, 17, 3}, Shape3{1200, 40, 5}, Shape3{2, 9, 5003}}) {
    this->Run(s);
    this->Run(s, 1, 2);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(CudaSoftmaxTest, SpecialRowsStayAmongThemselves) {
  using T = TypeParam;
  for (int64_t cols : {1, 7, 64, 1000, 3000, 20000, 33000, 200000}) {
    const Shape3 s{7, cols};
    if (LeftOut(DTypeOf<T>(), s.numel())) continue;
    std::vector<T> x = this->RandomValues(s.numel(), 2);
    const auto row = [&](int r) { return x.begin() + r * cols; };
    std::fill_n(row(1), cols, FromDouble<T>(-kInf));
    *row(2) = FromDouble<T>(kInf);
    *(row(3) + cols - 1) = FromDouble<T>(std::nan(""));
    std::fill_n(row(4), cols - 1, FromDouble<T>(-kInf));  // all but one
    std::fill_n(row(5), cols / 2, FromDouble<T>(-kInf));  // a slice: whole warps, blocks
    std::fill_n(row(6), cols, FromDouble<T>(-1e4));
    *(row(6) + cols / 2) = FromDouble<T>(1e4);
    typename TestFixture::Buffer bx(this, s.numel(), 0);
    for (const bool log : {false, true}) {
      for (const bool with_workspace : {false, true}) {
        SCOPED_TRACE(testing::Message() << "cols " << cols << ", log " << log);
        const SoftmaxShape shape{.rows = s.rows, .cols = cols};
        const size_t needed = this->forward_[log]->WorkspaceBytes(*this->stream_, shape);
        typename TestFixture::Buffer workspace(this, static_cast<int64_t>(needed / sizeof(T)), 0);
        bx.Write(x);  // in place
        const Status status = this->forward_[log]->Launch(
            *this->stream_, shape, bx.data, bx.data, with_workspace ? workspace.data : nullptr);
        ASSERT_TRUE(status.ok()) << status;
        this->CheckForward(log, s, x, bx.Read());
        if (this->HasFailure()) return;
      }
    }
  }
}

TYPED_TEST(CudaSoftmaxTest, TheSameCallGivesTheSameBits) {
  using T = TypeParam;
  for (int64_t cols : {1000, 100000, 1000003}) {
    const Shape3 s{2, cols};
    if (LeftOut(DTypeOf<T>(), s.numel())) continue;
    const SoftmaxShape shape{.rows = s.rows, .cols = cols};
    typename TestFixture::Buffer x(this, s.numel(), 0), y(this, s.numel(), 0);
    typename TestFixture::Buffer w(
        this,
        static_cast<int64_t>(this->forward_[0]->WorkspaceBytes(*this->stream_, shape) / sizeof(T)),
        0);
    x.Write(this->RandomValues(s.numel(), 2));
    std::vector<T> first;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(this->forward_[0]->Launch(*this->stream_, shape, x.data, y.data, w.data).ok());
      const std::vector<T> again = y.Read();
      if (i == 0) first = again;
      EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(T)), 0);
    }
  }
}

TYPED_TEST(CudaSoftmaxTest, NothingHappensWhereThereIsNothing) {
  for (const SoftmaxShape& shape : {SoftmaxShape{.rows = 0, .cols = 5}, {.rows = 5, .cols = 0}}) {
    EXPECT_TRUE(this->forward_[0]->Launch(*this->stream_, shape, nullptr, nullptr, nullptr).ok());
    EXPECT_TRUE(
        this->backward_[0]->Launch(*this->stream_, shape, nullptr, nullptr, nullptr, nullptr).ok());
  }
}

// More than 2^31 elements in all: the last rows must be right too.
TEST(CudaSoftmaxSizeTest, MoreThanTwoToThe31Elements) {
  const auto backend = GetBackend(DeviceType::kCUDA);
  if (!backend.ok()) GTEST_SKIP() << backend.status().message();
  constexpr int64_t kCols = 64, kRows = (int64_t{1} << 31) / kCols + 1000, kTail = 500;
  const Ref<Stream> stream = (*backend)->DefaultStream(0);
  const auto memory = (*backend)->Allocate(kRows * kCols * sizeof(float16), *stream);
  if (!memory.ok()) GTEST_SKIP() << memory.status().message();
  auto* x = static_cast<float16*>(*memory);
  std::vector<float16> host(kTail * kCols);
  for (size_t i = 0; i < host.size(); ++i) host[i] = float16(static_cast<float>(i % 13));
  float16* tail = x + (kRows - kTail) * kCols;
  const size_t bytes = host.size() * sizeof(float16);
  ASSERT_TRUE((*backend)->CopyFromHost(tail, host.data(), bytes, *stream).ok());
  const auto softmax = NewPrimitive<SoftmaxFactory>(DeviceType::kCUDA, {.dtype = DType::kFloat16});
  ASSERT_TRUE(softmax.ok());
  ASSERT_TRUE((*softmax)->Launch(*stream, {.rows = kRows, .cols = kCols}, x, x, nullptr).ok());
  std::vector<float16> y(host.size());
  ASSERT_TRUE((*backend)->CopyToHost(y.data(), tail, bytes, *stream).ok());
  for (int64_t r = 0; r < kTail; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < kCols; ++c) sum += static_cast<float>(y[r * kCols + c]);
    ASSERT_NEAR(sum, 1, 2e-3) << "row " << r;
  }
  (*backend)->Free(x, 0, Device{DeviceType::kCUDA, 0});
  (*backend)->EmptyCache(0);
}

}  // namespace
}  // namespace oneflow_lite
