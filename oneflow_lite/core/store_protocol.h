// SPDX-License-Identifier: Apache-2.0
//
// What Store and StoreServer say to each other: frames (socket.h) of one byte and fields. Both ends
// are the same program on the same kind of machine.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace oneflow_lite::store_protocol {

// The first frame of each connection.
inline constexpr char kGreeting[] = "oneflow_lite store 1";

enum class Request : char {
  kSet,     // key, value
  kGet,     // key, milliseconds -> value
  kAdd,     // key, delta -> sum
  kDelete,  // key -> whether it was there
  kGather,  // key, index, count, value, milliseconds -> count values
  kJoin,    // rank, size: events come on this connection from now on
  kPost,    // an event for all that joined
};
enum class Answer : char {
  kDone,
  kTimeout,  // of kGather: the indices that did not come
  kError,    // message
  kEvent,    // kind, rank, text; on a connection that joined
};

class Writer {
 public:
  template <class Kind>
  explicit Writer(Kind kind) : bytes_(1, static_cast<char>(kind)) {}
  Writer& Number(int64_t v) {
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
    return *this;
  }
  Writer& Text(absl::string_view text) {
    Number(static_cast<int64_t>(text.size()));
    bytes_.append(text.data(), text.size());
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what Writer wrote; what is missing reads as 0 and empty, and ok() turns false.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}
  template <class Kind>
  Kind Take() {
    return static_cast<Kind>(Byte());
  }
  int64_t Number();
  std::string Text();
  bool ok() const { return ok_; }

 private:
  char Byte();
  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace oneflow_lite::store_protocol
