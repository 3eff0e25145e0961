// SPDX-License-Identifier: Apache-2.0
//
// Keys of elements by vectors (primitive/ordered_keys.h says what keys are): those of a row, the
// one of a rank among few, and where some are.
#pragma once

#include <cstdint>

#include "primitive/ordered_keys.h"

namespace oneflow_lite::cpu {

// The keys of n elements at x. Keys of 4 bytes are of elements of 1, 2 or 4 bytes, those of 8 bytes
// of elements of 8.
void EncodeKeys(const KeyCode& code, int64_t n, const void* x, uint32_t* keys);
void EncodeKeys(const KeyCode& code, int64_t n, const void* x, uint64_t* keys);

// A key that has a rank, and how many equal ones come before the element that has it.
template <class Key>
struct Selected {
  Key key;
  int64_t equal;
};
// 0 <= rank < n. Takes n comparisons for every two of the bits in which the keys differ: for few
// keys, of which what sorts or partitions them guesses a branch for each.
Selected<uint32_t> RankedKey(const uint32_t* keys, int64_t n, int64_t rank);
Selected<uint64_t> RankedKey(const uint64_t* keys, int64_t n, int64_t rank);
// How many bits hold all in which n > 0 keys differ: 0 where they are the same.
int DifferingBits(const uint32_t* keys, int64_t n);
int DifferingBits(const uint64_t* keys, int64_t n);

// The first i in [begin, n) with least <= keys[i] <= most; n if there is none.
int64_t NextKey(const uint32_t* keys, int64_t begin, int64_t n, uint32_t least, uint32_t most);
int64_t NextKey(const uint64_t* keys, int64_t begin, int64_t n, uint64_t least, uint64_t most);

}  // namespace oneflow_lite::cpu
