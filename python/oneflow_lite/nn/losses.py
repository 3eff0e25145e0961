# SPDX-License-Identifier: Apache-2.0
"""Losses."""

from __future__ import annotations

import functools
import inspect
import itertools
from typing import Any

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._warnings import warn
from oneflow_lite.nn import functional
from oneflow_lite.nn.module import Module


class NLLLoss(Module):
    """The negative log-likelihood of the right classes.

    Parameters
    ----------
    weight : Tensor, optional
        A factor per class, of shape ``[classes]``.
    ignore_index : int
        Targets of this value count nothing.
    reduction : str
        none, mean (weighted) or sum.

    Notes
    -----
    ``forward`` takes log-probabilities ``[N, classes, ...]`` or ``[classes]`` and integer targets
    ``[N, ...]`` or ``[]``. ShapeError or DTypeError where they do not go together, IndexError for a
    class out of range.
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.ignore_index, self.reduction = ignore_index, reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return _C.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(NLLLoss):
    """:class:`NLLLoss` of the log-softmax: takes logits.

    Parameters
    ----------
    weight, ignore_index, reduction
        As in :class:`NLLLoss`.
    label_smoothing : float
        In [0, 1]: spreads that share of the target evenly over all classes.
    inplace_backward : bool
        Lets ``forward``, or of float16 backward, write the gradient into the memory of its logits,
        whose values are lost.
        That saves a tensor of their size and a third of the bytes; backward runs once.

    Notes
    -----
    ``forward`` takes logits ``[N, classes, ...]`` or ``[classes]``, and targets as
    :class:`NLLLoss` or the probability of each class. The loss has the logits' dtype.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        inplace_backward: bool = False,
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        self.label_smoothing, self.inplace_backward = label_smoothing, inplace_backward

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return _C.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction,
                                self.label_smoothing, self.inplace_backward)  # fmt: skip


class Reduced(Module):
    """Losses reduced by "mean", "sum" or not ("none")."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def extra_repr(self) -> str:
        return "" if self.reduction == "mean" else f"reduction={self.reduction!r}"


class MSELoss(Reduced):
    """The square of the difference.

    Parameters
    ----------
    reduction : str
        none, mean or sum.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.mse_loss(input, target, self.reduction)


class L1Loss(Reduced):
    """The size of the difference; ``reduction`` as in :class:`MSELoss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.l1_loss(input, target, self.reduction)


class SmoothL1Loss(Reduced):
    """:class:`L1Loss` less ``beta / 2``, and below ``beta`` a parabola that joins it."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(Reduced):
    """``delta`` times :class:`SmoothL1Loss` with that ``beta``."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(Reduced):
    """``target * (log(target) - input)``, input being log-probabilities.

    Parameters
    ----------
    reduction : str
        none, mean, batchmean (the sum over the first dim's size) or sum.
    log_target : bool
        The targets are logarithms too.
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.kl_div(input, target, self.reduction, self.log_target)


class BCELoss(Reduced):
    """Cross entropy of two classes, of which probabilities are given.

    Parameters
    ----------
    weight : Tensor, optional
        A factor of each loss.
    reduction : str
        none, mean or sum.

    Notes
    -----
    ``forward`` raises ValueError on the CPU where a probability is outside [0, 1]; a GPU does not
    look.
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(BCELoss):
    """Cross entropy of two classes, of which logits are given.

    Parameters
    ----------
    weight, reduction
        As in :class:`BCELoss`.
    pos_weight : Tensor, optional
        A factor of the part of class 1.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(
            input, target, self.weight, self.reduction, self.pos_weight
        )


def _take_older_arguments(cls: type[Module]) -> None:
    """Let ``cls(size_average=..., reduce=...)`` set ``reduction``, with a warning, and by place.

    ``cls(input, target)``, which makes a loss of its operands, is an error that says so.
    """
    init = vars(cls)["__init__"]
    names = list(inspect.signature(init).parameters)[1:]
    last = names.index("reduction")
    # PyTorch has size_average here, and `reduce` before reduction.
    first = last - (names[last - 1] in ("ignore_index", "eps") and last > 0)
    in_pytorch = [*names[:first], "size_average", *names[first:last], "reduce", *names[last:]]

    @functools.wraps(init)
    def __init__(
        self: Module,
        *args: Any,
        size_average: bool | None = None,
        reduce: bool | None = None,
        **kwargs: Any,
    ) -> None:
        as_there = first < len(args) <= len(in_pytorch)
        if as_there and (args[first] is None or isinstance(args[first], bool)):
            kwargs |= dict(zip(in_pytorch, args, strict=False))
            args, size_average = (), kwargs.pop("size_average")
            reduce = kwargs.pop("reduce", reduce)
        for name, given in itertools.zip_longest(names, args):
            if isinstance(given, Tensor) and name not in ("weight", "pos_weight"):
                called = type(self).__name__
                what = f"{name} must not be a Tensor" if name else "too many arguments"
                raise TypeError(f"{called}: {what}; call the loss that was made: "
                                f"{called}()(input, target)")  # fmt: skip
        if size_average is not None or reduce is not None:
            mean, reduced = size_average in (None, True), reduce in (None, True)
            meant = "none" if not reduced else "mean" if mean else "sum"
            warn(f"{type(self).__name__}(): size_average and reduce are older arguments; pass "
                 f"reduction={meant!r}")  # fmt: skip
            kwargs["reduction"] = meant
        init(self, *args, **kwargs)

    cls.__init__ = __init__  # type: ignore[method-assign]


def take_older_arguments(namespace: dict[str, Any], without: tuple[str, ...] = ()) -> None:
    """Let the losses of a module whose own ``__init__`` has ``reduction`` take what it replaced."""
    for name, value in list(namespace.items()):
        if not inspect.isclass(value) or value.__module__ != namespace["__name__"]:
            continue
        init = vars(value).get("__init__", lambda: None)
        if name not in without and "reduction" in inspect.signature(init).parameters:
            _take_older_arguments(value)


take_older_arguments(globals())
