# The commands of the project; `make help` lists them. Each target sets up what it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
UV_VERSION := 0.13.8
BIN := .venv/bin
UV := .tools/bin/uv
export UV_PYTHON_DOWNLOADS := never
# A proxy that inspects outgoing TLS has its own certificate authority in the system's store.
export UV_SYSTEM_CERTS := true
# Some containers set it. The tests start some hundred programs, which would all compile again what they import: that takes
# as long as the rest of their start. Each pytest worker would compile all tests, too.
unexport PYTHONDONTWRITEBYTECODE
MEMBERS := proto-events $(patsubst %/pyproject.toml,%,$(wildcard libs/*/pyproject.toml services/*/pyproject.toml)) deploy/cli deploy/single deploy/lab
PACKAGES := $(filter-out %.egg-info,$(foreach member,$(MEMBERS),$(wildcard $(member)/kubevnfm*)))
UNIT_TESTS := $(wildcard $(MEMBERS:%=%/tests))
TESTS := $(UNIT_TESTS) $(wildcard tests/*)
SAMPLES := capi-management capi-workload capi-workload-class capi-workload-sender capi-workload-v1beta1 cluster cnf custom-resource edge edgex firewall kuryr \
    registry router storage vdns vfw vm
PYTEST := $(BIN)/pytest
# Attacks whose tests are beside the code that they attack, because they need its fixtures.
ATTACKED := libs/clients/tests/test_cluster_login.py libs/clients/tests/test_vnf_networks.py libs/kit/tests/test_http.py \
    libs/sandbox/tests libs/worker/tests/test_suspects.py services/infra-k8s/tests/either/test_overlapping_names.py \
    services/infra-k8s/tests/test_pod_security.py tests/conformance/test_deployment.py
WORKERS ?= 6

.PHONY: help setup lock page servers demo run lab samples test record-passed test-unit test-e2e test-attack test-chart test-chaos drill-restore test-page test-openstack test-machines test-kubernetes test-monitoring cluster-api test-cluster-api test-clients test-etsi test-fuzz fuzz-readers lint audit format schemas stored-operations bench bench-page up down pin-images clean

help: ## Lists the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  %-12s %s\n", $$1, $$2}'

$(UV):
	$(PYTHON) -m venv .tools
	.tools/bin/pip install -q --disable-pip-version-check uv==$(UV_VERSION)

.venv/.ready: requirements.lock $(MEMBERS:%=%/pyproject.toml) | $(UV)
	@echo "setting up .venv from requirements.lock"
	@$(UV) venv -q --clear --python $(PYTHON) .venv
	@$(UV) pip sync -q --require-hashes --python $(BIN)/python requirements.lock
	@$(UV) pip install -q --no-deps --python $(BIN)/python $(MEMBERS:%=-e ./%)
	@touch $@

setup: .venv/.ready ## Creates the environment .venv that everything runs in

servers: ## Installs the servers and tools of the tests: RabbitMQ, mongo-java-server, OpenSSH, shellcheck, amqp-tools, zsh, fish
	@tests/support/servers/install.sh

lock: | $(UV) ## Updates requirements.lock and the lock file of each image from the members' pyproject files
	$(UV) lock -q --upgrade --python $(PYTHON)
	$(UV) export -q --all-packages --no-emit-workspace --no-emit-project --format requirements-txt --all-groups --no-header --no-annotate -o requirements.lock
	@mkdir -p deploy/base/locks
	@for name in $(notdir $(wildcard services/*)) lab; do \
	    $(UV) export -q --frozen --package kubevnfm-$$name --no-dev --no-editable --format requirements-txt --no-header --no-annotate \
	        -o deploy/base/locks/$$name.lock || exit 1; done

page: .venv/.ready | $(UV) ## Builds the web page of services/lcm-api/page, with a Node of its own; docs/page.md
	@services/lcm-api/page/page.sh build

samples: .venv/.ready ## Packs the sample VNF packages into .run/samples
	@PYTHONPATH=tests/support $(BIN)/python -m packages.pack_samples $(SAMPLES)

demo: samples ## Does the main job once, on the lab, and shows it; ARGS=--ha: three masters and storage, scaled and healed; ARGS=--capi: a cluster by Cluster API; ARGS=--multicloud: VNFs in two cloud regions
	@$(BIN)/kubevnfm demo $(ARGS)

run: .venv/.ready ## Runs all services in one process, for your own infrastructure
	@$(BIN)/kubevnfm run

lab: .venv/.ready ## Runs the lab alone: a stand-in cloud with machines and clusters; ARGS=--help lists its options
	@$(BIN)/python -m kubevnfm_lab $(ARGS)

up: .venv/.ready servers ## Starts the six services as processes on RabbitMQ and mongo-java-server; ARGS=--help lists its options
	@PYTHONPATH=tests/support $(BIN)/python -m servers.six_processes up $(ARGS)

down: .venv/.ready ## Stops what `make up` started
	@PYTHONPATH=tests/support $(BIN)/python -m servers.six_processes down

test: samples servers ## Runs the tests except those marked `deep` (longer proofs of what shorter tests show), `clients`, `etsi`, `page` or `monitoring`; ends with what was left out or skipped
	@$(PYTEST) -rs --durations 20 --durations-min 10 --leave-out-unchanged -m "not deep and not clients and not etsi and not page and not monitoring" -n $(WORKERS) --dist worksteal $(UNIT_TESTS) tests

record-passed: samples servers ## Runs the tests of other programs (lab, sandbox, attacks, generated requests); `make test` leaves out what passes until it changes
	@$(PYTEST) -rs --record-passed -m "not deep and not clients and not etsi and not page and not monitoring" -n $(WORKERS) --dist worksteal deploy/lab/tests libs/sandbox/tests tests/attack tests/fuzz

test-unit: samples ## Runs the tests of the services and libs, which need no server
	@$(PYTEST) $(UNIT_TESTS)

test-e2e: samples servers ## Runs the end-to-end tests, over HTTP, in one process and in six
	@$(PYTEST) tests/e2e

test-openstack: samples ## Runs the end-to-end tests of machines against a real OpenStack: CLOUD=NAME is its entry in clouds.yaml
	@KUBEVNFM_E2E_CLOUD=$(CLOUD) $(PYTEST) --timeout 3600 $(addprefix tests/e2e/,test_vm.py test_operations.py test_ports.py test_scripts.py test_many_at_once.py test_vims.py test_drift.py test_faults.py test_automatic_operations.py)

test-machines: samples ## Runs sequences of clusters on real machines, which it installs: MACHINES=FILE names them, ARGS="-k TEST" takes one; docs/real-machines.md
	@test -n "$(MACHINES)" || { echo "MACHINES=FILE expected; docs/real-machines.md says what the file has" >&2; exit 2; }
	@KUBEVNFM_MACHINES="$(abspath $(MACHINES))" $(PYTEST) -s --timeout 7200 tests/machines $(ARGS)

test-kubernetes: samples ## Drives infra-k8s and whole operations on a real Kubernetes API server, which environment variables name; docs/real-kubernetes.md
	@test -n "$(KUBEVNFM_KUBERNETES_ENDPOINT)" || { echo "KUBEVNFM_KUBERNETES_ENDPOINT expected; docs/real-kubernetes.md names all variables" >&2; exit 2; }
	@$(PYTEST) services/infra-k8s/tests/either services/mgmt-executor/tests/test_reader_accounts.py $(ARGS)
	@$(PYTEST) --timeout 1800 tests/kubernetes $(ARGS)

test-monitoring: samples ## Has a real Prometheus and Alertmanager raise alarms, report values, heal and scale; docs/real-monitoring.md names the variables
	@test -n "$(KUBEVNFM_MONITORING_PROMETHEUS_URL)" || { echo "KUBEVNFM_MONITORING_PROMETHEUS_URL expected; docs/real-monitoring.md names all variables" >&2; exit 2; }
	@$(PYTEST) -n 0 tests/monitoring $(ARGS)

cluster-api: .venv/.ready ## Starts the real controllers of Cluster API beside the API server of test-kubernetes; ARGS=down ends them; docs/real-cluster-api.md
	@PYTHONPATH=tests/support $(BIN)/python -m real.cluster_api $(or $(ARGS),up)

test-cluster-api: samples ## Drives workload clusters of the real Cluster API, which `make cluster-api` starts; docs/real-cluster-api.md
	@test -n "$(KUBEVNFM_KUBERNETES_ENDPOINT)" || { echo "KUBEVNFM_KUBERNETES_ENDPOINT expected; docs/real-cluster-api.md names all variables" >&2; exit 2; }
	@PYTHONPATH=tests/support $(BIN)/python -m real.cluster_api check
	@$(PYTEST) --timeout 1800 tests/kubernetes/test_cluster_api.py $(ARGS)

test-chart: samples servers ## Renders the Helm chart with Helm 3 and 4, which it builds with Go, installs it on the API server of KUBECONFIG, and runs its pods as processes; docs/install-chart.md
	@tests/support/chart/programs.sh
	@$(PYTEST) -n 0 tests/chart tests/conformance/test_chart.py $(ARGS)

test-chaos: samples servers ## Runs the chaos tests: each process is killed at each step, each message is delivered twice, each stored operation is replayed
	@$(PYTEST) tests/chaos services/lcm-api/tests/lifecycle/test_engine.py services/lcm-api/tests/test_stored_operations.py

drill-restore: samples servers ## Restores a backup in the middle of twenty operations, in one process and in six; docs/backup.md
	@$(PYTEST) -n 0 tests/chaos/test_restore.py

.run/clients/.ready: tests/clients/requirements.txt | $(UV)
	@$(UV) venv -q --clear --python $(PYTHON) .run/clients
	@$(UV) pip install -q --python .run/clients/bin/python -r tests/clients/requirements.txt
	@touch $@

test-attack: samples servers ## Runs the trials against hostile senders and servers: also 2,000 connections and uploads of 3 GB
	@$(PYTEST) --timeout 1800 tests/attack $(ATTACKED)

test-clients: samples .run/clients/.ready ## Installs the unmodified `openstack` client and runs each of its commands
	@$(PYTEST) tests/clients

.run/etsi/.ready: tests/etsi/requirements.txt | $(UV)
	@$(UV) venv -q --clear --python $(PYTHON) .run/etsi
	@$(UV) pip install -q --python .run/etsi/bin/python -r tests/etsi/requirements.txt
	@touch $@

test-etsi: samples .run/etsi/.ready ## Runs ETSI's conformance suite for 2.6.1, which is in the folder ETSI_ROBOT
	@$(PYTEST) -n $(WORKERS) tests/etsi

test-fuzz: samples ## Sends requests generated from the OpenAPI document: KUBEVNFM_FUZZ_EXAMPLES (100) for each operation
	@KUBEVNFM_FUZZ_EXAMPLES=$${KUBEVNFM_FUZZ_EXAMPLES:-100} $(PYTEST) tests/fuzz

fuzz-readers: .venv/.ready ## Tries changed and made-up inputs with each reader of foreign input: KUBEVNFM_FUZZ_SECONDS (600) for each of them
	@KUBEVNFM_FUZZ_SECONDS=$${KUBEVNFM_FUZZ_SECONDS:-600} $(PYTEST) -n $(WORKERS) tests/fuzz_readers $(ARGS)

.run/page-tests/.ready: tests/page/requirements.txt | $(UV)
	@$(UV) venv -q --clear --python $(PYTHON) .run/page-tests
	@$(UV) pip install -q --require-hashes --python .run/page-tests/bin/python -r tests/page/requirements.txt
	@touch $@

test-page: samples .run/page-tests/.ready ## Uses the web page in Debian's Chromium, on a gateway and the lab; docs/page.md
	@tests/support/servers/install.sh chromium
	@services/lcm-api/page/page.sh setup
	@PYTHONPATH=$$(echo .run/page-tests/lib/python*/site-packages) KUBEVNFM_PICTURES=$(PICTURES) $(PYTEST) -n 0 tests/page $(ARGS)

