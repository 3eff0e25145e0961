// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/output_layout.h"

#include <unordered_set>
#include <utility>

namespace oneflow_lite {
namespace {

// Filled while the program starts, and only read from then on.
std::unordered_set<std::string>& Ops() {
  static auto* const ops = new std::unordered_set<std::string>;
  return *ops;
}

// The stride of an input along a dim of the output, 0 where it is repeated.
int64_t StrideAlong(const Tensor& t, const Shape& shape, int d) {
  const int own = d - (shape.ndim() - t.ndim());
  return own < 0 || t.shape()[own] != shape[d] ? 0 : t.strides()[own];
}

// Whether dim `inner` of the output should lie outside of `outer`: more than 0 if so, less than 0
// if not, 0 where no input tells.
int IsWrongOrder(absl::Span<const Tensor> inputs, const Shape& shape, int outer, int inner) {
  for (const Tensor& t : inputs) {
    if (!t.defined()) continue;
    const int64_t x = StrideAlong(t, shape, outer), y = StrideAlong(t, shape, inner);
    if (x == 0 || y == 0) continue;
    if (x != y) return x < y ? 1 : -1;
    if (shape[outer] < shape[inner]) return 1;
  }
  return 0;
}

}  // namespace

Dims StridesLike(absl::Span<const Tensor> inputs, const Shape& shape) {
  const int ndim = shape.ndim();
  Dims order(ndim);  // outermost first
  bool moved = false;
  for (int i = ndim - 1; i >= 0; --i) {  // by insertion from the innermost dim on
    order[i] = i;
    for (int k = i, at = i + 1; at < ndim; ++at) {
      const int wrong =
          IsWrongOrder(inputs, shape, static_cast<int>(order[k]), static_cast<int>(order[at]));
      if (wrong < 0) break;
      if (wrong == 0) continue;
      std::swap(order[k], order[at]);
      k = at;
      moved = true;
    }
  }
  if (!moved) return {};
  Dims strides(ndim, 1);
  int64_t next = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    strides[order[i]] = next;
    next *= shape[static_cast<int>(order[i])];
  }
  return strides;
}

bool internal::KeepLayout(std::string op) { return Ops().insert(std::move(op)).second; }
bool internal::KeepsLayout(const std::string& op) { return Ops().count(op) > 0; }

}  // namespace oneflow_lite
