// SPDX-License-Identifier: Apache-2.0
//
// Attributes: the typed, non-tensor arguments of an op, by position. The OpDef names them; no
// string is compared when an op is called.
#pragma once

#include <string>
#include <variant>

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/shape.h"

namespace oneflow_lite {

enum class AttrType : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kScalar,
  kDType,
  kDevice,
  kInts,
  kString
};

// Alternatives in the order of AttrType; monostate stands for an absent optional attribute.
using AttrValue =
    std::variant<std::monostate, bool, int64_t, double, Scalar, DType, Device, Dims, std::string>;

OFL_API const char* Name(AttrType type);
OFL_API std::string AttrText(const AttrValue& value);

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<AttrValue> values) : values_(values) {}

  size_t size() const { return values_.size(); }
  // Precondition: attribute i has type T.
  template <class T>
  const T& get(int i) const {
    return std::get<T>(values_[i]);
  }
  bool has(int i) const { return values_[i].index() != 0; }
  const AttrValue& operator[](int i) const { return values_[i]; }
  AttrValue& operator[](int i) { return values_[i]; }
  void push_back(AttrValue v) { values_.push_back(std::move(v)); }
  bool operator==(const Attrs&) const = delete;

 private:
  absl::InlinedVector<AttrValue, 2> values_;
};

}  // namespace oneflow_lite
