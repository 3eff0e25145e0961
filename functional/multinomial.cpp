// SPDX-License-Identifier: Apache-2.0
#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/random.h"
#include "functional/reduce.h"
#include "functional/scan.h"
#include "functional/select.h"
#include "functional/sort.h"
#include "functional/unary.h"
#include "functional/view.h"

namespace oneflow_lite::functional {
namespace {

constexpr char kName[] = "multinomial";

// ValueError for weights that no draw can follow.
Status CheckWeights(const Tensor& weights, int64_t needed) {
  OFL_ASSIGN_OR_RETURN(const Tensor positive, Gt(weights, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(const Tensor places, Sum(positive, Dims{-1}));
  OFL_ASSIGN_OR_RETURN(const Tensor enough, Ge(places, Scalar(needed)));
  OFL_ASSIGN_OR_RETURN(const Tensor all_enough, All(enough));
  OFL_ASSIGN_OR_RETURN(const Tensor not_negative, Ge(weights, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(const Tensor finite, IsFinite(weights));
  OFL_ASSIGN_OR_RETURN(const Tensor sound, LogicalAnd(not_negative, finite));
  OFL_ASSIGN_OR_RETURN(const Tensor all_sound, All(sound));
  OFL_ASSIGN_OR_RETURN(const Tensor both, LogicalAnd(all_enough, all_sound));
  OFL_ASSIGN_OR_RETURN(const bool valid, ValueOf<bool>(kName, both));
  if (valid) return OkStatus();
  return Error(ErrorKind::kValue, kName, "(): input must be finite and not negative, with ", needed,
               " or more places in each row that are not 0");
}

// Of exponential times with these rates the first ones.
StatusOr<Tensor> FirstOnes(const Tensor& weights, int64_t count, Ref<Generator> generator) {
  OFL_ASSIGN_OR_RETURN(const Tensor times,
                       Empty(weights.shape(), DType::kFloat64, weights.device()));
  OFL_RETURN_IF_ERROR(ExponentialInto(times, 1, std::move(generator)).status());
  OFL_ASSIGN_OR_RETURN(const Tensor rates, Div(weights, times));
  OFL_ASSIGN_OR_RETURN(const Tensor positive, Gt(weights, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(const Tensor keys, Where(positive, rates, Scalar(-1.0)));
  OFL_ASSIGN_OR_RETURN(const TensorList found, TopK(keys, count));
  return found[1];
}

}  // namespace

StatusOr<Tensor> Multinomial(const Tensor& x, int64_t count, bool replacement,
                             Ref<Generator> generator) {
  if (!x.defined()) return NotDefined(kName, "input");
  if (x.ndim() != 1 && x.ndim() != 2) {
    return ShapeMismatch(kName, "input", x.shape(), "1 or 2 dims");
  }
  if (count < 1) {
    return Error(ErrorKind::kValue, kName, "(): num_samples is ", count,
                 ", but it must be positive");
  }
  OFL_ASSIGN_OR_RETURN(const Tensor weights, Cast(x.Detach(), DType::kFloat64));
  OFL_RETURN_IF_ERROR(CheckWeights(weights, replacement ? 1 : count));
  if (!replacement) return FirstOnes(weights, count, std::move(generator));
  OFL_ASSIGN_OR_RETURN(const Tensor sums, CumSum(weights, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor total, Narrow(sums, -1, x.shape()[x.ndim() - 1] - 1, 1));
  Dims size = x.shape().dims();
  size.back() = count;
  OFL_ASSIGN_OR_RETURN(Tensor drawn, Rand(size, std::move(generator), DType::kFloat64, x.device()));
  OFL_ASSIGN_OR_RETURN(drawn, Mul(drawn, total));
  OFL_ASSIGN_OR_RETURN(drawn, Unsqueeze(drawn, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor rows, Unsqueeze(sums, -2));
  OFL_ASSIGN_OR_RETURN(const Tensor passed, Le(rows, drawn));
  OFL_ASSIGN_OR_RETURN(const Tensor places, Sum(passed, Dims{-1}));
  // Where drawn was rounded up to the total.
  OFL_ASSIGN_OR_RETURN(const Tensor inner, Lt(sums, total));
  OFL_ASSIGN_OR_RETURN(const Tensor last, Sum(inner, Dims{-1}, true));
  return Minimum(places, last);
}

}  // namespace oneflow_lite::functional
