# make demo    show it working, on recorded data: nothing but Python 3.11+ is needed; with a MariaDB here, a copy, too
# make test    every promise once, with real MariaDB, MySQL, PostgreSQL and Spark: minutes. As root it installs
#              the programs that are missing. TIMES=1 prints where the time goes, by test file
# make test-all make test, and then make test-long: more vendors, more kinds of target, fault matrices
# make quick   the tests that need no server and no Spark: a minute or two
# make torture the longest fault matrices and random tests, an hour or more; ends with a page of the cases tried.
#              EVERY=1 walks every case of the large matrices: several hours
# make lint    ruff, mypy, import layers, spelling       make clean   all that is made here
# make pictures the README's pictures, taken again
# make bench   measurements; make bench ledger, clone, verify …: one part of them (tests/bench)
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Each of the thousand processes of the suite would compile all that it imports
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
READY := $(VENV)/.ready
BIN := $(VENV)/bin
PYTHON := $(firstword $(foreach p,$(PYTHON3) python3.13 python3.12 python3.11 python3 python3.14,\
	$(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
ROOT := $(filter 0,$(shell id -u))
APT := $(if $(ROOT),$(shell command -v apt-get))
# a worker and its servers take up to 2.5 GB; tests wait for servers, so there are more workers than cores
WORKERS := $(shell awk '/MemAvailable/ {n = int($$2 / 2500000); print (n < 2 ? 2 : (n > 4 ? 4 : n))}' /proc/meminfo 2>/dev/null || echo 2)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help demo test test-long test-all quick torture lint bench pictures clean servers

help:
	@sed -n '1,/^SHELL/{/^#/s/^# //p}' Makefile

demo: $(READY)
	@$(BIN)/rplctl demo
	@$(BIN)/python -m tests.tools.clone_demo

test: $(READY) servers
	@$(PYTEST) -m 'not long'

test-long: $(READY) servers
	@$(PYTEST) -m long

test-all:
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-long

quick: $(READY)
	@$(PYTEST) -m 'not slow and not spark and not mariadb and not mysql and not postgresql'

torture: $(READY) servers
	@$(PYTEST) -m torture --timeout 7200

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell *.md docs man migrations rplctl tests/README.md tests/bench/README.md

bench: $(READY) servers
	@$(if $(shell command -v sysbench),,$(if $(APT),$(call install,sysbench),echo 'not installed: apt-get install sysbench' >&2))
	@$(BIN)/python -m tests.bench $(filter-out bench,$(MAKECMDGOALS))

# `make bench clone ledger`: the words behind bench are its parts, not targets
ifeq (bench,$(firstword $(MAKECMDGOALS)))
$(eval .PHONY: $(wordlist 2,99,$(MAKECMDGOALS)))
$(eval $(wordlist 2,99,$(MAKECMDGOALS)): bench ; @:)
endif

pictures: $(READY) servers
	@$(BIN)/python -m tests.tools.take_pictures

clean:
	rm -rf $(VENV) dist build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find rplctl tests migrations -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(if $(PYTHON),:,$(if $(APT),$(if $(AGAIN),,$(call install,python3 python3-venv); exec $(MAKE) AGAIN=1 $@;)) \
		echo 'rplctl needs Python 3.11 or newer: apt-get install python3 python3-venv, or make PYTHON3=/path/to/it' >&2; exit 1)
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(if $(APT),$(call install,python3-venv),\
		{ echo 'the venv module of $(PYTHON) is missing: apt-get install python3-venv' >&2; exit 1; })
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@echo 'installing rplctl and its tools into $(VENV) (about 1 GB with Spark; once)' >&2
	@mkdir -p man migrations
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@# compiles the kernels and the tests once, or each worker of the tests would
	@$(BIN)/python -m pytest -n 0 --collect-only -q >/dev/null 2>&1 & $(BIN)/python -m rplctl.event.warm_up; wait
	@touch $@

# Servers and tools for the tests. Installed by name only; policy-rc.d keeps the packages from starting anything.
MISSING = $(if $(wildcard /usr/sbin/mariadbd /usr/local/sbin/mariadbd),,mariadb-server) \
	$(if $(wildcard /usr/lib/postgresql/*/bin/postgres),,postgresql) \
	$(if $(shell command -v javac),,default-jdk-headless) \
	$(if $(shell command -v node),,nodejs) \
	$(if $(shell command -v chromedriver),,chromium-driver) \
	$(foreach tool,fish groff mandoc npm prometheus strace zsh,$(if $(shell command -v $(tool)),,$(tool)))

servers:
	@$(if $(strip $(MISSING)),$(if $(APT),$(call install,$(MISSING)),\
		echo 'not installed, their tests are skipped: apt-get install $(strip $(MISSING))' >&2),:)

# Non-interactive; a failure is told and the rest runs (those tests are skipped, and say so).
define install
( echo 'installing $(strip $(1))' >&2; \
policy=/usr/sbin/policy-rc.d; made=; \
if [ ! -e $$policy ]; then printf '#!/bin/sh\nexit 101\n' > $$policy; chmod +x $$policy; made=1; fi; \
trap '[ -z "$$made" ] || rm -f $$policy' EXIT; \
export DEBIAN_FRONTEND=noninteractive; \
apt-get -qq -o Acquire::Retries=2 update </dev/null >/dev/null || true; \
apt-get -qq -y --no-install-recommends install $(strip $(1)) </dev/null >/dev/null \
	|| echo 'could not install $(strip $(1)); going on without' >&2 )
endef
