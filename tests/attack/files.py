# SPDX-License-Identifier: Apache-2.0
"""Files of save and of torch.save, damaged and forged. load gives what was saved or a ValueError.

Damaged ones have bits flipped, bytes changed, cut out, put in or moved, and other numbers in the
headers of the zip archive: nothing but the value that was saved may come of them. Forged ones have
other content under checksums that are right: what comes of them is a value or a ValueError. Neither
takes more than MEMORY bytes nor SECONDS.
"""

import hashlib
import io
import json
import pickletools
import resource
import time
import zipfile
from pathlib import Path

import _content
from _frame import run

import oneflow_lite as flow

MEMORY = 256 << 20
SECONDS = 5
FIXTURE = Path(__file__).resolve().parents[1] / "python" / "data" / "format_1.npz"
NUMBERS = [0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 0xFFFF, 0x10000, 2**31 - 1, 2**31,
           2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**30, -1, -2, -(2**31),
           -(2**63)]  # fmt: skip


# ---- Damage: the bytes of a file change, the checksums do not.


def flip(rng, data):
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut(rng, data):
    del data[rng.randrange(len(data)) :]


def remove(rng, data):
    start = rng.randrange(len(data))
    del data[start : start + rng.choice([1, 2, 4, 64, 1000])]


def insert(rng, data):
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice([1, 2, 4, 64, 1000]))


def splice(rng, data):
    size = rng.choice([1, 2, 4, 8, 30, 46, 128])
    start, to = rng.randrange(len(data)), rng.randrange(len(data))
    data[to : to + size] = data[start : start + size]


def mix(rng, data):
    other = rng.choice(SOURCES)[1]
    start, size = rng.randrange(len(other)), rng.choice([4, 30, 64, 500])
    at = rng.randrange(len(data))
    data[at : at + size] = other[start : start + size]


def header(rng, data):
    """Another number in a field of one of zip's headers."""
    mark = rng.choice([b"PK\1\2", b"PK\3\4", b"PK\5\6"])
    places = []
    at = data.find(mark)
    while at >= 0:
        places.append(at)
        at = data.find(mark, at + 1)
    start = rng.choice(places) + 4
    for _ in range(rng.choice([1, 1, 2])):
        at, width = start + rng.randrange(0, 42, 2), rng.choice([2, 4])
        field = data[at : at + width]
        old = int.from_bytes(field, "little")
        new = rng.choice([*NUMBERS, old + 1, old - 1, old + rng.randrange(-100, 100), old ^ 8])
        data[at : at + width] = (new % (1 << 8 * len(field))).to_bytes(len(field), "little")


DAMAGE = (flip, flip, cut, remove, insert, splice, mix, header, header)


# ---- Forgery: the content of an entry changes, and the checksums with it.


def nodes(tree):
    """The lists and dicts of a JSON tree."""
    found = [tree] if isinstance(tree, list | dict) else []
    for node in found:
        items = node.values() if isinstance(node, dict) else node
        found.extend(item for item in items if isinstance(item, list | dict))
    return found


