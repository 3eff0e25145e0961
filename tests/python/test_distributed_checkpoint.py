# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of many ranks: the same bits on any number of ranks, and old or new after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_zero_optimizer import BRANCHES, fresh, groups, train

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import distributed as dist  # noqa: E402
from oneflow_lite._atomic_file import PREFIX  # noqa: E402
from oneflow_lite.distributed import checkpoint  # noqa: E402

optim = flow.optim
split, whole = flow.sbp.split, flow.sbp.broadcast


def zero(size, seed):
    model = dist.DataParallel(fresh(seed), 300 / 2**20)
    optimizer = dist.ZeroOptimizer(optim.AdamW, groups(model), stage=2, lr=0.05)
    return model, optimizer


def bits(model, optimizer):
    state = optimizer.state_dict()
    tensors = [*model.state_dict().values()]
    tensors += [v for kept in state["state"].values() for v in kept.values()]
    return [t.numpy().tobytes() if isinstance(t, flow.Tensor) else t for t in tensors]


def steps_and_save(rank, size, path, one_file):
    model, optimizer = zero(size, 3)
    train(model, optimizer, rank, size, BRANCHES["both"])
    save(model, optimizer, path, one_file)
    return bits(model, optimizer)


def save(model, optimizer, path, one_file):
    state = {"model": model.state_dict(), "optimizer": optimizer.split_state_dict(), "step": 5}
    (checkpoint.save_whole if one_file else checkpoint.save)(state, path)


def load_and_save(rank, size, path, to, one_file):
    model, optimizer = zero(size, 17 + size)
    into = {"model": model.state_dict(), "optimizer": optimizer.split_state_dict()}
    state = checkpoint.load(path, into)
    assert state["step"] == 5
    optimizer.load_state_dict(state["optimizer"])
    save(model, optimizer, to, one_file)
    return bits(model, optimizer)


@pytest.mark.parametrize("one_file", [False, True], ids=["parts", "one file"])
def test_four_two_one_four_ranks_have_the_same_bits(ranks, two_ranks, tmp_path, one_file):
    path = [str(tmp_path / name) for name in "abcd"]
    first = ranks.run(steps_and_save, 4, path[0], one_file)
    assert first[0] == first[3]
    two = two_ranks.run(load_and_save, 2, path[0], path[1], one_file)
    one = load_and_save(0, 1, path[1], path[2], one_file)
    four = ranks.run(load_and_save, 4, path[2], path[3], one_file)
    assert first[0] == two[0] == two[1] == one == four[0] == four[3]


SBPS = {
    "line": ([0, 1, 2, 3], [[whole], [split(0)], [split(1)]]),
    "grid": ([[0, 1], [2, 3]], [[whole, split(1)], [split(0), split(0)], [split(1), split(0)],
                                [split(0), whole]]),
}  # fmt: skip


def every_sbp(rank, path):
    rng = np.random.default_rng(0)
    values = {s: rng.standard_normal(s) for s in [(5, 7), (1, 3), (4, 4)]}
    for p, sbps in ((flow.placement("cpu", r), s) for r, s in SBPS.values()):
        everywhere = [whole] * len(p.shape)
        for shape, v in values.items():
            x = flow.tensor(v).to_global(p, everywhere)
            for i, sbp in enumerate(sbps):
                folder = f"{path}/{len(p.shape)}-{i}-{shape}"
                checkpoint.save({"x": x.to_global(sbp=sbp)}, folder)
                local = flow.zeros(shape, dtype=flow.float64)
                assert checkpoint.load(folder, {"x": local})["x"] is local
                assert local.numpy().tobytes() == v.tobytes()
                for q, others in ((flow.placement("cpu", r), s) for r, s in SBPS.values()):
                    for other in others:
                        y = flow.zeros(shape, placement=q, sbp=other, dtype=flow.float64)
                        checkpoint.load(folder, {"x": y})
                        assert y.to_global(sbp=[whole] * len(other)).to_local().numpy().tobytes() \
                            == v.tobytes()  # fmt: skip
    p = flow.placement("cpu", [0, 1, 2, 3])
    sums = flow.ones(3).to_global(p, flow.sbp.partial_sum)
    checkpoint.save([sums, (1, "a", None), flow.ones(2, dtype=flow.bfloat16)], path + "/sums")
    got = checkpoint.load(path + "/sums")
    assert got[0].tolist() == [4.0] * 3 and got[1] == (1, "a", None)
    assert got[2].dtype is flow.bfloat16


