# SPDX-License-Identifier: Apache-2.0
"""Optimizer: parameter groups, their options, and the state that is kept per parameter."""

from __future__ import annotations

import copy
import difflib
import numbers
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from oneflow_lite._numbers import check_number
from oneflow_lite._oneflow_lite import _C, Tensor, device, float64
from oneflow_lite._warnings import warn
from oneflow_lite._zeroed import zero_gradients
from oneflow_lite.autograd._grad_mode import enable_grad, no_grad
from oneflow_lite.cuda import current_stream
from oneflow_lite.optim._hooks import (
    Hooked,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook",
           "required"]  # fmt: skip


class _Required:
    def __repr__(self) -> str:
        return "required"

    def __reduce__(self) -> str:
        return "required"  # a copy is the same object


required = _Required()  # among the defaults: an option that every group must give


def is_captured(tensors: Iterable[Tensor]) -> bool:
    """Whether work on the devices of these tensors is captured into a CUDA graph now."""
    gpus = {t.device.index for t in tensors if t.is_cuda}
    return any(current_stream(gpu).capturing for gpu in gpus)


_graphed = threading.local()


@contextmanager
def in_graphed_step(seen: list[Optimizer]) -> Iterator[None]:
    """A context in which optimizers step as a graph's replay is to: each is put into the list."""
    before = getattr(_graphed, "seen", None)
    _graphed.seen = seen
    try:
        yield
    finally:
        _graphed.seen = before


def note_graphed(optimizer: Optimizer) -> None:
    """Notes who steps in a graph's capture, for :func:`in_graphed_step`."""
    seen = getattr(_graphed, "seen", None)
    if seen is not None and all(other is not optimizer for other in seen):
        seen.append(optimizer)


def check_numbers(name: str, group: dict[str, Any], options: tuple[str, ...]) -> None:
    """TypeError where one of the options of a group is no number."""
    for option in options:
        check_number(f"{name}()", option, group[option], tensors=True)


def check_not_negative(name: str, group: dict[str, Any], options: tuple[str, ...]) -> None:
    """ValueError where one of the options of a group is negative or NaN."""
    check_numbers(name, group, options)
    for option in options:
        if not group[option] >= 0:
            raise ValueError(f"{name}(): {option} is {group[option]}; it must not be negative")


def check_betas(name: str, group: dict[str, Any]) -> None:
    """ValueError where the betas of a group are not two numbers in [0, 1)."""
    betas = group["betas"]
    if not isinstance(betas, tuple | list):
        raise TypeError(f"{name}(): betas must be a pair of numbers, not {type(betas).__name__}")
    if wrong := [b for b in betas if not isinstance(b, numbers.Real | Tensor)]:
        raise TypeError(f"{name}(): betas must be a pair of numbers, but one is "
                        f"{type(wrong[0]).__name__}")  # fmt: skip
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise ValueError(f"{name}(): betas are {betas}; they must be two numbers in [0, 1)")


def is_state(given: Any) -> bool:
    """Whether it looks like what state_dict() gives."""
    if not isinstance(given, dict) or not isinstance(given.get("state"), dict):
        return False
    groups = given.get("param_groups")
    return (
        isinstance(groups, list)
        and all(isinstance(g, dict) and isinstance(g.get("params"), list) for g in groups)
        and all(isinstance(kept, dict | None) for kept in given["state"].values())
    )


def _copied(value: Any, to: device) -> Any:
    """A copy of its own, with the tensors in it on a device."""
    if isinstance(value, Tensor):
        return value.detach().to(to).clone()
    if isinstance(value, dict):
        return {key: _copied(item, to) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(item, to) for item in value)
    return copy.deepcopy(value)


