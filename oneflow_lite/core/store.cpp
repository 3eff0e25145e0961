// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/store.h"

#include <sys/socket.h>

#include <algorithm>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/socket.h"
#include "oneflow_lite/core/store_protocol.h"

namespace oneflow_lite {
namespace {

using store_protocol::Answer;
using store_protocol::Reader;
using store_protocol::Request;
using store_protocol::Writer;

// The server answers that a time-out has passed; what comes much later than that will not come.
constexpr std::chrono::seconds kPatience{5};

Status BadAnswer() { return Error(ErrorKind::kRuntime, "the store gave an answer of no sense"); }

}  // namespace

StatusOr<std::shared_ptr<Store>> Store::Connect(const std::string& address, int port,
                                                Timeout timeout) {
  std::shared_ptr<Store> store(new Store(address, port, timeout));
  OFL_ASSIGN_OR_RETURN(std::shared_ptr<Socket> first, store->Open());
  OFL_ASSIGN_OR_RETURN(store->local_address_, LocalAddressOf(*first));
  store->idle_.push_back(std::move(first));
  return store;
}

Store::~Store() = default;

StatusOr<std::shared_ptr<Socket>> Store::Open() {
  const Deadline deadline = Clock::now() + timeout_;
  OFL_ASSIGN_OR_RETURN(Socket s, ConnectTo(address_, port_, deadline));
  OFL_RETURN_IF_ERROR(WriteFrame(s, store_protocol::kGreeting, deadline));
  OFL_ASSIGN_OR_RETURN(const std::string greeting, ReadFrame(s, deadline));
  if (greeting != store_protocol::kGreeting) {
    return Error(ErrorKind::kRuntime, "what answers at port ", port_, " of ", address_,
                 " is no store of oneflow_lite");
  }
  return std::make_shared<Socket>(std::move(s));
}

Status RankHasEnded(int rank) {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " has ended, and takes part no more"));
}

Status Store::Ended(const Asking& how) const {
  if (how.interruptible) OFL_RETURN_IF_ERROR(interrupted_);
  for (const int rank : left_) {
    if (std::find(how.of.begin(), how.of.end(), rank) != how.of.end()) return RankHasEnded(rank);
  }
  return OkStatus();
}

StatusOr<std::string> Store::Ask(const std::string& request, Timeout wait, const Asking& how) {
  std::shared_ptr<Socket> s;
  {
    std::lock_guard lock(mutex_);
    OFL_RETURN_IF_ERROR(Ended(how));
    if (!idle_.empty()) {
      s = std::move(idle_.back());
      idle_.pop_back();
      if (how.interruptible) busy_.push_back({s->fd(), how.of});
    }
  }
  if (!s) {
    OFL_ASSIGN_OR_RETURN(s, Open());
    std::lock_guard lock(mutex_);
    OFL_RETURN_IF_ERROR(Ended(how));
    if (how.interruptible) busy_.push_back({s->fd(), how.of});
  }
  const Deadline deadline = Clock::now() + wait + kPatience;
  Status sent = WriteFrame(*s, request, deadline);
  StatusOr<std::string> answer = sent.ok() ? ReadFrame(*s, deadline) : sent;
  std::lock_guard lock(mutex_);
  std::erase_if(busy_, [&](const InFlight& other) { return other.fd == s->fd(); });
  if (!answer.ok()) {
    OFL_RETURN_IF_ERROR(Ended(how));
    return Error(ErrorKind::kRuntime, "the store of rank 0 at port ", port_, " of ", address_, ": ",
                 answer.status().message());
  }
  idle_.push_back(std::move(s));
  Reader reader(*answer);
  switch (reader.Take<Answer>()) {
    case Answer::kError:
      return Error(ErrorKind::kRuntime, reader.Text());
    case Answer::kDone:
    case Answer::kTimeout:
      return answer;
    default:
      return BadAnswer();
  }
}

Status Store::TimedOut(absl::string_view key, Timeout timeout) const {
  return Error(ErrorKind::kRuntime, "the store has no \"", key, "\" after ",
               static_cast<double>(timeout.count()) / 1000, " s");
}

Status Store::Set(absl::string_view key, absl::string_view value) {
  return Ask(Writer(Request::kSet).Text(key).Text(value).Take(), timeout_, {}).status();
}

