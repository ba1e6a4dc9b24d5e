# make demo: set up, train on the embedded data set, show what was learnt.
# make check: set up, then lint, types and the laws.  make test: lint, types and all tests but the slow ones.  make slow: those.
# make docs: build the site from docs/ into site/.  make notebooks: run the notebooks in docs/ again.
PYTHON ?= python3
BIN := .venv/bin

# One process per core; a file of tests runs in one of them, so that what its tests share is made once.
WORKERS ?= logical
PARALLEL := -n $(WORKERS) --maxprocesses 8 --dist loadfile

.PHONY: demo check lint laws test slow docs notebooks clean

demo: .venv/demo
	$(BIN)/infomax demo

check: .venv/dev
	$(MAKE) -j2 lint laws

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

laws: .venv/dev
	$(BIN)/pytest tests/laws tests/graphs

test: lint
	$(BIN)/pytest $(PARALLEL)

slow: .venv/dev
	$(BIN)/pytest -m slow $(PARALLEL)

docs: .venv/docs
	$(BIN)/mkdocs build --strict

notebooks: .venv/docs
	$(BIN)/python scripts/run_notebooks.py

# A set-up is done again when what it installs has changed.
.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[viz]'
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
