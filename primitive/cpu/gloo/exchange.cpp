// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/gloo/exchange.h"

#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_join.h"
#include "oneflow_lite/core/store.h"

namespace oneflow_lite {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The world's store as Gloo wants one. Errors are thrown, and caught where a Status begins.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(const World& world, absl::Span<const int> ranks, std::string prefix)
      : world_(world), ranks_(ranks), prefix_(std::move(prefix)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    Check(world_.store->Set(prefix_ + key, absl::string_view(data.data(), data.size())));
  }
  std::vector<char> get(const std::string& key) override {
    const auto value = world_.store->Get(prefix_ + key, world_.timeout, ranks_);
    Check(value.status());
    return std::vector<char>(value->begin(), value->end());
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, world_.timeout); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    for (const std::string& key : keys) {
      Check(world_.store->Get(prefix_ + key, timeout, ranks_).status());
    }
  }

 private:
  static void Check(const Status& s) {
    if (!s.ok()) throw std::runtime_error(std::string(s.message()));
  }
  const World& world_;
  const absl::Span<const int> ranks_;
  const std::string prefix_;
};

// The interface by which rank 0 is reached, unless GLOO_SOCKET_IFNAME names another.
std::shared_ptr<gloo::transport::Device> NewDevice(const World& world) {
  // Gloo writes to connections that another rank may have closed, which ends a process that does
  // not ignore SIGPIPE, as Python does. The write's error is what is wanted. A handler of the
  // program's own stays.
  struct sigaction action = {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
      action.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
  gloo::transport::tcp::attr attr;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface && *interface) {
    attr.iface = interface;
  } else {
    attr.hostname = world.store->local_address();
  }
  return gloo::transport::tcp::CreateDevice(attr);
}

}  // namespace

Exchanger::Exchanger(const World& world, std::vector<int> ranks, int rank, int lane)
    : ranks_(std::move(ranks)),
      timeout_(world.timeout),
      context_(std::make_shared<gloo::rendezvous::Context>(rank, static_cast<int>(ranks_.size()))),
      gone_(ranks_.size()) {
  // One thread for all communicators; it runs until the process ends.
  static auto* device = new auto(NewDevice(world));
  GlooStore store(world, ranks_, absl::StrCat("gloo/", absl::StrJoin(ranks_, ","), "/", lane, "/"));
  context_->setTimeout(timeout_);
  context_->connectFullMesh(store, *device);
  // A rank that left now would close what others still connect to.
  store.set(absl::StrCat("connected ", rank), {'1'});
  for (size_t other = 0; other < ranks_.size(); ++other) {
    store.wait({absl::StrCat("connected ", other)});
  }
}

Status Exchanger::Gone(int peer) const { return RankHasEnded(ranks_[static_cast<size_t>(peer)]); }

Status Exchanger::Start(absl::Span<const Message> messages) {
  std::lock_guard lock(mutex_);
  for (const Message& m : messages) {
    if (gone_[static_cast<size_t>(m.peer)] && m.nbytes > 0) return Gone(m.peer);
  }
  pending_.reserve(messages.size());
  for (const bool send : {false, true}) {
    for (const Message& m : messages) {
      if (m.nbytes == 0 || m.send != send) continue;
      const auto nbytes = static_cast<size_t>(m.nbytes);
      pending_.push_back({m, context_->createUnboundBuffer(m.data, nbytes)});
      gloo::transport::UnboundBuffer& buffer = *pending_.back().buffer;
      send ? buffer.send(m.peer, m.tag, 0, nbytes) : buffer.recv(m.peer, m.tag, 0, nbytes);
    }
  }
  return OkStatus();
}

Status Exchanger::Wait() {
  const auto deadline = steady_clock::now() + timeout_;
  for (const Pending& p : pending_) {
    // Gloo takes 0 and less for no time-out at all.
    const auto left =
        std::max(milliseconds(1), std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
    try {
      const bool done = p.message.send ? p.buffer->waitSend(left) : p.buffer->waitRecv(left);
      if (!done) return Gone(p.message.peer);
    } catch (const gloo::IoException& e) {
      if (steady_clock::now() >= deadline) return absl::DeadlineExceededError(e.what());
      return absl::UnavailableError(e.what());
    }
  }
  return OkStatus();
}

Status Exchanger::Run(absl::Span<const Message> messages) {
  Status s;
  try {
    s = Start(messages);
    if (s.ok()) s = Wait();
  } catch (const gloo::IoException& e) {
    s = absl::UnavailableError(e.what());
  }
  std::vector<Pending> ended;
  {
    std::lock_guard lock(mutex_);
    ended.swap(pending_);
  }
  return s;
}

void Exchanger::Abort(std::optional<int> peer) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < gone_.size(); ++i)
    gone_[i] = gone_[i] || !peer || *peer == static_cast<int>(i);
  for (const Pending& p : pending_) {
    if (peer && *peer != p.message.peer) continue;
    p.message.send ? p.buffer->abortWaitSend() : p.buffer->abortWaitRecv();
  }
}

}  // namespace oneflow_lite
