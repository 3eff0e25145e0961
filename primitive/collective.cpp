// SPDX-License-Identifier: Apache-2.0
//
// What is the same for all engines: arguments, the order of calls, agreement, and how errors read.
#include "primitive/collective.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "oneflow_lite/core/store.h"
#include "oneflow_lite/core/traffic.h"
#include "primitive/collective_calls.h"

namespace oneflow_lite {

const char* Name(CollectiveReduce reduce) {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min", "mean"};
  return kNames[static_cast<int>(reduce)];
}

bool ChecksCollectives() {
  const char* value = std::getenv("OFL_CHECK_COLLECTIVES");
  return value && *value && std::strcmp(value, "0") != 0;
}

namespace {

// How long an engine that lost a connection waits to hear of the failure behind it.
constexpr std::chrono::milliseconds kHearsay{1500};

int64_t Sum(Counts counts) {
  int64_t sum = 0;
  for (const int64_t n : counts) sum += n;
  return sum;
}

Status NullPointer(const char* op, const char* argument) {
  return Error(ErrorKind::kValue, op, "(): ", argument, " is null, but has elements");
}

std::string Seconds(std::chrono::milliseconds t) {
  return absl::StrCat(static_cast<double>(t.count()) / 1000, " s");
}

}  // namespace

// What all members must agree on, and what AllToAll's compare by pairs.
struct Communicator::Call {
  const char* op;
  DType dtype = DType::kUInt8;
  int64_t count = -1;
  Counts counts = {};
  Counts ranges = {};  // of `count` elements in all
  std::optional<CollectiveReduce> reduce = {};
  std::optional<DType> reduce_dtype = {};
  std::optional<int> root = {};
  Counts send = {}, recv = {};

  // What a member sends.
  double BytesFrom(int rank, int size) const {
    const auto bytes = [&](int64_t n) { return static_cast<double>(n) * SizeOf(dtype); };
    if (!send.empty()) return bytes(Sum(send) - send[rank]);
    if (!counts.empty()) return BytesToGather(bytes(Sum(counts)), size);
    if (count < 0) return 0;
    return root && *root != rank ? BytesToGather(bytes(count), size)
                                 : BytesToReduce(bytes(count), size);
  }

  std::string Describe() const {
    std::string text = op;
    if (reduce) absl::StrAppend(&text, "(", Name(*reduce), ")");
    if (!ranges.empty()) {
      absl::StrAppend(&text, " of ", absl::StrJoin(ranges, " + "), " ", Name(dtype));
    } else if (!counts.empty()) {
      absl::StrAppend(&text, " of [", absl::StrJoin(counts, ", "), "] ", Name(dtype));
    } else if (count >= 0) {
      absl::StrAppend(&text, " of ", count, " ", Name(dtype));
    } else if (!send.empty()) {
      absl::StrAppend(&text, " of ", Name(dtype));
    }
    if (root) absl::StrAppend(&text, " from member ", *root);
    if (reduce_dtype) absl::StrAppend(&text, " in ", Name(*reduce_dtype));
    return text;
  }
};

std::string Communicator::Members() const {
  return absl::StrCat(ranks_.size() == 1 ? "rank [" : "ranks [", absl::StrJoin(ranks_, ", "), "]");
}

// "cpu/0,1", which no other communicator has.
std::string Communicator::KeyInStore() const {
  return absl::StrCat(Name(device_type_), "/", absl::StrJoin(ranks_, ","),
                      lane_ == 0 ? "" : absl::StrCat("/lane", lane_));
}

Status Communicator::CheckStream(const char* op, const Stream& stream) const {
  if (stream.device().type == device_type_) return OkStatus();
  return Error(ErrorKind::kValue, op, "(): a stream of ", stream.device().ToString(),
               " for a communicator of ", Name(device_type_));
}

Status Communicator::CheckCounts(const char* op, Counts counts) const {
  if (counts.size() != ranks_.size()) {
    return Error(ErrorKind::kValue, op, "(): ", counts.size(), " counts are given for ",
                 ranks_.size(), " members");
  }
  for (const int64_t n : counts) {
    if (n < 0) return Error(ErrorKind::kValue, op, "(): a count is ", n, "; none may be negative");
  }
  return OkStatus();
}

Status Communicator::CheckReduce(const char* op, DType dtype, CollectiveReduce reduce,
                                 std::optional<DType> reduce_dtype) const {
  if (reduce == CollectiveReduce::kMean && !IsFloating(dtype)) {
    return Error(ErrorKind::kDType, op, "(): the mean of ", Name(dtype),
                 " is not of that dtype; convert to a floating dtype before");
  }
  if (const Status s = CheckReducible(dtype); !s.ok()) {
    return Error(KindOf(s), op, "(): ", s.message());
  }
  if (!reduce_dtype || *reduce_dtype == dtype || *reduce_dtype == ComputeType(dtype)) {
    return OkStatus();
  }
  return Error(ErrorKind::kDType, op, "(): reduce_dtype is ", Name(*reduce_dtype), ", but must be ",
               Name(dtype), ComputeType(dtype) == dtype ? "" : " or float32", " for ", Name(dtype));
}

Status Communicator::CheckPeer(const char* op, const char* argument, int peer) const {
  if (peer >= 0 && peer < size()) return OkStatus();
  return Error(ErrorKind::kValue, op, "(): ", argument, " is ", peer, ", but must be in [0, ",
               size() - 1, "], the members of ", Members());
}

// What became of the others when nothing came in time.
std::string Communicator::DescribeOthers() const {
  std::string text;
  const std::vector<std::string> others = AskWhatTheyDo(ranks_);
  // Who hears of a failure meanwhile answers no more.
  if (const std::string failure = ReportedFailure(); !failure.empty()) return "; " + failure;
  const std::vector<int> left = LeftRanks();
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const bool ended = std::find(left.begin(), left.end(), ranks_[i]) != left.end();
    absl::StrAppend(&text, "; rank ", ranks_[i], " ",
                    !others[i].empty() ? others[i]
                    : ended            ? "has ended"
                                       : "does not answer");
  }
  return text;
}

