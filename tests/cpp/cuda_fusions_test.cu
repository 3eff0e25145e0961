// SPDX-License-Identifier: Apache-2.0
//
// The ready-made functors of primitive/cuda/softmax/fusions.cuh and the documented example of a
// user's own, forward and backward, against double on the host. Skips where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <vector>

#include "primitive/cuda/softmax/fusions.cuh"
#include "primitive/cuda/softmax/softmax.cuh"
#include "tests/consumer/cuda/soft_cap.cuh"
#include "tests/cpp/row_boundaries.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// A width of every tier, even and odd.
constexpr int64_t kWidths[] = {1, 5, 33, 256, 1000, 2051, 8192, 40000};
constexpr int64_t kHeads = 3, kQueries = 7, kRows = 2 * kHeads * kQueries;

static_assert(kRowScratchBytes == kRowSharedScratchBytes, "the tests' boundaries follow it");

// n elements in the memory of the device, `offset` elements behind an aligned address.
template <class T>
class Array {
 public:
  explicit Array(int64_t n, int64_t offset = 0) : n_(n) {
    EXPECT_EQ(cudaMalloc(&base_, (n + offset) * sizeof(T)), cudaSuccess);
    data_ = static_cast<T*>(base_) + offset;
    EXPECT_EQ(cudaMemset(base_, 0xff, (n + offset) * sizeof(T)), cudaSuccess);
  }
  Array(const std::vector<double>& values, int64_t offset = 0) : Array(values.size(), offset) {
    const auto host = std::make_unique<T[]>(n_);
    for (int64_t i = 0; i < n_; ++i) host[i] = static_cast<T>(static_cast<float>(values[i]));
    EXPECT_EQ(cudaMemcpy(data_, host.get(), n_ * sizeof(T), cudaMemcpyDefault), cudaSuccess);
  }
  ~Array() { cudaFree(base_); }
  Array(const Array&) = delete;

  T* data() const { return data_; }
  std::vector<double> Read() const {
    const auto host = std::make_unique<T[]>(n_);
    EXPECT_EQ(cudaMemcpy(host.get(), data_, n_ * sizeof(T), cudaMemcpyDefault), cudaSuccess);
    std::vector<double> values;
    for (int64_t i = 0; i < n_; ++i) values.push_back(static_cast<float>(host[i]));
    return values;
  }

 private:
  int64_t n_;
  void* base_ = nullptr;
  T* data_ = nullptr;
};

// Numbers that every dtype here holds exactly.
std::vector<double> Numbers(int64_t n, unsigned seed) {
  std::srand(seed);
  std::vector<double> v(n);
  for (double& e : v) e = (std::rand() % 2049 - 1024) / 256.0;
  return v;
}

std::vector<double> SoftmaxRows(std::vector<double> v, int64_t cols) {
  for (size_t first = 0; first < v.size(); first += cols) {
    double max = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; ++c) max = std::fmax(max, v[first + c]);
    for (int64_t c = 0; c < cols; ++c) sum += v[first + c] = std::exp(v[first + c] - max);
    for (int64_t c = 0; c < cols; ++c) v[first + c] /= sum;
  }
  return v;
}

// y (dy - sum y dy)
std::vector<double> GradientRows(const std::vector<double>& y, const std::vector<double>& dy,
                                 int64_t cols) {
  std::vector<double> dx(y.size());
  for (size_t first = 0; first < y.size(); first += cols) {
    double sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += y[first + c] * dy[first + c];
    for (int64_t c = 0; c < cols; ++c) dx[first + c] = y[first + c] * (dy[first + c] - sum);
  }
  return dx;
}

// Within a step of float16, or float32's error, of a value or of the terms it is the difference of.
template <class T>
void ExpectNear(const std::vector<double>& got, const std::vector<double>& want, const char* what) {
  const double step = sizeof(T) == 2 ? 1e-3 : 4e-6;
  ASSERT_EQ(got.size(), want.size());
  int shown = 0;
  for (size_t i = 0; i < got.size() && shown < 3; ++i) {
    if (std::abs(got[i] - want[i]) <= step * std::abs(want[i]) + (sizeof(T) == 2 ? 1e-6 : 3e-7)) {
      continue;
    }
    ++shown;
    ADD_FAILURE() << what << ", element " << i << ": " << got[i] << ", expected " << want[i];
  }
}

// The same of y (dy - sum y dy) for any y: the sum of so many products is a term.
template <class T>
void ExpectWithin(const std::vector<double>& got, const std::vector<double>& want, int64_t cols,
                  const char* what) {
  const double step = sizeof(T) == 2 ? 1e-3 : 4e-6, terms = 16.0 * std::sqrt(double(cols));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], step * std::abs(want[i]) + 4e-6 * terms) << what << ", " << i;
  }
}

