# SPDX-License-Identifier: Apache-2.0
"""Writes docs/cpp_api.md: every functor of functional/*.h, by header, with its C++ signature.

python scripts/cpp_api.py         # to the standard output
python scripts/cpp_api.py PATH    # to a file
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# The C++ API

Every functor that `functional/` declares, by its header; a functor's comment there is its contract.
`scripts/cpp_api.py` writes this page. All are in the namespace `oneflow_lite::functional`.
"""


def headline(text: str) -> str:
    """The first sentence of a header's opening comment."""
    lines = []
    for line in text.splitlines()[1:]:
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    prose = " ".join(lines).strip()
    return re.split(r"(?<=[.:])\s", prose, maxsplit=1)[0].rstrip(":").rstrip(".") + "."


def functors(text: str) -> list[str]:
    """The declarations of a header that the library exports, one line each."""
    found = re.findall(r"^OFL_API ([^;]+\));", text, re.MULTILINE)
    return [" ".join(declaration.split()) for declaration in found]


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for path in sorted((ROOT / "functional").glob("*.h")):
        text = path.read_text(encoding="utf-8")
        if declared := functors(text):
            body = "\n".join(f"{declaration};" for declaration in declared)
            parts.append(f"## functional/{path.name}\n\n{headline(text)}\n\n```text\n{body}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
