// SPDX-License-Identifier: Apache-2.0
//
// Random numbers beside those of creation.h: overwriting with a distribution's, integers, places.
// They come from the generator given or the device's; every device draws the same.
//
//   OFL_RETURN_IF_ERROR(functional::NormalInto(weight, 0, 0.02).status());
#pragma once

#include <optional>

#include "oneflow_lite/core/generator.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Where a call's numbers start in its generator's sequence.
struct DrawnPlace {
  int64_t seed = 0, offset = 0;
};
// Takes the counters (core/generator.h) that n elements want, `per_counter` of them each.
// RuntimeError in a captured graph, whose replays take their numbers from the default generator
// alone, for another one.
OFL_API StatusOr<DrawnPlace> TakeNumbers(Ref<Generator> generator, Device device, int64_t n,
                                         int64_t per_counter = 4);

// In place; they give self. ValueError for limits, deviations, rates and probabilities that are
// none; DTypeError for the first three where self is no float.
OFL_API StatusOr<Tensor> UniformInto(const Tensor& self, double a = 0, double b = 1,
                                     Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> NormalInto(const Tensor& self, double mean = 0, double std = 1,
                                    Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> ExponentialInto(const Tensor& self, double lambd = 1,
                                         Ref<Generator> generator = {});
// Integers from low on and below high, which are at most 2^32; OverflowError for some that self
// cannot hold. Without high: below low; without both, of all (at most 2^31) that self holds.
OFL_API StatusOr<Tensor> RandomInto(const Tensor& self, std::optional<int64_t> low = {},
                                    std::optional<int64_t> high = {},
                                    Ref<Generator> generator = {});
// 1 with probability p, else 0. Elements of p beyond [0, 1] or NaN are a ValueError on the CPU. On
// CUDA, for which no call waits, they count as the nearer of 0 and 1, NaN as 0; Bernoulli likewise.
OFL_API StatusOr<Tensor> BernoulliInto(const Tensor& self, double p = 0.5,
                                       Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> BernoulliInto(const Tensor& self, const Tensor& p,
                                       Ref<Generator> generator = {});

// Random numbers of Cauchy's distribution, and exp of normal ones, in floats; how many trials, each
// with probability p, it takes to the first success. ValueError where sigma or std is not positive,
// or p not in (0, 1).
OFL_API StatusOr<Tensor> CauchyInto(const Tensor& self, double median = 0, double sigma = 1,
                                    Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> LogNormalInto(const Tensor& self, double mean = 1, double std = 2,
                                       Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> GeometricInto(const Tensor& self, double p, Ref<Generator> generator = {});

// 1 with the probability that each element gives, or everywhere p, else 0; in x's dtype.
OFL_API StatusOr<Tensor> Bernoulli(const Tensor& x, std::optional<double> p = {},
                                   Ref<Generator> generator = {});
// Uniform integers from low on and below high; int64 where no dtype is given.
OFL_API StatusOr<Tensor> RandInt(int64_t low, int64_t high, absl::Span<const int64_t> size,
                                 Ref<Generator> generator = {}, std::optional<DType> dtype = {},
                                 std::optional<Device> device = {}, bool requires_grad = false);
// The same in x's shape, dtype and device; one number alone is `high`, from 0 on.
OFL_API StatusOr<Tensor> RandIntLike(const Tensor& x, std::optional<int64_t> low,
                                     std::optional<int64_t> high = {},
                                     Ref<Generator> generator = {}, std::optional<DType> dtype = {},
                                     std::optional<Device> device = {}, bool requires_grad = false);
// The integers below n in random order; int64 where no dtype is given.
OFL_API StatusOr<Tensor> RandPerm(int64_t n, Ref<Generator> generator = {},
                                  std::optional<DType> dtype = {},
                                  std::optional<Device> device = {}, bool requires_grad = false);
// Places (int64) drawn with the probability that stands there, up to a factor: `count` of a 1-D x,
// or of each row of a 2-D one. ValueError for something negative, infinite or NaN, and for rows
// with too few places that are not 0; looking for it waits for the device.
OFL_API StatusOr<Tensor> Multinomial(const Tensor& x, int64_t count, bool replacement = false,
                                     Ref<Generator> generator = {});

}  // namespace oneflow_lite::functional
