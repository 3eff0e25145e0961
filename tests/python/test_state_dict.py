# SPDX-License-Identifier: Apache-2.0
"""State dicts of modules and optimizers, and the files they are saved to."""

import collections
import enum
import io
import warnings
import zipfile

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
nn = flow.nn


def model(seed=0):
    flow.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, flow.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a.float().numpy(), b.float().numpy())
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b


def test_state_is_by_name_and_shares_memory():
    m = model()
    m.register_buffer("steps", flow.zeros(1))
    m.register_buffer("scratch", flow.zeros(1), persistent=False)
    state = m.state_dict()
    assert list(state) == ["steps", "0.weight", "0.bias", "2.weight", "2.bias"]
    assert not any(t.requires_grad for t in state.values())
    state["0.bias"].fill_(7)
    assert (m[0].bias.detach().numpy() == 7).all()


def test_loading_copies():
    a, b = model(1), model(2)
    result = a.load_state_dict(b.state_dict())
    assert result.missing_keys == [] and result.unexpected_keys == []
    assert_same(a.state_dict(), b.state_dict())
    b[0].weight.detach().fill_(0)
    assert a[0].weight.detach().numpy().any()
    assert a[0].weight.requires_grad and a[0].weight.is_leaf


def test_loading_takes_arrays_and_other_dtypes():
    a = model()
    state = {name: t.double().numpy() + 1 for name, t in a.state_dict().items()}
    a.load_state_dict(state)
    assert a[0].weight.dtype == flow.float32
    np.testing.assert_allclose(a[0].weight.detach().numpy(), state["0.weight"], rtol=1e-6)


def test_arrays_of_any_layout_are_taken_and_a_bad_one_leaves_the_module_alone():
    a = model()
    big = np.arange(12.0).reshape(4, 3).astype(">f4")
    state = dict(a.state_dict()) | {"0.weight": big[::-1, ::-1], "0.bias": np.broadcast_to(2.0, 4)}
    a.load_state_dict(state)
    assert a[0].weight.tolist() == np.arange(11.0, -1, -1).reshape(4, 3).tolist()
    assert a[0].bias.tolist() == [2, 2, 2, 2]
    before = {name: t.numpy().copy() for name, t in a.state_dict().items()}
    state = {name: flow.zeros_like(t) for name, t in a.state_dict().items()}
    state["2.bias"] = np.zeros(2, complex)
    for assign in (False, True):
        with pytest.raises(flow.DTypeError, match="c16"):
            a.load_state_dict(state, assign=assign)
        assert all((t.numpy() == before[name]).all() for name, t in a.state_dict().items())
    state["2.bias"] = flow.zeros(2, dtype=flow.int64)
    with pytest.raises(RuntimeError, match="floating"):
        a.load_state_dict(state, assign=True)
    assert all((t.numpy() == before[name]).all() for name, t in a.state_dict().items())


def test_names_that_are_no_text_are_unexpected_before_hooks_too():
    a = model()
    a[0]._register_load_state_dict_pre_hook(lambda *_: None)
    with pytest.raises(flow.ShapeError, match='Unexpected key.*"3"'):
        a.load_state_dict(a.state_dict() | {3: flow.ones(1)})


def test_errors_list_every_key_and_leave_the_module_alone():
    m = model()
    before = {name: t.numpy().copy() for name, t in m.state_dict().items()}
    state = {name: t.clone().fill_(9) for name, t in m.state_dict().items()}
    state["extra"] = state.pop("0.bias")
    state["2.weight"] = flow.zeros(5, 5)
    with pytest.raises(ValueError) as error:
        m.load_state_dict(state)
    for part in ("Sequential", 'Missing key(s) in state_dict: "0.bias"',
                 'Unexpected key(s) in state_dict: "extra"',
                 "size mismatch for 2.weight: shape [5, 5] is given, [2, 4] is "):  # fmt: skip
        assert part in str(error.value)
    for name, tensor in m.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    with pytest.raises(ValueError, match="2.weight"):  # a shape is wrong, strict or not
        m.load_state_dict(state, strict=False)
    state.pop("2.weight")
    result = m.load_state_dict(state, strict=False)
    assert sorted(result.missing_keys) == ["0.bias", "2.weight"]
    assert result.unexpected_keys == ["extra"]
    assert (m[0].weight.detach().numpy() == 9).all()
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, not a list"):
        m.load_state_dict(list(before.values()))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32",
                                   "int16", "int8", "uint8", "bool"])  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_dtype_survives_a_file(tmp_path, dtype, shape):
    x = flow.from_numpy(np.arange(np.prod(shape, dtype=int)).reshape(shape)).to(
        getattr(flow, dtype)
    )
    flow.save({"x": x}, tmp_path / "x.npz")
    assert_same(flow.load(tmp_path / "x.npz"), {"x": x})


