// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/world.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/socket.h"
#include "oneflow_lite/core/store.h"

namespace oneflow_lite {
namespace {

using std::chrono::milliseconds;
// How long a process may go on by itself that was told of a failure, and has not taken note.
constexpr std::chrono::seconds kGrace{5};
// How long rank 0 stays for the others' last questions after a failure.
constexpr std::chrono::seconds kAftermath{3};
constexpr std::chrono::seconds kAnswerTime{1};

struct Meeting {
  World world;
  std::unique_ptr<StoreServer> server;  // of rank 0
  pid_t process = 0;

  std::mutex mutex;
  std::condition_variable told;
  std::string failure;
  std::vector<int> left;
  bool noted = false;    // somebody here has read the failure
  bool leaving = false;  // this process ends as it should
  bool reported = false;
};

std::mutex init_mutex;
std::atomic<Meeting*> meeting{nullptr};  // never destroyed: its threads run until the end
std::atomic<WorldObserver*> observer{nullptr};
std::atomic<bool> fails_at_exit{false};
std::atomic<bool> exits_at_once{false};

void NoteFailure(Meeting& m, const std::string& message) {
  {
    std::lock_guard lock(m.mutex);
    if (!m.failure.empty()) return;
    m.failure = message;
  }
  m.world.store->Interrupt(Error(ErrorKind::kRuntime, message));
  m.told.notify_all();
  if (WorldObserver* o = observer.load()) o->OnFailure(message);
}

// Ends the process, unless it has taken note of the failure by then.
void EndAfterGrace(Meeting& m) {
  std::unique_lock lock(m.mutex);
  if (m.told.wait_for(lock, kGrace, [&] { return m.noted || m.leaving || m.reported; })) return;
  std::fprintf(stderr, "oneflow_lite: rank %d ends, because %s\n", m.world.rank, m.failure.c_str());
  std::fflush(stderr);
  _exit(1);
}

// Hears what happens to the others, until the first failure.
class Watcher {
 public:
  explicit Watcher(Meeting& m) : m_(m) {}
  void Run() {
    while (!over_) {
      const auto e = m_.world.store->NextEvent(left_.empty() ? milliseconds(kLongTime)
                                                             : milliseconds(kFarewell));
      if (!e.ok()) {
        if (server_left_) return;
        Fail(0, kLost);
      } else if (*e) {
        Handle(**e);
      }
      TellWhoLeft();
    }
    EndAfterGrace(m_);
  }

 private:
  static constexpr std::chrono::hours kLongTime{24};
  // What a rank sent before it left may still be on its way.
  static constexpr std::chrono::seconds kFarewell{2};
  static constexpr char kLost[] =
      "its process ended without a word, as when it is killed or out of memory";

  void Handle(const StoreEvent& e) {
    switch (e.kind) {
      case StoreEvent::Kind::kLeft:
        server_left_ |= e.rank == 0;
        {
          std::lock_guard lock(m_.mutex);
          m_.left.push_back(e.rank);
        }
        if (e.rank != m_.world.rank) left_.push_back({Clock::now() + kFarewell, e.rank});
        return;
      case StoreEvent::Kind::kAsk: {
        WorldObserver* o = observer.load();
        const std::string doing = o ? o->Doing() : "has made no collective call";
        (void)m_.world.store->Set(absl::StrCat(e.text, "/", m_.world.rank), doing);
        return;
      }
      case StoreEvent::Kind::kFailed:
        return Fail(e.rank, e.text);
      case StoreEvent::Kind::kLost:
        return Fail(e.rank, kLost);
    }
  }
  void Fail(int rank, absl::string_view text) {
    over_ = true;
    NoteFailure(m_, absl::StrCat("rank ", rank, " failed: ", text));
  }
  void TellWhoLeft() {
    while (!left_.empty() && Clock::now() >= left_.front().first) {
      m_.world.store->Left(left_.front().second);
      if (WorldObserver* o = observer.load()) o->OnLeft(left_.front().second);
      left_.pop_front();
    }
  }

