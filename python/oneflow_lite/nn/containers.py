# SPDX-License-Identifier: Apache-2.0
"""Modules that hold modules in order."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter

_Self = TypeVar("_Self", bound="_InOrder")


def _place(container: Module, index: Any, size: int, what: str) -> int:
    """The place from the front; IndexError where there is none, TypeError for other types."""
    name = type(container).__name__
    try:
        place = operator.index(index)
    except TypeError:
        raise TypeError(f"{name}: an index must be an integer or a slice, not "
                        f"{type(index).__name__}") from None  # fmt: skip
    if not -size <= place < size:
        raise IndexError(f"{name}: index {index} is out of range of its {size} {what}")
    return place % size


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
        return self._modules[self._name_of(index)]

    def _name_of(self, index: int) -> str:
        """IndexError where there is none."""
        names = list(self._modules)
        return names[_place(self, index, len(names), "modules")]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_of(index), module)

    def __delitem__(self, index: int | slice) -> None:
        if not isinstance(index, slice):
            self._name_of(index)
        kept = list(self)
        del kept[index]
        self._replace(kept)

    def insert(self: _Self, index: int, module: Module) -> _Self:
        """Adds a module before the one at a place."""
        modules = list(self)
        modules.insert(index, module)
        self._replace(modules)
        return self

    def pop(self, key: int = -1) -> Any:
        """Takes the module at an index out and gives it."""
        module = self[key]
        del self[key]
        return module

    def extend(self: _Self, modules: Iterable[Module]) -> _Self:
        """Adds several modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def __iadd__(self: _Self, modules: Iterable[Module]) -> _Self:
        return self.extend(modules)

    def __add__(self: _Self, modules: Iterable[Module]) -> _Self:
        return type(self)(*self._some(list(self._modules))).extend(modules)

    def _replace(self, modules: list[Module]) -> None:
        """These modules under the numbers 0, 1, ...; where one is none, all stays."""
        before = dict(self._modules)
        self._modules.clear()
        try:
            self.extend(modules)
        except Exception:
            self._modules.clear()
            self._modules.update(before)
            raise


