"""The handlers of scale and heal. Each reads the present state first, then does what is missing."""

from __future__ import annotations

from dataclasses import dataclass

from kubevnfm_events.infra import ObjectsScaled, ScaleObjects
from kubevnfm_worker import Done, NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.errors import ObjectFailed, ObjectsNotReady
from kubevnfm_infra_k8s.domain.facts import facts_of
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.scaling import ScaleRun
from kubevnfm_infra_k8s.handling import ENDING_S, Handling


@dataclass(frozen=True)
class ChangeHandlers(Handling):
    """Scales and heals the Kubernetes objects of VNFs."""

    async def scale_objects(self, command: ScaleObjects, context: StepContext) -> Outcome:
        """Set the objects' numbers of replicas, and wait until they are reached; a repeated call only waits."""
        mine = command.vnf_instance_id
        release = await self.release_of(mine)
        async with self.clusters.cluster(await self.vims.connection(command.vim)) as cluster:
            wait = await self.readiness(cluster, context, mine, command.wait_timeout_s)
            progress = Progress("scale", context.publish)
            run = ScaleRun(wait, progress)
            objects = await run.find(command.objects)
            try:
                is_done = await run.scale(objects, within_s=self.wait_s)
            except (ObjectFailed, ObjectsNotReady) as error:
                error.remains = await facts_of(cluster, release)
                raise
            if not is_done:
                return NotYet(ENDING_S)
            await progress.finished("all counts are reached", total=len(objects))
            return Done(ObjectsScaled(**dict(await facts_of(cluster, release))))
