# SPDX-License-Identifier: Apache-2.0
"""The row kernels for PyTorch's tensors: what the distribution oneflow-lite-torch offers.

    import oneflow_lite.torch as rows   # the same as: import oneflow_lite_torch as rows

oneflow_lite itself neither needs nor imports PyTorch.
"""

try:
    from oneflow_lite_torch import *  # noqa: F403
    from oneflow_lite_torch import __all__, __version__  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "oneflow_lite_torch":
        raise
    raise ModuleNotFoundError(
        "oneflow_lite.torch is the distribution oneflow-lite-torch, which is not installed here",
        name="oneflow_lite_torch",
    ) from None