template <class T>
class FusionsTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU here";
    ASSERT_EQ(QueryDeviceLimits(0, &limits_), cudaSuccess);
  }
  template <class Load, class Store>
  void Forward(const Load& load, const Store& store, int64_t cols) {
    EXPECT_EQ(LaunchSoftmax<false>(load, store, kRows, cols, limits_, nullptr), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  template <class Load, class Store>
  void Backward(const Load& y, const Load& dy, const Store& dx, int64_t cols) {
    EXPECT_EQ(LaunchSoftmaxBackward<false>(y, dy, dx, kRows, cols, limits_, nullptr), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  DeviceLimits limits_;
};
using Types = testing::Types<float, __half>;
TYPED_TEST_SUITE(FusionsTest, Types);

TYPED_TEST(FusionsTest, TemperatureBiasAndMask) {
  using T = TypeParam;
  const float temperature = 1.6f;
  for (const int64_t cols : kWidths) {
    const auto x = Numbers(kRows * cols, 1), bias = Numbers(kQueries * cols, 2);
    std::vector<double> keep = Numbers(2 * cols, 3), scores(x.size());
    for (double& k : keep) k = k < 2;  // a mask of batches and keys
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        const double score = x[r * cols + c] / temperature + bias[r % kQueries * cols + c];
        const bool kept = c == 0 || keep[r / (kHeads * kQueries) * cols + c] != 0;
        scores[r * cols + c] = kept ? score : -INFINITY;
      }
    }
    keep[0] = keep[cols] = 1;
    const std::vector<double> want = SoftmaxRows(scores, cols);

    Array<T> dx_in(x, 1), db(bias), y(x.size(), 1);
    Array<bool> dk(keep);
    const int64_t dims[] = {2, kHeads, kQueries};
    const int64_t bias_strides[] = {0, 0, cols}, mask_strides[] = {cols, 0, 0};
    const ScaledLoad<DirectLoad<T>> scaled{{dx_in.data(), cols}, 1 / temperature};
    const BiasedLoad<decltype(scaled), T> biased{scaled, db.data(),
                                                 MakeRowBroadcast<uint32_t>(dims, bias_strides, 1)};
    const MaskedLoad<decltype(biased)> load{biased, dk.data(),
                                            MakeRowBroadcast<uint32_t>(dims, mask_strides, 1)};
    this->Forward(load, DirectStore<T>{y.data(), cols}, cols);
    ExpectNear<T>(y.Read(), want, "forward");

    const auto dy = Numbers(x.size(), 4);
    Array<T> ddy(dy), dx(x.size());
    std::vector<double> want_dx = GradientRows(y.Read(), dy, cols);
    for (double& v : want_dx) v /= temperature;
    this->Backward(DirectLoad<T>{y.data(), cols}, DirectLoad<T>{ddy.data(), cols},
                   ScaledStore<DirectStore<T>>{{dx.data(), cols}, 1 / temperature}, cols);
    ExpectNear<T>(dx.Read(), want_dx, "backward");
  }
}

TYPED_TEST(FusionsTest, Causal) {
  using T = TypeParam;
  for (const int64_t cols : kWidths) {
    if (cols < kQueries) continue;
    auto x = Numbers(kRows * cols, 5), dy = Numbers(kRows * cols, 6), scores = x;
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = cols - kQueries + r % kQueries + 1; c < cols; ++c) {
        scores[r * cols + c] = -INFINITY;
        x[r * cols + c] = dy[r * cols + c] = NAN;  // not to be looked at
      }
    }
    Array<T> dx_in(x), ddy(dy), y(x.size()), dx(x.size());
    const auto causal = MakeCausalRows<uint32_t>(kQueries, cols);
    const T nothing = static_cast<T>(0.0f), lowest = static_cast<T>(-INFINITY);
    using Load = CausalLoad<DirectLoad<T>>;
    this->Forward(Load{{dx_in.data(), cols}, causal, lowest}, DirectStore<T>{y.data(), cols}, cols);
    ExpectNear<T>(y.Read(), SoftmaxRows(scores, cols), "forward");
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = std::isnan(dy[i]) ? 0 : dy[i];
    this->Backward(Load{{y.data(), cols}, causal, nothing},
                   Load{{ddy.data(), cols}, causal, nothing}, DirectStore<T>{dx.data(), cols},
                   cols);
    ExpectNear<T>(dx.Read(), GradientRows(y.Read(), dy, cols), "backward");
  }
}