def elsewhere(rank, path):
    """Tensors that lie on some of the ranks, as the stages of a pipeline do."""
    S, where = flow.sbp.split, ([0, 1], [2, 3], [1], [[3], [0]])

    def state(factor, places):
        return {
            str(i): (factor * flow.arange(5.0)).to_global(p, [whole] * len(p.shape)).to_global(
                sbp=[S(0)] * len(p.shape))
            for i, p in enumerate(flow.placement("cpu", at) for at in places)
        }  # fmt: skip

    checkpoint.save(state(2, where), path)
    for places in (where, where[::-1], [[0, 1, 2, 3]] * 4, [[2]] * 4):
        into = state(0, places)
        assert checkpoint.load(path, into) == into
        for x, want in zip(into.values(), state(2, places).values(), strict=True):
            assert x.to_local().tolist() == want.to_local().tolist()
    with pytest.raises(ValueError, match="0 has shape"):
        checkpoint.load(path, {"0": flow.zeros(6).to_global(flow.placement("cpu", [2]), whole)})


def test_tensors_on_some_of_the_ranks(ranks, tmp_path):
    ranks.run(elsewhere, str(tmp_path))


def test_from_every_sbp_to_every_other(ranks, tmp_path):
    ranks.run(every_sbp, str(tmp_path))


def subgroup(rank, path):
    group = dist.new_group([2, 0])
    if rank in (0, 2):
        p = flow.placement("cpu", [2, 0])
        x = flow.arange(5, placement=p, sbp=whole).to_global(sbp=split(0))
        checkpoint.save({"x": x, "y": np.arange(3)}, path, group)
        checkpoint.save_whole({"x": x}, path + ".npz", group)
    dist.barrier()
    assert checkpoint.load(path)["x"].tolist() == [0, 1, 2, 3, 4]
    assert checkpoint.load(path + ".npz")["x"].tolist() == [0, 1, 2, 3, 4]
    assert checkpoint.load(path)["y"].tolist() == [0, 1, 2]


def test_a_group_saves(ranks, tmp_path):
    ranks.run(subgroup, str(tmp_path / "a"))
    assert len(list((tmp_path / "a").iterdir())) == 3


def mistakes(rank, path):
    checkpoint.save({"x": flow.ones(3)}, path)
    before = sorted(os.listdir(path))

    def raises(kind, text, value, where=path):
        with pytest.raises(kind, match=text):
            checkpoint.save(value, where)

    raises(ValueError if rank == 0 else ValueError, "names, shapes, dtypes",
           {"x": flow.ones(3 + rank)})  # fmt: skip
    raises(TypeError if rank else RuntimeError, "x is a set" if rank else "rank 1: TypeError",
           {"x": {1} if rank else 1})  # fmt: skip
    raises(OSError, "", {"x": flow.ones(1)}, path + "/manifest.npz/a")
    assert sorted(os.listdir(path)) == before
    for into, text in [({"x": flow.ones(4)}, r"x has shape \[3\] in the checkpoint, but \[4\]"),
                       ({"x": flow.ones(3), "y": flow.ones(1)}, "has no y")]:  # fmt: skip
        with pytest.raises(ValueError, match=text):
            checkpoint.load(path, into)
    p = flow.placement("cpu", [0, 1])
    with pytest.raises(ValueError, match="partial sum"):
        checkpoint.load(path, {"x": flow.ones(3).to_global(p, flow.sbp.partial_sum)})


def test_mistakes_are_errors_on_every_rank_and_change_nothing(two_ranks, tmp_path):
    two_ranks.run(mistakes, str(tmp_path / "c"))


def test_damaged_checkpoints(tmp_path):
    path = tmp_path / "c"
    checkpoint.save({"x": flow.arange(1000)}, path)
    (part,) = path.glob("part-*")
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        checkpoint.load(path)
    part.unlink()
    with pytest.raises(ValueError, match="which the manifest names, is not there"):
        checkpoint.load(path)
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "nothing")
    flow.save({"a": 1}, path / "manifest.npz")
    with pytest.raises(ValueError, match="of no format"):
        checkpoint.load(path)


