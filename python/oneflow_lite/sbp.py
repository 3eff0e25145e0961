# SPDX-License-Identifier: Apache-2.0
"""How a global tensor lies along one dim of its placement.

>>> flow.sbp.split(0), flow.sbp.broadcast, flow.sbp.partial_sum
(oneflow_lite.sbp.split(0), oneflow_lite.sbp.broadcast, oneflow_lite.sbp.partial_sum)

``split(i)``: each rank has a part of dim i, as even as can be, the first parts larger.
``broadcast``: each rank has all of it. ``partial_sum``: the tensor is the sum of what the ranks
have. A placement that is a grid takes one per dim, the outer one first: ``[split(0), split(0)]``
splits dim 0 into parts, and each part again.
"""

from __future__ import annotations

import operator

from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import Sbp, sbp_of

__all__ = ["Sbp", "broadcast", "partial_sum", "split"]

broadcast: Sbp = sbp_of(0, 0)
partial_sum: Sbp = sbp_of(2, 0)


def split(axis: int) -> Sbp:
    """Parts of a dim; a negative one counts from the end."""
    try:
        return sbp_of(1, operator.index(axis))
    except TypeError:
        raise TypeError(f"split(): axis must be a small int, not {axis!r}") from None


__getattr__, __dir__ = public_face(__name__)
