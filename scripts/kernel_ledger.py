#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each row kernel takes of a multiprocessor: registers, stack (spills), shared memory.

    scripts/kernel_ledger.py write build/cuda-release        # tests/ledger/row_kernels.txt
    scripts/kernel_ledger.py compare build/cuda-release      # a build against that file
    scripts/kernel_ledger.py compare BUILD --against OTHER   # against another build or file
    scripts/kernel_ledger.py code BUILD --against OTHER      # the machine code of two builds

The numbers are read from the objects of a build by cuobjdump (of the CUDA Toolkit, or the wheel
nvidia-cuda-cuobjdump; CUOBJDUMP names another). `compare` ends with 1 where a kernel takes more
registers or stack than before, or more static shared memory; new and vanished kernels are listed.
A different compiler is said first: its registers are its own. `code` ends with 1 where a kernel's
machine code is not, byte for byte, that of a kernel of the other build; files and names may differ.
"""

import argparse
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEDGER = ROOT / "tests" / "ledger" / "row_kernels.txt"
OBJECT = re.compile(
    r"/(softmax|layer_norm|rms_norm|cross_entropy|scale_mask_softmax)"
    r"_(b?float16|float32|float64)\.cu\.o$"
)
COLUMNS = ("registers", "stack", "shared")
DTYPES = {"__half": "float16", "__nv_bfloat16": "bfloat16", "float": "float32", "double": "float64"}


def cuobjdump():
    """The program, or an exit that says where to get it."""
    named = os.environ.get("CUOBJDUMP")
    path = f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
    found = named or shutil.which("cuobjdump", path=path)
    if not found:
        raise SystemExit(
            "kernel_ledger: no cuobjdump here; set CUOBJDUMP, or install the Toolkit's"
        )
    return found


def row_objects(build):
    """The objects of the row kernels in a build folder, by name."""
    found = [path for path in Path(build).rglob("*.cu.o") if OBJECT.search(path.as_posix())]
    if not found:
        raise SystemExit(f"kernel_ledger: {build} holds no objects of row kernels")
    return sorted(found, key=lambda path: path.name)


def compiler_of(build):
    """The version of nvcc that a build was configured with."""
    for path in sorted(Path(build).glob("CMakeFiles/*/CMakeCUDACompiler.cmake")):
        return re.search(r'CMAKE_CUDA_COMPILER_VERSION "([^"]+)"', path.read_text())[1]
    return "unknown"


def short_name(demangled):
    """`void ns::Kernel<A, B>(A, int)` as `Kernel<A, B>`, without what a build makes up."""
    name = demangled.replace("oneflow_lite::cuda::", "")
    name = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__[0-9a-f_]+\w*::", "", name)
    name = re.sub(r"^(static )?void ", "", name)
    depth = 0
    for place, mark in enumerate(name):
        depth += (mark == "<") - (mark == ">" and name[place - 1] != "-")
        if mark == "(" and depth == 0:
            return name[:place]
    return name


def kernels_of(path):
    """{(architecture, short name): (registers, stack, shared)} of an object."""
    text = subprocess.run(
        [cuobjdump(), "-res-usage", path], text=True, capture_output=True, check=True
    ).stdout
    found, architecture, name = [], "", ""
    for line in text.splitlines():
        if match := re.match(r"arch = (sm_\w+)", line):
            architecture = match[1]
        elif match := re.match(r"\s*Function (\S+):", line):
            name = match[1]
        elif match := re.match(r"\s*REG:(\d+) STACK:(\d+) SHARED:(\d+)", line):
            found.append((architecture, name, tuple(map(int, match.groups()))))
    names = "\n".join(name for _, name, _ in found)
    demangled = subprocess.run(
        [shutil.which("c++filt") or "c++filt"], input=names, text=True, capture_output=True,
        check=True,
    ).stdout.splitlines()  # fmt: skip
    return {
        (architecture, short_name(name)): usage
        for (architecture, _, usage), name in zip(found, demangled, strict=True)
        if "ArchitectureProbe" not in name
    }


def sections_of(cubin):
    """(name, bytes) of each section of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    for name, kind, _, _, offset, length in headers:
        at = headers[names][4] + name
        content = b"" if kind == 8 else cubin[offset : offset + length]  # 8: none in the file
        yield cubin[at : cubin.index(b"\0", at)].decode(), content


def code_of(path):
    """{(architecture, short name): hash of the machine code and its constants} of an object."""
    path, program, codes = Path(path).resolve(), cuobjdump(), {}
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "-xelf", "all", path]
        subprocess.run(command, cwd=folder, capture_output=True, check=True)
        for file in Path(folder).iterdir():
            architecture = re.search(r"\.(sm_\w+)\.cubin$", file.name)[1]
            for section, content in sections_of(file.read_bytes()):
                if match := re.match(r"\.(?:text|nv\.constant[1-9])\.(_Z\w+)$", section):
                    key = architecture, match[1]
                    codes.setdefault(key, hashlib.sha256()).update(content)
    names = "\n".join(name for _, name in codes)
    demangled = subprocess.run(
        ["c++filt"], input=names, text=True, capture_output=True, check=True
    ).stdout.splitlines()
    return {
        (architecture, short_name(name)): code.hexdigest()
        for ((architecture, _), code), name in zip(codes.items(), demangled, strict=True)
        if "ArchitectureProbe" not in name
    }


def other_code(before, after):
    """The kernels of `after` with other code than in `before`, or than any there if they are new.

    Both are {(architecture, name): hashes of the code in each file that has it}.
    """
    known = set().union(*before.values())
    return sorted(key for key, codes in after.items() if codes - before.get(key, known))


