# SPDX-License-Identifier: Apache-2.0
"""GradScaler: a loss made so large that its gradients do not vanish in float16."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from oneflow_lite._numbers import as_number
from oneflow_lite._oneflow_lite import _C, Tensor, device, float32
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.optim._gradients import gradient_of
from oneflow_lite.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from oneflow_lite.distributed import Group

_KEYS = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")
_MOST = 2.0**127  # of a float32, which the scale is


def _number(call: str, name: str, value: Any) -> float:
    """What a scale is multiplied by, or the scale itself: positive, and finite in float32."""
    number = as_number(call, name, value)
    if not 0 < number <= _MOST:
        raise ValueError(f"{call}: {name} is {number}, but it must be positive and finite")
    return number


def _count(call: str, name: str, value: Any, least: int = 1) -> int:
    """A number of steps."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{call}: {name} must be an int, not {value!r}") from None
    if number < least:
        raise ValueError(f"{call}: {name} is {number}, but it must be {least} or more")
    return number


def _checked(
    call: str, scale: Any, growth: Any, backoff: Any, interval: Any, count: Any
) -> tuple[float, float, float, int, int]:
    scale = _number(call, "the scale", scale)
    growth, backoff = (_number(call, "growth_factor", growth),
                       _number(call, "backoff_factor", backoff))  # fmt: skip
    if not growth > 1 or not backoff < 1:
        raise ValueError(f"{call}: growth_factor is {growth} and backoff_factor {backoff}, but "
                         "they must be above and below 1")  # fmt: skip
    interval = _count(call, "growth_interval", interval)
    return scale, growth, backoff, interval, _count(call, "_growth_tracker", count, 0)


