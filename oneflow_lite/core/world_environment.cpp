// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "oneflow_lite/core/world.h"

namespace oneflow_lite {
namespace {

constexpr int kDefaultMasterPort = 29500;
constexpr double kDefaultTimeout = 300;  // seconds

// The variables in which launchers write the same four numbers.
struct Launcher {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    // The number of a step's tasks: that of the job also stands where nothing was started by srun.
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

const char* Variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

StatusOr<std::optional<int>> Number(const char* name) {
  const char* text = Variable(name);
  if (!text) return std::optional<int>();
  int n = 0;
  if (!absl::SimpleAtoi(text, &n)) {
    return Error(ErrorKind::kValue, "the environment variable ", name, " is \"", text,
                 "\", not a whole number");
  }
  return std::optional<int>(n);
}

// SLURM writes "4" or "4(x2),3".
std::optional<int> FirstNumber(const char* name) {
  const char* text = Variable(name);
  if (!text) return {};
  return static_cast<int>(std::strtol(text, nullptr, 10));
}

Status ReadNumbers(const WorldOptions& options, World* world) {
  std::optional<int> rank = options.rank, size = options.size;
  std::optional<int> local_rank = options.local_rank, local_size = options.local_size;
  for (const Launcher& l : kLaunchers) {
    const bool has_rank = Variable(l.rank), has_size = Variable(l.size);
    if (!has_rank && !has_size) continue;
    if (&l != kLaunchers && !(has_rank && has_size)) continue;
    OFL_ASSIGN_OR_RETURN(const std::optional<int> r, Number(l.rank));
    OFL_ASSIGN_OR_RETURN(const std::optional<int> s, Number(l.size));
    OFL_ASSIGN_OR_RETURN(const std::optional<int> lr, Number(l.local_rank));
    if (!rank) rank = r;
    if (!size) size = s;
    if (!local_rank) local_rank = lr;
    if (!local_size) local_size = FirstNumber(l.local_size);
    break;
  }
  if (rank.has_value() != size.has_value()) {
    return Error(ErrorKind::kValue, rank ? "the rank" : "the world size", " is given, but ",
                 rank ? "the world size (WORLD_SIZE)" : "the rank (RANK)", " is not");
  }
  world->rank = rank.value_or(0);
  world->size = size.value_or(1);
  if (world->size < 1 || world->rank < 0 || world->rank >= world->size) {
    return Error(ErrorKind::kValue, "rank ", world->rank, " of a world of ", world->size,
                 " processes cannot be");
  }
  world->local_size = local_size.value_or(local_rank ? world->size : 0);
  if (world->local_size < 1) world->local_size = world->size;
  world->local_rank = local_rank.value_or(world->rank % world->local_size);
  return OkStatus();
}

Status ReadAddress(const WorldOptions& options, World* world) {
  const char* address = Variable("MASTER_ADDR");
  if (options.address) {
    world->address = *options.address;
  } else if (address) {
    world->address = address;
  } else if (world->local_size >= world->size) {
    world->address = "127.0.0.1";
  } else {
    return Error(ErrorKind::kValue, "MASTER_ADDR is not set: the ", world->size,
                 " processes run on several machines, and must know the address of rank 0");
  }
  OFL_ASSIGN_OR_RETURN(const std::optional<int> own, Number("OFL_MASTER_PORT"));
  OFL_ASSIGN_OR_RETURN(const std::optional<int> master, Number("MASTER_PORT"));
  // MASTER_PORT itself may be taken by the launcher, or by PyTorch in the same process.
  world->port = options.port.value_or(own.value_or(master.value_or(kDefaultMasterPort) + 1));
  if (world->port < 1 || world->port > 65535) {
    return Error(ErrorKind::kValue, "port ", world->port, " is out of range [1, 65535]");
  }
  return OkStatus();
}

}  // namespace

StatusOr<World> ReadWorld(const WorldOptions& options) {
  World world;
  OFL_RETURN_IF_ERROR(ReadNumbers(options, &world));
  if (world.size > 1) OFL_RETURN_IF_ERROR(ReadAddress(options, &world));
  double seconds = kDefaultTimeout;
  const char* text = Variable("OFL_TIMEOUT");
  if (options.timeout) {
    seconds = static_cast<double>(options.timeout->count()) / 1000;
  } else if (text && !absl::SimpleAtod(text, &seconds)) {
    return Error(ErrorKind::kValue, "the environment variable OFL_TIMEOUT is \"", text,
                 "\", not a number of seconds");
  }
  if (!(seconds > 0 && seconds <= 1e7)) {
    return Error(ErrorKind::kValue, "a time-out of ", seconds,
                 " s; it must be positive and at most 1e7 s");
  }
  world.timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  return world;
}

}  // namespace oneflow_lite
