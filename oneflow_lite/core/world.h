// SPDX-License-Identifier: Apache-2.0
//
// The processes that compute together, one per device: how many there are, which one this is, and
// the store through which they meet. A process that nobody launched is a world of its own.
//
//   OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());   // meets the others at the first call
//   OFL_RETURN_IF_ERROR(world->store->Set("greeting", "hello", world->timeout));
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

class Store;

// What is left out comes from the environment: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
// MASTER_ADDR, OFL_MASTER_PORT or MASTER_PORT, OFL_TIMEOUT (seconds); in place of the first four
// those of Open MPI, of PMI, or of SLURM.
struct WorldOptions {
  std::optional<int> rank, size, local_rank, local_size;
  std::optional<std::string> address;
  std::optional<int> port;
  std::optional<std::chrono::milliseconds> timeout;
};

struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the processes of this machine
  int local_size = 1;
  std::string address;  // of rank 0
  int port = 0;
  std::chrono::milliseconds timeout{};  // what a collective may take
  std::shared_ptr<Store> store;         // null where size is 1
};

// Meets the other ranks. RuntimeError where the world was initialised before, or a rank does not
// come within the time-out; ValueError for a rank or size that cannot be. Where several GPUs are in
// sight, that of this rank becomes the calling thread's current one.
OFL_API Status InitWorld(const WorldOptions& options);
// The world, initialised from the environment where InitWorld was not called. It lives until the
// process ends.
OFL_API StatusOr<const World*> GetWorld();
OFL_API bool IsInitialized();

// Of the world; before it is initialised, what the environment says, without meeting anybody. An
// environment that makes no sense counts as that of one process here; GetWorld says what is wrong.
OFL_API int Rank();
OFL_API int WorldSize();
OFL_API int LocalRank();
// The index of the device of a type that belongs to this rank: of several in sight that of its
// local rank, 0 where a launcher lets each rank see one.
OFL_API int LocalDevice(DeviceType type);

// What the environment and the options say, without meeting anybody.
OFL_API StatusOr<World> ReadWorld(const WorldOptions& options);

// Whether the process ends with exit code 1 even where its program ends well: what a device was
// given has failed, and no call has said so yet.
OFL_API void FailAtExit(bool fails);
// Lets what this rank does when its program ends, to tell the others, come before the exit handlers
// that have been registered so far, as those of a device's library.
OFL_API void LeaveBeforeOthers();
// The process ends without those handlers, once the others know: a device's library cannot be taken
// down, because another thread is in it or what it was given never ends.
OFL_API void ExitAtOnce();

// Tells the other ranks that this one cannot go on and why, so that they end with that message
// instead of a time-out. Does nothing in a world of one, or the second time.
OFL_API void ReportFailure(absl::string_view message);
// What the first rank that failed has told: "rank 3 failed: out of memory". Empty while none has
// within `wait`. Who has asked and was told is trusted to end by itself; a process that does not
// ask within a few seconds of a failure is ended, with the message on stderr.
OFL_API std::string ReportedFailure(std::chrono::milliseconds wait = {});

// The ranks that have ended as they should.
OFL_API std::vector<int> LeftRanks();

// What the collectives have to do with other ranks; all are called from a thread of their own.
class OFL_API WorldObserver {
 public:
  virtual ~WorldObserver() = default;
  // A rank failed or was lost; or has left some seconds ago, and nobody should wait for it.
  virtual void OnFailure(const std::string& message) = 0;
  virtual void OnLeft(int rank) = 0;
  // What this process is doing, for another whose time is up.
  virtual std::string Doing() = 0;
};
// At most one, which lives until the process ends.
OFL_API void SetWorldObserver(WorldObserver* observer);
// What each of these ranks is doing, by its own account; empty where it gave none within a second.
OFL_API std::vector<std::string> AskWhatTheyDo(absl::Span<const int> ranks);

}  // namespace oneflow_lite
