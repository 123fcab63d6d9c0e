# Every command of a developer's and an operator's day. Each sets up what it needs and says what it is doing.
#
#   make run       the whole site (PORT=8000 DATA_DIR=data)      make test    everything, with a browser
#   make models    download and convert the trial models         make check   format, lint, types, imports, fast tests
#   make shots     screenshots of the pages                      make clean   forget the environment, keep the data
#   make simulate  the scheduler under load, without a model
#   make bench-claims   what is commonly claimed, measured here
#   make bench-cache    the semantic cache on tables of 1,000 to 100,000 rows
#   make bench-web      what the web process adds under 400 streams, and what 1,000 sockets cost
#   make train-verifier   the second opinion on look-alike questions, about two hours on two cores
#   make comply   clients and suites of others against the site, and requests that go wrong in thousands of ways
#   make peers-cache    the same questions asked of other semantic caches
#   make cache-eval     how much the semantic cache serves, and how much of it is wrong

PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
COMPLY := .venv-comply
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check

# An installation is named after what it was made from: a changed requirement is a new name and installs again.
key = $(shell cat $(1) | cksum | tr ' ' '-')
PRODUCT := $(VENV)/installed-$(call key,requirements.txt)
# Most tests wait for processes: two folders at a time need little more than half of the time, on two cores too.
BESIDE := -n 2 --dist loadgroup
PEER_PACKAGES := $(PEERS)/installed-$(call key,semcache/evaluation/peers/requirements.txt)
COMPLY_PACKAGES := $(COMPLY)/installed-$(call key,requirements-comply.txt)
TOOLS := $(VENV)/installed-tools-$(call key,requirements.txt requirements-dev.txt)

.PHONY: run models test check lint shots comply bench-claims bench-cache bench-web train-verifier simulate cache-eval peers-cache clean chromium
.DELETE_ON_ERROR:

run: $(PRODUCT)
	@exec $(PY) -m chatsite.launcher run

models: $(PRODUCT)
	@$(PY) -m inference.models.prepare

test: $(TOOLS) chromium models
	@$(PY) -m pytest $(BESIDE) --durations=15

check: lint
	@$(PY) -m pytest $(BESIDE) -m "not slow and not browser and not model"

lint: $(TOOLS)
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

# About ten minutes; what it asks and what cannot apply is in docs/compliance.md. ARGS: options of pytest
comply: $(TOOLS) $(COMPLY_PACKAGES)
	@$(PY) -m pytest tests/openapi tests/comply tests/comply/outside/check_*.py -rP $(ARGS)

shots: $(TOOLS) chromium models
	@$(PY) -m tests.shots

# Alone on a quiet machine; writes docs/claims.md and docs/pictures. ARGS: names of claims, --quick, --rounds N
bench-claims: models
	@$(PY) -m tests.bench.claims $(ARGS)

# May be stopped at any moment; the same command goes on. ARGS: --epochs 4, --rank 0, --pairs 2000 ... (--help)
train-verifier: models
	@$(PY) -m inference.verifier.train --data semcache/evaluation/data $(ARGS)

# About ten minutes, alone on a quiet machine. ARGS: --quick, --sizes N ..., --verifier FOLDER, --json FILE
bench-cache: $(TOOLS) models
	@$(PY) -m tests.bench.cache $(ARGS)

# About two minutes, alone on a quiet machine; writes docs/web-benchmarks.md. ARGS: --quick, --streams N, --tokens-per-s N
bench-web: $(TOOLS)
	@$(PY) -m tests.bench.web $(ARGS)

simulate: $(PRODUCT)
	@$(PY) -m inference.simulation

# The first run embeds 40,000 questions (minutes). ARGS: --quick, --set NAME, --json, --verifier FOLDER, --out FOLDER
cache-eval: models
	@$(PY) manage.py cache_eval --verifier inference/verifier/weights $(ARGS)

# Some minutes; writes DATA_DIR/evaluation/peers.json for `make cache-eval ARGS="--peers FILE"`. ARGS: --set NAME
peers-cache: models $(PEER_PACKAGES)
	@$(PY) manage.py cache_peers --python $(PEERS)/bin/python --out $${DATA_DIR:-data}/evaluation/peers.json $(ARGS)

clean:
	rm -rf $(VENV) $(PEERS) $(COMPLY) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: $(PYTHON) is $$($(PYTHON) --version 2>&1) (or: make PYTHON=python3.12)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "making the environment $(VENV) ..."
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)

$(PRODUCT): | $(PY)
	@echo "installing requirements (about 2 minutes the first time; much longer where torch is the CUDA build) ..."
	@$(PIP) -r requirements.txt
	@touch $@ && echo "requirements are installed"

$(PEER_PACKAGES):
	@echo "installing the other caches into $(PEERS) (about 1 minute the first time) ..."
	@rm -rf $(PEERS) && $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r semcache/evaluation/peers/requirements.txt
	@touch $@ && echo "the other caches are installed"

$(COMPLY_PACKAGES):
	@echo "installing clients of others into $(COMPLY) (about 1 minute the first time) ..."
	@rm -rf $(COMPLY) && $(PYTHON) -m venv $(COMPLY)
	@$(COMPLY)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-comply.txt
	@$(COMPLY)/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
	  --dest $(COMPLY) $$(sed -n 's/^openai\[aiohttp\]/openai/p' requirements-comply.txt)
	@touch $@ && echo "the clients are installed"

$(TOOLS): $(PRODUCT)
	@echo "installing what the tests need (about 1 minute the first time) ..."
	@$(PIP) -r requirements-dev.txt
	@touch $@ && echo "test requirements are installed"

# As root with apt the browser is installed; otherwise its tests are skipped with a loud line.
chromium:
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || command -v google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing Chromium for the browser tests (minutes, once) ..."; \
	    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium >/dev/null; \
	  else echo "Chromium is missing: the browser tests will not run"; fi; }
