# SPDX-License-Identifier: Apache-2.0
"""How many bytes each way of training moves, before anything runs.

$ python -m oneflow_lite.distributed.plan                    # GPT-2 and a 7B, on 8 and 512 GPUs
$ python -m oneflow_lite.distributed.plan --model 7b --gpus 64

>>> from oneflow_lite.distributed.plan import MODELS, cost
>>> cost(MODELS["7b"], "tensor", 8).sent["all_reduce"]       # bytes per rank and step

A step runs on tensors without data, on a placement of the meta device: the global mode chooses for
each op as it would on GPUs, and the profiler notes what would be sent. No GPU, no other process.
"""

from __future__ import annotations

import argparse
import gc
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import oneflow_lite as flow
from oneflow_lite import Tensor, nn
from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.distributed._planned import Model
from oneflow_lite.models.gpt import PRESETS, Config

MACHINE = 8  # GPUs that are linked closely: tensors are split among these alone
SPLIT, WHOLE = flow.sbp.split, flow.sbp.broadcast


class Job(NamedTuple):
    """A model, and the sequences that each GPU has in a step, in at most so many micro-batches."""

    name: str
    config: Config
    batch: int
    micro_batches: int = 8


MODELS = {
    "gpt2": Job("GPT-2 124M", PRESETS["gpt2"], 8),
    "7b": Job("7B as Llama", Config(32000, 4096, 32, 32, 4096, 11008, llama=True, bias=False), 1),
}
RECIPES = {
    "data": "data parallel",
    "zero1": "ZeRO-1",
    "zero2": "ZeRO-2",
    "tensor": "tensor parallel",
    "sequence": "tensor, sequence-parallel norms",
    "vocabulary": "tensor, vocabulary-parallel head",
    "pipeline": "pipeline",
}


class Plan(NamedTuple):
    """What a rank sends in a step, by collective, and what it holds; bytes.

    ``gradients`` are those after backward, ``optimizer`` the numbers that it keeps, ``peak`` is the
    most that tensors hold at once. Of a pipeline the largest of each over its stages, but what is
    sent is that of the stage that sends most.
    """

    grid: tuple[int, ...]
    sent: dict[str, float]
    calls: int
    parameters: float
    gradients: float
    optimizer: float
    peak: float

    @property
    def total(self) -> float:
        """All that a rank sends."""
        return sum(self.sent.values())


class _Layout(NamedTuple):
    """A placement: a line that splits the batch, or groups that split tensors as well."""

    placement: flow.placement
    groups: bool

    def every(self, inner: Any = WHOLE, outer: Any = WHOLE) -> list[Any]:
        """One SBP per dim of the grid; the inner one is the group's."""
        return [outer, inner] if len(self.placement.shape) == 2 else [inner]

    def activations(self, inner: Any = WHOLE) -> list[Any]:
        """The batch split over the groups; each group's part as said."""
        return self.every(inner, SPLIT(0)) if self.groups else [SPLIT(0)]


def _layout(job: Job, recipe: str, gpus: int) -> _Layout:
    """Groups for what splits tensors: as many GPUs of a machine as divide the heads."""
    ranks = list(range(gpus))
    if recipe in ("data", "zero1", "zero2"):
        return _Layout(flow.placement("meta", ranks), groups=False)
    c = job.config
    size = math.gcd(min(gpus, MACHINE), c.kv_heads or c.heads)
    if size == gpus:
        return _Layout(flow.placement("meta", ranks), groups=True)
    grid = [ranks[i : i + size] for i in range(0, gpus, size)]
    return _Layout(flow.placement("meta", grid), groups=True)


def _split_layers(model: Model, layout: _Layout, recipe: str) -> None:
    """Products by rows, then by columns; what goes in and comes out is whole, or split by tokens.

    Left to itself, each op would take what sends least for it alone: gathered weights, where those
    are smaller than the activations.
    """
    rows, columns = layout.every(SPLIT(0)), layout.every(SPLIT(1))
    whole, between = layout.activations(), layout.activations()
    if recipe == "sequence":
        between = layout.activations(SPLIT(1))
    if model.token is not None:
        _pin(model.token, None, between)
    for block in model.blocks:
        attention, mlp = block.attention, block.mlp
        for layer in (attention.q, attention.k, attention.v, mlp.up, mlp.gate):
            if layer is not None:
                layer.to_global(sbp=rows)
        for layer in (attention.out, mlp.down):
            layer.weight.data = layer.weight.data.to_global(sbp=columns)
        for layer in (attention, mlp):
            _pin(layer, whole, between)
    if recipe == "sequence" and model.head is not None:  # by sequences: the loss is one of rows
        _pin(model.head, layout.activations(SPLIT(0)), None)
    if recipe == "vocabulary" and model.head is not None:
        model.head.weight.data = model.head.weight.data.to_global(sbp=rows)
        _pin(model.head, whole, None)


