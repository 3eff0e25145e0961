// SPDX-License-Identifier: Apache-2.0
//
// Whether a shared library may be handed to the loader, which trusts what a file says of itself: of
// a file that was cut off or damaged it reads beyond the end (SIGBUS) or jumps anywhere.
//
//   OFL_RETURN_IF_ERROR(CheckSharedLibrary("/tmp/libsoftplus.so"));
//   void* library = dlopen(...);
//
// What is checked: the ELF header and program headers, each segment and section within the file,
// sections within their segments, the dynamic section with all tables it names (strings, symbols,
// hash tables, versions, relocations), and that these point into each other and into the image.
// What cannot be: code and data, of which any byte may be right.
#pragma once

#include <elf.h>
#include <link.h>

#include <map>
#include <string>
#include <vector>

#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

// RuntimeError that names the file and what is wrong with it. Opens regular files only, and never
// waits: a FIFO or a folder is an error.
Status CheckSharedLibrary(const std::string& path);

namespace elf {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);
using Entry = ElfW(Dyn);
using Symbol = ElfW(Sym);
using Relocation = ElfW(Rela);
using Word = uint64_t;

// An open file and its segments. Whoever finds something wrong throws nothing and returns the
// reason; an empty string means that all is well.
class File {
 public:
  File(int fd, Word size) : fd_(fd), size_(size) {}
  Word size() const { return size_; }

  // Whether [offset, offset + n) is there; no sum overflows.
  bool Has(Word offset, Word n) const { return offset <= size_ && n <= size_ - offset; }
  bool Read(Word offset, void* p, Word n) const;
  // `count` elements from `offset` on; false, before any memory is taken, where they are not there.
  template <class T>
  bool ReadList(Word offset, Word count, std::vector<T>* out) const {
    if (count > size_ / sizeof(T) || !Has(offset, count * sizeof(T))) return false;
    out->resize(count);
    return Read(offset, out->data(), count * sizeof(T));
  }

  // The loaded segment that holds [address, address + n), with all of `flags`; in the file, or else
  // in memory at least. Null: none.
  const Segment* Find(Word address, Word n, uint32_t flags = 0, bool in_file = false) const;
  // `count` elements at an address, from the file.
  template <class T>
  bool ReadTable(Word address, Word count, std::vector<T>* out) const {
    if (count > size_ / sizeof(T)) return false;
    const Segment* s = Find(address, count * sizeof(T), 0, true);
    return s && ReadList(s->p_offset + (address - s->p_vaddr), count, out);
  }

  std::vector<Segment> segments;
  std::vector<Section> sections;  // empty where the file has none

 private:
  int fd_;
  Word size_;
};

// The dynamic section, and all that it names.
std::string CheckDynamic(const File& file);

}  // namespace elf
}  // namespace oneflow_lite
