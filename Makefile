# Each target works alone on a fresh machine: Linux, Python >= 3.11 with venv, git, make. Nothing is installed outside .venv.
SHELL := /bin/bash
PYTHON ?= python3
PYTEST_ARGS ?=
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: help evals test check oracles clean

help:
	@echo 'make evals    score the model zoo: pytest evals/ -n auto'
	@echo 'make test     the test suite (PYTEST_ARGS="-k name" narrows it)'
	@echo 'make check    ruff, ruff format, mypy --strict, the import rule'
	@echo 'make oracles  install the oracles that need g++ and cmake; without them their tests are skipped'
	@echo 'make clean    remove .venv and everything generated'

evals: $(VENV)/.installed
	$(PY) -m pytest evals/ -n auto $(PYTEST_ARGS)

test: export OMP_NUM_THREADS ?= 1
test: $(VENV)/.installed-test
	$(PY) -m pytest tests/ -n auto -rs $(PYTEST_ARGS)

check: $(VENV)/.installed-check
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pytest tests/test_imports.py -q -p no:cacheprovider

oracles: $(VENV)/.installed-oracles-cpp

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage build dist mutants eval-report
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One virtual environment; a stamp in it for each set of packages. A stamp is older than what it was made from: install again.
# If `venv` fails half way (no ensurepip), nothing is left that a second try would take for finished.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "tinyllm needs Python 3.11 or newer, got '$$($(PYTHON) --version 2>&1)' from '$(PYTHON)'; name another: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	    rm -rf $(VENV); echo "'$(PYTHON) -m venv' failed (above); on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

$(VENV)/.installed: $(PY) pyproject.toml constraints.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-%: $(PY) pyproject.toml constraints.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@ $(VENV)/.installed
