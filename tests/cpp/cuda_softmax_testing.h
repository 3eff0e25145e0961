// SPDX-License-Identifier: Apache-2.0
//
// What the tests of softmax on CUDA share: the promised bounds, references in float64 on the CPU,
// and a fixture that runs both directions between guards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "case_limit.h"
#include "claimed_device.h"
#include "oneflow_lite/core/device_backend.h"
#include "primitive/softmax.h"

namespace oneflow_lite {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

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
      auto p = test->backend_->Allocate((n + offset) * sizeof(T), *test->stream_);
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
  // Seven rows: an ordinary one, -inf alone, +inf, NaN, -inf but for one, -inf for a slice (whole
  // warps, blocks), and one element far above the others.
  std::vector<T> SpecialRows(const Shape3& s) {
    std::vector<T> x = RandomValues(s.numel(), 2);
    const auto row = [&](int r) { return x.begin() + r * s.cols; };
    std::fill_n(row(1), s.cols, FromDouble<T>(-kInf));
    *row(2) = FromDouble<T>(kInf);
    *(row(3) + s.cols - 1) = FromDouble<T>(std::nan(""));
    std::fill_n(row(4), s.cols - 1, FromDouble<T>(-kInf));
    std::fill_n(row(5), s.cols / 2, FromDouble<T>(-kInf));
    std::fill_n(row(6), s.cols, FromDouble<T>(-1e4));
    *(row(6) + s.cols / 2) = FromDouble<T>(1e4);
    return x;
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
    RunBoth(s, RandomValues(s.numel(), 2), RandomValues(s.numel(), 1), x_offset, y_offset, {1, s});
  }
  // The same over copies of `distinct` rows. Of whole packs they must come out alike, so that the
  // reference takes as long as those alone; others lie at different offsets.
  void RunRepeated(int64_t rows, int64_t cols, int64_t distinct) {
    if (LeftOut(DTypeOf<T>(), rows * cols)) return;
    ASSERT_EQ(rows % distinct, 0);
    const Repeated copies{rows / distinct, {distinct, cols}};
    const int64_t n = distinct * cols;
    const std::vector<T> x = copies.Of(RandomValues(n, 2)), dy = copies.Of(RandomValues(n, 1));
    const Shape3 s{rows, cols};
    RunBoth(s, x, dy, 0, 0, cols % kPack == 0 ? copies : Repeated{1, s});
  }

  DeviceBackend* backend_ = nullptr;
  Ref<Stream> stream_;
  std::unique_ptr<Softmax> forward_[2];
  std::unique_ptr<SoftmaxBackward> backward_[2];
  std::mt19937 random_{123};

 private:
  // So many copies of `part`, one after the other.
  struct Repeated {
    int64_t times;
    Shape3 part;

    std::vector<T> Of(const std::vector<T>& values) const {
      std::vector<T> all;
      all.reserve(values.size() * times);
      for (int64_t i = 0; i < times; ++i) all.insert(all.end(), values.begin(), values.end());
      return all;
    }
    void ExpectIn(const std::vector<T>& all) const {
      const int64_t n = part.numel();
      for (int64_t i = 1; i < times; ++i) {
        ASSERT_EQ(std::memcmp(&all[0], &all[i * n], n * sizeof(T)), 0) << "copy " << i;
      }
    }
  };

  void RunBoth(const Shape3& s, const std::vector<T>& x, const std::vector<T>& dy, int64_t x_offset,
               int64_t y_offset, const Repeated& repeated) {
    const SoftmaxShape shape{.rows = s.rows, .cols = s.cols, .inner = s.inner};
    Buffer bx(this, s.numel(), x_offset), by(this, s.numel(), y_offset);
    Buffer bdy(this, s.numel(), x_offset), bdx(this, s.numel(), y_offset);
    bx.Write(x);
    bdy.Write(dy);
    for (const bool log : {false, true}) {
      for (const bool with_workspace : {false, true}) {
        SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols << " x " << s.inner << ", log "
                                        << log << ", workspace " << with_workspace);
        const size_t needed = std::max(forward_[log]->WorkspaceBytes(*this->stream_, shape),
                                       backward_[log]->WorkspaceBytes(*this->stream_, shape));
        if (with_workspace && needed == 0) continue;
        Buffer workspace(this, static_cast<int64_t>(needed / sizeof(T)), 0);
        void* w = with_workspace ? workspace.data : nullptr;
        by.Write(Poison(s.numel()));
        Status status = forward_[log]->Launch(*stream_, shape, bx.data, by.data, w);
        ASSERT_TRUE(status.ok()) << status;
        const std::vector<T> y = by.Read();
        CheckForward(log, repeated.part, x, y);
        repeated.ExpectIn(y);
        bdx.Write(Poison(s.numel()));
        status = backward_[log]->Launch(*stream_, shape, by.data, bdy.data, bdx.data, w);
        ASSERT_TRUE(status.ok()) << status;
        const std::vector<T> dx = bdx.Read();
        CheckBackward(log, repeated.part, y, dy, dx);
        repeated.ExpectIn(dx);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
};

}  // namespace oneflow_lite
