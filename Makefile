# `make run` and `make test` are all that a fresh machine needs; `make help` lists the rest.

PYTHON ?= python3
BIN := .venv/bin
# The environment is good for one place, one set of pins and one list of dependencies; another of these makes it anew.
SUM := $(shell (pwd; cat pyproject.toml constraints.txt) | cksum | cut -d ' ' -f 1)
STAMP := .venv/installed-$(SUM)
# The same, of what pages, scripted partners and API models need: `make run` waits for no more.
RUNS := .venv/runs-$(SUM)

# Nothing that the shell happens to have exported may change what is installed or run; pip's index settings stay.
unexport PYTHONPATH PYTHONHOME PYTHONSAFEPATH PYTHONOPTIMIZE PYTHONWARNINGS PYTHONSTARTUP PYTHONDONTWRITEBYTECODE
unexport VIRTUAL_ENV FLASK_APP FLASK_DEBUG NODE_OPTIONS NODE_PATH
unexport PIP_REQUIRE_VIRTUALENV PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON PIP_CONSTRAINT PIP_REQUIREMENT
unexport PIP_BUILD_CONSTRAINT PIP_REQUIRE_HASHES PIP_NO_DEPS PIP_DRY_RUN PIP_PRE PIP_NO_BINARY PIP_EDITABLE PIP_SRC

.PHONY: help install run test test-long lint coverage chaos bench tiny screenshots translations hashes chromium r

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: $(STAMP)  ## Make the environment in .venv; costs nothing when it is there.

# pip compiles one file after the other; a few of the libraries' are no Python of this version, and nobody needs them.
# Of the hundreds of architectures in transformers Python compiles what is used when it is.
define put_into_venv
set -e; began=$$(date +%s); \
$(BIN)/python -m pip --version > /dev/null 2>&1 || { $(find_python); $$python -m venv --clear .venv; }; \
echo "Installing what $(2) into .venv; this takes a minute or two, once."; \
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.$(1)'; \
$(BIN)/python -m compileall -qq -j 0 -x '/transformers/models/(?!auto|llama)' .venv/lib || true; \
rm -f .venv/installed-* .venv/runs-*; \
echo "Installed, $$(du -sm .venv | cut -f 1) MB in $$(($$(date +%s) - began)) s.";
endef

$(STAMP):
	@$(call put_into_venv,[dev],Parlor and its tests need) touch $(STAMP) $(RUNS); rm -f .venv/parlor-training.json

# The supervisor installs the rest, what trains models, while people can play already.
$(RUNS):
	@if [ -f $(STAMP) ]; then touch $(RUNS); \
	else $(call put_into_venv,,pages$(comma) scripted partners and API models need) touch $(RUNS); fi

comma := ,
define find_python
python=; \
for each in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
  if $$each -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then \
    python=$$each; break; \
  fi; \
done; \
if [ -z "$$python" ]; then \
  echo "error: expected Python 3.11 or newer with its venv module, got $$($(PYTHON) --version 2>&1 | tail -n 1);" \
    "install it (Debian: apt-get install python3-venv) or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; \
  exit 2; \
fi
endef

run: $(RUNS)  ## Start everything and print where to go; PORT=8001 for another port, Ctrl-C stops it.
	@exec $(BIN)/python -m workers.supervisor

# Each gate is run even when one before it failed.
gate = printf '%s\n' '-- $(1): $(2)'; $(BIN)/$(2) || failed="$$failed $(1)";
LINT = $(call gate,ruff,ruff check) $(call gate,format,ruff format --check) $(call gate,mypy,mypy) \
	$(call gate,imports,lint-imports) $(LINT_SCRIPTS)
verdict = if [ -n "$$failed" ]; then echo "Failed:$$failed" >&2; exit 1; fi

# TypeScript and Biome check the scripts. npm installs them once for each package-lock.json; Node comes with .venv.
SCRIPT_TOOLS := node_modules/installed-$(shell cat package-lock.json | cksum | cut -d ' ' -f 1)
define LINT_SCRIPTS
if [ -f $(SCRIPT_TOOLS) ] || { output=$$($(BIN)/npm ci --no-progress 2>&1) && touch $(SCRIPT_TOOLS); }; then \
  $(call gate,tsc,node node_modules/typescript/bin/tsc) \
  $(call gate,biome,node node_modules/@biomejs/biome/bin/biome lint --error-on-warnings) \
