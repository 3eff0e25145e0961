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


class Storage:
    def __init__(self, kind, key, count):
        self.pid = ("storage", kind, key, "cpu", count)


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
        (root, ["FloatStorage", "BFloat16Storage", "LongStorage", "ComplexFloatStorage", "Size"]),
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
