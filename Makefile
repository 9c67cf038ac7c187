# Two commands do all the set-up: `make demo` and `make test`. Everything lives in .venv and goes with `make clean`.

PYTHON ?= python3
PYTEST_WORKERS ?= 2
TORCH  ?= torch==2.13.0
GROUP  ?=
SHARD  ?=
ARRAY_API_TESTS ?=
GPU    ?=
BIN    := .venv/bin
TORCH_BIN := .venv-torch/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-cuda browser lint docs stubs bench gpu parity array-api clean

help:  ## list these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.has-demo  ## train a classifier through the whole stack, and show what happened on the way
	$(BIN)/python -m redispatch demo

# Where calls are dispatched in ways that other tests do not try: a drawn tenth of these runs boxed, too.
BOXED := $(addprefix tests/,amp autograd backend dispatch func fx modes op_db ops safety subclasses tensor)

# One machine of several runs its part of the tests: make test SHARD=2/4
PYTEST = $(BIN)/pytest -n $(PYTEST_WORKERS) $(SHARD:%=--shard %)

test: .venv/.has-test .venv/.has-cuda  ## run the tests, of the many alike those that a seed draws; CUDA's on a simulated GPU
	REDISPATCH_SPECIALIZE=0 $(PYTEST) --share 10 $(BOXED)
	REDISPATCH_SPECIALIZE=strict $(PYTEST)

test-all: .venv/.has-test .venv/.has-cuda  ## run everything, boxed and specialised, and parity where there is torch: a night
	REDISPATCH_SPECIALIZE=0 $(PYTEST) --all
	REDISPATCH_SPECIALIZE=strict $(PYTEST) --all
	@if [ -e .venv-torch/.ready ]; then $(MAKE) parity; else echo "There is no .venv-torch: make parity was not run."; fi

test-cuda: .venv/.has-test .venv/.has-cuda  ## run the tests of CUDA alone
	$(BIN)/pytest -n $(PYTEST_WORKERS) tests/cuda

browser:  ## install a Chromium for the tests of pages, where apt-get can; without one they are skipped
	@if command -v chromium chromium-browser google-chrome >/dev/null; then echo "there is a browser already"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -q && apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core; \
	else echo "install Chromium, or set REDISPATCH_BROWSER to one; without it the tests of pages are skipped"; fi

lint: .venv/.has-lint  ## formatting, lint, types, and which room imports which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=.typing $(BIN)/lint-imports  # which, too, must see the rooms as one package

docs: .venv/.has-docs  ## build the documentation into docs/_build/html; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

stubs: .venv/.has-test  ## write the stubs for type checkers anew, from the operators' schemas
	$(BIN)/python -m redispatch.stubs

bench: .venv-torch/.ready  ## time ours against torch in one process (GROUP=dispatch|kernels|train|compiled for one group)
	$(TORCH_BIN)/python tests/bench/run.py $(GROUP)
	$(TORCH_BIN)/python tests/bench/layers.py
	$(TORCH_BIN)/python tests/bench/growth.py
	$(TORCH_BIN)/python tests/bench/graph.py
	$(TORCH_BIN)/python tests/bench/tracing.py
	$(TORCH_BIN)/python tests/bench/host.py
	$(TORCH_BIN)/python tests/bench/cold.py

# Machines with GPUs often have no network, and everything in an image: then $(PYTHON) is taken as it is, and .typing,
# where the rooms are one package that need not be installed, is on its path.
HAS_GPU_PACKAGES = $(PYTHON) -c 'import torch, numba_cuda, cuda.core' 2>/dev/null

gpu:  ## on a machine with an NVIDIA GPU: check it against CPU and simulator, and time it beside torch (writes gpu.json)
	@if ! $(HAS_GPU_PACKAGES); then $(MAKE) .venv-torch/.ready .venv-torch/.has-cuda; fi
	PYTHONPATH=.typing:$$PYTHONPATH $$($(HAS_GPU_PACKAGES) && echo $(PYTHON) || echo $(TORCH_BIN)/python) tests/gpu/run.py $(GPU)

parity: .venv-torch/.ready  ## compare behaviour with real torch, operator by operator
	$(TORCH_BIN)/pytest tests/parity

array-api:  ## run the suite of the array API standard (ARRAY_API_TESTS=where data-apis/array-api-tests is checked out)
	@test -d "$(ARRAY_API_TESTS)/array_api_tests" || { echo "Say where data-apis/array-api-tests is checked out:" \
		"make array-api ARRAY_API_TESTS=../array-api-tests" >&2; exit 1; }
	$(MAKE) .venv/.has-test
	$(BIN)/pip install --quiet --disable-pip-version-check -r "$(ARRAY_API_TESTS)/requirements.txt"
	cd "$(ARRAY_API_TESTS)" && ARRAY_API_TESTS_MODULE=redispatch.array_api ARRAY_API_TESTS_VERSION=2024.12 \
		"$(CURDIR)/$(BIN)/pytest" array_api_tests --skips-file "$(CURDIR)/tests/array_api/skips.txt"

clean:  ## remove environments, builds and caches
	rm -rf .venv .venv-torch build *.egg-info docs/_build docs/jupyter_execute docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis .grimp_cache \
		.import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- environments -----------------------------------------------------------------------------------------------
# The target is pip, not python: some tools make a .venv without pip, and we need the one that can install.

.venv/bin/pip .venv-torch/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "redispatch needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(@D)/..
	@touch $@

# One stamp per extra, so that a second call installs nothing; a change of pyproject.toml installs again.
.venv/.has-%: pyproject.toml | .venv/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[$*]"
	$(BIN)/python -m compileall -q -x '(\.venv|docs|tests|build)' .  # pip compiles no editable install
	@touch $@

.venv-torch/.has-cuda: pyproject.toml | .venv-torch/.ready
	$(TORCH_BIN)/pip install --quiet --disable-pip-version-check --editable ".[test,cuda,cuda-libs]"
	@touch $@

# Real torch stays out of .venv: nothing that `make demo` or `make test` runs may come to depend on it.
.venv-torch/.ready: pyproject.toml | .venv-torch/bin/pip
	$(TORCH_BIN)/pip install --quiet --disable-pip-version-check $(TORCH)
	$(TORCH_BIN)/pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@
