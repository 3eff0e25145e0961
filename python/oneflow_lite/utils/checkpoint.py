# SPDX-License-Identifier: Apache-2.0
"""Less memory for more time: what backward needs is computed again instead of being kept.

>>> from oneflow_lite.utils.checkpoint import checkpoint
>>> for block in model.blocks:
...     x = checkpoint(block, x)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite import cuda
from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.amp.autocast_mode import again, in_force
from oneflow_lite.autograd._grad_mode import enable_grad
from oneflow_lite.autograd.graph import saved_tensors_hooks

__all__ = ["checkpoint", "checkpoint_sequential", "get_device_states", "set_device_states"]


class _Recomputed:
    """The tensors that a call saves for backward, by their number, as long as they are needed."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rng: bool
    ) -> None:
        self._call, self._autocast = (function, args, kwargs), in_force()
        given = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        self._versions = [(a, a._version) for a in given]
        self._count = 0
        self._found: dict[int, Tensor] = {}
        devices = {a.device for a in given}
        generators = map(_ext.default_generator, {_ext.device("cpu"), *devices} if rng else ())
        self._states = [(g, g._get_state()) for g in generators]

    def pack(self, x: Tensor) -> int:
        """Only its number is kept."""
        self._count += 1
        return self._count - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self._found:
            self._run()
        return self._found.pop(number)

    def _run(self) -> None:
        found: list[Tensor] = []

        def keep(x: Tensor) -> int:
            found.append(x.detach())
            return len(found) - 1

        for x, version in self._versions:
            if x._version != version:
                raise RuntimeError(f"checkpoint(): an argument of shape {list(x.shape)} was "
                                   f"changed in place since: it is at version {x._version}, but "
                                   f"the function was called with {version}")  # fmt: skip
        function, args, kwargs = self._call
        now = [(g, g._get_state()) for g, _ in self._states]
        for generator, state in self._states:
            generator._set_state(state)
        try:
            with again(self._autocast), enable_grad(), saved_tensors_hooks(keep, found.__getitem__):
                function(*map(_leaf, args), **{name: _leaf(a) for name, a in kwargs.items()})
        finally:
            for generator, state in now:
                generator._set_state(state)
        if len(found) != self._count:
            raise RuntimeError(f"checkpoint(): called again, the function saved {len(found)} "
                               f"tensors, but {self._count} the first time")  # fmt: skip
        self._found = dict(enumerate(found))
        with contextlib.suppress(RuntimeError):  # where no backward is under way
            _ext.after_backward(self._end)

    def _end(self, ended_well: bool) -> None:
        """Drops what the pass did not take, which may be a part of the outputs' alone."""
        self._found = {}


def _leaf(value: Any) -> Any:
    return (
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value
    )


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """What the function gives for the arguments; backward calls it once more for what it needs.

    Called again, it runs under the autocast of the first call.

    Parameters
    ----------
    function : callable
        A module, say. It must compute the same when it is called again.
    use_reentrant : bool, optional
        Taken and without effect: backward is never run within backward.
    preserve_rng_state : bool
        Called again, it gets the same random numbers (of the CPU and of the arguments' devices).

    Raises
    ------
    RuntimeError
        In backward, where the second call saved another number of tensors, or where an argument
        was changed in place, by the function too.
    """
    if not _ext.is_grad_enabled():
        return function(*args, **kwargs)
    again = _Recomputed(function, args, kwargs, preserve_rng_state)
    with saved_tensors_hooks(again.pack, again.unpack):
        return function(*args, **kwargs)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The GPUs that tensors among the arguments are on, and the states of their generators.

    Reversible networks keep them to draw the same numbers again.
    """
    tensors = [a for a in args if isinstance(a, Tensor) and a.is_cuda]
    gpus = list(dict.fromkeys(cast(int, t.device.index) for t in tensors))
    return gpus, [cuda.get_rng_state(gpu) for gpu in gpus]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Goes on from states that :func:`get_device_states` gave."""
    for gpu, state in zip(devices, states, strict=True):
        cuda.set_rng_state(state, gpu)


def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]], segments: int, input: Any, **kwargs: Any
) -> Any:
    """The functions one after the other, in so many parts, each but the last a checkpoint.

    ``functions`` may be an ``nn.Sequential``; ``kwargs`` are those of :func:`checkpoint`.
    """
    steps = list(functions)
    if not 1 <= segments <= len(steps):
        raise ValueError(f"checkpoint_sequential(): segments is {segments}, but it must be in "
                         f"[1, {len(steps)}]")  # fmt: skip

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for step in steps[start:end]:
                x = step(x)
            return x

        return run

    size = len(steps) // segments
    for k in range(segments - 1):
        input = checkpoint(part(k * size, (k + 1) * size), input, **kwargs)
    return part((segments - 1) * size, len(steps))(input)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
