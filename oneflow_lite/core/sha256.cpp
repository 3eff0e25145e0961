// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace oneflow_lite {
namespace {

constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t BigEndian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

}  // namespace

void Sha256::Compress(const uint8_t* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) w[i] = BigEndian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t near = w[i - 2], far = w[i - 15];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(far, 7) ^ std::rotr(far, 18) ^ far >> 3) +
           (std::rotr(near, 17) ^ std::rotr(near, 19) ^ near >> 10);
  }
  uint32_t s[8];
  std::copy(state_, state_ + 8, s);
  for (int i = 0; i < 64; ++i) {
    const uint32_t e = s[4], a = s[0];
    const uint32_t chosen = (e & s[5]) ^ (~e & s[6]);
    const uint32_t most = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);
    const uint32_t one =
        s[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + chosen + kRounds[i] + w[i];
    const uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + most;
    std::copy_backward(s, s + 7, s + 8);
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; ++i) state_[i] += s[i];
}

Sha256& Sha256::Add(absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t held = size_ % 64, taken = std::min<size_t>(64 - held, bytes.size());
    std::memcpy(waiting_ + held, bytes.data(), taken);
    size_ += taken;
    bytes.remove_prefix(taken);
    if (held + taken == 64) Compress(waiting_);
  }
  return *this;
}

Sha256& Sha256::AddField(absl::string_view bytes) {
  return Add(absl::StrCat(bytes.size(), ":")).Add(bytes);
}

std::string Sha256::Hex() {
  const uint64_t bits = 8 * size_;
  Add(absl::string_view("\x80", 1));
  while (size_ % 64 != 56) Add(absl::string_view("\0", 1));
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  Add(length);
  std::string digest;
  for (const uint32_t word : state_) {
    for (int shift = 24; shift >= 0; shift -= 8) digest += static_cast<char>(word >> shift);
  }
  return absl::BytesToHexString(digest);
}

}  // namespace oneflow_lite
