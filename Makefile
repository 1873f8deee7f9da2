# `make test` sets up all it needs and checks everything; people and CI run the same.
# Paths are relative throughout, so that a checkout may stand anywhere, also under a name with spaces.

PYTHON ?= python3
WORKERS ?= auto
ARGS ?=

RUN := .venv/bin/python
UV := uv==0.13.7
PIN = $(RUN) -m uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-annotate --custom-compile-command 'make lock'

# One stamp a place: a checkout that was moved is set up again.
READY := .venv/ready-$(shell pwd | cksum | tr -d ' ')

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# Without bytecode every process of a test would compile flyball anew, and every worker the tests.
unexport PYTHONDONTWRITEBYTECODE

SUITE := --inline-snapshot disable --ignore tests/browser --ignore tests/power
PARALLEL := -n $(WORKERS) --maxprocesses 4 --dist worksteal $(SUITE)
# Who runs servers waits for them half of the time: another may work meanwhile.
WAITING := $(if $(filter auto,$(WORKERS)),-n $(shell expr $$(nproc 2>/dev/null || echo 2) \* 3 / 2))

# What failed among others is run again, alone: what fails again fails; what holds then is a test that a busy machine
# fails, or a race of ours. Either is told by its name and is to be mended, but holds nobody else up. A run that did
# not come to its end (any code but 1, which is that of tests that failed) has failed.
twice = $(RUN) -m pytest -q $(PARALLEL) $(2) $(1) || { code=$$?; test $$code = 1 || exit $$code; printf '\n== what failed, alone ==\n'; \
	$(RUN) -m pytest --last-failed --last-failed-no-failures none -rA --show-capture no $(SUITE) $(1); }

heading = @printf '\n== %s ==\n'

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-browser lint types contracts suite unit integration coverage properties bench bench-peers bench-control bench-local bench-retrieval bench-nats bench-http bench-api attack-api soak power-loss sizing format lock clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F '|' '{ printf "%-22s%s\n", $$1, $$2 }'

test: lint types contracts suite ## Check everything: lint, types, import contracts, all tests
	$(heading) 'all good'

test-browser: $(READY) ## Check the studio in a real browser: it needs chromium (apt-get install chromium)
	$(heading) test-browser
	@$(RUN) -m pytest -q tests/browser $(ARGS)

demo: $(READY) ## See it work: a typed agent with a tool on the embedded model, which is fetched the first time
	$(heading) demo
	@$(RUN) demo/run.py

setup: $(READY) ## Set up .venv (the other targets do it by themselves)

lint: $(READY) ## Look for mistakes and untidy formatting
	$(heading) lint
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .

types: $(READY) ## Check the types, strictly
	$(heading) types
	@$(RUN) -m pyright

contracts: $(READY) ## Check that imports go down only
	$(heading) 'import contracts'
	@$(RUN) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-logo --no-cache

suite: $(READY) ## Run all tests: those of unit, integration and properties, each once and with all examples
	$(heading) tests
	@$(call twice,$(ARGS),$(WAITING))

unit: $(READY) ## Run what needs no process and no server, or what you name: make unit ARGS="tests/core -k usage"
	$(heading) 'unit tests'
	@$(if $(ARGS),$(RUN) -m pytest -q $(ARGS),$(call twice,-m 'not integration and not slow' --hypothesis-profile brief))

integration: $(READY) ## Run what begins processes and servers, or goes through a whole program
	$(heading) 'integration tests'
	@$(call twice,-m 'integration and not slow' --hypothesis-profile brief $(ARGS),$(WAITING))

coverage: $(READY) ## Run the tests, and see which lines and branches they leave out
	$(heading) coverage
	@$(RUN) -m pytest -q $(PARALLEL) -m 'not slow' --hypothesis-profile brief --cov --cov-report term $(ARGS)

properties: $(READY) ## Run what takes long: properties with all their examples, slow tests
	$(heading) properties
	@$(call twice,-m 'hypothesis or seeded or slow' $(ARGS),$(WAITING))

