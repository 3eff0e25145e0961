// SPDX-License-Identifier: Apache-2.0
//
// Tiles of queries x keys, which both passes of attention on the CPU work on: reading operands in
// the compute type C (float or double), scores with their mask, and the factors of dropout.
#pragma once

#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "oneflow_lite/core/philox.h"
#include "primitive/attention.h"
#include "primitive/cpu/attention_rows.h"
#include "primitive/cpu/convert.h"

namespace oneflow_lite {

// c (m x n, rows ldc apart) = alpha op(a) op(b) + beta c, row-major.
struct TileProduct {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;

  template <class C>
  void Run(C alpha, const C* a, int64_t lda, const C* b, int64_t ldb, C beta, C* c,
           int64_t ldc) const {
    if (m <= 0 || n <= 0) return;
    if (k <= 0) {
      for (int64_t i = 0; beta == 0 && i < m; ++i) std::fill_n(c + i * ldc, n, C(0));
      return;
    }
    const auto ta = transpose_a ? CblasTrans : CblasNoTrans;
    const auto tb = transpose_b ? CblasTrans : CblasNoTrans;
    const auto size = [](int64_t v) { return static_cast<blasint>(v); };
    const blasint la = size(std::max(lda, transpose_a ? m : k));
    const blasint lb = size(std::max(ldb, transpose_b ? k : n));
    if constexpr (sizeof(C) == 4) {
      cblas_sgemm(CblasRowMajor, ta, tb, size(m), size(n), size(k), alpha, a, la, b, lb, beta, c,
                  size(std::max(ldc, n)));
    } else {
      cblas_dgemm(CblasRowMajor, ta, tb, size(m), size(n), size(k), alpha, a, la, b, lb, beta, c,
                  size(std::max(ldc, n)));
    }
  }
};

// Memory of one thread, cut into pieces at the alignment of a cache line.
class TileRoom {
 public:
  explicit TileRoom(void* memory = nullptr) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* Take(int64_t count) {
    char* const piece = memory_ + used_;
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }
  int64_t used() const { return used_; }

 private:
  char* memory_;
  int64_t used_ = 0;
};

template <class C>
class AttentionTiles {
 public:
  AttentionTiles(const AttentionShape& shape, const Attention::Spec& spec)
      : shape_(shape),
        dtype_(spec.dtype),
        mask_dtype_(spec.mask_dtype),
        keep_at_least_(static_cast<float>(shape.dropout)),
        kept_factor_(shape.dropout < 1 ? static_cast<C>(1 / (1 - shape.dropout)) : C(0)),
        rows_(GetAttentionRows<C>()) {}

  // The element type, where it is not the compute type.
  bool converts() const { return dtype_ != DTypeOf<C>(); }
  const AttentionRows<C>& rows() const { return rows_; }

  // `rows` rows of `cols` elements, `stride` apart, from element `at` on: where they lie, or
  // converted into the room, `cols` apart.
  const C* Read(const void* base, int64_t at, int64_t rows, int64_t cols, int64_t stride, C* room,
                int64_t* ld) const {
    if (!converts()) {
      *ld = stride;
      return static_cast<const C*>(base) + at;
    }
    static const ConvertFunction widen[] = {FindConvert(DType::kFloat16, DTypeOf<C>()),
                                            FindConvert(DType::kBFloat16, DTypeOf<C>())};
    const auto convert = widen[dtype_ == DType::kBFloat16];
    const char* from = static_cast<const char*>(base) + at * 2;
    for (int64_t i = 0; i < rows; ++i) convert(cols, from + i * stride * 2, room + i * cols);
    *ld = cols;
    return room;
  }

  // One row of results as elements.
  void Write(const C* from, int64_t cols, void* base, int64_t at) const {
    if (!converts()) {
      std::copy_n(from, cols, static_cast<C*>(base) + at);
      return;
    }
    static const ConvertFunction narrow[] = {FindConvert(DTypeOf<C>(), DType::kFloat16),
                                             FindConvert(DTypeOf<C>(), DType::kBFloat16)};
    narrow[dtype_ == DType::kBFloat16](cols, from, static_cast<char*>(base) + at * 2);
  }

  // The mask of n keys from `key` on, on their scores for one query. room: n elements of 8 bytes.
  void Mask(const void* mask, int64_t b, int64_t h, int64_t query, int64_t key, int64_t n, C* room,
            C* e) const {
    const int64_t* s = shape_.mask_strides;
    const int64_t item = static_cast<int64_t>(SizeOf(mask_dtype_));
    const char* row =
        static_cast<const char*>(mask) + (b * s[0] + h * s[1] + query * s[2] + key * s[3]) * item;
    char* gathered = reinterpret_cast<char*>(room + n);
    if (s[3] != 1) {
      for (int64_t i = 0; i < n; ++i) std::memcpy(gathered + i * item, row + i * s[3] * item, item);
      row = gathered;
    }
    if (mask_dtype_ == DType::kBool) {
      rows_.hide(n, reinterpret_cast<const uint8_t*>(row), e);
      return;
    }
    if (mask_dtype_ != DTypeOf<C>()) {
      FindConvert(mask_dtype_, DTypeOf<C>())(n, row, room);
      row = reinterpret_cast<const char*>(room);
    }
    rows_.add(n, reinterpret_cast<const C*>(row), e);
  }
  // How many elements of C the room of Mask needs for n keys.
  static int64_t MaskRoom(int64_t n) { return 3 * n; }

  // Of n weights from element `at` of the scores on: 0 where dropped, else 1 / (1 - dropout).
  void DropoutFactors(uint64_t seed, uint64_t offset, int64_t at, int64_t n, C* factors) const {
    for (int64_t i = 0; i < n;) {
      const uint64_t element = static_cast<uint64_t>(at + i);
      const PhiloxResult r = Philox(seed, offset + element / 4);
      for (uint64_t word = element % 4; word < 4 && i < n; ++word, ++i) {
        factors[i] = UniformFloat(r.v[word]) >= keep_at_least_ ? kept_factor_ : C(0);
      }
    }
  }

 private:
  const AttentionShape& shape_;
  const DType dtype_, mask_dtype_;
  const float keep_at_least_;
  const C kept_factor_;
  const AttentionRows<C>& rows_;
};

// The BLAS counts in `blasint`.
inline Status CheckTileSizes(const char* op, const AttentionShape& s) {
  constexpr int64_t kMost = std::numeric_limits<blasint>::max();
  if (std::max({s.head_dim, s.value_dim, s.q.token, s.k.token, s.v.token, s.out.token}) <= kMost) {
    return OkStatus();
  }
  return Error(ErrorKind::kNotImplemented, op, "() on cpu: tokens more than ", kMost,
               " elements apart are more than the BLAS can take");
}

inline bool IsAttentionMask(DType mask, DType dtype) {
  return mask == DType::kBool || mask == dtype || (mask == DType::kFloat32 && SizeOf(dtype) == 2);
}

}  // namespace oneflow_lite
