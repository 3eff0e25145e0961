# SPDX-License-Identifier: Apache-2.0
"""oneflow_lite's row kernels as functions of PyTorch.

    import oneflow_lite_torch as rows
    y = rows.layer_norm(x, (1024,), weight, bias)

Tensors that the kernels do not serve take PyTorch's own function.
"""

from . import _functional as _functional  # registers fake kernels and gradients
from ._apply import apply_to
from ._losses import cross_entropy, linear_cross_entropy
from ._norms import add_layer_norm, add_rms_norm, layer_norm, rms_norm
from ._patch import patch, unpatch
from ._softmax import log_softmax, scale_mask_softmax, softmax

__version__ = "0.1.0"
__all__ = [
    "add_layer_norm",
    "add_rms_norm",
    "apply_to",
    "cross_entropy",
    "layer_norm",
    "linear_cross_entropy",
    "log_softmax",
    "patch",
    "rms_norm",
    "scale_mask_softmax",
    "softmax",
    "unpatch",
]
