# SPDX-License-Identifier: Apache-2.0
"""The functions of neural networks: the C++ functions themselves, without a Python frame.

>>> F.softmax(x, dim=None, dtype=None)
"""

from oneflow_lite._C import cross_entropy, linear, log_softmax, nll_loss, relu, softmax

__all__ = ["cross_entropy", "linear", "log_softmax", "nll_loss", "relu", "softmax"]
