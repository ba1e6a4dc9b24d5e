# make demo: set up, train on the embedded data set, show what was learnt.
# make check: set up, then lint, types and the laws.  make test: lint, types and all tests but the slow ones.  make slow: those.
# make docs: build the site from docs/ into site/.  make notebooks: run the notebooks in docs/ again.
# make release: build wheel and sdist into dist/, and check them, and that tests/public_face.txt is complete.
PYTHON ?= python3
BIN := .venv/bin

# Tests start Python many times; where this is set each of them would compile all modules anew, torch's for three seconds.
unexport PYTHONDONTWRITEBYTECODE

# One process more than there are cores, since some tests wait for processes that they start or stop; a file of tests runs
# in one of them, so that what its tests share is made once.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PARALLEL := -n $(WORKERS) --maxprocesses 8 --dist loadfile

.PHONY: demo check lint laws test tests slow docs notebooks release clean

demo: .venv/demo
	$(BIN)/infomax demo

check: .venv/dev
	$(MAKE) -j2 lint laws

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff check -q --select E501 --config 'lint.pycodestyle.max-line-length = 100' src
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

laws: .venv/dev
	$(BIN)/pytest tests/laws tests/graphs

test: .venv/dev
	$(MAKE) -j2 lint tests

tests: .venv/dev
	$(BIN)/pytest $(PARALLEL)

slow: .venv/dev
	$(BIN)/pytest -m slow $(PARALLEL)

docs: .venv/docs
	$(BIN)/mkdocs build --strict

notebooks: .venv/docs
	$(BIN)/python scripts/run_notebooks.py

release: .venv/release
	rm -rf dist build
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python scripts/public_face.py --check

# A set-up is done again when what it installs has changed. Modules of the checks are compiled when they are first imported:
# most never are.
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
	$(BIN)/pip install -q --no-compile -c constraints.txt -e '.[dev]'
	touch $@

.venv/release: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[release]'
	touch $@

clean:
	rm -rf .venv build dist demo site
