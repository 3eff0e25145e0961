// SPDX-License-Identifier: Apache-2.0
//
// The dynamic section of a shared library: what the loader follows while it loads.
#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "oneflow_lite/framework/shared_library.h"

namespace oneflow_lite::elf {
namespace {

#if defined(__x86_64__)
constexpr Word kRelative = R_X86_64_RELATIVE, kIndirect = R_X86_64_IRELATIVE;
#elif defined(__aarch64__)
constexpr Word kRelative = R_AARCH64_RELATIVE, kIndirect = R_AARCH64_IRELATIVE;
#else
constexpr Word kRelative = ~Word{0}, kIndirect = ~Word{0};  // of which nothing is checked
#endif
static_assert(sizeof(void*) == 8, "relocations are read as those of 64 bits");

class Dynamic {
 public:
  explicit Dynamic(const File& file) : file_(file) {}

  std::string Check() {
    if (!ReadEntries()) return Damaged("its entries");
    if (!CheckStrings()) return Damaged("the names");
    if (!CheckSymbols()) return Damaged("the symbols");
    if (!CheckVersions()) return Damaged("the versions of symbols");
    if (!CheckRelocations()) return Damaged("the relocations");
    if (!CheckFunctions()) return Damaged("what runs when it is loaded");
    return "";
  }

 private:
  // Entries that make sense only together.
  static constexpr int64_t kTogether[][3] = {
      {DT_RELA, DT_RELASZ, DT_RELAENT},       {DT_JMPREL, DT_PLTRELSZ, DT_PLTREL},
      {DT_INIT_ARRAY, DT_INIT_ARRAYSZ, 0},    {DT_FINI_ARRAY, DT_FINI_ARRAYSZ, 0},
      {DT_VERNEED, DT_VERNEEDNUM, DT_VERSYM}, {DT_VERDEF, DT_VERDEFNUM, DT_VERSYM},
      {DT_STRTAB, DT_STRSZ, DT_SYMTAB},       {DT_SYMTAB, DT_SYMENT, DT_STRTAB}};

  static std::string Damaged(const char* what) {
    return std::string("its dynamic section is damaged: ") + what;
  }
  bool Has(int64_t tag) const { return entries_.count(tag) > 0; }
  Word At(int64_t tag) const { return Has(tag) ? entries_.at(tag) : 0; }

  bool ReadEntries() {
    const auto is_dynamic = [](const Segment& s) { return s.p_type == PT_DYNAMIC; };
    const auto& segments = file_.segments;
    if (std::count_if(segments.begin(), segments.end(), is_dynamic) != 1) return false;
    const Segment& s = *std::find_if(segments.begin(), segments.end(), is_dynamic);
    std::vector<Entry> list;
    if (!file_.ReadTable(s.p_vaddr, s.p_filesz / sizeof(Entry), &list)) return false;
    const auto end =
        std::find_if(list.begin(), list.end(), [](const Entry& e) { return e.d_tag == DT_NULL; });
    if (end == list.end()) return false;
    for (auto e = list.begin(); e != end; ++e) {
      if (e->d_tag == DT_NEEDED) {
        needed_.push_back(e->d_un.d_val);
      } else if (!entries_.emplace(e->d_tag, e->d_un.d_val).second) {
        return false;
      }
    }
    for (const auto& tags : kTogether) {
      if (Has(tags[0]) != Has(tags[1]) || (tags[2] && Has(tags[0]) && !Has(tags[2]))) return false;
    }
    return Has(DT_SYMTAB) && At(DT_SYMENT) == sizeof(Symbol) && (Has(DT_HASH) || Has(DT_GNU_HASH));
  }

  bool IsName(Word offset) const { return offset < names_.size(); }
  const char* Name(Word offset) const { return names_.data() + offset; }

  bool CheckStrings() {
    if (!file_.ReadTable(At(DT_STRTAB), At(DT_STRSZ), &names_)) return false;
    if (names_.empty() || names_.back() != 0) return false;
    for (const int64_t tag : {DT_SONAME, DT_RPATH, DT_RUNPATH}) {
      if (!IsName(At(tag))) return false;
    }
    return std::all_of(needed_.begin(), needed_.end(),
                       [&](Word n) { return IsName(n) && *Name(n); });
  }

