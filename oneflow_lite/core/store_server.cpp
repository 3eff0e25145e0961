// SPDX-License-Identifier: Apache-2.0
//
// One thread, one poll() over all connections; requests that wait are noted and answered when what
// they wait for comes, or their time is up.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <list>
#include <map>
#include <optional>
#include <thread>

#include "oneflow_lite/core/socket.h"
#include "oneflow_lite/core/store.h"
#include "oneflow_lite/core/store_protocol.h"

namespace oneflow_lite {
namespace {

using store_protocol::Answer;
using store_protocol::kGreeting;
using store_protocol::Reader;
using store_protocol::Request;
using store_protocol::Writer;

struct Connection {
  Socket socket;
  std::string in, out;
  size_t sent = 0;     // bytes of `out` that went
  bool ready = false;  // there is something to read
  bool greeted = false;
  bool broken = false;
  int rank = -1;  // of one that joined
  // The request that waits, if any: for a key, or for the others of a gathering.
  std::optional<std::string> awaited;
  bool gathers = false;
  Deadline deadline{};
};

constexpr int64_t kMostGathered = 1 << 20;  // values of one gathering

struct Gathering {
  std::vector<std::optional<std::string>> values;
  int present = 0;
};

class Server : public StoreServer {
 public:
  Server(Socket listening, Socket wake, int port)
      : listening_(std::move(listening)), wake_(std::move(wake)) {
    port_ = port;
    thread_ = std::thread([this] { Serve(); });
  }
  ~Server() override {
    const uint64_t one = 1;
    stop_.store(true);
    if (write(wake_.fd(), &one, sizeof one) < 0) std::abort();  // 1 cannot overflow the counter
    thread_.join();
  }
  bool WaitUntilLeft(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    return gone_.wait_for(lock, timeout, [this] { return members_ == 0; });
  }

 private:
  void Serve() {
    while (!stop_.load()) {
      Poll();
      for (Connection& c : connections_) {
        if (c.ready) ReadRequests(c);
      }
      for (Connection& c : connections_) CheckDeadline(c);
      // A loss is told to others, whose connections may break in turn.
      for (auto c = connections_.begin(); c != connections_.end();) {
        Flush(*c);
        if (c->broken) {
          Drop(*c);
          c = connections_.erase(c);
        } else {
          ++c;
        }
      }
    }
  }

  void Poll() {
    std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}, {listening_.fd(), POLLIN, 0}};
    int timeout = -1;
    for (const Connection& c : connections_) {
      fds.push_back({c.socket.fd(), static_cast<short>(POLLIN | (c.out.empty() ? 0 : POLLOUT)), 0});
      if (c.awaited) {
        const int left = MillisecondsUntil(c.deadline);
        timeout = timeout < 0 ? left : std::min(timeout, left);
      }
    }
    if (poll(fds.data(), fds.size(), timeout) < 0) return;
    size_t i = 2;
    for (Connection& c : connections_) c.ready = fds[i++].revents & ~POLLOUT;
    if (fds[1].revents) {
      const int fd = accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        connections_.emplace_back().socket = Socket(fd);
      } else if (errno == EMFILE || errno == ENFILE) {  // poll() would come back at once
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  void ReadRequests(Connection& c) {
    char bytes[65536];
    for (;;) {
      const ssize_t got = recv(c.socket.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got > 0) {
        c.in.append(bytes, static_cast<size_t>(got));
        continue;
      }
      if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) c.broken = true;
      break;
    }
    uint32_t length = 0;
    while (c.in.size() >= sizeof length) {
      std::memcpy(&length, c.in.data(), sizeof length);
      if (length > (c.greeted ? kLargestFrame : sizeof kGreeting)) {
        c.broken = true;
        return;
      }
      if (c.in.size() < sizeof length + length) return;
      const std::string frame = c.in.substr(sizeof length, length);
      c.in.erase(0, sizeof length + length);
      if (c.greeted) {
        Handle(c, frame);
      } else if (frame == kGreeting) {
        c.greeted = true;
        Send(c, frame);
      } else {
        c.broken = true;
      }
    }
  }