def forge_json(rng, data):
    whole = json.loads(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        places = [node for node in nodes(whole) if node]
        if not places:
            break
        node, other = rng.choice(places), rng.choice(places)
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        value = rng.choice([*NUMBERS, None, True, False, 1.5, 1e308, "", "x", "w", "float32",
                            "bool", "int", "nan", "0x" + "f" * 9999, "\ud800", [], {}, [[]],
                            {"list": []}, {"int": "1"}, {"float": "inf"},
                            {"dict": [[1, 2]]}])  # fmt: skip
        action = rng.randrange(5)
        if action == 0:
            del node[key]
        elif action == 1 and isinstance(node, list):
            node.insert(key, value)
        elif action == 2:
            node[key] = json.loads(json.dumps(other))
        elif action == 3 and isinstance(node, dict):
            node[rng.choice(["tensor", "array", "dict", "list", "int", "shape", "x"])] = node.pop(
                key
            )
        else:
            node[key] = value
    if rng.random() < 0.1:
        whole = {"oneflow_lite": rng.choice([1, 1, 2, 3, -1, None]), "value": whole.get("value", 0)}
        return json.dumps(whole).encode()
    if not isinstance(whole, dict) or whole.get("oneflow_lite") != 2 or "value" not in whole:
        return json.dumps(whole).encode()
    text = json.dumps(whole["value"]).encode()
    seal = hashlib.sha256(text).hexdigest().encode()
    return b'{"oneflow_lite": 2, "sha256": "%s", "value": %s}' % (seal, text)


def forge_array(rng, data):
    """The header of an .npy entry."""
    end = min(len(data), 128)
    text = bytearray(data[:end])
    words = [b"<f4", b"<f8", b"<i8", b"|b1", b"|O", b"<f2", b">f4", b"<U9", b"True", b"False",
             b"()", b"(-1,)", b"(3, 3)", b"(9999999999,)", b"(0, 9223372036854775807)", b"[",
             b"'"]  # fmt: skip
    for _ in range(rng.choice([1, 1, 2])):
        at, word = rng.randrange(end), rng.choice(words)
        if rng.random() < 0.5:
            text[at] = rng.choice([*b"0123456789 ,()'<>|[{", rng.randrange(256)])
        else:
            place = max(text.find(rng.choice([b"'<", b"'|", b"(", b"False"])), 0)
            text[place : place + len(word)] = word
    return bytes(text[:end]) + data[end:]


PIECES = [b"]", b"}", b")", b"(", b"N", b"t", b"l", b"d", b"a", b"e", b"s", b"u", b"b", b"R", b"Q",
          b"0", b"1", b"2", b"\x81", b"\x85", b"\x87", b"\x93", b"\x94", b"\x8f", b"\x90", b"\x92",
          b"j\xff\xff\xff\x7f", b"r\xff\xff\xff\x7f", b"\x8b\xff\xff\xff\x7f", b"X\xff\xff\xff\xff",
          b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f",
          b"\x96\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x82\1", b"cos\nsystem\n",
          b"cbuiltins\neval\n", b"ctorch._utils\n_rebuild_tensor_v2\n",
          b"ccollections\nOrderedDict\n", b"ctorch\nint8\n",
          b"ctorch\nFloatStorage\n", b"ctorch\nSize\n", b"ctorch\ndevice\n",
          b".", b"K\0", b"K\1"]  # fmt: skip


def forge_pickle(rng, data):
    """Opcodes taken out, doubled, moved, or put in, and other numbers in those that have one."""
    places = [at for _, _, at in pickletools.genops(data)] + [len(data)]
    ops = [data[a:b] for a, b in zip(places, places[1:], strict=False)]
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, to = rng.randrange(1, len(ops)), rng.randrange(1, len(ops))
        action = rng.randrange(6)
        if action == 0:
            ops[at] = rng.choice(PIECES)
        elif action == 1:
            ops.insert(at, rng.choice(PIECES))
        elif action == 2:
            del ops[at]
        elif action == 3:
            ops.insert(to, ops[at])
        elif ops[at][:1] in b"KMJhjqr\x8aXG" and action == 4:
            width = 8 if ops[at][:1] == b"\x8a" else max(len(ops[at]) - 1, 1)
            number = (rng.choice(NUMBERS) % (1 << 8 * width)).to_bytes(width, "little")
            ops[at] = ops[at][:1] + (b"\x08" if width == 8 else b"") + number
        else:
            ops[at] = b"\x8a\x09" + rng.choice(NUMBERS[:-1] + [5, 11, 12, 13]).to_bytes(
                16, "little", signed=True
            )[:9]  # fmt: skip
        if len(ops) < 3:
            break
    return b"".join(ops)


def forge(rng, data):
    stream = io.BytesIO()
    compression = zipfile.ZIP_DEFLATED if rng.random() < 0.02 else zipfile.ZIP_STORED
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", compression) as new:
        names = old.namelist()
        main = next(n for n in names if n.endswith((".json", "data.pkl")))
        chosen = main if rng.random() < 0.7 else rng.choice(names)
        for name in names:
            content = old.read(name)
            if name == chosen:
                if name.endswith(".json"):
                    content = forge_json(rng, content)
                elif name.endswith(".pkl"):
                    content = forge_pickle(rng, content)
                elif name.endswith(".npy"):
                    content = forge_array(rng, content)
                elif rng.random() < 0.5:
                    content += rng.randbytes(rng.choice([1, 8, 100]))
                else:
                    content = content[: rng.randrange(len(content) + 1)]
            new.writestr(name, content)
    return stream.getvalue()


def look(value):
    """Uses what a forged file gave, as far as that is cheap."""
    left, count = [value], 0
    while left and count < 1000:
        item, count = left.pop(), count + 1
        if isinstance(item, flow.Tensor):
            assert item.storage_offset() >= 0
            if item.numel() < 10_000:
                item.detach().contiguous().float().sum().item()
        elif isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list | tuple):
            left.extend(item)


def attempt(data, want):
    """One load: its kind, for the counts."""
    start = time.process_time()
    try:
        value = flow.load(io.BytesIO(data))
    except ValueError as error:
        assert str(error).startswith("load(): the file "), error
        assert len(str(error)) < 1000
        kind = "refused"
    else:
        if want is None:
            look(value)
            kind = "forged and taken"
        else:
            assert _content.digest(value) == want, "another value was loaded"
            kind = "the same"
    assert time.process_time() - start < SECONDS
    return kind


def limit_memory():
    if "libasan" not in Path("/proc/self/maps").read_text():  # whose shadow memory is beyond any
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


SOURCES = [
    (kind, data, _content.digest(flow.load(io.BytesIO(data))))
    for kind, data in (
        ("save", _content.ours()), ("torch.save", _content.pytorchs()),
        ("torch.save, protocol 4", _content.pytorchs(4)), ("format 1", FIXTURE.read_bytes()),
    )
]  # fmt: skip


def rounds(rng, say):
    limit_memory()
    while True:
        seed = rng.getrandbits(64)
        kind, source, want = rng.choice(SOURCES)
        way = rng.choice([*DAMAGE, *[forge] * 6])
        say(f"{way.__name__} of {kind}, with seed {seed}")
        own = type(rng)(seed)
        if way is forge:
            yield attempt(forge(own, source), None)
        else:
            data = bytearray(source)
            way(own, data)
            yield attempt(bytes(data), want)


if __name__ == "__main__":
    run(rounds, full={"count": 100_000}, flat=True)
