// SPDX-License-Identifier: Apache-2.0
//
// A store of keys and values over TCP, through which processes meet. One process serves, all are
// clients, the serving one too.
//
//   OFL_ASSIGN_OR_RETURN(auto server, StoreServer::Start("127.0.0.1", 0));
//   OFL_ASSIGN_OR_RETURN(auto store, Store::Connect("127.0.0.1", server->port(), 30s));
//   OFL_RETURN_IF_ERROR(store->Set("colour", "blue"));
//   OFL_ASSIGN_OR_RETURN(std::string colour, store->Get("colour", 30s));   // waits for the key
//
// It also carries events: a process that joined hears what others post, and that one was lost.
// Values are bytes, at most 1 GiB. Nobody is asked for a password: a store is for the processes of
// one user on a network that is trusted; with a loopback address nobody else's machine reaches it.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "oneflow_lite/core/export.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

class Socket;

// Serves from a thread of its own until it is destroyed.
class OFL_API StoreServer {
 public:
  virtual ~StoreServer() = default;
  // At a port of this machine; 0 takes a free one. RuntimeError: it is in use.
  static StatusOr<std::unique_ptr<StoreServer>> Start(const std::string& address, int port);
  // On a socket that listens already, which now belongs to the server. ValueError: it does not.
  static StatusOr<std::unique_ptr<StoreServer>> StartOn(int listening_fd);
  int port() const { return port_; }
  // Waits until all that joined have left or were lost. False: not within that time.
  virtual bool WaitUntilLeft(std::chrono::milliseconds timeout) = 0;

 protected:
  int port_ = 0;
};

struct StoreEvent {
  enum class Kind : char {
    kFailed,  // the rank cannot go on; text says why
    kLost,    // the connection of a rank that has not left is gone
    kLeft,    // the rank has ended as it should
    kAsk,     // the rank asks what all are doing; text is a key for the answers
  };
  Kind kind;
  int rank;
  std::string text;
};

// Unavailable: rank 1 has ended, and takes part no more
OFL_API Status RankHasEnded(int rank);

// Thread-safe. Whatever waits gives a RuntimeError after its time-out.
class OFL_API Store {
 public:
  using Timeout = std::chrono::milliseconds;

  // `timeout` is also that of the requests that wait for nobody.
  static StatusOr<std::shared_ptr<Store>> Connect(const std::string& address, int port,
                                                  Timeout timeout);
  ~Store();

  Status Set(absl::string_view key, absl::string_view value);
  // The value, once there is one. `of` are the ranks that are waited for: RankHasEnded where one of
  // them has left without it.
  StatusOr<std::string> Get(absl::string_view key, Timeout timeout, absl::Span<const int> of = {});
  // Adds to a number, which is 0 at first; gives the sum. Get reads it as text.
  StatusOr<int64_t> Add(absl::string_view key, int64_t delta);
  // Whether the key was there.
  StatusOr<bool> Delete(absl::string_view key);
  // What `count` processes bring, by index, once all have come; the key is free again after that.
  // Who has not come within the time-out is named by index in *absent, where given; `of` as in Get.
  StatusOr<std::vector<std::string>> Gather(absl::string_view key, int index, int count,
                                            absl::string_view value, Timeout timeout,
                                            std::vector<int>* absent = nullptr,
                                            absl::Span<const int> of = {});

  // Makes this process known as `rank` of `size` for NextEvent. RuntimeError: another process has
  // that rank, or thinks of another size.
  Status Join(int rank, int size);
  // Waits for the next event; of one thread only. None: not within that time. An error: the server
  // is gone.
  StatusOr<std::optional<StoreEvent>> NextEvent(Timeout timeout);
  Status Post(const StoreEvent& event);

  // All requests, those that wait now too, fail with this from now on. Not so Post and NextEvent.
  void Interrupt(Status reason);
  // What waits for this rank, which has ended, waits no more from now on.
  void Left(int rank);
  // The address by which this machine reaches the server.
  const std::string& local_address() const { return local_address_; }

 private:
  Store(std::string address, int port, Timeout timeout)
      : address_(std::move(address)), port_(port), timeout_(timeout) {}
  StatusOr<std::shared_ptr<Socket>> Open();
  struct Asking {
    bool interruptible = true;
    absl::Span<const int> of = {};  // ranks that are waited for
  };
  // Why such a request has no answer; OK while it may have one. With mutex_ held.
  Status Ended(const Asking& how) const;
  StatusOr<std::string> Ask(const std::string& request, Timeout wait, const Asking& how);
  Status TimedOut(absl::string_view key, Timeout timeout) const;

  const std::string address_;
  const int port_;
  const Timeout timeout_;
  std::string local_address_;
  std::shared_ptr<Socket> events_;

  std::mutex mutex_;
  std::vector<std::shared_ptr<Socket>> idle_;
  struct InFlight {
    int fd;
    absl::Span<const int> of;
  };
  std::vector<InFlight> busy_;
  Status interrupted_;
  std::vector<int> left_;
};

}  // namespace oneflow_lite
