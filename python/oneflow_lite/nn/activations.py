# SPDX-License-Identifier: Apache-2.0
"""Activations, and dropout."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oneflow_lite._numbers import check_number
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.nn import functional
from oneflow_lite.nn import init as _init
from oneflow_lite.nn._checked import check_bools
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter

if TYPE_CHECKING:
    import oneflow_lite as flow


class _InPlace(Module):
    """What can write its result into its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        check_bools(self, inplace=inplace)
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """``max(x, 0)``; NaN stays NaN.

    Parameters
    ----------
    inplace : bool
        Write the result into the input; so for other activations that take it.
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input, self.inplace)


class SiLU(_InPlace):
    """``x / (1 + exp(-x))``, also known as swish."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.silu(input, self.inplace)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return _C.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of :class:`Sigmoid`, without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return _C.tanh(input)


class GELU(Module):
    """x times the probability that a standard normal number is at most x.

    Parameters
    ----------
    approximate : str
        "tanh" for the approximation by tanh, else "none".
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return _C.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LeakyReLU(_InPlace):
    """The element itself where it is positive, else ``negative_slope`` times it."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" * self.inplace)


class ELU(_InPlace):
    """The element itself where it is positive, else ``alpha * (exp(x) - 1)``."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" * self.inplace)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, and x where ``beta * x > threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _WithNumbers(Module):
    """A function with numbers, which are given at construction in its order and by its names."""

    function: Callable[..., Tensor]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        try:
            given = inspect.signature(type(self)).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}(): {error}") from None
        given.apply_defaults()
        self.numbers = dict(given.arguments)
        for name, value in self.numbers.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input, **{name: getattr(self, name) for name in self.numbers})

    def extra_repr(self) -> str:
        numbers = {name: getattr(self, name) for name in self.numbers}
        if numbers.get("inplace") is False:
            del numbers["inplace"]
        if list(numbers) == ["lambd"]:  # as PyTorch shows it
            return str(numbers["lambd"])
        return ", ".join(f"{name}={value}" for name, value in numbers.items())


def _with_numbers(name: str, function: Callable[..., Tensor]) -> Any:
    """The module of a function, with its text."""
    text = f"{function.__doc__}\n\nSee ``functional.{function.__name__}`` for its numbers."
    parameters = list(inspect.signature(function).parameters.values())[1:]
    attributes = {"function": staticmethod(function), "__doc__": text, "__module__": __name__,
                  "__signature__": inspect.Signature(parameters)}  # fmt: skip
    return type(name, (_WithNumbers,), attributes)


CELU = _with_numbers("CELU", functional.celu)
GLU = _with_numbers("GLU", functional.glu)
Hardshrink = _with_numbers("Hardshrink", functional.hardshrink)
Hardsigmoid = _with_numbers("Hardsigmoid", functional.hardsigmoid)
Hardswish = _with_numbers("Hardswish", functional.hardswish)
Hardtanh = _with_numbers("Hardtanh", functional.hardtanh)
Mish = _with_numbers("Mish", functional.mish)
ReLU6 = _with_numbers("ReLU6", functional.relu6)
SELU = _with_numbers("SELU", functional.selu)
Softshrink = _with_numbers("Softshrink", functional.softshrink)
Softsign = _with_numbers("Softsign", functional.softsign)
Tanhshrink = _with_numbers("Tanhshrink", functional.tanhshrink)
Threshold = _with_numbers("Threshold", functional.threshold)


class PReLU(Module):
    """:class:`LeakyReLU` whose slope is learned.

    Parameters
    ----------
    num_parameters : int
        1, or one slope per channel, dim 1.
    init : float
        What the slopes are at first.
    device, dtype : optional
        Where and as what they are made.
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_C.empty([num_parameters], dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the slopes to ``init``."""
        _init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        name = type(self).__name__
        check_number(name, "p", p)
        if not 0 <= p <= 1:
            raise ValueError(f"{name}: p is {p}, but it must be in [0, 1]")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, elements set to 0 with probability ``p`` and the others times ``1 / (1 - p)``.

    Parameters
    ----------
    p : float
        In [0, 1]; ValueError otherwise, TypeError for what is no number.
    inplace : bool
        Write the result into the input.
    """

    _function = staticmethod(functional.dropout)


class Dropout1d(_Dropout):
    """:class:`Dropout` of whole channels of ``[n, c, length]`` or ``[c, length]``."""

    _function = staticmethod(functional.dropout1d)


class Dropout2d(_Dropout):
    """:class:`Dropout` of whole channels of ``[n, c, h, w]``."""

    _function = staticmethod(functional.dropout2d)


class Dropout3d(_Dropout):
    """:class:`Dropout` of whole channels of ``[n, c, d, h, w]`` or ``[c, d, h, w]``."""

    _function = staticmethod(functional.dropout3d)


class AlphaDropout(_Dropout):
    """In training, elements set to where selu ends with probability ``p``; all are then brought
    back to the mean 0 and variance 1 that they are expected to have had.
    """

    _function = staticmethod(functional.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """:class:`AlphaDropout` of whole channels of ``[n, c, ...]``."""

    _function = staticmethod(functional.feature_alpha_dropout)
