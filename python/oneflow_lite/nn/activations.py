# SPDX-License-Identifier: Apache-2.0
"""Activations, and dropout."""

from __future__ import annotations

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.nn import functional
from oneflow_lite.nn.module import Module


class _InPlace(Module):
    """What can write its result into its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
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


class Dropout(Module):
    """In training, elements set to 0 with probability ``p`` and the others times ``1 / (1 - p)``.

    Parameters
    ----------
    p : float
        In [0, 1]; ValueError otherwise.
    inplace : bool
        Write the result into the input.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: p is {p}, but it must be in [0, 1]")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
