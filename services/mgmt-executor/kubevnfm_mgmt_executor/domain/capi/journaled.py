"""Collects credentials under the journal, so that a repeat in the same operation sends the same request (CR-078)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

from kubevnfm_clients.callback import sha256_hex
from kubevnfm_events.credentials import WorkloadCluster

from kubevnfm_mgmt_executor.domain.capi.clusters import Credentials
from kubevnfm_mgmt_executor.domain.capi.delivery import Progress
from kubevnfm_mgmt_executor.domain.capi.request import Collected
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, Recorder, TaskResult

_COLLECT: Final = "collect_credentials"

T = TypeVar("T")


def node_of(cluster: WorkloadCluster) -> NodeId:
    """Return the name under which tasks about a cluster are recorded."""
    return NodeId(f"cluster/{cluster.namespace}/{cluster.name}", cluster.name)


async def collected(
    recorder: Recorder,
    cluster: WorkloadCluster,
    operation_id: str,
    collect: Callable[[Progress], Awaitable[Collected]],
) -> Collected:
    """Return what ``collect`` returns, with the facts of the try before if the operation and the credentials are the same."""

    async def work(earlier: Earlier | None, progress: Progress) -> tuple[Collected, TaskResult]:
        found = _as_before(await collect(progress), earlier, operation_id)
        return found, TaskResult(facts=_facts(found, operation_id))

    return await performed(recorder, node_of(cluster), _COLLECT, work)


async def performed(
    recorder: Recorder,
    node: NodeId,
    task: str,
    work: Callable[[Earlier | None, Progress], Awaitable[tuple[T, TaskResult]]],
) -> T:
    """Do the work under the journal, and return what it found: its result holds secrets, which no journal may have."""
    found: list[T] = []

    async def progress(message: str) -> None:
        await recorder.progress(node, task, message)

    async def recorded(earlier: Earlier | None) -> TaskResult:
        one, result = await work(earlier, progress)
        found.append(one)
        return result

    await recorder.perform(node, task, recorded)
    return found[0]


def hash_of(credentials: Credentials) -> str:
    """Return the SHA-256 of the kubeconfig, hex: all that is stored of it (CR-064)."""
    return sha256_hex(credentials.kubeconfig.encode())


def _facts(found: Collected, operation_id: str) -> dict[str, object]:
    return {
        "operationId": operation_id,
        "contentSha256": hash_of(found.credentials),
        "secretResourceVersion": found.secret.resource_version,
        "kubernetesVersion": found.kubernetes_version,
    }


def _as_before(found: Collected, earlier: Earlier | None, operation_id: str) -> Collected:
    """Return the same credentials with the facts of the try before, if that was in the same operation.

    The body must not differ under one idempotency key, and CAPI may have written labels of the Secret meanwhile.
    """
    facts = earlier.facts if earlier is not None else {}
    if facts.get("operationId") != operation_id or facts.get("contentSha256") != hash_of(found.credentials):
        return found
    return replace(
        found,
        kubernetes_version=str(facts["kubernetesVersion"]),
        secret=replace(found.secret, resource_version=str(facts["secretResourceVersion"])),
    )
