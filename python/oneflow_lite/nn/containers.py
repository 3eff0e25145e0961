# SPDX-License-Identifier: Apache-2.0
"""Modules that hold modules in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from oneflow_lite.nn.module import Module

_Self = TypeVar("_Self", bound="_InOrder")


class _InOrder(Module):
    def append(self: _Self, module: Module) -> _Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(*self._some(list(self._modules)[index]))
        return list(self)[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(list(self._modules)[index], module)


class ModuleList(_InOrder):
    """A list of modules that the model knows of; it has no ``forward``."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds several modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def _some(self, names: list[str]) -> list:
        return [[self._modules[name] for name in names]]


class Sequential(_InOrder):
    """Modules called one after the other, each on the result of the one before.

    Takes the modules, or one dict of named modules.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    """

    def __init__(self, *modules: Module | dict[str, Module]) -> None:
        super().__init__()
        named: dict[str, Any] = {str(i): module for i, module in enumerate(modules)}
        if len(modules) == 1 and isinstance(modules[0], dict):
            named = modules[0]
        for name, module in named.items():
            self.add_module(name, module)

    def forward(self, x: Any) -> Any:
        for module in self._modules.values():
            x = module(x)
        return x

    def _some(self, names: list[str]) -> list:
        return [{name: self._modules[name] for name in names}]
