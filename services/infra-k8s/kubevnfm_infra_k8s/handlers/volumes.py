"""The handlers that make an instance a user of persistent volumes, and remove its claims (multicloud.md MC-060, MC-101)."""

from __future__ import annotations

from dataclasses import dataclass

from kubevnfm_events.objects import HoldVolumes, ReleaseVolumes, VolumesHeld, VolumesReleased
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.errors import VolumeNotReady
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.handlers.frame import ENDING_S, Handling
from kubevnfm_infra_k8s.handlers.repeating import repeatable


@dataclass(frozen=True)
class VolumeHandlers(Handling):
    """Takes and leaves the persistent volumes of instances."""

    @repeatable
    async def hold_volumes(self, command: HoldVolumes, context: StepContext) -> Outcome:
        """Check the claims against the manifests, and become a user of each volume.

        The claims come with the namespace, which the next step applies: it waits for them before it applies any other object.
        """
        mine = command.vnf_instance_id
        async with self.step(command, context, await self.releases.get(mine)) as step:
            planned = await step.planned(command)
        await self.volumes.hold(mine, command.volumes, planned.namespace)
        await step.progress("volumes").finished("the persistent volumes are held", total=len(command.volumes))
        return Done(VolumesHeld(volume_ids=tuple(each.persistent_volume_id for each in command.volumes)))

    async def release_volumes(self, command: ReleaseVolumes, context: StepContext) -> Outcome:
        """Have the claims of the instance removed; a volume that is gone or left already is done."""
        mine, progress = command.vnf_instance_id, Progress("volumes", context.publish)
        began = await self.start_times.beginning(context, mine)
        kept_ids = {each.persistent_volume_id for each in command.kept_volumes}
        async with self.noting_silence(context):
            left = await self.volumes.leave(mine, kept=kept_ids, within_s=self.wait_s)
            if left and not command.force:
                await self.volumes.check_answering(mine)
        if left and not command.force:
            waits = "; ".join(left.values())
            if self.clock.now() >= began.deadline(context.deadline, self.gone_timeout_s):
                raise VolumeNotReady(f"not released: {waits}")
            await progress.on("persistent volumes", f"waits for {waits}", done=0, total=len(left))
            return NotYet(ENDING_S)
        await self.start_times.forget(mine)
        text = f"released; still to do in the region: {'; '.join(left.values())}" if left else "released"
        await progress.finished(f"the persistent volumes are {text}", total=len(left))
        return Done(VolumesReleased(volume_ids=tuple(left)))
