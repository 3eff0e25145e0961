# SPDX-License-Identifier: Apache-2.0
"""load_library of what is no library, or half of one: an error, and never a signal.

The loader itself trusts a file. Its header, segments, sections and dynamic tables are checked
before; flips in code and data cannot be seen, so those are not made here.
"""

import os
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")

SOURCE = r"""
#include <oneflow_lite/extension/op.h>
namespace ext = oneflow_lite::extension;

OFL_EXTENSION {
  ext::Op("damaged::op").input("x").output("y")
      .infer([](ext::Infer c) { c.set_output_like(0, 0); })
      .kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel c) { *c.output(0).data<float>() = 7; })
      .add();
}
"""

# Loads each file in a child of its own; prints what came of it: "loaded", "refused" or a signal.
LOADER = """
import os, sys
import oneflow_lite as flow
for path in sys.stdin.read().split():
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            flow.load_library(path)
        except RuntimeError as error:
            os._exit(10 if path in str(error) else 11)
        except BaseException:
            os._exit(12)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print({0: "loaded", 10: "refused"}.get(status, f"status {status}"))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "op.cpp").write_text(SOURCE)
    include = Path(flow.__file__).parent / "include"
    subprocess.run(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-s", f"-I{include}", "-o",
                    folder / "op.so", folder / "op.cpp"], check=True)  # fmt: skip
    return folder / "op.so"


def outcomes(contents, folder):
    paths = []
    for i, content in enumerate(contents):
        paths.append(folder / f"{i}.so")
        paths[-1].write_bytes(content)
    done = subprocess.run([sys.executable, "-c", LOADER], input="\n".join(map(str, paths)),
                          text=True, capture_output=True)  # fmt: skip
    for path in paths:
        path.unlink()
    assert done.returncode == 0, done.stderr
    said = done.stdout.split("\n")[:-1]
    assert len(said) == len(paths)
    return said


def test_the_library_itself_loads(library, tmp_path):
    assert outcomes([library.read_bytes()], tmp_path) == ["loaded"]


def test_what_was_cut_off_is_refused(library, tmp_path):
    """At any byte; the last ones are the section headers."""
    whole, rng = library.read_bytes(), random.Random(0)
    ends = [0, 1, 4, 16, 63, 64, 65, len(whole) - 1]
    ends += [rng.randrange(len(whole)) for _ in range(1000 - len(ends))]
    said = outcomes([whole[:end] for end in ends], tmp_path)
    assert [(end, what) for end, what in zip(ends, said, strict=True) if what != "refused"] == []


def flipped(whole, place, bit):
    return whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]


def header_fields(whole):
    """Places of the ELF header and the program headers."""
    phoff, phentsize, phnum = (struct.unpack_from(f, whole, at)[0]
                               for f, at in (("<Q", 32), ("<H", 54), ("<H", 56)))  # fmt: skip
    return range(64), range(phoff, phoff + phentsize * phnum)


GNU_HASH = 0x6FFFFEF5


def dynamic_entries(whole):
    """Places of the dynamic section, and the place that each entry with an address names."""
    _, segments = header_fields(whole)
    phdrs = [struct.unpack_from("<IIQQQQQQ", whole, at) for at in segments[::56]]
    (dynamic,) = [p for p in phdrs if p[0] == 2]
    places, named = range(dynamic[2], dynamic[2] + dynamic[5]), {}
    for at in places[::16]:
        tag, value = struct.unpack_from("<QQ", whole, at)
        if tag in {4, 5, 6, GNU_HASH, 0x6FFFFFF0, 0x6FFFFFFE}:
            (load,) = [p for p in phdrs if p[0] == 1 and p[3] <= value < p[3] + p[5]]
            named[tag] = value - load[3] + load[2]
    return places, named


def dynamic_tables(whole):
    """Places of the dynamic section, and of the tables that it names but relocations.

    Which symbol a relocation is for may be any.
    """
    places, named = dynamic_entries(whole)
    return [*places, *(at for start in named.values() for at in range(start, start + 48))]


def test_a_flipped_bit_in_the_headers_ends_in_an_error_or_does_no_harm(library, tmp_path):
    """Some fields mean nothing to the loader: the entry point, physical addresses, alignments."""
    whole, rng = library.read_bytes(), random.Random(1)
    header, segments = header_fields(whole)
    flips = [(place, bit) for place in header for bit in range(8)]
    flips += [(rng.choice(segments), rng.randrange(8)) for _ in range(500)]
    said = outcomes([flipped(whole, *flip) for flip in flips], tmp_path)
    assert set(said) <= {"loaded", "refused"}, [
        f for f, what in zip(flips, said, strict=True) if what not in ("loaded", "refused")
    ]
    assert said.count("refused") > len(said) * 0.6
    # e_entry, e_flags, e_phnum (the last segment says what becomes read-only), e_shstrndx
    unread = [*range(24, 32), *range(48, 52), *range(56, 58), *range(62, 64)]
    wrong = [f for f, what in zip(flips, said, strict=True)
             if what == "loaded" and f[0] in header and f[0] not in unread]  # fmt: skip
    assert wrong == []


def test_a_flipped_bit_in_the_dynamic_tables_does_no_harm(library, tmp_path):
    whole, rng = library.read_bytes(), random.Random(2)
    places = dynamic_tables(whole)
    flips = [(rng.choice(places), rng.randrange(8)) for _ in range(500)]
    said = outcomes([flipped(whole, *flip) for flip in flips], tmp_path)
    died = [f for f, what in zip(flips, said, strict=True) if what not in ("loaded", "refused")]
    assert died == []


def test_a_filter_that_shifts_all_bits_of_a_hash_away_is_refused(library, tmp_path):
    """The filter of the GNU hash table shifts hashes, which have 32 bits."""
    whole = library.read_bytes()
    at = dynamic_entries(whole)[1][GNU_HASH] + 12
    damaged = [whole[:at] + struct.pack("<I", shift) + whole[at + 4 :]
               for shift in (32, 33, 48, 63, 64, whole[at] | 32, 1 << 31)]  # fmt: skip
    assert outcomes(damaged, tmp_path) == ["refused"] * len(damaged)


def test_other_things_are_refused_by_what_they_are(library, tmp_path):
    whole = library.read_bytes()
    (tmp_path / "text").write_text("int main() {}\n" * 100)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")  # nobody writes into it: opening it must not wait
    os.symlink(tmp_path / "nowhere", tmp_path / "link")
    (tmp_path / "arm").write_bytes(whole[:18] + struct.pack("<H", 0xFFF0) + whole[20:])
    (tmp_path / "object").write_bytes(whole[:16] + struct.pack("<H", 1) + whole[18:])
    (tmp_path / "narrow").write_bytes(whole[:4] + b"\1" + whole[5:])
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    for name, message in {
        "text": "is no shared library: an ELF file starts otherwise",
        "empty": "the file is empty",
        "folder": "a directory is no shared library",
        "fifo": "a FIFO is no shared library",
        "link": "cannot open .*No such file or directory",
        "missing": "cannot open .*No such file or directory",
        "arm": r"another processor: machine 65520 of ELF, while this process is of machine \d+",
        "object": "no shared library but an ELF file of type 1",
        "narrow": "another word size or byte order",
        "half": r"it was cut off, or its \w+ (is|headers are) damaged|it was cut off",
    }.items():
        with pytest.raises(RuntimeError, match=rf"load_library\(\): .*/{name}: .*") as caught:
            flow.load_library(tmp_path / name)
        assert caught.match(message)
    with pytest.raises(RuntimeError, match="/dev/zero: a device is no shared library"):
        flow.load_library("/dev/zero")
