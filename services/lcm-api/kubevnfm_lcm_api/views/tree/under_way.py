"""The machines of a VNF while an operation makes or changes its stack: the instance shows them at the operation's end. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, StackDeployment
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.machines.order import StackDraft


def as_under_way(record: InstanceRecord, operation: JsonMapping | None) -> tuple[InstanceRecord, Mapping[str, str]]:
    """Return the instance with the stack as its operation has seen it last, and the names of its nodes by VNFC.

    ``operation``: the document of the one that has claimed the instance.
    """
    if operation is None:
        return record, {}
    internal = operation["internal"]
    draft = SEQUENCES.draft(internal["plan"], internal["draft"])
    resources = draft.stacks[1] if isinstance(draft, StackDraft) else None
    if not isinstance(draft, StackDraft) or resources is None:
        return record, {}
    if record.stack is not None:
        return record.with_resources(resources), draft.node_names
    stack = StackDeployment(kind="stack", vim_key=draft.vim_key, stack_name=draft.stack_name, resources=resources)
    made = record.with_internals(deployments=(stack,), cluster=draft.cluster_parameters)
    if isinstance(draft, InstantiateDraft):
        made = made.with_vnf(vim_connection_info=draft.vim_connections)
    return made, draft.node_names