bench: $(READY) ## Measure flyball beside its floor
	$(heading) bench
	@$(RUN) bench/run.py $(ARGS)

bench-peers: $(READY) ## Measure flyball beside other frameworks, each in an environment that this sets up
	$(heading) bench-peers
	@$(RUN) bench/peers/run.py $(ARGS)

bench-control: $(READY) ## Measure the embedded model on tasks with known answers (takes its time)
	$(heading) bench-control
	@$(RUN) bench/control/run.py $(ARGS)

bench-local: $(READY) ## Measure what a grammar costs the embedded model in tokens per second
	$(heading) bench-local
	@$(RUN) bench/local/run.py $(ARGS)

bench-retrieval: $(READY) ## Measure how well retrievers find what answers a question, over these docs
	$(heading) bench-retrieval
	@$(RUN) bench/retrieval/run.py $(ARGS)

bench-nats: $(READY) ## Measure loops on NATS beside a raw client on the same server
	$(heading) bench-nats
	@$(RUN) bench/nats/run.py $(ARGS)

bench-http: $(READY) ## Measure model calls over HTTP beside bare aiohttp, and beside frameworks on vendors' clients
	$(heading) bench-http
	@$(RUN) bench/http/run.py $(ARGS)

bench-api: $(READY) ## Measure the HTTP API beside System.handle, with a thousand who follow, and how soon tokens arrive
	$(heading) bench-api
	@$(RUN) bench/api/run.py $(ARGS)

attack-api: $(READY) ## Attack the HTTP API, by its own description of itself (takes its time)
	$(heading) attack-api
	@$(RUN) -m tests.adapters.http.attack $(ARGS)

SOAK := --nodes 3 --loops 10000 --kills 400 --minutes 60 --paused 100000
soak: $(READY) ## Run loops on NATS for an hour while workers and nodes are killed at random: nothing may be lost or doubled
	$(heading) soak
	@$(RUN) bench/nats/soak/run.py $(or $(ARGS),$(SOAK))

power-loss: $(READY) ## Have NATS nodes lose their power in the middle of loops: needs root, and loop devices
	$(heading) power-loss
	@$(RUN) -m pytest -q -rs tests/power $(ARGS)

sizing: $(READY) ## Simulate a region with 64 partitions: what it takes, and what it costs when something dies
	$(heading) sizing
	@$(RUN) bench/sizing/run.py $(ARGS)

format: $(READY) ## Format the code, and mend what can be mended by itself
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m ruff format .

lock: $(READY) ## Pin anew what pyproject.toml and bench/peers want; newer versions with ARGS=--upgrade
	@$(RUN) -m pip install --quiet '$(UV)'
	@$(PIN) --all-extras $(ARGS) -o requirements/dev.txt pyproject.toml
	@for wanted in bench/peers/requirements/*.in; do $(PIN) $(ARGS) -o "$${wanted%.in}.txt" "$$wanted" || exit 1; done

clean: ## Remove what was made here, .venv included
	rm -rf .venv .venv-peers .coverage .coverage.* htmlcov .hypothesis .ruff_cache .pytest_cache .import_linter_cache build dist
	find . -type d -name __pycache__ -prune -exec rm -rf {} +

# What is installed was pinned by hash, all that it needs too: nothing is resolved anew, so that what is published
# meanwhile changes nothing. The build backend is among it, so the project itself needs no network.
$(READY): pyproject.toml requirements/dev.txt
	$(heading) setup
	@$(RUN) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		for python in '$(PYTHON)' python3.14 python3.13 python3.12 python3.11 ''; do \
			"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
		done; \
		test -n "$$python" || { echo 'flyball needs Python 3.11 or newer: name one with PYTHON=...' >&2; exit 1; }; \
		"$$python" -m venv --clear .venv; }
	@$(RUN) -m pip install --quiet --no-deps --require-hashes --requirement requirements/dev.txt
	@$(RUN) -m pip install --quiet --no-build-isolation --no-deps --editable .
	@rm -f .venv/ready-*
	@touch $(READY)
