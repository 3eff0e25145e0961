// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/placement.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "absl/strings/str_join.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/world.h"

namespace oneflow_lite {

Placement::Placement(DeviceType type, std::vector<int> ranks, std::vector<int> grid)
    : type_(type),
      device_{type, static_cast<int16_t>(LocalDevice(type))},
      ranks_(std::move(ranks)),
      grid_(std::move(grid)) {
  const int position = PositionOf(Rank());
  if (position >= 0) here_ = PlaceOf(position);
  if (type == DeviceType::kMeta && position < 0) here_ = PlaceOf(0);
}

StatusOr<PlacementRef> Placement::Get(DeviceType type, const std::vector<int>& ranks,
                                      const std::vector<int>& grid) {
  constexpr char kName[] = "placement";
  const auto bad = [&](absl::string_view why) {
    return BadValue(kName, "ranks", absl::StrCat("[", absl::StrJoin(ranks, ", "), "]"), why);
  };
  int64_t places = 1;
  for (int n : grid) places *= std::max(n, 0);
  if (ranks.empty()) return bad("a list of at least one rank");
  if (grid.empty() || grid.size() > 2 || places != static_cast<int64_t>(ranks.size())) {
    return bad("a list, or a grid of two dims");
  }
  const int least = *std::min_element(ranks.begin(), ranks.end());
  if (type == DeviceType::kMeta) {
    if (least < 0) return bad("ranks from 0 on");
  } else if (least < 0 || *std::max_element(ranks.begin(), ranks.end()) >= WorldSize()) {
    return bad(
        absl::StrCat("ranks of this world, which has ", WorldSize(), ": 0 to ", WorldSize() - 1));
  }
  if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size()) {
    return bad("a list without repetition");
  }
  static std::mutex mutex;
  // By this process's rank too, which init() may set after the first placements were made.
  using Key = std::tuple<DeviceType, std::vector<int>, std::vector<int>, int>;
  static auto* const known = new std::map<Key, PlacementRef>;
  const int rank = Rank();
  std::lock_guard lock(mutex);
  PlacementRef& found = (*known)[{type, ranks, grid, rank}];
  if (!found) found = new Placement(type, ranks, grid);
  return found;
}

const GridPlace& Placement::Here() const { return here_; }

int Placement::PositionOf(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

GridPlace Placement::PlaceOf(int position) const {
  if (ndim() == 1) return {position};
  return {position / grid_[1], position % grid_[1]};
}

std::vector<int> Placement::Line(int d) const {
  if (ndim() == 1) return ranks_;
  std::vector<int> line;
  for (int i = 0; i < grid_[d]; ++i) {
    line.push_back(ranks_[d == 0 ? i * grid_[1] + here_[1] : here_[0] * grid_[1] + i]);
  }
  return line;
}

std::string Placement::ToString() const {
  std::string list = absl::StrJoin(ranks_, ", ");
  if (ndim() == 2) {
    std::vector<std::string> rows;
    for (int r = 0; r < grid_[0]; ++r) {
      const auto begin = ranks_.begin() + r * grid_[1];
      rows.push_back(absl::StrCat("[", absl::StrJoin(begin, begin + grid_[1], ", "), "]"));
    }
    list = absl::StrJoin(rows, ", ");
  }
  return absl::StrCat("placement(\"", Name(type_), "\", ranks=[", list, "])");
}

std::string ToString(const NdSbp& sbp) {
  return absl::StrCat(
      "(", absl::StrJoin(sbp, ", ", [](std::string* out, const Sbp& s) { *out += s.ToString(); }),
      ")");
}

Status CheckSbp(absl::string_view op, const Placement& p, const Shape& shape, NdSbp* sbp) {
  if (static_cast<int>(sbp->size()) != p.ndim()) {
    return BadValue(op, "sbp", ToString(*sbp),
                    absl::StrCat("one entry per dim of the grid, ", p.ndim()));
  }
  for (Sbp& s : *sbp) {
    if (s.kind > Sbp::Kind::kPartialSum) {
      return BadValue(op, "an sbp", absl::StrCat("of kind ", static_cast<int>(s.kind)),
                      "split, broadcast or a partial sum");
    }
    if (s.kind != Sbp::Kind::kSplit) continue;
    const int ndim = shape.ndim();
    if (s.axis < -ndim || s.axis >= ndim) {
      return Error(ErrorKind::kIndex, op, "(): sbp splits dim ", s.axis,
                   ", which a tensor of shape ", shape.ToString(), " has not");
    }
    if (s.axis < 0) s.axis += ndim;
  }
  return OkStatus();
}

Shape ShardOf(Shape whole, const Placement& p, const NdSbp& sbp, const GridPlace& place) {
  for (size_t d = 0; d < sbp.size(); ++d) {
    whole = ShardShape(std::move(whole), sbp[d], place[d], p.grid()[d]);
  }
  return whole;
}

int64_t ShardStart(const Shape& whole, const Placement& p, const NdSbp& sbp, const GridPlace& place,
                   int axis) {
  int64_t start = 0, size = whole[axis];
  for (size_t d = 0; d < sbp.size(); ++d) {
    if (sbp[d].kind != Sbp::Kind::kSplit || sbp[d].axis != axis) continue;
    const int64_t parts = p.grid()[d], part = place[d];
    start += part * (size / parts) + std::min(part, size % parts);
    size = ShardSize(size, place[d], p.grid()[d]);
  }
  return start;
}

}  // namespace oneflow_lite
