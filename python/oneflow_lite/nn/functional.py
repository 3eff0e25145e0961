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
    softmax,
)

__all__ = [
    "add_layer_norm", "add_rms_norm", "cross_entropy", "layer_norm", "linear", "log_softmax",
    "nll_loss", "relu", "rms_norm", "softmax",
]  # fmt: skip
