# SPDX-License-Identifier: Apache-2.0
"""Module: parameters, buffers and modules in a tree, and the call that runs them."""

from __future__ import annotations

import copy
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import hint as absent_hint
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._zeroed import zero_gradients
from oneflow_lite.nn._hooks import HookHandle, call_with_hooks
from oneflow_lite.nn._state import Stateful
from oneflow_lite.nn.parameter import Buffer, Parameter
from oneflow_lite.sbp import Sbp
from oneflow_lite.sbp import broadcast as _broadcast

_Self = TypeVar("_Self", bound="Module")


class _PlacedForward:
    """A module's ``forward`` that makes global tensors.

    A copy of the module has it too. A pickled module has the whole parameters, and plain forward.
    The module has this as an attribute, so this must not keep the module.
    """

    def __init__(self, module: Module, placement: _ext.placement) -> None:
        self._module, self.placement = weakref.ref(module), placement

    @property
    def module(self) -> Module:
        module = self._module()
        if module is None:
            raise ReferenceError("forward(): the module that was made global is no more")
        return module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self.module
        with _ext._GlobalScope(self.placement):
            return type(module).forward(module, *args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> _PlacedForward:
        return _PlacedForward(copy.deepcopy(self.module, memo), self.placement)

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain_forward, (self.module,)


def _plain_forward(module: Module) -> Callable[..., Any]:
    return types.MethodType(type(module).forward, module)


_KINDS: dict[str, type] = {"_parameters": Parameter, "_buffers": Tensor}  # and Module, below


class Module(Stateful):
    """A part of a model.

    Subclasses assign parameters and modules to attributes in ``__init__`` and define ``forward``.

    Examples
    --------
    >>> class Classifier(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden, self.out = nn.Linear(64, 128), nn.Linear(128, 10)
    ...
    ...     def forward(self, x):
    ...         return self.out(nn.functional.relu(self.hidden(x)))
    """

    training: bool

    def __init__(self) -> None:
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _modules={}, _pre_hooks={}, _hooks={},
            _backward_hooks={}, _backward_pre_hooks={}, _state_pre_hooks={}, _state_hooks={},
            _load_pre_hooks={}, _load_hooks={},
            _transient=set(),  # the names of buffers that stay out of state_dict
        )  # fmt: skip

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; to be defined by each subclass."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the pre-hooks, ``forward`` and the hooks."""
        if not (self._pre_hooks or self._hooks or self._backward_hooks or self._backward_pre_hooks):
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    def __copy__(self: _Self) -> _Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        placed = self.__dict__.get("forward")
        if isinstance(placed, _PlacedForward):
            made.__dict__["forward"] = _PlacedForward(made, placed.placement)
        return made

    # Attributes. Parameters, buffers and modules live in dictionaries of their own.

    def __getattr__(self, name: str) -> Any:
        for kind in _KINDS:
            found = self.__dict__.get(kind)
            if found is not None and name in found:
                return found[name]
        hint = absent_hint("nn.Module", name)
        text = f"{type(self).__name__} has no attribute {name!r}{hint}"
        raise AttributeError(text, name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter | Module):
            kind = "_parameters" if isinstance(value, Parameter) else "_modules"
            if kind not in fields:
                raise AttributeError(
                    f"{type(self).__name__}: call super().__init__() before assigning {name!r}"
                )
            if name in fields["_parameters"] and kind == "_modules":
                raise TypeError(
                    f"{type(self).__name__}.{name} is registered as a Parameter; it can be set to "
                    "one or to None, not to a module: delete it first"
                )
            if name not in fields[kind]:
                self._forget(name)
            fields[kind][name] = value
            return
        if isinstance(value, Buffer) and "_buffers" in fields:
            self.register_buffer(name, value, value.persistent)
            return
        for kind, cls in _KINDS.items():
            if name in fields.get(kind, ()):
                if value is not None and not isinstance(value, cls):
                    raise TypeError(
                        f"{type(self).__name__}.{name} is registered as a {cls.__name__}; it can "
                        f"be set to one or to None, not to a {type(value).__name__}"
                    )
                fields[kind][name] = value
                return
        object.__setattr__(self, name, value)

    def _get_name(self) -> str:
        """The name of the class, which the repr of others' modules asks for."""
        return type(self).__name__

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def _forget(self, name: str) -> bool:
        fields = self.__dict__
        places = [d for d in (fields, *(fields[kind] for kind in _KINDS)) if name in d]
        for place in places:
            del place[name]
        self._transient.discard(name)
        return bool(places)

    def __dir__(self) -> list[str]:
        named = (*self._parameters, *self._buffers, *self._modules)
        return [*super().__dir__(), *(name for name in named if not name[0].isdigit())]

    def _register(self, kind: str, name: str, value: Any) -> None:
        cls = _KINDS[kind]
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: {name!r} is no name: a string is needed, not "
                            f"a {type(name).__name__}")  # fmt: skip
        if not name or "." in name:
            raise KeyError(f"{type(self).__name__}: {name!r} is no name: it must not be empty and "
                           "have no dots")  # fmt: skip
        if value is not None and not isinstance(value, cls):
            raise TypeError(f"{type(self).__name__}: {name!r} must be a {cls.__name__}, not "
                            f"a {type(value).__name__}")  # fmt: skip
        if name not in self.__dict__[kind] and hasattr(self, name):
            raise KeyError(f"{type(self).__name__} already has an attribute {name!r}")
        self.__dict__[kind][name] = value

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under a name; None keeps the place for one that is absent."""
        self._register("_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the state but is not learned.

        With ``persistent=False`` it moves with the module but stays out of ``state_dict``.
        """
        self._register("_buffers", name, tensor)
        change = self._transient.discard if persistent else self._transient.add
        change(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module under a name.

        Raises
        ------
        TypeError
            The name is no string; what is added is no module.
        KeyError
            The name is empty, has a dot or is that of an attribute already. All of this holds for
            ``register_parameter`` and ``register_buffer`` too.
        """
        self._register("_modules", name, module)

    register_module = add_module

    # The tree. What is reachable twice is given once.

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Name and module of this module (named ``prefix``) and of all below, in order.

        Those in ``memo`` are left out, and those given are put into it; without
        ``remove_duplicate`` a module comes once for each of its places.
        """
        seen = set() if memo is None else memo
        waiting: list[tuple[str, Module, tuple[Module, ...]]] = [(prefix, self, ())]
        while waiting:
            path, module, above = waiting.pop()
            if module in seen:
                continue
            if remove_duplicate:
                seen.add(module)
            elif any(module is m for m in above):
                raise RuntimeError(f"named_modules(): {path} is a {type(module).__name__} that "
                                   "contains itself")  # fmt: skip
            yield path, module
            dot = path + "." if path else ""
            inside = () if remove_duplicate else (*above, module)
            for name, below in reversed(module._modules.items()):
                if below is not None:
                    waiting.append((dot + name, below, inside))

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """All modules, this one first; one that is there twice comes once, or each time."""
        named = self.named_modules(remove_duplicate=remove_duplicate)
        return (module for _, module in named)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Name and module of those directly below."""
        first = {id(m): name for name, m in reversed(self._modules.items())}
        return ((name, m) for name, m in self._modules.items()
                if m is not None and first[id(m)] == name)  # fmt: skip

    def get_submodule(self, target: str) -> Module:
        """The module below by its path, such as ``"blocks.0.attn"``; AttributeError without one."""
        found: Module = self
        for name in filter(None, target.split(".")):
            at, found = found, getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"{type(at).__name__}.{name} is no Module")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module in the place of the one with this path, such as ``"blocks.0.attn"``.

        Without ``strict`` the last name of the path may be a new one.

        Raises
        ------
        AttributeError
            No module is on the way, or what is at the place is none.
        TypeError
            What is given is no module.
        """
        if not isinstance(module, Module):
            raise TypeError(f"set_submodule(): module must be a Module, not "
                            f"{type(module).__name__}")  # fmt: skip
        path, _, name = target.rpartition(".")
        above = self.get_submodule(path)
        if not isinstance(getattr(above, name, None if strict else module), Module):
            raise AttributeError(f"{type(above).__name__} has no module {name!r}")
        above.add_module(name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter by its path, ``"blocks.0.attn.weight"``; AttributeError without one."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"{type(module).__name__}.{name} is no Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer by its path, such as ``"blocks.0.attn.mask"``; AttributeError without one."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"{type(module).__name__} has no buffer {name!r}")
        return module._buffers[name]

    def children(self) -> Iterator[Module]:
        """The modules directly below."""
        return (module for _, module in self.named_children())

    def _named(
        self, kind: str, prefix: str, recurse: bool, once: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        places = self.named_modules(None, prefix, once) if recurse else [(prefix, self)]
        for path, module in places:
            for name, tensor in module.__dict__[kind].items():
                if tensor is None or (once and id(tensor) in seen):
                    continue
                seen.add(id(tensor))
                yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Name and parameter, such as ``("0.weight", ...)``; those below too if ``recurse``."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, for an optimizer."""
        return (parameter for _, parameter in self.named_parameters("", recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Name and tensor of the buffers."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        return (buffer for _, buffer in self.named_buffers("", recurse))

    # Changes of the whole tree; each gives the module itself back.

    def train(self: _Self, mode: bool = True) -> _Self:
        """Sets ``training`` of this module, and calls ``train`` of those directly below.

        A subclass may define ``train``, to merge its weights say: it is called wherever it is.
        """
        if not isinstance(mode, bool):
            raise ValueError(f"train(): mode must be True or False, not {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: _Self) -> _Self:
        """The same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self: _Self, requires_grad: bool = True) -> _Self:
        """Freezes or frees all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or fills them with zeros."""
        zero_gradients(self.parameters(), set_to_none)

    def apply(self: _Self, fn: Callable[[Module], None]) -> _Self:
        """Calls the function on all modules below and then on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self: _Self, *args: Any, **kwargs: Any) -> _Self:
        """Moves parameters and buffers to a device, a dtype or both, in place.

        The arguments are those of ``Tensor.to``; a dtype changes only floating tensors. Parameters
        stay the same objects, so an optimizer made before still holds them.
        """

        def moved(x: Tensor) -> Tensor:
            y = x.detach().to(*args, **kwargs)
            if not x.dtype.is_floating_point:
                return x.detach().to(y.device)
            if not y.dtype.is_floating_point:
                raise _ext.DTypeError(f"{type(self).__name__}.to(): dtype is {y.dtype.name}, but "
                                      "it must be a floating dtype")  # fmt: skip
            return y

        self._apply(moved)
        return self

    def _apply(self: _Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> _Self:
        """Puts ``fn`` of each parameter, buffer and gradient in its place.

        A tensor for which ``fn`` raises keeps its data and its gradient. What moves a module calls
        it, and that of a module below which a published layer has overridden.
        """
        if recurse and any(type(m)._apply is not Module._apply for m in self.modules()):
            for module in self.children():
                module._apply(fn)
            recurse = False
        for tensor in (*self.parameters(recurse), *self.buffers(recurse)):
            data = fn(tensor)
            grad = None if tensor.grad is None else fn(tensor.grad)
            tensor.grad = None
            tensor.data = data
            tensor.grad = grad
        return self

    def to_global(
        self: _Self, placement: _ext.placement | None = None,
        sbp: Sbp | Sequence[Sbp] | None = None,
    ) -> _Self:  # fmt: skip
        """Makes parameters and buffers global, in place, or brings them to another SBP.

        Local ones must hold the same values on every rank; each rank keeps its part of them. What
        ``forward`` makes from then on (``flow.arange``, ``flow.zeros``) is global, too.
        Parameters stay the same objects, so an optimizer made before still holds them, but not the
        state it has.

        Parameters
        ----------
        placement : flow.placement, optional
            The ranks. Left out: where each tensor is, which must be global then.
        sbp : flow.sbp.Sbp or a sequence of them, optional
            For each dim of the placement how the tensors lie there. Left out: as they do.
        """

        def moved(x: Tensor) -> Tensor:
            x = x.detach()
            if x.is_global:
                return x.to_global(placement, sbp)
            if placement is None or sbp is None:
                raise TypeError(f"{type(self).__name__}.to_global(): local parameters need a "
                                "placement and an sbp")  # fmt: skip
            whole = [_broadcast] * len(placement.shape)
            return x.to_global(placement, whole).to_global(placement, sbp)

        self._apply(moved)
        if placement is not None:
            self.forward = _PlacedForward(self, placement)
        return self

    def cpu(self: _Self) -> _Self:
        """Moves everything to the host."""
        return self.to("cpu")

    def cuda(self: _Self, device: _ext.device | str | int | None = None) -> _Self:
        """Moves everything to a GPU, by default the current one."""
        return self.to("cuda" if device is None else device)

    def to_empty(self: _Self, *, device: _ext.device | str, recurse: bool = True) -> _Self:
        """Moves everything to a device without its values: memory for a model made on "meta"."""
        for tensor in (*self.parameters(recurse), *self.buffers(recurse)):
            tensor.grad = None
            tensor.data = _C.empty_like(tensor, device=device)
        return self

    def type(self: _Self, dst_type: _ext.dtype | str) -> _Self:
        """Makes all parameters and buffers of a dtype, integer ones too, as ``Tensor.type`` does.

        Raises
        ------
        DTypeError
            A parameter requires a gradient, and the dtype is of no floats.
        """
        return self._apply(lambda x: x.detach().type(dst_type))

    def float(self: _Self) -> _Self:
        """Makes floating parameters and buffers float32."""
        return self.to(_ext.float32)

    def double(self: _Self) -> _Self:
        """Makes floating parameters and buffers float64."""
        return self.to(_ext.float64)

    def half(self: _Self) -> _Self:
        """Makes floating parameters and buffers float16."""
        return self.to(_ext.float16)

    def bfloat16(self: _Self) -> _Self:
        """Makes floating parameters and buffers bfloat16."""
        return self.to(_ext.bfloat16)

    # Hooks.

    @property
    def _forward_hooks(self) -> dict[HookHandle, Callable]:
        return self._hooks

    @property
    def _forward_pre_hooks(self) -> dict[HookHandle, Callable]:
        return self._pre_hooks

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Calls ``hook(module, args)`` before ``forward``; a result replaces the arguments.

        With ``with_kwargs`` it is ``hook(module, args, kwargs)``, which gives both or None; with
        ``prepend`` it comes before the hooks that are there.
        """
        return HookHandle(self._pre_hooks, hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Calls ``hook(module, args, result)`` after ``forward``; a result replaces the result.

        With ``with_kwargs`` it is ``hook(module, args, kwargs, result)``; with ``always_call`` it
        is called (with None) where something before it raised, too.
        """
        return HookHandle(self._hooks, hook, prepend, with_kwargs, always_call)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> HookHandle:
        """Calls ``hook(module, grad_input, grad_output)`` in backward, with tuples of gradients.

        They are those of the arguments by place (None for what has none) and of the results. What
        the hook gives replaces ``grad_input``.
        """
        return HookHandle(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> HookHandle:
        """Calls ``hook(module, grad_output)`` in backward, before the backward of this module.

        What the hook gives replaces the gradients of the results.
        """
        return HookHandle(self._backward_pre_hooks, hook, prepend)

    # Text.

    def extra_repr(self) -> str:
        """What stands in the parentheses of ``repr``; for subclasses to define."""
        return ""

    def __repr__(self) -> str:
        lines = self.extra_repr().splitlines()
        below = [f"({name}): " + repr(module).replace("\n", "\n  ")
                 for name, module in self._modules.items()]  # fmt: skip
        if not below and len(lines) < 2:
            return f"{type(self).__name__}({''.join(lines)})"
        return f"{type(self).__name__}(\n  " + "\n  ".join([*lines, *below]) + "\n)"


_KINDS["_modules"] = Module