# One run of mypy checks everything. Links give each folder of tests a package name of its own, because many have a `conftest`.
lint: .venv/.ready | $(UV) ## Checks style, language, types, import rules, scripts and the built web page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/language
	@rm -rf .run/types && mkdir -p .run/types
	@for folder in $(filter-out tests/support %.py,$(TESTS)); do ln -s "$(CURDIR)/$$folder" .run/types/$$(tr '/-' '__' <<<$$folder); done
	MYPYPATH=.run/types $(BIN)/mypy $(PACKAGES) tests/conftest.py tests/support .run/types
	$(BIN)/lint-imports
	@tests/support/servers/install.sh shellcheck
	shellcheck $$(git ls-files '*.sh' .ci/run)
	services/lcm-api/page/page.sh check
	@$(MAKE) --no-print-directory audit

.run/audit/.ready: tests/audit/requirements.txt | $(UV)
	@$(UV) venv -q --clear --python $(PYTHON) .run/audit
	@$(UV) pip install -q --python .run/audit/bin/python -r tests/audit/requirements.txt
	@touch $@

audit: .run/audit/.ready ## Looks the locked packages up among known holes; prints so if the database cannot be reached
	@.run/audit/bin/python tests/audit requirements.lock

format: .venv/.ready ## Formats the code
	$(BIN)/ruff check -q --fix . || true
	$(BIN)/ruff format -q .