def _has_name(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _named(call: str, given: Any) -> tuple[list[str], list[Any]]:
    """The names of a group's parameters, of which all or none have one, and the parameters."""
    if isinstance(given, set | frozenset):
        raise TypeError(f"{call}: parameters must come in an order, which a set has not")
    items = [given] if isinstance(given, Tensor) else list(given)
    names = [item[0] for item in items if _has_name(item)]
    if names and len(names) != len(items):
        raise ValueError(f"{call}: {len(names)} of {len(items)} parameters have names, but all or "
                         "none must have one")  # fmt: skip
    return names, [item[1] for item in items] if names else items


class Optimizer(Hooked):
    """The base of optimizers; a subclass defines ``update(parameter, grad, group, state)``.

    Or it defines ``update_group(parameters, grads, group)``, for many at once.

    Or it defines ``step`` as a whole, with what it keeps in ``self.state[parameter]``.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        The parameters; or groups, each ``{"params": parameters, option: value, ...}``. Keys of a
        group that are no options are kept, in ``state_dict`` too. The names of parameters that
        come with one, as ``model.named_parameters()`` gives them, are kept as "param_names".
    defaults : dict
        Every option with the value it has where a group does not give it; ``required`` of this
        module where each group must.

    Attributes
    ----------
    param_groups : list of dict
        The groups, to be read and changed: ``optimizer.param_groups[0]["lr"] = 0.01``.
    state : dict
        For each parameter what the optimizer keeps: a dict, empty at first.

    Raises
    ------
    ValueError
        No parameters, one given twice, one that is no leaf; only some with names; an lr that is a
        tensor of several numbers; an option that is required and absent.
    TypeError
        What is given is no tensor, or in a set, which has no order.
    """

    # Whether step() looks at grad_scale and found_inf, which amp.GradScaler sets while it steps.
    steps_on_device = False
    grad_scale: Tensor | None = None
    found_inf: dict[device, Tensor] = {}  # noqa: RUF012 (replaced, never changed)
    _device_lrs: dict[tuple[int, device], tuple[Tensor, float]] | None = None

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(f"{type(self).__name__}(): params must be an iterable of tensors or of "
                            "dicts, not a single Tensor")  # fmt: skip
        if not isinstance(params, Iterable):
            raise TypeError(f"{type(self).__name__}(): params must be an iterable of tensors or of "
                            "dicts, such as model.parameters(), not "
                            f"{type(params).__name__}")  # fmt: skip
        if isinstance(params, set | frozenset):
            warn(f"{type(self).__name__}(): params is a set, whose order differs from run to run: "
                 "a saved state will not fit; pass a list")  # fmt: skip
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        given = list(params)
        if not given:
            raise ValueError(f"{type(self).__name__}(): params is empty")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group ``{"params": parameters, option: value, ...}``."""
        name = f"{type(self).__name__}()"
        if not isinstance(param_group, dict):
            raise TypeError(f'{name}: a group must be a dict with "params", not '
                            f"{type(param_group).__name__}")  # fmt: skip
        if "params" not in param_group:
            raise ValueError(f'{name}: a group must have "params", but this one has the keys '
                             f"{list(param_group)}")  # fmt: skip
        group, names, params = param_group, *_named(name, param_group["params"])
        for key in set(group) - set(self.defaults):
            if near := difflib.get_close_matches(str(key), self.defaults, 1, 0.8):
                warn(f"{name}: the key {key!r} of a group is none of its options and is only kept;"
                     f" did you mean {near[0]!r}?")  # fmt: skip
        seen = {id(p) for other in self.param_groups for p in other["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"{name}: a parameter must be a Tensor, not {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"{name}: a parameter is no leaf but a result (of {p.grad_fn})")
            if id(p) in seen:
                raise ValueError(f"{name}: a parameter is given twice")
            seen.add(id(p))
        group = {**self.defaults, **group, "params": params}
        if absent := [key for key, value in group.items() if value is required]:
            raise ValueError(f"{name}: a group must give a value of {', '.join(absent)}")
        if names:
            group["param_names"] = names
        if any(("param_names" in other) != bool(names) for other in self.param_groups):
            raise ValueError(f"{name}: all groups have names of their parameters, or none has")
        lr = group.get("lr")
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"{name}: lr has shape {list(lr.shape)}, but it must be one number")
        self.check_options(group)
        self.param_groups.append(group)

    def refuse(self, differentiable: bool) -> None:
        """Raises NotImplementedError where a step is to be recorded."""
        if differentiable:
            raise NotImplementedError(f"{type(self).__name__}(): differentiable=True is not "
                                      "supported")  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        """Raises ValueError where an option's value is not allowed."""

    def check_state(self, number: int, p: Tensor, kept: dict[str, Any]) -> None:
        """Raises where what another optimizer kept of a parameter does not go with this one."""

    def check_capture(self, group: dict[str, Any]) -> None:
        """Raises RuntimeError where a step of this group, captured, would not replay as steps."""
        lr = group.get("lr")
        if isinstance(lr, Tensor) and not lr.is_cuda:
            raise RuntimeError(f"{type(self).__name__}.step(): while a CUDA graph is captured, an "
                               "lr that is a tensor must be on the GPU, not on the "
                               f"{lr.device}")  # fmt: skip

    @staticmethod
    def in_graphed_step() -> bool:
        """Whether this is a step of ``cuda.graphed_step``, on this thread."""
        return getattr(_graphed, "seen", None) is not None

    def device_lr(self, group: dict[str, Any], p: Tensor) -> Tensor:
        """The lr of a group as a number on p's device, for a graph to read it there.

        While a graph is captured it is not written: :meth:`refresh_lr` does that before a replay.
        """
        lr = group["lr"]
        if isinstance(lr, Tensor):
            return lr
        if self._device_lrs is None:
            self._device_lrs = {}
        index = next(i for i, g in enumerate(self.param_groups) if g is group)
        if (index, p.device) not in self._device_lrs:
            if is_captured([p]):
                raise RuntimeError(f"{type(self).__name__}.step(): group {index} has taken no step "
                                   "before the capture")  # fmt: skip
            made = _C.full([], float(lr), dtype=float64, device=p.device)
            self._device_lrs[index, p.device] = made, float(lr)
        if not is_captured([p]):
            self.refresh_lr()
        return self._device_lrs[index, p.device][0]

    def refresh_lr(self) -> None:
        """Writes what each group's lr is by now to where :meth:`device_lr` gave it."""
        for (index, where), (number, before) in (self._device_lrs or {}).items():
            lr = self.param_groups[index]["lr"]
            if not isinstance(lr, Tensor) and float(lr) != before:
                number.fill_(float(lr))
                self._device_lrs[index, where] = number, float(lr)  # type: ignore[index]

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Changes ``p`` in place; called without recording."""
        raise NotImplementedError(f"{type(self).__name__} does not define update()")

    def update_group(
        self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]
    ) -> None:
        """Updates the parameters of a group that have a gradient, one after the other."""
        for p, grad in zip(params, grads, strict=True):
            self.update(p, grad, group, self.state[p])

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters that have a gradient.

        ``closure``, if given, computes the loss anew, gradients included; its result is returned.

        A step that is captured into a CUDA graph has the options of its capture, but for an ``lr``
        that is a tensor on the GPU.

        Raises
        ------
        RuntimeError
            It is captured, but is the first, which makes the state, or counts in Python.
        TypeError
            ``closure`` cannot be called, such as a loss.
        """
        if closure is not None and not callable(closure):
            raise TypeError(f"{type(self).__name__}.step(): closure must be a function or None, "
                            f"not {type(closure).__name__}")  # fmt: skip
        note_graphed(self)
        captured = [is_captured(group["params"]) for group in self.param_groups]
        for group in (g for g, c in zip(self.param_groups, captured, strict=True) if c):
            self.check_capture(group)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group, in_graph in zip(self.param_groups, captured, strict=True):
                params = [p for p in group["params"] if p.grad is not None]
                begin = [p for p in params if not self.state[p]] if in_graph else []
                self.update_group(params, [p.grad for p in params], group)
                for p in begin:
                    if self.state[p]:
                        self._refuse_to_begin(p)
        return loss

    def _refuse_to_begin(self, p: Tensor) -> None:
        """Each replay would make the state anew."""
        del self.state[p]
        raise RuntimeError(f"{type(self).__name__}.step(): the first step of a parameter makes its "
                           "state, which a CUDA graph must not; take a step before the "
                           "capture")  # fmt: skip

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients, or fills them with zeros, by one op for each device and dtype."""
        zero_gradients(self._all(), set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Options and state, with parameters numbered in the order of the groups."""
        numbers = {id(p): i for i, p in enumerate(self._all())}
        groups = [{**group, "params": [numbers[id(p)] for p in group["params"]]}
                  for group in self.param_groups]  # fmt: skip
        state = {numbers[id(p)]: dict(kept) for p, kept in self.state.items() if kept}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes options and state over; the tensors are copied to the parameters' devices.

        Raises
        ------
        ValueError
            Where the groups differ in number or size, or it is no state of such an optimizer.
        ShapeError
            Where what is kept of a parameter has another shape.
        """
        if not is_state(state_dict):
            raise ValueError('load_state_dict(): a dict with "state" and "param_groups" is needed, '
                             "as an optimizer's state_dict() gives it")  # fmt: skip
        groups = state_dict["param_groups"]
        sizes = [len(group["params"]) for group in groups]
        own = [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise ValueError(f"load_state_dict(): the groups have {sizes} parameters, those "
                             f"of this {type(self).__name__} {own}")  # fmt: skip
        # The saved numbers stand for parameters by their place in the groups.
        saved = [number for group in groups for number in group["params"]]
        state: Any = defaultdict(dict)
        for number, p in zip(saved, self._all(), strict=True):
            kept = state_dict["state"].get(number)
            if kept is not None:
                self.check_state(number, p, kept)
                state[p] = _copied(kept, p.device)
        options = copy.deepcopy([{key: value for key, value in group.items() if key != "params"}
                                 for group in groups])  # fmt: skip
        self.state = state  # nothing was changed until here
        for group, given in zip(self.param_groups, options, strict=True):
            group.update(given)

    def _all(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            options = [f"{k}={v}" for k, v in group.items() if k != "params"]
            lines.append(", ".join([f"  group {i}: {len(group['params'])} parameters", *options]))
        return f"{type(self).__name__}(\n" + "\n".join(lines) + "\n)"