  void Handle(Connection& c, const std::string& frame) {
    Reader r(frame);
    switch (r.Take<Request>()) {
      case Request::kSet: {
        const std::string key = r.Text();
        Put(key, r.Text());
        return Send(c, Writer(Answer::kDone).Take());
      }
      case Request::kGet: {
        const std::string key = r.Text();
        if (const auto found = values_.find(key); found != values_.end()) {
          return Send(c, Writer(Answer::kDone).Text(found->second).Take());
        }
        return Await(c, key, /*gathers=*/false, r.Number());
      }
      case Request::kAdd: {
        const std::string key = r.Text();
        const auto found = values_.find(key);
        const int64_t old =
            found == values_.end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
        const int64_t sum = old + r.Number();
        Put(key, std::to_string(sum));
        return Send(c, Writer(Answer::kDone).Number(sum).Take());
      }
      case Request::kDelete:
        return Send(
            c, Writer(Answer::kDone).Number(static_cast<int64_t>(values_.erase(r.Text()))).Take());
      case Request::kGather:
        return Gather(c, r);
      case Request::kJoin: {
        const auto rank = static_cast<int>(r.Number());
        return Join(c, rank, static_cast<int>(r.Number()));
      }
      case Request::kPost: {
        const auto kind = static_cast<StoreEvent::Kind>(r.Number());
        const auto rank = static_cast<int>(r.Number());
        Tell({kind, rank, r.Text()});
        return Send(c, Writer(Answer::kDone).Take());
      }
    }
    c.broken = true;
  }

  void Put(const std::string& key, std::string value) {
    for (Connection& c : connections_) {
      if (c.awaited == key && !c.gathers) {
        c.awaited.reset();
        Send(c, Writer(Answer::kDone).Text(value).Take());
      }
    }
    values_[key] = std::move(value);
  }

  void Await(Connection& c, const std::string& key, bool gathers, int64_t milliseconds) {
    c.awaited = key;
    c.gathers = gathers;
    // Beyond a year, times overflow.
    c.deadline = Clock::now() + std::chrono::milliseconds(
                                    std::clamp<int64_t>(milliseconds, 0, int64_t{31536000} * 1000));
  }

  void Gather(Connection& c, Reader& r) {
    const std::string key = r.Text();
    const int64_t index = r.Number(), count = r.Number();
    std::string value = r.Text();
    const int64_t milliseconds = r.Number();
    if (count > kMostGathered || index < 0 || index >= count) {
      return Fail(c, absl::StrCat("\"", key, "\" cannot be gathered from ", count,
                                  " processes by number ", index));
    }
    Gathering& g = gatherings_[key];
    if (g.values.empty()) g.values.resize(static_cast<size_t>(count));
    if (static_cast<size_t>(count) != g.values.size()) {
      return Fail(c, absl::StrCat("\"", key, "\" is gathered from ", g.values.size(),
                                  " processes by others, from ", count, " by number ", index));
    }
    std::optional<std::string>& mine = g.values[static_cast<size_t>(index)];
    if (!mine) ++g.present;  // one that timed out may come again
    mine = std::move(value);
    Await(c, key, /*gathers=*/true, milliseconds);
    if (g.present < count) return;
    Writer answer(Answer::kDone);
    for (const auto& v : g.values) answer.Text(*v);
    const std::string bytes = answer.Take();
    for (Connection& member : connections_) {
      if (member.awaited != key || !member.gathers) continue;
      member.awaited.reset();
      Send(member, bytes);
    }
    gatherings_.erase(key);
  }

  void CheckDeadline(Connection& c) {
    if (!c.awaited || Clock::now() < c.deadline) return;
    Writer answer(Answer::kTimeout);
    if (c.gathers) {
      const Gathering& g = gatherings_[*c.awaited];
      answer.Number(static_cast<int64_t>(g.values.size()) - g.present);
      for (size_t i = 0; i < g.values.size(); ++i) {
        if (!g.values[i]) answer.Number(static_cast<int64_t>(i));
      }
    }
    c.awaited.reset();
    Send(c, answer.Take());
  }

