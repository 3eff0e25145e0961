// SPDX-License-Identifier: Apache-2.0
//
// Room under a limit of address space (ulimit -v). A library ends the process, or waits for ever,
// where it maps more than there is, so that is found out before, and by one thread at a time:
//
//   const TakingRoom alone;
//   if (HasRoom(bytes)) library_that_maps(bytes);
#pragma once

#include <cstddef>

#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// What a look leaves to who takes no turns: new threads, each with an arena of 64 MB, for which
// glibc maps 128 MB at first, and other libraries.
inline constexpr size_t kArena = size_t{64} << 20, kRoomForOthers = size_t{160} << 20;

// Whether `bytes` in one piece could be mapped just now. Where there is no limit it is cheap, too:
// two calls of the system.
OFL_API bool HasRoom(size_t bytes);

// What a thread's stack takes.
OFL_API size_t StackBytes();

OFL_API bool AddressSpaceIsLimited();

// From the look for room until it is taken: nobody else in the process has one, and no tensor gets
// memory from the system. A thread has one at a time; no other lock is taken within.
class OFL_API TakingRoom {
 public:
  TakingRoom();
  ~TakingRoom();
  TakingRoom(const TakingRoom&) = delete;
};

// While memory for a tensor is asked for, or threads that were granted start: as many at a time as
// like, but none beside a TakingRoom.
class OFL_API TakingMemory {
 public:
  TakingMemory();
  ~TakingMemory();
  TakingMemory(const TakingMemory&) = delete;
};

}  // namespace oneflow_lite
