"""The inbox: one method per command."""

from __future__ import annotations

from collections.abc import Callable

from kubevnfm_events.common import PackageRef
from kubevnfm_events.mgmt import ForgetInstance, InstanceForgotten, PhaseDone, RunPhase
from kubevnfm_secrets import KeyRing, Secret, map_secrets, revealed
from kubevnfm_worker import Done, Outcome, StepContext

from kubevnfm_mgmt_executor.domain.driver import Drivers, PackageFiles, PhaseRequest, Tools
from kubevnfm_mgmt_executor.domain.masking import Mask
from kubevnfm_mgmt_executor.domain.ports import Claim, HostKeys, Journal, Machines, OutputLog
from kubevnfm_mgmt_executor.domain.recorder import Recorder


class MgmtHandlers:
    """Runs phases of drivers, and forgets instances."""

    def __init__(
        self,
        *,
        drivers: Drivers,
        machines: Machines,
        journal: Journal,
        host_keys: HostKeys,
        output_log: OutputLog,
        package_files: Callable[[PackageRef], PackageFiles],
        key_ring: KeyRing,
    ) -> None:
        self._drivers, self._machines, self._journal = drivers, machines, journal
        self._host_keys, self._output_log = host_keys, output_log
        self._package_files, self._key_ring = package_files, key_ring

    async def run_phase(self, command: RunPhase, context: StepContext) -> Outcome:
        """Do the phase, or go on where an earlier try stood: every task looks at its machine before it acts."""
        driver = self._drivers.named(command.driver)
        secrets: list[str] = []

        def collect(secret: Secret) -> None:
            secrets.append(secret.reveal(self._key_ring))

        map_secrets(command.parameters, collect)
        claim = Claim(context.operation_id, context.message_id, context.fencing)
        tools = Tools(
            machines=self._machines,
            journal=self._journal,
            host_keys=self._host_keys,
            output_log=self._output_log,
            recorder=Recorder(self._journal, claim, vnf_instance_id=command.vnf_instance_id, tell=context.tell),
            mask=Mask(secrets),
            operation_id=context.operation_id,
        )
        request = PhaseRequest(
            vnf_instance_id=command.vnf_instance_id,
            phase=command.phase,
            nodes=command.nodes,
            package=self._package_files(command.package),
            parameters=revealed(command.parameters, self._key_ring),
            cluster_address=command.cluster_address,
            cluster_public_address=command.cluster_public_address,
            max_nodes=command.max_nodes,
        )
        result = await driver.run(request, tools)
        return Done(
            PhaseDone(
                driver=command.driver,
                phase=command.phase,
                cluster=result.cluster,
                node_names=dict(result.node_names),
            )
        )

    async def forget_instance(self, command: ForgetInstance, context: StepContext) -> Outcome:
        """Delete everything that is kept about the instance's machines."""
        await self._journal.forget(command.vnf_instance_id)
        await self._host_keys.forget(command.vnf_instance_id)
        await self._output_log.forget(command.vnf_instance_id)
        return Done(InstanceForgotten())
