# SPDX-License-Identifier: Apache-2.0
"""Tensors that shared memory when they were saved share it when they are loaded."""

import json
import zipfile

import numpy as np
import pytest
from numerics import flow, host


def through(value, tmp_path, **options):
    flow.save(value, tmp_path / "x")
    return flow.load(tmp_path / "x", **options)


def share(a, b):
    """Whether a change of the one is a change of the other, where they begin."""
    before = b.flatten()[0].item()
    with flow.no_grad():
        a.view(-1)[0] += 1
        changed = b.flatten()[0].item() != before
        a.view(-1)[0] -= 1
    return changed


def test_a_tensor_that_is_there_twice_is_one(tmp_path):
    x = flow.randn(3, 4).t().requires_grad_()
    found = through({"a": x, "b": [x, 1], "c": flow.ones(2)}, tmp_path)
    assert found["b"][0] is found["a"] and found["a"].requires_grad
    np.testing.assert_array_equal(host(found["a"]), host(x))
    with np.load(tmp_path / "x") as file:  # under both names
        np.testing.assert_array_equal(file["a"], host(x))
        np.testing.assert_array_equal(file["b.0"], host(x))


def test_tied_parameters_of_a_module(tmp_path):
    model = flow.nn.Sequential(flow.nn.Embedding(5, 3), flow.nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    found = through(model.state_dict(), tmp_path)
    assert share(found["0.weight"], found["1.weight"])
    assert not share(found["0.weight"], model[0].weight)
    model.load_state_dict(found)
    assert model[1].weight is model[0].weight


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_views_within_a_tensor(tmp_path, dtype):
    x = flow.arange(24).reshape(4, 6).to(getattr(flow, dtype))
    views = {"rows": x[1:3], "turned": x.t(), "steps": x[::2, 1::3], "flat": x.view(-1),
             "row twice": x.expand(2, 4, 6), "number": x[3, 5], "again": x[1:3]}  # fmt: skip
    for order in ({"x": x, **views}, {**views, "x": x}):
        found = through(order, tmp_path)
        for name, view in views.items():
            assert found[name].stride() == view.stride() or name == "row twice"
            np.testing.assert_array_equal(host(found[name].float()), host(view.float()))
        found["x"].fill_(1)
        assert all((found[name] == 1).all() for name in views)


def test_what_shares_nothing_stays_apart(tmp_path):
    x = flow.arange(6.0)
    for a, b in ((x[:3], x[3:]), (x, x.clone()), (x[:0], x[:0].clone()), (x[:4], x[2:])):
        found = through([a, b], tmp_path)
        found[0].fill_(9)
        np.testing.assert_array_equal(host(found[1]), host(b))


def test_two_that_lie_alike_without_a_contiguous_one_around(tmp_path):
    x = flow.arange(6.0).reshape(2, 3)
    found = through([x.t(), x.t().detach()], tmp_path)
    np.testing.assert_array_equal(host(found[1]), host(x.t()))
    found[0][1, 1] = 9
    assert found[1][1, 1] == 9


def test_views_that_require_gradients(tmp_path):
    x = flow.arange(6.0)
    found = through([x.detach().requires_grad_(), x.detach()[2:4].requires_grad_()], tmp_path)
    assert share(found[0].detach()[2:], found[1]) and all(
        t.is_leaf and t.requires_grad for t in found
    )
    (found[1] * 2).sum().backward()
    assert found[1].grad.tolist() == [2, 2] and found[0].grad is None


def test_a_function_of_map_location_may_put_them_apart(tmp_path):
    x = flow.arange(4.0)
    where = iter([flow.float64, flow.float32])
    found = through([x, x[1:]], tmp_path, map_location=lambda t, _: t.to(next(where)))
    assert found[0].dtype is flow.float64 and found[1].tolist() == [1, 2, 3]


def changed(path, change):
    """The structure of a file of format 2, and the same file with another one, of format 1."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(entries.pop("structure.json"))["value"]
    change(tree["list"][1])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
        archive.writestr("structure.json", json.dumps({"oneflow_lite": 1, "value": tree}))


@pytest.mark.parametrize("within, text", [
    (3, "does not say where a tensor lies"),
    (["0", 0], "does not say where a tensor lies"),
    (["2", 0, [1]], "no tensor '2' that another one could lie in"),
    ([["0"], 0, [1]], "no tensor list that another one could lie in"),
    (["0", 2, [1]], "lies outside of '0'"), (["0", 0, [2]], "lies outside of '0'"),
    (["0", -1, [1]], "lies outside of '0'"), (["0", 0, [-1]], "lies outside of '0'"),
    (["0", 0, [1 << 70]], "lies outside of '0'"), (["0", 0.0, [1]], "lies outside of '0'"),
    (["0", 0, None], "lies outside of '0'"), (["0", 1, None], "lies outside of '0'"),
    (["0", 0, []], "lies outside of '0'"), (["0", True, [1]], "lies outside of '0'"),
])  # fmt: skip
def test_a_place_that_is_none_is_refused(tmp_path, within, text):
    flow.save([flow.arange(4.0), flow.arange(3.0)], tmp_path / "x")
    changed(tmp_path / "x", lambda node: node.update(within=within))
    with pytest.raises(ValueError, match=text):
        flow.load(tmp_path / "x")


@pytest.mark.parametrize("same", [3, "1", "x", None])
def test_another_tensor_that_is_none_is_refused(tmp_path, same):
    flow.save([flow.arange(4.0), flow.arange(3.0)], tmp_path / "x")
    changed(tmp_path / "x", lambda node: node.update(same=same))
    with pytest.raises(ValueError, match="no tensor .* that another one could lie in"):
        flow.load(tmp_path / "x")


def test_versions_that_know_nothing_of_it_read_each(tmp_path):
    """They look up the keys they know: taken away, the others change nothing else."""
    x = flow.arange(4.0)
    flow.save([x, x[1:]], tmp_path / "x")
    changed(tmp_path / "x", lambda node: node.pop("within"))
    found = flow.load(tmp_path / "x")
    assert [t.tolist() for t in found] == [[0, 1, 2, 3], [1, 2, 3]]
    assert not share(found[0][1:], found[1])


def test_torchs_files_keep_what_is_shared(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: none of its files")
    x = torch.arange(6.0).reshape(2, 3)
    torch.save({"x": x, "row": x[1], "turned": x.t()}, tmp_path / "x")
    found = flow.load(tmp_path / "x")
    found["x"].fill_(7)
    assert (found["row"] == 7).all() and (found["turned"] == 7).all()
