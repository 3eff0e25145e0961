// SPDX-License-Identifier: Apache-2.0
//
// Where a global tensor lives: a list of ranks, or a grid of them, each with one device of a kind;
// and how it is spread there: one SBP per dim of the grid.
//
//   OFL_ASSIGN_OR_RETURN(PlacementRef p, Placement::Get(DeviceType::kCPU, {0, 1, 2, 3}, {2, 2}));
//   Shape mine = ShardOf(Shape{8, 6}, *p, {Sbp::Split(0), Sbp::Broadcast()}, p->Here());
#pragma once

#include <string>
#include <vector>

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/status.h"
#include "oneflow_lite/framework/sbp.h"

namespace oneflow_lite {

// Of a tensor, one entry per dim of the grid, the outer one first.
using NdSbp = absl::InlinedVector<Sbp, 2>;

// The place of a rank in the grid, one number per dim.
using GridPlace = absl::InlinedVector<int, 2>;

class Placement;
using PlacementRef = const Placement*;  // interned: equal placements are one object, for ever

class OFL_API Placement {
 public:
  // On the meta device ranks need not be of this world, nobody is talked to, and this process
  // stands for its own rank or, where that is not among them, for the first. ValueError where ranks
  // are none, negative or named twice, where a grid has not 1 or 2 dims or other than as many
  // places as there are ranks.
  static StatusOr<PlacementRef> Get(DeviceType type, const std::vector<int>& ranks,
                                    const std::vector<int>& grid);

  DeviceType type() const { return type_; }
  // The device of this process's shard: LocalDevice().
  Device device() const { return device_; }
  const std::vector<int>& ranks() const { return ranks_; }  // row by row
  const std::vector<int>& grid() const { return grid_; }    // sizes, 1 or 2 of them
  int ndim() const { return static_cast<int>(grid_.size()); }
  int size() const { return static_cast<int>(ranks_.size()); }
  // The place of this process; empty where it takes no part.
  const GridPlace& Here() const;
  // Position in ranks(), or -1.
  int PositionOf(int rank) const;
  GridPlace PlaceOf(int position) const;
  // The ranks that differ from this process in dim `d` of the grid alone, in their order.
  std::vector<int> Line(int d) const;
  // "placement("cpu", ranks=[[0, 1], [2, 3]])"
  std::string ToString() const;

 private:
  Placement(DeviceType type, std::vector<int> ranks, std::vector<int> grid);

  DeviceType type_;
  Device device_;
  std::vector<int> ranks_, grid_;
  GridPlace here_;
};

// "(S(0), B)"
OFL_API std::string ToString(const NdSbp& sbp);
// ValueError where there is not one entry per dim of the grid, IndexError where a split names a dim
// that a tensor of this shape has not. Negative axes become positive ones.
OFL_API Status CheckSbp(absl::string_view op, const Placement& p, const Shape& shape, NdSbp* sbp);
// What lies at one place of the grid; the outer dims split first.
OFL_API Shape ShardOf(Shape whole, const Placement& p, const NdSbp& sbp, const GridPlace& place);
// Where that begins in dim `axis` of the whole.
OFL_API int64_t ShardStart(const Shape& whole, const Placement& p, const NdSbp& sbp,
                           const GridPlace& place, int axis);

}  // namespace oneflow_lite
