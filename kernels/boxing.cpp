// SPDX-License-Identifier: Apache-2.0
//
// Boxing: a global tensor's shards in another SBP, one dim of the grid at a time, or on another
// placement.
//
//   S -> B  all_gather       B -> S  slice            P -> S  reduce_scatter
//   P -> B  all_reduce       S -> S  all_to_all       B -> P  the first rank keeps it
//                                                     S -> P  zeros around it
#include <algorithm>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/traffic.h"
#include "oneflow_lite/framework/global.h"
#include "primitive/collective.h"

namespace oneflow_lite {
namespace {

using internal::Boxing;
using internal::CopyOf;
using internal::DenseOf;
using internal::RunLocal;
using Kind = Sbp::Kind;

StatusOr<Tensor> Slice(const Tensor& t, int axis, int64_t start, int64_t length) {
  static const OpExpr& op = OpBuilder("slice")
                                .Input("in")
                                .Output("out")
                                .Attr("dim")
                                .Attr("start")
                                .Attr("end")
                                .Attr("step")
                                .Get();
  return RunLocal(op, {&t, 1}, {int64_t{axis}, start, start + length, int64_t{1}});
}

StatusOr<Tensor> Cat(absl::Span<const Tensor> parts, int axis) {
  static const OpExpr& op = OpBuilder("cat").Input("tensors").Output("out").Attr("dim").Get();
  return parts.size() == 1 ? DenseOf(parts[0]) : RunLocal(op, parts, {int64_t{axis}});
}

StatusOr<Tensor> Zeros(const Shape& shape, DType dtype, Device device) {
  static const OpExpr& op = OpBuilder("full")
                                .Output("out")
                                .Attr("shape")
                                .Attr("value")
                                .Attr("dtype")
                                .Attr("device")
                                .Get();
  return RunLocal(op, {}, {shape.dims(), Scalar(0), dtype, device});
}

// The parts of a dim, in order.
struct Parts {
  Parts(int64_t n, int count) {
    for (int i = 0; i < count; ++i) {
      starts.push_back(i == 0 ? 0 : starts[i - 1] + sizes[i - 1]);
      sizes.push_back(ShardSize(n, i, count));
    }
  }
  absl::InlinedVector<int64_t, 8> starts, sizes;
};

// Whether the parts of a dim lie one after another in a dense tensor.
bool IsLeading(const Shape& shape, int axis) {
  int64_t outer = 1;
  for (int d = 0; d < axis; ++d) outer *= shape[d];
  return outer == 1;
}

// The parts along an axis one after another, in one flat tensor.
StatusOr<Tensor> PartByPart(const Tensor& t, int axis, const Parts& parts) {
  OFL_ASSIGN_OR_RETURN(const Tensor dense, DenseOf(t));
  if (IsLeading(t.shape(), axis)) return dense;
  TensorList flat;
  for (size_t i = 0; i < parts.sizes.size(); ++i) {
    OFL_ASSIGN_OR_RETURN(Tensor part, Slice(dense, axis, parts.starts[i], parts.sizes[i]));
    OFL_ASSIGN_OR_RETURN(part, DenseOf(part));
    flat.push_back(part.WithGeometry(Shape{part.numel()}, {1}, part.offset()));
  }
  return Cat(flat, 0);
}

// A flat tensor of parts, of the whole's shape but for the size along an axis, as one.
StatusOr<Tensor> Joined(const Tensor& flat, Shape shape, int axis, const Parts& parts) {
  if (IsLeading(shape, axis)) {
    Dims strides = ContiguousStrides(shape);
    return flat.WithGeometry(std::move(shape), std::move(strides), 0);
  }
  TensorList pieces;
  int64_t offset = 0;
  for (const int64_t size : parts.sizes) {
    shape[axis] = size;
    pieces.push_back(flat.WithGeometry(shape, ContiguousStrides(shape), offset));
    offset += shape.numel();
  }
  return Cat(pieces, axis);
}

// The moves along one dim of the grid, among the ranks that differ in it alone.
class Line {
 public:
  Line(std::shared_ptr<Communicator> ranks, Stream& stream, const Shape& whole, DType dtype)
      : ranks_(std::move(ranks)), stream_(stream), whole_(whole), dtype_(dtype) {}

