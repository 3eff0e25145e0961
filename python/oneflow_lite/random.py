# SPDX-License-Identifier: Apache-2.0
"""The default generators: seeds, and states that can be kept and taken up again.

>>> state = flow.get_rng_state()  # may be saved with a checkpoint
>>> x = flow.rand(3)
>>> flow.set_rng_state(state)
>>> flow.equal(flow.rand(3), x)
True
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import Generator, Tensor, device, from_numpy, uint8
from oneflow_lite._process import manual_seed

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

_BYTES = 16  # the seed and the place in its sequence, two numbers of 64 bits


def state_of(self: Generator) -> Tensor:
    """The state as a tensor of bytes on the CPU: 16 numbers of uint8, for ``set_state``."""
    return from_numpy(np.array(self._get_state(), dtype="<u8").view(np.uint8))


def take_up(name: str, generator: Generator, state: Tensor) -> None:
    """Lets a generator go on from a state; ``name`` is the function's, for the errors."""
    if not isinstance(state, Tensor):
        raise TypeError(f"{name}(): new_state must be a Tensor, not {type(state).__name__}")
    if state.dtype is not uint8 or state.shape != (_BYTES,):
        raise ValueError(f"{name}(): new_state must be what get_rng_state() gave, {_BYTES} numbers "
                         f"of uint8, not a tensor of shape {list(state.shape)} and dtype "
                         f"{state.dtype}")  # fmt: skip
    first, place = state.cpu().numpy().view("<u8").tolist()
    generator._set_state((first, place))


def set_state(self: Generator, new_state: Tensor | tuple[int, int]) -> None:
    """Goes on from a state that ``get_state`` gave, or from a seed and a place in its sequence.

    Raises
    ------
    TypeError, ValueError
        It is none.
    """
    if isinstance(new_state, tuple | list) and len(new_state) == 2:
        self._set_state(tuple(new_state))
    else:
        take_up("set_state", self, new_state)


def _rebuilt(where: str, state: tuple[int, int]) -> Generator:
    generator = Generator(where)
    generator._set_state(state)
    return generator


def _reduced(self: Generator) -> tuple[Any, ...]:
    """A copy, or what a pickle brings back, has numbers of its own that begin where these are."""
    return _rebuilt, (str(self.device), self._get_state())


def _seed(self: Generator) -> int:
    """Seeds it by chance; gives the seed."""
    return self.manual_seed(drawn_seed()).initial_seed()


for _method, _name in ((_reduced, "__reduce__"), (state_of, "get_state"), (set_state, "set_state"),
                       (_seed, "seed")):  # fmt: skip
    _method.__name__, _method.__qualname__ = _name, f"Generator.{_name}"
    setattr(Generator, _name, _method)


def get_rng_state() -> Tensor:
    """The state of the CPU's default generator: 16 numbers of uint8."""
    return state_of(_ext.default_generator("cpu"))


def set_rng_state(new_state: Tensor) -> None:
    """Goes on from a state of the CPU's default generator.

    Raises
    ------
    TypeError, ValueError
        It is nothing that :func:`get_rng_state` gave.
    """
    take_up("set_rng_state", _ext.default_generator("cpu"), new_state)


def initial_seed() -> int:
    """The seed of the CPU's default generator."""
    return _ext.default_generator("cpu").initial_seed()


def drawn_seed() -> int:
    """A seed that nobody can tell beforehand."""
    return int.from_bytes(os.urandom(8), "little")


def seed() -> int:
    """Seeds the generators of all devices by chance; gives the seed."""
    return manual_seed(drawn_seed()).initial_seed()


@contextmanager
def fork_rng(
    devices: Iterable[int | str | device] | None = None,
    enabled: bool = True,
    device_type: str = "cuda",
) -> Iterator[None]:
    """Within, random numbers are drawn that leave the default generators as they were.

    Parameters
    ----------
    devices : iterable of int, str or device, optional
        The GPUs, by number or as devices, whose generators are kept, too; all where None. The CPU
        is, in any case.
    enabled : bool
        False: nothing is kept.
    device_type : {"cuda", "cpu"}
        With "cpu", the GPUs' are left alone where no devices are given.
    """
    if device_type not in ("cuda", "cpu"):
        raise ValueError(f"fork_rng(): device_type is {device_type!r}, but must be 'cuda' or 'cpu'")
    if not enabled:
        yield
        return
    if devices is None:
        devices = range(_ext.cuda_device_count() if device_type == "cuda" else 0)
    kept = dict.fromkeys(d if isinstance(d, device) else device(d) for d in devices)
    others = [d for d in kept if d.type != "cpu"]
    generators = [_ext.default_generator(d) for d in ("cpu", *others)]
    states = [generator._get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator._set_state(state)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