  void Join(Connection& c, int rank, int size) {
    if (size_ == 0) size_ = size;
    if (size != size_) {
      return Fail(c, absl::StrCat("rank ", rank, " is one of ", size,
                                  " processes by its own account, but one of ", size_,
                                  " by that of the first that came"));
    }
    for (const Connection& other : connections_) {
      if (other.rank == rank) {
        return Fail(c, absl::StrCat("there are two processes with rank ", rank));
      }
    }
    c.rank = rank;
    Count(1);
    Send(c, Writer(Answer::kDone).Take());
    for (const StoreEvent& e : told_) SendEvent(c, e);
  }

  // An event goes to all that joined, and to those that will; a question only to the first.
  void Tell(const StoreEvent& event) {
    if (event.kind != StoreEvent::Kind::kAsk) told_.push_back(event);
    for (Connection& c : connections_) {
      if (c.rank < 0) continue;
      SendEvent(c, event);
      if (event.kind == StoreEvent::Kind::kLeft && c.rank == event.rank) Leave(c);
    }
  }
  void SendEvent(Connection& c, const StoreEvent& e) {
    Send(c, Writer(Answer::kEvent)
                .Number(static_cast<int64_t>(e.kind))
                .Number(e.rank)
                .Text(e.text)
                .Take());
  }
  void Leave(Connection& c) {
    c.rank = -1;
    Count(-1);
  }
  void Drop(Connection& c) {
    if (c.rank < 0) return;
    const int rank = c.rank;
    Leave(c);
    Tell({StoreEvent::Kind::kLost, rank, {}});
  }
  void Count(int change) {
    {
      std::lock_guard lock(mutex_);
      members_ += change;
    }
    gone_.notify_all();
  }

  void Fail(Connection& c, const std::string& message) {
    Send(c, Writer(Answer::kError).Text(message).Take());
  }
  void Send(Connection& c, const std::string& frame) {
    if (frame.size() > kLargestFrame) {
      return Fail(c, absl::StrCat("the answer has ", frame.size(), " bytes, but only ",
                                  kLargestFrame, " are allowed"));
    }
    const auto length = static_cast<uint32_t>(frame.size());
    c.out.append(reinterpret_cast<const char*>(&length), sizeof length);
    c.out += frame;
    Flush(c);
  }
  static void Flush(Connection& c) {
    while (c.sent < c.out.size()) {
      const ssize_t put = send(c.socket.fd(), c.out.data() + c.sent, c.out.size() - c.sent,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put > 0) {
        c.sent += static_cast<size_t>(put);
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
      c.broken = true;
      break;
    }
    c.out.clear();
    c.sent = 0;
  }

  Socket listening_, wake_;
  std::list<Connection> connections_;
  std::map<std::string, std::string> values_;
  std::map<std::string, Gathering> gatherings_;
  std::vector<StoreEvent> told_;
  int size_ = 0;

  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable gone_;
  int members_ = 0;
  std::thread thread_;
};

StatusOr<std::unique_ptr<StoreServer>> Serve(Socket listening) {
  OFL_ASSIGN_OR_RETURN(const int port, PortOf(listening));
  Socket wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Error(ErrorKind::kRuntime, "no file descriptor is left");
  return std::make_unique<Server>(std::move(listening), std::move(wake), port);
}

}  // namespace

StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(const std::string& address, int port) {
  OFL_ASSIGN_OR_RETURN(Socket listening, ListenAt(address, port));
  return Serve(std::move(listening));
}

StatusOr<std::unique_ptr<StoreServer>> StoreServer::StartOn(int listening_fd) {
  int listens = 0;
  socklen_t length = sizeof listens;
  if (getsockopt(listening_fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || !listens) {
    return Error(ErrorKind::kValue, "file descriptor ", listening_fd, " is no listening socket");
  }
  Socket listening(listening_fd);
  fcntl(listening_fd, F_SETFD, FD_CLOEXEC);
  fcntl(listening_fd, F_SETFL, fcntl(listening_fd, F_GETFL) | O_NONBLOCK);
  return Serve(std::move(listening));
}

}  // namespace oneflow_lite
