# SPDX-License-Identifier: Apache-2.0
"""What load believes: files of older formats, and nothing that a checksum does not cover."""

import hashlib
import io
import json
import math
import pickle
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from numerics import flow

DATA = Path(__file__).parent / "data"
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64"]  # fmt: skip


def same(a, b):
    """To the bit, with types, dtypes, shapes and requires_grad."""
    if type(a) is not type(b):
        return False
    if isinstance(a, flow.Tensor):
        if (a.dtype, a.shape, a.requires_grad) != (b.dtype, b.shape, b.requires_grad):
            return False
        a, b = (x.detach().float() if x.dtype == flow.bfloat16 else x.detach() for x in (a, b))
        return a.numpy().tobytes() == b.numpy().tobytes()
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)  # which tells 0.0 from -0.0


def test_a_file_of_format_1_is_read():
    """Written by the last version that wrote it, 0.1.0; bfloat16 in float32, no checksums."""
    got = flow.load(DATA / "format_1.npz")
    for dtype in DTYPES:
        first = 0 if dtype in ("bool", "uint8") else -2
        want = flow.tensor([[first + 3 * i + j for j in range(3)] for i in range(2)])
        assert same(got["dtypes"][dtype], want.to(getattr(flow, dtype)))
    nan, inf = math.nan, math.inf
    want = {
        "zero_dim": flow.tensor(1.5), "empty": flow.zeros(0, 3),
        "empty_bool": flow.zeros(2, 0, dtype=flow.bool),
        "transposed": flow.tensor([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]),
        "parameter": flow.tensor([0.1, -0.0], requires_grad=True),
        "half_parameter": flow.tensor([1.5], dtype=flow.bfloat16, requires_grad=True),
        "odd": flow.tensor([nan, inf, -inf, -0.0]),
        3: {"x.y": flow.ones(1), "x": {"y": flow.zeros(1)}, -1: "minus one"},
        "a/b": flow.tensor([7]), "a_b": flow.tensor([8]), "é": flow.tensor([9]),
        "plain": [1, -2.5, "text é \U0001f600", None, True, False, (), [], {},
                  (flow.tensor([2, 3], dtype=flow.int16), {"b": [[]]}), 2**80, -0.0, inf, -inf,
                  1e-320],
    }  # fmt: skip
    assert list(got) == ["dtypes", *want]
    for key, value in want.items():
        assert same(got[key], value), key


def sample():
    return {
        "w": flow.arange(6, dtype=flow.float32).reshape(2, 3),
        "b": flow.tensor([1.5, -2.5], dtype=flow.bfloat16, requires_grad=True),
        "mask": flow.tensor([True, False]), "t": flow.arange(4).reshape(2, 2).t(),
        "n": [1, -0.0, "text", None, (2**70, True, {3: math.inf})], "a": np.arange(3, dtype="u2"),
    }  # fmt: skip


def written(value):
    stream = io.BytesIO()
    flow.save(value, stream)
    return stream.getvalue()


def outcome(data):
    """What load gives, or the ValueError."""
    try:
        return flow.load(io.BytesIO(data))
    except ValueError as error:
        assert str(error).startswith("load(): the file ")
        return error


@pytest.mark.parametrize("format", [1, 2])
def test_every_flipped_bit_is_seen_or_changes_nothing(format):
    """One bit of each byte, of the fixture's every 23rd; tests/attack/files.py tries more."""
    data = bytearray(written(sample()) if format == 2 else (DATA / "format_1.npz").read_bytes())
    want, seen = outcome(data), 0
    places = range(0, len(data), 1 if format == 2 else 23)
    for at in places:
        data[at] ^= 1 << at % 8
        got = outcome(data)
        data[at] ^= 1 << at % 8
        seen += isinstance(got, ValueError)
        assert isinstance(got, ValueError) or same(got, want), at
    assert seen > len(places) / 2  # the rest are times, versions and copies of numbers


def test_every_truncation_is_seen():
    data = written(sample())
    for end in range(len(data)):
        assert isinstance(outcome(data[:end]), ValueError), end
    assert isinstance(outcome(data + b"\0"), ValueError)


