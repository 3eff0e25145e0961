# SPDX-License-Identifier: Apache-2.0
"""Functions of mathematics by the names that PyTorch and SciPy have for them.

>>> flow.special.expit(x)  # flow.sigmoid
"""

from oneflow_lite._absent import public_face as _public_face
from oneflow_lite._C import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    round,
    sinc,
    softmax,
    xlog1py,
    xlogy,
)
from oneflow_lite._C import digamma as psi
from oneflow_lite._C import lgamma as gammaln
from oneflow_lite._C import sigmoid as expit

__all__ = [
    "digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p",
    "log_softmax", "logit", "logsumexp", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy",
]  # fmt: skip

__getattr__, __dir__ = _public_face(__name__)
