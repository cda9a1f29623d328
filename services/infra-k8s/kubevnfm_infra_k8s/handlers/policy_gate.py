"""The gate before every apply: judges the objects of a step by the policy for CNFs, warns or refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
from cachetools import LRUCache
from kubevnfm_events import VimConnection
from kubevnfm_worker.outcome import StepContext

from kubevnfm_infra_k8s.domain.errors import PolicyViolated
from kubevnfm_infra_k8s.domain.objects import Wanted
from kubevnfm_infra_k8s.domain.planning.cnf_policy import Policies, Rules, findings, namespaces_of
from kubevnfm_infra_k8s.domain.planning.policy_report import described
from kubevnfm_infra_k8s.domain.ports import Cluster, Releases
from kubevnfm_infra_k8s.domain.progress import Progress

log = structlog.get_logger()

_TASK: Final = "policy"


@dataclass(frozen=True)
class PolicyGate:
    """Judges the objects of each attempt of a step once in this process."""

    policies: Policies
    releases: Releases
    _passed: LRUCache[str, None] = field(default_factory=lambda: LRUCache(10_000), repr=False)
    """The attempts that have passed: while objects become ready, their command is delivered again and again."""

    async def judge(
        self,
        objects: Sequence[Wanted],
        vim: VimConnection,
        cluster: Cluster,
        context: StepContext,
        *,
        release_id: str,
        is_own_cluster: bool = False,
    ) -> None:
        """Publish what the policy does not allow, or raise PolicyViolated if it is strict.

        ``release_id``: that of the inventory that the objects get; ``is_own_cluster``: the CNF's package has built the cluster.
        """
        attempt = f"{context.message_id}/{context.attempt}/{release_id}"
        if attempt in self._passed:
            return
        rules = self.policies.for_cluster(vim, cluster.endpoint, is_own=is_own_cluster)
        others = await self._others(objects, rules, cluster, release_id)
        found = await asyncio.to_thread(findings, objects, rules, others)
        if found:
            text = described([each.masked(cluster.masked) for each in found])
            log.warning(
                "cnf_policy_violated", mode=rules.mode, endpoint=cluster.endpoint, findings=len(found), what=text
            )
            what = f"{len(found)} findings of cnf_policy ({rules.pod_security}): {text}"
            if rules.mode == "strict":
                raise PolicyViolated(f"{what}. Nothing was applied (docs/cnf-policy.md)")
            await Progress(_TASK, context.publish).finished(f"warning: {what}", total=len(objects))
        self._passed[attempt] = None

    async def _others(
        self, objects: Sequence[Wanted], rules: Rules, cluster: Cluster, release_id: str
    ) -> Mapping[str, Sequence[str]]:
        """Return the other VNF instances that use a namespace of the objects, by namespace."""
        return {
            name: await self.releases.owners_of(cluster.endpoint, name, than=release_id)
            for name in namespaces_of(objects, rules)
        }