  // `local` lies on this rank by `from`; `whole` is what the ranks of the line hold together.
  StatusOr<Tensor> Move(const Tensor& local, const Sbp& from, const Sbp& to) {
    if (from == to) return local;
    if (ranks_->size() == 1) return CopyOf(local);
    if (from.kind == Kind::kSplit) {
      if (to.kind == Kind::kBroadcast) return Gather(local, from.axis);
      if (to.kind == Kind::kSplit) return Exchange(local, from.axis, to.axis);
      return Pad(local, from.axis);
    }
    if (from.kind == Kind::kPartialSum) {
      return to.kind == Kind::kSplit ? ReduceScatter(local, to.axis) : Reduce(local);
    }
    if (to.kind == Kind::kSplit) return Cut(local, to.axis);
    return ranks_->rank() == 0 ? CopyOf(local) : Zeros(whole_, dtype_, local.device());
  }

 private:
  Parts PartsOf(int axis) const { return {whole_[axis], ranks_->size()}; }
  // The elements of each part of a shape.
  static absl::InlinedVector<int64_t, 8> CountsOf(Shape shape, int axis, const Parts& parts) {
    absl::InlinedVector<int64_t, 8> counts;
    for (const int64_t size : parts.sizes) {
      shape[axis] = size;
      counts.push_back(shape.numel());
    }
    return counts;
  }

  StatusOr<Tensor> Gather(const Tensor& local, int axis) {
    const Parts parts = PartsOf(axis);
    OFL_ASSIGN_OR_RETURN(const Tensor in, DenseOf(local));
    OFL_ASSIGN_OR_RETURN(const Tensor out,
                         Tensor::Empty(Shape{whole_.numel()}, dtype_, local.device()));
    OFL_RETURN_IF_ERROR(
        ranks_->AllGather(stream_, in.data(), out.data(), CountsOf(whole_, axis, parts), dtype_));
    return Joined(out, whole_, axis, parts);
  }

  StatusOr<Tensor> Reduce(const Tensor& local) {
    OFL_ASSIGN_OR_RETURN(const Tensor in, DenseOf(local));
    OFL_ASSIGN_OR_RETURN(Tensor out, Tensor::Empty(whole_, dtype_, local.device()));
    OFL_RETURN_IF_ERROR(ranks_->AllReduce(stream_, in.data(), out.data(), whole_.numel(), dtype_));
    return out;
  }

  StatusOr<Tensor> ReduceScatter(const Tensor& local, int axis) {
    const Parts parts = PartsOf(axis);
    OFL_ASSIGN_OR_RETURN(const Tensor in, PartByPart(local, axis, parts));
    Shape mine = whole_;
    mine[axis] = parts.sizes[ranks_->rank()];
    OFL_ASSIGN_OR_RETURN(Tensor out, Tensor::Empty(mine, dtype_, local.device()));
    OFL_RETURN_IF_ERROR(ranks_->ReduceScatter(stream_, in.data(), out.data(),
                                              CountsOf(whole_, axis, parts), dtype_));
    return out;
  }

  StatusOr<Tensor> Exchange(const Tensor& local, int from, int to) {
    const Parts had = PartsOf(from), get = PartsOf(to);
    OFL_ASSIGN_OR_RETURN(const Tensor in, PartByPart(local, to, get));
    Shape mine = whole_;
    mine[to] = get.sizes[ranks_->rank()];
    OFL_ASSIGN_OR_RETURN(const Tensor out,
                         Tensor::Empty(Shape{mine.numel()}, dtype_, local.device()));
    OFL_RETURN_IF_ERROR(ranks_->AllToAll(stream_, in.data(), CountsOf(local.shape(), to, get),
                                         out.data(), CountsOf(mine, from, had), dtype_));
    return Joined(out, mine, from, had);
  }

  StatusOr<Tensor> Cut(const Tensor& local, int axis) {
    const Parts parts = PartsOf(axis);
    const int r = ranks_->rank();
    OFL_ASSIGN_OR_RETURN(const Tensor part, Slice(local, axis, parts.starts[r], parts.sizes[r]));
    return CopyOf(part);
  }