  // Both tables walk lists until an element says that it is the last.
  bool CountByHash(Word* count) const {
    std::vector<uint32_t> head, list;
    if (!file_.ReadTable(At(DT_HASH), 2, &head) || head[0] == 0) return false;
    const Word length = Word{head[0]} + head[1];
    if (!file_.ReadTable(At(DT_HASH) + 8, length, &list)) return false;
    *count = head[1];
    return std::all_of(list.begin(), list.end(), [&](uint32_t i) { return i < head[1] || i == 0; });
  }
  bool CountByGnuHash(Word* count) {
    std::vector<uint32_t> head, buckets, link;
    Word at = At(DT_GNU_HASH);
    if (!file_.ReadTable(at, 4, &head) || head[0] == 0 || !std::has_single_bit(head[2]) ||
        head[3] > 31) {  // shifts a hash of 32 bits
      return false;
    }
    at += 16 + Word{head[2]} * sizeof(Word);
    if (!file_.ReadTable(At(DT_GNU_HASH) + 16, head[2], &bloom_)) return false;
    shift_ = head[3];
    if (!file_.ReadTable(at, head[0], &buckets)) return false;
    at += Word{head[0]} * 4;
    Word last = head[1];
    for (const uint32_t b : buckets) {
      if (b != 0 && b < head[1]) return false;
      last = std::max<Word>(last, b);
    }
    *count = last;
    first_hashed_ = head[1];
    hashes_ = at;
    uncounted_ = std::all_of(buckets.begin(), buckets.end(), [](uint32_t b) { return b == 0; });
    if (uncounted_) return true;
    do {
      if (!file_.ReadTable(at + (last - head[1]) * 4, 1, &link)) return false;
      ++last;
    } while (!(link[0] & 1));
    *count = last;
    return true;
  }

