# SPDX-License-Identifier: Apache-2.0
"""Folders of flow.distributed.checkpoint, damaged and forged. load gives what was saved or a
ValueError.

Damage is that of files.py, to the manifest or to a part. A forged manifest has another structure,
other pieces or other files under checksums that are right, a forged part other tensors.
"""

import json
import shutil
import tempfile
import time
from pathlib import Path

import _content
import files
import numpy as np
from _frame import run

import oneflow_lite as flow
from oneflow_lite.distributed import checkpoint

VALUES = [*files.NUMBERS, None, True, 1.5, "", "x", "float32", "<i8", "manifest.npz", "/dev/zero",
          "../../etc/passwd", "0", [], {}, [[]], [[0, [[0, 2]]]], {"list": []}]  # fmt: skip
WORDS = ["tensor", "array", "dict", "list", "shape", "dtype", "requires_grad"]
TEXTS = ["", "{", "[", "NaN", "9" * 5000, "[" * 100_000, '"\\ud800"', "{}", "[[1, 2]]"]


def sample():
    # One process writes it, so what several would write is put together below.
    return {"a": flow.arange(6).reshape(2, 3).float(), "n": 3, "l": [flow.ones(2), np.arange(3)],
            "p": flow.tensor([1.5], requires_grad=True), "e": flow.zeros(0, 3),
            "b": flow.ones(3).bfloat16()}  # fmt: skip


def divided(folder):
    """The same checkpoint as two ranks write it: "a" is split on its second dim."""
    manifest = flow.load(folder / "manifest.npz")
    (name,) = manifest["files"]
    other = name.replace("-0.npz", "-1.npz")
    parts = flow.load(folder / name)
    a = parts.pop("0")
    flow.save({**parts, "0": a[:, :2].contiguous()}, folder / name)
    flow.save({"0": a[:, 2:].contiguous()}, folder / other)
    pieces = json.loads(manifest["pieces"])
    pieces[0][1] = [[0, [[0, 2], [0, 2]]], [1, [[0, 2], [2, 3]]]]
    manifest |= {"files": [name, other], "pieces": json.dumps(pieces)}
    flow.save(manifest, folder / "manifest.npz")


def change(rng, tree):
    """Something else somewhere in a JSON tree."""
    places = [node for node in files.nodes(tree) if node]
    if not places:
        return
    node = rng.choice(places)
    key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
    action = rng.randrange(4)
    if action == 0:
        del node[key]
    elif action == 1:
        node[key] = json.loads(json.dumps(rng.choice([*VALUES, rng.choice(places)])))
    elif isinstance(node, dict):
        node[rng.choice(WORDS)] = node.pop(key)
    else:
        node.insert(key, rng.choice([rng.choice(VALUES), node[key]]))


def forge_manifest(rng, folder):
    manifest = flow.load(folder / "manifest.npz")
    chosen = rng.choice(["tree", "pieces", "files", "all"])
    if chosen == "all":
        given = rng.choice([*TEXTS, None, 1, [1], flow.ones(2)])
        manifest[rng.choice(list(manifest))] = given
    else:
        tree = manifest[chosen] if chosen == "files" else json.loads(manifest[chosen])
        for _ in range(rng.choice([1, 1, 2, 3])):
            change(rng, tree)
        manifest[chosen] = tree if chosen == "files" else json.dumps(tree)
    flow.save(manifest, folder / "manifest.npz")


def forge_part(rng, folder):
    path = rng.choice(sorted(folder.glob("part-*")))
    parts = flow.load(path)
    key = rng.choice(list(parts))
    x = parts[key]
    as_tensor = flow.as_tensor(x).detach()
    parts[key] = rng.choice([
        lambda: as_tensor.reshape(-1), lambda: as_tensor[:1], lambda: as_tensor.double(),
        lambda: as_tensor.float().numpy(), lambda: as_tensor.to(flow.int8), lambda: 3,
        lambda: {"tensor": "0"}, lambda: [as_tensor], lambda: flow.zeros(9),
    ])()  # fmt: skip
    if rng.random() < 0.2:
        del parts[key]
    flow.save(rng.choice([parts, parts, parts, list(parts.values()), 1]), path)


def damage(rng, folder):
    path = rng.choice(sorted(folder.iterdir()))
    data = bytearray(path.read_bytes())
    rng.choice(files.DAMAGE)(rng, data)
    path.write_bytes(data)


def target(rng):
    """What is filled: nothing, what fits, or what does not."""
    return rng.choice([
        lambda: None, lambda: None, lambda: {"a": flow.zeros(2, 3)}, lambda: {"a": flow.zeros(6)},
        lambda: {"l": [flow.zeros(2), flow.zeros(3)]}, lambda: {"l": [flow.zeros(5)]},
        lambda: {"p": flow.zeros(1).double(), "n": flow.zeros(1)}, lambda: {"z": flow.zeros(2)},
    ])()  # fmt: skip


def attempt(folder, into, want):
    start = time.process_time()
    try:
        value = checkpoint.load(folder, into)
    except ValueError as error:
        assert str(error).startswith("load(): "), error
        assert len(str(error)) < 1000
        kind = "refused"
    else:
        if want is None:
            files.look(value)
            kind = "forged and taken"
        else:
            assert into is not None or _content.digest(value) == want, "another value was loaded"
            kind = "the same"
    assert time.process_time() - start < files.SECONDS
    return kind


def rounds(rng, say):
    files.limit_memory()
    with tempfile.TemporaryDirectory() as place:
        sources = [Path(place) / "one", Path(place) / "two"]
        for folder in sources:
            checkpoint.save(sample(), folder)
        divided(sources[1])
        want = _content.digest(checkpoint.load(sources[0]))
        assert _content.digest(checkpoint.load(sources[1])) == want
        folder = Path(place) / "attacked"
        while True:
            seed = rng.getrandbits(64)
            way, source = rng.choice([damage, forge_manifest, forge_part]), rng.choice(sources)
            say(f"{way.__name__} of {source.name}, with seed {seed}")
            own = type(rng)(seed)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(source, folder)
            way(own, folder)
            yield attempt(folder, target(own), want if way is damage else None)


if __name__ == "__main__":
    run(rounds, full={"count": 20_000}, flat=True)
