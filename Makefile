# make demo: set up, train on the embedded data set, show what was learnt.  make test: set up, run every check.
# make docs: build the site from docs/ into site/.  make notebooks: run the notebooks in docs/ again.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test docs notebooks check clean

demo: .venv/demo
	$(BIN)/infomax demo

test: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

docs: .venv/docs
	$(BIN)/mkdocs build --strict

notebooks: .venv/docs
	$(BIN)/python scripts/run_notebooks.py

# A set-up is done again when what it installs has changed.
.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[parquet,viz]'
	touch $@

.venv/docs: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[docs,viz]'
	touch $@

.venv/dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist demo site
