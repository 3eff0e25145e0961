# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save, written here byte by byte: load reads them and runs nothing in them."""

import collections
import io
import os
import pickle
import sys
import types
import zipfile

import numpy as np
import pytest
from numerics import flow

from oneflow_lite import _oneflow_lite, _pytorch_file


class Storage:
    def __init__(self, kind, key, count, location="cpu"):
        self.pid = ("storage", kind, key, location, count)


class Rebuilt:
    """A tensor as PyTorch pickles it: a function of that name, called with these arguments."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.pid if isinstance(obj, Storage) else None


@pytest.fixture
def torch(monkeypatch):
    """What pickle must find in order to write PyTorch's names."""
    root, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for module, names in (
        (
            root,
            [
                "FloatStorage",
                "BFloat16Storage",
                "LongStorage",
                "ComplexFloatStorage",
                "Size",
                "device",
            ],
        ),
        (utils, ["_rebuild_tensor_v2", "_rebuild_parameter", "_rebuild_other"]),
    ):
        for name in names:
            setattr(module, name, type(name, (), {"__module__": module.__name__}))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    root._utils = utils
    return root


def written(value, storages, byteorder=b"little"):
    stream, pickled = io.BytesIO(), io.BytesIO()
    Pickler(pickled, protocol=2).dump(value)
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("model/data.pkl", pickled.getvalue())
        archive.writestr("model/byteorder", byteorder)
        for key, raw in storages.items():
            archive.writestr(f"model/data/{key}", raw)
    stream.seek(0)
    return stream


def view(torch, kind, key, count, offset, size, stride):
    function = torch._utils._rebuild_tensor_v2
    hooks = collections.OrderedDict()
    return Rebuilt(function, Storage(kind, key, count), offset, size, stride, False, hooks)


def test_a_checkpoint(torch):
    numbers = np.arange(12, dtype="<f4")
    narrow = (np.array([1.5, -2.0], "<f4").view("<u4") >> 16).astype("<u2")
    whole = view(torch, torch.FloatStorage, "0", 12, 0, (3, 4), (4, 1))
    turned = view(torch, torch.FloatStorage, "0", 12, 4, (4, 2), (1, 4))
    state = collections.OrderedDict(w=whole, t=turned)
    state["half"] = view(torch, torch.BFloat16Storage, "1", 2, 0, (2,), (1,))
    state["step"] = view(torch, torch.LongStorage, "2", 1, 0, (), ())
    state["empty"] = view(torch, torch.FloatStorage, "3", 0, 0, (0, 3), (3, 1))
    state["p"] = Rebuilt(torch._utils._rebuild_parameter, whole, True, collections.OrderedDict())
    raw = {"0": numbers.tobytes(), "1": narrow.tobytes(), "2": np.int64(7).tobytes()}
    saved = {"model": state, "epoch": 3, "names": ["a", None, (1.5, True)]}

    got = flow.load(written(saved, raw))
    assert got["epoch"] == 3 and got["names"] == ["a", None, (1.5, True)]
    model = got["model"]
    np.testing.assert_array_equal(model["t"].numpy(), numbers[4:].reshape(2, 4).T)
    assert model["half"].dtype is flow.bfloat16 and model["half"].tolist() == [1.5, -2.0]
    assert model["step"].item() == 7 and model["step"].shape == ()
    assert model["empty"].shape == (0, 3) and model["p"].requires_grad
    model["w"][1, 0] = 100  # memory that was shared is shared
    assert model["t"][0, 0].item() == 100

    on_meta = flow.load(written(saved, raw), device="meta")["model"]["w"]
    assert on_meta.is_meta and on_meta.shape == (3, 4)


def test_a_map_of_locations(torch):
    function = torch._utils._rebuild_tensor_v2
    saved = {
        name: Rebuilt(function, Storage(torch.FloatStorage, name, 2, place), 0, (2,), (1,), False,
                      collections.OrderedDict())
        for name, place in (("0", "cuda:0"), ("1", "cpu"))
    }  # fmt: skip
    raw = dict.fromkeys(saved, np.ones(2, "<f4").tobytes())

    def places(map_location):
        got = flow.load(written(saved, raw), map_location=map_location)
        return [str(got[name].device) for name in saved]

    assert places({"cuda:0": "meta"}) == ["meta", "cpu"]
    assert places({"cuda:0": "cpu", "cpu": "meta"}) == ["cpu", "meta"]
    seen = []
    assert places(lambda storage, place: seen.append(place) or storage) == ["cpu", "cpu"]
    assert seen == ["cuda:0", "cpu"]
    assert places(lambda storage, place: storage.to("meta")) == ["meta", "meta"]
    assert places(lambda storage, place: None) == ["cpu", "cpu"]


