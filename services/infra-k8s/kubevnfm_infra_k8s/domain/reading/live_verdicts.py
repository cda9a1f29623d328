"""The verdict on an object that the gateway has read once (multicloud.md MC-049)."""

from __future__ import annotations

from dataclasses import dataclass

from kubevnfm_clients.multicloud.verdicts import ObjectVerdict, SeenObject
from kubevnfm_kit.clock import Clock, machine_now

from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.passing_objects import is_passing_kind
from kubevnfm_infra_k8s.domain.ports import Releases
from kubevnfm_infra_k8s.domain.reading.kubevirt import is_restart_required
from kubevnfm_infra_k8s.domain.reading.readiness import age_s, judge
from kubevnfm_infra_k8s.domain.verdicts import Observation


@dataclass(frozen=True)
class LiveVerdicts:
    """`kubevnfm_clients.multicloud.verdicts.Verdicts`."""

    releases: Releases
    clock: Clock
    settle_s: float

    async def judge(self, seen: SeenObject) -> ObjectVerdict:
        """Return the verdict by the rules of the kind: what the order of the package has waited for has been met once."""
        key = ObjectKey(seen.api_version, seen.kind, seen.namespace or "", seen.name)
        if seen.body is None and await self._has_ended(seen.vnf_instance_id, key):
            return ObjectVerdict(judgement="Current", message="has done its work, and does not exist any more")
        now = machine_now(self.clock)
        try:
            # The last change is not known. A custom resource that has no status so long after its creation gets none.
            unchanged_s = 0.0 if seen.body is None else age_s(seen.body, now)
            # The classes are not read: a claim that is not bound counts as one that waits for its pod, which is judged too.
            observation = Observation(now, unchanged_s=unchanged_s, waits_for_consumer=None, settle_s=self.settle_s)
            verdict = judge(seen.body, observation)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # Their definitions may leave open what custom resources have in the places that the rules read.
            return ObjectVerdict(
                judgement="Unknown", message="its status or its kubevnfm.io annotations cannot be understood"
            )
        is_required = seen.body is not None and is_restart_required(seen.body)
        return ObjectVerdict(judgement=verdict.status.value, message=verdict.message, restart_required=is_required)

    async def _has_ended(self, vnf_instance_id: str, key: ObjectKey) -> bool:
        """Return whether a missing object is a Job that was seen complete, or of a kind of which Kubernetes lets none stay."""
        if (key.group, key.kind) != ("batch", "Job") and not is_passing_kind(key):
            return False
        release = await self.releases.get(vnf_instance_id)
        entries = [each for each in release.entries if each.key == key] if release is not None else []
        return any(each.is_complete or (each.uid and is_passing_kind(key)) for each in entries)
