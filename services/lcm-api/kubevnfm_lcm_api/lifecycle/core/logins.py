"""Which operations log in to machines, and need the networks of VNFs for that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubevnfm_events.mgmt import INSTANTIATE_START, RunPhase
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES

_WITHOUT_LOGIN: Final = frozenset(
    {
        INSTANTIATE_START,
        "terminate_end",
        "change_external_connectivity_start",
        "change_external_connectivity_end",
        "modify_information_start",
        "modify_information_end",
    }
)
"""Phases of the drivers in which no machine is logged in to."""


def check_networks(draft: Draft, steps: Iterable[PlannedStep], *, has_networks: bool) -> None:
    """Raise Unprocessable if the operation logs in to machines while no network is one of VNFs.

    So it is refused before it creates a machine; mgmt-executor refuses each address when it connects. ``has_networks``:
    whether the setting ``vnf_networks`` names any.
    """
    if not has_networks and (_reads_admin(draft) or any(_logs_in(step) for step in steps)):
        raise Unprocessable(
            "vnfdId",
            "the operation logs in to machines over SSH, and the setting vnf_networks is empty: set it to the networks of VNFs "
            "(of lcm-api and of mgmt-executor), restart, and repeat the request",
        )


def _reads_admin(draft: Draft) -> bool:
    return isinstance(draft, ScriptedDraft) and draft.reads_admin


def _logs_in(step: PlannedStep) -> bool:
    kind = SEQUENCES.kinds[step.kind]
    return kind.command is RunPhase and not kind.only_undo and step.arguments.get("phase") not in _WITHOUT_LOGIN
