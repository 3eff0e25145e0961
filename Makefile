# SPDX-License-Identifier: Apache-2.0
#
# The front door. `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := build
.NOTPARALLEL:

# VENV_PYTHON is the interpreter of a new .venv, PYTHON that of the wheel, which has an environment
# of its own.
VENV_PYTHON ?= python3
PYTHON ?= $(VENV_PYTHON)
JOBS ?= $(shell nproc)
VENV := .venv
PY := $(CURDIR)/$(VENV)/bin/python

# CUDA=AUTO builds the CUDA half where nvcc is found, CUDA=ON insists, CUDA=OFF leaves it out.
CUDA ?= AUTO
NVCC := $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
ifeq ($(CUDA),AUTO)
  WITH_CUDA := $(if $(NVCC),ON,OFF)
else
  WITH_CUDA := $(CUDA)
endif
PRESET ?= $(if $(filter ON,$(WITH_CUDA)),cuda-release,cpu-release)
BUILD := build/$(PRESET)

# With ccache, a second clone builds from the first one's objects (and the tests' precompiled header,
# whose time stamps it cannot see, does not stand in the way).
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := true
export CCACHE_SLOPPINESS := pch_defines,time_macros

.PHONY: help
help: ## show this list
	@echo "make [PRESET=cpu-release|cuda-release|cpu-debug] [CUDA=AUTO|ON|OFF] TARGET"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: setup
setup: ## install what is missing: packages (apt where it may), the virtual environment .venv
	@PYTHON="$(VENV_PYTHON)" scripts/setup.sh

# $(call build,PRESET): configure, compile and lay out build/PRESET/package/oneflow_lite, the
# Python package and C++ prefix of that build.
define build
	@echo "== building $(1)"
	@cmake --preset $(1) -DPython_EXECUTABLE=$(PY) > build/$(1).log || { cat build/$(1).log; exit 1; }
	@sed -n 's/^-- \(oneflow_lite: .*\)/\1/p' build/$(1).log
	@cmake --build --preset $(1) -j $(JOBS)
	@rm -rf build/$(1)/package
	@cmake --install build/$(1) --prefix build/$(1)/package/oneflow_lite > /dev/null
endef

.PHONY: build
build: setup ## build, and make `import oneflow_lite` work in .venv (the default target)
	@mkdir -p build
	$(call build,$(PRESET))
	@echo "$(CURDIR)/$(BUILD)/package" > \
	  "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/oneflow_lite.pth"

.PHONY: demo
demo: build ## train a classifier on real handwritten digits and draw digits.png
	@$(PY) examples/digits.py

.PHONY: gpt
gpt: build ## train a small GPT on a novel, draw its losses, and let it write
	@$(PY) examples/gpt/train.py

.PHONY: parallel
parallel: build ## train one model on two processes in five ways, on the CPU (a tutorial)
	@$(PY) -m oneflow_lite.launch --nproc 2 --device cpu examples/parallel.py

# The Python tests run in JOBS processes. Threads that wait give their core to another process, and
# each process has two, so that what threads share is tested.
.PHONY: test
test: build ## run all C++ and Python tests
	@cmake --build --preset $(PRESET) -j $(JOBS) --target cpp_tests
	ctest --preset $(PRESET)
	OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive $(PY) -m pytest -n $(JOBS) --dist worksteal

# A minute of them is part of the Python tests; here each has its full size. ATTACKS names some.
.PHONY: test-attack
test-attack: build ## run the attacks of tests/attack at full size, with fixed seeds
	$(PY) tests/attack/_all.py $(ATTACKS)

# The sanitizers' shadow memory does not fit every random layout that newer kernels choose.
SAME_ADDRESSES = $(shell setarch -R true 2> /dev/null && echo setarch -R)