def test_the_same_value_makes_the_same_file():
    assert written(sample()) == written(sample())


def test_numpy_and_zipfile_read_it(tmp_path):
    (tmp_path / "x.npz").write_bytes(written(sample()))
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        assert archive.testzip() is None
        text = archive.read("structure.json")
        crcs = {info.filename: info.CRC for info in archive.infolist()}
    structure = json.loads(text)
    assert list(structure) == ["oneflow_lite", "sha256", "value"] and structure["oneflow_lite"] == 2
    value = text[text.index(b'"value": ') + 9 : -1]
    assert hashlib.sha256(value).hexdigest() == structure["sha256"]
    nodes = dict(structure["value"]["dict"])
    assert nodes["w"] == {"tensor": "w", "dtype": "float32", "requires_grad": False,
                          "shape": [2, 3], "crc32": crcs["w.npy"]}  # fmt: skip
    assert nodes["a"] == {"array": "a", "dtype": "<u2", "shape": [3], "crc32": crcs["a.npy"]}
    with np.load(tmp_path / "x.npz") as file:
        np.testing.assert_array_equal(file["w"], np.arange(6, dtype="f4").reshape(2, 3))
        np.testing.assert_array_equal(file["b"], np.array([1.5, -2.5], "f4"))


# ---- Files that someone made: all checksums are right, what they say is not.


def npy(array, **changes):
    stream = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array) | changes
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + array.tobytes()