StatusOr<std::string> Store::Get(absl::string_view key, Timeout timeout, absl::Span<const int> of) {
  const auto ask = [&](Timeout wait, const Asking& how) {
    return Ask(Writer(Request::kGet).Text(key).Number(wait.count()).Take(), wait, how);
  };
  StatusOr<std::string> answer = ask(timeout, {.of = of});
  const Status ended = absl::IsUnavailable(answer.status()) ? answer.status() : OkStatus();
  if (!ended.ok()) answer = ask(Timeout(0), {});  // what it wrote before is there
  OFL_RETURN_IF_ERROR(answer.status());
  Reader reader(*answer);
  if (reader.Take<Answer>() == Answer::kTimeout) {
    return ended.ok() ? TimedOut(key, timeout) : ended;
  }
  std::string value = reader.Text();
  return reader.ok() ? StatusOr<std::string>(std::move(value)) : BadAnswer();
}

StatusOr<int64_t> Store::Add(absl::string_view key, int64_t delta) {
  OFL_ASSIGN_OR_RETURN(const std::string answer,
                       Ask(Writer(Request::kAdd).Text(key).Number(delta).Take(), timeout_, {}));
  Reader reader(answer);
  reader.Take<Answer>();
  return reader.Number();
}

StatusOr<bool> Store::Delete(absl::string_view key) {
  OFL_ASSIGN_OR_RETURN(const std::string answer,
                       Ask(Writer(Request::kDelete).Text(key).Take(), timeout_, {}));
  Reader reader(answer);
  reader.Take<Answer>();
  return reader.Number() != 0;
}

StatusOr<std::vector<std::string>> Store::Gather(absl::string_view key, int index, int count,
                                                 absl::string_view value, Timeout timeout,
                                                 std::vector<int>* absent,
                                                 absl::Span<const int> of) {
  if (count < 1) return BadValue("gather", "count", absl::StrCat(count), "positive");
  if (index < 0 || index >= count) {
    return BadValue("gather", "index", absl::StrCat(index), absl::StrCat("in [0, ", count, ")"));
  }
  Writer request(Request::kGather);
  request.Text(key).Number(index).Number(count).Text(value).Number(timeout.count());
  OFL_ASSIGN_OR_RETURN(const std::string answer, Ask(request.Take(), timeout, {.of = of}));
  Reader reader(answer);
  if (reader.Take<Answer>() == Answer::kTimeout) {
    for (int64_t n = reader.Number(); absent && n > 0 && reader.ok(); --n) {
      absent->push_back(static_cast<int>(reader.Number()));
    }
    return TimedOut(key, timeout);
  }
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) values.push_back(reader.Text());
  return reader.ok() ? StatusOr<std::vector<std::string>>(std::move(values)) : BadAnswer();
}

Status Store::Join(int rank, int size) {
  OFL_ASSIGN_OR_RETURN(std::shared_ptr<Socket> s, Open());
  const Deadline deadline = Clock::now() + timeout_;
  const std::string request = Writer(Request::kJoin).Number(rank).Number(size).Take();
  OFL_RETURN_IF_ERROR(WriteFrame(*s, request, deadline));
  OFL_ASSIGN_OR_RETURN(const std::string answer, ReadFrame(*s, deadline));
  Reader reader(answer);
  if (reader.Take<Answer>() != Answer::kDone) return Error(ErrorKind::kRuntime, reader.Text());
  events_ = std::move(s);
  return OkStatus();
}

StatusOr<std::optional<StoreEvent>> Store::NextEvent(Timeout timeout) {
  if (!events_) return Error(ErrorKind::kRuntime, "Join comes before NextEvent");
  const Deadline deadline = Clock::now() + timeout;
  // A frame is read whole once it has begun.
  if (!WaitToRead(*events_, deadline)) return std::optional<StoreEvent>();
  OFL_ASSIGN_OR_RETURN(const std::string frame, ReadFrame(*events_, deadline + timeout_));
  Reader reader(frame);
  if (reader.Take<Answer>() != Answer::kEvent) return BadAnswer();
  const auto kind = static_cast<StoreEvent::Kind>(reader.Number());
  const int rank = static_cast<int>(reader.Number());
  return std::optional<StoreEvent>(StoreEvent{kind, rank, reader.Text()});
}

Status Store::Post(const StoreEvent& event) {
  Writer request(Request::kPost);
  request.Number(static_cast<int64_t>(event.kind)).Number(event.rank).Text(event.text);
  return Ask(request.Take(), kPatience, {.interruptible = false}).status();
}

void Store::Interrupt(Status reason) {
  std::lock_guard lock(mutex_);
  if (!interrupted_.ok()) return;
  interrupted_ = std::move(reason);
  for (const InFlight& r : busy_) shutdown(r.fd, SHUT_RDWR);
}

void Store::Left(int rank) {
  std::lock_guard lock(mutex_);
  left_.push_back(rank);
  for (const InFlight& r : busy_) {
    if (std::find(r.of.begin(), r.of.end(), rank) != r.of.end()) shutdown(r.fd, SHUT_RDWR);
  }
}

}  // namespace oneflow_lite