def test_nested_values_survive():
    value = {"a": [1, 2.5, "text", None, True, (flow.ones(2), {"b": flow.zeros(1)})],
             3: {"x.y": flow.ones(1), "x": {"y": flow.zeros(1)}}}  # fmt: skip
    file = io.BytesIO()
    flow.save(value, file)
    file.seek(0)
    assert_same(flow.load(file), value)


def test_requires_grad_and_views_survive(tmp_path):
    x = flow.arange(6, dtype=flow.float32).reshape(2, 3)
    flow.save([x.t(), nn.Parameter(x)], tmp_path / "x")
    transposed, parameter = flow.load(tmp_path / "x")
    np.testing.assert_array_equal(transposed.numpy(), x.numpy().T)
    assert parameter.requires_grad and not transposed.requires_grad


def test_numpy_reads_the_file(tmp_path):
    m = model()
    flow.save(m.state_dict(), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        np.testing.assert_array_equal(file["0.weight"], m[0].weight.detach().numpy())


CYCLE: list = [1]
CYCLE.append({"again": CYCLE})
DEEP: list = []
for _ in range(200):
    DEEP = [DEEP]


class Measured(np.ndarray):
    pass


class Slotted(np.ndarray):
    __slots__ = ("unit",)


def measured():
    array = np.zeros(2).view(Measured)
    array.unit = "m"
    return array


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ({"a": [1, object()]}, TypeError, r"save\(\): a.1 is a object; saved are dicts"),
        ({"a": 1j}, TypeError, "a is a complex"),
        ({"a": np.array(["x"])}, TypeError, "a is an array of <U1; saved are arrays of numbers"),
        ({"a": np.array([print])}, TypeError, "a is an array of object"),
        ({"a": [np.ma.array([1, 2], mask=[0, 1])]}, TypeError, "a.0 is a MaskedArray, which"),
        ({"a": np.ma.array([1, 2])}, TypeError, "a is a MaskedArray, which holds more"),
        ({"a": np.zeros(2).view(Slotted)}, TypeError, "a is a Slotted, which holds more"),
        ({"a": measured()}, TypeError, "a is a Measured, which holds more than its"),
        ({1.5: 2}, TypeError, "the object has the key 1.5; keys are str or int"),
        ({"a": {True: 2}}, TypeError, "a has the key True; keys are str or int"),
        ({2**63: 2}, TypeError, "keys are str or int of 64 bits"),
        ({"a": {"x\0y": 2}}, ValueError, r"a has 'x\\x00y', with a NUL"),
        ({"a": {"\ud800": 2}}, ValueError, "a has .*, with a NUL or half of a surrogate pair"),
        ({"a": ["\ud83d", "\ude00"]}, ValueError, "a.0 has .*, with a NUL or half of a surrogate"),
        ({"a": "x\0"}, ValueError, "a has"),
        ({"a": CYCLE}, ValueError, "a.1.again contains itself"),
        (DEEP, ValueError, "lies in more than 128 dicts, lists and tuples"),
        ({"a": flow.ones(2, device="meta")}, ValueError, "a is a meta tensor, which has no data"),
        (model(), TypeError, r"the object is a Sequential, .*; save its state_dict\(\)"),
        ([flow.optim.SGD([flow.ones(1)], lr=1)], TypeError, r"0 is a SGD, .* its state_dict\(\)"),
    ],
    ids=range(20),
)  # fmt: skip
def test_what_cannot_be_saved_is_named_and_leaves_the_file_alone(tmp_path, value, error, text):
    """Also where a tensor before it could have been written: nothing is begun."""
    stream = io.BytesIO()
    (tmp_path / "x").write_bytes(b"as it was")
    for file in (tmp_path / "x", stream):
        with pytest.raises(error, match=text):
            flow.save([flow.ones(3), value] if text[:3] == "0 i" else value, file)
        with pytest.raises(error):
            flow.save([flow.ones(3), value], file)
    assert stream.getvalue() == b"" and (tmp_path / "x").read_bytes() == b"as it was"
    assert len(list(tmp_path.iterdir())) == 1


