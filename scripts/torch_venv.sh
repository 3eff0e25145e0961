#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/torch_venv.sh FOLDER [REQUIREMENT]...      e.g. 'torch==2.10.*'
#
# Makes the virtual environment of requirements-torch.txt, where it is not there yet: with PyTorch's
# newest release from the package index, unless a requirement names another.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
shift
wanted="$(sha256sum < requirements-torch.txt)$*"
[ "$(cat "$venv/ready" 2> /dev/null)" != "$wanted" ] || exit 0
"${VENV_PYTHON:-python3}" -m venv --clear "$venv"
for attempt in 1 2 3; do  # large downloads: pip goes on from its cache
  "$venv/bin/python" -m pip install -q --disable-pip-version-check -r requirements-torch.txt "$@" && break
  [ "$attempt" -lt 3 ] || { echo "torch_venv: pip could not install requirements-torch.txt" >&2; exit 1; }
done
echo "$wanted" > "$venv/ready"
