# The commands of a clone. Everything is set up in .venv, once per change of pyproject.toml or constraints.txt.
# GNU make 3.81 (macOS) is enough. ARGS is handed on: make test ARGS="-k rank", make up ARGS=--one-process

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup up down logs check test test-browser acceptance bench test-compose test-hosts

BIN := .venv/bin
READY := .venv/.ready
STATE := $(if $(TOCSIN_STATE),$(TOCSIN_STATE),$(HOME)/.local/state/tocsin)
ARGS ?=

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

setup: $(READY) ## Python environment in .venv, with both servers and the tools

up: $(READY) ## start everything on this machine; Ctrl+C stops it
	@exec $(BIN)/tocsin up $(ARGS)

down: $(READY) ## stop what `up` started
	@$(BIN)/tocsin down $(ARGS)

logs: ## follow the logs of what `up` started
	@tail -n 50 -F "$(STATE)"/logs/*.log

check: $(READY) ## form, types and the rules of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy libs services
	$(BIN)/python -m pytest tests/house

test: $(READY) ## all tests, with real servers on free ports
	$(BIN)/python -m pytest $(ARGS)

test-browser: $(READY) ## the page in a real Chromium, which is part of `test`
	$(BIN)/python -m pytest tests/browser $(ARGS)

acceptance: $(READY) ## the stories of the loop, on the built wheel in a fresh environment, one line each
	@$(BIN)/python tests/system/acceptance.py $(ARGS)

bench: $(READY) ## figures on this machine, each beside its base; ARGS: hooks ranking calls idle commands mail wakes --json --write
	@PYTHONPATH=tests $(BIN)/python -m bench $(ARGS)

test-compose: $(READY) ## docker-compose.yml, from nothing: hooks, replicas, kills, cuts, three nodes, and back to nothing
	$(BIN)/python -m pytest $(addprefix tests/system/compose/,story.py faults.py scale.py cluster.py down.py) $(ARGS)

test-hosts: $(READY) ## two machines as two network namespaces, one cut off and healed; as root, on Linux
	$(BIN)/python -m pytest tests/system/hosts/story.py -s --timeout 600 $(ARGS)

# A Python that is there and new enough is kept; else the first that will do is looked for, by running it.
$(READY): pyproject.toml constraints.txt
	@set -e; \
	new_enough='import sys; raise SystemExit(sys.version_info < (3, 11))'; \
	if ! $(BIN)/python -c "$$new_enough" 2>/dev/null; then \
	  found=; \
	  for name in $(PYTHON) python3.13 python3.12 python3.11 python3.14 python3; do \
	    if $$name -c "$$new_enough" >/dev/null 2>&1; then found=$$($$name -c 'import sys; print(sys.executable)'); break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "No Python 3.11 or newer was found. Install one (Debian: apt install python3 python3-venv; macOS: brew install python)," >&2; \
	    echo "or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
	  fi; \
	  rm -rf .venv; \
	  if command -v uv >/dev/null 2>&1; then uv venv --quiet --python "$$found" .venv; \
	  elif ! "$$found" -m venv .venv; then \
	    rm -rf .venv; echo "$$found has no venv module. Debian: apt install python3-venv" >&2; exit 1; \
	  fi; \
	fi; \
	echo "setting up .venv"; \
	if command -v uv >/dev/null 2>&1; then uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[embedded,dev]'; \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[embedded,dev]'; fi; \
	touch $@
