# SPDX-License-Identifier: Apache-2.0
"""from_dlpack of capsules that lie about their data: an error, and the deleter stays their own."""

import ctypes

import pytest

flow = pytest.importorskip("oneflow_lite")

CPU, CUDA = 1, 2
FLOAT = 2


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("array", Array), ("context", ctypes.c_void_p), ("deleter", Deleter)]


def numbers(*values):
    return (ctypes.c_int64 * len(values))(*values)


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Forged:
    """A capsule of six floats, with what is given put in place of the truth."""

    def __init__(self, name=b"dltensor", shape=(2, 3), strides=None, **lies):
        self.memory = (ctypes.c_float * 6)(*range(6))
        self.freed = 0
        self.managed = Managed()
        array = self.managed.array
        array.data = ctypes.addressof(self.memory)
        array.device_type, array.device_id = CPU, 0
        array.code, array.bits, array.lanes = FLOAT, 32, 1
        array.ndim = 0 if shape is None else len(shape)
        self.lists = [v if v is None else numbers(*v) for v in (shape, strides)]
        array.shape, array.strides = (
            ctypes.cast(v, ctypes.POINTER(ctypes.c_int64)) for v in self.lists
        )
        for field, value in lies.items():
            setattr(array, field, value)
        self.managed.deleter = self.deleter = Deleter(self.free)
        self.name = name
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)

    def free(self, _):
        self.freed += 1


def test_an_honest_one_is_taken():
    forged = Forged()
    t = flow.from_dlpack(forged.capsule)
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]] and forged.freed == 0
    del t
    assert forged.freed == 1
    assert flow.from_dlpack(Forged(strides=(1, 2)).capsule).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert flow.from_dlpack(Forged(shape=(0, 3), data=None).capsule).shape == (0, 3)
    assert flow.from_dlpack(Forged(shape=()).capsule).item() == 0


MOST = 2**63 - 1
LIES = {
    "fewer dims than none": ({"ndim": -1}, "-1 dims; allowed are 0 to 64"),
    "too many dims": ({"ndim": 2**31 - 1}, "allowed are 0 to 64"),
    "65 dims": ({"shape": (1,) * 65}, "65 dims; allowed are 0 to 64"),
    "dims without a shape": ({"shape": None, "ndim": 2}, "2 dims but no shape"),
    "a negative size": ({"shape": (2, -3)}, "dim 1 has size -3"),
    "a size beyond memory": ({"shape": (2, MOST)}, "further than memory"),
    "sizes beyond memory": ({"shape": (2**31, 2**31, 2**31)}, "further than memory"),
    "strides beyond memory": ({"strides": (MOST, 1)}, "further than memory"),
    "strides that add up": ({"shape": (2, 2), "strides": (MOST // 16, MOST // 16)}, "further than"),
    "a negative stride": ({"strides": (-3, 1)}, "negative stride"),
    "no address": ({"data": None}, "no address"),
    "an offset beyond memory": ({"byte_offset": 2**63}, "bytes behind its address"),
    "an odd offset": ({"byte_offset": 2}, "not aligned"),
    "pairs of elements": ({"lanes": 2}, "2 lanes"),
    "no lanes": ({"lanes": 0}, "0 lanes"),
    "an unknown type": ({"code": 77}, "type code 77"),
    "odd bits": ({"bits": 31}, "31 bits"),
    "an unknown device": ({"device_type": 99}, "device type 99"),
    "a negative device": ({"device_type": CUDA, "device_id": -1}, "."),
    "a device beyond count": ({"device_type": CUDA, "device_id": 2**16}, "."),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused(lie):
    how, message = LIES[lie]
    forged = Forged(**how)
    with pytest.raises((ValueError, RuntimeError, flow.DTypeError), match=message) as error:
        flow.from_dlpack(forged.capsule)
    assert "from_dlpack()" in str(error.value) or lie.endswith(("device", "count"))
    assert forged.freed == 0  # the capsule is still its maker's
    with pytest.raises((ValueError, RuntimeError, flow.DTypeError)):  # and may be shown again
        flow.from_dlpack(forged.capsule)


@pytest.mark.parametrize("name", [b"used_dltensor", b"dltensors", b"", b"tensor"])
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match="holds no DLPack tensor"):
        flow.from_dlpack(Forged(name=name).capsule)


def test_a_capsule_is_taken_once():
    forged = Forged()
    t = flow.from_dlpack(forged.capsule)
    with pytest.raises(ValueError, match="was used already"):
        flow.from_dlpack(forged.capsule)
    assert t.sum().item() == 15 and forged.freed == 0
