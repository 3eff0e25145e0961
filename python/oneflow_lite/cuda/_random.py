# SPDX-License-Identifier: Apache-2.0
"""The default generators of the GPUs: seeds and states.

Where there is no GPU, seeding does nothing, so that a program need not ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Generator, Tensor, device
from oneflow_lite.random import drawn_seed, state_of, take_up

_Device = device | str | int


def _generator(where: _Device) -> Generator:
    return _ext.default_generator(f"cuda:{where}" if isinstance(where, int) else where)


class _Generators(Sequence[Generator]):
    """The default generators of all GPUs, by their numbers."""

    def __len__(self) -> int:
        return _ext.cuda_device_count()

    def __getitem__(self, index: Any) -> Any:
        return tuple(map(_generator, range(len(self))))[index]

    def __repr__(self) -> str:
        return repr(tuple(self))


default_generators = _Generators()


def manual_seed(seed: int) -> None:
    """Seeds the generator of this thread's current GPU; see also :func:`manual_seed_all`."""
    _ext.Generator().manual_seed(seed)  # a bad seed is an error everywhere
    if _ext.cuda_is_available():
        _generator(_ext.cuda_current_device()).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all GPUs; ``flow.manual_seed`` seeds them and the CPU's."""
    _ext.Generator().manual_seed(seed)
    for gpu in range(_ext.cuda_device_count()):
        _generator(gpu).manual_seed(seed)


def seed() -> None:
    """Seeds the generator of this thread's current GPU by chance."""
    manual_seed(drawn_seed())


def seed_all() -> None:
    """Seeds the generators of all GPUs by chance, with one seed."""
    manual_seed_all(drawn_seed())


def initial_seed() -> int:
    """The seed of the generator of this thread's current GPU."""
    return _generator("cuda").initial_seed()


def get_rng_state(device: _Device = "cuda") -> Tensor:
    """The state of a GPU's default generator: 16 numbers of uint8, on the CPU."""
    return state_of(_generator(device))


def get_rng_state_all() -> list[Tensor]:
    """The states of all GPUs' default generators."""
    return [get_rng_state(gpu) for gpu in range(_ext.cuda_device_count())]


def set_rng_state(new_state: Tensor, device: _Device = "cuda") -> None:
    """Goes on from a state of a GPU's default generator; errors as ``flow.set_rng_state``."""
    take_up("set_rng_state", _generator(device), new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Goes on from states of all GPUs' default generators, in the order of the GPUs."""
    for gpu, state in enumerate(new_states):
        set_rng_state(state, gpu)
