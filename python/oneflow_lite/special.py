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
    polygamma,
    round,
    sinc,
    softmax,
    xlog1py,
    xlogy,
)
from oneflow_lite._C import special_entr as entr
from oneflow_lite._C import special_erfcx as erfcx
from oneflow_lite._C import special_expit as expit
from oneflow_lite._C import special_gammaln as gammaln
from oneflow_lite._C import special_i0e as i0e
from oneflow_lite._C import special_i1 as i1
from oneflow_lite._C import special_i1e as i1e
from oneflow_lite._C import special_log_ndtr as log_ndtr
from oneflow_lite._C import special_multigammaln as multigammaln
from oneflow_lite._C import special_ndtr as ndtr
from oneflow_lite._C import special_ndtri as ndtri
from oneflow_lite._C import special_psi as psi
from oneflow_lite._C import special_zeta as zeta

__all__ = [
    "digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p",
    "log_softmax", "logit", "logsumexp", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy",
]  # fmt: skip
__all__ += ["entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr", "multigammaln", "ndtr", "ndtri",
            "polygamma", "zeta"]  # fmt: skip

__getattr__, __dir__ = _public_face(__name__)
