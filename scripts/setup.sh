#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Brings a machine with make, git, a C++ compiler and Python to where `make` can build: Debian
# packages (installed where this user may, else named), and the virtual environment .venv.
# Does nothing, in well under a second, where all is there.
#
#   scripts/setup.sh            # both; PYTHON is the interpreter for a new .venv
#   scripts/setup.sh packages   # Debian's packages alone, with what PYTHON needs of them
#
# A .venv that works stays as it is, whichever Python PYTHON is: others may be using it. What
# requirements-dev.txt asks for anew is installed into it.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
packages=(cmake ninja-build pkg-config libabsl-dev libhwy-dev libopenblas-openmp-dev
          libgtest-dev libgmock-dev libbenchmark-dev)
# ccache makes the second build quick, libgloo-dev makes collectives on the CPU, libdnnl-dev makes
# products of bfloat16 there quick.
optional=(ccache libgloo-dev libdnnl-dev)

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

command -v "$python" > /dev/null || fail "$python was not found; set PYTHON, or install python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  fail "$python is $("$python" -V 2>&1); Python 3.10 or newer is needed"
command -v g++ > /dev/null || packages+=(g++)
# A Python that is not Debian's brings its own headers and venv module.
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -e "$include/Python.h" ] || packages+=(python3-dev)
"$python" -c 'import ensurepip, venv' 2> /dev/null || packages+=(python3-venv)

# Of `optional`, what this system's package index has, into `wanted`.
choose_optional() {
  wanted=()
  for package in "${optional[@]}"; do
    if apt-cache show "$package" > /dev/null 2>&1; then wanted+=("$package"); fi
  done
}

installed() { dpkg-query -W -f '${Status}' "$1" 2> /dev/null | grep -q '^install ok installed$'; }

install_debian_packages() {
  local missing=() root=() wanted
  for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2> /dev/null; then
      root=(sudo)
    else
      fail "these packages are missing, and this user may not install them. As root, run" \
           "  apt-get update && apt-get install -y ${missing[*]} ${optional[*]}" \
           "and then make again."
    fi
  fi
  echo "== installing ${missing[*]}"
  "${root[@]}" apt-get update -q
  choose_optional
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" "${wanted[@]}"
}

# A build does without these, and says so; they are asked for once.
install_optional_packages() {
  local missing=() root=() wanted stamp=.venv/oneflow_lite-optional
  for package in "${optional[@]}"; do
    installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] && [ "$(cat "$stamp" 2> /dev/null)" != "${missing[*]}" ] || return 0
  echo "${missing[*]}" > "$stamp"
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2> /dev/null || return 0
    root=(sudo)
  fi
  echo "== installing ${missing[*]}"
  { "${root[@]}" apt-get update -q && choose_optional && "${root[@]}" env \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${wanted[@]}"; } \
    > /dev/null ||
    echo "setup: ${missing[*]} could not be installed; the build does without"
}

check_other_system() {
  local missing=()
  for program in cmake ninja pkg-config g++; do
    command -v "$program" > /dev/null || missing+=("$program")
  done
  for module in absl_status libhwy openblas gtest; do
    pkg-config --exists "$module" 2> /dev/null || missing+=("$module (headers and library)")
  done
  [ ${#missing[@]} -eq 0 ] ||
    fail "not a Debian system, so nothing is installed here. Missing, by pkg-config's names:" \
         "${missing[@]/#/  }"
}

make_venv() {
  local stamp=.venv/oneflow_lite-setup
  local wanted
  wanted=$(sha256sum < requirements-dev.txt)
  if ! .venv/bin/python -c '' 2> /dev/null; then
    echo "== making the virtual environment .venv"
    "$python" -m venv --clear .venv
  elif [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ]; then
    return 0
  else
    echo "== installing requirements-dev.txt into .venv, of $(.venv/bin/python -V)"
  fi
  .venv/bin/python -m pip install -q --disable-pip-version-check -r requirements-dev.txt ||
    fail "pip could not install requirements-dev.txt; is a package index reachable?"
  echo "$wanted" > "$stamp"
}

# The headers by which attention on CUDA goes through cuDNN. A build does without them, and says so.
install_cudnn_headers() {
  command -v nvcc > /dev/null || [ -x /usr/local/cuda/bin/nvcc ] || return 0
  [ -e requirements-cuda.txt ] || return 0
  local stamp=.venv/oneflow_lite-cudnn
  local wanted
  wanted=$(sha256sum < requirements-cuda.txt)
  [ "$(cat "$stamp" 2> /dev/null)" != "$wanted" ] || return 0
  if .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps \
    -r requirements-cuda.txt; then
    echo "$wanted" > "$stamp"
  else
    echo "setup: pip could not install requirements-cuda.txt; attention will do without cuDNN"
  fi
}

if command -v dpkg-query > /dev/null && command -v apt-get > /dev/null; then
  install_debian_packages
else
  check_other_system
fi
if [ "${1:-}" != packages ]; then
  make_venv
  command -v apt-get > /dev/null && install_optional_packages
  install_cudnn_headers
fi