def all_code(build):
    """{(architecture, short name): hashes of machine code in the files that have it}."""
    with ThreadPoolExecutor(2) as pool:
        tables = list(pool.map(code_of, row_objects(build)))
    found = {}
    for table in tables:
        for key, code in table.items():
            found.setdefault(key, set()).add(code)
    return found


def measure(build):
    """(compiler, {(file, architecture, kernel): usage}) of a build."""
    objects = row_objects(build)
    with ThreadPoolExecutor(2) as pool:
        tables = list(pool.map(kernels_of, objects))
    usage = {
        (path.name.removesuffix(".cu.o"), *key): numbers
        for path, table in zip(objects, tables, strict=True)
        for key, numbers in table.items()
    }
    return compiler_of(build), usage


def text_of(compiler, usage):
    """The file of `write`: one kernel a line under its file and architecture."""
    lines = [
        "# Registers, stack and static shared memory in bytes of every row kernel.",
        "# Written by scripts/kernel_ledger.py.",
        f"compiler nvcc {compiler}",
    ]
    place = None
    for (file, architecture, kernel), numbers in sorted(usage.items()):
        if (file, architecture) != place:
            place = file, architecture
            lines.append(f"\n[{file} {architecture}]")
        lines.append(" ".join(f"{number:>5}" for number in numbers) + f"  {kernel}")
    return "\n".join(lines) + "\n"


def read(path):
    """What text_of has written, back."""
    compiler, usage, place = "unknown", {}, None
    for line in Path(path).read_text().splitlines():
        if line.startswith("compiler nvcc "):
            compiler = line.removeprefix("compiler nvcc ")
        elif line.startswith("["):
            place = tuple(line.strip("[]").split())
        elif line and line[0] == " ":
            *numbers, kernel = line.split(maxsplit=3)
            usage[(*place, kernel)] = tuple(map(int, numbers))
    return compiler, usage


def load(source):
    return measure(source) if Path(source).is_dir() else read(source)


def differences(before, after):
    """(what is worse, what is otherwise different), as lines."""
    worse, other = [], []
    for key in sorted(before.keys() | after.keys()):
        old, new, where = before.get(key), after.get(key), " ".join(key)
        if old is None or new is None:
            other.append(f"{'new ' if old is None else 'gone'} {where}")
        elif old != new:
            changes = ", ".join(
                f"{name} {a} -> {b}" for name, a, b in zip(COLUMNS, old, new, strict=True) if a != b
            )
            grown = any(b > a for a, b in zip(old, new, strict=True))
            (worse if grown else other).append(f"{where}: {changes}")
    return worse, other


# Whose gradient, sum or statistics a kernel computes, by its name and its algorithm's.
OPS = (
    (r"(NormNarrow|NormLean|NormFew|NormSmall|NormColumns|NormWideKernel|NormReduce|NormExact"
     r"|NormDistances)", "backward"),
    (r"(Softmax\w*Backward|BackwardSlab|ScaleMaskBackward|CrossEntropyBackward)", "backward"),
    (r"CrossEntropyInPlace|NoClasses", "in place"),
    (r"MeanWeight|ReduceLoss|ScaleRows", "means"),
)  # fmt: skip


def op_of(file, kernel):
    """The op that an instance serves: (op, dtype)."""
    op, dtype = re.match(r"(.*?)_(b?float16|float32|float64)$", file).groups()
    if "16" in dtype and re.search(r"SoftmaxRow<.*DirectStore<float", kernel):
        op += " to float32"
    part = next((part for pattern, part in OPS if re.search(pattern, kernel)), "forward")
    if op.startswith("softmax") and re.search(r"Softmax\w*<\(?(bool\))?(true|1)\b", kernel):
        op = f"log_{op}"
    if re.search(r"Slab|Axis|Span|Segments", kernel):
        op += " axis"
    return f"{op} {part}", dtype


def counts(usage):
    """{(architecture, op, dtype): number of instances}."""
    found = {}
    for file, architecture, kernel in usage:
        key = (architecture, *op_of(file, kernel))
        found[key] = found.get(key, 0) + 1
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["write", "compare", "count", "code"])
    parser.add_argument("build", help="a build folder, or a ledger")
    parser.add_argument("--against", default=LEDGER, help="a build folder or ledger, of before")
    parser.add_argument("-o", "--output", type=Path, default=LEDGER)
    arguments = parser.parse_args()
    if arguments.task == "code":
        before, after = all_code(arguments.against), all_code(arguments.build)
        others = other_code(before, after)
        print(f"{len(after)} kernels, before {len(before)}, of other code: {len(others)}")
        print(*(f"  {' '.join(key)}" for key in others), sep="\n", end="")
        sys.exit(1 if others else 0)
    compiler, usage = load(arguments.build)
    if arguments.task == "write":
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text_of(compiler, usage))
        print(f"{arguments.output}: {len(usage)} kernels")
    elif arguments.task == "count":
        for key, number in sorted(counts(usage).items(), key=lambda item: -item[1]):
            print(f"{number:>4} {' '.join(key)}")
    else:
        old_compiler, before = load(arguments.against)
        if old_compiler != compiler:
            print(f"compiled by nvcc {compiler}, before by {old_compiler}")
        worse, other = differences(before, usage)
        for title, lines in (("more", worse), ("otherwise", other)):
            print(f"{title}: {len(lines)} kernels", *lines, sep="\n  ")
        sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
