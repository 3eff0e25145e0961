# SPDX-License-Identifier: Apache-2.0
"""Which functions of tensors are functions of Python: a short list, and no other."""

import re
import runpy
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT, PAGE = ROOT / "scripts" / "python_callables.py", ROOT / "docs" / "python_callables.md"
# Today's number, which may only fall: at most 90 were asked for.
MOST = 75


@pytest.fixture(scope="module")
def script():
    if not (SCRIPT.exists() and PAGE.exists()):
        pytest.skip("the page is not here")
    return runpy.run_path(str(SCRIPT))


def test_there_are_few(script):
    assert len(script["found"]()) <= MOST


def test_each_has_a_reason_and_the_page_is_current(script):
    assert script["without_reason"]() == []
    assert PAGE.read_text(encoding="utf-8") == script["page"](), (
        "run: .venv/bin/python scripts/python_callables.py docs/python_callables.md"
    )


def test_the_list_is_what_introspection_finds(script):
    listed = re.findall(r"`((?:flow|F|Tensor)\.\w+)`", PAGE.read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(script["found"]())
    names = [name for names in script["REASONS"].values() for name in names]
    assert len(names) == len(set(names)), "one reason for each"


def test_introspection_sees_what_was_added(script, monkeypatch):
    """A function of Python that leaks into flow or Tensor is found."""

    def leaked(input):
        return input

    monkeypatch.setattr(flow, "leaked", leaked, raising=False)
    monkeypatch.setattr(flow.Tensor, "leaked_", leaked, raising=False)
    assert {"flow.leaked", "Tensor.leaked_"} <= set(script["without_reason"]())
    assert "flow.exp" not in script["found"]() and "Tensor.exp_" not in script["found"]()