// Why a connection was lost: a failure, of which the store tells, or a rank that has ended.
std::string Communicator::DescribeLoss(absl::string_view own) const {
  std::string failure = ReportedFailure(kHearsay);
  if (!failure.empty()) return failure;
  for (const int rank : LeftRanks()) {
    if (std::find(ranks_.begin(), ranks_.end(), rank) != ranks_.end()) {
      return std::string(RankHasEnded(rank).message());
    }
  }
  failure = ReportedFailure(kHearsay);
  return failure.empty() ? std::string(own) : failure;
}

// An error that says what was going on, and what became of the others; the others hear of it.
Status Communicator::Explain(const std::string& doing, const Status& s) const {
  std::string message = absl::StrCat(doing, ", rank ", ranks_[rank_], " of ", Members(), ": ");
  if (absl::IsDeadlineExceeded(s)) {
    const auto world = GetWorld();
    absl::StrAppend(&message, "no end after ", world.ok() ? Seconds((*world)->timeout) : "",
                    DescribeOthers());
  } else if (absl::IsUnavailable(s)) {
    absl::StrAppend(&message, DescribeLoss(s.message()));
  } else {
    (void)ReportedFailure();  // it may be what this error says
    absl::StrAppend(&message, s.message());
  }
  ReportFailure(message);
  return Error(ErrorKind::kRuntime, message);
}

// Why this communicator is of no further use; OK while it is.
Status Communicator::Failure() {
  if (failed_.ok()) {
    std::lock_guard lock(late_mutex_);
    failed_ = late_;
  }
  if (!failed_.ok()) {
    given_ = true;
    FailAtExit(false);
  }
  return failed_;
}

void Communicator::GiveUp(const char* op, int64_t number) {
  constexpr std::chrono::seconds kGrace{5};
  constexpr std::chrono::milliseconds kLook{50};
  const Status s =
      Explain(absl::StrCat(op, ", number ", number), absl::DeadlineExceededError("on the device"));
  {
    std::lock_guard lock(late_mutex_);
    late_ = s;
  }
  const std::string message(s.message());
  std::fprintf(stderr, "oneflow_lite: %s\n", message.c_str());
  std::fflush(stderr);
  Abort({});
  for (auto waited = kLook; waited < kGrace; waited += kLook) {
    if (given_) return;
    std::this_thread::sleep_for(kLook);
  }
  _exit(1);
}

