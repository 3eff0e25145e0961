# SPDX-License-Identifier: Apache-2.0
"""Whether processes can compute together on the CPU here: the build may have found no Gloo."""

from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")

LIBRARY = Path(flow.__file__ or "").parent / "lib" / "liboneflow_lite_gloo.so"
WHY_NOT = "this build has no Gloo (libgloo-dev), so there are no collectives on the CPU"

needs_gloo = pytest.mark.skipif(not LIBRARY.exists(), reason=WHY_NOT)