def test_arrays_that_are_their_elements_are_saved_as_such(tmp_path):
    on_disk = np.memmap(tmp_path / "raw", dtype="<i4", mode="w+", shape=(2, 3))
    on_disk[:] = np.arange(6).reshape(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # of matrices
        matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    plain = np.arange(3).view(Measured)
    saved = {"disk": on_disk, "matrix": matrix, "turned": matrix.T, "plain": plain}
    flow.save(saved, tmp_path / "x")
    got = flow.load(tmp_path / "x")
    for name, array in saved.items():
        assert type(got[name]) is np.ndarray and got[name].dtype == array.dtype
        np.testing.assert_array_equal(got[name], np.asarray(array))


NUMBERS = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 0.1, 1e308,
           2**53 + 1.0, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**70), 3**20000, -(3**20000), True,
           False]  # fmt: skip


@pytest.mark.parametrize("n", NUMBERS, ids=range(len(NUMBERS)))
def test_numbers_come_back_to_the_bit(tmp_path, n):
    flow.save([n, {"n": n}], tmp_path / "x")
    for got in (flow.load(tmp_path / "x")[0], flow.load(tmp_path / "x")[1]["n"]):
        assert type(got) is type(n)
        if isinstance(n, float):
            assert np.float64(got).tobytes() == np.float64(n).tobytes()
        else:
            assert got == n


class Colour(enum.IntEnum):
    RED = 3


def test_subclasses_come_back_as_what_they_extend(tmp_path):
    pair = collections.namedtuple("pair", "a b")(1, np.float64(2.5))
    value = [
        Colour.RED,
        np.str_("a"),
        np.int8(-3),
        np.float32(0.1),
        np.bool_(True),
        np.uint64(2**63),
    ]
    flow.save(
        [value, pair, collections.OrderedDict(a=1), nn.Parameter(flow.ones(1))], tmp_path / "x"
    )
    got = flow.load(tmp_path / "x")
    assert got[0] == [3, "a", -3, float(np.float32(0.1)), True, 2**63]
    assert [type(x) for x in got[0]] == [int, str, int, float, bool, int]
    assert got[1] == (1, 2.5) and type(got[1]) is tuple and type(got[2]) is dict
    assert type(got[3]) is flow.Tensor and got[3].requires_grad


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F",
                                   "D", ">f4", ">i8"])  # fmt: skip
def test_arrays_come_back_as_arrays(tmp_path, dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    given = {"a": a, "t": a.T, "s": a[:, ::-2], "0": a[0, 0:1].reshape(()), "e": a[:0]}
    flow.save(given, tmp_path / "x.npz")
    flow.save(a, tmp_path / "one")
    got = flow.load(tmp_path / "x.npz")
    for name, x in given.items():
        assert type(got[name]) is np.ndarray and got[name].dtype == x.dtype
        np.testing.assert_array_equal(got[name], x)
    np.testing.assert_array_equal(flow.load(tmp_path / "one"), a)
    with np.load(tmp_path / "x.npz") as file:
        np.testing.assert_array_equal(file["t"], a.T)


def test_names_of_entries(tmp_path):
    """Any key has one, that NumPy and unzip can do with."""
    keys = ["a/b", "a_b", "..", "../../x", "é" * 500, "x" * 70_000, "", "structure.json",
            "data.pkl", "a.npy", 1, "1", -1, "a\\b", "C:", " ", "\n"]  # fmt: skip
    given = {key: flow.tensor([i]) for i, key in enumerate(keys)}
    flow.save(given, tmp_path / "x.npz")
    assert_same(flow.load(tmp_path / "x.npz"), given)
    with np.load(tmp_path / "x.npz") as file:
        found = sorted(file[name].item() for name in file.files if name != "structure.json")
    assert found == list(range(len(keys)))
    names = zipfile.ZipFile(tmp_path / "x.npz").namelist()
    assert all("/" not in name and len(name.encode()) < 220 for name in names)


@pytest.mark.parametrize("content", [b"", b"no zip at all"])
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match="was not written by oneflow_lite.save"):
        flow.load(tmp_path / "x")


def test_pickles_are_not_run(tmp_path):
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        array = io.BytesIO()
        np.save(array, np.array([print], dtype=object), allow_pickle=True)
        archive.writestr("x.npy", array.getvalue())
        archive.writestr("structure.json", '{"oneflow_lite": 1, "value": {"tensor": "x", '
                         '"dtype": "float32", "requires_grad": false}}')  # fmt: skip
    with pytest.raises(ValueError, match="the header of an array"):
        flow.load(tmp_path / "x")


