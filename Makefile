# Every command that a person needs; `make help` lists them. Each target sets up what it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
UV_VERSION := 0.13.8
BIN := .venv/bin
UV := .tools/bin/uv
export UV_PYTHON_DOWNLOADS := never
MEMBERS := proto-events $(wildcard libs/*) $(wildcard services/*) deploy/single deploy/lab

.PHONY: help setup lock
help: ## Lists the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  %-12s %s\n", $$1, $$2}'

$(UV):
	$(PYTHON) -m venv .tools
	.tools/bin/pip install -q --disable-pip-version-check uv==$(UV_VERSION)

.venv/.ready: requirements.lock $(MEMBERS:%=%/pyproject.toml) | $(UV)
	@echo "setting up .venv from requirements.lock"
	$(UV) venv -q --clear --python $(PYTHON) .venv
	$(UV) pip sync -q --require-hashes --python $(BIN)/python requirements.lock
	$(UV) pip install -q --no-deps --python $(BIN)/python $(MEMBERS:%=-e ./%)
	@touch $@

setup: .venv/.ready ## Makes the one environment that everything runs in

lock: | $(UV) ## Writes requirements.lock anew from the members' pyproject files
	$(UV) lock -q --upgrade --python $(PYTHON)
	$(UV) export -q --no-emit-workspace --no-emit-project --format requirements-txt --all-groups --no-header --no-annotate -o requirements.lock
