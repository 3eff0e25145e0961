# SPDX-License-Identifier: Apache-2.0
"""The cases of test_distributed.py: one process per rank runs them all, and writes how each went.

What a rank holds is drawn from its number, so that each rank can compute what all should have.
"""

import functools
import json
import os
import sys
import threading
import traceback
from pathlib import Path

import numpy as np

import oneflow_lite as flow
from oneflow_lite import distributed as dist

CASES = []
# "cpu" or "cuda": the GPU of each rank, which is the current one once the ranks have met.
DEVICE = os.environ.get("OFL_TEST_DEVICE", "cpu")
tensor, empty, full, ones, zeros, arange = (
    functools.partial(f, device=DEVICE)
    for f in (flow.tensor, flow.empty, flow.full, flow.ones, flow.zeros, flow.arange)
)
DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip
# None, one, fewer than ranks, odd, just below and above what goes in one step (8192 bytes of
# float64 and of uint8), several parts.
COUNTS = [0, 1, 3, 7, 1024, 1025, 8192, 8193, 100_003]
WHOLE = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def case(function):
    CASES.append(function)
    return function


def bits(t):
    return t.cpu().numpy()


def reducible():
    """NCCL has no 16-bit integers."""
    return DTYPES if DEVICE == "cpu" else [d for d in DTYPES if d != "int16"]


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def held(r, count, dtype="float32", seed=0):
    """What rank r holds, rounded to the dtype."""
    g = np.random.default_rng([r, count, seed])
    if dtype == "bool":
        return tensor(g.random(count) < 0.5)
    if dtype.startswith(("int", "uint")):
        return tensor(g.integers(0, 100, count).astype(dtype))
    return tensor(g.standard_normal(count)).to(getattr(flow, dtype))


def number(t):
    """In float64, where all sums here are exact enough to compare with."""
    return (t.to(flow.float64) if t.is_floating_point() else t).cpu().numpy()


REDUCE = {
    "sum": lambda xs: np.any(xs, 0) if xs[0].dtype == bool else np.sum(xs, 0, dtype=xs[0].dtype),
    "prod": lambda xs: np.all(xs, 0) if xs[0].dtype == bool else np.prod(xs, 0, dtype=xs[0].dtype),
    "max": lambda xs: np.max(xs, 0),
    "min": lambda xs: np.min(xs, 0),
}


def close(got, want, dtype, scale):
    got = number(got)
    if dtype not in WHOLE:
        np.testing.assert_array_equal(got, want)
        return
    error = np.abs(got - want)
    assert (error <= WHOLE[dtype] * scale).all(), (error.max(initial=0), scale)


@case
def all_reduce_of_every_dtype():
    for dtype in reducible():
        for op, reference in REDUCE.items():
            for count in (1, 5, 9001):
                xs = [number(held(r, count, dtype)) for r in range(size())]
                x = held(rank(), count, dtype)
                dist.all_reduce(x, op)
                close(x, reference(xs), dtype, np.abs(xs).astype(float).sum(0).max() + 1)


@case
def all_reduce_of_every_size():
    for dtype in ("float64", "uint8"):
        for count in COUNTS:
            xs = [number(held(r, count, dtype)) for r in range(size())]
            x = held(rank(), count, dtype)
            dist.all_reduce(x)
            close(x, REDUCE["sum"](xs), dtype, 10)


@case
def sums_of_16_bits_are_rounded_once():
    for dtype in ("float16", "bfloat16"):
        for count in (5, 9001):
            xs = [held(r, count, dtype) for r in range(size())]
            total = xs[0].to(flow.float32)
            for x in xs[1:]:
                total = total + x.to(flow.float32)
            mine = xs[rank()].clone()
            dist.all_reduce(mine, reduce_dtype=flow.float32)
            assert flow.equal(mine, total.to(mine.dtype))


@case
def all_ranks_have_the_same_bits():
    x = held(rank(), 30_001)
    dist.all_reduce(x)
    others = [empty(30_001) for _ in range(size())]
    dist.all_gather(others, x)
    for other in others:
        assert bits(other).tobytes() == bits(x).tobytes()


