# SPDX-License-Identifier: Apache-2.0
"""Collectives on local tensors: all ranks of a group call the same, in the same order."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.distributed._messages import batch, recv, send
from oneflow_lite.distributed._operands import check_list, check_local
from oneflow_lite.distributed._world import (
    Group,
    ReduceOp,
    get_rank,
    group_of,
    host_device,
    reduce_op,
)

if TYPE_CHECKING:
    from oneflow_lite import Tensor, dtype

_C = _ext._C


def _dense(tensor: Tensor) -> Tensor:
    """The elements without history, one after another: the tensor's own, where they lie so."""
    plain = tensor.detach()
    return plain if plain.is_contiguous() else plain.contiguous()


def _write(tensor: Tensor, dense: Tensor) -> None:
    """Puts what came into ``dense`` into the tensor, unless it is there already."""
    target = tensor.detach()
    if dense.data_ptr() != target.data_ptr() or not target.is_contiguous():
        target.copy_(dense.view(target.shape))


def _like(function: str, argument: str, given: Tensor, first: Tensor) -> None:
    for what in ("dtype", "device"):
        if getattr(given, what) != getattr(first, what):
            raise ValueError(
                f"{function}(): {argument} has {what} {getattr(given, what)}, but the other tensors"
                f" have {getattr(first, what)}"
            )


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return _C.cat([t.detach().reshape(-1) for t in tensors])


def _deal_out(dense: Tensor, tensors: Sequence[Tensor]) -> None:
    begin = 0
    for t in tensors:
        t.detach().copy_(dense[begin : begin + t.numel()].view(t.shape))
        begin += t.numel()


