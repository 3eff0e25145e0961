// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the primitives share: one fixture per device type, device memory with guards
// around it, and elements of any dtype as numbers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "case_limit.h"
#include "claimed_device.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/elementwise.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// All floating dtypes, less those that the environment leaves out.
inline const std::vector<DType> kFloatingTypes = [] {
  std::vector<DType> types;
  for (DType t : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    if (!LeftOut(t, 0)) types.push_back(t);
  }
  return types;
}();
inline constexpr DType kAllTypes[] = {
    DType::kBool,  DType::kUInt8,   DType::kInt8,     DType::kInt16,   DType::kInt32,
    DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

// Elements of one dtype on the host, read and written as numbers.
class HostArray {
 public:
  HostArray(DType dtype, int64_t n) : dtype(dtype), bytes(static_cast<size_t>(n) * SizeOf(dtype)) {}

  int64_t size() const { return static_cast<int64_t>(bytes.size() / SizeOf(dtype)); }
  double Float(int64_t i) const {
    return VisitAll(dtype, [&]<class T>(Tag<T>) -> double {
      return static_cast<double>(static_cast<ComputeOf<T>>(At<T>(i)));
    });
  }
  int64_t Int(int64_t i) const {
    return VisitAll(dtype, [&]<class T>(Tag<T>) -> int64_t {
      if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(At<T>(i));
      return static_cast<int64_t>(Float(i));
    });
  }
  // Rounds to the dtype. Precondition: an integer dtype can hold the value.
  void Set(int64_t i, double v) {
    VisitAll(dtype, [&]<class T>(Tag<T>) { Put(i, static_cast<T>(static_cast<ComputeOf<T>>(v))); });
  }
  // Keeps the low bits; to bool, v != 0.
  void SetInt(int64_t i, int64_t v) {
    VisitAll(dtype, [&]<class T>(Tag<T>) { Put(i, static_cast<T>(static_cast<ComputeOf<T>>(v))); });
  }
  // All elements as numbers, and all elements from numbers: quicker than one by one.
  std::vector<double> Floats() const {
    std::vector<double> values(size());
    VisitAll(dtype, [&]<class T>(Tag<T>) {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>(static_cast<ComputeOf<T>>(At<T>(i)));
      }
    });
    return values;
  }
  template <class F>
  void SetAll(F value_at) {
    VisitAll(dtype, [&]<class T>(Tag<T>) {
      const int64_t n = size();
      for (int64_t i = 0; i < n; ++i)
        Put(i, static_cast<T>(static_cast<ComputeOf<T>>(value_at(i))));
    });
  }
  bool operator==(const HostArray& o) const { return dtype == o.dtype && bytes == o.bytes; }

  DType dtype;
  std::vector<char> bytes;

 private:
  template <class T>
  T At(int64_t i) const {
    T v;
    std::memcpy(static_cast<void*>(&v), bytes.data() + i * sizeof(T), sizeof(T));
    return v;
  }
  template <class T>
  void Put(int64_t i, T v) {
    std::memcpy(bytes.data() + i * sizeof(T), static_cast<const void*>(&v), sizeof(T));
  }
};

// The distance between neighbouring values of a floating dtype near v.
inline double StepOf(DType dtype, double v) {
  const int mantissa = dtype == DType::kFloat16    ? 10
                       : dtype == DType::kBFloat16 ? 7
                       : dtype == DType::kFloat32  ? 23
                                                   : 52;
  const int lowest = dtype == DType::kFloat16 ? -14 : dtype == DType::kFloat64 ? -1022 : -126;
  const int exponent = v == 0 || !std::isfinite(v) ? lowest : std::max(lowest, std::ilogb(v));
  return std::ldexp(1.0, exponent - mantissa);
}

// What one element of an elementwise op may be off by: 4e-6 relative in float32 (subnormals: one
// step), and one step of the dtype more.
inline double ElementTolerance(DType dtype, double want) {
  return (dtype == DType::kFloat64 ? 4e-15 : 4e-6) * std::abs(want) + StepOf(dtype, want);
}

// Numbers that differ from run to run of nothing: a fixed seed.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : generator_(seed) {}
  double Normal() { return normal_(generator_); }
  int64_t Int(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator_);
  }
  HostArray NormalArray(DType dtype, int64_t n, double scale = 1, double mean = 0) {
    HostArray a(dtype, n);
    a.SetAll([&](int64_t) { return mean + scale * Normal(); });
    return a;
  }
  // Small integers, negative ones too where the dtype has them; bool 0 and 1; floats normal.
  HostArray AnyArray(DType dtype, int64_t n) {
    if (IsFloating(dtype)) return NormalArray(dtype, n, 3);
    HostArray a(dtype, n);
    const bool is_unsigned = dtype == DType::kBool || dtype == DType::kUInt8;
    const int64_t high = dtype == DType::kBool ? 1 : 127;
    for (int64_t i = 0; i < n; ++i) a.SetInt(i, Int(is_unsigned ? 0 : -128, high));
    return a;
  }

 private:
  std::mt19937 generator_;
  std::normal_distribution<double> normal_;
};