@case
def nan_stays_in_max_and_min():
    if DEVICE == "cuda":  # NCCL says nothing of it
        return
    for op in ("max", "min"):
        x = tensor([1.0, 2.0, 3.0])
        x[rank() % 3] = float("nan")
        dist.all_reduce(x, op)
        assert np.isnan(bits(x)[: min(size(), 3)]).all()


@case
def means_of_every_floating_dtype():
    """Over all ranks, and over three, a number whose reciprocal has no end in binary."""
    for dtype in WHOLE:
        wide = flow.float64 if dtype == "float64" else flow.float32
        for members in (list(range(size())), list(range(min(size(), 3)))[::-1]):
            group = dist.new_group(members)
            if group.rank < 0:
                continue
            for count in (0, 1, 5, 9001):
                xs = [held(r, count, dtype) for r in members]
                total = functools.reduce(flow.add, [x.to(wide) for x in xs])
                want = (total / len(xs)).to(xs[0].dtype)
                scale = np.abs([number(x) for x in xs]).sum(0).max(initial=0)
                for op in ("mean", "avg", dist.ReduceOp.AVG):
                    x = held(rank(), count, dtype)
                    dist.all_reduce(x, op, group, reduce_dtype=wide)
                    close(x, number(want), dtype, scale)
                    if DEVICE == "cpu":  # NCCL sums in an order of its own
                        assert flow.equal(x, want)
                x = held(rank(), count, dtype)
                dist.all_reduce(x, "mean", group)  # on CUDA in the dtype itself
                close(x, number(want), dtype, scale)


@case
def means_are_scattered():
    sizes = [(4, 0, 2, 7)[r % 4] for r in range(size())]
    for dtype in WHOLE:
        inputs = [[held(r, n, dtype, i) for i, n in enumerate(sizes)] for r in range(size())]
        out = empty(sizes[rank()], dtype=getattr(flow, dtype))
        dist.reduce_scatter(out, inputs[rank()], "mean")
        close(out, np.mean([number(inputs[r][rank()]) for r in range(size())], 0), dtype, 10)
        part = empty(3, dtype=out.dtype)
        dist.reduce_scatter_tensor(part, held(rank(), 3 * size(), dtype), "mean")
        want = np.mean([number(held(r, 3 * size(), dtype)) for r in range(size())], 0)
        close(part, want[3 * rank() :][:3], dtype, 10)


@case
def a_mean_of_float16_keeps_flags_and_does_not_overflow():
    x = full([2], 60000.0, dtype=flow.float16)
    x[1] = float(rank() == 0)
    dist.all_reduce(x, "mean")
    np.testing.assert_allclose(number(x), [60000.0, 1 / size()], rtol=1e-3)


@case
def means_of_integers_are_refused():
    for dtype in ("bool", "uint8", "int16", "int32", "int64"):
        x = held(rank(), 3, dtype)
        for name, call in [
            ("all_reduce", lambda x: dist.all_reduce(x, "mean")),
            ("reduce_scatter", lambda x: dist.reduce_scatter(x, [x] * size(), "mean")),
            ("reduce_scatter_tensor",
             lambda x: dist.reduce_scatter_tensor(x, x.repeat(size()), "mean")),
        ]:  # fmt: skip
            try:
                call(x)
            except ValueError as e:
                assert f"{name}(): the mean of" in str(e) and "of that dtype" in str(e), e
            else:
                raise AssertionError("no error")
    x = ones(3)  # the ranks go on
    dist.all_reduce(x, "mean")
    np.testing.assert_array_equal(bits(x), 1)


@case
def uneven_all_gather_with_empty_parts():
    sizes = [(0, 3, 1, 5)[r % 4] for r in range(size())]
    out = [empty(n, 2) for n in sizes]
    dist.all_gather(out, held(rank(), 2 * sizes[rank()]).view(-1, 2))
    for r, t in enumerate(out):
        np.testing.assert_array_equal(bits(t).ravel(), bits(held(r, 2 * sizes[r])))


