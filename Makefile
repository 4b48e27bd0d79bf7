# `make test` and `make demo` do everything on a fresh machine, set-up included. In an environment that already has
# PyTorch and the rest, or on a machine that cannot download anything: `make test PYTHON=python3 VENV=`.
PYTHON ?= python3
VENV ?= .venv

SOURCES := $(shell find csrc -name '*.h' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cu')
ARGS ?=

.PHONY: test test-oldest demo bench docs lint format build archs dist wheels clean

ifeq ($(VENV),)
RUN := PYTHONPATH="$(CURDIR)$${PYTHONPATH:+:$$PYTHONPATH}" $(PYTHON)
BIN :=
else
RUN := $(VENV)/bin/python
BIN := $(VENV)/bin/

# PyTorch comes first and pinned: an open range would resolve to whatever is newest, gigabytes at a time.
$(VENV)/torch.stamp: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet -c constraints.txt torch
	$(RUN) -m pip install --quiet -c constraints.txt "setuptools>=77" wheel
	touch $@

$(VENV)/package.stamp: $(VENV)/torch.stamp setup.py pyproject.toml $(wildcard build_support/*.py)
	$(RUN) setup.py --quiet build_ext --inplace
	$(RUN) -m pip install --quiet --no-build-isolation -c constraints.txt -e ".[test,dev,examples,bench]"
	touch $@

$(VENV)/docs.stamp: $(VENV)/package.stamp
	$(RUN) -m pip install --quiet --no-build-isolation -c constraints.txt -e ".[docs]"
	touch $@
endif

# setup.py knows best what is out of date; where nothing is, it takes a fraction of a second.
build: $(if $(VENV),$(VENV)/package.stamp)
	$(RUN) setup.py --quiet build_ext --inplace

# Whether the kernels compile for all the GPUs that they are meant for. Minutes.
archs: $(if $(VENV),$(VENV)/torch.stamp)
	$(RUN) setup.py --quiet archs

# With pytest-xdist, in as many processes as JOBS says. worksteal leaves the tests of a file to one process as long as it
# can, and with them what they share: what numba compiles, the oracle's answers, networks that were trained.
JOBS ?= 2
test: lint build
	$(RUN) -m pytest $$($(RUN) -c "import importlib.util as u; print('-n $(JOBS) --dist worksteal' if u.find_spec('xdist') else '')") $(ARGS)

# In an environment that has the oldest PyTorch that is supported: `make test-oldest PYTHON=path/to/its/python`.
test-oldest:
	@$(PYTHON) .ci/is_oldest.py
	$(MAKE) test VENV= PYTHON=$(PYTHON)

demo: build
	$(RUN) examples/train_forecaster.py $(ARGS)

bench: build
	$(RUN) benchmarks/bench_kernels.py $(ARGS)
	$(RUN) benchmarks/bench_libraries.py $(ARGS)

# Warnings are errors. Here run the examples, which become tutorials, and the docstrings' snippets; those of the pages run in
# tests/api/test_docs.py. An example that has not changed since the last time is not run again.
docs: build $(if $(VENV),$(VENV)/docs.stamp)
	$(RUN) -m sphinx -q -W --keep-going -d build/doctrees -b html docs build/docs
	$(RUN) -m sphinx -q -W --keep-going -d build/doctrees -D plot_gallery=0 -b doctest docs build/doctest

dist: build
	$(RUN) -m build --no-isolation

# dist/cpu and dist/cuda, each then installed in an empty environment, with PyTorch from where pip finds it, and run. Minutes,
# since the CUDA library is compiled for other GPUs than that of `make build`. `make wheels WHEELS=cpu` needs no nvcc.
WHEELS ?= cpu cuda
wheels: $(if $(VENV),$(VENV)/package.stamp)
	$(RUN) -m build_support.wheels $(WHEELS)
	BUILT_WHEELS="$(WHEELS)" $(RUN) -m pytest -q tests/package/test_wheel.py $(ARGS)

# With an environment of the user's own, the tools may be missing.
lint: $(if $(VENV),$(VENV)/package.stamp)
ifeq ($(VENV),)
	@for tool in ruff clang-format mypy; do command -v $$tool >/dev/null || echo "$$tool not found: not linting with it"; done
	@! command -v ruff >/dev/null || { ruff check . && ruff format --check .; }
	@! command -v clang-format >/dev/null || clang-format --dry-run -Werror $(SOURCES)
	@! command -v mypy >/dev/null || mypy --python-executable $(PYTHON)
else
	$(BIN)ruff check .
	$(BIN)ruff format --check .
	$(BIN)clang-format --dry-run -Werror $(SOURCES)
	$(BIN)mypy
endif

format: $(if $(VENV),$(VENV)/package.stamp)
	$(BIN)ruff check --fix .
	$(BIN)ruff format .
	$(BIN)clang-format -i $(SOURCES)

clean:
	rm -rf build dist docs/tutorials docs/sg_execution_times.rst *.egg-info torchsoftdtw/*.so .venv
