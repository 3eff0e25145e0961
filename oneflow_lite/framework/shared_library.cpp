// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/shared_library.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite {
namespace elf {

bool File::Read(Word offset, void* p, Word n) const {
  char* to = static_cast<char*>(p);
  while (n > 0) {
    const ssize_t got = pread(fd_, to, n, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += static_cast<Word>(got);
    n -= static_cast<Word>(got);
  }
  return true;
}

const Segment* File::Find(Word address, Word n, uint32_t flags, bool in_file) const {
  for (const Segment& s : segments) {
    if (s.p_type != PT_LOAD || (s.p_flags & flags) != flags || address < s.p_vaddr) continue;
    const Word size = in_file ? s.p_filesz : s.p_memsz;
    if (address - s.p_vaddr <= size && n <= size - (address - s.p_vaddr)) return &s;
  }
  return nullptr;
}

namespace {

constexpr Word kMostMemory = Word{1} << 46;  // of an image: what an address space holds

// The machine of this process, from its own program.
uint16_t OwnMachine() {
  Header header = {};
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (!File(fd, sizeof(header)).Read(0, &header, sizeof(header))) header.e_machine = EM_NONE;
    close(fd);
  }
  return header.e_machine;
}

std::string CheckHeader(const File& file, Header* h) {
  if (file.size() == 0) return "the file is empty";
  unsigned char ident[SELFMAG];
  if (!file.Has(0, SELFMAG) || !file.Read(0, ident, SELFMAG) ||
      std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
    return "it is no shared library: an ELF file starts otherwise";
  }
  if (!file.Has(0, sizeof(*h)) || !file.Read(0, h, sizeof(*h))) {
    return absl::StrCat("it was cut off: ", file.size(), " bytes hold no ELF header");
  }
  constexpr int kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  constexpr int kOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (h->e_ident[EI_CLASS] != kClass || h->e_ident[EI_DATA] != kOrder) {
    return "it was built for another word size or byte order";
  }
  static const uint16_t machine = OwnMachine();
  if (machine != EM_NONE && h->e_machine != machine) {
    return absl::StrCat("it was built for another processor: machine ", h->e_machine,
                        " of ELF, while this process is of machine ", machine);
  }
  if (h->e_type != ET_DYN) {
    return absl::StrCat("it is no shared library but an ELF file of type ", h->e_type);
  }
  const int abi = h->e_ident[EI_OSABI];
  const auto padding = std::find_if(h->e_ident + EI_ABIVERSION, h->e_ident + EI_NIDENT,
                                    [](unsigned char c) { return c != 0; });
  if (h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT ||
      (abi != ELFOSABI_SYSV && abi != ELFOSABI_GNU) || padding != h->e_ident + EI_NIDENT ||
      h->e_ehsize != sizeof(Header) || h->e_phentsize != sizeof(Segment) ||
      (h->e_shnum > 0 && h->e_shentsize != sizeof(Section)) || h->e_phnum == 0) {
    return "its ELF header is damaged";
  }
  return "";
}

std::string CheckSegments(File* file, const Header& h) {
  if (!file->ReadList(h.e_phoff, h.e_phnum, &file->segments)) {
    return absl::StrCat(
        "it was cut off, or its header is damaged: the program headers are beyond "
        "its ",
        file->size(), " bytes");
  }
  const Word page = static_cast<Word>(sysconf(_SC_PAGESIZE));
  Word end = 0;  // of the memory of the segments so far
  int loaded = 0;
  for (size_t i = 0; i < file->segments.size(); ++i) {
    const Segment& s = file->segments[i];
    if (s.p_type == PT_NULL) continue;
    if (!file->Has(s.p_offset, s.p_filesz)) {
      return absl::StrCat("it was cut off, or its program headers are damaged: segment ", i,
                          " lies at ", s.p_offset, " to ", s.p_offset + s.p_filesz, " of ",
                          file->size(), " bytes");
    }
    const bool odd_align = s.p_align > 1 && !std::has_single_bit(Word{s.p_align});
    if ((s.p_flags & ~Word{PF_R | PF_W | PF_X}) || s.p_vaddr > kMostMemory ||
        s.p_memsz > kMostMemory || odd_align) {
      return absl::StrCat("its program headers are damaged: segment ", i);
    }
    if (s.p_type != PT_LOAD) continue;
    const Word first = s.p_vaddr / page * page;
    if (!(s.p_flags & PF_R) || s.p_filesz > s.p_memsz || s.p_memsz == 0 ||
        (s.p_vaddr - s.p_offset) % page != 0 || s.p_align % page != 0 ||
        (loaded++ > 0 && first < end)) {
      return absl::StrCat("its program headers are damaged: segment ", i, " cannot be loaded");
    }
    end = s.p_vaddr + s.p_memsz;
  }
  // The loader reads these tables where they lie in memory.
  for (const Segment& s : file->segments) {
    const bool in_image = s.p_type == PT_DYNAMIC || s.p_type == PT_NOTE || s.p_type == PT_PHDR ||
                          s.p_type == PT_TLS || s.p_type == PT_GNU_EH_FRAME ||
                          s.p_type == PT_GNU_PROPERTY;
    // Of what becomes read-only, linkers may round the end up.
    if (s.p_type == PT_GNU_RELRO && !file->Find(s.p_vaddr, s.p_memsz, PF_W)) {
      return "its program headers are damaged: what becomes read-only was not writable";
    }
    if (!in_image || s.p_filesz == 0) continue;
    const Segment* in = file->Find(s.p_vaddr, s.p_filesz, s.p_flags & ~Word{PF_X}, true);
    if (!in || s.p_offset - in->p_offset != s.p_vaddr - in->p_vaddr) {
      return "its program headers are damaged: a table is in no segment";
    }
  }
  return loaded > 0 ? "" : "it has no segment to load";
}

// Linkers write the section headers last, so their presence shows that the end is there; and they
// say a second time where everything lies.
std::string CheckSections(File* file, const Header& h) {
  std::vector<Section>& sections = file->sections;
  if (h.e_shnum == 0 && h.e_shoff == 0) return "";
  if (h.e_shnum == 0 || h.e_shstrndx >= h.e_shnum ||
      !file->ReadList(h.e_shoff, h.e_shnum, &sections)) {
    return absl::StrCat(
        "it was cut off, or its header is damaged: the section headers are beyond "
        "its ",
        file->size(), " bytes");
  }
  for (const Section& s : sections) {
    const bool in_file = s.sh_type != SHT_NOBITS;
    if (in_file && s.sh_type != SHT_NULL && !file->Has(s.sh_offset, s.sh_size)) {
      return "it was cut off, or its section headers are damaged";
    }
    if (!(s.sh_flags & SHF_ALLOC) || s.sh_size == 0) continue;
    if (!in_file && (s.sh_flags & SHF_TLS)) continue;  // it takes no place in the image
    const uint32_t flags =
        (s.sh_flags & SHF_WRITE ? PF_W : 0) | (s.sh_flags & SHF_EXECINSTR ? PF_X : 0);
    const Segment* in = file->Find(s.sh_addr, s.sh_size, flags, in_file);
    if (!in || (in_file && s.sh_offset - in->p_offset != s.sh_addr - in->p_vaddr)) {
      return "its program or section headers are damaged: a section is in no segment";
    }
    // What starts as zeros must not come from the file.
    if (!in_file && s.sh_addr < in->p_vaddr + in->p_filesz) {
      return "its program or section headers are damaged: zeros lie in the file";
    }
  }
  return "";
}

std::string KindOfFile(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::string Check(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return KindOfFile(status.st_mode) + " is no shared library";
  File file(fd, static_cast<Word>(status.st_size));
  Header header;
  std::string reason = CheckHeader(file, &header);
  if (reason.empty()) reason = CheckSegments(&file, header);
  if (reason.empty()) reason = CheckSections(&file, header);
  if (reason.empty()) reason = CheckDynamic(file);
  return reason;
}

}  // namespace
}  // namespace elf

Status CheckSharedLibrary(const std::string& path) {
  // Without O_NONBLOCK a FIFO that nobody writes would wait for ever.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return Error(ErrorKind::kRuntime, "load_library(): cannot open ", path, ": ",
                 std::strerror(errno));
  }
  const std::string reason = elf::Check(fd);
  close(fd);
  if (reason.empty()) return OkStatus();
  return Error(ErrorKind::kRuntime, "load_library(): cannot load ", path, ": ", reason);
}

}  // namespace oneflow_lite