  StatusOr<Tensor> Pad(const Tensor& local, int axis) {
    const Parts parts = PartsOf(axis);
    const int r = ranks_->rank();
    OFL_ASSIGN_OR_RETURN(Tensor out, Zeros(whole_, dtype_, local.device()));
    OFL_ASSIGN_OR_RETURN(const Tensor place, Slice(out, axis, parts.starts[r], parts.sizes[r]));
    OFL_RETURN_IF_ERROR(internal::CopyLocal(place, local));
    return out;
  }

  const std::shared_ptr<Communicator> ranks_;
  Stream& stream_;
  const Shape whole_;
  const DType dtype_;
};

// The same of tensors without data, of which this one is part `part` of `parts`: nothing moves, and
// what would is told to whoever keeps a log.
StatusOr<Tensor> MoveMeta(const Tensor& local, const Shape& whole, const Sbp& from, const Sbp& to,
                          int part, int parts) {
  const auto bytes = [&](const Shape& s) {
    return static_cast<double>(s.numel()) * SizeOf(local.dtype());
  };
  const auto tell = [&](const char* op, double sent) {
    const TrafficScope scope(op, sent, local.dtype(), nullptr);
  };
  const Shape shape = ShardShape(whole, to, part, parts);
  if (parts > 1 && to.kind != Kind::kPartialSum) {
    if (from.kind == Kind::kSplit && to.kind == Kind::kBroadcast) {
      tell("all_gather", BytesToGather(bytes(whole), parts));
    } else if (from.kind == Kind::kSplit) {  // all but what stays here
      tell("all_to_all", bytes(local.shape()) - bytes(ShardShape(local.shape(), to, part, parts)));
    } else if (from.kind == Kind::kPartialSum && to.kind == Kind::kSplit) {
      tell("reduce_scatter", BytesToGather(bytes(whole), parts));
    } else if (from.kind == Kind::kPartialSum) {
      tell("all_reduce", BytesToReduce(bytes(whole), parts));
    }
  }
  return Tensor::Empty(shape, local.dtype(), local.device());
}

// One dim of the grid of a placement, whose other dim stays as `sbp` says.
StatusOr<Tensor> MoveDim(const Tensor& local, const Boxing& move, NdSbp* sbp, int d,
                         const Sbp& to) {
  const Sbp from = (*sbp)[d];
  if (from == to) return local;
  const Placement& p = *move.from;
  // What the line holds together: the whole, but for how the other dim splits it. Where both split
  // one dim, the outer one's part is what the inner one's line holds.
  Shape whole = move.shape;
  for (int other = 0; other < p.ndim(); ++other) {
    if (other != d) whole = ShardShape(whole, (*sbp)[other], p.Here()[other], p.grid()[other]);
  }
  if (p.type() == DeviceType::kMeta) {
    (*sbp)[d] = to;
    return MoveMeta(local, whole, from, to, p.Here()[d], p.grid()[d]);
  }
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(local.device()));
  OFL_ASSIGN_OR_RETURN(auto ranks, GetCommunicator(p.type(), p.Line(d)));
  (*sbp)[d] = to;
  return Line(std::move(ranks), *stream, whole, move.dtype).Move(local, from, to);
}

bool IsSplitOn(const Sbp& s, int axis) { return s.kind == Kind::kSplit && s.axis == axis; }

// Within one placement. The outer dim of a grid moves while the inner one splits no dim that the
// outer one splits before or after: parts of parts are no parts of the whole.
StatusOr<Tensor> BoxWithin(Tensor local, const Boxing& move) {
  NdSbp sbp = move.from_sbp;
  const NdSbp& to = move.to_sbp;
  if (move.from->ndim() == 1) return MoveDim(local, move, &sbp, 0, to[0]);
  if (sbp[0] != to[0]) {
    const auto in_the_way = [&](const Sbp& s) {
      return s.kind == Kind::kSplit && (IsSplitOn(sbp[0], s.axis) || IsSplitOn(to[0], s.axis));
    };
    Sbp between = Sbp::Broadcast();
    if (!in_the_way(to[1]) && (to[1].kind == Kind::kSplit || in_the_way(sbp[1]))) {
      between = to[1];
    } else if (!in_the_way(sbp[1])) {
      between = sbp[1];
    }
    OFL_ASSIGN_OR_RETURN(local, MoveDim(local, move, &sbp, 1, between));
    OFL_ASSIGN_OR_RETURN(local, MoveDim(local, move, &sbp, 0, to[0]));
  }
  return MoveDim(local, move, &sbp, 1, to[1]);
}

// The shard of a place, of a tensor that is here as a whole; a copy.
StatusOr<Tensor> ShardAt(const Tensor& whole, const Boxing& move, const GridPlace& place) {
  const Placement& p = *move.to;
  for (int d = 0; d < p.ndim(); ++d) {
    if (move.to_sbp[d].kind == Kind::kPartialSum && place[d] > 0) {
      return Zeros(ShardOf(move.shape, p, move.to_sbp, place), move.dtype, whole.device());
    }
  }
  Tensor part = whole;
  const Shape shape = ShardOf(move.shape, p, move.to_sbp, place);
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    if (shape[axis] == move.shape[axis]) continue;
    const int64_t start = ShardStart(move.shape, p, move.to_sbp, place, axis);
    OFL_ASSIGN_OR_RETURN(part, Slice(part, axis, start, shape[axis]));
  }
  return CopyOf(part);
}

