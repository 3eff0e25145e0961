# SPDX-License-Identifier: Apache-2.0
"""Parts of Llama-like models: rotary places and the gated MLP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor, float32, float64
from oneflow_lite.nn.layers import Linear
from oneflow_lite.nn.module import Module

if TYPE_CHECKING:
    import oneflow_lite as flow


class RotaryEmbedding(Module):
    """Turns pairs of features by angles that grow with the place (Su et al., 2021, RoFormer).

    Feature i of the first half and of the second are a pair; at place m it is turned by
    ``m * theta ** (-2 * i / dim)``. So the product of a query and a key depends on the distance of
    their places alone.

    Parameters
    ----------
    dim : int
        Features of a head, an even number.
    max_length : int
        Places there are.
    theta : float
        The base of the angles.
    device, dtype : optional
        Of the tables of cosines and sines, which are no part of the state.

    Raises
    ------
    ValueError
        An odd ``dim``.

    Examples
    --------
    >>> rotary = nn.RotaryEmbedding(64, 1024)
    >>> q, k = rotary(q), rotary(k)                    # [batch, heads, length, 64]
    """

    def __init__(
        self,
        dim: int,
        max_length: int = 2048,
        theta: float = 10000.0,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
    ) -> None:
        super().__init__()
        if dim < 2 or dim % 2:
            raise ValueError(f"RotaryEmbedding(): dim is {dim}, but it must be even and positive")
        self.dim, self.max_length, self.theta = dim, max_length, theta
        # In float64: an angle of thousands of radians leaves float32 no digits for its cosine.
        steps = _C.arange(0, dim, 2, dtype=float64) / dim
        angles = _C.arange(0, max_length, dtype=float64).unsqueeze(1) * _C.pow(theta, -steps)
        angles = _C.cat([angles, angles], -1)
        for name, table in (("cos", angles.cos()), ("sin", angles.sin())):
            self.register_buffer(name, table.to(device, dtype or float32), persistent=False)

    def forward(self, x: Tensor, start: int = 0, rotated: int | None = None) -> Tensor:
        """``x [..., length, heads * dim]``, whose first row is at the place ``start``.

        Of more than one head, the first ``rotated`` features are turned, whole heads, and the
        others copied; all where it is None.
        """
        length = x.shape[-2] if x.ndim > 1 else -1
        if length < 0 or x.shape[-1] % self.dim or start < 0 or start + length > self.max_length:
            raise ShapeError(f"RotaryEmbedding(): the input is {list(x.shape)} from place {start} "
                             f"on, but [..., length, {self.dim}] within {self.max_length} places "
                             "is needed")  # fmt: skip
        cos, sin = (t.narrow(0, start, length).narrow(1, 0, self.dim // 2)
                    for t in (self.cos, self.sin))  # fmt: skip
        return _C.rotary_embedding(x, cos, sin, rotated)

    def extra_repr(self) -> str:
        return f"{self.dim}, max_length={self.max_length}, theta={self.theta}"


class SwiGLU(Module):
    """``down(silu(gate(x)) * up(x))``, the gated MLP (Shazeer, 2020).

    Parameters
    ----------
    in_features, hidden_features : int
        Of the input, and between the products.
    out_features : int, optional
        Of the result; as many as of the input where absent.
    bias : bool
        Whether the products have one.
    device, dtype : optional
        Of the parameters.

    Attributes
    ----------
    up : Linear
        Both of the first products: the gate's rows of its weight, then the others.
    down : Linear
        The second product.
    """

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        out_features: int | None = None,
        bias: bool = False,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
    ) -> None:
        super().__init__()
        out = in_features if out_features is None else out_features
        self.up = Linear(in_features, 2 * hidden_features, bias, device, dtype)
        self.down = Linear(hidden_features, out, bias, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """``x [..., in_features]`` gives ``[..., out_features]``."""
        return self.down(_C.swiglu(self.up(x)))
