// SPDX-License-Identifier: Apache-2.0
//
// Dropout: elements, or whole channels, replaced at random. One op each way; no mask is kept.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Dropout(x, 0.1, training));
#pragma once

#include "oneflow_lite/core/generator.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Elements set to 0 with probability p, the others times 1 / (1 - p); x itself where not training
// or p is 0. ValueError for p outside [0, 1], DTypeError for integers and bool.
OFL_API StatusOr<Tensor> Dropout(const Tensor& x, double p = 0.5, bool training = true,
                                 bool inplace = false, Ref<Generator> generator = {});
// Channels [n, c, ...] as a whole; of [c, length] for Dropout1d and [c, d, h, w] for Dropout3d too.
OFL_API StatusOr<Tensor> Dropout1d(const Tensor& x, double p = 0.5, bool training = true,
                                   bool inplace = false, Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> Dropout2d(const Tensor& x, double p = 0.5, bool training = true,
                                   bool inplace = false, Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> Dropout3d(const Tensor& x, double p = 0.5, bool training = true,
                                   bool inplace = false, Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> FeatureDropout(const Tensor& x, double p = 0.5, bool training = true,
                                        Ref<Generator> generator = {});
// What keeps mean 0 and variance 1, for selu: Klambauer, Unterthiner, Mayr, Hochreiter,
// "Self-Normalizing Neural Networks" (2017).
OFL_API StatusOr<Tensor> AlphaDropout(const Tensor& x, double p = 0.5, bool training = false,
                                      bool inplace = false, Ref<Generator> generator = {});
OFL_API StatusOr<Tensor> FeatureAlphaDropout(const Tensor& x, double p = 0.5, bool training = false,
                                             bool inplace = false, Ref<Generator> generator = {});

// dy scale where the dropout with these `drawn` kept, else 0.
OFL_API StatusOr<Tensor> DropoutBackward(const Tensor& dy, const Tensor& drawn, double p,
                                         double scale, int64_t inner);

}  // namespace oneflow_lite::functional