def _shards(function: str, whole: Tensor, part: Tensor, names: str, group: Group) -> list[int]:
    """The elements of each rank, where the whole is split on its first dim, first parts larger."""
    rows, rest = (whole.shape[0], whole.numel() // max(whole.shape[0], 1)) if whole.ndim else (1, 1)
    if whole.numel() == part.numel() * group.size:
        return [part.numel()] * group.size
    counts = [(rows // group.size + (i < rows % group.size)) * rest for i in range(group.size)]
    if part.numel() != counts[group.rank]:
        raise ValueError(
            f"{function}(): {names} have shapes {list(whole.shape)} and {list(part.shape)}; of "
            f"{group.size} ranks, number {group.rank} has {counts[group.rank]} of "
            f"{whole.numel()} elements"
        )
    return counts


def _engine_op(function: str, op: ReduceOp | str, tensor: Tensor) -> int:
    """The number by which engines know an operation."""
    meant = reduce_op(function, op)
    if meant is ReduceOp.AVG and not tensor.is_floating_point():
        raise ValueError(
            f"{function}(): the mean of {tensor.dtype} is not of that dtype; convert to a floating "
            "dtype before"
        )
    return meant.value


def all_reduce(
    tensor: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    group: Group | None = None,
    *,
    reduce_dtype: dtype | None = None,
) -> None:
    """Replaces the tensor by its sum (or product, maximum, minimum, mean) over the ranks.

    All ranks get the same bits. float16 and bfloat16 are summed in float32 and rounded once on the
    CPU; on CUDA in their own dtype, unless ``reduce_dtype`` is float32. bool: sum and maximum are
    "or", product and minimum "and". "mean" is of floating dtypes only. On the CPU it divides the
    sum; on CUDA it sums each rank's elements multiplied by 1 / ranks.
    """
    members = group_of("all_reduce", group)
    check_local("all_reduce", "tensor", tensor)
    number = _engine_op("all_reduce", op, tensor)
    dense = _dense(tensor)
    members.communicator(tensor.device.type).all_reduce(dense, dense, number, reduce_dtype)
    _write(tensor, dense)


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp | str = ReduceOp.SUM, group: Group | None = None
) -> None:
    """As ``all_reduce``, but the tensor of rank ``dst`` alone is replaced. Moves as much."""
    members = group_of("reduce", group)
    members.place("reduce", "dst", dst)
    check_local("reduce", "tensor", tensor)
    result = tensor.detach().clone()
    all_reduce(result, op, members)
    if get_rank() == dst:
        tensor.detach().copy_(result)


def broadcast(tensor: Tensor, src: int, group: Group | None = None) -> None:
    """Replaces the tensor by that of rank ``src``, of the same size and dtype."""
    members = group_of("broadcast", group)
    root = members.place("broadcast", "src", src)
    check_local("broadcast", "tensor", tensor)
    dense = _dense(tensor)
    members.communicator(tensor.device.type).broadcast(dense, root)
    if members.rank != root:
        _write(tensor, dense)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Group | None = None) -> None:
    """Writes each rank's tensor into the list, which has one of that rank's size for each."""
    members = group_of("all_gather", group)
    check_list("all_gather", "tensor_list", tensor_list, members)
    check_local("all_gather", "tensor", tensor)
    for t in tensor_list:
        _like("all_gather", "tensor_list", t, tensor)
    mine = tensor_list[members.rank]
    if mine.numel() != tensor.numel():
        raise ValueError(
            f"all_gather(): tensor_list[{members.rank}] has shape {list(mine.shape)}, but this "
            f"rank's tensor {list(tensor.shape)}"
        )
    counts = [t.numel() for t in tensor_list]
    out = tensor.detach().new_empty(sum(counts))
    members.communicator(tensor.device.type).all_gather(_dense(tensor), out, counts)
    _deal_out(out, tensor_list)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group | None = None
) -> None:
    """Writes the ranks' tensors one after another into one.

    They are all of one size, or the parts of the output's first dim, as even as can be, the first
    parts larger.
    """
    name = "all_gather_into_tensor"
    members = group_of(name, group)
    check_local(name, "output_tensor", output_tensor)
    check_local(name, "input_tensor", input_tensor)
    _like(name, "input_tensor", input_tensor, output_tensor)
    counts = _shards(name, output_tensor, input_tensor, "output_tensor and input_tensor", members)
    out = _dense(output_tensor)
    members.communicator(out.device.type).all_gather(_dense(input_tensor), out, counts)
    _write(output_tensor, out)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp | str = ReduceOp.SUM,
    group: Group | None = None,
    *,
    reduce_dtype: dtype | None = None,
) -> None:
    """Writes into each rank's output the sum, over the ranks, of what their lists have for it."""
    members = group_of("reduce_scatter", group)
    check_local("reduce_scatter", "output", output)
    check_list("reduce_scatter", "input_list", input_list, members)
    for t in input_list:
        _like("reduce_scatter", "input_list", t, output)
    mine = input_list[members.rank]
    if mine.numel() != output.numel():
        raise ValueError(
            f"reduce_scatter(): input_list[{members.rank}] has shape {list(mine.shape)}, but the "
            f"output {list(output.shape)}"
        )
    counts = [t.numel() for t in input_list]
    _reduce_scatter(
        "reduce_scatter", output, _joined(input_list), counts, op, members, reduce_dtype
    )


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    group: Group | None = None,
    *,
    reduce_dtype: dtype | None = None,
) -> None:
    """Writes into each rank's output its part of the sum of ``input`` over the ranks.

    Parts are as in ``all_gather_into_tensor``.
    """
    name = "reduce_scatter_tensor"
    members = group_of(name, group)
    check_local(name, "output", output)
    check_local(name, "input", input)
    _like(name, "input", input, output)
    counts = _shards(name, input, output, "input and output", members)
    _reduce_scatter(name, output, _dense(input), counts, op, members, reduce_dtype)


def _reduce_scatter(
    name: str,
    output: Tensor,
    dense: Tensor,
    counts: list[int],
    op: ReduceOp | str,
    members: Group,
    reduce_dtype: dtype | None,
) -> None:
    number = _engine_op(name, op, output)
    out = _dense(output)
    members.communicator(out.device.type).reduce_scatter(dense, out, counts, number, reduce_dtype)
    _write(output, out)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Group | None = None,
) -> None:
    """Sends each rank the tensor that the input list has for it; sizes may differ."""
    members = group_of("all_to_all", group)
    check_list("all_to_all", "output_tensor_list", output_tensor_list, members)
    check_list("all_to_all", "input_tensor_list", input_tensor_list, members)
    for t in (*input_tensor_list, *output_tensor_list):
        _like("all_to_all", "a tensor", t, input_tensor_list[0])
    sent, received = ([t.numel() for t in ts] for ts in (input_tensor_list, output_tensor_list))
    out = input_tensor_list[0].detach().new_empty(sum(received))
    communicator = members.communicator(out.device.type)
    communicator.all_to_all(_joined(input_tensor_list), sent, out, received)
    _deal_out(out, output_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
) -> None:
    """Sends each rank its part of the input's first dim; equal parts where no sizes are given."""
    name = "all_to_all_single"
    members = group_of(name, group)
    check_local(name, "output", output)
    check_local(name, "input", input)
    _like(name, "input", input, output)
    sent = _split(name, "input", input, input_split_sizes, members)
    received = _split(name, "output", output, output_split_sizes, members)
    out = _dense(output)
    members.communicator(out.device.type).all_to_all(_dense(input), sent, out, received)
    _write(output, out)


