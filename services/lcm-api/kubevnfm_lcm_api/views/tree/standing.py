"""The VIM that a deployment stands on: what is seen of its resources holds only while the VIM answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.tree.facts import Away, Gone, Known, TreeFacts

_OF_STATE: Final[Mapping[str, Health]] = {
    "ACTIVE": "ok",
    "PENDING": "progressing",
    "UNREACHABLE": "problem",
    "ERROR": "problem",
}


@dataclass(frozen=True)
class SeenVim:
    """A VIM as vim-registry shows it, or why that is not known."""

    name: str
    type: str | None
    state: str | None
    health: Health
    text: str | None


@dataclass(frozen=True)
class Standing:
    """The VIM of a deployment."""

    vim_id: str | None
    """None: the request brought the access data of a VIM that is not registered."""
    doubt: str | None
    """Why what is stored of the resources may not be as it is now; None: comparisons with the VIM find what has changed."""


def unread(known: Away | Gone) -> tuple[Health, str]:
    """Return the health of something that could not be read, and why not."""
    return "problem" if isinstance(known, Gone) else "unknown", line(known.reason)


def seen_vim(known: Known[JsonMapping], vim_id: str) -> SeenVim:
    """Return a VIM as it is shown."""
    if isinstance(known, Away | Gone):
        return SeenVim(vim_id, None, None, *unread(known))
    # A record without a status is of a test server or an older vim-registry.
    state = str(known.get("status") or "ACTIVE")
    health = _OF_STATE.get(state, "unknown")
    reason = str(known.get("status_reason") or f"the VIM is {state}")
    return SeenVim(
        str(known.get("name") or vim_id), known.get("type"), state, health, line(reason) if health != "ok" else None
    )


def standing(facts: TreeFacts, vim_id: str | None) -> Standing:
    """Return the VIM of a deployment, with what that means for its resources."""
    if vim_id is None or vim_id not in facts.vims:
        return Standing(vim_id, None)
    seen = seen_vim(facts.vims[vim_id], vim_id)
    if seen.health == "ok":
        return Standing(vim_id, None)
    return Standing(vim_id, line(f"VIM {seen.name}: {seen.text}"))