elif [ "$${REQUIRE_SERVICES:-0}" != 0 ]; then \
  printf '%s\n' '-- npm: npm ci' "$$output"; failed="$$failed npm"; \
else \
  echo "Skipping the type check and the lint of static/js: npm could not install TypeScript and Biome;" \
    "'$(BIN)/npm ci' says why."; \
fi;
endef

# Tests wait more than they compute, so six processes suit even two cores; tests/order.py says which takes what.
PARALLEL = -n 6
# Where nothing is compiled yet, one process does it first; else each of them would compile all of app and tests.
COMPILE = [ -d tests/__pycache__ ] || $(BIN)/pytest --collect-only -qq > /dev/null 2>&1 || true

# The other gates run beside pytest, which takes most of the time, and what they print comes before what it prints: until
# they are through, its lines wait in the pipe. A pipe, rather than `&`, joins them, so that Ctrl-C ends all of them.
test: install chromium  ## Check style, types and imports, of scripts too, and run all tests.
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; trap 'exit 130' INT TERM; mkfifo "$$folder/gates"; \
	{ failed=; $(LINT) $(call gate,scripts,node --test --test-reporter=dot tests/js/*.test.js) \
	  printf '%s' "$$failed" > "$$folder/failed"; } > "$$folder/gates" 2>&1 \
	| { $(COMPILE); failed=; $(call gate,pytest,pytest $(PARALLEL)) printf '%s' "$$failed" > "$$folder/failed-tests"; } \
	| cat "$$folder/gates" -; \
	failed=$$(cat "$$folder/failed" "$$folder/failed-tests") || failed="$$failed (ended early)"; $(verdict)

test-long: install chromium r  ## Run all tests, those too that `make test` leaves out: long forms, both databases.
	@$(BIN)/pytest $(PARALLEL) --long $(TESTS)

lint: install  ## Check style, types and imports alone, of scripts too.
	@failed=; $(LINT) $(verdict)

# Slower than the tests alone, so no gate.
coverage: TESTS ?= tests/unit tests/training tests/integration
coverage: install  ## Measure which branches the tests take, all but the browser's or TESTS=tests/unit; prints a table.
	@mkdir -p var/coverage && $(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(PARALLEL) $(TESTS); tests=$$?; \
	$(BIN)/coverage combine -q && $(BIN)/coverage report && exit $$tests

chaos: install  ## Send bodies without end beside fifty players, then kill, stop and flood under their matches, for 120 s or SECONDS=3600.
	@$(BIN)/python -m tests.chaos --seconds $(or $(SECONDS),120)

bench: install  ## Measure live play on this machine beside a baseline; docs/results.md says what the figures mean.
	@$(BIN)/python -m bench.live --clients 100 --seconds 10

tiny: install  ## Make those small models of data/models anew that were removed, from scripted matches; takes about two hours.
	@$(BIN)/python -m scripts.make_tiny

# For the browser tests, which need the whole of it for the keyboard alone. Only an administrator of a Debian can be helped; elsewhere these tests are skipped and say so.
chromium:
	@if ! { command -v chromium && command -v chromium-headless-shell; } > /dev/null \
	  && command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "Installing Chromium for the browser tests."; \
	  said=$$(apt-get update -qq 2>&1 \
	    && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium chromium-headless-shell fonts-liberation 2>&1) \
	    || { echo "$$said" | tail -n 3; echo "Chromium was not installed; browser tests do with what is there, or are skipped."; }; \
	fi

# For the tests that read every CSV by the lines of the codebook; without R they are skipped, as browser tests are.
r:  ## Install R on a Debian, for the tests of the code by which it reads every CSV.
	@if ! command -v Rscript > /dev/null && command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "Installing R for the tests of its code."; \
	  said=$$(apt-get update -qq 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y r-base-core 2>&1) \
	    || { echo "$$said" | tail -n 3; echo "R was not installed; the tests that need it are skipped."; }; \
	fi

screenshots: install chromium  ## Photograph every page and state into screenshots/, and the walk of docs/studies.md anew.
	@$(BIN)/python -m scripts.screenshots && $(BIN)/python -m scripts.study_guide

hashes: install  ## Write requirements/*.txt, the files that images install, each by its hash, from constraints.txt.
	@$(BIN)/python -m scripts.hash_requirements

translations: install  ## Bring the catalogs in translations/ up to date with the pages, and list what is to translate.
	@$(BIN)/python -m scripts.translations $(NEW)