def test_optimizer_state_goes_on_where_it_was(tmp_path):
    def steps(m, optimizer, n):
        for _ in range(n):
            optimizer.zero_grad()
            m(flow.ones(2, 3)).sum().backward()
            optimizer.step()

    a = model(5)
    sgd = flow.optim.SGD(a.parameters(), lr=0.1, momentum=0.9)
    steps(a, sgd, 3)
    flow.save({"model": a.state_dict(), "optimizer": sgd.state_dict()}, tmp_path / "x")
    steps(a, sgd, 3)

    b = model(6)
    other = flow.optim.SGD(b.parameters(), lr=0.5)
    saved = flow.load(tmp_path / "x")
    b.load_state_dict(saved["model"])
    other.load_state_dict(saved["optimizer"])
    assert other.param_groups[0]["lr"] == 0.1
    steps(b, other, 3)
    assert_same(a.state_dict(), b.state_dict())
    with pytest.raises(ValueError, match="groups"):
        flow.optim.SGD([b[0].weight], lr=1).load_state_dict(saved["optimizer"])


def test_hooks_around_state_dict():
    net = nn.Sequential(nn.Linear(2, 2), model())
    calls = []
    net[1].register_state_dict_pre_hook(lambda m, prefix, keep: calls.append((m, prefix, keep)))

    def rename(module, state, prefix, metadata):
        state[prefix + "w"] = state.pop(prefix + "0.weight")

    handle = net[1].register_state_dict_post_hook(rename)
    state = net.state_dict()
    assert calls == [(net[1], "1.", False)] and "1.w" in state and "1.0.weight" not in state
    handle.remove()
    assert "1.0.weight" in net.state_dict()
    given = {"more": 1}
    assert net.state_dict(destination=given) is given and len(given) == 7
    net.register_state_dict_post_hook(lambda *_: {})
    with pytest.raises(RuntimeError, match="post-hook must return None"):
        net.state_dict()


def test_a_hook_renames_what_an_older_state_has():
    net, source = nn.Sequential(model(), nn.LayerNorm(2)), model(1)
    seen = []

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        seen.append((module, prefix, strict, missing, unexpected, errors))
        assert all(name.startswith(prefix) for name in state)
        for name in list(state):
            if name.startswith(prefix + "old."):
                state[name.replace("old.", "")] = state.pop(name)

    net[0].register_load_state_dict_pre_hook(rename)
    old = {"0.old." + name: value for name, value in source.state_dict().items()}
    old |= {"1.weight": flow.ones(2), "1.bias": flow.zeros(2)}
    net.load_state_dict(old)
    assert seen == [(net[0], "0.", True, [], [], [])] and "0.old.0.weight" in old
    assert_same(net[0].state_dict(), source.state_dict())

    def complain(state, prefix, metadata, strict, missing, unexpected, errors):
        missing.append("nothing")
        errors.append("too old")

    handle = net._register_load_state_dict_pre_hook(complain)
    with pytest.raises(flow.ShapeError, match="too old"):
        net.load_state_dict(old)
    handle.remove()


@pytest.mark.parametrize("assign", [False, True])
def test_hooks_after_loading_have_the_last_word(assign):
    net = nn.Sequential(model())
    state = net.state_dict()
    state["more"] = state.pop("0.0.bias")

    def forgive(module, result):
        assert module is net[0]
        result.missing_keys.remove("0.0.bias")

    net[0].register_load_state_dict_post_hook(forgive)
    with pytest.raises(flow.ShapeError, match="more") as raised:
        net.load_state_dict(state, assign=assign)
    assert "Missing" not in str(raised.value)
    result = net.load_state_dict(state, strict=False, assign=assign)
    assert result.missing_keys == [] and result.unexpected_keys == ["more"]
    del state["more"]
    net.load_state_dict(state, assign=assign)


def test_the_state_of_an_optimizer_is_copied_whole():
    p = flow.ones(2, requires_grad=True)
    first, second = (flow.optim.SGD([p], lr=0.1) for _ in range(2))
    first.state[p] = {"sums": {0.9: flow.ones(2)}, "steps": [1, [2]]}
    first.param_groups[0]["history"] = [None]
    second.load_state_dict(first.state_dict())
    first.state[p]["sums"][0.9].add_(1)
    first.state[p]["steps"][1].append(3)
    first.param_groups[0]["history"].append(1)
    assert second.state[flow.ones(1)] == {}
    assert second.state[p]["sums"][0.9].tolist() == [1, 1]
    assert second.state[p]["steps"] == [1, [2]] and second.param_groups[0]["history"] == [None]
