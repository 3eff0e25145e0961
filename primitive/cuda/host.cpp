// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/host.h"

#include <atomic>
#include <cstring>
#include <limits>

#include "primitive/cuda/architecture.h"

namespace oneflow_lite::cuda {
namespace {

// As C++ converts; a floating number outside an integer's range becomes the smallest int64 (int32
// on the way to narrower integers), as in the copy primitive.
template <class T>
T CastScalar(const Scalar& s) {
  if constexpr (std::is_same_v<T, bool>) {
    return s.is_float() ? s.to<double>() != 0 : s.to<int64_t>() != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (!s.is_float()) return static_cast<T>(s.to<int64_t>());
    using Wide = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr double kLow = static_cast<double>(std::numeric_limits<Wide>::min());
    const double v = s.to<double>();
    return static_cast<T>(v >= kLow && v < -kLow ? static_cast<Wide>(v)
                                                 : std::numeric_limits<Wide>::min());
  } else {
    return s.to<T>();
  }
}

// False where the driver cannot say: it cannot run the code then either.
bool AskForClusterCode(int device) {
  DeviceGuard guard(device);
  int architecture = 0;
  const bool known = CudaStatus(FindArchitecture(&architecture), "device query").ok();
  return known && architecture >= kFirstWithClusters;
}

}  // namespace

bool HasClusterCode(int device) {
  enum : char { kUnknown, kHas, kHasNot };
  static std::atomic<char> answers[64];
  if (device < 0 || device >= 64) return AskForClusterCode(device);
  std::atomic<char>& answer = answers[device];
  if (answer.load(std::memory_order_relaxed) == kUnknown) {
    answer.store(AskForClusterCode(device) ? kHas : kHasNot, std::memory_order_relaxed);
  }
  return answer.load(std::memory_order_relaxed) == kHas;
}

ScalarBits BitsOf(const Scalar& scalar, DType dtype) {
  return VisitAll(dtype, [&]<class T>(Tag<T>) {
    const T value = CastScalar<T>(scalar);
    ScalarBits bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  });
}

}  // namespace oneflow_lite::cuda
