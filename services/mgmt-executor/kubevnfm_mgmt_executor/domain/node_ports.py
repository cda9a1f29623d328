"""The driver ``mgmt-drivers-cnf-nodeport``: a load balancer outside of the cluster forwards to a CNF's node ports.

The package's own script does the work on the load balancer. It gets Tacker's arguments: ``-i`` with
``<namespace>,<name>,<port>...`` of each Service, ``#`` between Services, and ``-a True`` to add them or ``-a False``
to remove them (then without ports).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import structlog
from kubevnfm_cluster.request import LOAD_BALANCER, read_load_balancer
from kubevnfm_events.common import ServiceFacts
from kubevnfm_events.mgmt import RunPhase
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import map_secrets

from kubevnfm_mgmt_executor.domain.driver import Driver, PhaseResult, Tools
from kubevnfm_mgmt_executor.domain.errors import AddressRefused, CommandUnsuccessful, ConnectionLost, NodeFailure
from kubevnfm_mgmt_executor.domain.logins import bastion, login
from kubevnfm_mgmt_executor.domain.node_session import NodeSession
from kubevnfm_mgmt_executor.domain.ports import Address, Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, TaskResult, Work

log = structlog.get_logger()

_NODE: Final = NodeId("external-lb", "external-lb")
"""The load balancer is no VNFC; under this name it has its pinned host key, its tasks and its output."""
_SCRIPT: Final = "configure_lb.sh"
_REACH_S: Final = 120.0
_RUN_S: Final = 300.0
"""Tacker's limit for the script."""


async def expose(command: RunPhase, tools: Tools) -> PhaseResult:
    """Have the load balancer forward to the CNF's node ports; nothing without a Service of type NodePort."""
    session, script = await _prepared(command, tools)

    async def work(earlier: Earlier | None) -> TaskResult:
        # The script need not be repeatable: Tacker runs it once.
        if not command.services or (earlier is not None and earlier.state == "done"):
            return TaskResult(changed=False)
        await session.copy({_SCRIPT: script})
        if earlier is not None:
            # How far the earlier try came is unknown. If it came to nothing, there is nothing to remove: no error.
            with suppress(CommandUnsuccessful):
                await _run(session, command.services, "expose", is_added=False)
        await _run(session, command.services, "expose", is_added=True)
        return TaskResult()

    await _perform(tools, session, "expose", work)
    return PhaseResult()


async def conceal(command: RunPhase, tools: Tools) -> PhaseResult:
    """Have the load balancer no longer forward to the CNF; a FORCEFUL termination goes on if it cannot be reached.

    So does a graceful one if its address is not granted: no repeat could reach it.
    """
    session, script = await _prepared(command, tools)

    async def work(earlier: Earlier | None) -> TaskResult:
        if not command.services or (earlier is not None and earlier.state == "done"):
            return TaskResult(changed=False)
        await session.copy({_SCRIPT: script})
        await _run(session, command.services, "conceal", is_added=False)
        return TaskResult()

    try:
        await _perform(tools, session, "conceal", work)
    except (NodeFailure, ConnectionLost) as error:
        if not command.force and not isinstance(error, AddressRefused):
            raise
        log.warning("load_balancer_given_up", address=session.address.host, reason=str(error))
    # The next instantiation configures the load balancer again, whatever its journal says.
    await tools.journal.forget(command.vnf_instance_id)
    await tools.host_keys.forget(command.vnf_instance_id)
    return PhaseResult()


async def _prepared(command: RunPhase, tools: Tools) -> tuple[NodeSession, bytes]:
    """Return the session, which is opened when it is used, and the package's script."""
    # In clear, because the form of a sealed secret cannot be checked; in a thread, because a key may have to be opened.
    given = map_secrets({LOAD_BALANCER: command.parameters.get(LOAD_BALANCER)}, tools.reveal)
    balancer = await asyncio.to_thread(read_load_balancer, given)
    script = await tools.package.read(balancer.script_path)
    if script is None:
        raise InvalidInput(f"{LOAD_BALANCER}/script_path", f"the package has no file {balancer.script_path}")
    asked, instance = balancer.external_lb_param, command.vnf_instance_id
    way = bastion(asked.bastion, tools.reveal)
    session = tools.session(
        Address(_NODE.name, instance, _NODE.vnfc_id, asked.ssh_ip, asked.ssh_port, way),
        login(asked.ssh_username, asked.ssh_password, asked.ssh_private_key, tools.reveal),
        _SCRIPT,
        ready_within_s=_REACH_S,
    )
    return session, script


async def _perform(tools: Tools, session: NodeSession, task: str, work: Work) -> None:
    tools.recorder.total = 1
    try:
        await tools.recorder.perform(_NODE, task, work)
        await session.clean()
    finally:
        await session.close()


async def _run(session: NodeSession, services: Sequence[ServiceFacts], task: str, *, is_added: bool) -> None:
    listed = ([each.namespace, each.name, *(map(str, each.node_ports) if is_added else ())] for each in services)
    arguments = ["-i", "#".join(",".join(parts) for parts in listed), "-a", str(is_added)]
    await session.run_own(arguments, task=task, timeout_s=_RUN_S)


PHASES: Final[Driver] = {"instantiate_end": expose, "terminate_end": conceal}