// Compares with the others what each is about to do.
Status Communicator::CheckAgreement(const Call& call) {
  OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());
  const std::string key = absl::StrCat("check/", KeyInStore(), "/", sequence_);
  const std::string mine = absl::StrCat(call.Describe(), "\n", absl::StrJoin(call.send, ","), "\n",
                                        absl::StrJoin(call.recv, ","));
  std::vector<int> absent;
  const auto all = world->store->Gather(key, rank_, size(), mine, world->timeout, &absent, ranks_);
  if (!all.ok()) return absent.empty() ? all.status() : absl::DeadlineExceededError("");
  std::vector<std::vector<std::string>> calls;
  for (const std::string& text : *all) calls.push_back(absl::StrSplit(text, '\n'));
  bool agree = true;
  for (const auto& c : calls) agree &= c.size() == 3 && c[0] == calls[0][0];
  for (int from = 0; agree && !call.send.empty() && from < size(); ++from) {
    const std::vector<std::string> sent = absl::StrSplit(calls[from][1], ',');
    for (int to = 0; to < size(); ++to) {
      const std::vector<std::string> received = absl::StrSplit(calls[to][2], ',');
      if (sent[to] == received[from]) continue;
      return Error(ErrorKind::kRuntime, "the members do not agree: rank ", ranks_[from], " sends ",
                   sent[to], " elements to rank ", ranks_[to], ", which expects ", received[from]);
    }
  }
  if (agree) return OkStatus();
  std::string message = "the members do not agree";
  for (int i = 0; i < size(); ++i) {
    absl::StrAppend(&message, i ? ", " : ": ", "rank ", ranks_[i], " calls ", calls[i][0]);
  }
  return Error(ErrorKind::kRuntime, message);
}

Status Communicator::CheckProcess() const { return size() == 1 ? OkStatus() : GetWorld().status(); }

template <class F>
Status Communicator::Run(Stream& stream, const Call& call, F&& engine) {
  OFL_RETURN_IF_ERROR(CheckProcess());
  std::lock_guard lock(mutex_);
  OFL_RETURN_IF_ERROR(Failure());
  if (InGroup()) {
    return Error(ErrorKind::kRuntime, call.op, "(): only send and recv may stand in a group");
  }
  op_ = call.op;
  number_ = ++sequence_;
  const CurrentCall current({.op = call.op, .number = sequence_, .members = ranks_});
  TrafficScope scope(call.op, call.BytesFrom(rank_, size()), call.dtype, &stream);
  Status s = size() > 1 && ChecksCollectives() ? CheckAgreement(call) : OkStatus();
  if (s.ok()) s = WithoutExceptions(engine);
  if (s.ok()) s = Given(stream, call.op, sequence_);
  if (!s.ok()) scope.Fail();
  if (s.ok() || size() == 1) return s;
  OFL_RETURN_IF_ERROR(Failure());
  FailAtExit(false);
  return failed_ = Explain(absl::StrCat(call.Describe(), ", number ", sequence_), s);
}

Status Communicator::AllReduce(Stream& stream, const void* in, void* out, int64_t count,
                               DType dtype, CollectiveReduce reduce,
                               std::optional<DType> reduce_dtype) {
  OFL_RETURN_IF_ERROR(CheckStream("all_reduce", stream));
  OFL_RETURN_IF_ERROR(CheckReduce("all_reduce", dtype, reduce, reduce_dtype));
  if (count < 0) return Error(ErrorKind::kValue, "all_reduce(): the count is ", count);
  if (count > 0 && (!in || !out)) return NullPointer("all_reduce", in ? "out" : "in");
  const Call call{.op = "all_reduce",
                  .dtype = dtype,
                  .count = count,
                  .reduce = reduce,
                  .reduce_dtype = reduce_dtype};
  return Run(stream, call, [&] {
    if (count == 0) return OkStatus();
    return DoAllReduce(stream, in, out, count, dtype, reduce, reduce_dtype.value_or(dtype));
  });
}

Status Communicator::DoAllReduceRanges(Stream& stream, absl::Span<const Range> ranges, DType dtype,
                                       CollectiveReduce reduce) {
  for (const Range& r : ranges) {
    OFL_RETURN_IF_ERROR(DoAllReduce(stream, r.data, r.data, r.count, dtype, reduce, dtype));
  }
  return OkStatus();
}

