// SPDX-License-Identifier: Apache-2.0
#include "ops/view_shards.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace oneflow_lite {
namespace {

// Some dims of one shape, which become those of another; none of size 1.
struct Group {
  absl::InlinedVector<int, 4> from, to;
};

// The dims of two shapes of equally many elements, at least one, in the smallest groups that have
// as many each.
absl::InlinedVector<Group, 4> GroupsOf(const Shape& in, const Dims& out) {
  absl::InlinedVector<Group, 4> groups;
  const int n = in.ndim(), m = static_cast<int>(out.size());
  int i = 0, j = 0;
  while (i < n || j < m) {
    Group group;
    int64_t a = 1, b = 1;
    do {
      const bool left = j == m || (i < n && a <= b);
      const int64_t size = left ? in[i] : out[j];
      if (size > 1) (left ? group.from : group.to).push_back(left ? i : j);
      (left ? a : b) *= size;
      ++(left ? i : j);
    } while (a != b);
    if (!group.from.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

// A part of the first dim of a group is a stretch of its elements, and so a part of the first dim
// that it becomes, where both sizes divide.
SbpSignatures ViewSignatures(const SbpContext& c) {
  SbpSignatures out;
  const Shape& in = c.inputs[0];
  const Dims& shape = c.attrs.get<Dims>(0);
  const bool empty = in.numel() == 0;  // then sizes do not say what becomes what
  const int most = std::min(in.ndim(), static_cast<int>(shape.size()));
  for (int d = 0; d < most && in[d] == shape[d]; ++d) {
    if (empty || in[d] == 1) out.push_back({{Sbp::Split(d)}, {Sbp::Split(d)}});
  }
  if (empty) return out;
  for (const Group& g : GroupsOf(in, shape)) {
    SbpSignature s{{Sbp::Split(g.from[0])}, {Sbp::Split(g.to[0])}};
    const bool stays = g.from.size() == 1 && g.to.size() == 1;
    if (!stays) s.divisible = std::gcd(in[g.from[0]], shape[g.to[0]]);
    out.push_back(std::move(s));
  }
  return out;
}

namespace {

constexpr int kBase = 0, kShape = 1, kStrides = 2, kOffset = 3;  // attributes

// A view of a dense base as one cut for each dim: elements start, start + step, ...
struct Cuts {
  Dims starts;                       // of each dim of the base
  absl::InlinedVector<int, 5> dims;  // of each dim of the view that of the base, -1 for size 1
  Dims steps;                        // likewise
};

// None where the view is no such thing.
std::optional<Cuts> CutsOf(const Attrs& attrs) {
  const Shape base(attrs.get<Dims>(kBase));
  const Dims &shape = attrs.get<Dims>(kShape), &strides = attrs.get<Dims>(kStrides);
  if (base.numel() == 0) return {};
  const Dims dense = ContiguousStrides(base);
  Cuts cuts;
  int64_t rest = attrs.get<int64_t>(kOffset);
  for (const int64_t stride : dense) {
    cuts.starts.push_back(rest / stride);
    rest %= stride;
  }
  for (size_t v = 0; v < shape.size(); ++v) {
    int found = -1;
    for (int d = 0; shape[v] > 1 && d < base.ndim() && found < 0; ++d) {
      if (base[d] > 1 && dense[d] <= strides[v]) found = d;
    }
    const int64_t step = found < 0 ? 1 : strides[v] / dense[found];
    if (shape[v] > 1) {
      const bool fits = found >= 0 && strides[v] % dense[found] == 0 &&
                        cuts.starts[found] + (shape[v] - 1) * step < base[found] &&
                        std::find(cuts.dims.begin(), cuts.dims.end(), found) == cuts.dims.end();
      if (!fits) return {};
    }
    cuts.dims.push_back(found);
    cuts.steps.push_back(step);
  }
  return cuts;
}

// The strides of a dense tensor, none of them 0.
Dims PositiveStrides(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * std::max<int64_t>(1, shape[d]);
  }
  return strides;
}

}  // namespace

SbpSignatures PutBackSignatures(const SbpContext& c) {
  SbpSignatures out;
  const std::optional<Cuts> cuts = CutsOf(c.attrs);
  if (!cuts) return out;
  const Dims &base = c.attrs.get<Dims>(kBase), &shape = c.attrs.get<Dims>(kShape);
  for (size_t v = 0; v < shape.size(); ++v) {
    const int d = cuts->dims[v];
    if (d < 0 || shape[v] != base[d]) continue;
    out.push_back({{Sbp::Split(static_cast<int>(v))}, {Sbp::Split(d)}});
  }
  return out;
}

Status PutBackInShard(PhysicalContext& c) {
  const std::optional<Cuts> cuts = CutsOf(c.attrs);
  if (!cuts) return OkStatus();  // nothing is split
  const Dims base = c.OutputShape(0).dims(), shape = c.inputs[0].shape.dims();
  const Dims dense = PositiveStrides(base);
  Dims strides = PositiveStrides(shape);
  int64_t offset = 0;
  for (size_t v = 0; v < shape.size(); ++v) {  // of an empty view too: it may be cut once more
    if (cuts->dims[v] >= 0) strides[v] = cuts->steps[v] * dense[cuts->dims[v]];
  }
  if (CheckedNumel(shape) > 0) {
    for (size_t d = 0; d < base.size(); ++d) offset += cuts->starts[d] * dense[d];
  }
  c.attrs[kBase] = base;
  c.attrs[kShape] = shape;
  c.attrs[kStrides] = std::move(strides);
  c.attrs[kOffset] = offset;
  return OkStatus();
}

}  // namespace oneflow_lite
