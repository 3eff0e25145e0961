# SPDX-License-Identifier: Apache-2.0
"""``flow.__config__``: how this build was made and what it found on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oneflow_lite import _oneflow_lite as _ext


class Config(Mapping):
    """The facts of the build by name; shown as a table.

    >>> flow.__config__["version"]
    >>> flow.__config__.show()
    """

    def __init__(self) -> None:
        self._facts: dict[str, Any] = dict(_ext.build_config())

    def __getitem__(self, name: str) -> Any:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        facts = {name: fact for name, fact in self.items() if name != "version"}
        facts["threads"] = _ext.get_num_threads()
        facts["GPUs"] = self._gpus()
        width = max(map(len, facts))
        lines = [f"  {name:<{width}}  {fact}" for name, fact in facts.items()]
        return "\n".join([f"oneflow_lite {self['version']}", *lines])

    @staticmethod
    def _gpus() -> str:
        count = _ext.cuda_device_count()
        names = [_ext.cuda_device_properties(i).name for i in range(count)]
        return ", ".join(names) or "none that can be used"

    def show(self) -> None:
        """Prints the table."""
        print(self)
