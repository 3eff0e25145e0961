# SPDX-License-Identifier: Apache-2.0
"""Values that the attacks on files save, and whether two of them are the same to the bit."""

import collections
import io
import math
import pickle
import sys
import types
import zipfile

import numpy as np

import oneflow_lite as flow

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64"]  # fmt: skip


def plain(x):
    """A tensor or an array as what can be compared."""
    if isinstance(x, np.ndarray):
        return "array", x.dtype.str, x.shape, x.tobytes()
    values = x.detach()
    values = (values.float() if values.dtype is flow.bfloat16 else values).numpy()
    return x.dtype.name, x.shape, x.requires_grad, values.tobytes()


def digest(value, depth=0):
    """A value that is equal exactly where the given ones are, to the bit."""
    if depth > 50:
        return "deep"
    if isinstance(value, flow.Tensor | np.ndarray):
        return plain(value)
    if isinstance(value, dict):
        return "dict", [(repr(key), digest(item, depth + 1)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [digest(item, depth + 1) for item in value]
    return type(value).__name__, repr(value)


def sample():
    """Every dtype and every kind of value, small."""
    numbers = np.arange(6).reshape(2, 3)
    return {
        "tensors": {d: flow.from_numpy(numbers).to(getattr(flow, d)) for d in DTYPES},
        "turned": flow.arange(6).reshape(2, 3).t(), "empty": flow.zeros(0, 3),
        "scalar": flow.tensor(2.5), "parameter": flow.tensor([0.5], requires_grad=True),
        "é": [1, -2.5, "text", None, True, (2**70, math.inf, -0.0), {3: [], -1: ()}],
        "array": np.arange(4, dtype=np.uint16),
    }  # fmt: skip


def ours():
    stream = io.BytesIO()
    flow.save(sample(), stream)
    return stream.getvalue()


class _Storage:
    def __init__(self, kind, key, count):
        self.pid = ("storage", kind, key, "cpu", count)


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.pid if isinstance(obj, _Storage) else None


class _Called:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def _fake_torch():
    """What pickle must find in order to write PyTorch's names."""
    root, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for module, names in (
        (root, ["FloatStorage", "BFloat16Storage", "LongStorage", "BoolStorage", "Size", "device"]),
        (utils, ["_rebuild_tensor_v2", "_rebuild_parameter"]),
    ):
        for name in names:
            setattr(module, name, type(name, (), {"__module__": module.__name__}))
        sys.modules[module.__name__] = module
    return root, utils


def pytorchs(protocol=2):
    """A file as torch.save writes it; no PyTorch is needed."""
    torch, utils = _fake_torch()
    raw = {"0": np.arange(12, dtype="<f4").tobytes(), "1": bytes([192, 63, 0, 192]),
           "2": np.arange(2, dtype="<i8").tobytes(), "3": bytes([0, 1, 1]), "4": b""}  # fmt: skip

    def tensor(kind, key, count, offset, size, stride):
        storage = _Storage(getattr(torch, kind), key, count)
        hooks = collections.OrderedDict()
        return _Called(utils._rebuild_tensor_v2, storage, offset, size, stride, False, hooks)

    whole = tensor("FloatStorage", "0", 12, 0, (3, 4), (4, 1))
    state = collections.OrderedDict(
        w=whole, t=tensor("FloatStorage", "0", 12, 4, (4, 2), (1, 4)),
        b=tensor("BFloat16Storage", "1", 2, 0, (2,), (1,)),
        n=tensor("LongStorage", "2", 2, 1, (), ()), m=tensor("BoolStorage", "3", 3, 0, (3,), (1,)),
        e=tensor("FloatStorage", "4", 0, 0, (0, 3), (3, 1)),
        p=_Called(utils._rebuild_parameter, whole, True, collections.OrderedDict()),
    )  # fmt: skip
    state._metadata = collections.OrderedDict({"": {"version": 1}})
    value = {"state": state, "epoch": 3, "lr": 0.5, "names": ["a", None, (1.5, True, 2**70), "é"],
             "size": _Called(torch.Size, (1, 2)),
             "device": _Called(torch.device, "cpu")}  # fmt: skip
    pickled, stream = io.BytesIO(), io.BytesIO()
    _Pickler(pickled, protocol).dump(value)
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("model/data.pkl", pickled.getvalue())
        archive.writestr("model/byteorder", b"little")
        for key, data in raw.items():
            archive.writestr(f"model/data/{key}", data)
        archive.writestr("model/version", b"3\n")
    for name in ("torch", "torch._utils"):
        del sys.modules[name]
    return stream.getvalue()
