// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace oneflow_lite {
namespace {

// All there are, for forked children.
class OpenSockets {
 public:
  OpenSockets() { pthread_atfork(&Lock, &Unlock, &CloseAll); }
  void Add(int fd) {
    std::lock_guard lock(mutex_);
    fds_.push_back(fd);
  }
  void Close(int fd) {
    std::lock_guard lock(mutex_);
    const auto found = std::find(fds_.begin(), fds_.end(), fd);
    if (found == fds_.end()) return;  // closed in a forked child, where the number may be another's
    fds_.erase(found);
    close(fd);
  }

 private:
  static void Lock();
  static void Unlock();
  static void CloseAll();
  std::mutex mutex_;
  std::vector<int> fds_;
};
OpenSockets& GetOpenSockets() {
  static auto* sockets = new OpenSockets;
  return *sockets;
}
void OpenSockets::Lock() { GetOpenSockets().mutex_.lock(); }
void OpenSockets::Unlock() { GetOpenSockets().mutex_.unlock(); }
void OpenSockets::CloseAll() {
  OpenSockets& all = GetOpenSockets();
  for (const int fd : all.fds_) close(fd);
  all.fds_.clear();
  all.mutex_.unlock();
}

struct AddressInfoFree {
  void operator()(addrinfo* p) const { freeaddrinfo(p); }
};
using AddressInfo = std::unique_ptr<addrinfo, AddressInfoFree>;

StatusOr<AddressInfo> Resolve(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (rc != 0) {
    return Error(ErrorKind::kRuntime, "the address \"", address,
                 "\" is not known: ", gai_strerror(rc));
  }
  return AddressInfo(found);
}

bool IsLoopback(const sockaddr* a) {
  if (a->sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr) >> 24 == 127;
  }
  return a->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr);
}

std::string Reason(int error) { return std::strerror(error); }

// Waits until the socket is ready. False: the deadline has passed.
bool WaitFor(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    const int rc = poll(&p, 1, MillisecondsUntil(deadline));
    if (rc > 0) return true;
    if (rc == 0 && Clock::now() >= deadline) return false;
    if (rc < 0 && errno != EINTR) return true;  // the call that follows says what is wrong
  }
}

// Whether the other end is this one: where nobody listens at a port that the kernel also takes for
// ends of connections, a socket may be connected to itself, and then holds the port.
bool IsConnectedToItself(int fd) {
  sockaddr_storage own{}, other{};
  socklen_t n = sizeof own, m = sizeof other;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &n) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&other), &m) == 0 && n == m &&
         std::memcmp(&own, &other, n) == 0;
}

