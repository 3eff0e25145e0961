# SPDX-License-Identifier: Apache-2.0
"""Names of ops, for errors."""

from __future__ import annotations

from oneflow_lite import _oneflow_lite as _ext


def unknown(name: str, what: str = "op") -> str:
    """What an error says of a name that no op has, with those that are near."""
    import difflib  # for errors only

    near = difflib.get_close_matches(name, _ext.list_ops(), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; see flow.ops.list()"
    return f'there is no {what} named "{name}"{hint}'
