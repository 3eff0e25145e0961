# SPDX-License-Identifier: Apache-2.0
"""The functions of neural networks: the C++ functions themselves, without a Python frame.

>>> F.softmax(x, dim=None, dtype=None)
"""

from oneflow_lite._oneflow_lite import _C

softmax = _C.softmax
log_softmax = _C.log_softmax
relu = _C.relu
linear = _C.linear
nll_loss = _C.nll_loss
cross_entropy = _C.cross_entropy

__all__ = ["cross_entropy", "linear", "log_softmax", "nll_loss", "relu", "softmax"]