@case
def tensors_in_parts_of_the_first_dim():
    for rows in (0, 1, 5, 2 * size(), 4001):
        counts = [rows // size() + (r < rows % size()) for r in range(size())]
        whole = empty(rows, 3)
        dist.all_gather_into_tensor(whole, held(rank(), 3 * counts[rank()]).view(-1, 3))
        want = np.concatenate([bits(held(r, 3 * n)) for r, n in enumerate(counts)])
        np.testing.assert_array_equal(bits(whole).ravel(), want)
        part = empty(counts[rank()], 3)
        dist.reduce_scatter_tensor(part, held(rank(), 3 * rows).view(-1, 3))
        total = sum(bits(held(r, 3 * rows)) for r in range(size()))
        begin = 3 * sum(counts[: rank()])
        np.testing.assert_allclose(
            bits(part).ravel(), total[begin : begin + part.numel()], rtol=1e-5, atol=1e-5
        )


@case
def reduce_scatter_of_uneven_lists():
    sizes = [(4, 0, 2, 7)[r % 4] for r in range(size())]
    for op, reference in REDUCE.items():
        inputs = [[held(r, n, "float64", i) for i, n in enumerate(sizes)] for r in range(size())]
        out = empty(sizes[rank()], dtype=flow.float64)
        dist.reduce_scatter(out, inputs[rank()], op)
        want = reference([bits(inputs[r][rank()]) for r in range(size())])
        np.testing.assert_allclose(bits(out), want, rtol=1e-13, atol=1e-13)


@case
def all_to_all_of_uneven_lists():
    def count(source, target):
        return (source * 3 + target * 5) % 4

    out = [empty(count(r, rank())) for r in range(size())]
    dist.all_to_all(out, [held(rank(), count(rank(), r), seed=r) for r in range(size())])
    for r, t in enumerate(out):
        np.testing.assert_array_equal(bits(t), bits(held(r, count(r, rank()), seed=rank())))


@case
def all_to_all_single():
    x = arange(2.0 * size()).view(-1, 1) + 100 * rank()
    y = empty(2 * size(), 1)
    dist.all_to_all_single(y, x)
    want = [100 * r + 2 * rank() + i for r in range(size()) for i in range(2)]
    np.testing.assert_array_equal(bits(y).ravel(), want)


@case
def broadcast_from_each():
    for root in range(size()):
        for count in COUNTS:
            x = held(rank(), count)
            dist.broadcast(x, root)
            np.testing.assert_array_equal(bits(x), bits(held(root, count)))


@case
def scatter_gather_and_reduce():
    for root in range(size()):
        x = empty(3)
        parts = [full([3], float(10 * root + r)) for r in range(size())]
        dist.scatter(x, parts if rank() == root else None, root)
        np.testing.assert_array_equal(bits(x), 10 * root + rank())
        out = [empty(3) for _ in range(size())] if rank() == root else None
        dist.gather(x, out, root)
        if rank() == root:
            np.testing.assert_array_equal([t[0].item() for t in out], 10 * root + np.arange(size()))
        y = ones(2)
        dist.reduce(y, root)
        np.testing.assert_array_equal(bits(y), size() if rank() == root else 1)


@case
def messages_of_two():
    for count in COUNTS:
        if rank() == 0:
            dist.send(held(0, count), 1)
            y = empty(count)
            dist.recv(y, 1)
            np.testing.assert_array_equal(bits(y), bits(held(1, count)))
        elif rank() == 1:
            y = empty(count)
            dist.recv(y, 0)
            np.testing.assert_array_equal(bits(y), bits(held(0, count)))
            dist.send(held(1, count), 0)


@case
def opposing_messages_do_not_wait_for_each_other():
    count = 500_000  # more than the system's buffers hold
    for _ in range(3):
        got = [empty(count) for _ in range(size())]
        with dist.batch():
            for other in range(size()):  # oneself too
                dist.send(held(rank(), count, seed=other), other)
                dist.recv(got[other], other)
        for other, t in enumerate(got):
            np.testing.assert_array_equal(bits(t), bits(held(other, count, seed=rank())))


@case
def messages_keep_their_order():
    with dist.batch():
        for i in range(20):
            dist.send(full([4], float(i)), (rank() + 1) % size())
        got = [empty(4) for _ in range(20)]
        for t in got:
            dist.recv(t, (rank() - 1) % size())
    np.testing.assert_array_equal([t[0].item() for t in got], np.arange(20))


@case
def a_batch_is_its_own_threads():
    refused = []

    def send_to_oneself():
        try:
            dist.send(full([2], 1.0), rank())
        except ValueError as error:
            refused.append(str(error))

    with dist.batch():
        got = empty(3)
        dist.send(full([3], float(rank())), (rank() + 1) % size())
        dist.recv(got, (rank() - 1) % size())
        thread = threading.Thread(target=send_to_oneself)
        thread.start()
        thread.join()
    assert "in batch() alone" in refused[0]
    assert got[0].item() == (rank() - 1) % size()


@case
def what_other_threads_send_goes_at_once():
    if rank() > 1:
        return
    other, got, mine = 1 - rank(), empty(2), empty(3)

    def talk():
        if rank() == 0:
            dist.send(full([2], 7.0), other)
        else:
            dist.recv(got, other)

    with dist.batch():
        dist.send(full([3], float(rank())), other)
        dist.recv(mine, other)
        thread = threading.Thread(target=talk)
        thread.start()
        thread.join()
        assert rank() == 0 or got.tolist() == [7, 7]
    assert mine[0].item() == other


@case
def an_exception_in_a_batch_drops_it():
    for _ in range(2):
        try:
            with dist.batch():
                dist.recv(empty(3), (rank() - 1) % size())  # which nobody sends
                raise KeyError("of my own")
        except KeyError:
            pass
        got = empty(3)
        with dist.batch():
            dist.send(full([3], float(rank())), (rank() + 1) % size())
            dist.recv(got, (rank() - 1) % size())
        assert got[0].item() == (rank() - 1) % size()
        dist.barrier()


@case
def tensors_that_are_not_dense():
    x = held(rank(), 12).view(3, 4).t()
    dist.all_reduce(x)
    want = sum(bits(held(r, 12)) for r in range(size())).reshape(3, 4).T
    np.testing.assert_allclose(bits(x), want, rtol=1e-5, atol=1e-5)
    y = zeros(6, 2)
    dist.broadcast(y[::2], 0)
    dist.recv(y[:, 1], 0) if rank() == 1 else rank() or dist.send(ones(6), 1)
    np.testing.assert_array_equal(bits(y[:, 1]), 1.0 if rank() == 1 else 0.0)


@case
def groups_in_any_order():
    for members in ([0, 1], [1, 0], list(range(size()))[::-1]):
        group = dist.new_group(members)
        if rank() not in members:
            assert group.rank == -1
            continue
        out = [empty(1) for _ in members]
        dist.all_gather(out, full([1], float(rank())), group)
        assert [t.item() for t in out] == members
        x = full([1], float(rank()))
        dist.broadcast(x, members[-1], group)
        assert x.item() == members[-1]
        dist.barrier(group)


@case
def objects():
    out = [None] * size()
    dist.all_gather_object(out, {"rank": rank(), "text": "x" * rank()})
    assert out == [{"rank": r, "text": "x" * r} for r in range(size())]
    both = [rank(), "mine"]
    dist.broadcast_object_list(both, size() - 1)
    assert both == [size() - 1, "mine"]


@case
def mistakes_are_errors_before_anything_is_sent():
    x = ones(3)
    for call, part in [
        (lambda: dist.all_reduce(x, "median"), "op is 'median'"),
        (lambda: dist.broadcast(x, size()), f"src is {size()}"),
        (lambda: dist.all_gather([x], x), "1 tensors for"),
        (lambda: dist.all_gather_into_tensor(empty(100), x), "have shapes [100] and [3]"),
        (lambda: dist.all_reduce(x, reduce_dtype=flow.int32), "reduce_dtype is int32"),
        (lambda: dist.send(x, rank()), "this rank itself"),
        (lambda: dist.new_group([0, 0]), "[0, 0]"),
        (lambda: dist.init(), "met already"),
    ]:
        try:
            call()
        except (ValueError, RuntimeError) as e:
            assert part in str(e), (part, str(e))
        else:
            raise AssertionError(f"no error with {part!r}")
    dist.all_reduce(x)
    np.testing.assert_array_equal(bits(x), size())


@case
def a_forked_child_leaves_the_connections_alone():
    dist.barrier(device_type=DEVICE)  # connections are there, and the child has them too
    if DEVICE == "cuda":
        return  # CUDA cannot be used in a forked child
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for call in (lambda: dist.all_reduce(ones(3)), lambda: dist.barrier(),
                     lambda: dist.send(ones(1), (rank() + 1) % size())):  # fmt: skip
            try:
                call()
                said.append("no error")
            except RuntimeError as error:
                said.append(str(error))
        os.write(writing, "\n".join(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = said.read().splitlines()
    os.waitpid(child, 0)
    assert len(lines) == 3 and all("this process was forked from rank" in x for x in lines), lines
    x = ones(3)
    dist.all_reduce(x)  # the ranks go on
    assert number(x).tolist() == [size()] * 3


@case
def ranks_of_placements_are_compared():
    order = list(range(size()))
    if rank() == 1:
        order = order[::-1]
    try:
        ones(2).to_global(flow.placement(DEVICE, order), flow.sbp.split(0))
    except ValueError as error:
        assert "asked for different placements or SBPs" in str(error), error
    else:
        raise AssertionError("no error")
    if size() == 4:
        grids = [[0, 1], [2, 3]], [[0, 2], [1, 3]]
        try:
            ones(2).to_global(flow.placement(DEVICE, grids[rank() % 2]), [flow.sbp.broadcast] * 2)
        except ValueError as error:
            assert "asked for different placements or SBPs" in str(error), error
        else:
            raise AssertionError("no error")


@case
def a_written_tensor_counts_as_changed():
    x = ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    dist.all_reduce(y)
    try:
        z.backward()
    except RuntimeError as e:
        assert "in-place" in str(e) or "changed" in str(e) or "modified" in str(e), e
    else:
        raise AssertionError("the gradient of what was overwritten")


@case
def a_forked_child_is_no_rank():
    x = ones(1)  # CUDA itself does not work in the child
    pid = os.fork()
    if pid == 0:
        try:
            dist.all_reduce(x)
        except RuntimeError as e:
            os._exit(0 if "forked" in str(e) else 1)
        os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    dist.barrier()


@case
def many_small_ones():
    x = ones(1, dtype=flow.float64)
    for _ in range(300):
        dist.all_reduce(x, "max")
    assert x.item() == 1


@case
def moves_of_every_dtype():
    for dtype in DTYPES:
        for counts in ([3] * size(), [(0, 3, 1, 5)[r % 4] for r in range(size())]):
            out = [empty(n, dtype=getattr(flow, dtype)) for n in counts]
            dist.all_gather(out, held(rank(), counts[rank()], dtype))
            for r, t in enumerate(out):
                np.testing.assert_array_equal(number(t), number(held(r, counts[r], dtype)))
        x = held(rank(), 5, dtype)
        dist.broadcast(x, size() - 1)
        np.testing.assert_array_equal(number(x), number(held(size() - 1, 5, dtype)))
        out = [empty(3, dtype=x.dtype) for _ in range(size())]
        dist.all_to_all(out, [held(rank(), 3, dtype, seed=r) for r in range(size())])
        for r, t in enumerate(out):
            np.testing.assert_array_equal(number(t), number(held(r, 3, dtype, seed=rank())))


@case
def sums_of_int16_are_refused_on_cuda():
    if DEVICE == "cpu":
        return
    for function in (
        lambda x: dist.all_reduce(x),
        lambda x: dist.reduce_scatter_tensor(empty(3, dtype=x.dtype), x),
    ):
        try:
            function(held(rank(), 3 * size(), "int16"))
        except NotImplementedError as e:
            assert "NCCL does not reduce int16; convert to int32" in str(e)
        else:
            raise AssertionError("no error")
    x = held(rank(), 3, "int32")  # the ranks go on
    dist.all_reduce(x)
    np.testing.assert_array_equal(
        number(x), sum(number(held(r, 3, "int32")) for r in range(size()))
    )


def main():
    if DEVICE == "cuda":
        dist.init()  # the rank's GPU becomes the current one
    with (Path(sys.argv[1]) / f"rank{rank()}").open("w") as report:
        for function in CASES:
            report.write(json.dumps({"begun": function.__name__}) + "\n")
            report.flush()
            try:
                function()
                error = None
            except Exception:
                error = traceback.format_exc()
            report.write(json.dumps({"case": function.__name__, "error": error}) + "\n")
            report.flush()


if __name__ == "__main__":
    main()
