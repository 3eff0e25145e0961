// SPDX-License-Identifier: Apache-2.0
//
// Messages of several ranks at once, over Gloo's TCP transport: all that a collective is made of.
#pragma once

#include <gloo/rendezvous/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <mutex>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "oneflow_lite/core/status.h"
#include "oneflow_lite/core/world.h"

namespace oneflow_lite {

// A block of memory that goes to a peer or comes from it. Both sides give it the same tag, and no
// other message between the two in that direction has it at the same time.
struct Message {
  bool send;
  void* data;
  int64_t nbytes;
  int peer;
  uint64_t tag;
};

class Exchanger {
 public:
  // Connects each of these ranks of the world with each, through its store; `rank` is a place in
  // the list, and so is a peer. Each lane has connections of its own. What goes wrong is thrown.
  Exchanger(const World& world, std::vector<int> ranks, int rank, int lane);

  // All messages go at once; returns when the last has ended. Those of 0 bytes stay at home.
  // DeadlineExceeded after the world's time-out; Unavailable where a peer is gone or Abort came.
  Status Run(absl::Span<const Message> messages);
  // From another thread: ends all messages, or those with a peer that is gone, from now on.
  void Abort(std::optional<int> peer);

 private:
  struct Pending {
    Message message;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  };
  Status Start(absl::Span<const Message> messages);
  Status Wait();
  Status Gone(int peer) const;

  const std::vector<int> ranks_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::mutex mutex_;
  std::vector<Pending> pending_;  // changes under the mutex
  std::vector<bool> gone_;
};

}  // namespace oneflow_lite
