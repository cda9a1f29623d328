"""Operations that change the nodes of a cluster: their drafts, and the replies of twins until the operation ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_events.mgmt import ManagedNode, PhaseDone, RunPhase
from kubevnfm_events.stacks import ResourcesChanged, ResourcesCreated, StackResources
from kubevnfm_lcm_api.lifecycle.clusters.changing import ClusterChangeDraft
from kubevnfm_lcm_api.lifecycle.clusters.scaling import ScaleClusterDraft
from kubevnfm_lcm_api.lifecycle.core.saga import Move
from kubevnfm_secrets import hide

from worlds.lcm_builders import (
    ACCESS,
    ANSWERS,
    CLUSTER_PARAMETERS,
    RESOURCES,
    a_change_draft,
    a_server,
    an_instance,
    an_instantiate_draft,
)
from worlds.lcm_moves import answered, commands_of

# The suffixes are of another address: names are kept, not made again.
NAMES: Final = {"vnfc-m1": "master4", "vnfc-w1": "worker5", "vnfc-w2": "worker6-1f"}
INSTANCE: Final = an_instantiate_draft(resources=RESOURCES, node_names=NAMES).completed(an_instance())
GROWN: Final = RESOURCES.model_copy(
    update={"servers": (*RESOURCES.servers, a_server("w3", "workerNode", "worker_instance", "10.10.0.7"))}
)
"""The stack with one worker more."""
LIMITS: Final = {"x_timeouts": {"drain": 9000, "node_install": 20_000}}
"""Limits of tasks that are longer than the measured worst case of a phase."""

Stacks = Callable[[Message], StackResources]
"""Returns the content of the stack after a command."""
D = TypeVar("D", bound=ClusterChangeDraft)


def a_cluster_change(kind: type[D], **known: Any) -> D:
    """Return the draft of a change of the nodes of the builders' cluster."""
    facts: dict[str, Any] = {
        "driver": "mgmt-drivers-kubernetes",
        "parameters": hide(CLUSTER_PARAMETERS),
        "cluster_parameters": read_cluster_parameters(CLUSTER_PARAMETERS),
        "node_names": NAMES,
    }
    return a_change_draft(kind, **{**facts, **known})


def a_scaling(**known: Any) -> ScaleClusterDraft:
    """Return the draft of a scale out to `GROWN`, unless ``known`` says another one."""
    return a_cluster_change(ScaleClusterDraft, **{"counts": {"masterNode": 1, "workerNode": 3}, **known})


def with_limits(draft: D) -> D:
    """Return the draft with `LIMITS`."""
    given = {**CLUSTER_PARAMETERS["k8s_cluster_installation_param"], **LIMITS}
    cluster = read_cluster_parameters({"k8s_cluster_installation_param": given})
    return draft.model_copy(update={"cluster_parameters": cluster})


def answer(command: Envelope[Message], stack: StackResources) -> Envelope[Message]:
    """Return the answer of the service; ``stack``: what the stack holds afterwards."""
    event = ANSWERS[type(command.data).routing_key()]
    if isinstance(command.data, RunPhase):
        is_end, is_whole = command.data.phase.endswith("_end"), all(node.is_target for node in command.data.nodes)
        names = {node.vnfc_id: node.name or f"new-{node.vnfc_id}" for node in command.data.nodes}
        event = PhaseDone(
            driver="d",
            phase=command.data.phase,
            node_names=names if is_end else {},
            cluster=ACCESS if is_whole else None,
            # A driver that begins with the last one.
            left=next(
                (node.vnfc_id for node in reversed(command.data.nodes) if is_leaving_master(command.data, node)), None
            ),
        )
    elif isinstance(event, ResourcesChanged | ResourcesCreated):
        event = type(event)(resources=stack)
    return command.follow_up(event, source="/kubevnfm/twin")


def is_leaving_master(command: RunPhase, node: ManagedNode) -> bool:
    """Return whether the command asks to take this master out of the cluster."""
    return command.phase == "heal_start" and node.role == "master" and node.is_target


def run(move: Move, stack: StackResources | Stacks, *, fails: str = "") -> tuple[Move, list[Envelope[Message]]]:
    """Answer every command until none is left or one fails; return the last move and the commands."""
    sent: list[Envelope[Message]] = []
    out = commands_of(move)
    while out:
        command = out.pop(0)
        sent.append(command)
        if command.stepid == fails:
            failed = CommandFailed(command=command.type, code="c", title="t", detail="d", status=422)
            return answered(move, command.follow_up(failed, source="/kubevnfm/twin")), sent
        now = stack if isinstance(stack, StackResources) else stack(command.data)
        move = answered(move, answer(command, now))
        out += commands_of(move)
    return move, sent


def phase_of(command: Envelope[Message]) -> RunPhase:
    """Return the command of a management driver."""
    assert isinstance(command.data, RunPhase)
    return command.data


def shown_names(draft: ClusterChangeDraft) -> dict[str, str | None]:
    """Return the nodes' names by VNFC id, as the instance has them after the operation."""
    info = draft.completed(INSTANCE).vnf.instantiated_vnf_info
    assert info is not None
    return {one.id: (one.metadata or {}).get("node_name") for one in info.vnfc_resource_info}