TYPED_TEST(FusionsTest, DropoutAgreesWithTheHost) {
  using T = TypeParam;
  const Dropout dropout{0.3f, 0x123456789abcdefull, 77};
  for (const int64_t cols : kWidths) {
    const auto x = Numbers(kRows * cols, 7), dy = Numbers(kRows * cols, 8);
    std::vector<double> factor(x.size());
    int64_t kept = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto bits = Philox(dropout.seed, dropout.offset + i / 4);
      const bool keep = UniformFloat(bits.v[i % 4]) >= dropout.rate;
      factor[i] = keep ? 1 / (1 - dropout.rate) : 0;
      kept += keep;
    }
    if (x.size() > 10000) {
      EXPECT_NEAR(kept / static_cast<double>(x.size()), 0.7, 0.02);
    }
    Array<T> dx_in(x, 1), ddy(dy), y(x.size(), 1), dropped(x.size(), 1), dx(x.size());
    using Saved = DirectStore<T>;
    const PairStore<Saved, DropoutStore<Saved>> store{{y.data(), cols},
                                                      {{dropped.data(), cols}, dropout, cols}};
    this->Forward(DirectLoad<T>{dx_in.data(), cols}, store, cols);
    std::vector<double> want = SoftmaxRows(x, cols), upstream = dy;
    ExpectNear<T>(y.Read(), want, "before dropout");
    for (size_t i = 0; i < want.size(); ++i) want[i] *= factor[i];
    ExpectNear<T>(dropped.Read(), want, "after dropout");

    for (size_t i = 0; i < upstream.size(); ++i) upstream[i] *= factor[i];
    using Load = DropoutLoad<DirectLoad<T>>;
    this->Backward(Load{{y.data(), cols}, {}, cols}, Load{{ddy.data(), cols}, dropout, cols},
                   DirectStore<T>{dx.data(), cols}, cols);
    ExpectNear<T>(dx.Read(), GradientRows(y.Read(), upstream, cols), "backward");
  }
}

TYPED_TEST(FusionsTest, Residual) {
  using T = TypeParam;
  for (const int64_t cols : kWidths) {
    const auto x = Numbers(kRows * cols, 9), residual = Numbers(kRows * cols, 10);
    Array<T> dx_in(x), r(residual, 3), y(x.size());
    const ResidualStore<DirectStore<T>, DirectLoad<T>> store{{y.data(), cols}, {r.data(), cols}};
    this->Forward(DirectLoad<T>{dx_in.data(), cols}, store, cols);
    std::vector<double> want = SoftmaxRows(x, cols);
    for (size_t i = 0; i < want.size(); ++i) want[i] += residual[i];
    ExpectNear<T>(y.Read(), want, "softmax + residual");
  }
}

// What is written has another type than what is read.
TYPED_TEST(FusionsTest, TypesThatDiffer) {
  using T = TypeParam;
  using Out = std::conditional_t<sizeof(T) == 2, float, __half>;
  for (const int64_t cols : kWidths) {
    const auto x = Numbers(kRows * cols, 9), dy = Numbers(kRows * cols, 10);
    for (const int64_t offset : {0, 1, 4}) {
      Array<T> dx_in(x, offset), ddy(dy, offset);
      Array<Out> y(x.size(), offset / 2), dx(x.size());
      this->Forward(DirectLoad<T>{dx_in.data(), cols}, DirectStore<Out>{y.data(), cols}, cols);
      ExpectNear<Out>(y.Read(), SoftmaxRows(x, cols), "forward");
      if constexpr (sizeof(T) == 4) {  // the other way compiles for as long, by the same functors
        this->Backward(DirectLoad<T>{dx_in.data(), cols}, DirectLoad<T>{ddy.data(), cols},
                       DirectStore<Out>{dx.data(), cols}, cols);
        ExpectWithin<Out>(dx.Read(), GradientRows(x, dy, cols), cols, "backward");
      }
    }
  }
}

TYPED_TEST(FusionsTest, AUsersOwnLoad) {
  for (const int64_t cols : kWidths) {
    auto x = Numbers(kRows * cols, 11);
    Array<__half> dx_in(x, 1), y(x.size());
    this->Forward(SoftCapLoad{{dx_in.data(), cols}, 2.5f}, DirectStore<__half>{y.data(), cols},
                  cols);
    for (double& v : x) v = 2.5 * std::tanh(v / 2.5);
    ExpectNear<__half>(y.Read(), SoftmaxRows(x, cols), "soft cap");
  }
}

}  // namespace
}  // namespace cuda
}  // namespace oneflow_lite
