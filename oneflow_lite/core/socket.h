// SPDX-License-Identifier: Apache-2.0
//
// TCP with deadlines. Nothing here is inherited by a program that this process starts.
//
//   OFL_ASSIGN_OR_RETURN(Socket s, ConnectTo("10.0.0.1", 29500, Clock::now() + 30s));
//   OFL_RETURN_IF_ERROR(WriteFrame(s, "hello", Clock::now() + 30s));
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Milliseconds until then, as poll() takes them: 0 when it has passed.
int MillisecondsUntil(Deadline deadline);

// A file descriptor with an owner. A forked child closes its copies, so that the other side hears
// when this process ends, whatever its children do.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd);
  Socket(Socket&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Socket& operator=(Socket&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Socket();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Listens at the address where that is one of this machine's loopback, else at all of the machine's
// addresses; port 0 takes a free one. RuntimeError: the port is in use.
StatusOr<Socket> ListenAt(const std::string& address, int port);
// The port that a socket listens at.
StatusOr<int> PortOf(const Socket& listening);
// Tries again until the deadline: the other side may not be there yet.
StatusOr<Socket> ConnectTo(const std::string& address, int port, Deadline deadline);
// The address of this end of a connection, as digits.
StatusOr<std::string> LocalAddressOf(const Socket& connected);

// Waits until there is something to read, or the other side is gone. False: not by then.
bool WaitToRead(const Socket& s, Deadline deadline);
// A length and that many bytes. A RuntimeError where the other side is gone, or the deadline
// passed.
Status WriteFrame(const Socket& s, const std::string& bytes, Deadline deadline);
StatusOr<std::string> ReadFrame(const Socket& s, Deadline deadline);

inline constexpr size_t kLargestFrame = size_t{1} << 30;

}  // namespace oneflow_lite
