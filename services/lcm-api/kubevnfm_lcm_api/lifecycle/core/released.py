"""Reads documents in the form of released versions, so that an upgrade needs no migration.

Version 0.1.0 stored one deployment as attributes of the instance, and a step by its class's name without arguments. A
document is brought to the present form when it is read and stored in that form with its next change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_events.mgmt import INSTANTIATE_END
from kubevnfm_kit.errors import InvalidInput, Unprocessable

_Json = Mapping[str, Any]

_DEPLOYMENT: Final = ("kind", "vimKey", "stackName", "resources", "release")
_PHASES: Final = frozenset({"instantiate_start", "instantiate_end", "terminate_start"})
"""In 0.1.0 each was a class of its own; now all are `run_driver_phase` with the phase as argument."""
_ARGUMENTS: Final[Mapping[str, Callable[[_Json], dict[str, Any]]]] = {
    "remove_remains": lambda draft: {"occurrence_id": draft.get("remains_of")},
    "delete_resources": lambda draft: {"graceful_wait_s": draft.get("graceful_wait_s", 0.0)},
    "deregister_vim": lambda draft: {"is_forced": draft.get("is_forceful", False)},
    "apply_objects": lambda draft: {"wait_timeout_s": draft.get("wait_timeout_s")},
    "delete_objects": lambda draft: {
        "grace_period_s": 0.0 if draft.get("is_forceful") else (draft.get("graceful_wait_s") or None),
        "is_forced": draft.get("is_forceful", False),
    },
    "operate_servers": lambda draft: {"graceful_wait_s": draft.get("graceful_wait_s", 0.0)},
}
"""Where 0.1.0 kept what is now a step's arguments: in the draft. By the step's name."""
UNREAD_DRAFT: Final[_Json] = {"remains_of": ""}
"""Stands for the draft of an operation that was read without it: what `_ARGUMENTS` need and have no default for."""


def upgraded_internals(internals: _Json) -> _Json:
    """Return an instance's ``internal`` object in the present form."""
    kind = internals.get("kind")
    # None: the present form, or an instance of 0.1.0 that is NOT_INSTANTIATED and has no deployment.
    if kind is None:
        return internals
    deployment: dict[str, Any] = {"vimKey": internals.get("vimKey", "")}
    if kind == "cnf":
        deployment.update(kind="release", release=internals.get("release"))
    else:
        deployment.update(kind="stack", stackName=internals["stackName"], resources=internals.get("resources"))
    others = {name: value for name, value in internals.items() if name not in _DEPLOYMENT}
    return {**others, "deployments": [deployment]}


def with_cluster(document: _Json, attribute: str) -> _Json:
    """Return an instance's ``internal`` object or a draft with the parsed cluster, which was stored in additionalParams alone.

    ``attribute``: where the present form has it.
    """
    parameters = document.get("parameters") or {}
    # A cluster that scripts of the package have built has no phases.
    is_cluster = INSTANTIATE_END in (document.get("phases") or {}) or document.get("clusterVimKey") is not None
    if attribute in document or not is_cluster or parameters.get(CLUSTER) is None:
        return document
    try:
        return {**document, attribute: read_cluster_parameters(parameters)}
    except (InvalidInput, Unprocessable):
        # Parameters of the scripts' own under the same name: they say nothing about the nodes.
        return document


def upgraded_step(step: _Json, draft: _Json) -> _Json:
    """Return a step of a stored plan in the present form; the step's id, and so its command ids, stay.

    ``draft``: the stored draft of its operation. `timeoutS` is left to the step's kind.
    """
    name = step.get("name")
    if name is None:
        return step
    # Edges are not added: 0.1.0 stored `after` too, by the same names that are the ids now.
    others = {key: value for key, value in step.items() if key != "name"}
    if name in _PHASES:
        return {**others, "id": name, "kind": "run_driver_phase", "arguments": {"phase": name}}
    arguments = _ARGUMENTS[name](draft) if name in _ARGUMENTS else {}
    return {**others, "id": name, "kind": name, "arguments": arguments}
