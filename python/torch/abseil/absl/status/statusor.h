// SPDX-License-Identifier: Apache-2.0
//
// absl::StatusOr; see status.h beside it.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace absl {

template <class T>
class StatusOr {
 public:
  StatusOr(Status status) : status_(std::move(status)) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<U&&, T> &&
                                              !std::is_same_v<std::decay_t<U>, StatusOr>>>
  StatusOr(U&& value) : value_(std::forward<U>(value)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  T& value() & { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace absl