def two_parts(path):
    """A checkpoint of a tensor that two ranks have halves of, and its manifest."""
    checkpoint.save({"x": flow.arange(4)}, path)
    manifest = flow.load(path / "manifest.npz")
    (name,) = manifest["files"]
    flow.save({"0": flow.arange(2)}, path / name)
    manifest["files"].append(name.replace("-0.", "-1."))
    flow.save({"0": flow.arange(2) + 2}, path / manifest["files"][1])
    return manifest | {"pieces": [["x", [[0, [[0, 2]]], [1, [[2, 4]]]]]]}


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("pieces", "[1, [[2, 4]]]", "[0, [[2, 4]]]"),  # one part for two places
        ("pieces", ", [1, [[2, 4]]]", ""),  # elements that nobody has
        ("pieces", "[1, [[2, 4]]]", "[1, [[1, 3]]]"),
        ("pieces", "[1, [[2, 4]]]", "[1, [[0, 2]]]"),
        ("pieces", "[1, [[2, 4]]]", "[1, [[2, 5]]]"),
        ("pieces", "[1, [[2, 4]]]", "[7, [[2, 4]]]"),
        ("pieces", "[1, [[2, 4]]]", "[1, [[2, null]]]"),
        ("pieces", "[1, [[2, 4]]]", "1"),
        ("pieces", "[[2, 4]]", "[[2, 4], [0, 1]]"),
        ("pieces", "x", "y"),
        ("tree", "[4]", "[5]"),
        ("tree", "[4]", "[[4]]"),
        ("tree", "int64", "float32"),
        ("tree", "int64", "device"),
        ("tree", "false", "true"),
        ("tree", "tensor", "array"),
        ("files", "-1.npz", "-0.npz"),
        ("files", "part", "../part"),
    ],
)
def test_a_manifest_that_the_parts_contradict(tmp_path, key, old, new):
    path = tmp_path / "c"
    manifest = two_parts(path)

    manifest["pieces"] = json.dumps(manifest["pieces"])
    flow.save(manifest, path / "manifest.npz")
    assert checkpoint.load(path)["x"].tolist() == [0, 1, 2, 3]
    text = json.dumps(manifest[key])
    old, new = (json.dumps(word)[1:-1] if key != "files" else word for word in (old, new))
    assert old in text
    flow.save(manifest | {key: json.loads(text.replace(old, new, 1))}, path / "manifest.npz")
    for into in (None, {"x": flow.zeros(4)}):
        with pytest.raises(ValueError, match=r"^load\(\): .* is no checkpoint, or is damaged: "):
            checkpoint.load(path, into)


def test_a_manifest_allocates_nothing_that_the_parts_do_not_hold(tmp_path):
    path, count = tmp_path / "c", 1 << 50
    manifest = two_parts(path)
    manifest["pieces"][0][1][1][1] = [[2, count]]
    manifest["pieces"] = json.dumps(manifest["pieces"])
    manifest["tree"] = manifest["tree"].replace("[4]", f"[{count}]")
    flow.save(manifest, path / "manifest.npz")
    with pytest.raises(ValueError, match="a part is shorter than the manifest says"):
        checkpoint.load(path)


def test_a_shape_of_many_dims_is_refused_at_once(tmp_path):
    """The product of 60,000 large numbers took minutes."""
    path, shape = tmp_path / "c", [10**30] * 60_000
    manifest = two_parts(path)
    manifest["pieces"] = json.dumps([["x", [[0, [[0, n] for n in shape]]]]])
    manifest["tree"] = manifest["tree"].replace("[4]", json.dumps(shape))
    flow.save(manifest, path / "manifest.npz")
    start = time.process_time()
    with pytest.raises(ValueError, match="a tensor has no shape that there can be"):
        checkpoint.load(path)
    assert time.process_time() - start < 5


def test_what_killed_saves_left_is_deleted_after_an_hour(tmp_path):
    """Each save writes parts of new names, so the next one looks for what any left."""
    path = tmp_path / "c"
    checkpoint.save({"x": 1}, path)
    old, new = (path / (PREFIX + kind) for kind in ("old", "new"))
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (time.time() - 3700,) * 2)
    checkpoint.save({"x": 2}, path)
    assert not old.exists() and new.exists()


def test_files_of_the_first_format():
    file = Path(__file__).parent / "data" / "format_1.npz"
    got, want = checkpoint.load(file), flow.load(file)
    assert list(got) == list(want)
    for name, x in want["dtypes"].items():
        assert got["dtypes"][name].dtype is x.dtype and flow.equal(got["dtypes"][name], x)


def test_what_flow_save_wrote(tmp_path):
    flow.save({"x": flow.ones(2, 3, requires_grad=True)}, tmp_path / "a.npz")
    got = checkpoint.load(tmp_path / "a.npz")["x"]
    assert got.requires_grad and got.shape == (2, 3)
    flat = flow.zeros(6)
    checkpoint.load(tmp_path / "a.npz", {"x": flat})
    assert flat.tolist() == [1.0] * 6


X, Y = flow.ones(2), np.ones(2)


