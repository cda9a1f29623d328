"""The inbox: one method per command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_events.common import PackageRef
from kubevnfm_events.mgmt import ForgetInstance, InstanceForgotten, PhaseDone, RunPhase
from kubevnfm_kit.clock import Clock
from kubevnfm_secrets import KeyRing, Mask, Secret, map_secrets
from kubevnfm_worker.outcome import Done, Outcome, StepContext

from kubevnfm_mgmt_executor.domain.driver import Driver, PackageFiles, Tools, phase_work
from kubevnfm_mgmt_executor.domain.ports import Claim, HostKeys, Journal, Machines, OutputLog
from kubevnfm_mgmt_executor.domain.recorder import Recorder


class MgmtHandlers:
    """Runs phases of drivers, and forgets instances."""

    def __init__(
        self,
        *,
        drivers: Mapping[str, Driver],
        machines: Machines,
        journal: Journal,
        host_keys: HostKeys,
        output_log: OutputLog,
        package_files: Callable[[PackageRef], PackageFiles],
        own_files: PackageFiles,
        key_ring: KeyRing,
        clock: Clock,
    ) -> None:
        self._drivers, self._machines, self._journal = drivers, machines, journal
        self._host_keys, self._output_log = host_keys, output_log
        self._package_files, self._own_files = package_files, own_files
        self._key_ring, self._clock = key_ring, clock

    async def run_phase(self, command: RunPhase, context: StepContext) -> Outcome:
        """Run the phase, or continue where an earlier try stopped: every task finds out first what is left to do."""
        work = phase_work(self._drivers, command.driver, command.phase)
        claim = Claim(context.operation_id, context.message_id, context.fencing)
        tools = Tools(
            package=self._package_files(command.package),
            own_files=self._own_files,
            machines=self._machines,
            journal=self._journal,
            host_keys=self._host_keys,
            output_log=self._output_log,
            recorder=Recorder(self._journal, claim, vnf_instance_id=command.vnf_instance_id, publish=context.publish),
            mask=Mask(self._secrets_of(command)),
            clock=self._clock,
            reveal=self._reveal,
            operation_id=context.operation_id,
        )
        result = await work(command, tools)
        return Done(
            PhaseDone(
                driver=command.driver,
                phase=command.phase,
                cluster=result.cluster,
                node_names=dict(result.node_names),
                left=result.left,
            )
        )

    def _reveal(self, secret: Secret) -> str:
        return secret.reveal(self._key_ring)

    def _secrets_of(self, command: RunPhase) -> list[str]:
        """Return the secrets of the command in clear, so that they can be masked in what machines print."""
        found: list[str] = []

        def collect(secret: Secret) -> None:
            found.append(self._reveal(secret))

        # A command of version 0.1.0 has no `cluster`: its secrets are in `parameters`.
        map_secrets(command.parameters, collect)
        if command.cluster is not None:
            map_secrets(command.cluster.model_dump(), collect)
        # Errors name the mirror or proxy that does not answer. Such a URL is sealed because it may hold a login.
        shown = set(self._plain_urls(command.cluster)) if command.cluster is not None else set()
        return [secret for secret in found if secret not in shown]

    def _plain_urls(self, cluster: ClusterParameters) -> Iterator[str]:
        """Yield the URLs of mirrors and proxies that are an address and a path only."""
        proxy, mirror = cluster.proxy, cluster.x_mirror
        for sealed in (proxy.http_proxy, proxy.https_proxy, mirror.apt, mirror.apt_key, mirror.images):
            url = self._reveal(sealed) if sealed is not None else ""
            if url and not {"@", "?", "#"} & set(url):
                yield url

    async def forget_instance(self, command: ForgetInstance, context: StepContext) -> Outcome:
        """Delete everything that is stored about the instance's machines."""
        # Each call succeeds also if nothing is left, so a redelivery after a crash between two of them does the rest.
        await self._journal.forget(command.vnf_instance_id)
        await self._host_keys.forget(command.vnf_instance_id)
        await self._output_log.forget(command.vnf_instance_id)
        return Done(InstanceForgotten())