def archive_of(entries, compression=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return stream.getvalue()


def ours(tree, entries=(), **options):
    """A file of format 2 with this structure; "?" in it stands for the CRC-32 of the entry."""
    entries = dict(entries)
    text = json.dumps(tree)
    for name, data in entries.items():
        text = text.replace(f'"?{name}"', str(zlib.crc32(data)))
    seal = hashlib.sha256(text.encode()).hexdigest()
    content = f'{{"oneflow_lite": 2, "sha256": "{seal}", "value": {text}}}'
    return archive_of([*entries.items(), ("structure.json", content)], **options)


def node(name="x", dtype="float32", shape=(2,), requires_grad=False, **more):
    return {"tensor": name, "dtype": dtype, "requires_grad": requires_grad, "shape": list(shape),
            "crc32": f"?{name}.npy"} | more  # fmt: skip


X = np.ones(2, "f4")
FORGED = {
    "control": (ours(node(), {"x.npy": npy(X)}), None),
    "deflated": (ours(node(), {"x.npy": npy(X)}, compression=zipfile.ZIP_DEFLATED),
                 "is compressed"),
    "shape": (ours(node(shape=(3,)), {"x.npy": npy(X)}), "has the shape"),
    "dtype": (ours(node(dtype="int32"), {"x.npy": npy(X)}), "is stored as float32"),
    "no dtype": (ours(node(dtype=["float32"]), {"x.npy": npy(X)}), "is stored as float32"),
    "float64 as bfloat16": (ours(node(dtype="bfloat16"), {"x.npy": npy(X.astype("f8"))}),
                            "is stored as float64"),
    "no such dtype": (ours(node(dtype="uint16"), {"x.npy": npy(X.astype("u2"))}), "supported are"),
    "crc": (ours(node(crc32=1), {"x.npy": npy(X)}), "is not the one that was saved"),
    "no entry": (ours(node("y"), {"x.npy": npy(X)}), "there is no entry 'y.npy'"),
    "twice": (ours({"list": [node(), node()]}, {"x.npy": npy(X)}), "two tensors are in it"),
    "left out": (ours(1, {"x.npy": npy(X)}), "leaves out the entry 'x.npy'"),
    "integers with grad": (ours(node(dtype="int32", requires_grad=True),
                                {"x.npy": npy(X.astype("i4"))}), "requires a gradient"),
    "grad of no bool": (ours(node(requires_grad=1), {"x.npy": npy(X)}), "is stored as"),
    "bytes missing": (ours(node(), {"x.npy": npy(X)[:-1]}), "7 bytes for an array of shape"),
    "bytes too many": (ours(node(), {"x.npy": npy(X) + b"1"}), "9 bytes for an array of shape"),
    "huge": (ours(node(shape=(2**62,)), {"x.npy": npy(X, shape=(2**62,))}), "8 bytes for an array"),
    "negative": (ours(node(shape=(-2,)), {"x.npy": npy(X, shape=(-2,))}), "the header of an array"),
    "empty and huge": (ours(node(shape=(0, 2**62, 8)), {"x.npy": npy(X[:0], shape=(0, 2**62, 8))}),
                       "cannot be read"),
    "many dims": (ours(node(shape=(1,) * 65), {"x.npy": npy(X[:1], shape=(1,) * 65)}),
                  "cannot be read"),
    "objects": (ours(node(), {"x.npy": npy(X, descr="|O")}), "the header of an array"),
    "records": (ours(node(), {"x.npy": npy(X, descr=[("a", "<f4")])}), "the header of an array"),
    "bool of 2": (ours(node(dtype="bool"), {"x.npy": npy(np.array([1, 2], "u1"), descr="|b1")}),
                  "other than 0 and 1"),
    "no npy": (ours(node(), {"x.npy": b"12345"}), "is in no .npy format"),
    "npy of version 2": (ours(node(), {"x.npy": npy(X).replace(b"\1\0", b"\2\0", 1)}),
                         "is in no .npy format"),
    "header beyond": (ours(node(), {"x.npy": npy(X)[:8] + b"\xff\xff" + npy(X)[10:]}),
                      "the header of an array"),
    "same names": (archive_of([("structure.json", "1"), ("structure.jsoN", "1")])
                   .replace(b"structure.jsoN", b"structure.json"),
                   "two entries are called 'structure.json'"),
    "bare list": (ours([1]), "a bare list"),
    "unknown": (ours({"set": []}), "its structure holds a 'set'"),
    "nothing": (ours({}), "its structure holds a ''"),
    "no pairs": (ours({"dict": [[1, 2, 3]]}), "other things than pairs"),
    "a dict of a dict": (ours({"dict": {"a": 1}}), "its structure holds a 'dict'"),
    "key twice": (ours({"dict": [["a", 1], ["a", 2]]}), "holds the key 'a', or holds it twice"),
    "key None": (ours({"dict": [[None, 1]]}), "holds the key None"),
    "key true": (ours({"dict": [[True, 1]]}), "holds the key True"),
    "key huge": (ours({"dict": [[2**63, 1]]}), "holds the key int"),
    "key of lists": (ours({"dict": [[[1], 1]]}), "holds the key list"),
    "no number": (ours({"int": "0xg"}), "holds the number '0xg'"),
    "number of a number": (ours({"int": 1}), "holds a 'int'"),
    "no float": (ours({"float": "1.5"}), "holds a 'float'"),
    "later": (archive_of([("structure.json", '{"oneflow_lite": 3, "value": 1}')]),
              "has format 3; this version of oneflow_lite reads up to 2"),
    "format 2 without a seal": (archive_of([("structure.json", '{"oneflow_lite": 2, "value": 1}')]),
                                "of no format that there is"),
    "format true": (archive_of([("structure.json", '{"oneflow_lite": true, "value": 1}')]),
                    "of no format that there is"),
    "no format": (archive_of([("structure.json", "[1]")]), "of no format that there is"),
    "no UTF-8": (archive_of([("structure.json", b'{"oneflow_lite": 1, "value": "\xff"}')]),
                 "its structure cannot be read"),
    "cut off": (archive_of([("structure.json", b'{"oneflow_lite": 1, "value": [')]),
                "its structure cannot be read"),
    "no JSON": (archive_of([("structure.json", b'{"oneflow_lite": 1, "value": 1 1}')]),
                "its structure cannot be read"),
    "deep": (archive_of([("structure.json", b'{"oneflow_lite": 1, "value": ' + b"[" * 100_000)]),
             "nested too deep"),
    "deep lists": (archive_of([("structure.json", b'{"oneflow_lite": 1, "value": ' + b'{"list": ['
                                * 320 + b"]}" * 320 + b"}")]), ""),
    "another's": (archive_of([("x.npy", npy(X))]), "no file of PyTorch either"),
    "two of PyTorch": (archive_of([("a/data.pkl", "N."), ("b/data.pkl", "N.")]),
                       "no file of PyTorch either"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_files(name):
    data, text = FORGED[name]
    got = outcome(data)
    if text is None:
        assert not isinstance(got, ValueError)
    elif text or isinstance(got, ValueError):
        assert isinstance(got, ValueError) and text in str(got), got


# ---- Zip archives whose directory lies.

END, CENTRAL = struct.Struct("<4s4H2LH"), struct.Struct("<4s4B4HL2L5H2L")


def with_central(entry, **changes):
    """A file of two tensors with other numbers in the directory for one of its entries."""
    places = {"flags": 8, "method": 10, "crc": 16, "packed": 20, "size": 24, "disk": 34,
              "offset": 42}  # fmt: skip
    data = bytearray(written({"a": flow.ones(50), "b": flow.zeros(50)}))
    at = int.from_bytes(data[-6:-2], "little")
    for _ in range(entry):
        at = data.index(b"PK\1\2", at + 1)
    for name, value in changes.items():
        width = 2 if places[name] in (8, 10, 34) else 4
        start = at + places[name]
        old = int.from_bytes(data[start : start + width], "little")
        new = value(old) if callable(value) else value
        data[start : start + width] = new.to_bytes(width, "little")
    return bytes(data)


def with_end(place, width, change):
    data = bytearray(written({"a": flow.ones(50)}))
    start = len(data) - END.size + place
    old = int.from_bytes(data[start : start + width], "little")
    data[start : start + width] = (change(old) % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(data)


LYING = {
    "size": with_central(0, size=lambda n: n + 1),
    "sizes": with_central(0, size=lambda n: n + 1, packed=lambda n: n + 1),
    "sizes of less": with_central(0, size=lambda n: n - 1, packed=lambda n: n - 1),
    "sizes beyond": with_central(1, size=0xFFFFFFF0, packed=0xFFFFFFF0),
    "sizes for zip64": with_central(1, size=0xFFFFFFFF, packed=0xFFFFFFFF),
    "overlap": with_central(0, size=500, packed=500),
    "one on another": with_central(1, offset=0),
    "offset": with_central(1, offset=lambda n: n + 1),
    "offset beyond": with_central(1, offset=0xFFFFFFF0),
    "deflated": with_central(0, method=8),
    "encrypted": with_central(0, flags=lambda n: n | 1),
    "crc": with_central(0, crc=lambda n: n ^ 1),
    "disk": with_central(0, disk=1),
    "count": with_end(8, 2, lambda n: n + 1),
    "counts": with_end(10, 2, lambda n: n - 1),
    "directory": with_end(12, 4, lambda n: n - 1),
    "directory beyond": with_end(12, 4, lambda n: 0xFFFFFFF0),
    "start": with_end(16, 4, lambda n: n + 1),
    "start beyond": with_end(16, 4, lambda n: 0xFFFFFFF0),
    "comment": with_end(20, 2, lambda n: 1),
}


@pytest.mark.parametrize("name", LYING)
def test_directories_that_lie(name):
    assert isinstance(outcome(LYING[name]), ValueError)


def test_archives_for_large_files_are_read(monkeypatch):
    """As written for 4 GB and more: the numbers stand in records of 64 bits."""
    monkeypatch.setattr("oneflow_lite._serialization._LARGE", 0)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    data = bytearray(written(sample()))
    assert b"PK\6\6" in data and b"PK\6\7" in data
    want = outcome(data)
    assert same(want, sample())
    for at in range(0, len(data), 5):
        data[at] ^= 1 << at % 8
        got = outcome(data)
        data[at] ^= 1 << at % 8
        assert isinstance(got, ValueError) or same(got, want), at


# ---- Memory.

MEASURE = """
import resource, sys
import numpy, oneflow_lite as flow
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before = peak()
for path in sys.argv[1:]:
    try:
        flow.load(path)
    except ValueError as error:
        print("refused", end=" ")
    else:
        print("loaded", end=" ")
print(peak() - before)
"""


def pickled(*parts):
    return archive_of([("model/data.pkl", b"".join(parts)), ("model/byteorder", b"little")])


BOMBS = {
    "memo": pickled(b"\x80\x02Nr\xff\xff\xff\x1f."),
    "memo of protocol 4": pickled(b"\x80\x04N", b"r\xff\xff\xff\x7f", b"\x94."),
    "deflated": ours(node(shape=(1 << 29,)),
                     {"x.npy": npy(X[:0], shape=(1 << 29,)) + bytes(1 << 26)},
                     compression=zipfile.ZIP_DEFLATED),
    "deflated of PyTorch": archive_of([("m/data.pkl", b"N" * (1 << 26))], zipfile.ZIP_DEFLATED),
    "long": pickled(b"\x80\x02\x8b\xff\xff\xff\x7f1."),
    "text": pickled(b"\x80\x02X\xff\xff\xff\xffabc."),
    "text of protocol 4": pickled(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc."),
    "bytes": pickled(b"\x80\x04\x8e\xff\xff\xff\xff\x0f\0\0\0abc."),
    "bytearray": pickled(b"\x80\x05\x96\xff\xff\xff\xff\x0f\0\0\0abc."),
    "frame": pickled(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN."),
    "size": with_central(1, size=0xFFFFFFF0, packed=0xFFFFFFF0),
    "directory": with_end(12, 4, lambda n: 0xFFFFFFF0),
    "shape": FORGED["huge"][0],
}  # fmt: skip


def test_what_is_not_there_is_not_allocated(tmp_path):
    paths = []
    for name, data in BOMBS.items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(data)
    found = subprocess.run([sys.executable, "-c", MEASURE, *paths], text=True, capture_output=True)
    *words, grown = found.stdout.split()
    assert len(words) == len(BOMBS), found.stderr
    loaded = {name for name, word in zip(BOMBS, words, strict=True) if word == "loaded"}
    # An index allocates nothing here, and a frame is a hint.
    assert loaded == {"memo", "memo of protocol 4", "frame"}
    assert int(grown) < 20, f"{grown} MB"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_loading_takes_little_more_than_the_file(tmp_path, dtype):
    flow.save({"x": flow.zeros(1 << 20, dtype=getattr(flow, dtype))}, tmp_path / "x")
    tracemalloc.start()
    flow.load(tmp_path / "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * (tmp_path / "x").stat().st_size


# ---- Pickles of tensors.


def test_pickles_of_tensors_are_checked():
    function, args, *_ = flow.ones(2, 3).__reduce_ex__(2)
    assert flow.ones(2, 3).tolist() == function(*args).tolist()
    cls, data, dtype, shape, device, grad = args
    for bad in (
        (cls, data, dtype, (2**40, 2**10), device, grad),  # more than there is, and no memory taken
        (cls, data, dtype, (2**62, 4), device, grad), (cls, data, dtype, (-2, -3), device, grad),
        (cls, data, dtype, (2, 4), device, grad), (cls, b"", dtype, (0, 2**62, 8), device, grad),
        (cls, data, dtype, (2, "x"), device, grad), (cls, data, dtype, [2, 3], device, grad),
        (cls, data, dtype, (2**80,), device, grad), (cls, data, flow.int32, (2, 3), device, 1),
        (cls, data, "float32", (2, 3), device, grad), (cls, data, dtype, (2, 3), "x", grad),
        (cls, data, dtype, (2, 3), "cpu\0", grad), (cls, data, dtype, (2, 3), None, grad),
        (int, data, dtype, (2, 3), device, grad), (None, data, dtype, (2, 3), device, grad),
        (cls, "x" * 24, dtype, (2, 3), device, grad), (cls, data, dtype, (2, 3), device, 2**40),
        (cls, b"\2" * 6, flow.bool, (2, 3), device, False), (), (cls,), (*args, 1),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError, RuntimeError, OverflowError)):
            function(*bad)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_survives_a_pickle(dtype):
    x = flow.arange(6).reshape(2, 3).to(getattr(flow, dtype))
    for y in (x, x.t(), x[0, 1], x[:0]):
        assert same(pickle.loads(pickle.dumps(y)), y)
