# SPDX-License-Identifier: Apache-2.0
"""Linear algebra on batches of matrices, in float32 and float64; C++ functions all.

>>> x = flow.linalg.solve(A, B)  # A @ x = B
>>> U, S, Vh = flow.linalg.svd(A, full_matrices=False)

A matrix without the inverse or the factorization that is asked for raises LinAlgError, a
RuntimeError that names it.
"""

from oneflow_lite._absent import public_face as _public_face
from oneflow_lite._C import linalg_cholesky as cholesky
from oneflow_lite._C import linalg_cholesky_ex as cholesky_ex
from oneflow_lite._C import linalg_cond as cond
from oneflow_lite._C import linalg_cross as cross
from oneflow_lite._C import linalg_det as det
from oneflow_lite._C import linalg_diagonal as diagonal
from oneflow_lite._C import linalg_eigh as eigh
from oneflow_lite._C import linalg_eigvalsh as eigvalsh
from oneflow_lite._C import linalg_inv as inv
from oneflow_lite._C import linalg_inv_ex as inv_ex
from oneflow_lite._C import linalg_lstsq as lstsq
from oneflow_lite._C import linalg_lu as lu
from oneflow_lite._C import linalg_lu_factor as lu_factor
from oneflow_lite._C import linalg_lu_factor_ex as lu_factor_ex
from oneflow_lite._C import linalg_lu_solve as lu_solve
from oneflow_lite._C import linalg_matrix_exp as matrix_exp
from oneflow_lite._C import linalg_matrix_norm as matrix_norm
from oneflow_lite._C import linalg_matrix_power as matrix_power
from oneflow_lite._C import linalg_matrix_rank as matrix_rank
from oneflow_lite._C import linalg_multi_dot as multi_dot
from oneflow_lite._C import linalg_norm as norm
from oneflow_lite._C import linalg_pinv as pinv
from oneflow_lite._C import linalg_qr as qr
from oneflow_lite._C import linalg_slogdet as slogdet
from oneflow_lite._C import linalg_solve as solve
from oneflow_lite._C import linalg_solve_ex as solve_ex
from oneflow_lite._C import linalg_solve_triangular as solve_triangular
from oneflow_lite._C import linalg_svd as svd
from oneflow_lite._C import linalg_svdvals as svdvals
from oneflow_lite._C import linalg_tensorinv as tensorinv
from oneflow_lite._C import linalg_tensorsolve as tensorsolve
from oneflow_lite._C import linalg_vander as vander
from oneflow_lite._C import linalg_vecdot as vecdot
from oneflow_lite._C import linalg_vector_norm as vector_norm
from oneflow_lite._C import matmul
from oneflow_lite._oneflow_lite import LinAlgError

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eigh",
    "eigvalsh", "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul",
    "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr",
    "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv",
    "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

__getattr__, __dir__ = _public_face(__name__)