def test_a_module_takes_it(torch, tmp_path):
    state = collections.OrderedDict(
        weight=view(torch, torch.FloatStorage, "0", 8, 0, (2, 3), (3, 1)),
        bias=view(torch, torch.FloatStorage, "0", 8, 6, (2,), (1,)),
    )
    path = tmp_path / "linear.pt"
    path.write_bytes(written(state, {"0": np.arange(8, dtype="<f4").tobytes()}).read())
    layer = flow.nn.Linear(3, 2)
    layer.load_state_dict(flow.load(path))
    assert layer(flow.ones(3)).tolist() == [9.0, 19.0]


class Evil:
    def __reduce__(self):
        return os.mkdir, ("made by a pickle",)


def test_what_is_refused(torch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw = {"0": np.zeros(4, "<f4").tobytes()}
    beyond = view(torch, torch.FloatStorage, "0", 4, 2, (3,), (1,))
    gone = view(torch, torch.FloatStorage, "9", 4, 0, (4,), (1,))
    complexes = view(torch, torch.ComplexFloatStorage, "0", 2, 0, (2,), (1,))
    other = Rebuilt(torch._utils._rebuild_other, 1)
    for value, text in (
        (Evil(), "mkdir"), ({"a": set()}, "set"), (beyond, "was written by PyTorch"),
        (complexes, "it holds torch.ComplexFloatStorage"), (gone, "data/9"),
        (other, "it holds torch._utils._rebuild_other"), ({"f": flow.softmax}, "it holds"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"load\(\): ") as caught:
            flow.load(written(value, raw))
        assert text in str(caught.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="big-endian"):
        flow.load(written({}, {}, b"big"))
    damaged = io.BytesIO()
    with zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02}q\x00(X")
    with pytest.raises(ValueError, match="it is damaged"):
        flow.load(damaged)


# ---- Pickles that no torch.save writes. Each is the end of a program for the unpickler's stack.

ODICT = b"ccollections\nOrderedDict\n"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
EMPTY = ODICT + b")R"


def number(n):
    return b"\x8a\x09" + n.to_bytes(9, "little", signed=True)


def storage(key=b"0", count=4, kind=b"FloatStorage", what=b"storage"):
    def text(value):
        return b"X" + len(value).to_bytes(4, "little") + value

    return b"(" + text(what) + b"ctorch\n" + kind + b"\n" + text(key) + text(b"cpu") \
        + number(count) + b"tQ"  # fmt: skip


def tensor(size=(4,), stride=(1,), offset=0, grad=b"\x89", source=None):
    def numbers(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    return REBUILD + b"(" + (storage() if source is None else source) + number(offset) \
        + numbers(size) + numbers(stride) + grad + EMPTY + b"tR"  # fmt: skip


def read(program, **entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02" + program + b".")
        archive.writestr("m/data/0", np.arange(4, dtype="<f4").tobytes())
        for key, raw in entries.items():
            archive.writestr(f"m/data/{key}", raw)
    return flow.load(stream)


TUPLES = b"(" * 10 + b"N" + b"t" * 10
HOSTILE = {
    "a name of ours is changed": ODICT + b"}X\1\0\0\0aK\1sb",
    "a call of ours is changed": REBUILD + b"}X\1\0\0\0aK\1sb",
    "a dtype is changed": b"ctorch\nfloat32\n}X\1\0\0\0aK\1sb",
    "a tensor is changed": tensor() + b"}X\1\0\0\0aK\1sb",
    "a tensor's items": tensor() + b"K\0K\1s",
    "a tensor is appended to": tensor() + b"K\1a",
    "a method is replaced": EMPTY + b"}X\5\0\0\0itemsK\1sb",
    "a class is replaced": EMPTY + b"}X\x09\0\0\0__class__K\1sb",
    "a state of slots": EMPTY + b"N}X\1\0\0\0aK\1s\x86b",
    "a dict is built": b"}}b",
    "a list is called": b"])R",
    "a dtype is called": b"ctorch\nfloat32\n)R",
    "a storage is called": storage() + b")R",
    "arguments of a list": ODICT + b"]R",
    "a name is data": ODICT,
    "a name in a list": b"]" + REBUILD + b"a",
    "a name in an attribute": EMPTY + b"}X\1\0\0\0a" + REBUILD + b"sb",
    "a storage is data": storage(),
    "a storage in a tuple": storage() + b"\x85",
    "an instance": ODICT + b")\x81",
    "an instance of old": b"(ios\ngetcwd\n",
    "an extension": b"\x82\1",
    "a set": b"\x8f",
    "a bytearray": b"\x96\1\0\0\0\0\0\0\0a",
    "a buffer": b"\x97",
    "an id of text": b"Pabc\n",
    "a name of os": b"cos\nsystem\n(X\4\0\0\0truetR",
    "a name from the stack": b"X\2\0\0\0osX\6\0\0\0system\x93",
    "a name of a number": b"K\1K\2\x93",
    "a name through another": b"coneflow_lite\nnn.Module\n",
    "a key of lists": b"}]K\1s",
    "a key of tuples": b"}" + TUPLES + b"K\1s",
    "a key of a tensor": b"}" + tensor() + b"K\1s",
    "a key too large": b"}\x8a\x0c" + b"\1" * 12 + b"K\1s",
    "a key without a value": b"}(K\1u",
    "an empty stack": b"0",
    "nothing": b"",
    "a mark": b"(",
    "no mark": b"t",
    "appended to nothing": b"K\1a",
    "a memo of nothing": b"q\1",
    "nothing in the memo": b"h\7",
    "a large memo": b"j\xff\xff\xff\x7f",
    "text": b"X\4\0\0\0\xff\xfe\xfd\xfc",
    "a tuple of too many": b"N\x87",
    "beyond": tensor(offset=1),
    "beyond by its strides": tensor((2, 2), (1, 3)),
    "beyond by far": tensor((2**62, 2**62), (2**62, 1)),
    "many of one element": tensor((2**40, 2**40), (0, 0)),
    "a negative size": tensor((-1,)),
    "a negative stride": tensor((2,), (-1,), 3),
    "a negative offset": tensor((1,), (1,), -1),
    "an offset of 2^63": tensor((1,), (1,), 2**63),
    "too few strides": tensor((2, 2), (1,)),
    "too many dims": tensor((1,) * 65, (1,) * 65),
    "empty and huge": tensor((0, 2**62, 2**62), (0, 0, 0)),
    "a grad of None": tensor(grad=b"N"),
    "a tensor of a tensor": tensor(source=tensor()),
    "a tensor of None": tensor(source=b"N"),
    "a tensor of too few": REBUILD + storage() + b"\x85R",
    "a storage of more": storage(count=5),
    "a storage of fewer": storage(count=3),
    "a storage of less than none": storage(count=-1),
    "a storage of nothing that is there": storage(count=0),
    "another's storage": storage(kind=b"DoubleStorage"),
    "a storage of two dtypes": storage() + storage(kind=b"IntStorage") + b"\x86",
    "a storage of a dtype": storage(kind=b"float32"),
    "a storage elsewhere": storage(key=b"../data.pkl"),
    "a module": storage(what=b"module"),
    "an id of a number": b"K\1Q",
    "an id of None": b"NQ",
    "a size of text": b"ctorch\nSize\n(X\1\0\0\0a\x85tR",
    "a size of less than none": b"ctorch\nSize\n(J\xff\xff\xff\xff\x85tR",
    "a device of lists": b"ctorch\ndevice\n(]tR",
    "a device of nothing": b"ctorch\ndevice\n)R",
    "a layout of nothing": b"ctorch.serialization\n_get_layout\n)R",
    "a parameter of None": b"ctorch._utils\n_rebuild_parameter\n(N\x88" + EMPTY + b"tR",
    "pairs of three": ODICT + b"(](K\1K\2K\3tatR",
    "no pairs": ODICT + b"(K\1tR",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles(name):
    def ours():
        found = {**vars(_oneflow_lite), **vars(_pytorch_file), **vars(collections.OrderedDict)}
        return found, [getattr(x, "__dict__", None) and dict(vars(x)) for x in found.values()]

    before = ours()
    with pytest.raises(
        ValueError, match=r"^load\(\): the file was written by PyTorch, but "
    ) as error:
        read(HOSTILE[name])
    assert len(str(error.value)) < 400
    assert ours() == before


def test_integers_with_a_gradient():
    source = storage(b"1", 2, b"LongStorage")
    assert read(tensor((2,), source=source), **{"1": bytes(16)}).tolist() == [0, 0]
    with pytest.raises(ValueError, match="int64 that requires a gradient"):
        read(tensor((2,), grad=b"\x88", source=source), **{"1": bytes(16)})


def test_what_is_read_beside_dicts_of_tensors():
    assert read(tensor((2, 2), (0, 1), 1)).tolist() == [[1, 2], [1, 2]]  # expanded
    assert read(tensor((0, 2**40), (1, 1), 9)).shape == (0, 2**40)
    assert read(storage(kind=b"BoolStorage", key=b"1", count=3) + b"0N", **{"1": b"\0\1\2"}) is None
    bools = tensor((3,), source=storage(kind=b"BoolStorage", key=b"1", count=3))
    assert read(bools, **{"1": b"\0\1\2"}).tolist() == [False, True, True]
    assert read(b"]q\1h\1h\1\x86") == ([], [])
    state = read(EMPTY + b"}X\x09\0\0\0_metadata" + EMPTY + b"sb")
    assert state == {} and state._metadata == {}
    assert read(b"ctorch\ndevice\n(X\4\0\0\0cudaK\1tR") == "cuda:1"
    assert read(b"ctorch\nSize\n(K\1K\2\x86tR") == (1, 2)
    assert read(b"ctorch\nbfloat16\n") is flow.bfloat16
    assert read(b"\x8a\x0b" + b"\xff" * 10 + b"\x7f") == 2**87 - 1
    loop = read(b"]q\0h\0a")
    assert loop[0] is loop


@pytest.mark.parametrize("opcodes", [(b"]", b"a"), (b")", b"\x85"), (EMPTY + b"K\1", b"s"),
                                     (EMPTY + b"}X\1\0\0\0a", b"sb")], ids=range(4))  # fmt: skip
def test_what_nests_deep_is_read_and_freed(opcodes):
    start, end = opcodes
    value = read(start * 20_000 + b"N" + end * 20_000)
    assert type(value) in (list, tuple, collections.OrderedDict)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(torch, protocol):
    class Own(Pickler):
        def __init__(self, file, protocol):
            super().__init__(file, protocol=protocol)

    value = {"x": [1, -5, 300, 70_000, 2**40, -(2**90), 1.5, None, True, False, "a" * 300, "é",
                   (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}, {1: 2},
                   "x" * 70_000]}  # fmt: skip
    value["again"] = value["x"]
    if protocol > 2:  # before, bytes were a call
        value["bytes"] = [b"a", b"b" * 300]
    stream, pickled = io.BytesIO(), io.BytesIO()
    Own(pickled, protocol).dump(value)
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("m/data.pkl", pickled.getvalue())
    got = flow.load(stream)
    assert got == value and got["again"] is got["x"]


def test_entries_that_are_compressed_are_refused():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data.pkl", b"\x80\x02N.")
    with pytest.raises(ValueError, match="m/data.pkl' is compressed"):
        flow.load(stream)


# ---- A pickle keeps a part once and names it in two bytes: what that makes is counted.


def text(value):
    return b"X" + len(value).to_bytes(4, "little") + value


DEVICE, SIZE = b"ctorch\ndevice\n", b"ctorch\nSize\n"
PAIRS = b"".join(b"J" + i.to_bytes(4, "little") + b"N\x86" for i in range(5000))
NAMES = b"".join(text(b"a%d" % i) + b"N" for i in range(5000))
SIXTY = b"(" + b"K\1" * 60 + b"t"
REPEATED = {
    "the name of a device": (DEVICE + b"q\0" + text(b"x" * 500_000) + b"K\0\x86q\2](",
                             b"h\0h\2R", 1500, b"e"),
    "pairs of an OrderedDict": (ODICT + b"q\0]q\2(" + PAIRS + b"e\x85q\3](", b"h\0h\3R", 320, b"e"),
    "a size": (SIZE + b"q\0" + SIXTY + b"\x85q\1](", b"h\0h\1R", 20_000, b"e"),
    "a shape": (REBUILD + b"q\0(" + storage() + b"K\0(" + b"K\0" * 64 + b"tq\1h\1\x89N"
                b"tq\2](", b"h\0h\2R", 20_000, b"e"),
    "attributes": (ODICT + b"q\0}(" + NAMES + b"uq\1](", b"h\0)Rh\1b", 320, b"e"),
    "a long attribute": (EMPTY + b"}" + text(b"a" * 300_000) + b"Nsq\1b", b"h\1b", 1000, b""),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_what_calls_make_of_one_part_is_bounded(name):
    start, use, times, end = REPEATED[name]
    assert read(start + use + end) is not None
    with pytest.raises(ValueError, match="was written by PyTorch, but .* the same parts again"):
        read(start + use * times + end)


def test_what_many_calls_make_of_their_own_is_read():
    """Of as many OrderedDicts, devices, sizes and views as a large checkpoint has."""
    pairs = b"(]" + text(b"weight") + b"K\1\x86a" + text(b"bias") + b"K\2\x86atR"
    assert read(b"](" + (ODICT + pairs) * 20_000 + b"e") == [{"weight": 1, "bias": 2}] * 20_000
    short = ODICT + b"q\0" + text(b"_metadata") + b"q\1" + text(b"version") + b"q\2"
    states = b"(h\0)R(h\2K\1u}h\1h\0)Rsblq\3" * 20_000
    assert len(read(short + b"000](" + states + b"e")) == 20_000
    device = DEVICE + b"q\0" + text(b"cuda") + b"q\1" + b"00]("
    assert read(device + b"h\0h\1K\7\x86R" * 50_000 + b"e") == ["cuda:7"] * 50_000
    sizes = SIZE + b"q\0" + b"0](" + b"h\0(K\1K\2K\3K\4t\x85R" * 50_000 + b"e"
    assert read(sizes) == [(1, 2, 3, 4)] * 50_000
    views = REBUILD + b"q\0(" + storage() + b"K\0(K\1K\2K\2t(K\4K\2K\1t\x89Ntq\2](" \
        + b"h\0h\2R" * 5000 + b"e"  # fmt: skip
    assert [x.shape for x in read(views)] == [(1, 2, 2)] * 5000


def test_a_checkpoint_of_thousands_of_tensors(torch):
    """Each has an OrderedDict of hooks; the optimizer's state shares its keys and numbers."""
    place = Rebuilt(torch.device, "cuda", 0)
    names = [f"transformer.layers.{i}.attention.weight" for i in range(3000)]
    model = collections.OrderedDict(
        (name, view(torch, torch.FloatStorage, "0", 4, 0, (2, 2), (2, 1))) for name in names
    )
    state = {i: {"step": 1, "exp_avg": model[n], "place": place} for i, n in enumerate(names)}
    raw = {"0": np.arange(4, dtype="<f4").tobytes()}
    got = flow.load(written({"model": model, "state": state, "names": names}, raw))
    assert list(got["model"]) == names and got["state"][2999]["place"] == "cuda:0"
    assert got["state"][0]["exp_avg"].tolist() == [[0, 1], [2, 3]]


REPEATED_KEYS = {
    "a long tuple": (b"}((" + b"N" * 200_000 + b"tq\0N", b"h\0N", 80),
    "a tuple of long text": (b"}(" + text(b"x" * 500_000) + b"\x85q\0N", b"h\0N", 800),
    "another text that is the same": (b"}(" + text(b"x" * 500_000) + b"N" + text(b"x" * 500_000)
                                      + b"q\0N", b"h\0N", 800),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED_KEYS)
def test_what_it_takes_to_find_one_key_is_bounded(name):
    start, use, times = REPEATED_KEYS[name]
    assert len(read(start + use + b"u")) == 1
    with pytest.raises(ValueError, match="was written by PyTorch, but .* the same parts again"):
        read(start + use * times + b"u")


def test_tuples_of_one_hash_are_few():
    """-1 and -2 have the same hash, and so have all tuples of them."""
    minus = [b"J" + n.to_bytes(4, "little", signed=True) for n in (-1, -2)]

    def keys(count):
        return b"}(" + b"".join(
            b"(" + b"".join(minus[i >> bit & 1] for bit in range(14)) + b"tN" for i in range(count)
        ) + b"u"  # fmt: skip

    assert len(read(keys(16))) == 16
    with pytest.raises(ValueError, match="the same parts again"):
        read(keys(1 << 14))


def test_keys_that_many_dicts_share_are_read():
    start = b"(" + text(b"exp_avg_sq" * 10) + b"q\0" + b"K\1J\xff\xff\xff\xffN\x87q\1" \
        b"(J\xfe\xff\xff\xffK\2K\3K\4tq\2" + b"1]("  # fmt: skip
    dicts = b"}(h\0K\1h\1K\2h\2K\3u" * 50_000
    one = {"exp_avg_sq" * 10: 1, (1, -1, None): 2, (-2, 2, 3, 4): 3}
    assert read(start + dicts + b"e") == [one] * 50_000
    keys = b"".join(b"M" + i.to_bytes(2, "little") + b"J\xff\xff\xff\xff\x86N" for i in range(9999))
    assert len(read(b"}(" + keys + b"u")) == 9999