  Meeting& m_;
  std::deque<std::pair<Deadline, int>> left_;
  bool server_left_ = false;
  bool over_ = false;
};

void Leave(int status, void*) {
  static std::atomic<bool> begun{false};
  Meeting* m = meeting.load();
  if (!m || m->process != getpid() || begun.exchange(true)) return;
  bool failed;
  {
    std::lock_guard lock(m->mutex);
    failed = !m->failure.empty() || m->reported;
    m->leaving = true;
  }
  m->told.notify_all();
  (void)m->world.store->Post({StoreEvent::Kind::kLeft, m->world.rank, {}});
  if (m->server) m->server->WaitUntilLeft(failed ? milliseconds(kAftermath) : m->world.timeout);
  if (!fails_at_exit && !exits_at_once) return;
  std::fflush(nullptr);
  _exit(status == 0 && fails_at_exit ? 1 : status);
}

StatusOr<std::unique_ptr<StoreServer>> StartServer(World* world) {
  // A launcher that has chosen a free port hands its socket on, so that nobody can take it between.
  if (const char* fd = std::getenv("OFL_STORE_FD"); fd && *fd) {
    auto server = StoreServer::StartOn(std::atoi(fd));
    unsetenv("OFL_STORE_FD");
    if (server.ok()) {
      world->port = (*server)->port();
      return server;
    }
  }
  return StoreServer::Start(world->address, world->port);
}

Status Meet(Meeting& m) {
  World& w = m.world;
  if (w.rank == 0) {
    OFL_ASSIGN_OR_RETURN(m.server, StartServer(&w));
  }
  OFL_ASSIGN_OR_RETURN(w.store, Store::Connect(w.address, w.port, w.timeout));
  OFL_RETURN_IF_ERROR(w.store->Join(w.rank, w.size));
  std::vector<int> absent;
  const auto all = w.store->Gather("world/init", w.rank, w.size, "", w.timeout, &absent);
  if (all.ok() || absent.empty()) return all.status();
  return Error(ErrorKind::kRuntime, absent.size() == 1 ? "rank " : "ranks ",
               absl::StrJoin(absent, ", "), " of ", w.size, " did not come to port ", w.port,
               " of ", w.address, " within ", static_cast<double>(w.timeout.count()) / 1000, " s");
}

}  // namespace

Status InitWorld(const WorldOptions& options) {
  std::lock_guard lock(init_mutex);
  if (meeting.load()) {
    return Error(ErrorKind::kRuntime, "the processes have met already: init comes first, and once");
  }
  auto m = std::make_unique<Meeting>();
  OFL_ASSIGN_OR_RETURN(m->world, ReadWorld(options));
  m->process = getpid();
  if (m->world.size > 1) {
    if (Status met = Meet(*m); !met.ok()) {
      return Error(KindOf(met), "rank ", m->world.rank, " cannot meet the others: ", met.message());
    }
    on_exit(&Leave, nullptr);
  }
  Meeting* kept = m.release();
  meeting.store(kept);
  if (const int own = LocalDevice(DeviceType::kCUDA)) {
    SetCurrentDeviceIndex(DeviceType::kCUDA, own);
  }
  if (kept->world.size > 1) std::thread([kept] { Watcher(*kept).Run(); }).detach();
  return OkStatus();
}

StatusOr<const World*> GetWorld() {
  Meeting* m = meeting.load();
  if (!m) {
    const Status s = InitWorld({});
    m = meeting.load();  // another thread may have been quicker
    if (!m) return s;
  }
  if (m->world.size > 1 && m->process != getpid()) {
    return Error(ErrorKind::kRuntime, "this process was forked from rank ", m->world.rank,
                 ", and is no rank itself; ranks are fresh processes");
  }
  return &m->world;
}

bool IsInitialized() { return meeting.load() != nullptr; }

namespace {
World WorldSoFar() {
  if (const Meeting* m = meeting.load()) return m->world;
  const auto world = ReadWorld({});
  return world.ok() ? *world : World();
}
}  // namespace

int Rank() { return WorldSoFar().rank; }
int WorldSize() { return WorldSoFar().size; }
int LocalRank() { return WorldSoFar().local_rank; }
int LocalDevice(DeviceType type) {
  const int rank = type == DeviceType::kCUDA ? LocalRank() : 0;
  if (rank == 0) return 0;
  const auto backend = GetBackend(type);
  return backend.ok() ? rank % std::max((*backend)->DeviceCount(), 1) : 0;
}

void ReportFailure(absl::string_view message) {
  Meeting* m = meeting.load();
  if (!m || !m->world.store || m->process != getpid()) return;
  {
    std::lock_guard lock(m->mutex);
    if (m->reported) return;
    m->reported = true;
    if (!m->failure.empty()) return;
  }
  (void)m->world.store->Post({StoreEvent::Kind::kFailed, m->world.rank, std::string(message)});
}

std::string ReportedFailure(milliseconds wait) {
  Meeting* m = meeting.load();
  if (!m || !m->world.store) return {};
  std::unique_lock lock(m->mutex);
  m->told.wait_for(lock, wait, [&] { return !m->failure.empty(); });
  if (m->failure.empty()) return {};
  m->noted = true;
  m->told.notify_all();
  return m->failure;
}

std::vector<int> LeftRanks() {
  Meeting* m = meeting.load();
  if (!m) return {};
  std::lock_guard lock(m->mutex);
  return m->left;
}

void FailAtExit(bool fails) { fails_at_exit = fails; }
void LeaveBeforeOthers() { on_exit(&Leave, nullptr); }
void ExitAtOnce() { exits_at_once = true; }

void SetWorldObserver(WorldObserver* o) { observer.store(o); }

std::vector<std::string> AskWhatTheyDo(absl::Span<const int> ranks) {
  std::vector<std::string> answers(ranks.size());
  Meeting* m = meeting.load();
  if (!m || !m->world.store) return answers;
  Store& store = *m->world.store;
  static std::atomic<int> questions{0};
  const std::string key = absl::StrCat("doing/", m->world.rank, "/", questions++);
  if (!store.Post({StoreEvent::Kind::kAsk, m->world.rank, key}).ok()) return answers;
  const Deadline deadline = Clock::now() + kAnswerTime;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto answer =
        store.Get(absl::StrCat(key, "/", ranks[i]), milliseconds(MillisecondsUntil(deadline)),
                  absl::MakeConstSpan(&ranks[i], 1));
    if (answer.ok()) answers[i] = *answer;
  }
  return answers;
}

}  // namespace oneflow_lite