def _split(
    name: str, argument: str, tensor: Tensor, sizes: Sequence[int] | None, members: Group
) -> list[int]:
    rows = tensor.shape[0] if tensor.ndim else 1
    if sizes is None:
        if rows % members.size:
            raise ValueError(
                f"{name}(): the {argument} has {rows} rows, which do not divide into "
                f"{members.size} equal parts; give {argument}_split_sizes"
            )
        sizes = [rows // members.size] * members.size
    if len(sizes) != members.size or sum(sizes) != rows or min(sizes) < 0:
        raise ValueError(
            f"{name}(): {argument}_split_sizes are {list(sizes)}, but must be {members.size} "
            f"numbers, not negative, with the sum {rows}"
        )
    return [n * (tensor.numel() // max(rows, 1)) for n in sizes]


def _check_list_of_root(
    name: str, argument: str, tensors: Sequence[Tensor] | None, root: str, rank: int, members: Group
) -> None:
    """One rank alone gives a list, with a tensor for each."""
    members.place(name, root, rank)
    if get_rank() == rank:
        if tensors is None:
            raise ValueError(f"{name}(): rank {root} needs a {argument}")
        check_list(name, argument, tensors, members)
    elif tensors:
        raise ValueError(f"{name}(): {argument} is for rank {rank} alone")


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: Group | None = None,
) -> None:
    """Writes each rank's tensor into the list of rank ``dst``; the others give no list."""
    members = group_of("gather", group)
    check_local("gather", "tensor", tensor)
    _check_list_of_root("gather", "gather_list", gather_list, "dst", dst, members)
    with batch(members):
        send(tensor, dst)
        for source, t in zip(members.ranks, gather_list or [], strict=False):
            recv(t, source)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int = 0,
    group: Group | None = None,
) -> None:
    """Writes into each rank's tensor the one that the list of rank ``src`` has for it."""
    members = group_of("scatter", group)
    check_local("scatter", "tensor", tensor)
    _check_list_of_root("scatter", "scatter_list", scatter_list, "src", src, members)
    with batch(members):
        recv(tensor, src)
        for target, t in zip(members.ranks, scatter_list or [], strict=False):
            send(t, target)


def barrier(group: Group | None = None, *, device_type: str = "cpu") -> None:
    """Waits until all ranks of the group have come here.

    Of ``device_type`` "cuda", also until their streams have.
    """
    group_of("barrier", group).communicator(device_type).barrier()


def _bytes(tensor: Tensor) -> bytes:
    return tensor.cpu().numpy().tobytes()


def _on_the_way(values: np.ndarray) -> Tensor:
    """Where an engine takes it from."""
    return _ext.from_numpy(values).to(host_device())


def _check_places(function: str, given: Any) -> None:
    if not isinstance(given, list):
        raise TypeError(f"{function}(): object_list must be a list, not {type(given).__name__}")


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Puts each rank's object into the list, by pickle: ranks trust each other."""
    members = group_of("all_gather_object", group)
    _check_places("all_gather_object", object_list)
    if len(object_list) != members.size:
        raise ValueError(
            f"all_gather_object(): object_list has {len(object_list)} places for {members.size} "
            f"ranks"
        )
    mine = _on_the_way(np.frombuffer(pickle.dumps(obj), np.uint8).copy())
    sizes = _on_the_way(np.zeros(members.size, np.int64))
    all_gather_into_tensor(sizes, _on_the_way(np.array([mine.numel()])), members)
    parts = [mine.new_empty(n) for n in sizes.tolist()]
    all_gather(parts, mine, members)
    object_list[:] = [pickle.loads(_bytes(part)) for part in parts]


def broadcast_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    """Replaces the objects in the list by those of rank ``src``, by pickle."""
    members = group_of("broadcast_object_list", group)
    _check_places("broadcast_object_list", object_list)
    text = pickle.dumps(object_list) if get_rank() == src else b""
    size = _on_the_way(np.array([len(text)]))
    broadcast(size, src, members)
    content = np.zeros(size.item(), np.uint8)
    content[: len(text)] = np.frombuffer(text, np.uint8)
    tensor = _on_the_way(content)
    broadcast(tensor, src, members)
    objects = pickle.loads(_bytes(tensor))
    if len(objects) != len(object_list):
        raise ValueError(
            f"broadcast_object_list(): object_list has {len(object_list)} places, but rank {src} "
            f"sent {len(objects)} objects"
        )
    object_list[:] = objects
