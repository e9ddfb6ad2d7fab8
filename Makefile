# make demo: a cluster's logs with a known fault, parsed, diagnosed and drawn. make test: everything CI runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint unit engines benchmarks clean

demo: $(VENV)/.ready
	$(BIN)/ascend-elk demo demo --force

test: lint unit engines

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(VENV)/.ready
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not engines"

# The tests that need a real Elasticsearch and a real Filebeat; both are fetched once and kept in a cache.
engines: $(VENV)/.ready
	$(BIN)/python -m tests.engines.prepare
	$(BIN)/python -m pytest -m engines

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[service,test,dev]"
	touch $@

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