StatusOr<Tensor> OnDevice(const Tensor& t, Device device) {
  static const OpExpr& op = OpBuilder("to_device").Input("in").Output("out").Attr("device").Get();
  return t.device() == device ? StatusOr<Tensor>(t) : RunLocal(op, {&t, 1}, {device});
}

// To another placement: gathered on the ranks that have it, and sent to those that have not.
StatusOr<Tensor> BoxAcross(const Tensor& local, const Boxing& move) {
  const Placement &from = *move.from, &to = *move.to;
  const int here = from.PositionOf(Rank()), mine = to.PositionOf(Rank());
  Tensor whole;
  if (here >= 0) {
    const NdSbp everywhere(from.ndim(), Sbp::Broadcast());
    Boxing gather{move.shape, move.dtype, move.from, move.from_sbp, move.from, everywhere};
    OFL_ASSIGN_OR_RETURN(whole, BoxWithin(local, gather));
  }
  Tensor out;
  if (here >= 0 && mine >= 0) {
    OFL_ASSIGN_OR_RETURN(out, ShardAt(whole, move, to.PlaceOf(mine)));
  }
  std::vector<int> all = from.ranks();
  for (const int r : to.ranks()) {
    if (from.PositionOf(r) < 0) all.push_back(r);
  }
  if (static_cast<int>(all.size()) > from.size() && (here >= 0 || mine >= 0)) {
    const Device device = from.device();
    OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
    OFL_ASSIGN_OR_RETURN(auto ranks, GetCommunicator(from.type(), all));
    // Allocated before the group begins, since all of its ranks must end it.
    struct Message {
      bool send;
      Tensor part;
      int peer;
    };
    std::vector<Message> messages;
    for (int k = 0; k < to.size(); ++k) {
      const int receiver = to.ranks()[k], sender = from.ranks()[k % from.size()];
      if (from.PositionOf(receiver) >= 0) continue;
      const auto at = [&](int r) {
        return static_cast<int>(std::find(all.begin(), all.end(), r) - all.begin());
      };
      if (sender == Rank()) {
        OFL_ASSIGN_OR_RETURN(Tensor part, ShardAt(whole, move, to.PlaceOf(k)));
        messages.push_back({true, std::move(part), at(receiver)});
      } else if (receiver == Rank()) {
        OFL_ASSIGN_OR_RETURN(out, Tensor::Empty(ShardOf(move.shape, to, move.to_sbp, to.PlaceOf(k)),
                                                move.dtype, device));
        messages.push_back({false, out, at(sender)});
      }
    }
    OFL_RETURN_IF_ERROR(ranks->GroupBegin());
    for (const auto& [send, part, peer] : messages) {
      Status noted = send ? ranks->Send(*stream, part.data(), part.numel(), move.dtype, peer)
                          : ranks->Recv(*stream, part.data(), part.numel(), move.dtype, peer);
      if (noted.ok()) continue;
      ranks->GroupDrop();
      return noted;
    }
    OFL_RETURN_IF_ERROR(ranks->GroupEnd());
  }
  return out.defined() ? OnDevice(out, to.device()) : StatusOr<Tensor>(out);
}

