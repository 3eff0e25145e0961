# SPDX-License-Identifier: Apache-2.0
"""python tests/attack/_all.py [NAME ...]: attacks at full size, one after the other."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def attacks():
    """The programs of this folder that are attacks, by name."""
    return sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("_"))


def main():
    chosen = [path for path in attacks() if not sys.argv[1:] or path.stem in sys.argv[1:]]
    failed = []
    for path in chosen:
        command = [sys.executable, str(path), "--seed", "0", "--full"]
        if subprocess.run(command).returncode != 0:
            failed.append(path.stem)
    print(f"{len(chosen)} attacks, {len(failed)} failed", *failed)
    sys.exit(1 if failed or not chosen else 0)


if __name__ == "__main__":
    main()
