"""The last check of a management cluster: the webhook of Cluster API denies a Cluster that cannot be (capi.md CR-041).

A Deployment is Available before the API server knows its webhooks and trusts their certificate. A Cluster that is created
meanwhile is refused, or is stored without what the webhook fills in.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.clock import rfc3339

from kubevnfm_infra_k8s.domain.capi.contract import CORE
from kubevnfm_infra_k8s.domain.errors import ObjectFailed, ObjectRefused, ObjectsNotReady, WebhookUnavailable
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Wanted, field_at
from kubevnfm_infra_k8s.domain.planning.order import WEBHOOKS, judges
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.watching.readiness_wait import WEBHOOK_PAUSES, ReadinessWait

_DEFINITION: Final = f"clusters.{CORE}"
_NAME: Final = "kubevnfm-probe-".ljust(64, "x")
"""The API server takes up to 253 characters. The webhook refuses more than 63, because the name becomes a label."""
_SPEC: Final = {"clusterNetwork": {"services": {"cidrBlocks": ["10.96.0.0/12"]}}}
"""It fits the schemas of both contracts, which the API server checks before it asks the webhook."""
_DENIAL: Final = re.compile(rf'admission webhook "[^"]*\.{re.escape(CORE)}" denied the request')
_SCHEMA: Final = frozenset({400, 422})
"""The answers with which the API server itself refuses an object for its content."""


@dataclass(frozen=True)
class Probe:
    """The question to one management cluster, in one step."""

    wait: ReadinessWait
    progress: Progress
    definition: Wanted
    """That of the kind Cluster."""
    has_webhook: bool
    """Whether the set has a webhook configuration for Clusters."""

    async def until_denied(self, *, within_s: float) -> bool:
        """Return True once the webhook denies the Cluster, False after ``within_s``.

        Raises ObjectsNotReady at the deadline, and ObjectFailed if no webhook can ever deny it.
        """
        loop = asyncio.get_running_loop()
        look_until, since, tries = loop.time() + within_s, self.wait.clock.now(), 0
        while (said := await self._ask()) is not None:
            await self.progress.on(
                str(self.definition.key),
                f"waiting since {rfc3339(since)} for the webhook of Cluster API to deny an invalid Cluster: {said}",
                done=0,
                total=1,
            )
            tries += 1
            pause_s = WEBHOOK_PAUSES.after(tries)
            if self.wait.left_s() <= pause_s:
                raise ObjectsNotReady(f"{self.definition.key}: the webhook of Cluster API does not work yet: {said}")
            if loop.time() + pause_s > look_until:
                return False
            await asyncio.sleep(pause_s)
        return True

    async def _ask(self) -> str | None:
        """Return what was answered in place of the denial; None if it came."""
        cluster, version = self.wait.cluster, _storage_version(self.definition.body)
        resource = await cluster.resource(f"{CORE}/{version}", "Cluster")
        if resource is None:
            return f"{CORE}/{version} is not served"
        key = ObjectKey(resource.api_version, "Cluster", "default", _NAME)
        metadata = {"name": key.name, "namespace": key.namespace}
        body = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, "spec": _SPEC}
        try:
            await cluster.apply(resource, key, body, dry_run=True)
        except WebhookUnavailable as error:
            return str(error)
        except ObjectRefused as refusal:
            if _DENIAL.search(refusal.message):
                return None
            if refusal.http_status in _SCHEMA and "admission webhook" not in refusal.message:
                raise ObjectFailed(f"{self.definition.key}: its schema does not fit the probe: {refusal}") from refusal
            return str(refusal)
        if not self.has_webhook:
            raise ObjectFailed(
                f"{self.definition.key}: an invalid Cluster was accepted, and the files have no webhook configuration for it"
            )
        return "it was accepted"


def probe_of(objects: Sequence[Wanted], wait: ReadinessWait, progress: Progress) -> Probe | None:
    """Return the probe; None for a set that does not define the kind Cluster of Cluster API."""
    definition = next((each for each in objects if _is_of_clusters(each.key)), None)
    if definition is None:
        return None
    hooks = [each.body for each in objects if each.key.kind in WEBHOOKS]
    return Probe(wait, progress, definition, any(judges(each, {(CORE, "clusters")}) for each in hooks))


def _is_of_clusters(key: ObjectKey) -> bool:
    return (key.kind, key.name) == ("CustomResourceDefinition", _DEFINITION)


def _storage_version(definition: Body) -> str:
    versions = field_at(definition, "spec", "versions") or []
    return next((str(each.get("name")) for each in versions if each.get("storage")), "")
