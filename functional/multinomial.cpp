// SPDX-License-Identifier: Apache-2.0
#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/device_traits.h"
#include "functional/host_value.h"
#include "functional/random.h"
#include "functional/reduce.h"
#include "functional/scan.h"
#include "functional/searches.h"
#include "functional/select.h"
#include "functional/sort.h"
#include "functional/unary.h"
#include "functional/view.h"

namespace oneflow_lite::functional {
namespace {

constexpr char kName[] = "multinomial";

// ValueError for weights that no draw can follow, their sum being infinite among them.
Status CheckWeights(const Tensor& weights, int64_t needed) {
  if (!TakesPart(weights)) return OkStatus();
  bool valid = weights.ndim() > 1 && weights.shape()[0] == 0;  // no rows
  if (weights.numel() > 0) {
    OFL_ASSIGN_OR_RETURN(Tensor largest, Amax(weights, Dims{-1}));
    OFL_ASSIGN_OR_RETURN(largest, Cast(largest, DType::kFloat64));
    OFL_ASSIGN_OR_RETURN(const Tensor smallest, Amin(weights));
    OFL_ASSIGN_OR_RETURN(const Tensor not_negative, Ge(smallest, Scalar(0)));
    const auto places_of_row = static_cast<double>(weights.shape()[weights.ndim() - 1]);
    OFL_ASSIGN_OR_RETURN(const Tensor most, Mul(largest, Scalar(places_of_row)));
    OFL_ASSIGN_OR_RETURN(Tensor sound, IsFinite(most));
    OFL_ASSIGN_OR_RETURN(sound, LogicalAnd(sound, not_negative));
    Tensor enough;
    if (needed == 1) {
      OFL_ASSIGN_OR_RETURN(enough, Gt(largest, Scalar(0)));
    } else {
      OFL_ASSIGN_OR_RETURN(const Tensor positive, Gt(weights, Scalar(0)));
      OFL_ASSIGN_OR_RETURN(const Tensor places, Sum(positive, Dims{-1}));
      OFL_ASSIGN_OR_RETURN(enough, Ge(places, Scalar(needed)));
    }
    OFL_ASSIGN_OR_RETURN(sound, LogicalAnd(sound, enough));
    OFL_ASSIGN_OR_RETURN(sound, All(sound));
    OFL_ASSIGN_OR_RETURN(valid, ValueOf<bool>(kName, sound));
  }
  if (valid) return OkStatus();
  return Error(ErrorKind::kValue, kName,
               "(): input must be finite, its sum too, and not negative, with ", needed,
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

// How many sums of a row are less than each x of it, or, if `equal`, not more. Sums that never
// fall are searched.
StatusOr<Tensor> CountUpTo(const Tensor& sums, const Tensor& x, bool equal) {
  if (SumsNeverFall(sums)) {
    OFL_ASSIGN_OR_RETURN(const Tensor dense, Contiguous(x));
    return SearchSorted(sums, dense, /*right=*/equal);
  }
  OFL_ASSIGN_OR_RETURN(const Tensor sought, Unsqueeze(x, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor rows, Unsqueeze(sums, -2));
  OFL_ASSIGN_OR_RETURN(const Tensor passed, equal ? Le(rows, sought) : Lt(rows, sought));
  return Sum(passed, Dims{-1});
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
  OFL_RETURN_IF_ERROR(CheckWeights(x.Detach(), replacement ? 1 : count));
  OFL_ASSIGN_OR_RETURN(const Tensor weights, Cast(x.Detach(), DType::kFloat64));
  if (!replacement) return FirstOnes(weights, count, std::move(generator));
  OFL_ASSIGN_OR_RETURN(const Tensor sums, CumSum(weights, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor total, Narrow(sums, -1, x.shape()[x.ndim() - 1] - 1, 1));
  Dims size = x.shape().dims();
  size.back() = count;
  OFL_ASSIGN_OR_RETURN(Tensor drawn, Rand(size, std::move(generator), DType::kFloat64, x.device()));
  OFL_ASSIGN_OR_RETURN(drawn, Mul(drawn, total));
  // The first place whose sum is beyond; where drawn was rounded up to the total, the last one that
  // added to it.
  OFL_ASSIGN_OR_RETURN(const Tensor places, CountUpTo(sums, drawn, /*equal=*/true));
  OFL_ASSIGN_OR_RETURN(const Tensor last, CountUpTo(sums, total, /*equal=*/false));
  return Minimum(places, last);
}

}  // namespace oneflow_lite::functional