# Python itself is not sanitized, so the runtimes are loaded before it; leaks are CTest's to find,
# because the interpreter keeps memory until the end of the process.
.PHONY: test-asan
test-asan: setup ## run all but slow and timed tests under AddressSanitizer and UBSan
	@mkdir -p build
	$(call build,cpu-asan)
	@cmake --build --preset cpu-asan -j $(JOBS) --target cpp_tests
	$(SAME_ADDRESSES) ctest --preset cpu-asan
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc \
	  PYTHONPATH=$(CURDIR)/build/cpu-asan/package $(PY) -m pytest -m "not slow and not timed" --ignore tests/python/test_architecture.py

.PHONY: test-tsan
test-tsan: setup ## run the C++ tests of dispatch, allocator, autograd, collectives and threads under ThreadSanitizer
	@mkdir -p build
	@cmake --preset cpu-tsan > build/cpu-tsan.log || { cat build/cpu-tsan.log; exit 1; }
	@cmake --build --preset cpu-tsan -j $(JOBS) --target cpp_tests
	$(SAME_ADDRESSES) ctest --preset cpu-tsan -R '$(TSAN_TESTS)'
TSAN_TESTS ?= Dispatch|Allocator|Autograd|Collective|Thread|Stream|Registry

.PHONY: test-torch
test-torch: ## test oneflow_lite_torch on the CPU, with PyTorch's newest release or TORCH=2.10 (a large download)
	VENV_PYTHON="$(VENV_PYTHON)" TORCH="$(TORCH)" scripts/torch_test.sh

.PHONY: test-opdb
test-opdb: build ## hold functions, modules and optimizers against PyTorch's samples (a large download; 2 minutes)
	VENV_PYTHON="$(VENV_PYTHON)" scripts/torch_venv.sh build/torch-venv
	for check in check modules optimizers; do \
	  PYTHONPATH="$(CURDIR)/$(BUILD)/package" build/torch-venv/bin/python tests/opdb/$$check.py || exit 1; \
	done

.PHONY: torch-wheel
torch-wheel: ## build dist/oneflow_lite_torch-*.whl for sm_80, 86 (89 runs it), 90 and PTX for later GPUs
	VENV_PYTHON="$(VENV_PYTHON)" scripts/torch_wheel.sh dist OFL_TORCH_CUDA=ON \
	  "CMAKE_CUDA_ARCHITECTURES=80-real;86-real;90"

.PHONY: torch-bundle
torch-bundle: ## put a wheel of oneflow_lite_torch (sm_90) into carry/, for a GPU machine
	VENV_PYTHON="$(VENV_PYTHON)" scripts/torch_wheel.sh carry OFL_TORCH_CUDA=ON
	rm -rf carry/torch
	build/torch-venv/bin/python -m pip download -q --disable-pip-version-check --no-deps \
	  -d carry/torch expecttest

.PHONY: wheel
wheel: ## build dist/*.whl for PYTHON=..., with all libraries inside except NVIDIA's
	@PYTHON="$(PYTHON)" scripts/setup.sh packages
	@scripts/wheel.sh "$(PYTHON)" dist --config-settings=cmake.define.OFL_CUDA=$(WITH_CUDA)

.PHONY: gpu-bundle
gpu-bundle: PYTHON := python3.12
gpu-bundle: ## put a wheel (Python 3.12, sm_90) and the C++ tests into carry/, for a GPU machine
	@PYTHON="$(PYTHON)" scripts/setup.sh packages
	@scripts/gpu_bundle.sh "$(PYTHON)"

.PHONY: format
format: setup ## format all C++, CUDA and Python files
	@git ls-files -z --cached --others --exclude-standard \
	  '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 $(VENV)/bin/clang-format -i
	@$(VENV)/bin/ruff format -q . && $(VENV)/bin/ruff check -q --fix .

.PHONY: lint
lint: setup ## check the formatting and the habits of the Python files
	@git ls-files -z --cached --others --exclude-standard \
	  '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 $(VENV)/bin/clang-format --dry-run --Werror
	@$(VENV)/bin/ruff format --check . && $(VENV)/bin/ruff check .

.PHONY: clean
clean: ## remove everything that was built; .venv stays
	rm -rf build dist carry digits.png .pytest_cache .hypothesis .ruff_cache