class ModuleList(_InOrder):
    """A list of modules that the model knows of; it has no ``forward``."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(() if modules is None else modules)

    def _some(self, names: list[str]) -> list:
        return [[self._modules[name] for name in names]]

    def __repr__(self) -> str:
        """Like ones in a row are shown once: ``(0-5): 6 x Linear(...)``."""
        groups = [(text, len(list(like))) for text, like in itertools.groupby(map(repr, self))]
        lines, start = [], 0
        for text, count in groups:
            head = f"({start})" if count == 1 else f"({start}-{start + count - 1}): {count} x"
            lines.append(f"  {head}{':' * (count == 1)} " + text.replace("\n", "\n  "))
            start += count
        return "\n".join([f"{type(self).__name__}(", *lines, ")"]) if lines else "ModuleList()"


class ModuleDict(Module):
    """Modules by name, as a dict; it has no ``forward``.

    Examples
    --------
    >>> layers = nn.ModuleDict({"wte": nn.Embedding(10, 4), "drop": nn.Dropout(0.1)})
    >>> layers["wte"] is layers.wte
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds modules, in place of those of the same names."""
        for name, module in dict(modules).items():
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def pop(self, key: str) -> Any:
        """Takes a module out and gives it."""
        return self._modules.pop(key)

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()


class _Parameters(Module):
    """Values by name: tensors are parameters; others are kept beside them, their place is None."""

    def __init__(self) -> None:
        super().__init__()
        self._plain: dict[str, Any] = {}

    def _put(self, name: str, value: Any) -> None:
        self._plain.pop(name, None)
        if isinstance(value, Tensor):
            given = value if isinstance(value, Parameter) else Parameter(value)
            self.register_parameter(name, given)
        else:
            self.register_parameter(name, None)
            self._plain[name] = value

    def _get(self, name: str) -> Any:
        parameter = self._parameters[name]
        return self._plain.get(name) if parameter is None else parameter

    def _drop(self, name: str) -> Any:
        value = self._get(name)
        del self._parameters[name]
        self._plain.pop(name, None)
        return value

    def _all(self) -> list[Any]:
        return [self._get(name) for name in self._parameters]

    def __len__(self) -> int:
        return len(self._parameters)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({name}): {_described(self._get(name))}" for name in self._parameters)


class ParameterList(_Parameters):
    """A list of parameters that the model knows of; it has no ``forward``.

    A tensor that is no parameter becomes one. What is no tensor, such as None for a layer without
    bias, is kept as it is and is no parameter of the model.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if values is None else values)

    def append(self, value: Any) -> ParameterList:
        """Adds a parameter, or another value, at the end."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds several parameters at the end."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(self._all()[index])
        return self._get(self._name_of(index))

    def _name_of(self, index: int) -> str:
        """IndexError where there is none."""
        return str(_place(self, index, len(self), "parameters"))

    def __setitem__(self, index: int, parameter: Any) -> None:
        self._put(self._name_of(index), parameter)


class ParameterDict(_Parameters):
    """Parameters by name, as a dict, that the model knows of; it has no ``forward``.

    Tensors and other values as in :class:`ParameterList`.
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds parameters, in place of those of the same names.

        Those of a plain dict are added in the order of their names, as in PyTorch: an optimizer's
        state goes by it. An OrderedDict, a ParameterDict and pairs keep their own order.
        """
        keeps_order = not isinstance(parameters, Mapping) or isinstance(
            parameters, OrderedDict | ParameterDict
        )
        given = dict(parameters)
        for name in given if keeps_order else sorted(given):
            self[name] = given[name]

    def __getitem__(self, name: str) -> Any:
        return self._get(name)

    def __setitem__(self, name: str, parameter: Any) -> None:
        """Adds one; a tensor that is no parameter becomes one."""
        self._put(name, parameter)

    def __delitem__(self, name: str) -> None:
        self._drop(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, or ``default`` where there is none."""
        return self._get(key) if key in self._parameters else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of a name; ``default``, which is added, where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Takes a parameter out and gives it."""
        return self._drop(key)

    def popitem(self) -> tuple[str, Any]:
        """Takes the parameter that was added last out and gives it with its name."""
        if not len(self):
            raise KeyError("ParameterDict: there is no parameter to take out")
        name = next(reversed(self._parameters))
        return name, self._drop(name)

    def copy(self) -> ParameterDict:
        """Another one with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new one with these names and ``default`` for each."""
        return ParameterDict(OrderedDict.fromkeys(keys, default))

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._parameters)

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict(OrderedDict([*self.items(), *other.items()]))

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def clear(self) -> None:
        """Takes all parameters out."""
        for name in list(self._parameters):
            self._drop(name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and parameters."""
        return [(name, self._get(name)) for name in self._parameters]

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return self._all()


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    return f"Parameter containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"


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

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def extend(self, sequential: Iterable[Module]) -> Sequential:  # type: ignore[override]
        """Adds several modules at the end."""
        return super().extend(sequential)

    def insert(self, index: int, module: Module) -> Sequential:
        """Adds a module before the one at a place; IndexError where there is none such."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Sequential.insert(): index {index} is out of range "
                             f"[{-len(self)}, {len(self)}]")  # fmt: skip
        return super().insert(index, module)

    def __mul__(self, times: int) -> Sequential:
        """The modules, the same ones, ``times`` times one after the other."""
        return Sequential(*list(self) * _positive(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        self._replace(list(self) * _positive(times))
        return self

    def _some(self, names: list[str]) -> list:
        return [{name: self._modules[name] for name in names}]


def _positive(times: int) -> int:
    if not isinstance(times, int):
        raise TypeError(f"Sequential: it goes with an int, not with a {type(times).__name__}")
    if times <= 0:
        raise ValueError(f"Sequential: {times} times is not at least once")
    return times