StatusOr<Socket> TryConnect(const addrinfo& to, Deadline deadline) {
  Socket s(socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol));
  if (!s) return Error(ErrorKind::kRuntime, Reason(errno));
  if (connect(s.fd(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return Error(ErrorKind::kRuntime, Reason(errno));
    if (!WaitFor(s.fd(), POLLOUT, deadline)) return Error(ErrorKind::kRuntime, "no answer");
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return Error(ErrorKind::kRuntime, Reason(error));
  }
  if (IsConnectedToItself(s.fd())) {
    const linger at_once{1, 0};  // else the port is in use for a minute after it is closed
    setsockopt(s.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return Error(ErrorKind::kRuntime, Reason(ECONNREFUSED));
  }
  const int on = 1;
  setsockopt(s.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(s.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return s;
}

Status Gone(const char* doing, int error) {
  return Error(ErrorKind::kRuntime, "the connection was lost while ", doing,
               error ? ": " + Reason(error) : std::string());
}

Status ReadExactly(int fd, char* p, size_t n, Deadline deadline) {
  while (n > 0) {
    const ssize_t got = recv(fd, p, n, MSG_DONTWAIT);
    if (got > 0) {
      p += got;
      n -= static_cast<size_t>(got);
    } else if (got == 0) {
      return Gone("reading", 0);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(fd, POLLIN, deadline)) {
        return Error(ErrorKind::kRuntime, "no answer came in time");
      }
    } else if (errno != EINTR) {
      return Gone("reading", errno);
    }
  }
  return OkStatus();
}

}  // namespace

Socket::Socket(int fd) : fd_(fd) {
  if (fd >= 0) GetOpenSockets().Add(fd);
}
Socket::~Socket() {
  if (fd_ >= 0) GetOpenSockets().Close(fd_);
}

int MillisecondsUntil(Deadline deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

StatusOr<Socket> ListenAt(const std::string& address, int port) {
  OFL_ASSIGN_OR_RETURN(const AddressInfo info, Resolve(address, port));
  sockaddr_storage where{};
  std::memcpy(&where, info->ai_addr, info->ai_addrlen);
  if (!IsLoopback(info->ai_addr)) {
    if (info->ai_family == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(&where)->sin6_addr = in6addr_any;
    } else {
      reinterpret_cast<sockaddr_in*>(&where)->sin_addr.s_addr = htonl(INADDR_ANY);
    }
  }
  Socket s(socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (s) setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!s || bind(s.fd(), reinterpret_cast<sockaddr*>(&where), info->ai_addrlen) != 0 ||
      listen(s.fd(), SOMAXCONN) != 0) {
    return Error(ErrorKind::kRuntime, "cannot listen at port ", port, " of ", address, ": ",
                 Reason(errno));
  }
  return s;
}

StatusOr<int> PortOf(const Socket& listening) {
  sockaddr_storage a{};
  socklen_t length = sizeof a;
  if (getsockname(listening.fd(), reinterpret_cast<sockaddr*>(&a), &length) != 0) {
    return Error(ErrorKind::kRuntime, "file descriptor ", listening.fd(),
                 " is no socket: ", Reason(errno));
  }
  // The port stands at the same place for both families.
  return ntohs(reinterpret_cast<sockaddr_in*>(&a)->sin_port);
}

StatusOr<Socket> ConnectTo(const std::string& address, int port, Deadline deadline) {
  std::string reason = "no answer";
  do {
    auto info = Resolve(address, port);
    if (!info.ok()) {
      reason = std::string(info.status().message());
    } else {
      for (const addrinfo* a = info->get(); a; a = a->ai_next) {
        auto s = TryConnect(*a, std::min(deadline, Clock::now() + std::chrono::seconds(10)));
        if (s.ok()) return s;
        reason = std::string(s.status().message());
      }
    }
    poll(nullptr, 0, std::min(50, MillisecondsUntil(deadline)));
  } while (Clock::now() < deadline);
  return Error(ErrorKind::kRuntime, "nobody answered at port ", port, " of ", address, ": ",
               reason);
}

StatusOr<std::string> LocalAddressOf(const Socket& connected) {
  sockaddr_storage a{};
  socklen_t length = sizeof a;
  char text[NI_MAXHOST];
  if (getsockname(connected.fd(), reinterpret_cast<sockaddr*>(&a), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&a), length, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return Error(ErrorKind::kRuntime, "a connection without an address");
  }
  return std::string(text);
}

bool WaitToRead(const Socket& s, Deadline deadline) { return WaitFor(s.fd(), POLLIN, deadline); }

Status WriteFrame(const Socket& s, const std::string& bytes, Deadline deadline) {
  if (bytes.size() > kLargestFrame) {
    return Error(ErrorKind::kValue, "a message of ", bytes.size(), " bytes; at most ",
                 kLargestFrame, " are allowed");
  }
  const auto length = static_cast<uint32_t>(bytes.size());
  std::string all(reinterpret_cast<const char*>(&length), sizeof length);
  all += bytes;
  const char* p = all.data();
  for (size_t n = all.size(); n > 0;) {
    const ssize_t put = send(s.fd(), p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) {
      p += put;
      n -= static_cast<size_t>(put);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(s.fd(), POLLOUT, deadline)) {
        return Error(ErrorKind::kRuntime, "a message could not be sent in time");
      }
    } else if (errno != EINTR) {
      return Gone("writing", errno);
    }
  }
  return OkStatus();
}

StatusOr<std::string> ReadFrame(const Socket& s, Deadline deadline) {
  uint32_t length = 0;
  OFL_RETURN_IF_ERROR(
      ReadExactly(s.fd(), reinterpret_cast<char*>(&length), sizeof length, deadline));
  if (length > kLargestFrame) return Error(ErrorKind::kRuntime, "the other side is no store");
  std::string bytes(length, '\0');
  OFL_RETURN_IF_ERROR(ReadExactly(s.fd(), bytes.data(), length, deadline));
  return bytes;
}

}  // namespace oneflow_lite
