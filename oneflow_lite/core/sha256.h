// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4): names and seals what a cache on disk holds.
//
//   Sha256 digest;
//   digest.AddField(source).AddField(options);   // ("ab", "c") is not ("a", "bc")
//   const std::string key = digest.Hex();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

class OFL_API Sha256 {
 public:
  Sha256& Add(absl::string_view bytes);
  // The bytes behind their number, so that fields cannot run into each other.
  Sha256& AddField(absl::string_view bytes);
  // 64 hexadecimal digits, of all that was added so far. Nothing may be added afterwards.
  std::string Hex();

 private:
  void Compress(const uint8_t* block);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t waiting_[64];
  uint64_t size_ = 0;  // bytes added
};

}  // namespace oneflow_lite
