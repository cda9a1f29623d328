"""Collects the credentials of a workload cluster: from its Secret, and with a token that is made in it (capi.md chapter 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeVar

from kubevnfm_clients.cluster_api import ApiAnswer
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import SendCredentials, WorkloadCluster
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_mgmt_executor.domain.capi import accounts
from kubevnfm_mgmt_executor.domain.capi.clusters import (
    ClusterFacts,
    Credentials,
    cluster_path,
    read_cluster,
    read_kubeconfig_secret,
    secret_path,
    token_kubeconfig,
)
from kubevnfm_mgmt_executor.domain.capi.delivery import Progress, Rhythm
from kubevnfm_mgmt_executor.domain.capi.errors import (
    ClusterMissing,
    KubeconfigRefused,
    NotThereYet,
    WaitedTooLong,
    WorkloadRefused,
)
from kubevnfm_mgmt_executor.domain.capi.request import Collected, SecretFacts

CONNECT_S: Final = 120.0
"""Tries for the cluster to answer (CR-060); also for the Secret and for the token to be there."""
ROTATION_S: Final = 20.0
"""The same for a rotation between operations, and for the tries to send it."""
_BACK_OFF: Final = BackOff(1.0, 8.0)
_MISSING: Final = 404

T = TypeVar("T")


class ClusterApi(accounts.AccountsApi, Protocol):
    """An API server. Raises as `kubevnfm_clients.cluster_api.ClusterApi`."""

    endpoint: str

    async def status(self, path: str) -> int: ...


Connect = Callable[[VimConnection], ClusterApi]


@dataclass(frozen=True)
class Collector:
    """Reads the management cluster, and works in the workload cluster."""

    connect: Connect
    rhythm: Rhythm = field(default_factory=Rhythm)
    limit_s: float = CONNECT_S

    async def find_cluster(self, vim: VimConnection, cluster: WorkloadCluster) -> JsonObject | None:
        """Return the Cluster object, None if there is none. Raises as ``ClusterApi``."""
        answer = await self.connect(vim).get(cluster_path(cluster))
        if answer.status == _MISSING:
            return None
        return _body(answer, f"Cluster {cluster.namespace}/{cluster.name}")

    async def collect(self, command: SendCredentials, vim: VimConnection, progress: Progress) -> Collected:
        """Return the credentials to send; ``vim``: the management cluster, with its access data.

        Raises: ClusterMissing, KubeconfigRefused, WorkloadRefused, WaitedTooLong; ApiUnavailable (the management cluster).
        """
        admin = await self.collect_admin(command.cluster, vim, progress)
        if command.mode == "admin_kubeconfig":
            return admin
        workload = self.connect(admin.credentials.connection)

        async def token() -> accounts.AccountToken:
            await accounts.ensure_account(workload, cluster_role=command.cluster_role)
            return await accounts.read_token(workload)

        account = await self.wait("the token of the service account", token, progress)
        # The CA of the kubeconfig: it is the one that the endpoint was just verified with. That of the Secret is the same,
        # except behind a load balancer that ends TLS.
        ca_pem = str(admin.credentials.connection.interface_info.get("ssl_ca_cert") or account.ca_pem)
        return replace(
            admin,
            credentials=token_kubeconfig(command.cluster, admin.facts.endpoint, ca_pem=ca_pem, token=account.token),
        )

    async def collect_admin(self, cluster: WorkloadCluster, vim: VimConnection, progress: Progress) -> Collected:
        """Return the administrator's credentials, once the cluster accepts them (CR-059, CR-060). Raises as ``collect``."""
        api = self.connect(vim)

        async def read() -> tuple[ClusterFacts, SecretFacts, Credentials]:
            obj = await self.find_cluster(vim, cluster)
            if obj is None:
                raise ClusterMissing(f"the management cluster has no Cluster {cluster.namespace}/{cluster.name}")
            facts = read_cluster(obj, cluster)
            answer = await api.get(secret_path(cluster))
            if answer.status == _MISSING:
                raise NotThereYet(f"Secret {cluster.namespace}/{cluster.name}-kubeconfig does not exist yet")
            secret = _body(answer, f"Secret {cluster.name}-kubeconfig")
            metadata = secret.get("metadata") or {}
            source = SecretFacts(
                str(metadata.get("name")), str(metadata.get("resourceVersion")), str(secret.get("type"))
            )
            # In a thread, because reading a large one takes seconds.
            return facts, source, await asyncio.to_thread(read_kubeconfig_secret, secret, cluster, facts)

        facts, secret, admin = await self.wait("the kubeconfig Secret", read, progress, retried=(NotThereYet,))
        workload = self.connect(admin.connection)
        await self.wait(f"cluster {cluster.name} at {facts.endpoint}", lambda: reach(workload), progress)
        version = await _version(workload) or facts.topology_version
        return Collected(facts, version, secret, admin, secret.resource_version)

    async def wait(
        self,
        what: str,
        work: Callable[[], Awaitable[T]],
        progress: Progress,
        *,
        retried: tuple[type[VnfmError], ...] = (VnfmError,),
    ) -> T:
        """Return what ``work`` returns; repeat it while it raises a retryable error of ``retried``."""
        began, failures = self.rhythm.monotonic(), 0
        while True:
            try:
                return await work()
            except retried as error:
                if not error.retryable:
                    raise
                failures += 1
                spent_s, pause_s = self.rhythm.monotonic() - began, _BACK_OFF.after(failures)
                if spent_s + pause_s > self.limit_s:
                    raise WaitedTooLong(f"waited {spent_s:.0f} s for {what}: {error}") from error
                await progress(f"waiting since {spent_s:.0f} s for {what}: {error}")
            await self.rhythm.pause(pause_s)


async def reach(api: ClusterApi) -> None:
    """Return once the API server is ready and accepts the credentials (CR-060). Raises WorkloadRefused."""
    # 5xx while it is not ready, which is retried. Test servers have no /readyz, and it may be forbidden.
    await api.status("/readyz")
    # /readyz answers callers without valid credentials too.
    answer = await api.get("/api/v1/namespaces?limit=1")
    if not answer.is_success:
        raise WorkloadRefused(f"{api.endpoint}: the kubeconfig of the Secret may not list namespaces: {answer.message}")


async def _version(api: ClusterApi) -> str:
    answer = await api.get("/version")
    return str(answer.body.get("gitVersion") or "") if answer.is_success else ""


def _body(answer: ApiAnswer, what: str) -> JsonObject:
    if not answer.is_success:
        raise KubeconfigRefused(what, f"the management cluster refuses to show it: {answer.message}")
    return answer.body