// Between placements without data: gathered, and sent where the ranks are others.
StatusOr<Tensor> BoxAcrossMeta(const Tensor& local, const Boxing& move) {
  if (move.from->type() != move.to->type()) {
    return Error(ErrorKind::kValue, "to_global(): from ", move.from->ToString(), " to ",
                 move.to->ToString(), ": the meta device has no data");
  }
  const NdSbp everywhere(move.from->ndim(), Sbp::Broadcast());
  OFL_ASSIGN_OR_RETURN(
      const Tensor whole,
      BoxWithin(local, {move.shape, move.dtype, move.from, move.from_sbp, move.from, everywhere}));
  const Shape shape = ShardOf(move.shape, *move.to, move.to_sbp, move.to->Here());
  if (move.from->PositionOf(move.to->ranks()[0]) < 0) {
    const TrafficScope scope("send", static_cast<double>(shape.numel()) * SizeOf(move.dtype),
                             move.dtype, nullptr);
  }
  return Tensor::Empty(shape, move.dtype, whole.device());
}

StatusOr<Tensor> BoxShards(const Tensor& local, const Boxing& move) {
  const bool meta = move.from->type() == DeviceType::kMeta || move.to->type() == DeviceType::kMeta;
  if (meta && move.from != move.to) return BoxAcrossMeta(local, move);
  if (move.from != move.to) return BoxAcross(local, move);
  if (!local.defined()) return local;  // of another rank's business
  return BoxWithin(local, move);
}

StatusOr<std::vector<Dims>> Exchange(DeviceType type, const Dims& numbers) {
  const int size = WorldSize();
  if (size == 1) return std::vector<Dims>{numbers};
  std::vector<int> everyone(size);
  for (int r = 0; r < size; ++r) everyone[r] = r;
  const auto n = static_cast<int64_t>(numbers.size());
  const Device device{type, static_cast<int16_t>(LocalDevice(type))};
  OFL_ASSIGN_OR_RETURN(const Tensor mine, Tensor::Empty(Shape{n}, DType::kInt64, Device{}));
  std::copy(numbers.begin(), numbers.end(), mine.data<int64_t>());
  OFL_ASSIGN_OR_RETURN(const Tensor in, OnDevice(mine, device));
  OFL_ASSIGN_OR_RETURN(Tensor out, Tensor::Empty(Shape{size, n}, DType::kInt64, device));
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
  OFL_ASSIGN_OR_RETURN(auto ranks, GetCommunicator(type, everyone));
  const std::vector<int64_t> counts(size, n);
  OFL_RETURN_IF_ERROR(ranks->AllGather(*stream, in.data(), out.data(), counts, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(out, OnDevice(out, Device{}));
  std::vector<Dims> all;
  for (int r = 0; r < size; ++r) {
    const int64_t* begin = out.data<int64_t>() + r * n;
    all.emplace_back(begin, begin + n);
  }
  return all;
}

Status Maximum(const Tensor& local, PlacementRef placement) {
  if (placement->type() == DeviceType::kMeta) {
    const auto bytes = static_cast<double>(local.numel()) * SizeOf(local.dtype());
    const TrafficScope scope("all_reduce", BytesToReduce(bytes, placement->size()), local.dtype(),
                             nullptr);
    return OkStatus();
  }
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(local.device()));
  OFL_ASSIGN_OR_RETURN(auto ranks, GetCommunicator(placement->type(), placement->ranks()));
  OFL_ASSIGN_OR_RETURN(const Tensor dense, DenseOf(local));
  OFL_RETURN_IF_ERROR(ranks->AllReduce(*stream, dense.data(), dense.data(), dense.numel(),
                                       dense.dtype(), CollectiveReduce::kMax));
  return dense.IsSame(local) ? OkStatus() : internal::CopyLocal(local, dense);
}

const bool registered = internal::SetMovers({&BoxShards, &Exchange, &Maximum});

}  // namespace
}  // namespace oneflow_lite