class PrimitiveTest : public testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    auto backend = GetBackend(Device{GetParam(), 0});
    if (!backend.ok()) {
      GTEST_SKIP() << std::string(backend.status().message());
    }
    backend_ = *backend;
    claimed_ = AsClaimed(Ref<Stream>(*CurrentStream(Device{GetParam(), 0})));
    stream_ = claimed_.get();
  }

  template <class F>
  std::unique_ptr<typename F::Product> New(const typename F::Spec& spec) {
    auto primitive = NewPrimitive<F>(GetParam(), spec);
    EXPECT_TRUE(primitive.ok()) << primitive.status();
    return primitive.ok() ? std::move(primitive).value() : nullptr;
  }

  // Device memory for n elements, `offset` elements behind an aligned address, between guards;
  // all of it is filled with a pattern that is NaN in every floating dtype.
  class Buffer {
   public:
    Buffer(PrimitiveTest& test, DType dtype, int64_t n, int64_t offset = 0)
        : test_(test), dtype_(dtype), n_(n), skip_(kGuard + offset * SizeOf(dtype)) {
      total_ = skip_ + static_cast<size_t>(n) * SizeOf(dtype) + GuardBehind();
      base_ = static_cast<char*>(test.backend_->Allocate(total_, *test.stream_).value());
      const std::vector<char> poison(total_, kPoison);
      EXPECT_TRUE(test.backend_->CopyFromHost(base_, poison.data(), total_, *test.stream_).ok());
    }
    Buffer(PrimitiveTest& test, const HostArray& content, int64_t offset = 0)
        : Buffer(test, content.dtype, content.size(), offset) {
      if (content.bytes.empty()) return;
      EXPECT_TRUE(
          test.backend_
              ->CopyFromHost(data(), content.bytes.data(), content.bytes.size(), *test.stream_)
              .ok());
    }
    ~Buffer() { test_.backend_->Free(base_, total_, Device{test_.GetParam(), 0}); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    void* data() const { return base_ + skip_; }
    // The content; fails the test where the guards were written to.
    HostArray Read() const {
      std::vector<char> all(total_);
      EXPECT_TRUE(test_.stream_->Synchronize().ok());
      EXPECT_TRUE(test_.backend_->CopyToHost(all.data(), base_, total_, *test_.stream_).ok());
      HostArray content(dtype_, n_);
      const size_t end = skip_ + content.bytes.size();
      std::copy(all.begin() + skip_, all.begin() + end, content.bytes.begin());
      const auto is_poison = [](char c) { return c == kPoison; };
      EXPECT_TRUE(std::all_of(all.begin(), all.begin() + skip_, is_poison)) << "written before";
      EXPECT_TRUE(std::all_of(all.begin() + end, all.end(), is_poison)) << "written behind";
      return content;
    }

   private:
    static constexpr size_t kGuard = 256;
    // None where compute-sanitizer is to see what is read behind the memory.
    static size_t GuardBehind() {
      const char* uncached = std::getenv("OFL_NO_CUDA_MEMORY_CACHING");
      return uncached && std::string(uncached) == "1" ? 0 : kGuard;
    }
    static constexpr char kPoison = '\xff';
    PrimitiveTest& test_;
    DType dtype_;
    int64_t n_;
    size_t skip_, total_;
    char* base_;
  };

  // Workspace of the size a primitive asks for.
  class Workspace {
   public:
    Workspace(PrimitiveTest& test, size_t bytes) : buffer_(test, DType::kUInt8, bytes + 1) {}
    void* data() const { return buffer_.data(); }

   private:
    Buffer buffer_;
  };

  DeviceBackend* backend_ = nullptr;
  Ref<Stream> claimed_;
  Stream* stream_ = nullptr;
};

// Compares as numbers: NaN with NaN, infinities with themselves, else |got - want| <= tolerance(i).
template <class Tolerance>
void ExpectNear(const HostArray& got, const std::vector<double>& want, Tolerance tolerance,
                const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(want.size())) << what;
  const std::vector<double> values = got.Floats();
  int shown = 0;
  for (int64_t i = 0; i < got.size() && shown < 3; ++i) {
    const double g = values[i], w = want[i];
    const bool same = std::isnan(w)   ? std::isnan(g)
                      : std::isinf(w) ? g == w
                                      : std::abs(g - w) <= tolerance(i);
    if (same) continue;
    ++shown;
    ADD_FAILURE() << what << " (" << Name(got.dtype) << "), element " << i << " of " << got.size()
                  << ": got " << g << ", want " << w;
  }
}

inline std::string DeviceName(const testing::TestParamInfo<DeviceType>& info) {
  return Name(info.param);
}

}  // namespace oneflow_lite
