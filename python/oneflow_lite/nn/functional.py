# SPDX-License-Identifier: Apache-2.0
"""The functions of neural networks: the C++ functions themselves, without a Python frame.

>>> F.softmax(x, dim=None, dtype=None)
"""

from oneflow_lite._C import (
    add_layer_norm,
    add_rms_norm,
    cross_entropy,
    layer_norm,
    linear,
    log_softmax,
    nll_loss,
    relu,
    rms_norm,
    sigmoid,
    softmax,
    tanh,
)
from oneflow_lite._oneflow_lite import Tensor, dtype


def softmin(input: Tensor, dim: int | None = None, dtype: dtype | None = None) -> Tensor:
    """Softmax of ``-input``."""
    return softmax(-input, dim, dtype)


__all__ = [
    "add_layer_norm", "add_rms_norm", "cross_entropy", "layer_norm", "linear", "log_softmax",
    "nll_loss", "relu", "rms_norm", "sigmoid", "softmax", "softmin", "tanh",
]  # fmt: skip
