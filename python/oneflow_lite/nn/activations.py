# SPDX-License-Identifier: Apache-2.0
"""Activations that transformers use, beside those in layers.py; and dropout."""

from __future__ import annotations

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.nn import functional
from oneflow_lite.nn.module import Module


class SiLU(Module):
    """``x / (1 + exp(-x))``, also known as swish."""

    def forward(self, x: Tensor) -> Tensor:
        return _C.silu(x)


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

    def forward(self, x: Tensor) -> Tensor:
        return _C.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """x where x > 0, else ``negative_slope * x``."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return functional.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, and x where ``beta * x > threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Tensor) -> Tensor:
        return functional.softplus(x, self.beta, self.threshold)

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

    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
