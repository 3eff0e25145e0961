# SPDX-License-Identifier: Apache-2.0
"""State dicts of modules and optimizers, and the files they are saved to."""

import io
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


def test_what_cannot_be_saved_is_named_and_leaves_no_file(tmp_path):
    with pytest.raises(TypeError, match=r"save\(\): a.1 is a object"):
        flow.save({"a": [1, object()]}, tmp_path / "x")
    with pytest.raises(TypeError, match="keys are str or int"):
        flow.save({1.5: 2}, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


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
    with pytest.raises(ValueError, match="allow_pickle"):
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
