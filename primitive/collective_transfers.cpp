// SPDX-License-Identifier: Apache-2.0
//
// Messages between two members, alone and in groups.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_join.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/store.h"
#include "oneflow_lite/core/traffic.h"
#include "primitive/collective.h"
#include "primitive/collective_calls.h"

namespace oneflow_lite {
namespace {

const char* OpOf(bool send) { return send ? "send" : "recv"; }

}  // namespace

Status Communicator::Send(Stream& stream, const void* in, int64_t count, DType dtype, int to) {
  OFL_RETURN_IF_ERROR(CheckPeer("send", "to", to));
  return Note(stream, {true, const_cast<void*>(in), count, dtype, to, 0});
}

Status Communicator::Recv(Stream& stream, void* out, int64_t count, DType dtype, int from) {
  OFL_RETURN_IF_ERROR(CheckPeer("recv", "from", from));
  return Note(stream, {false, out, count, dtype, from, 0});
}

Status Communicator::Note(Stream& stream, Transfer transfer) {
  const char* op = OpOf(transfer.send);
  OFL_RETURN_IF_ERROR(CheckStream(op, stream));
  if (transfer.count < 0) return Error(ErrorKind::kValue, op, "(): the count is ", transfer.count);
  if (transfer.count > 0 && !transfer.data) {
    return Error(ErrorKind::kValue, op, "(): the pointer is null, but there are elements");
  }
  OFL_RETURN_IF_ERROR(CheckProcess());
  std::lock_guard lock(mutex_);
  OFL_RETURN_IF_ERROR(Failure());
  if (transfer.peer == rank_ && !InGroup()) {
    return Error(ErrorKind::kValue, op, "(): to and from oneself only in a group");
  }
  if (InGroup()) {
    if (group_stream_ && group_stream_ != &stream) {
      return Error(ErrorKind::kValue, op, "(): all of a group must be on one stream");
    }
    group_stream_ = &stream;
    group_.push_back(transfer);
    return OkStatus();
  }
  return RunTransfers(stream, {transfer});
}

Status Communicator::GroupBegin() {
  OFL_RETURN_IF_ERROR(CheckProcess());
  std::lock_guard lock(mutex_);
  OFL_RETURN_IF_ERROR(Failure());
  if (InGroup()) return Error(ErrorKind::kRuntime, "group_begin(): groups do not nest");
  if (group_of_ != std::thread::id()) {
    return Error(ErrorKind::kRuntime,
                 "group_begin(): another thread's group of these members is open");
  }
  group_of_ = std::this_thread::get_id();
  group_stream_ = nullptr;
  group_.clear();
  return OkStatus();
}

Status Communicator::GroupEnd() {
  OFL_RETURN_IF_ERROR(CheckProcess());
  std::lock_guard lock(mutex_);
  OFL_RETURN_IF_ERROR(Failure());
  if (!InGroup()) return Error(ErrorKind::kRuntime, "group_end(): there was no group_begin()");
  group_of_ = {};
  std::vector<Transfer> group;
  group.swap(group_);
  if (group.empty()) return OkStatus();
  OFL_RETURN_IF_ERROR(CopyToOneself(*group_stream_, &group));
  return group.empty() ? OkStatus() : RunTransfers(*group_stream_, std::move(group));
}

void Communicator::GroupDrop() {
  std::lock_guard lock(mutex_);
  if (!InGroup()) return;
  group_of_ = {};
  group_.clear();
}

// Takes what goes to this process itself out of the list.
Status Communicator::CopyToOneself(Stream& stream, std::vector<Transfer>* transfers) const {
  std::vector<Transfer> sends, recvs, others;
  for (const Transfer& t : *transfers) {
    (t.peer != rank_ ? others : t.send ? sends : recvs).push_back(t);
  }
  if (sends.size() != recvs.size()) {
    return Error(ErrorKind::kValue, "group_end(): ", sends.size(), " messages go to this member ",
                 "itself, but ", recvs.size(), " are received");
  }
  for (size_t i = 0; i < sends.size(); ++i) {
    if (sends[i].count != recvs[i].count || sends[i].dtype != recvs[i].dtype) {
      return Error(ErrorKind::kValue, "group_end(): this member sends itself ", sends[i].count, " ",
                   Name(sends[i].dtype), ", but receives ", recvs[i].count, " ",
                   Name(recvs[i].dtype));
    }
    OFL_RETURN_IF_ERROR(
        CopyDense(stream, sends[i].data, recvs[i].data, sends[i].count, sends[i].dtype));
  }
  *transfers = std::move(others);
  return OkStatus();
}

Status Communicator::RunTransfers(Stream& stream, std::vector<Transfer> transfers) {
  for (Transfer& t : transfers) t.number = ++(t.send ? sent_ : received_)[t.peer];
  const Transfer& first = transfers[0];
  op_ = OpOf(first.send);
  number_ = first.number;
  const CurrentCall current(
      {.op = op_, .number = number_, .members = ranks_, .peer = ranks_[first.peer]});
  double sent = 0;
  for (const Transfer& t : transfers) {
    if (t.send) sent += static_cast<double>(t.count) * SizeOf(t.dtype);
  }
  TrafficScope scope(transfers.size() > 1 ? "batch" : OpOf(first.send), sent, first.dtype, &stream);
  Status s = ChecksCollectives() ? CheckTransfers(transfers) : OkStatus();
  if (s.ok()) s = WithoutExceptions([&] { return DoTransfers(stream, transfers); });
  if (s.ok()) s = Given(stream, OpOf(first.send), first.number);
  if (s.ok()) return s;
  scope.Fail();
  OFL_RETURN_IF_ERROR(Failure());
  std::string doing = absl::StrCat(OpOf(first.send), " of ", first.count, " ", Name(first.dtype),
                                   first.send ? " to" : " from", " rank ", ranks_[first.peer],
                                   ", number ", first.number);
  if (transfers.size() > 1) {
    doing = absl::StrCat("a group of ", transfers.size(), " messages, the first a ", doing);
  }
  FailAtExit(false);
  return failed_ = Explain(doing, s);
}

// Each side writes down what it does, then reads what the other side does.
Status Communicator::CheckTransfers(absl::Span<const Transfer> transfers) {
  OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());
  const auto key = [&](const Transfer& t, bool send) {
    const int from = t.send ? rank_ : t.peer, to = t.send ? t.peer : rank_;
    return absl::StrCat("check/", KeyInStore(), "/", from, ">", to, "/", t.number,
                        send ? "/send" : "/recv");
  };
  const auto describe = [](const Transfer& t) { return absl::StrCat(t.count, " ", Name(t.dtype)); };
  for (const Transfer& t : transfers) {
    OFL_RETURN_IF_ERROR(world->store->Set(key(t, t.send), describe(t)));
  }
  for (const Transfer& t : transfers) {
    const auto other =
        world->store->Get(key(t, !t.send), world->timeout, absl::MakeConstSpan(&ranks_[t.peer], 1));
    if (!other.ok()) {
      if (absl::IsUnavailable(other.status())) return other.status();
      return ReportedFailure().empty() ? absl::DeadlineExceededError("") : other.status();
    }
    OFL_RETURN_IF_ERROR(world->store->Delete(key(t, !t.send)).status());
    if (*other == describe(t)) continue;
    const std::string sent = t.send ? describe(t) : *other,
                      received = t.send ? *other : describe(t);
    return Error(ErrorKind::kRuntime, "the members do not agree: rank ",
                 ranks_[t.send ? rank_ : t.peer], " sends ", sent, ", rank ",
                 ranks_[t.send ? t.peer : rank_], " receives ", received);
  }
  return OkStatus();
}

}  // namespace oneflow_lite