class _OfOptimizer:
    """What the scaler knows of one optimizer between two updates."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer  # is kept: its id() is the key
        self.found_infs: dict[device, Tensor] = {}
        self.unscaled = False
        self.stepped = False


class GradScaler:
    """Multiplies losses by a scale, and lets no step be taken from gradients that overflowed.

    The scale, the flag of what overflowed and the count of good steps stay on the device, and
    nothing waits for them: optimizers of this package look at the flag there, so that a step with
    an inf or NaN leaves parameters, moments and the number of steps as they were. Only an optimizer
    that defines ``step`` or ``update`` itself is waited for.

    Gradients of global tensors are looked at on all ranks, and so are those of a
    ``distributed.Pipeline`` whose ``step`` was given the scaler: no rank takes the step where one
    found an inf or NaN.

    Parameters
    ----------
    device : str
        Where the scale is, "cuda" or "cpu".
    init_scale, growth_factor, backoff_factor : float
        The scale at first; what it is multiplied by after ``growth_interval`` good steps, above 1;
        and after a bad one, below 1.
    growth_interval : int
        Good steps in a row before the scale grows.
    enabled : bool
        False: ``scale`` gives what it is given, ``step`` calls ``optimizer.step``.

    Examples
    --------
    >>> scaler.scale(loss).backward()
    >>> scaler.unscale_(optimizer)                     # where gradients are to be clipped
    >>> nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    >>> scaler.step(optimizer)
    >>> scaler.update()
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, bool(enabled)
        self._init_scale, self._growth, self._backoff, self._interval, self._init_count = _checked(
            "GradScaler()", init_scale, growth_factor, backoff_factor, growth_interval, 0
        )
        self._scale: Tensor | None = None
        self._count: Tensor | None = None
        self._optimizers: dict[int, _OfOptimizer] = {}
        self._group: Group | None = None

    def _of(self, optimizer: Optimizer) -> _OfOptimizer:
        return self._optimizers.setdefault(id(optimizer), _OfOptimizer(optimizer))

    def _shared_by(self, group: Group, where: device) -> Tensor:
        """The scale. From now on a flag that one rank of the group raises is raised on all."""
        self._group = group
        return self._begin(where)

    def _begin(self, where: device) -> Tensor:
        if self._scale is None:
            self._scale = _C.full([], self._init_scale, dtype=float32, device=where)
            self._count = _C.full([], self._init_count, dtype=float32, device=where)
        return self._scale

    def _begun(self, name: str) -> Tensor:
        if self._scale is None:
            raise RuntimeError(f"GradScaler.{name}(): no loss was scaled yet; call "
                               "scaler.scale(loss) first")  # fmt: skip
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """A loss, or an iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._begin(outputs.device).to(outputs.device)
        if isinstance(outputs, Iterable) and not isinstance(outputs, str):
            scaled = [self.scale(x) for x in outputs]
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise TypeError("GradScaler.scale(): outputs must be a Tensor or an iterable of Tensors, "
                        f"not {type(outputs).__name__}")  # fmt: skip

    @no_grad()
    def _look(self, optimizer: Optimizer, of: _OfOptimizer, divide: bool) -> None:
        """Raises the flags of all devices where one has a gradient that is not finite."""
        scale = self._begun("unscale_")
        alike: dict[Any, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                grad = gradient_of(p)
                if grad is not None:
                    alike[grad.device, grad.dtype].append(grad.detach())
        for (where, _), grads in alike.items():
            if where not in of.found_infs:
                of.found_infs[where] = _C.zeros([], dtype=float32, device=where)
            flags = [of.found_infs[where]] * len(grads)
            _C.multi_unscale_(grads, flags, scale.to(where) if divide else None)
        if self._group is None and len(of.found_infs) < 2:
            return
        found = _C.zeros_like(scale)
        for flag in of.found_infs.values():
            found += flag.to(scale.device)
        if self._group is not None:
            from oneflow_lite.distributed import all_reduce

            all_reduce(found, "max", self._group)
        for where in of.found_infs or [scale.device]:
            of.found_infs[where] = found.to(where)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the optimizer's gradients by the scale, once between two updates."""
        if not self._enabled:
            return
        of = self._of(optimizer)
        if of.unscaled or of.stepped:
            raise RuntimeError("GradScaler.unscale_(): it was called for this optimizer since the "
                               "last update()" if of.unscaled else "GradScaler.unscale_(): it is "
                               "called after step()")  # fmt: skip
        self._look(optimizer, of, divide=True)
        of.unscaled = True

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(...)`` with the gradients divided by the scale, if all are finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise RuntimeError("GradScaler.step(): a closure is not supported")
        of = self._of(optimizer)
        if of.stepped:
            raise RuntimeError("GradScaler.step(): it was called for this optimizer since the last "
                               "update()")  # fmt: skip
        scale = self._begun("step")
        on_device = getattr(optimizer, "steps_on_device", False)
        if not of.unscaled:
            self._look(optimizer, of, divide=not on_device)
        if not of.found_infs:
            raise RuntimeError("GradScaler.step(): no parameter of the optimizer has a gradient")
        of.stepped = True
        if on_device:
            optimizer.grad_scale = None if of.unscaled else scale
            optimizer.found_inf = of.found_infs
            try:
                return optimizer.step(**kwargs)
            finally:
                optimizer.grad_scale, optimizer.found_inf = None, {}
        if not any(flag.item() for flag in of.found_infs.values()):
            return optimizer.step(**kwargs)
        return None

    @no_grad()
    def update(self, new_scale: float | Tensor | None = None) -> None:
        """The scale after this step: grown, less, the same, or the one that is given."""
        if not self._enabled:
            return
        scale = self._begun("update")
        if new_scale is not None:
            if isinstance(new_scale, Tensor):
                scale.copy_(new_scale.reshape([]))
            else:
                scale.fill_(_number("GradScaler.update()", "new_scale", new_scale))
        else:
            flags = [flag.to(scale.device) for of in self._optimizers.values()
                     for flag in of.found_infs.values()]  # fmt: skip
            if not flags:
                raise RuntimeError("GradScaler.update(): no step was taken since the last update()")
            found = flags[0] if len(flags) == 1 else _C.stack(flags).amax()
            _C.update_scale_(scale, found, self._count, self._growth, self._backoff,
                             self._interval)  # fmt: skip
        self._optimizers.clear()

    def get_scale(self) -> float:
        """The scale; it waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after good steps."""
        return self._growth

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets :meth:`get_growth_factor`."""
        self._growth = _number("GradScaler.set_growth_factor()", "growth_factor", new_factor)

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a bad step."""
        return self._backoff

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets :meth:`get_backoff_factor`."""
        self._backoff = _number("GradScaler.set_backoff_factor()", "backoff_factor", new_factor)

    def get_growth_interval(self) -> int:
        """Good steps in a row before the scale grows."""
        return self._interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets :meth:`get_growth_interval`."""
        self._interval = _count("GradScaler.set_growth_interval()", "growth_interval", new_interval)

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_count if self._count is None else int(self._count.item())

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and how it changes, as numbers; empty where it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth,
            "backoff_factor": self._backoff, "growth_interval": self._interval,
            "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what :meth:`state_dict` gave, here or in PyTorch."""
        if not self._enabled:
            return
        if not isinstance(state_dict, dict):
            raise TypeError("GradScaler.load_state_dict(): state_dict must be a dict, not "
                            f"{type(state_dict).__name__}")  # fmt: skip
        if not state_dict:
            raise RuntimeError("GradScaler.load_state_dict(): the state is empty: that of a scaler "
                               "that was not enabled")  # fmt: skip
        absent = [key for key in _KEYS if key not in state_dict]
        if absent:
            raise ValueError(f"GradScaler.load_state_dict(): the state has no {', '.join(absent)}; "
                             "it is none that state_dict() gave")  # fmt: skip
        self._init_scale, self._growth, self._backoff, self._interval, self._init_count = _checked(
            "GradScaler.load_state_dict()", *(state_dict[key] for key in _KEYS)
        )
        if self._scale is not None and self._count is not None:
            self._scale.fill_(self._init_scale)
            self._count.fill_(float(self._init_count))

    def __getstate__(self) -> dict[str, Any]:
        if self._optimizers:
            raise RuntimeError("GradScaler: it can be pickled only after update()")
        kept = {"_init_scale": self.get_scale(), "_init_count": self._get_growth_tracker(),
                "_scale": None, "_count": None, "_optimizers": None, "_group": None}  # fmt: skip
        return {**self.__dict__, **kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._optimizers = {}
