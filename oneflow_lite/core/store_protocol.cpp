// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/store_protocol.h"

#include <cstring>

namespace oneflow_lite::store_protocol {

char Reader::Byte() {
  if (rest_.empty()) {
    ok_ = false;
    return -1;
  }
  const char byte = rest_[0];
  rest_.remove_prefix(1);
  return byte;
}

int64_t Reader::Number() {
  int64_t v = 0;
  if (rest_.size() < sizeof v) {
    ok_ = false;
    return 0;
  }
  std::memcpy(&v, rest_.data(), sizeof v);
  rest_.remove_prefix(sizeof v);
  return v;
}

std::string Reader::Text() {
  const auto n = static_cast<uint64_t>(Number());
  if (!ok_ || n > rest_.size()) {
    ok_ = false;
    return {};
  }
  std::string text(rest_.substr(0, n));
  rest_.remove_prefix(n);
  return text;
}

}  // namespace oneflow_lite::store_protocol