def _pin(layer: nn.Module, inside: Any, outside: Any) -> None:
    """How activations and their gradients lie within a layer, and on both sides of it.

    None: as they come.
    """

    def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        x = args[0].to_global(sbp=inside, grad_sbp=outside or inside)
        return (x, *args[1:])

    def after(_: nn.Module, args: tuple[Any, ...], y: Any) -> Any:
        return y.to_global(sbp=outside, grad_sbp=inside)

    if inside is not None:
        layer.register_forward_pre_hook(before)
    if outside is not None:
        layer.register_forward_hook(after)


class _Zero:
    """A step of AdamW whose state is split over all ranks: reduce_scatter, step, all_gather."""

    def __init__(self, model: Model, early: bool) -> None:
        self.parameters = list(model.parameters())
        self.parts = [p.detach().to_global(sbp=SPLIT(0)).requires_grad_() for p in self.parameters]
        self.optimizer = flow.optim.AdamW(self.parts, master_weights=True)
        if early:  # ZeRO-2: a gradient is scattered as soon as it is there
            for p in self.parameters:
                p.register_hook(lambda g: g.to_global(sbp=SPLIT(0)))

    def step(self) -> None:
        for p, part in zip(self.parameters, self.parts, strict=True):
            part.grad = p.grad.to_global(sbp=SPLIT(0))
            p.grad = None
        self.optimizer.step()
        self.optimizer.zero_grad()
        with flow.no_grad():
            for p, part in zip(self.parameters, self.parts, strict=True):
                p.copy_(part.detach().to_global(sbp=WHOLE))


def _bytes(tensors: Any) -> float:
    """What this rank holds of them."""
    shards = {id(t): t.to_local() if t.is_global else t for t in tensors}
    return float(sum(t.numel() * t.element_size() for t in shards.values()))


def _state(optimizer: Any) -> float:
    """What this rank holds of an optimizer's numbers."""
    tensors = (t for state in optimizer.state.values() for t in state.values())
    return _bytes(t for t in tensors if isinstance(t, Tensor) and t.ndim > 0)


class _Meter:
    """The memory of the meta device above what it was."""

    def __init__(self) -> None:
        gc.collect()
        self._before = _ext.meta_memory(True)[0]

    def peak(self) -> float:
        return float(_ext.meta_memory()[1] - self._before)


def _sent(profile: flow.profiler.profile) -> tuple[defaultdict[str, float], int]:
    """Bytes by collective, and how many calls."""
    stats = profile.stats("collective")
    return defaultdict(float, {s.name: s.bytes for s in stats}), sum(s.calls for s in stats)


def _backward(model: Model, ids: Tensor) -> None:
    logits = model(ids)
    flat = logits.view(-1, logits.shape[-1])
    loss = nn.functional.cross_entropy(flat, ids.view(-1), inplace_backward=True)
    del logits, flat
    loss.backward()


def _whole_model(job: Job, recipe: str, gpus: int) -> Plan:
    """A step in which each rank goes through all layers."""
    layout, meter = _layout(job, recipe, gpus), _Meter()
    model = Model(job.config).bfloat16().to_global(layout.placement, layout.every())
    if recipe in ("tensor", "sequence", "vocabulary"):
        _split_layers(model, layout, recipe)
    optimizer: Any
    if recipe.startswith("zero"):
        optimizer = _Zero(model, early=recipe == "zero2")
    else:
        optimizer = flow.optim.AdamW(model.parameters(), master_weights=True)
    spread = layout.activations(SPLIT(1)) if recipe == "sequence" else layout.activations()
    ids = flow.zeros(job.batch * gpus, job.config.length, dtype=flow.int64,
                     placement=layout.placement, sbp=spread)  # fmt: skip
    with flow.profiler.profile() as profile:
        _backward(model, ids)
        gradients = _bytes(p.grad for p in model.parameters())
        optimizer.step()
    sent, calls = _sent(profile)
    state = _state(optimizer.optimizer if recipe.startswith("zero") else optimizer)
    return Plan(tuple(layout.placement.shape), dict(sent), calls, _bytes(model.parameters()),
                gradients, state, meter.peak())  # fmt: skip


def _micro_batches(job: Job, stages: int) -> int:
    """How many a pipeline has: the most that divide its sequences evenly."""
    sequences = job.batch * stages
    return max(n for n in range(1, job.micro_batches + 1) if sequences % n == 0)