@pytest.mark.parametrize(
    ("saved", "into", "text"),
    [
        ({"a": [X, X]}, {"a": [0, 0, 0]}, "a is a list of 3 items in into, but of kind list of 2"),
        ({"a": [X, X]}, {"a": (0,)}, "a is a tuple of 1 items in into, but of kind list of 2"),
        ({"a": [X, X]}, {"a": {0: 0, 1: 0}}, "a is a dict in into, but of kind list"),
        ({"a": {"b": X}}, {"a": [0]}, "a is a list of 1 items in into, but of kind dict in"),
        ({"a": {"b": X}}, {"a": 0}, "a is a tensor in into, but of kind dict"),
        ({"a": X}, {"a": {"b": 0}}, "a is a dict in into, but of kind tensor"),
        ({"a": Y}, {"a": [0, 0]}, "a is a list of 2 items in into, but of kind array"),
        ({"a": 1.5}, {"a": 0}, "a is a tensor in into, but of kind float"),
        ({"a": None}, {"a": {"b": {"c": 0}}}, "a is a dict in into, but of kind NoneType"),
        ([X], 0, "the object is a tensor in into, but of kind list of 1 items"),
        ({"a": X, "b": {"c": X}}, {"a": 0, "b": {"d": 0}}, "the checkpoint has no b.d"),
        ({"a": X, "b": flow.ones(3)}, {"a": 0, "b": 0}, r"b has shape \[3\]"),
        ({"a": X}, {"a": flow.zeros(2, device="meta")}, "a is a meta tensor in into"),
    ],
)
@pytest.mark.parametrize("one_file", [False, True], ids=["parts", "one file"])
def test_no_tensor_of_into_stays_as_it_was_in_silence(tmp_path, saved, into, text, one_file):
    """Where ``into`` has 0 here, it has a tensor of two zeros; an error leaves all of them."""
    path, zeros = tmp_path / "c", []

    def filled_in(given):
        if isinstance(given, dict):
            return {key: filled_in(x) for key, x in given.items()}
        if isinstance(given, list | tuple):
            return type(given)(map(filled_in, given))
        if isinstance(given, flow.Tensor):
            return given
        zeros.append(flow.zeros(2))
        return zeros[-1]

    (checkpoint.save_whole if one_file else checkpoint.save)(saved, path)
    with pytest.raises(ValueError, match=rf"^load\(\): {text}"):
        checkpoint.load(path, filled_in(into))
    assert all(x.tolist() == [0, 0] for x in zeros)


def test_what_into_may_leave_out(tmp_path):
    path = tmp_path / "c"
    checkpoint.save({"a": X, "b": [X, 3], "n": 4}, path)
    for into in ({"b": []}, {"b": {"c": None}, "n": []}, {"a": None, "more": 5}, [1, 2], "x", None):
        got = checkpoint.load(path, into)
        assert list(got) == ["a", "b", "n"] and got["a"].tolist() == got["b"][0].tolist() == [1, 1]
    for into in (flow.nn.Linear(1, 1), optim.SGD([flow.ones(1)], lr=1.0)):
        with pytest.raises(TypeError, match=r"^load\(\): a is a \w+ in into; give its state_dict"):
            checkpoint.load(path, {"a": into})


KILLED = """
import sys
import oneflow_lite as flow
from oneflow_lite.distributed import checkpoint
number = 1
while True:
    checkpoint.save({"x": flow.full([200_000], float(number)), "n": number}, sys.argv[1])
    print(number, flush=True)
    number += 1
"""


def test_a_kill_leaves_the_old_or_the_new(tmp_path):
    """Of a process that saves again and again: what it named as saved last, or the next."""
    rng = np.random.default_rng(0)
    for k in range(6):
        folder = tmp_path / str(k)
        p = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE)
        assert p.stdout.readline()
        time.sleep(rng.uniform(0, 0.15))
        p.send_signal(signal.SIGKILL)
        told = [int(line) for line in p.stdout.read().split()]
        p.wait()
        p.stdout.close()
        last = max(told, default=1)
        state = checkpoint.load(folder)
        assert state["n"] in (last, last + 1)
        assert flow.equal(state["x"], flow.full([200_000], float(state["n"])))
        checkpoint.save({"n": 0}, folder)  # and the next save leaves nothing of it
        kept = [f.name for f in folder.iterdir() if not f.name.startswith(".")]
        assert len(kept) == 2, kept


KILLED_BETWEEN = """
import os, signal, sys
import oneflow_lite as flow
from oneflow_lite import _serialization
from oneflow_lite.distributed import checkpoint
checkpoint.save({"x": flow.ones(3)}, sys.argv[1])
calls, before = [], _serialization.save
def save(value, file):
    calls.append(file)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    before(value, file)
_serialization.save = save
os_remove = os.remove
def remove(path):
    if sys.argv[2] == "3":
        os.kill(os.getpid(), signal.SIGKILL)
    os_remove(path)
checkpoint.os.remove = remove
checkpoint.save({"x": flow.zeros(3)}, sys.argv[1])
"""


@pytest.mark.parametrize("place, value", [(1, 1.0), (2, 1.0), (3, 0.0)])
def test_a_kill_between_the_steps(tmp_path, place, value):
    """Before the parts, before the manifest, before the old parts are deleted."""
    folder = Path(tmp_path / "c")
    command = [sys.executable, "-c", KILLED_BETWEEN, str(folder), str(place)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert checkpoint.load(folder)["x"].tolist() == [value] * 3