  static uint32_t GnuHash(const char* name) {
    uint32_t hash = 5381;
    for (; *name; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
    return hash;
  }

  // Whether a lookup gets to the symbol: through the filter, and to its place in a list, whose last
  // bit says where the list ends.
  bool IsFoundBy(uint32_t hash, uint32_t stored) const {
    const Word bits = bloom_[hash / 64 % bloom_.size()];
    return (stored ^ hash) >> 1 == 0 && (bits >> hash % 64 & bits >> (hash >> shift_) % 64 & 1);
  }

  bool CheckSymbols() {
    Word by_hash = 0, by_gnu = 0;
    if (Has(DT_HASH) && !CountByHash(&by_hash)) return false;
    if (Has(DT_GNU_HASH) && !CountByGnuHash(&by_gnu)) return false;
    std::vector<Symbol> symbols;
    count_ = std::max(by_hash, by_gnu);
    if (!file_.ReadTable(At(DT_SYMTAB), count_, &symbols)) return false;
    std::vector<uint32_t> hashes;
    const bool hashed = Has(DT_GNU_HASH) && !uncounted_ && by_gnu == count_;
    if (hashed && !file_.ReadTable(hashes_, count_ - first_hashed_, &hashes)) return false;
    for (Word i = 0; i < count_; ++i) {
      const Symbol& s = symbols[i];
      if (!IsName(s.st_name)) return false;
      if (hashed && i >= first_hashed_ &&
          !IsFoundBy(GnuHash(Name(s.st_name)), hashes[i - first_hashed_])) {
        return false;
      }
      const int type = ELF64_ST_TYPE(s.st_info);
      if (s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS || type == STT_TLS) continue;
      const bool runs = type == STT_FUNC || type == STT_GNU_IFUNC;
      if (!file_.Find(s.st_value, 0, runs ? PF_X : 0)) return false;
    }
    return true;
  }

  // Of both chains of versions: the records must lie in the file, the names among the names.
  template <class Outer, class Inner, class F>
  bool Walk(Word at, Word number, F&& see) {
    std::vector<Outer> outer;
    std::vector<Inner> inner;
    for (Word i = 0; i < number; ++i) {
      Word next = 0, first = 0, inners = 0;
      if (!file_.ReadTable(at, 1, &outer) || !see(outer[0], &next, &first, &inners)) return false;
      Word place = at + first;
      for (Word k = 0; k < inners; ++k) {
        if (!file_.ReadTable(place, 1, &inner)) return false;
        const Word step = See(inner[0]);
        if (step == kWrong || (step == 0) != (k + 1 == inners)) return false;
        place += step;
      }
      if ((next == 0) != (i + 1 == number)) return false;
      at += next;
    }
    return true;
  }
  static constexpr Word kWrong = ~Word{0};
  Word See(const ElfW(Vernaux) & v) {
    versions_ = std::max<Word>(versions_, v.vna_other & 0x7fff);
    return IsName(v.vna_name) ? v.vna_next : kWrong;
  }
  Word See(const ElfW(Verdaux) & v) { return IsName(v.vda_name) ? v.vda_next : kWrong; }

  bool CheckVersions() {
    const auto need = [&](const ElfW(Verneed) & v, Word * next, Word * first, Word * inners) {
      *next = v.vn_next;
      *first = v.vn_aux;
      *inners = v.vn_cnt;
      // The loader takes it for granted that the library is among those that are needed.
      return v.vn_version == 1 && v.vn_cnt > 0 && IsName(v.vn_file) &&
             std::any_of(needed_.begin(), needed_.end(),
                         [&](Word n) { return std::strcmp(Name(n), Name(v.vn_file)) == 0; });
    };
    const auto define = [&](const ElfW(Verdef) & v, Word * next, Word * first, Word * inners) {
      *next = v.vd_next;
      *first = v.vd_aux;
      *inners = v.vd_cnt;
      versions_ = std::max<Word>(versions_, v.vd_ndx & 0x7fff);
      return v.vd_version == 1 && v.vd_cnt > 0;
    };
    if (!Walk<ElfW(Verneed), ElfW(Vernaux)>(At(DT_VERNEED), At(DT_VERNEEDNUM), need) ||
        !Walk<ElfW(Verdef), ElfW(Verdaux)>(At(DT_VERDEF), At(DT_VERDEFNUM), define)) {
      return false;
    }
    std::vector<uint16_t> of_symbols;
    if (!Has(DT_VERSYM)) return true;
    return file_.ReadTable(At(DT_VERSYM), count_, &of_symbols) &&
           std::all_of(of_symbols.begin(), of_symbols.end(),
                       [&](uint16_t v) { return (v & 0x7fff) <= std::max<Word>(versions_, 1); });
  }

  bool CheckRelocation(const Relocation& r, uint32_t writable) const {
    const Word type = ELF64_R_TYPE(r.r_info);
    if (type == 0) return true;
    if (!file_.Find(r.r_offset, sizeof(Word), writable)) return false;
    const auto to = static_cast<Word>(r.r_addend);
    if (type == kRelative) return file_.Find(to, 0) != nullptr;
    if (type == kIndirect) return file_.Find(to, 0, PF_X) != nullptr;
    const Word symbol = ELF64_R_SYM(r.r_info);
    if (symbol < std::max<Word>(count_, 1)) return true;
    // A library that defines nothing has an empty hash table, which does not count the others.
    return uncounted_ && symbol < file_.size() / sizeof(Symbol) &&
           file_.Find(At(DT_SYMTAB) + symbol * sizeof(Symbol), sizeof(Symbol), 0, true);
  }

  bool CheckRelocations() {
    const bool changes_code = Has(DT_TEXTREL) || (At(DT_FLAGS) & DF_TEXTREL);
    const uint32_t writable = changes_code ? 0 : PF_W;
    if (Has(DT_PLTREL) && At(DT_PLTREL) != DT_RELA) return false;
    if (Has(DT_RELAENT) && At(DT_RELAENT) != sizeof(Relocation)) return false;
    if (Has(DT_PLTGOT) && !file_.Find(At(DT_PLTGOT), sizeof(Word), writable)) return false;
    std::vector<Relocation> list;
    for (const auto& [table, bytes] : {std::pair{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}}) {
      if (!Has(table)) continue;
      if (At(bytes) % sizeof(Relocation) != 0 ||
          !file_.ReadTable(At(table), At(bytes) / sizeof(Relocation), &list)) {
        return false;
      }
      for (const Relocation& r : list) {
        if (!CheckRelocation(r, writable)) return false;
      }
      // The first so many are not asked for their type.
      if (table == DT_RELA && At(DT_RELACOUNT) > list.size()) return false;
      const auto relative = [](const Relocation& r) { return ELF64_R_TYPE(r.r_info) == kRelative; };
      if (table == DT_RELA && kRelative != ~Word{0} &&
          !std::all_of(list.begin(), list.begin() + static_cast<int64_t>(At(DT_RELACOUNT)),
                       relative)) {
        return false;
      }
    }
    return true;
  }

  bool CheckFunctions() const {
    for (const int64_t tag : {DT_INIT, DT_FINI}) {
      if (!Has(tag)) continue;
      if (!file_.Find(At(tag), 1, PF_X, true)) return false;
      if (!IsSection([&](const Section& s) {
            return s.sh_addr == At(tag) && (s.sh_flags & SHF_EXECINSTR);
          })) {
        return false;
      }
    }
    for (const auto& [list, bytes] :
         {std::pair{DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}}) {
      if (!Has(list)) continue;
      if (At(bytes) % sizeof(Word) != 0 || !file_.Find(At(list), At(bytes))) return false;
      if (!IsSection([&, at = list, n = bytes](const Section& s) {
            return s.sh_addr == At(at) && s.sh_size == At(n);
          })) {
        return false;
      }
    }
    return IsSection(
        [&](const Section& s) { return s.sh_type == SHT_DYNSYM && s.sh_addr == At(DT_SYMTAB); });
  }

  // Whether the section headers, where there are some, know of such a section.
  template <class F>
  bool IsSection(F&& f) const {
    return file_.sections.empty() || std::any_of(file_.sections.begin(), file_.sections.end(), f);
  }

  const File& file_;
  std::map<int64_t, Word> entries_;
  std::vector<Word> needed_;
  std::vector<char> names_;
  Word count_ = 0;  // of symbols
  bool uncounted_ = false;
  std::vector<Word> bloom_;
  uint32_t shift_ = 0;
  Word first_hashed_ = 0, hashes_ = 0;  // the first symbol of the GNU hash table; where they lie
  Word versions_ = 0;                   // the highest number of one
};

}  // namespace

std::string CheckDynamic(const File& file) { return Dynamic(file).Check(); }

}  // namespace oneflow_lite::elf