def _stage(job: Job, gpus: int, stage: int, stages: int) -> Plan:
    """A step of one stage: as many micro-batches under way as 1F1B has there."""
    c, micro_batches = job.config, _micro_batches(job, stages)
    micro = job.batch * stages // micro_batches
    sizes = [c.layers // stages + (i < c.layers % stages) for i in range(stages)]
    first = sum(sizes[:stage])
    meter = _Meter()
    placement = flow.placement("meta", list(range(stage, gpus, stages)))
    model = Model(c, first, first + sizes[stage]).bfloat16().to_global(placement, WHOLE)
    optimizer = flow.optim.AdamW(model.parameters(), master_weights=True)
    rows = micro * len(placement.ranks)
    ids = flow.zeros(rows, c.length, dtype=flow.int64, placement=placement, sbp=SPLIT(0))

    def forward() -> tuple[Any, Any]:
        x = ids
        if not model.begins:
            x = flow.zeros(rows, c.length, c.width, dtype=flow.bfloat16, placement=placement,
                           sbp=SPLIT(0), requires_grad=True)  # fmt: skip
        y = model(x)
        if model.ends:
            y = nn.functional.cross_entropy(y.view(-1, c.vocab), ids.view(-1))
        return x, y

    with flow.profiler.profile() as profile:
        under_way = [forward() for _ in range(min(micro_batches, stages - stage))]
        while under_way:
            _, y = under_way.pop(0)
            y.backward(flow.ones_like(y))
        gradients = _bytes(p.grad for p in model.parameters())
        optimizer.step()
    sent, calls = _sent(profile)
    edge = 2.0 * micro * c.length * c.width  # bytes of one micro-batch between two stages
    sent["send"] += edge * micro_batches * ((not model.begins) + (not model.ends))
    calls += micro_batches * ((not model.begins) + (not model.ends))
    if model.begins != model.ends and not c.llama:  # one weight at both ends
        sent["all_reduce"] += 2.0 * c.vocab * c.width
        calls += 1
    grid = (stages,) if gpus == stages else (gpus // stages, stages)
    return Plan(grid, dict(sent), calls, _bytes(model.parameters()), gradients, _state(optimizer),
                meter.peak())  # fmt: skip


def cost(job: Job, recipe: str, gpus: int) -> Plan:
    """What one way of training sends and holds, on so many GPUs.

    Parameters
    ----------
    job : Job
        One of ``MODELS``, or another.
    recipe : str
        A key of ``RECIPES``.
    gpus : int
        At most 8 in one machine; beyond that whole machines of 8.

    Raises
    ------
    ValueError
        No such recipe, GPUs that are no whole number of machines, or a job without sequences.
    """
    if recipe not in RECIPES:
        raise ValueError(f"plan: recipe is {recipe!r}, but must be one of {', '.join(RECIPES)}")
    if gpus < 1 or (gpus > MACHINE and gpus % MACHINE):
        raise ValueError(
            f"plan: gpus is {gpus}, but must be 1 to {MACHINE} or a multiple of {MACHINE}"
        )
    for name in ("batch", "micro_batches"):
        if getattr(job, name) < 1:
            raise ValueError(f"plan: {name} is {getattr(job, name)}, but must be at least 1")
    if recipe != "pipeline":
        return _whole_model(job, recipe, gpus)
    stages = min(gpus, MACHINE, job.config.layers)
    plans = [_stage(job, gpus, i, stages) for i in sorted({0, 1 % stages, stages - 1})]
    most = max(plans, key=lambda p: p.total)
    return most._replace(
        parameters=max(p.parameters for p in plans), gradients=max(p.gradients for p in plans),
        optimizer=max(p.optimizer for p in plans), peak=max(p.peak for p in plans),
    )  # fmt: skip


COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send")


def _amount(nbytes: float) -> str:
    """Three digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            value = nbytes / size
            return f"{value:.{2 - min(2, math.floor(math.log10(value)))}f} {unit}"
    return f"{nbytes:.0f} B" if nbytes else "0"


def table(jobs: Sequence[Job], gpus: Sequence[int]) -> str:
    """All recipes as tables in Markdown, one for each model and number of GPUs."""
    parts = []
    for job in jobs:
        for count in gpus:
            tokens = job.batch * job.config.length
            parts.append(f"{job.name}, {count} GPUs, {tokens:,} tokens a GPU and step:\n")
            head = ["recipe", "grid", "sends", *COLLECTIVES]
            head += ["parameters", "gradients", "optimizer", "peak"]
            parts.append(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
            for recipe, title in RECIPES.items():
                p = cost(job, recipe, count)
                cells = [title, " × ".join(map(str, p.grid)), _amount(p.total)]
                cells += [_amount(p.sent.get(name, 0)) for name in COLLECTIVES]
                held = (p.parameters, p.gradients, p.optimizer, p.peak)
                cells += [_amount(nbytes) for nbytes in held]
                parts.append(f"| {' | '.join(cells)} |")
            parts.append("")
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m oneflow_lite.distributed.plan",
        description="The bytes that each way of training sends, per rank and step, and holds.",
    )
    parser.add_argument("--model", choices=list(MODELS), action="append")
    parser.add_argument("--gpus", type=int, nargs="+", default=[8, 512])
    parser.add_argument("--page", help="a page to write the tables into, from the first one on")
    options = parser.parse_args(arguments)
    text = table([MODELS[name] for name in options.model or MODELS], options.gpus)
    if options.page is None:
        print(text, end="")
        return
    page = Path(options.page)
    before, mark, _ = page.read_text(encoding="utf-8").partition(MODELS["gpt2"].name)
    if not mark:
        parser.error(f"{page} has no table that begins with {MODELS['gpt2'].name!r}")
    page.write_text(before + text, encoding="utf-8")


if __name__ == "__main__":
    main()