Status Communicator::AllReduceRanges(Stream& stream, absl::Span<const Range> ranges, DType dtype,
                                     CollectiveReduce reduce) {
  OFL_RETURN_IF_ERROR(CheckStream("all_reduce", stream));
  OFL_RETURN_IF_ERROR(CheckReduce("all_reduce", dtype, reduce, {}));
  std::vector<int64_t> counts;
  std::vector<Range> filled;
  for (const Range& r : ranges) {
    if (r.count < 0) return Error(ErrorKind::kValue, "all_reduce(): the count is ", r.count);
    if (r.count > 0 && !r.data) return NullPointer("all_reduce", "a range");
    counts.push_back(r.count);
    if (r.count > 0) filled.push_back(r);
  }
  const Call call{
      .op = "all_reduce", .dtype = dtype, .count = Sum(counts), .ranges = counts, .reduce = reduce};
  return Run(stream, call, [&] {
    return filled.empty() ? OkStatus() : DoAllReduceRanges(stream, filled, dtype, reduce);
  });
}

Status Communicator::AllGather(Stream& stream, const void* in, void* out, Counts counts,
                               DType dtype) {
  OFL_RETURN_IF_ERROR(CheckStream("all_gather", stream));
  OFL_RETURN_IF_ERROR(CheckCounts("all_gather", counts));
  if (counts[rank_] > 0 && !in) return NullPointer("all_gather", "in");
  if (Sum(counts) > 0 && !out) return NullPointer("all_gather", "out");
  return Run(stream, {.op = "all_gather", .dtype = dtype, .counts = counts}, [&] {
    return Sum(counts) == 0 ? OkStatus() : DoAllGather(stream, in, out, counts, dtype);
  });
}

Status Communicator::ReduceScatter(Stream& stream, const void* in, void* out, Counts counts,
                                   DType dtype, CollectiveReduce reduce,
                                   std::optional<DType> reduce_dtype) {
  OFL_RETURN_IF_ERROR(CheckStream("reduce_scatter", stream));
  OFL_RETURN_IF_ERROR(CheckCounts("reduce_scatter", counts));
  OFL_RETURN_IF_ERROR(CheckReduce("reduce_scatter", dtype, reduce, reduce_dtype));
  if (Sum(counts) > 0 && !in) return NullPointer("reduce_scatter", "in");
  if (counts[rank_] > 0 && !out) return NullPointer("reduce_scatter", "out");
  const Call call{.op = "reduce_scatter",
                  .dtype = dtype,
                  .counts = counts,
                  .reduce = reduce,
                  .reduce_dtype = reduce_dtype};
  return Run(stream, call, [&] {
    if (Sum(counts) == 0) return OkStatus();
    return DoReduceScatter(stream, in, out, counts, dtype, reduce, reduce_dtype.value_or(dtype));
  });
}

Status Communicator::AllToAll(Stream& stream, const void* in, Counts send_counts, void* out,
                              Counts recv_counts, DType dtype) {
  OFL_RETURN_IF_ERROR(CheckStream("all_to_all", stream));
  OFL_RETURN_IF_ERROR(CheckCounts("all_to_all", send_counts));
  OFL_RETURN_IF_ERROR(CheckCounts("all_to_all", recv_counts));
  if (send_counts[rank_] != recv_counts[rank_]) {
    return Error(ErrorKind::kValue, "all_to_all(): ", send_counts[rank_],
                 " elements go to this member itself, but ", recv_counts[rank_], " come from it");
  }
  if (Sum(send_counts) > 0 && !in) return NullPointer("all_to_all", "in");
  if (Sum(recv_counts) > 0 && !out) return NullPointer("all_to_all", "out");
  const Call call{.op = "all_to_all", .dtype = dtype, .send = send_counts, .recv = recv_counts};
  return Run(stream, call,
             [&] { return DoAllToAll(stream, in, send_counts, out, recv_counts, dtype); });
}

Status Communicator::Broadcast(Stream& stream, const void* in, void* out, int64_t count,
                               DType dtype, int root) {
  OFL_RETURN_IF_ERROR(CheckStream("broadcast", stream));
  OFL_RETURN_IF_ERROR(CheckPeer("broadcast", "root", root));
  if (count < 0) return Error(ErrorKind::kValue, "broadcast(): the count is ", count);
  if (count > 0 && !out) return NullPointer("broadcast", "out");
  if (count > 0 && root == rank_ && !in) return NullPointer("broadcast", "in");
  return Run(stream, {.op = "broadcast", .dtype = dtype, .count = count, .root = root}, [&] {
    return count == 0 ? OkStatus() : DoBroadcast(stream, in, out, count, dtype, root);
  });
}

Status Communicator::Barrier(Stream& stream) {
  OFL_RETURN_IF_ERROR(CheckStream("barrier", stream));
  return Run(stream, {.op = "barrier"}, [&] { return DoBarrier(stream); });
}

}  // namespace oneflow_lite
