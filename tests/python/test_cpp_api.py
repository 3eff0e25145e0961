# SPDX-License-Identifier: Apache-2.0
"""docs/cpp_api.md lists the functors that the headers declare."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current():
    page = runpy.run_path(str(ROOT / "scripts" / "cpp_api.py"))["page"]()
    assert (ROOT / "docs" / "cpp_api.md").read_text(encoding="utf-8") == page
    for functor in ("MseLoss(", "Movedim(", "Softmax(", "RepeatInterleave("):
        assert functor in page
