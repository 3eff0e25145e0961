# SPDX-License-Identifier: Apache-2.0
"""docs/what_there_is.md is what the package has, and what is absent says what to use instead."""

import importlib
import runpy
from pathlib import Path

import pytest

pytest.importorskip("oneflow_lite")

from oneflow_lite._absent import ABSENT  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
NAMES = [(module, name, absent) for absent in ABSENT
         for module, names in absent.names.items() for name in names.split()]  # fmt: skip


@pytest.mark.parametrize("module, name, absent", NAMES, ids=[n for _, n, _ in NAMES])
def test_what_is_absent_says_what_to_use(module, name, absent):
    where = importlib.import_module(f"oneflow_lite.{module}".rstrip("."))
    with pytest.raises(AttributeError) as error:
        getattr(where, name)
    assert f"has no attribute '{name}', on purpose ({absent.what})" in str(error.value)
    assert absent.instead in str(error.value) and error.value.name == name


def test_an_unknown_name_is_an_ordinary_error():
    where = importlib.import_module("oneflow_lite.nn")
    with pytest.raises(AttributeError, match="oneflow_lite.nn' has no attribute 'Linaer'$"):
        where.Linaer  # noqa: B018
    assert not hasattr(where, "__no_such__")


def test_the_page_is_current():
    script, shown = ROOT / "scripts/what_there_is.py", ROOT / "docs/what_there_is.md"
    if not (script.exists() and shown.exists()):
        pytest.skip("the page is not here")
    text = "\n".join(runpy.run_path(str(script))["page"]()) + "\n"
    assert shown.read_text(encoding="utf-8") == text, (
        "run: .venv/bin/python scripts/what_there_is.py docs/what_there_is.md"
    )