schemas: .venv/.ready ## Writes what is made from contract and settings: JSON Schemas, the AsyncAPI document, the definitions of RabbitMQ, the values of the chart
	$(BIN)/python -m kubevnfm_events.schema
	$(BIN)/python -m kubevnfm_bus deploy/base/rabbitmq/definitions.json
	@PYTHONPATH=tests/support $(BIN)/python -m chart.values_schema

stored-operations: .venv/.ready ## Writes what lcm-api stores now as fixtures; VERSION=0.2.0 at a release, `next` before it
	$(BIN)/python tests/stored $(or $(VERSION),next)

bench: samples servers ## Measures speed and prints each figure with its spread and its goal
	$(BIN)/python tests/bench

bench-page: samples .run/page-tests/.ready ## Measures the web page in Debian's Chromium, with thousands of things, and prints each figure with its goal; ARGS=--strict; docs/page.md
	@tests/support/servers/install.sh chromium
	@PYTHONPATH=$$(echo .run/page-tests/lib/python*/site-packages) $(BIN)/python tests/bench/page.py $(ARGS)

pin-images: ## Writes the present digest of each public image into docker-compose.yml and the Dockerfiles; needs Docker
	@deploy/base/pin-images.sh

clean: ## Removes the environment, the tools and the data of runs
	rm -rf .venv .tools .run
