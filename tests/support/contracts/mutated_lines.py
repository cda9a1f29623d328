"""The mutations: a line in the heart of each service and lib, and what it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple


class Mutation(NamedTuple):
    """One line that is changed. It is found by its text, so that a module may move."""

    package: str
    line: str
    becomes: str
    tests: str
    """Paths of the tests of `make test` that have to find it."""

    def places(self, package: Path) -> list[tuple[Path, int]]:
        """Return the modules and the numbers, from 0, of the line in the package, or in a copy of it."""
        return [
            (path, number)
            for path in package.rglob("*.py")
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines())
            if line.strip() == self.line
        ]


_LCM: Final = "services/lcm-api/kubevnfm_lcm_api"
_K8S: Final = "services/infra-k8s/kubevnfm_infra_k8s"
_OPENSTACK: Final = "services/infra-openstack/kubevnfm_infra_openstack"
_MGMT: Final = "services/mgmt-executor/kubevnfm_mgmt_executor"
_RECEIVER: Final = "services/credentials-receiver/kubevnfm_credentials_receiver"
_VIMS: Final = "services/vim-registry/kubevnfm_vim_registry"
_SAGA: Final = "services/lcm-api/tests/lifecycle/test_saga.py services/lcm-api/tests/lifecycle/test_cancel.py"
_INBOX: Final = "libs/worker/tests"
_STATES: Final = "services/lcm-api/tests/lifecycle/test_states.py services/lcm-api/tests/lifecycle/test_saga.py"
_NETWORKS: Final = "libs/clients/tests tests/attack/test_callback_addresses.py"

MUTATIONS: Final = (
    Mutation(
        _LCM,
        "if planned is None or not planned.is_running or planned.attempt != reply.attempt:",
        "if planned is None or not planned.is_running:",
        _SAGA,
    ),
    Mutation(_LCM, 'if mode == "GRACEFUL":', 'if mode != "GRACEFUL":', _SAGA),
    Mutation(
        _LCM,
        "while not has_failed and not record.occ.is_cancel_pending and (found := list(ready(record.steps))):",
        "while not has_failed and (found := list(ready(record.steps))):",
        _SAGA,
    ),
    Mutation(
        _LCM,
        "if not (is_reversible and CAN_BE_ROLLED_BACK.get(operation, False)):",
        "if not CAN_BE_ROLLED_BACK.get(operation, False):",
        _STATES,
    ),
    Mutation(
        _LCM,
        "if instance.vnf.instantiation_state is not expected:",
        "if instance.vnf.instantiation_state is None:",
        "services/lcm-api/tests/gateway/test_tasks.py",
    ),
    Mutation(
        _LCM,
        "if announcement.follows in self._announced:",
        "if announcement.follows not in self._announced:",
        "services/lcm-api/tests/notifications/test_subscriptions.py",
    ),
    Mutation(
        _LCM,
        "if waited_s < _EARLIER_EVENT_S:",
        "if waited_s < 0:",
        "services/lcm-api/tests/notifications/test_early_events.py",
    ),
    Mutation(
        _K8S,
        'if field_at(body, "metadata", "deletionTimestamp"):',
        'if field_at(body, "metadata", "deletionTimestamps"):',
        "services/infra-k8s/tests/test_readiness.py services/infra-k8s/tests/either",
    ),
    Mutation(
        _K8S,
        "if is_kept(entry, body, self.deletion):",
        "if entry.is_kept:",
        "services/infra-k8s/tests/test_delete.py services/infra-k8s/tests/either",
    ),
    Mutation(
        _K8S,
        "return is_same and is_ours",
        "return is_same",
        "services/infra-k8s/tests/test_delete.py services/infra-k8s/tests/test_ownership.py services/infra-k8s/tests/either",
    ),
    Mutation(
        _OPENSTACK,
        "return Next.FAIL if made_by in found.tags else Next.REPLACE",
        "return Next.REPLACE",
        "services/infra-openstack/tests/test_handlers.py services/infra-openstack/tests/test_stack_port.py",
    ),
    Mutation(
        _OPENSTACK,
        "return NextForChange.WAIT if is_ours else NextForChange.WAIT_FOR_OTHER",
        "return NextForChange.WAIT",
        "services/infra-openstack/tests/test_next_for_change.py",
    ),
    Mutation(_MGMT, "return members // 2 + 1", "return members // 2", "services/mgmt-executor/tests/test_quorum.py"),
    Mutation(
        _MGMT,
        'if cluster.is_balanced and node.role == "master":',
        "if cluster.is_balanced:",
        "services/mgmt-executor/tests/test_masters.py",
    ),
    Mutation(
        _RECEIVER,
        "if abs(signed_at - now) > SKEW_S:",
        "if signed_at - now > SKEW_S:",
        "services/credentials-receiver/tests",
    ),
    Mutation(
        _RECEIVER,
        "if same is not None and signed_at < same.record.signed_at:",
        "if same is not None and signed_at > same.record.signed_at:",
        "services/credentials-receiver/tests",
    ),
    Mutation(
        _VIMS,
        "if (self._clock.now() - since).total_seconds() >= self._tolerated_s or vim.owner is None:",
        "if (self._clock.now() - since).total_seconds() <= self._tolerated_s or vim.owner is None:",
        "services/vim-registry/tests/test_monitor.py",
    ),
    Mutation(
        "libs/worker/kubevnfm_worker",
        'if left_s > 0 and not self._owners.has_ended(record.body["owner"]):',
        "if left_s > 1e9:",
        _INBOX,
    ),
    Mutation(
        "libs/worker/kubevnfm_worker",
        "where=by(owner=claim.owner, fencing=claim.fencing, state=_CLAIMED),",
        "where=by(owner=claim.owner, state=_CLAIMED),",
        _INBOX,
    ),
    Mutation(
        "libs/worker/kubevnfm_worker",
        'if (record.body["owner"], record.body["fencing"]) == (claim.owner, claim.fencing):',
        'if record.body["owner"] == claim.owner:',
        _INBOX,
    ),
    Mutation(
        "libs/worker/kubevnfm_worker",
        'return len(unended) >= (PARKED_AFTER if body.get("alone") else PARKED_AT_LAST)',
        "return False",
        _INBOX,
    ),
    Mutation(
        "libs/bus/kubevnfm_bus",
        "return list(islice(self._dead.get(service, ()), limit))",
        "return list(islice(self._dead.get(service, ()), 0))",
        "libs/bus/tests tests/contract/bus/test_in_process.py",
    ),
    Mutation(
        "libs/store/kubevnfm_store",
        "if self._is_closed or not self._thread.is_alive():",
        "if not self._thread.is_alive():",
        "libs/store/tests tests/contract/store/test_sqlite_file.py",
    ),
    Mutation(
        "libs/access/kubevnfm_access",
        "if origin is None or not is_changing(request.method):",
        "if origin is None or is_changing(request.method):",
        "libs/access/tests services/lcm-api/tests/gateway/test_hosts.py",
    ),
    Mutation(
        "libs/clients/kubevnfm_clients",
        "return address.is_global and not address.is_multicast and not address.is_reserved",
        "return not address.is_multicast and not address.is_reserved",
        _NETWORKS,
    ),
    Mutation(
        "libs/secrets/kubevnfm_secrets",
        "if isinstance(node, str) and _CREDENTIALS_IN_URL.match(node):",
        "if isinstance(node, str) and not node:",
        "libs/secrets/tests",
    ),
    Mutation("libs/csar/kubevnfm_csar", 'elif ".." in parts:', 'elif "..." in parts:', "libs/csar/tests"),
    Mutation(
        "libs/kit/kubevnfm_kit",
        "if len(self._open_ones) >= self._limits.connections and not self._make_room():",
        "if len(self._open_ones) > self._limits.connections and not self._make_room():",
        "libs/kit/tests/test_connections.py",
    ),
    Mutation(
        "libs/proxies/kubevnfm_proxies",
        "if self.port is not None and self.port != port:",
        "if self.port is not None and self.port == port:",
        "libs/proxies/tests",
    ),
    Mutation(
        "libs/clients/kubevnfm_clients",
        "allowed = [each for each in found if rules.admits(each)]",
        "allowed = list(found)",
        "libs/clients/tests/test_outbound.py",
    ),
    Mutation(
        "libs/keystone/kubevnfm_keystone",
        "if urlsplit(asked)[:2] != urlsplit(target)[:2]:",
        "if urlsplit(asked)[:1] != urlsplit(target)[:1]:",
        "libs/keystone/tests tests/attack/test_openstack_api.py",
    ),
    Mutation(
        "libs/cluster/kubevnfm_cluster",
        'Annotated[str, parsed("a version such as 1.31.4", lambda value: value.removeprefix("v"))] | None',
        'Annotated[str, parsed("a version such as 1.31.4", lambda value: value)] | None',
        "libs/cluster/tests services/mgmt-executor/tests/test_cluster_request.py",
    ),
    Mutation(
        "libs/sol/kubevnfm_sol",
        "if old.get(attribute) != new.get(attribute):",
        "if old.get(attribute) == new.get(attribute):",
        "libs/sol/tests",
    ),
    Mutation(
        "libs/sandbox/kubevnfm_sandbox",
        "return status if status >= 0 else 128 - status",
        "return status",
        "libs/sandbox/tests",
    ),
    Mutation(
        "proto-events/kubevnfm_events",
        'if document["specversion"] != "1.0":',
        'if not document["specversion"]:',
        "proto-events/tests",
    ),
)
